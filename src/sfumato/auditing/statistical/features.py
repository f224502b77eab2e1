"""What someone who holds a release sees, as a table of features: one row a run.

Features are chosen before any run: the published cells, their running sums and their differences around the two ends of
the change, and what mistakes leave behind: exact zeros, ties, parities, whole numbers, and how fine the last binary
digit of a number is (floating-point noise shows what it was added to there: Mironov, CCS 2012).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.mechanism import Mechanism
from sfumato.noise import Source

MOST_COLUMNS = 24  # cells, and measured numbers, that are looked at one by one
CELLS_AROUND = 5  # on either side of an end of the change, where there are more


@dataclass(frozen=True, eq=False)
class Features:
    """The features of a mechanism's outputs for a change between two cells."""

    mechanism: Mechanism
    edge: tuple[int, int]

    @property
    def cells(self) -> list[int]:
        """The cells that are looked at: all where they are few, else those around the two ends."""
        size = len(self.mechanism.seen(np.zeros(self.mechanism.policy.domain.size, dtype=np.int64)))
        if size <= MOST_COLUMNS:
            return list(range(size))
        ends = self._ends
        around = {min(max(end + step, 0), size - 1) for end in ends for step in range(-CELLS_AROUND, CELLS_AROUND + 1)}
        return sorted(around)[:MOST_COLUMNS]

    @cached_property
    def _ends(self) -> list[int]:
        """The ends of the change in what the mechanism sees: cells, or those of all tables."""
        cells = np.arange(self.mechanism.policy.domain.size)
        moved = [self.mechanism.seen((cells == end).astype(np.int64)) for end in self.edge if end >= 0]
        return [int(place) for found in moved for place in np.flatnonzero(found)]

    def names(self) -> list[str]:
        """What each feature is; those of measured numbers come last, and where none are seen they have no column."""
        found = [f"cell {cell}" for cell in self.cells]
        found += [f"the sum of the cells before {cell + 1}" for cell in self.cells]
        found += [
            "the difference of the two cells",
            "the total",
            "the number of zeros",
            "the number of different values",
        ]
        found += ["the least value", "the number of negative values"]
        for end in self._ends:
            found += [f"the parity of cell {end}", f"the last binary digit of cell {end}"]
        return [*found, "how many numbers were measured", *(f"measured number {i}" for i in range(MOST_COLUMNS))]

    def table(self, counts: Integers, total: int | None, source: Source, runs: int) -> Floats:
        """So many runs, one row each."""
        counts = self.mechanism.seen(counts)
        estimates = np.empty((runs, len(counts)))
        measured: list[Integers] = []
        for i in range(runs):
            drawn, estimates[i] = self.mechanism.observe(counts, total, source)
            if drawn is not None:
                measured.append(drawn.ravel())
        return np.column_stack([*self._features(estimates), _first_numbers(measured, runs)])

    def _features(self, estimates: Floats) -> list[Floats]:
        # Fractions that a public total was settled by are no differences between whole numbers.
        smooth = estimates.round(9)
        sums = np.cumsum(estimates, axis=1).round(9)
        at = [estimates[:, end] for end in self._ends]
        ordered = np.sort(estimates, axis=1)
        found = [smooth[:, self.cells], sums[:, self.cells]]
        found += [smooth[:, self._ends[0]] - (smooth[:, self._ends[1]] if len(at) > 1 else 0.0), sums[:, -1]]
        found += [(estimates == 0).sum(axis=1), 1 + (np.diff(ordered, axis=1) > 0).sum(axis=1)]
        found += [ordered[:, 0], (estimates < 0).sum(axis=1)]
        for values in at:
            whole = values == np.floor(values)
            found += [np.where(whole, np.mod(np.floor(values), 2), -1.0)]
            found += [np.array([last_digit(value) for value in values.tolist()])]
        return found


def _first_numbers(measured: list[Integers], runs: int) -> Floats:
    """How many numbers every run measured, and the first of them; no column where none are measured."""
    table = np.zeros((runs, MOST_COLUMNS + 1 if measured else 0))
    for row, drawn in zip(table, measured, strict=False):
        first = drawn[:MOST_COLUMNS]
        row[0], row[1 : len(first) + 1] = len(drawn), first
    return table


def last_digit(value: float) -> float:
    """The exponent of the lowest binary digit that is set, between -80 and 0."""
    if not math.isfinite(value):
        return 0.0
    _, denominator = value.as_integer_ratio()
    return -float(min(denominator.bit_length() - 1, 80))
