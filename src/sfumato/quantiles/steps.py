"""How many steps of length θ it takes until a cell holds the order statistic: the score of the inverse mechanism.

**Lemma (the score).** Let y lie d cells above the point x of rank r, and let a_0 = 0 ≤ a_1 ≤ … be the distances from x
to the points of rank r, r + 1, … . Then s(d) = Σ_{a_i < d} ⌈(d - a_i)/θ⌉ is the least number of steps, each moving one
point by at most θ cells inside the lattice, after which y is the point of rank r. *Proof.* Fewer than r points may lie
below y, so of the points below y all but r - 1 must arrive at y or beyond, which takes each at least ⌈(distance)/θ⌉
steps; the sum is least for the nearest ones, those of rank r and more. Moving exactly these to y does it. Below x the
same holds mirrored. ∎

**Lemma (its level sets).** s(d) = #{(i, j) : a_i + j·θ < d, j ≥ 0}. It rises with d, and the farthest distance of score
at most g is the g-th smallest number (from 0) of the multiset {a_i + j·θ}, or the border: at most a_g and at most g·θ.
Points beyond a_g do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Side:
    """One side of the order statistic: distances of the points there (rising, the first is 0), cells to the border."""

    distances: NDArray[np.int64]
    theta: int
    room: int

    def score(self, distance: int) -> int:
        """s(distance). Counts by points or by steps, whichever are fewer."""
        nearer = self.distances[: int(np.searchsorted(self.distances, distance))]
        steps = -(-distance // self.theta)
        if len(nearer) <= steps:
            return int((-((nearer - distance) // self.theta)).sum())
        return int(np.searchsorted(nearer, distance - self.theta * np.arange(steps, dtype=np.int64)).sum())

    def farthest(self, score: int, start: int = 0) -> int:
        """The largest distance of at most that score; `start` is known to be no farther."""
        low, high = start, min(score * self.theta, self.room)
        if score < len(self.distances):
            high = min(high, int(self.distances[score]))
        if self.score(high) <= score:  # always so when all points nearer lie within one step
            return high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.score(middle) <= score else (low, middle)
        return low
