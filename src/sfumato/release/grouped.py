"""The cells of an axis in the groups of a level: counties in the place of tracts, each with the law of its own noise.

Every noise reaches a group as it reaches the group's cells. Seen so the axis has one cell a group, and an answer at a
level is an answer on single cells again.
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
from sfumato.linear.groups import runs_of, summed
from sfumato.mechanism import Block, NoiseModel


class Grouped(Operator):
    """What an estimator says of the groups of one axis: a row for each in the place of those of its cells."""

    def __init__(self, estimator: Operator, shape: Sequence[int], axis: int, of: Integers) -> None:
        self._estimator, self._axis, self._of = estimator, axis, of
        self._shape = tuple(shape)
        self._seen = tuple(int(of.max()) + 1 if i == axis else n for i, n in enumerate(self._shape))
        self.rows, self.cols = math.prod(self._seen), estimator.cols

    def forward(self, x: NDArray[np.number]) -> NDArray[np.number]:
        """What noises do to the sums."""
        lead = np.shape(x)[:-1]
        moved = self._estimator.forward(x).reshape(*lead, *self._shape)
        return grouped(moved, len(lead) + self._axis, self._of).reshape(*lead, -1)

    def transpose(self, y: NDArray[np.number]) -> NDArray[np.number]:
        """Every cell counts as its group does."""
        lead = np.shape(y)[:-1]
        spread = np.take(np.reshape(y, (*lead, *self._seen)), self._of, axis=len(lead) + self._axis)
        return self._estimator.transpose(spread.reshape(*lead, -1))

    @property
    def largest_coefficient(self) -> float:
        """That of any query where it is known, else as many times that of a range as a group has runs of cells."""
        known = self._estimator.largest_of_any
        if known is not None:
            return known
        start, _ = runs_of(self._of)
        return float(np.bincount(self._of[start]).max()) * self._estimator.largest_coefficient

    @property
    def keeps_integers(self) -> bool:
        """A sum of whole numbers is one."""
        return self._estimator.keeps_integers

    @cached_property
    def _terms(self) -> tuple[NDArray[np.number], NDArray[np.number]] | None:
        return self._estimator.group_terms(self._of) if len(self._shape) == 1 else None

    @property
    def fourth_is_exact(self) -> bool:
        """Where the noises that a group feels are listed."""
        return self._terms is not None

    def range_terms(self, low: Floats, high: Floats) -> tuple[Floats, Floats] | None:
        """Of single groups, where the estimator lists them."""
        if self._terms is None or not self._single(low, high).all():
            return None
        coefficients, counts = (part[low.astype(np.int64)].astype(np.float64) for part in self._terms)
        return coefficients, counts

    def box_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """What the estimator knows of such sums, or written out."""
        known = self._estimator.grouped_moments(self._axis, self._of, low, high)
        return super().box_moments(shape, low, high) if known is None else known

    def range_moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Of single groups from what the estimator knows of them; the fourth power is a guess, as that of hierarchies
        is, where the noises are not listed.
        """
        if self._terms is not None or len(self._shape) > 1 or not self._single(low, high).all():
            return super().range_moments(low, high)
        groups, which = np.unique(low.astype(np.int64), return_inverse=True)
        second = self._estimator.group_variances(self._of, groups)[which.reshape(-1)]
        return second, second**2 / 7

    def _single(self, low: Floats, high: Floats) -> NDArray[np.bool_]:
        return np.asarray((low == np.floor(low)) & (high == low + 1))


def grouped(values: NDArray[np.number], axis: int, of: Integers) -> NDArray[np.number]:
    """An array with one cell a group along an axis."""
    return np.moveaxis(summed(np.moveaxis(values, axis, -1), of), -1, axis)


def grouped_model(model: NoiseModel, axis: int, of: Integers) -> NoiseModel:
    """The same noise, seen so. Where a total is exact it stays so: groups hold every cell once."""
    blocks = []
    for block in model.blocks:
        parts, known = block.estimator.factors, block.estimator.grouped(axis, of)
        if known is not None:
            blocks.append(Block(known, block.noise))
        elif len(parts) == len(model.shape):
            own = [Grouped(part, (part.rows,), 0, of) if i == axis else part for i, part in enumerate(parts)]
            blocks.append(Block(Kronecker(own), block.noise))
        else:
            blocks.append(Block(Grouped(block.estimator, model.shape, axis, of), block.noise))
    shape = tuple(int(of.max()) + 1 if i == axis else n for i, n in enumerate(model.shape))
    return replace(model, shape=shape, blocks=tuple(blocks))
