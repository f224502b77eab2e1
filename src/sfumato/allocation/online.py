"""Budgets committed step by step, when only the distribution of the weights to come is known.

Fang and Chang (ASIA CCS 2014), section 7.2: at every step choose the budget that minimises the present error plus the
expected error of the rest, each future drawn from the distribution and served as well as it could be. They try a
hundred candidates on a thousand futures, each a convex programme of its own. The expected cost is convex in the
candidate and the futures share nothing else: all of it is one programme with an arrow-shaped Newton system, solved at
once (`solver`). Futures end a few windows ahead, where the present no longer reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.allocation.allocate import checked, checked_history, checked_weights, first_shared, room_now, rooms_after
from sfumato.allocation.bands import smallest
from sfumato.allocation.distributions import Distribution
from sfumato.allocation.feasible import UNITS_OF_EPSILON, Lattice
from sfumato.allocation.solver import Present, solve
from sfumato.errors import InvalidInput
from sfumato.exact import Number, finite_float, positive_int

TOLERANCE = 1e-3  # of the expected error; the budget moves it by less than sampling the futures does
WINDOWS_AHEAD = 2


@dataclass(frozen=True, kw_only=True)
class OnlineAllocator:
    """Commits the budget of each step from what is public: the budgets so far, the weight, and the distribution.

    The same history gives the same budget, in any process. `length` is the number of steps in all, where it is known:
    the last window can then be spent to the end. Use `samples` futures of `horizon` steps (two windows if None).
    """

    distribution: Distribution
    window: int
    epsilon: Number
    power: float = 2
    samples: int = 256
    horizon: int | None = None
    length: int | None = None
    seed: int = 0
    lattice: Lattice = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _, budget, _ = checked(self.window, self.epsilon, self.power)
        positive_int(self.samples, "samples")
        for name in ("horizon", "length"):
            if getattr(self, name) is not None:
                positive_int(getattr(self, name), name)
        object.__setattr__(self, "lattice", Lattice.of(budget))

    def step(self, history: Sequence[Number], weight: float) -> float:
        """The budget of the next step, given the budgets of all steps before; no window is ever above ε.

        A step without weight gets none, and so does a step for which the history leaves no room.
        """
        total = self.lattice.epsilon
        since = first_shared(len(history), self.window)
        recent = checked_history(history, self.window, total, "history", since=since)
        if finite_float(weight, "weight") < 0:
            raise InvalidInput(f"weight={weight!r} must be at least 0. Nothing was drawn or recorded.")
        own = self.lattice.rooms([room_now(recent, self.window, total)], 1)
        if weight == 0 or own.units[0, 0] < UNITS_OF_EPSILON:
            return 0.0
        share = self._choose(recent, len(history), float(weight), float(self.lattice.shares(own.units)[0, 0]))
        units = self.lattice.round_within_windows(np.array([[share]]), own, 1, fill=False)
        return float(self.lattice.budgets(units)[0, 0])

    def run(self, weights: Sequence[float]) -> NDArray[np.float64]:
        """The budgets of a whole sequence, each chosen without a look at the weights after it."""
        budgets: list[float] = []
        for weight in checked_weights(weights):
            budgets.append(self.step(budgets, float(weight)))
        return np.array(budgets)

    def _choose(self, recent: Sequence[Number], step: int, weight: float, room: float) -> float:
        """The part of ε that minimises the expected error."""
        ahead = WINDOWS_AHEAD * self.window if self.horizon is None else self.horizon
        if self.length is not None:
            ahead = min(ahead, self.length - step - 1)
        if ahead <= 0 or self.window == 1:
            return room
        futures = self.distribution.sample(self.samples, ahead, step=step, weight=weight, seed=self.seed)
        rooms = self.lattice.rooms(rooms_after([*recent, 0], self.window, self.lattice.epsilon, ahead), ahead)
        served = smallest(rooms.units.astype(np.float64), self.window, ahead) >= UNITS_OF_EPSILON
        weights = np.where(served, checked_weights(futures).T, 0.0)
        # A future that publishes nothing beside the present step asks nothing of it.
        weights = weights[:, weights[: self.window - 1].any(axis=0)]
        if not weights.size:
            return room
        weights, alike = np.unique(weights, axis=1, return_counts=True)
        weights = weights * alike  # futures that are alike are served alike, and count together
        shares = np.broadcast_to(self.lattice.shares(rooms.units), (ahead, weights.shape[1]))
        present = Present(weight=weight * self.samples / weights.shape[1], room=room)
        return solve(weights, shares, self.window, float(self.power), present=present, tolerance=TOLERANCE).present
