"""Some of the cells: the edges to ⊥ of a policy, seen as an operator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.linear.boxes import SummedArea, pieces
from sfumato.linear.operator import Array, Operator
from sfumato.linear.queries import Queries, averaged


class Selection(Operator):
    """One column for every chosen cell, with a one in its row."""

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        self.mask = mask
        self._cells = np.flatnonzero(mask)
        self.rows, self.cols = mask.size, len(self._cells)

    def forward(self, x: Array) -> Array:
        """Values put back into their cells, zero elsewhere."""
        result = np.zeros_like(x, shape=(*x.shape[:-1], self.rows))
        result[..., self._cells] = x
        return result

    def transpose(self, y: Array) -> Array:
        """The values of the chosen cells."""
        return y[..., self._cells]

    largest_coefficient = 1.0
    keeps_integers = True

    def box_terms(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Array, Array]:
        """The shares with which chosen cells lie in a box, and how many lie in it with each of them."""
        table = SummedArea(self.mask.reshape(shape).astype(np.int64))
        weights, counts = [], []
        for weight, start, stop in pieces(low, high):
            weights.append(weight)
            counts.append(table.sums(start, stop))
        return np.stack(weights, axis=-1), np.stack(counts, axis=-1).astype(np.float64)

    def box_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Array, Array]:
        """From the same list."""
        weights, counts = self.box_terms(shape, low, high)
        return (counts * weights**2).sum(axis=-1), (counts * weights**4).sum(axis=-1)

    def mean_square(self, kinds: Sequence[Queries], shape: tuple[int, ...]) -> float:
        """The mean number of chosen cells in a query, those that it cuts by the square of their share."""

        def mean(kinds: Sequence[Queries]) -> float:
            cells = [np.arange(n) for n in shape]
            along = [kind.together(n, at, at) for kind, n, at in zip(kinds, shape, cells, strict=True)]
            if self.cols == self.rows:  # all of them
                return math.prod(float(share.sum()) for share in along)
            cover = reduce(np.multiply.outer, along)
            return float(cover.ravel()[self.mask.ravel()].sum())

        return averaged(kinds, mean)

    def cell_kinds(self, shape: tuple[int, ...], total_shares: tuple[Floats, ...] | None) -> NDArray[np.int64]:
        """Chosen or not."""
        del total_shares
        return self.mask.reshape(shape).astype(np.int64)
