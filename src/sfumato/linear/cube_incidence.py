"""Edges from every cell of a grid to one corner of its cube: the internal edges of a spanner, never listed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.linear.operator import Array, Operator
from sfumato.linear.queries import Queries, averaged

# Above this many kinds of coefficient (nine for each axis, multiplied) a range is described by its moments alone.
MOST_TERMS = 1024


class CubeIncidence(Operator):
    """The incidence matrix of a grid cut into cubes, every cell joined to the upper corner of its cube.

    One column for every cell that is not such a corner, +1 in its own row and -1 in that of its corner ρ(c). A query q
    feels the noise of a cell c with q(c) - q(ρ(c)). A box is a product of weights along the axes and ρ is found along
    every axis alone, so sums of `q(c)^i·q(ρ(c))^j` over all cells are products too; a corner adds nothing to a
    difference, so they are sums over the columns.
    """

    def __init__(self, shape: tuple[int, ...], side: int) -> None:
        self.shape, self.side = shape, side
        self.corners = tuple(np.minimum(np.arange(side - 1, n + side - 1, side), n - 1) for n in shape)
        self.rows = math.prod(shape)
        self.cols = self.rows - math.prod(len(corner) for corner in self.corners)

    @cached_property
    def red(self) -> Integers:
        """The corners, as cell numbers in C order."""
        return np.ravel_multi_index(np.ix_(*self.corners), self.shape).ravel().astype(np.int64)

    @cached_property
    def _hangs(self) -> Integers:
        hangs = np.ones(self.rows, dtype=bool)
        hangs[self.red] = False
        return np.flatnonzero(hangs)

    @cached_property
    def degrees(self) -> Integers:
        """How many of the edges every cell has, in the grid's shape: one, or as many as hang on a corner."""
        return self._received(np.ones(self.cols, dtype=np.int64), -1).reshape(self.shape)

    def forward(self, x: Array) -> Array:
        """Every edge gives to its cell and takes from its corner."""
        return self._received(x, 1)

    def _received(self, x: Array, sign: int) -> Array:
        """What the cells receive from their edges: x at the cell itself, -sign times its sum at a corner."""
        result = np.zeros_like(x, shape=(*x.shape[:-1], self.rows))
        result[..., self._hangs] = x
        sums = result.reshape(*x.shape[:-1], *self.shape)
        for i, n in enumerate(self.shape):
            sums = np.add.reduceat(sums, np.arange(0, n, self.side), axis=x.ndim - 1 + i)
        result[..., self.red] = -sign * sums.reshape(*x.shape[:-1], -1)  # corners held nothing before
        return result

    def transpose(self, y: Array) -> Array:
        """The difference between every cell and its corner."""
        corner = y.reshape(*y.shape[:-1], *self.shape)
        for i in range(len(self.shape)):
            corner = np.take(corner, self._own(i), axis=y.ndim - 1 + i)
        return (y - corner.reshape(y.shape))[..., self._hangs]

    def _own(self, axis: int) -> Integers:
        """The corner of every cell along one axis."""
        return self.corners[axis][np.arange(self.shape[axis]) // self.side]

    largest_coefficient = 1.0
    keeps_integers = True

    def mean_square(self, kinds: Sequence[Queries], shape: tuple[int, ...]) -> float:
        """The mean of `Σ_c (q(c) - q(ρ(c)))²` over queries that are products of one query for each axis."""
        del shape

        def mean(kinds: Sequence[Queries]) -> float:
            sums = []
            for axis, (kind, n) in enumerate(zip(kinds, self.shape, strict=True)):
                cell, own = np.arange(n), self._own(axis)
                sums.append([kind.together(n, u, v).sum() for u, v in ((cell, cell), (cell, own), (own, own))])
            both, mixed, corner = (math.prod(column) for column in zip(*sums, strict=True))
            return max(float(both - 2 * mixed + corner), 0.0)

        return averaged(kinds, mean)

    def range_moments(self, low: Floats, high: Floats) -> tuple[Array, Array]:
        """On a line, those of `box_moments`; a grid has no ranges of one axis."""
        if len(self.shape) > 1:
            raise InvalidInput(f"ranges over the shape {self.shape} have {len(self.shape)} axes: use box_moments.")
        return self.box_moments(self.shape, low[:, None], high[:, None])

    def cell_kinds(self, shape: tuple[int, ...], total_shares: tuple[Floats, ...] | None) -> Integers:
        """All noises are alike, so that the number of edges of a cell says everything."""
        del total_shares
        return self.degrees.reshape(shape)

    def box_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(Σ c², Σ c⁴) over the coefficients c of boxes in cell coordinates of shape (boxes, axes)."""
        del shape
        pairs = [self._pairs(axis, low[:, axis], high[:, axis]) for axis in range(len(self.shape))]

        def power(k: int) -> Floats:
            """Σ_c (q(c) - q(ρ(c)))^k by the binomial theorem, each term a product over the axes."""
            total = np.zeros(len(low))
            for j in range(k + 1):
                term = reduce(np.multiply, [(often * a ** (k - j) * b**j).sum(axis=-1) for a, b, often in pairs])
                total += (-1) ** j * math.comb(k, j) * term
            return np.maximum(total, 0.0)

        return power(2), power(4)

    def box_terms(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Floats, Floats] | None:
        """(coefficients, how often each occurs) of boxes, each of shape (boxes, terms); None where they are many."""
        del shape
        cell, corner, count = (np.ones((len(low), 1)) for _ in range(3))
        for axis in range(len(self.shape)):
            a, b, often = self._pairs(axis, low[:, axis], high[:, axis])
            if cell.shape[-1] * a.shape[-1] > MOST_TERMS:
                return None
            cell, corner, count = (
                (before[:, :, None] * new[:, None, :]).reshape(len(low), -1)
                for before, new in ((cell, a), (corner, b), (count, often))
            )
        return cell - corner, count

    def _pairs(self, axis: int, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
        """(the weight of a cell, that of its corner, how many cells have both) for ranges along one axis.

        Only in the blocks that hold an end of the range can the two differ. There a cell is the first one, the last
        one, a whole one between them, or outside; in the blocks between both are one, and beyond both are zero.
        """
        n = self.shape[axis]
        first = np.minimum(np.floor(low), n - 1)
        last = np.clip(np.ceil(high) - 1, first, n - 1)

        def weight(cell: Floats) -> Floats:
            share: Floats = np.clip(np.minimum(high, cell + 1) - np.maximum(low, cell), 0.0, 1.0)
            return share

        lower, upper = first // self.side, last // self.side
        one, zero = np.ones(len(low)), np.zeros(len(low))
        terms = [(one, one, np.maximum(upper - lower - 1, 0) * self.side)]
        for block, there in ((lower, np.ones(len(low), dtype=bool)), (upper, upper > lower)):
            begin = block * self.side
            end = np.minimum(begin + self.side, n)
            corner = weight(end - 1)
            at_first = (there & (block == lower)).astype(np.float64)
            at_last = (there & (block == upper) & (last > first)).astype(np.float64)
            whole = there * np.maximum(np.minimum(last, end) - np.maximum(first + 1, begin), 0)
            outside = there * (end - begin) - at_first - at_last - whole
            terms += [(weight(first), corner, at_first), (weight(last), corner, at_last)]
            terms += [(one, corner, whole), (zero, corner, outside)]
        a, b, often = (np.stack(parts, axis=-1) for parts in zip(*terms, strict=True))
        return a, b, often
