"""The inverse-sensitivity mechanism: cells are likelier the fewer steps would make them the answer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.noise import Source
from sfumato.noise.exponential import decay, decays, happens
from sfumato.noise.integers import random_below
from sfumato.quantiles.order import Surroundings, surroundings
from sfumato.quantiles.steps import Side

_LN2 = Fraction(6932, 10000)  # an upper bound
_NEGLIGIBLE = 64  # the score is capped where all cells beyond weigh less than 2⁻⁶⁴ of the order statistic's own


@dataclass(frozen=True, eq=False)
class Ladder:
    """The cells by blocks of scores: as many scores in one as in another, and in the last one all the rest.

    `ends[b]` is the farthest distance (above, below) that belongs to block b or an earlier one.
    """

    sides: tuple[Side, Side]
    ends: tuple[tuple[int, int], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells in each block; the order statistic's own cell, of score 0, counts in the first."""
        first = 1 + sum(self.ends[0])
        return (first, *(sum(ends) - sum(before) for before, ends in pairwise(self.ends)))

    def cell(self, block: int, index: int) -> tuple[int, int]:
        """(which side, distance) of one of the cells of a block, counted upwards first, then downwards."""
        before = self.ends[block - 1] if block else (0, 0)
        if block == 0:
            index -= 1  # the order statistic itself comes first, as distance 0 above
        above = self.ends[block][0] - before[0]
        return (0, before[0] + 1 + index) if index < above else (1, before[1] + 1 + index - above)


@dataclass(frozen=True, kw_only=True)
class InverseSensitivity:
    """P[y] ∝ exp(-ε·s(y)/2), s(y) the least number of steps after which y is the order statistic.

    **Promise.** ε-private for moves of one point by at most θ cells. **Proof.** s(y) is the distance, in the graph
    whose edges are single moves, from the dataset to the set of datasets that have y in that rank: one move changes it
    by at most 1, and min(s, cap) no more. The exponential mechanism with rate ε/2 is ε-private then: each weight and
    their sum change by a factor of at most exp(ε/2). ∎ The half cannot be saved: a move upwards brings the cells above
    nearer and takes the cells below farther, so a weight may fall while the sum grows.

    **How.** The score rises with the distance on either side (`steps`), so the cells of one block of ⌊2/ε⌋ scores make
    two intervals. A block is chosen by its size times the weight of its lowest score, a cell uniformly inside, and kept
    with the probability that its own score still lacks, at least 1/e; otherwise all is drawn again. That is the exact
    law, in about a hundred blocks whatever ε is, and only the points near the rank are looked at. How often is drawn
    again shows in the running time, which therefore depends a little on the data, as that of sorting does.

    **Literature.** McSherry and Talwar 2007; Asi and Duchi, *Instance-optimality in differential privacy via
    approximate inverse sensitivity mechanisms*, 2020. With θ = cells - 1 it is the exponential mechanism on ranks.
    """

    epsilon: Fraction
    theta: int
    cells: int

    name = "inverse"
    slack = Fraction(0)
    noise = None

    @property
    def rate(self) -> Fraction:
        """The price of one step: ε/2."""
        return self.epsilon / 2

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

    def ladder(self, near: Surroundings) -> Ladder:
        """The level sets of the score. Private."""
        above = Side(near.above, self.theta, self.cells - 1 - near.value)
        below = Side(near.below, self.theta, near.value)
        ends, up, down = [], 0, 0
        for block in range(1, self.blocks + 1):
            highest = block * self.span - 1
            up = up if up == above.room else above.farthest(highest, up)
            down = down if down == below.room else below.farthest(highest, down)
            ends.append((up, down))
        return Ladder((above, below), (*ends, (above.room, below.room)))

    def run(self, located: NDArray[np.int64], rank: int, source: Source) -> int:
        """A cell drawn by its score."""
        near = surroundings(located, rank, self.cap)
        return near.value + self.draw(self.ladder(near), source)

    def draw(self, ladder: Ladder, source: Source) -> int:
        """How far from the order statistic the published cell lies: above it, or (negative) below."""
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

    def law(self, located: NDArray[np.int64], rank: int) -> NDArray[np.float64]:
        """What `draw` does with its random numbers, counted out: weights in integers of 256 bits."""
        near = surroundings(located, rank, self.cap)
        ladder = self.ladder(near)
        weights = decays(self.rate * self.span, self.blocks + 1)
        found = [0] * self.cells
        for block, size in enumerate(ladder.sizes):
            for index in range(size):
                side, distance = ladder.cell(block, index)
                score = min(ladder.sides[side].score(distance), self.cap)
                kept = decay(self.rate * (score - block * self.span))
                found[near.value - distance if side else near.value + distance] += weights[block] * kept
        total = sum(found)
        return np.array([float(Fraction(weight, total)) for weight in found])
