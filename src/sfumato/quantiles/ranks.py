"""An order statistic of points whose number is hidden too: cells are likelier the better they split the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.noise import Source
from sfumato.noise.integers import random_below
from sfumato.quantiles.order import Surroundings, rank_of, surroundings
from sfumato.quantiles.scored import ByScore, Ladder


def steepest(share: Fraction) -> int:
    """D = max(a, b - a) for q = a/b."""
    return max(share.numerator, share.denominator - share.numerator)


def moving(share: Fraction) -> Fraction:
    """What the move of a point costs, in appearances: 2 for the median, less for other quantiles."""
    return Fraction(share.denominator, steepest(share))


@dataclass(frozen=True, eq=False)
class RankFlank:
    """One side of the order statistic: b points of the score for every point passed, from `first` on.

    `distances` are those of the points there (rising, the first is 0: the order statistic itself).
    """

    distances: NDArray[np.int64]
    step: int
    first: int
    room: int

    def score(self, distance: int) -> int:
        """How far the split at this cell is off the share that is asked for."""
        passed = int(np.searchsorted(self.distances, distance))
        return self.first + self.step * (passed - 1) if passed else 0

    def farthest(self, score: int, start: int = 0) -> int:
        """The largest distance of at most that score."""
        del start
        passed = (score - self.first) // self.step + 1
        return int(self.distances[passed]) if passed < len(self.distances) else self.room


@dataclass(frozen=True, kw_only=True)
class RankSplit(ByScore):
    """P[y] ∝ exp(-ε·s(y)/(2D)), s(y) how far the points below and above y are off the shares q and 1 - q.

    **Promise.** ε-private when one point appears or vanishes, whatever their number, none included; and ε·`moving`(q)
    when one point moves anywhere. The number of points is not published.

    **Proof.** Let q = a/b in lowest terms, L points lie below y, E on it and G above it. y is a q-quantile where
    (b - a)·L ≤ a·(E + G) and (b - a)·(L + E) ≥ a·G; s(y) is the distance of 0 from the interval between
    (b - a)·L - a·(E + G) and (b - a)·(L + E) - a·G. One point more shifts either end by b - a or by -a, so s by at most
    D = max(a, b - a). The exponential mechanism with rate ε/(2D) is ε-private then: each weight and their sum change by
    a factor of at most exp(ε/2). A point that moves shifts either end by at most b, which costs ε·b/D, never more than
    the 2·ε of going and coming. min(s, cap) changes by no more than s. ∎

    For the median it is the utility -|#below - #above|. At 2·ε under replace-one its weights fall from rank to rank as
    those of "inverse" do: hiding the number of points costs next to nothing.

    **Error.** It depends on the data and is not stated. Of no points every cell is as good, and is drawn as often.
    """

    epsilon: Fraction
    share: Fraction
    cells: int

    name = "ranks"
    slack = Fraction(0)
    noise = None
    hides_number = True

    @property
    def theta(self) -> int:
        """A point may move anywhere."""
        return self.cells - 1

    @property
    def steepest(self) -> int:
        """D: what one point more changes of the score at most."""
        return steepest(self.share)

    @property
    def rate(self) -> Fraction:
        """The price of one point of the score."""
        return self.epsilon / (2 * self.steepest)

    def ladder(self, near: Surroundings, rank: int, count: int) -> Ladder:
        """The level sets of the score around the point of a rank, among so many. Private."""
        a, b = self.share.numerator, self.share.denominator
        beyond = b * rank - a * count  # 0 ≤ beyond < b: by how much the point itself is more than the share
        above = RankFlank(near.above, b, beyond, self.cells - 1 - near.value)
        below = RankFlank(near.below, b, b - beyond, near.value)
        return self.rungs(above, below)

    def run(self, located: NDArray[np.int64], rank: int, source: Source) -> int:
        """A cell drawn by its score; the rank follows from the share."""
        del rank
        if len(located) == 0:
            return random_below(self.cells, source)
        middle, ladder = self._around(located)
        return middle + self.draw(ladder, source)

    def law(self, located: NDArray[np.int64], rank: int) -> NDArray[np.float64]:
        """What `run` does with its random numbers, counted out."""
        del rank
        if len(located) == 0:
            return np.full(self.cells, 1 / self.cells)
        return self.law_around(*self._around(located))

    def _around(self, located: NDArray[np.int64]) -> tuple[int, Ladder]:
        """The order statistic and the level sets around it, from as many points as lie below the cap of the score."""
        rank = rank_of(self.share, len(located))
        near = surroundings(located, rank, self.cap // self.share.denominator + 2)
        return near.value, self.ladder(near, rank, len(located))
