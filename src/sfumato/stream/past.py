"""What is public when a step gets its budget: its number, and what the steps before it got; of a late one, after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import overload

from sfumato.ledger.steps import Step

Places = list[Step | None]


@dataclass(frozen=True, kw_only=True)
class Past:
    """The steps just before step number `step`, newest last; those too old to matter are left out.

    Allocations see this and the weight of the step, and nothing else: never a count.
    """

    step: int
    budgets: tuple[Fraction, ...]
    weights: tuple[float, ...]
    floors: tuple[float, ...]

    def recent(self, steps: int) -> tuple[Fraction, ...]:
        """The budgets of the last steps, fewer at the beginning."""
        return self.budgets[max(len(self.budgets) - steps, 0) :]


@dataclass(frozen=True, kw_only=True)
class Later:
    """The steps after a late one that share a window with it, the next one first: what they spent, and their floors."""

    budgets: tuple[Fraction, ...]
    floors: tuple[float, ...]


def later_of(entries: Sequence[Step], numbers: Sequence[int], step: int, window: int) -> Later:
    """What comes after a step in the windows that hold it, given the ledger's entries there and their numbers."""
    known = dict(zip(numbers, entries, strict=True))
    places = [known.get(number) for number in range(step + 1, step + window)]
    budgets = tuple(Fraction(0) if entry is None else Fraction(entry.epsilon) for entry in places)
    return Later(
        budgets=budgets,
        floors=tuple(_floor_of(entry, budget) for entry, budget in zip(places, budgets, strict=True)),
    )


def past_of(entries: Sequence[Step], numbers: Sequence[int], start: int, step: int, window: int) -> tuple[Past, Places]:
    """What is past for a step, given the ledger's entries from step `start` on and their numbers; and their places.

    Steps that were never mentioned got nothing. What no raise can serve weighs nothing: skipped steps, and those that
    another allocation published, or another program, for which the ledger keeps no online budget. When nothing is left
    out at the beginning, a gap of more than a window is cut to one: nothing on one side of it shares a window with
    anything on the other. Otherwise each step keeps its place, since allocators tell from the length how far back they
    may look.
    """
    longest = step - start if start else window
    places: Places = []
    for before, number, entry in zip([start - 1, *numbers], [*numbers, step], [*entries, None], strict=True):
        places += [None] * min(number - before - 1, longest)
        places += [] if entry is None else [entry]
    waits = [entry is not None and None not in (entry.release_id, entry.weight, entry.floor) for entry in places]
    budgets = tuple(Fraction(0) if entry is None else Fraction(entry.epsilon) for entry in places)
    past = Past(
        step=step,
        budgets=budgets,
        weights=tuple(entry.weight or 0.0 if entry and its else 0.0 for entry, its in zip(places, waits, strict=True)),
        floors=tuple(_floor_of(entry, budget) for entry, budget in zip(places, budgets, strict=True)),
    )
    return past, places


def _floor_of(entry: Step | None, budget: Fraction) -> float:
    """What the online algorithm would have given a step; what it has where nobody knows."""
    return float(budget) if entry is None or entry.release_id is None or entry.floor is None else entry.floor


class Ending(Sequence[Fraction | float]):
    """A sequence of which only the end is known: allocators ask how long it is and look at its last window."""

    def __init__(self, length: int, end: Sequence[Fraction | float]) -> None:
        self._length, self._end = length, end

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Fraction | float: ...

    @overload
    def __getitem__(self, index: slice) -> list[Fraction | float]: ...

    def __getitem__(self, index: int | slice) -> Fraction | float | list[Fraction | float]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self._length))]
        before = self._length - len(self._end)
        place = index + self._length if index < 0 else index
        if not before <= place < self._length:
            raise IndexError(index)
        return self._end[place - before]
