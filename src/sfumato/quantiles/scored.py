"""Cells of a lattice drawn by the exponential of a score that rises with the distance from one of them.

The cells of one block of ⌊1/rate⌋ scores make two intervals, one on either side. A block is chosen by its size times
the weight of its lowest score, a cell uniformly inside, and kept with the probability that its own score still lacks,
at least 1/e; otherwise all is drawn again. That is the exact law, P[y] ∝ exp(-rate·min(s(y), cap)), in about a hundred
blocks whatever the rate is. How often is drawn again shows in the running time, which therefore depends a little on the
data, as that of sorting does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.noise import Source
from sfumato.noise.exponential import decay, decays, happens
from sfumato.noise.integers import random_below

_LN2 = Fraction(6932, 10000)  # an upper bound
_NEGLIGIBLE = 64  # the score is capped where all cells beyond weigh less than 2⁻⁶⁴ of those of score 0


class Flank(Protocol):
    """One side of the middle: how the score rises with the distance from it."""

    @property
    def room(self) -> int:
        """Cells to the border."""

    def score(self, distance: int) -> int:
        """The score of a cell so far away."""

    def farthest(self, score: int, start: int = 0) -> int:
        """The largest distance of at most that score; `start` is known to be no farther."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """The cells by blocks of scores: as many scores in one as in another, and in the last one all the rest.

    `ends[b]` is the farthest distance (above, below) that belongs to block b or an earlier one.
    """

    sides: tuple[Flank, Flank]
    ends: tuple[tuple[int, int], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells in each block; the middle cell, of score 0, counts in the first."""
        first = 1 + sum(self.ends[0])
        return (first, *(sum(ends) - sum(before) for before, ends in pairwise(self.ends)))

    def cell(self, block: int, index: int) -> tuple[int, int]:
        """(which side, distance) of one of the cells of a block, counted upwards first, then downwards."""
        before = self.ends[block - 1] if block else (0, 0)
        if block == 0:
            index -= 1  # the middle comes first, as distance 0 above
        above = self.ends[block][0] - before[0]
        return (0, before[0] + 1 + index) if index < above else (1, before[1] + 1 + index - above)


class ByScore(ABC):
    """What draws a cell with P[y] ∝ exp(-rate·min(s(y), cap)), once it is known how the score rises on either side."""

    cells: int

    @property
    @abstractmethod
    def rate(self) -> Fraction:
        """The price of one point of the score."""

    @property
    def span(self) -> int:
        """How many scores make a block: as many as keep the chance of a second draw below 1 - 1/e."""
        return max(1, int(1 / self.rate))

    @property
    def blocks(self) -> int:
        """How many blocks lie below the cap: their number depends on ε and the lattice alone."""
        digits = (_NEGLIGIBLE + self.cells.bit_length()) * _LN2
        return max(1, -int(-digits // (self.rate * self.span)))

    @property
    def cap(self) -> int:
        """Higher scores count as this one."""
        return self.span * self.blocks

    def rungs(self, above: Flank, below: Flank) -> Ladder:
        """The level sets of the score. Private."""
        ends, up, down = [], 0, 0
        for block in range(1, self.blocks + 1):
            highest = block * self.span - 1
            up = up if up == above.room else above.farthest(highest, up)
            down = down if down == below.room else below.farthest(highest, down)
            ends.append((up, down))
        return Ladder((above, below), (*ends, (above.room, below.room)))

    def draw(self, ladder: Ladder, source: Source) -> int:
        """How far from the middle the published cell lies: above it, or (negative) below."""
        weights = decays(self.rate * self.span, self.blocks + 1)
        totals = [size * weight for size, weight in zip(ladder.sizes, weights, strict=True)]
        everything = sum(totals)
        while True:
            place, block = random_below(everything, source), 0
            while place >= totals[block]:
                place, block = place - totals[block], block + 1
            side, distance = ladder.cell(block, place // weights[block])
            score = min(ladder.sides[side].score(distance), self.cap)
            if happens(self.rate * (score - block * self.span), source):
                return -distance if side else distance

    def law_around(self, middle: int, ladder: Ladder) -> NDArray[np.float64]:
        """What `draw` does with its random numbers, counted out: weights in integers of 256 bits."""
        weights = decays(self.rate * self.span, self.blocks + 1)
        found = [0] * self.cells
        for block, size in enumerate(ladder.sizes):
            for index in range(size):
                side, distance = ladder.cell(block, index)
                score = min(ladder.sides[side].score(distance), self.cap)
                kept = decay(self.rate * (score - block * self.span))
                found[middle - distance if side else middle + distance] += weights[block] * kept
        total = sum(found)
        return np.array([float(Fraction(weight, total)) for weight in found])
