"""Intervals for figures that are shown because they are large enough, given that they are shown.

**What is promised.** Let a figure y = t + N be shown if y ≥ τ. The plain interval around y holds t as often as it says
over all draws of the noise, but where t is small it is shown only with noise that is large, and hardly ever holds t
then. The interval here is the set of all t at which y is not among the rarest values of the law *given that it is
shown*: P[Y ≥ y | Y ≥ τ] and P[Y ≤ y | Y ≥ τ] are both more than half of what may be missed. So for every t it misses at
most as often as is said among the cases in which there is something to see; for a t that has a chance below one in a
thousand million of being shown, that is not computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.figures.tails import Tail

# A truth that is shown less often is not looked at.
SELDOM = 1e-9
# Truths and figures are looked at one by one up to so many; beyond, in stretches of this share of a deviation.
_MANY = 2048
_STRETCH = 1 / 32


@dataclass(frozen=True, eq=False)
class Selected:
    """The law of a number of records under a threshold."""

    tail: Tail
    threshold: float
    confidence: float

    def intervals(self, values: Floats) -> tuple[Floats, Floats]:
        """The ends for figures that are shown."""
        if self.tail.deviation == 0:
            return values, values
        # Far above the threshold an interval is that of a smaller figure, moved.
        beyond = np.floor(np.maximum(values - self._far, 0.0))
        low, high = self._within(values - beyond)
        return low + beyond, high + beyond

    @property
    def _rare(self) -> float:
        return self._quantile(SELDOM)

    @property
    def _far(self) -> float:
        return max(self.threshold, 0.0) + 2 * self._rare + 1

    def _quantile(self, chance: float) -> float:
        """So much noise, or more, has at most this chance."""
        low, high = 0.0, 70 * self.tail.deviation + 65 * self.tail.largest
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.tail.most(np.array(middle)) > chance else (low, middle)
        return high

    def _within(self, values: Floats) -> tuple[Floats, Floats]:
        figures, which = np.unique(values, return_inverse=True)
        if len(figures) <= _MANY:
            low, high = self._sets(figures)
            return low[which.ravel()], high[which.ravel()]
        grid = self.tail.deviation / 64
        below = np.floor((values - self.threshold) / grid)
        places, which = np.unique(np.concatenate([below, below + 1]), return_inverse=True)
        low, high = self._sets(self.threshold + grid * places)
        first, second = np.split(which.ravel(), 2)
        return low[first], high[second]

    def _sets(self, figures: Floats) -> tuple[Floats, Floats]:
        """The interval around all truths that agree with each of some figures."""
        start, stop = self._truths(figures)
        lowest = start[0]
        missed = (1 - self.confidence) / 2 * (1 - 1e-6)
        low, high = np.empty(len(figures)), np.empty(len(figures))
        shown = self._shown(start, stop)
        step = max(1, (1 << 20) // len(start))
        for at in range(0, len(figures), step):
            y = figures[at : at + step, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                above = self.tail.most(y - stop) / shown[0]
                below = 1 - self.tail.least_beyond(y - start) / shown[1]
            agree: NDArray[np.bool_] = ~(above <= missed) & ~(below <= missed)
            some = agree.any(axis=1)
            first, last = agree.argmax(axis=1), len(start) - 1 - agree[:, ::-1].argmax(axis=1)
            low[at : at + step] = np.where(some, start[first], lowest)
            high[at : at + step] = np.where(some, stop[last], np.maximum(y[:, 0], lowest))
        # Below the truths that were looked at the figure has the same law as at the lowest.
        return np.where(low <= lowest, 0.0, low), high

    def _truths(self, figures: Floats) -> tuple[Floats, Floats]:
        """Whole numbers, or stretches of them, from the first that is shown now and then to beyond the last figure."""
        most = np.floor(figures.max() + self._quantile((1 - self.confidence) / 8)) + 1
        first = max(np.floor(self.threshold - self._rare), 0.0)
        wide = np.floor(_STRETCH * self.tail.deviation) if most - first > _MANY else 0.0
        start = np.arange(first, most + 1, wide + 1)
        return start, start + wide

    def _shown(self, start: Floats, stop: Floats) -> tuple[Floats, Floats]:
        """(at least, at most) the chance that a figure is shown, for truths in each stretch."""
        return self.tail.least(self.threshold - start), self.tail.most(self.threshold - stop)
