"""What others do: simple divisions of the budget, and the online algorithm of the paper as it is printed.

For comparisons in papers and tests; a stream chooses none of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.allocation.allocate import checked, checked_weights, room_now, rooms_after
from sfumato.allocation.bands import smallest, window_sums
from sfumato.allocation.distributions import Distribution
from sfumato.allocation.feasible import UNITS_OF_EPSILON, Lattice
from sfumato.allocation.solver import solve
from sfumato.exact import Number

Array = NDArray[np.float64]


def even(weights: Any, *, window: int, epsilon: Number) -> Array:
    """ε/window for every step, whatever it weighs: Fang and Chang's e_I, "uniform" in w-event privacy."""
    w = checked_weights(weights)
    return _settled(np.full(w.shape, 1.0 / window), window, epsilon)


def even_where_it_matters(weights: Any, *, window: int, epsilon: Number) -> Array:
    """ε over the largest number of weighted steps in any window, for each of them: needs all weights in advance."""
    w = np.atleast_2d(checked_weights(weights))
    most = window_sums((w > 0).T.astype(np.float64), window, w.shape[1]).max(axis=0, initial=1.0)
    return _settled((w > 0) / most[:, None], window, epsilon).reshape(np.shape(weights))


def sample(weights: Any, *, window: int, epsilon: Number) -> Array:
    """All of ε for one step in every `window`, nothing between: "sample" in w-event privacy."""
    w = checked_weights(weights)
    shares = np.zeros(w.shape)
    shares[..., ::window] = 1.0
    return _settled(shares, window, epsilon)


def paper_online(
    weights: Any,
    distribution: Distribution,
    *,
    window: int,
    epsilon: Number,
    samples: int = 1000,
    candidates: int = 100,
    power: float = 2,
    seed: int = 0,
) -> Array:
    """Section 7.2 of Fang and Chang (2014) as printed: a grid of candidates, and every future to the end.

    A candidate that leaves some future without budget costs infinitely much. Slow; a hundred candidates on a thousand
    futures are 10⁵ convex programmes a step.
    """
    size, total, exponent = checked(window, epsilon, power)
    lattice, w = Lattice.of(total), checked_weights(weights)
    grid = np.arange(1, candidates + 1) / candidates
    budgets: list[float] = []
    for step, weight in enumerate(w.tolist()):
        ahead = len(w) - step - 1
        own = lattice.rooms([room_now(budgets, size, total)], 1)
        room = float(lattice.shares(own.units)[0, 0])
        if weight == 0 or own.units[0, 0] < UNITS_OF_EPSILON:
            budgets.append(0.0)
            continue
        futures = distribution.sample(samples, ahead, step=step, weight=weight, seed=seed).T
        rooms = lattice.shares(lattice.rooms(rooms_after([*budgets, 0], size, total, ahead), ahead).units)
        fitting = grid[grid <= room]
        costs = [
            weight * share**-exponent + _expected_rest(futures, rooms, size, exponent, float(share))
            for share in fitting
        ]
        best = float(fitting[int(np.argmin(costs))]) if np.isfinite(costs).any() else room / 2
        units = lattice.round_within_windows(np.array([[best]]), own, 1, fill=False)
        budgets.append(float(lattice.budgets(units)[0, 0]))
    return np.array(budgets)


def _expected_rest(futures: Array, rooms: Array, window: int, power: float, share: float) -> float:
    """The mean error of futures served as well as possible after a step that took `share` of ε."""
    if not len(rooms):
        return 0.0
    left = rooms.copy()
    left[: window - 1] -= share
    if (futures[(smallest(left, window, len(left)) <= 1e-9)[:, 0]] > 0).any():
        return np.inf
    return float(solve(futures, np.broadcast_to(left, futures.shape), window, power, tolerance=1e-5).error.mean())


def _settled(shares: Array, window: int, epsilon: Number) -> Array:
    size, total, _ = checked(window, epsilon, 2)
    lattice, columns = Lattice.of(total), np.atleast_2d(shares).T
    rooms = lattice.rooms([], len(columns))
    return lattice.budgets(lattice.round_within_windows(columns, rooms, size, fill=False)).T.reshape(shares.shape)
