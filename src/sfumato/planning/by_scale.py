"""What a street corner, a district and the city will have: the error of single cells, of blocks and of the whole.

The mean over a workload says little about either end of it: all ranges are nearly all huge, and a plan that is made
for them may give single cells away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sfumato.domain import Domain
from sfumato.mechanism import Mechanism
from sfumato.mechanism.model import NoiseModel
from sfumato.workload import TOTAL, AxisQueries
from sfumato.workload.scales import SCALE, blocks_of, sides

SOME_BLOCKS = 1021  # a prime: no strategy has its own blocks in step with those


@dataclass(frozen=True)
class ScaleError:
    """The mean squared error of the blocks of one size of a factor; all other factors are summed over."""

    factor: str
    blocks: tuple[int, ...]
    error: float
    whole: bool = False

    @property
    def typical_error(self) -> float:
        """The half-width within which about 95 % of the blocks will lie."""
        return 1.96 * math.sqrt(self.error)

    @property
    def size(self) -> str:
        """The blocks in words."""
        if self.whole:
            return "the whole"
        if max(self.blocks) == 1:
            return "a cell"
        return " × ".join(map(str, self.blocks)) + (" cells" if len(self.blocks) == 1 else "")


def by_scale(mechanism: Mechanism) -> tuple[ScaleError, ...]:
    """For every factor whose cells lie in an order the error of cells, of blocks of side 4, 16, 64, … and of the whole.

    Exact, from the law of the noise; where no closed form says the mean over all blocks of a side, it is taken over
    1,021 of them along an axis, spread evenly. Empty where the error depends on the data.
    """
    if mechanism.biased or mechanism.model is None:
        return ()
    return tuple(_scales(mechanism.model, mechanism.policy.domain))


def _scales(model: NoiseModel, domain: Domain) -> Iterator[ScaleError]:
    for factor in domain.factors:
        shape = tuple(domain.shape[i] for i in factor.positions)
        if math.prod(shape) == 1 or not all(domain.axes[i].ordered for i in factor.positions):
            continue
        for side in sides(shape, SCALE):
            kinds: list[AxisQueries] = [TOTAL] * domain.ndim
            for position, kind in zip(factor.positions, blocks_of(side, shape, SOME_BLOCKS), strict=True):
                kinds[position] = kind
            blocks = tuple(min(side, n) for n in shape)
            error = model.error_of(kinds)
            if math.isfinite(error):  # tables may tell nothing of a factor
                yield ScaleError(factor.name, blocks, error, whole=blocks == shape)


def in_words(found: tuple[ScaleError, ...], domain: Domain) -> str:
    """One line: every scale of every factor."""
    lines = []
    for factor in dict.fromkeys(scale.factor for scale in found):
        sizes = ", ".join(f"{s.size} {_width(s.typical_error)}" for s in found if s.factor == factor)
        lines.append(f"{factor}, all else summed over: {sizes}" if len(domain.factors) > 1 else sizes)
    return "; ".join(lines)


def _width(half: float) -> str:
    return "exact" if half == 0 else f"±{half:,.0f}" if half >= 1000 else f"±{half:.3g}"
