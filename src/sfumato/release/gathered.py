"""Some cells of an axis taken together: two modes of four, the hours of a night.

Cells that do not follow one another are no range. The axis is seen with two cells in their place, "these" and "the
others": every noise reaches them as it reaches the cells, so that the law of a sum is that of a range again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.linear import Kronecker, Operator
from sfumato.linear.estimator import range_weights
from sfumato.mechanism import Block, NoiseModel

# Coefficients of different size up to which a law is listed.
_MOST_TERMS = 32
# Noises up to which the largest coefficient is looked for; beyond, it is bounded.
_FEW = 4096


class Gathered(Operator):
    """What an estimator says of the cells of one axis taken together, and of the others: two rows in their place."""

    def __init__(self, estimator: Operator, shape: Sequence[int], axis: int, cells: Integers) -> None:
        self._estimator, self._axis, self._cells = estimator, axis, cells
        self._shape = tuple(shape)
        self._other = np.ones(self._shape[axis], dtype=np.int64)
        self._other[cells] = 0
        self.rows, self.cols = math.prod(self._shape) // self._shape[axis] * 2, estimator.cols

    def forward(self, x: NDArray[np.number]) -> NDArray[np.number]:
        """What noises do to both sums."""
        lead = np.shape(x)[:-1]
        moved = self._estimator.forward(x).reshape(*lead, *self._shape)
        return gathered(moved, len(lead) + self._axis, self._cells).reshape(*lead, -1)

    def transpose(self, y: NDArray[np.number]) -> NDArray[np.number]:
        """Every cell counts as its sum does."""
        lead = np.shape(y)[:-1]
        shape = [2 if i == self._axis else n for i, n in enumerate(self._shape)]
        spread = np.take(np.reshape(y, (*lead, *shape)), self._other, axis=len(lead) + self._axis)
        return self._estimator.transpose(spread.reshape(*lead, -1))

    @property
    def largest_coefficient(self) -> float:
        """Looked for, or bounded by as many times that of a range as there are ranges in the cells."""
        if self.cols <= _FEW and len(self._shape) == 1:
            return super().largest_coefficient
        pieces = 1 + int(np.count_nonzero(np.diff(self._other)))
        return pieces * self._estimator.largest_coefficient

    @property
    def keeps_integers(self) -> bool:
        """A sum of whole numbers is one."""
        return self._estimator.keeps_integers

    @cached_property
    def fourth_is_exact(self) -> bool:
        """Where sums are written out: what an estimator knows of groups has the fourth power as a guess."""
        none = np.zeros((0, len(self._shape)))
        return self._estimator.grouped_moments(self._axis, self._other, none, none) is None

    def box_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """What the estimator knows of such sums, or written out."""
        known = self._estimator.grouped_moments(self._axis, self._other, low, high)
        return super().box_moments(shape, low, high) if known is None else known

    def range_terms(self, low: Floats, high: Floats) -> tuple[Floats, Floats] | None:
        """Listed where few sizes occur. All ranges are mostly one and the same: the cells that were taken together."""
        if not len(low) or (low != low[0]).any() or (high != high[0]).any():
            return None
        felt = self.transpose(range_weights(2, low[:1], high[:1]))[0]
        sizes, often = np.unique(felt[felt != 0], return_counts=True)
        if len(sizes) > _MOST_TERMS:
            return None
        shape = (len(low), max(len(sizes), 1))
        listed = (sizes, often.astype(np.float64)) if len(sizes) else (np.zeros(1), np.ones(1))
        return np.broadcast_to(listed[0], shape), np.broadcast_to(listed[1], shape)

    def range_moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Computed once for ranges that are the same."""
        if len(low) > 1 and (low == low[0]).all() and (high == high[0]).all():
            second, fourth = super().range_moments(low[:1], high[:1])
            return np.repeat(second, len(low)), np.repeat(fourth, len(low))
        return super().range_moments(low, high)


def gathered(values: NDArray[np.number], axis: int, cells: Integers) -> NDArray[np.number]:
    """An array with two cells along an axis: the sum over these cells, and that over the others."""
    inside = np.zeros(values.shape[axis], dtype=bool)
    inside[cells] = True
    both = [np.compress(chosen, values, axis=axis).sum(axis=axis) for chosen in (inside, ~inside)]
    return np.stack(both, axis=axis)


def gathered_model(model: NoiseModel, axis: int, cells: Integers) -> NoiseModel:
    """The same noise, seen so. Where a total is exact it stays so: what moves it is the sum over both cells."""
    blocks, of = [], np.ones(model.shape[axis], dtype=np.int64)
    of[cells] = 0
    for block in model.blocks:
        parts, known = block.estimator.factors, block.estimator.grouped(axis, of) if of.any() else None
        if known is not None:
            blocks.append(Block(known, block.noise))
        elif len(parts) == len(model.shape) > 1:
            own = [Gathered(part, (part.rows,), 0, cells) if i == axis else part for i, part in enumerate(parts)]
            blocks.append(Block(Kronecker(own), block.noise))
        else:
            blocks.append(Block(Gathered(block.estimator, model.shape, axis, cells), block.noise))
    shape = tuple(2 if i == axis else n for i, n in enumerate(model.shape))
    return replace(model, shape=shape, blocks=tuple(blocks))
