"""Dividing a budget over time so that every window keeps to ε and the total error is as small as it can be.

Fang and Chang (ASIA CCS 2014), Problems 1 and 2: minimise Σ w_i·ε_i^(-p) while every run of `window` consecutive steps
spends at most ε (their Theorem 2, which needs the first window too). The weights say how much an error at a step
matters; they are public, and so is the allocation. No private value comes near this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.allocation.bands import smallest
from sfumato.allocation.feasible import UNITS_OF_EPSILON, Lattice, Rooms, largest_reading
from sfumato.allocation.solver import solve
from sfumato.errors import InvalidInput
from sfumato.exact import Number, finite_float, fraction, positive_fraction, positive_int, text

Array = NDArray[np.float64]

MOST_POWER = 10  # beyond, budgets to the power leave the range of doubles


def allocate(
    weights: Any,
    *,
    window: int,
    epsilon: Number,
    committed: Sequence[Number] | None = None,
    power: float = 2,
) -> Array:
    """The budgets ε_i with the smallest total error Σ w_i·ε_i^(-power), no `window` consecutive ones above ε together.

    Weights are public, at least zero; a step of weight zero gets no budget. Two-dimensional weights are many sequences,
    one a row, and so are their budgets. `committed` holds the budgets of the first steps, which stay as they are; a
    step for which they leave less than a millionth of ε gets nothing.

    The result is within 10⁻⁷ of the optimum, and exact where it matters: taken as fractions, the budgets of any
    window sum to at most ε.

    >>> sf.allocate([1, 1, 1, 1], window=2, epsilon=1).round(3).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    size, budget, exponent = checked(window, epsilon, power)
    w = checked_weights(weights)
    lattice = Lattice.of(budget)
    before = checked_history(committed or (), size, budget, "committed")
    steps = w.shape[-1]
    if len(before) > steps:
        raise InvalidInput(
            f"committed has {len(before)} budgets for {steps} weights. Nothing was drawn or recorded. "
            "Give a weight for every step, the committed ones included."
        )
    ahead = np.atleast_2d(w)[:, len(before) :].T
    rooms = lattice.rooms(rooms_after(before, size, budget, len(ahead)), len(ahead))
    units = divide(ahead, rooms, size, exponent, lattice)
    result = np.zeros_like(np.atleast_2d(w))
    result[:, : len(before)] = [float(value) for value in before]
    result[:, len(before) :] = lattice.budgets(units).T
    return result.reshape(w.shape)


def total_error(weights: Any, budgets: Any, *, power: float = 2) -> Array:
    """Σ w_i·ε_i^(-power) of each sequence: infinite where a step that matters has no budget."""
    w, e = checked_weights(weights), np.asarray(budgets, dtype=np.float64)
    if w.shape != e.shape:
        raise InvalidInput(f"budgets of shape {e.shape} do not match weights of shape {w.shape}.")
    with np.errstate(divide="ignore"):
        return np.where(w > 0, w * np.where(w > 0, e, 1.0) ** -power, 0.0).sum(axis=-1)


def divide(weights: Array, rooms: Rooms, window: int, power: float, lattice: Lattice) -> NDArray[np.int64]:
    """Units of the lattice for (steps, sequences) of weights, given what is left in the windows."""
    if not weights.size:
        return np.zeros(weights.shape, dtype=np.int64)
    open_steps = smallest(rooms.units.astype(np.float64), window, len(weights)) >= UNITS_OF_EPSILON
    w = np.where(open_steps, weights, 0.0)
    shares = np.broadcast_to(lattice.shares(rooms.units + rooms.beyond), (len(rooms.units), w.shape[1]))
    solution = solve(w, shares, window, power)
    return lattice.round_within_windows(solution.budgets, rooms, window)


def room_now(before: Sequence[Number], window: int, epsilon: Fraction) -> Fraction:
    """What the steps before leave of ε in the window that ends with the next step."""
    return epsilon - sum((largest_reading(value) for value in before[first_shared(len(before), window) :]), Fraction(0))


def rooms_after(before: Sequence[Number], window: int, epsilon: Fraction, steps: int) -> list[Fraction]:
    """What the steps before leave of ε in the next windows: of those that end with the next `steps`, the ones that
    may hold a step before. The windows after these have all of ε.
    """
    tail = [largest_reading(value) for value in before[first_shared(len(before), window) :]]
    spent = list(accumulate(reversed(tail), initial=Fraction(0)))  # by the last 0, 1, 2, … steps
    return [epsilon - spent[min(window - 1 - ahead, len(tail))] for ahead in range(min(window - 1, steps))]


def first_shared(steps: int, window: int) -> int:
    """The first step that shares a window with step number `steps`."""
    return max(steps - window + 1, 0)


def checked(window: object, epsilon: Number, power: object) -> tuple[int, Fraction, float]:
    """Window, ε and exponent, refused when they make no sense."""
    size, budget = positive_int(window, "window"), positive_fraction(epsilon, "epsilon")
    exponent = finite_float(power, "power")
    if not 0 < exponent <= MOST_POWER:
        raise InvalidInput(
            f"power={power!r} must be greater than 0 and at most {MOST_POWER}: the error is weight / budget**power. "
            "Nothing was drawn or recorded. Use 2 for the variance of Laplace noise."
        )
    return size, budget, exponent


def checked_weights(weights: Any) -> Array:
    """Weights as doubles, one sequence or one a row, finite and at least zero."""
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("weights are not numbers. Nothing was drawn or recorded.") from None
    if w.ndim not in (1, 2):
        raise InvalidInput(
            f"weights of shape {w.shape} are neither one sequence nor a table with one sequence a row. "
            "Nothing was drawn or recorded."
        )
    wrong = ~(np.isfinite(w) & (w >= 0))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InvalidInput(
            f"weights[{', '.join(map(str, place))}]={float(w[place])!r} must be finite and at least 0. "
            "Nothing was drawn or recorded. Use 0 for a step at which nothing is published."
        )
    return w


def checked_history(
    history: Sequence[Number], window: int, epsilon: Fraction, name: str, *, since: int = 0
) -> list[Number]:
    """Budgets of the steps from `since` on, refused when one is negative or a window of them is already over ε."""
    values: list[Number] = [float(value) if isinstance(value, np.floating) else value for value in history[since:]]
    exact = [fraction(value, f"{name}[{since + i}]") for i, value in enumerate(values)]
    spent = Fraction(0)
    for i, value in enumerate(exact):
        if value < 0:
            raise InvalidInput(f"{name}[{since + i}]={values[i]!r} must be at least 0. Nothing was drawn or recorded.")
        spent += value - (exact[i - window] if i >= window else 0)
        if spent > epsilon:
            first = since + max(i - window + 1, 0)
            raise InvalidInput(
                f"{name}[{first}:{since + i + 1}] sums to {text(spent)}, which exceeds epsilon={text(epsilon)} for a "
                f"window of {window} steps. Nothing was drawn or recorded. Correct {name}, or use a larger epsilon."
            )
    return values
