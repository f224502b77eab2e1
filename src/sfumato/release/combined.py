"""The cells of a place in a few sums: those inside a polygon, those that it cuts, the others; or each with its share.

A polygon is no box of cells. Seen so the place has one row for every sum in the place of its cells, and every noise
reaches a sum as it reaches the cells, times their weights: an answer for a polygon is one on single cells again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.linear import Identity, Kronecker, Operator
from sfumato.linear.estimator import range_weights
from sfumato.mechanism import Block, NoiseModel

# Coefficients of different size up to which a law is listed.
_MOST_TERMS = 32


@dataclass(frozen=True, eq=False)
class Sums:
    """Weights of the cells of a place, which has these axes: a sparse matrix with a row a sum and a column a cell, in C
    order; and the one row that every cell is in, where they share the cells out.
    """

    axes: tuple[int, ...]
    matrix: Any
    of: Integers | None = None

    @property
    def count(self) -> int:
        """How many."""
        return int(self.matrix.shape[0])

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape with the sums along the first of the axes, and one cell along the others."""
        return tuple(self.count if i == self.axes[0] else 1 if i in self.axes else n for i, n in enumerate(shape))

    def forward(self, values: NDArray[Any], lead: int = 0) -> NDArray[Any]:
        """Sums in the place of cells."""
        moved = np.moveaxis(values, [lead + i for i in self.axes], range(-len(self.axes), 0))
        rest = moved.shape[: -len(self.axes)]
        found = (self.matrix @ moved.reshape(math.prod(rest), -1).T).T
        return self._back(np.asarray(found).reshape(*rest, self.count, *(1,) * (len(self.axes) - 1)), lead)

    def transpose(self, values: NDArray[Any], shape: Sequence[int], lead: int = 0) -> NDArray[Any]:
        """What every cell counts where the sums count so much."""
        moved = np.moveaxis(values, [lead + i for i in self.axes], range(-len(self.axes), 0))
        rest = moved.shape[: -len(self.axes)]
        found = (self.matrix.T @ moved.reshape(math.prod(rest), -1).T).T
        return self._back(np.asarray(found).reshape(*rest, *(shape[i] for i in self.axes)), lead)

    def _back(self, values: NDArray[Any], lead: int) -> NDArray[Any]:
        return np.moveaxis(values, range(-len(self.axes), 0), [lead + i for i in self.axes])


class Combined(Operator):
    """What an estimator says of such sums."""

    def __init__(self, estimator: Operator, shape: Sequence[int], sums: Sums) -> None:
        self._estimator, self._shape, self._sums = estimator, tuple(shape), sums
        self._seen = sums.shape(self._shape)
        self.rows, self.cols = math.prod(self._seen), estimator.cols

    def forward(self, x: NDArray[np.number]) -> NDArray[np.number]:
        """What noises do to the sums."""
        lead = np.shape(x)[:-1]
        moved = self._estimator.forward(x).reshape(*lead, *self._shape)
        return self._sums.forward(moved, len(lead)).reshape(*lead, -1)

    def transpose(self, y: NDArray[np.number]) -> NDArray[np.number]:
        """Every cell counts as its sums do."""
        lead = np.shape(y)[:-1]
        spread = self._sums.transpose(np.reshape(y, (*lead, *self._seen)), self._shape, len(lead))
        return self._estimator.transpose(spread.reshape(*lead, -1))

    @cached_property
    def _alone(self) -> bool:
        """Whether there is nothing but the place."""
        return len(self._sums.axes) == len(self._shape)

    @property
    def largest_coefficient(self) -> float:
        """Looked for in all ranges of sums, of which there are few; or that of any query where it is known; or bounded
        by as many times that of a range as there are runs of cells that weigh the same.
        """
        if self._alone:
            ends = [(low, high) for low in range(self.rows) for high in range(low + 1, self.rows + 1)]
            low, high = np.array(ends, dtype=np.float64).T
            return max(float(np.abs(self._weighed(a, b)).max(initial=0.0)) for a, b in zip(low, high, strict=True))
        known = self._estimator.largest_of_any
        if known is not None:
            return known
        weights = self._sums.matrix.toarray()
        runs = 1 + int((np.diff(weights, axis=1) != 0).any(axis=0).sum())
        return runs * max(1.0, float(np.abs(weights).max(initial=0.0))) * self._estimator.largest_coefficient

    @property
    def keeps_integers(self) -> bool:
        """A sum of whole numbers is one."""
        return self._estimator.keeps_integers and self._sums.of is not None

    def range_terms(self, low: Floats, high: Floats) -> tuple[Floats, Floats] | None:
        """Listed where few sizes occur, for the few ranges of sums that there are."""
        ends, which = np.unique(np.stack([low, high], axis=-1), axis=0, return_inverse=True)
        if not self._alone or len(ends) > _MOST_TERMS:
            return None
        found = []
        for a, b in ends.tolist():
            felt = np.abs(self._weighed(a, b))
            found.append(np.unique(felt[felt != 0], return_counts=True))
        longest = max([1, *(len(sizes) for sizes, _ in found)])
        if longest > _MOST_TERMS:
            return None
        sizes, often = np.zeros((2, len(ends), longest))
        for row, (size, count) in enumerate(found):
            sizes[row, : len(size)], often[row, : len(size)] = size, count
        return sizes[which.reshape(-1)], often[which.reshape(-1)]

    def _weighed(self, low: float, high: float) -> Floats:
        weights = range_weights(self.rows, np.array([low]), np.array([high]))
        return np.asarray(self.transpose(weights)[0], dtype=np.float64)

    @cached_property
    def fourth_is_exact(self) -> bool:
        """Where sums are written out: what an estimator knows of groups has the fourth power as a guess."""
        none = np.zeros((0, len(self._shape)))
        return self._known_of_groups(none, none) is None

    def _known_of_groups(self, low: Floats, high: Floats) -> tuple[Floats, Floats] | None:
        if self._sums.of is None or len(self._sums.axes) != 1:
            return None
        return self._estimator.grouped_moments(self._sums.axes[0], self._sums.of, low, high)

    def box_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """What the estimator knows of cells in groups, or written out."""
        known = self._known_of_groups(low, high)
        return super().box_moments(shape, low, high) if known is None else known

    def range_moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Computed once for ranges that are the same."""
        ends, which = np.unique(np.stack([low, high], axis=-1), axis=0, return_inverse=True)
        second, fourth = super().range_moments(*ends.T)
        return second[which.reshape(-1)], fourth[which.reshape(-1)]


def combined_model(model: NoiseModel, sums: Sums) -> NoiseModel:
    """The same noise, seen so. Where a total is exact it stays so, since the sums have every cell once."""
    blocks = []
    for block in model.blocks:
        parts = block.estimator.factors
        known = None
        if sums.of is not None and len(sums.axes) == 1:
            known = block.estimator.grouped(sums.axes[0], sums.of)
        if known is not None:
            blocks.append(Block(known, block.noise))
        elif len(parts) == len(model.shape):
            blocks.append(Block(Kronecker(_factors(parts, model.shape, sums)), block.noise))
        else:
            blocks.append(Block(Combined(block.estimator, model.shape, sums), block.noise))
    return replace(model, shape=sums.shape(model.shape), blocks=tuple(blocks))


def _factors(parts: Sequence[Operator], shape: Sequence[int], sums: Sums) -> list[Operator]:
    """The operators along the axes, with one for the place in the place of its own, and nothing along its others."""
    own = [parts[i] for i in sums.axes]
    place = own[0] if len(own) == 1 else Kronecker(own)
    seen = Sums(tuple(range(len(own))), sums.matrix, sums.of)
    first = Combined(place, [shape[i] for i in sums.axes], seen)
    return [first if i == sums.axes[0] else Identity(1) if i in sums.axes else part for i, part in enumerate(parts)]
