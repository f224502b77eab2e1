"""The inverse-sensitivity mechanism: cells are likelier the fewer steps would make them the answer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.noise import Source
from sfumato.quantiles.order import Surroundings, surroundings
from sfumato.quantiles.scored import ByScore, Ladder
from sfumato.quantiles.steps import Side


@dataclass(frozen=True, kw_only=True)
class InverseSensitivity(ByScore):
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
    hides_number = False

    @property
    def rate(self) -> Fraction:
        """The price of one step: ε/2."""
        return self.epsilon / 2

    def ladder(self, near: Surroundings) -> Ladder:
        """The level sets of the score. Private."""
        above = Side(near.above, self.theta, self.cells - 1 - near.value)
        below = Side(near.below, self.theta, near.value)
        return self.rungs(above, below)

    def run(self, located: NDArray[np.int64], rank: int, source: Source) -> int:
        """A cell drawn by its score."""
        near = surroundings(located, rank, self.cap)
        return near.value + self.draw(self.ladder(near), source)

    def law(self, located: NDArray[np.int64], rank: int) -> NDArray[np.float64]:
        """What `draw` does with its random numbers, counted out: weights in integers of 256 bits."""
        near = surroundings(located, rank, self.cap)
        return self.law_around(near.value, self.ladder(near))
