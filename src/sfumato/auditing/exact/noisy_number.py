"""Mechanisms that add noise to integers without saying so, written as what they are, so that they too can be audited
exactly. Each form is checked against the mechanism's own runs, draw for draw, before anything is concluded from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.databases import pair
from sfumato.auditing.result import Loss
from sfumato.mechanism.points.sorted import LARGEST_TOTAL, SortedWithAbsence
from sfumato.mechanism.points.sorted_groups import group_sizes, group_sums
from sfumato.noise import SeededSource

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

RUNS = 30  # compared draw for draw
GUESSES = 4  # numbers of records around the true one, on either side, and the first few


@dataclass(frozen=True, eq=False)
class NoisyNumber:
    """Sorted points whose number is private: a noisy number of records, then noisy sums that depend on it.

    Given the number that came out, the sums of two neighbours differ by a known d: the loss is the rate of the number
    (if it differs) plus the rate of the sums times ‖d‖₁, at the worst number.
    """

    mechanism: SortedWithAbsence

    def faithful(self, databases: Sequence[Integers]) -> bool:
        """Whether the mechanism draws just that, from the same random words."""
        return all(self._alike(databases[seed % len(databases)], seed) for seed in range(RUNS))

    def _alike(self, counts: Integers, seed: int) -> bool:
        source = SeededSource(seed)
        made = self.mechanism
        guess = min(max(int(counts.sum()) + int(made.number_law.sample(1, source)[0]), 0), LARGEST_TOTAL)
        sums = self.sums(counts, guess)
        if made.law is not None:
            sums = sums + made.law.sample(len(sums), source)
        drawn = made.draw(counts, None, SeededSource(seed))
        return bool(np.array_equal(drawn, np.concatenate([[guess, made.group_size(guess)], sums])))

    def sums(self, counts: Integers, guess: int) -> Integers:
        """What noise is added to once the number is drawn."""
        made = self.mechanism
        along = counts if made.order is None else counts[made.order]
        sizes = group_sizes(guess, made.group_size(guess))
        return group_sums(along, sizes, missing=guess - int(counts.sum()), pad_low=made.appearing[1])

    def loss(self, base: Integers, edge: tuple[int, int]) -> tuple[Loss, int]:
        """(the loss of one change, the number at which it is reached)."""
        neighbours = pair(base, edge)
        records = [int(neighbours.before.sum()), int(neighbours.after.sum())]
        number = self.mechanism.number_law.rate * abs(records[0] - records[1])
        rate = self.mechanism.law.rate if self.mechanism.law is not None else Fraction(0)
        low, high = min(records), max(records)
        worst: tuple[Loss, int] = (number, low)
        for guess in sorted({*range(4), *range(max(0, low - GUESSES), high + GUESSES + 1)}):
            d = self.sums(neighbours.after, guess) - self.sums(neighbours.before, guess)
            moved = int(np.abs(d).sum())
            if moved and self.mechanism.law is None:
                return math.inf, guess
            worst = max(worst, (number + rate * moved, guess))
        return worst
