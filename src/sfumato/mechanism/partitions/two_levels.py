"""Blocks and their parts, both with noise: put together by least squares, and what is known of sums of parts.

Nothing here sees private data. Given the parts, which follow from the first level, both levels are unbiased and their
noise is independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.linear import Identity
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.partitions.grid_parts import GridParts
from sfumato.mechanism.runs import Runs
from sfumato.noise import DiscreteLaplace

MOST_STEPS, ENOUGH = 200, 1e-9


def together(grid: GridParts, coarse: NoiseModel, noise: DiscreteLaplace, above: Floats, below: Floats) -> Floats:
    """The numbers of all parts by least squares, from the estimates of blocks and from those of parts.

    With the covariance C of the blocks' noise and V = the parts' variance times their number, the blocks are
    `y = above + C·z`, `(C + V)·z = sums of parts - above`, and a block's correction is shared out among its parts.
    """
    sums = grid.by_block(below)
    z = _solved(coarse, np.asarray(grid.each * noise.variance, dtype=np.float64), sums - above)
    missing = above + _covered(coarse, z) - sums
    return np.asarray(below + (missing / grid.each)[grid.block_of])


def _covered(coarse: NoiseModel, q: Floats) -> Floats:
    """C·q."""
    found = np.zeros(len(q))
    for block, felt in zip(coarse.blocks, coarse.coefficients(q[None]), strict=True):
        found += block.noise.variance * np.asarray(block.estimator.forward(felt[0]), dtype=np.float64)
    return found


def _solved(coarse: NoiseModel, spread: Floats, right: Floats) -> Floats:
    """(C + V)⁻¹·b by conjugate gradients, in the units of V, in which nothing is below one.

    Wherever they stop the result is unbiased: z is then some other linear function of what was measured.
    """
    scale = 1 / np.sqrt(spread)
    x, rest = np.zeros(len(right)), scale * right
    step, size = rest.copy(), _dot(rest, rest)
    enough = ENOUGH**2 * size
    for _ in range(MOST_STEPS):
        if size <= enough:
            break
        image = step + scale * _covered(coarse, scale * step)
        far = size / _dot(step, image)
        x, rest = x + far * step, rest - far * image
        size, before = _dot(rest, rest), size
        step = rest + (size / before) * step
    return scale * x


def _dot(x: Floats, y: Floats) -> float:
    """Their product, without threads that wait for each other longer than the sum takes."""
    return float((x * y).sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class NestedNoise(NoiseModel):
    """The noise in the blocks, and behind them in the parts."""

    coarse: NoiseModel

    def coefficients(self, q: Floats) -> Iterator[Floats]:
        """First what the noise of the blocks counts, then that of the parts."""
        blocks = math.prod(self.coarse.shape)
        yield from self.coarse.coefficients(q[:, :blocks])
        yield q[:, blocks:]


@dataclass(frozen=True, kw_only=True, eq=False)
class NestedRuns(Runs):
    """Parts that bracket ranges: `values` are those of the blocks, and behind them those of the parts."""

    grid: GridParts

    def queries(self, chosen: Floats, held: Floats) -> Floats:
        """Blocks that a range holds are asked as blocks, all others by their parts.

        Which blocks it holds does not follow from how they were cut, and so not from their noise. Of others the noise
        in a block's own number is not independent of how many parts there are: a block that seems empty has one.
        """
        whole = self.grid.by_block(held) == self.grid.each
        return np.concatenate([whole.astype(np.float64), chosen * ~whole[:, self.grid.block_of]], axis=1)


def nested_runs(
    grid: GridParts, coarse: NoiseModel, noise: DiscreteLaplace, above: Floats, below: Integers
) -> NestedRuns:
    """The boxes of all parts, and what is known of them."""
    low, high = grid.boxes
    blocks = (*coarse.blocks, Block(Identity(len(grid)), noise))
    model = NestedNoise(shape=(len(above) + len(grid),), blocks=blocks, coarse=coarse)
    return NestedRuns(low=low, high=high, values=np.concatenate([above, below]), model=model, grid=grid)
