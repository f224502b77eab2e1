"""Commit little, raise later: budgets that grow when it is known what their windows were needed for.

A release can be refined afterwards at no more than the difference (gradual release), and budget belongs to the time of
the data, not of the publication. A step may therefore start below its online budget and be raised while its windows
have room. No weight to come can break a window: room is kept for what the online algorithm would commit from here on.

**Never worse than online.** Let e be the budgets of the online algorithm on the same weights, computed but not spent.
After every step there is a plan y for the steps so far that (1) is at least what is committed, (2) keeps every window
to ε, (3) in each window that is still open spends at most what e spends there, and (4) has a total error of at most
that of e. For the next step y extended by e's next budget is again such a plan, by (3); `raises` finds the best one
and commits the steps that have waited long enough to it. At the end the best plan without (3) is committed whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from sfumato.allocation.allocate import checked_history, checked_weights, first_shared, room_now, rooms_after
from sfumato.allocation.bands import smallest, window_sums
from sfumato.allocation.feasible import UNITS_OF_EPSILON, Lattice, Rooms, Units
from sfumato.allocation.online import OnlineAllocator
from sfumato.allocation.solver import solve
from sfumato.errors import InvalidInput
from sfumato.exact import Number, finite_float, positive_int

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TopUpAllocator:
    """Commits a part of the online budget first and the rest when it is known where it serves best.

    `first` is that part: a small one leaves more to raise, 1 publishes at once what the online algorithm would.
    `patience` is how many windows a step waits for its raise. One window suffices for the promise; a second one lets
    neighbours whose windows overlap settle among themselves, and closes almost all of the gap to hindsight.

    Like the online allocator it depends on public history alone. `floor` is what the online algorithm gives for the
    weights so far; keep it beside the history, or leave it out and have it computed afresh.
    """

    online: OnlineAllocator
    first: float = 0.75
    patience: int = 2

    def __post_init__(self) -> None:
        positive_int(self.patience, "patience")
        if not 0 < finite_float(self.first, "first") <= 1:
            raise InvalidInput(
                f"first={self.first!r} must be greater than 0 and at most 1: the part of the online budget that a step "
                "gets at once. Nothing was drawn or recorded."
            )

    def step(
        self, history: Sequence[Number], weights: Sequence[float], *, floor: Sequence[float] | None = None
    ) -> float:
        """The first budget of the newest step, whose weight is the last of `weights`."""
        window, lattice = self.online.window, self.online.lattice
        own = self._floor(self._weights(weights, len(history) + 1), floor)[-1]
        since = first_shared(len(history), window)
        recent = checked_history(history, window, lattice.epsilon, "history", since=since)
        room = lattice.rooms([room_now(recent, window, lattice.epsilon)], 1)
        share = np.array([[self.first * float(own) / float(lattice.epsilon)]])
        return float(lattice.budgets(lattice.round_within_windows(share, room, 1, fill=False))[0, 0])

    def raises(
        self,
        history: Sequence[Number],
        weights: Sequence[float],
        *,
        floor: Sequence[float] | None = None,
        ended: bool = False,
    ) -> Array:
        """New budgets for all steps so far, none below its old one. Call it after every step.

        Steps that have waited for `patience` windows are raised to the best plan, younger ones stay. With `ended` no
        further step will come, and all are raised.
        """
        window, lattice = self.online.window, self.online.lattice
        w = self._weights(weights, len(history))
        own = self._floor(w, floor)
        result = np.array([float(value) for value in history])
        # Older steps had their raise already: there is nothing left beside them.
        start = 0 if ended else max(len(w) - (self.patience + 1) * window, 0)
        if len(w) == start:
            return result
        since = first_shared(start, window)
        recent = checked_history(history, window, lattice.epsilon, "history", since=since)
        before, committed = recent[: start - since], recent[start - since :]
        least = lattice.units_above(committed)
        rooms = self._rooms(before, own[start:], ended)
        units = best_above(w[start:, None], least, rooms, window, float(self.online.power), lattice)
        due = len(w) if ended else max(len(w) - self.patience * window + 1, start)
        raised = np.flatnonzero(units[: due - start, 0] > least[: due - start, 0])
        result[start + raised] = lattice.budgets(units[raised, 0])
        return result

    def run(self, weights: Sequence[float], *, floor: Sequence[float] | None = None) -> Array:
        """What the steps of a whole sequence end with."""
        w = checked_weights(weights).tolist()
        own = self._floor(np.array(w), floor).tolist()
        budgets: list[float] = []
        for i in range(1, len(w) + 1):
            budgets.append(self.step(budgets, w[:i], floor=own[:i]))
            budgets = self.raises(budgets, w[:i], floor=own[:i], ended=i == len(w)).tolist()
        return np.array(budgets)

    def _rooms(self, before: Sequence[Number], own: Array, ended: bool) -> Rooms:
        """What is left in the windows that end with these steps; in the open ones after them, what e spends there."""
        window, lattice, steps = self.online.window, self.online.lattice, len(own)
        rooms = rooms_after(before, window, lattice.epsilon, steps)
        rooms += [lattice.epsilon] * (steps - len(rooms))
        if not ended:
            spent = list(accumulate((Fraction(value) for value in own[::-1].tolist()), initial=Fraction(0)))
            rooms += [spent[min(window - 1 - ahead, steps)] for ahead in range(window - 1)]
        return lattice.rooms(rooms, len(rooms))

    def _weights(self, weights: Sequence[float], expected: int) -> Array:
        w = checked_weights(weights)
        if w.shape != (expected,):
            raise InvalidInput(
                f"weights of shape {w.shape} do not go with the history: {expected} were expected. "
                "Nothing was drawn or recorded. Give one weight for every step so far."
            )
        return w

    def _floor(self, w: Array, floor: Sequence[float] | None) -> Array:
        if floor is None:
            return self.online.run(w.tolist())
        if len(floor) != len(w):
            raise InvalidInput(
                f"floor has {len(floor)} budgets for {len(w)} steps. Nothing was drawn or recorded. "
                "Give the online budget of every step so far, or leave floor out."
            )
        return np.asarray(floor, dtype=np.float64)


def best_above(weights: Array, floor: Units, rooms: Rooms, window: int, power: float, lattice: Lattice) -> Units:
    """The best budgets on the lattice that are nowhere below the floor; full windows leave their steps as they are."""
    count = len(rooms.units)
    free = rooms.units - np.rint(window_sums(floor.astype(np.float64), window, count)).astype(np.int64)
    raisable = (smallest(free.astype(np.float64), window, len(weights)) >= UNITS_OF_EPSILON) & (weights > 0)
    if not raisable.any():
        return floor
    solution = solve(
        np.where(raisable, weights, 0.0), lattice.shares(rooms.units), window, power, floor=lattice.shares(floor)
    )
    return lattice.round_within_windows(np.where(raisable, solution.budgets, 0.0), rooms, window, floor=floor)
