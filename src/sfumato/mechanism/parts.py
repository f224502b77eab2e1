"""What a mechanism that smooths really knows: the sums over the bins of a coarse grid, without bias.

Such a mechanism spreads the records of a bin over its cells, which is a guess. The bins themselves are a release on a
coarser domain, with a law of noise of its own; a range is bracketed by those that it holds and those that it touches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.linear.boxes import SummedArea
from sfumato.mechanism.model import NoiseModel


@dataclass(frozen=True, eq=False)
class Parts:
    """The bins between the cuts along every axis, what is estimated for each, and the noise in that; `model.shape` is
    the number of bins along each axis.
    """

    cuts: tuple[Integers, ...]
    values: Floats | Integers
    model: NoiseModel

    @cached_property
    def table(self) -> SummedArea:
        """Sums over boxes of bins."""
        return SummedArea(self.values)

    def inside(self, low: Integers, high: Integers) -> tuple[Integers, Integers]:
        """The boxes of bins that lie wholly in boxes of cells."""
        first = [np.searchsorted(cuts, low[:, i], side="left") for i, cuts in enumerate(self.cuts)]
        after = [np.searchsorted(cuts, high[:, i], side="right") - 1 for i, cuts in enumerate(self.cuts)]
        start = np.stack(first, axis=-1)
        return start, np.maximum(start, np.stack(after, axis=-1))

    def touched(self, low: Integers, high: Integers) -> tuple[Integers, Integers]:
        """The boxes of bins that boxes of cells touch; none where a box is empty."""
        first = [np.searchsorted(cuts, low[:, i], side="right") - 1 for i, cuts in enumerate(self.cuts)]
        after = [np.searchsorted(cuts, high[:, i], side="left") for i, cuts in enumerate(self.cuts)]
        start, empty = np.stack(first, axis=-1), (high <= low).any(axis=-1, keepdims=True)
        return start, np.where(empty, start, np.stack(after, axis=-1))

    def cells(self, start: Integers, stop: Integers) -> Floats:
        """How many cells boxes of bins have."""
        sides = [cuts[stop[:, i]] - cuts[start[:, i]] for i, cuts in enumerate(self.cuts)]
        return np.asarray(np.prod(np.stack(sides, axis=-1).astype(np.float64), axis=-1))
