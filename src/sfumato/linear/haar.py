"""The Haar wavelet in integers, for any number of cells."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.linear.operator import Array, Operator
from sfumato.linear.pairs import PairTypes
from sfumato.linear.rows import distinct


class Haar(Operator):
    """The total, and for every node of a binary tree the sum of its left half minus the sum of its right half.

    Nodes are paired level by level; an odd one at the end moves up unpaired and costs nothing. The matrix is square
    with entries in {-1, 0, 1}, a column has at most 1 + ⌈log₂ n⌉ of them, and the inverse only halves: left = (sum +
    difference) / 2. Its entries are therefore dyadic, `B⁻¹·B = I` holds exactly in fixed point, and nothing about a
    remainder can leak. Xiao, Wang, Gehrke: Privelet (ICDE 2010), whose weighted coefficients are the same noisy
    numbers.

    Rows: the total first, then the differences from the coarsest level to the finest.
    """

    keeps_fractions = False
    factor_bits = 0

    def __init__(self, n: int) -> None:
        self.rows = self.cols = n
        sizes = [n]
        while sizes[-1] > 1:
            sizes.append((sizes[-1] + 1) // 2)
        self._sizes = sizes

    @property
    def key(self) -> tuple[object, ...]:
        """Its parameters."""
        return ("haar", self.cols)

    @property
    def levels(self) -> int:
        """How often the line is halved."""
        return len(self._sizes) - 1

    @property
    def fraction_bits(self) -> int:
        """The inverse is a multiple of 2^-fraction_bits."""
        return self.levels

    def forward(self, x: Array) -> Array:
        """Sums and differences, finest level first, then put in order."""
        parts = []
        for size in self._sizes[:-1]:
            left, right = x[..., 0 : size - 1 : 2], x[..., 1::2]
            parts.append(left - right)
            x = np.concatenate([left + right, x[..., size - size % 2 :]], axis=-1)
        return np.concatenate([x, *reversed(parts)], axis=-1)

    def transpose(self, y: Array) -> Array:
        """The adjoint, from the top down."""
        return self._descend(y, lambda s, d: (s + d, s - d))

    def pinv(self, y: Array) -> Array:
        """The inverse."""
        return self._descend(y, lambda s, d: (0.5 * (s + d), 0.5 * (s - d)))

    def inverse_fixed_point(self, y: NDArray[np.int64]) -> NDArray[np.int64]:
        """2^fraction_bits · A⁻¹·y, exactly, in integers: every halving meets an even number."""
        return self._descend(y << self.levels, lambda s, d: ((s + d) >> 1, (s - d) >> 1))

    def solved(self, y: NDArray[np.int64], bits: int) -> tuple[NDArray[np.int64], int]:
        """The inverse of numbers with so many bits behind the point, and how many they have then: those of its own
        more.
        """
        return self.inverse_fixed_point(y), bits + self.levels

    def pinv_transpose(self, q: Array) -> Array:
        """The adjoint of the inverse, from the bottom up."""
        parts = []
        for size in self._sizes[:-1]:
            left, right = q[..., 0 : size - 1 : 2], q[..., 1::2]
            parts.append(0.5 * (left - right))
            q = np.concatenate([0.5 * (left + right), q[..., size - size % 2 :]], axis=-1)
        return np.concatenate([q, *reversed(parts)], axis=-1)

    def _descend(self, y: Array, split: Callable[[Array, Array], tuple[Array, Array]]) -> Array:
        sums, start = y[..., :1], 1
        for size in reversed(self._sizes[:-1]):
            pairs = size // 2
            left, right = split(sums[..., :pairs], y[..., start : start + pairs])
            start += pairs
            below = np.empty((*y.shape[:-1], size), dtype=np.result_type(left))
            below[..., 0 : size - 1 : 2], below[..., 1::2] = left, right
            if size % 2:
                below[..., -1] = sums[..., -1]
            sums = below
        return sums

    largest_entry = 1
    inverse_largest_coefficient = 1.0

    def column_norms(self) -> Array:
        """One for the total and one for every level at which the cell's node has a partner."""
        return 1 + self._paired[-1].astype(np.int64)

    @cached_property
    def _paired(self) -> NDArray[np.int8]:
        """How many nodes above each cell are real pairs, up to every level: row 0 is zero, the finest level first."""
        cell = np.arange(self.cols)
        counts = np.zeros((self.levels + 1, self.cols), dtype=np.int8)
        for level, size in enumerate(self._sizes[:-1]):
            counts[level + 1] = counts[level] + ((cell >> level) < size - size % 2)
        return counts

    def farthest(self, offsets: Array) -> int:
        """Of two cells that part at a node, the last one on the left and the first one on the right are the farthest.

        All cells of a left half have partners on every level below it; the first cell of a right half has no fewer
        than any other there, since a node that comes first and has no partner is alone on its level. Those two are
        neighbours.
        """
        if not len(offsets) or self.cols == 1:
            return 0
        border = np.concatenate([(1 << level) * np.arange(1, size, 2) for level, size in enumerate(self._sizes[:-1])])
        return int(self.column_distances(border - 1, border).max())

    def column_distances(self, u: Array, v: Array) -> Array:
        """Twice the row where they part, and what each has below it."""
        u, v = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
        parted = self._parted(u, v)
        return np.where(u == v, 0, 2 * parted[:, 1] + parted[:, 2] + parted[:, 3])

    def sparse(self) -> scipy.sparse.csc_matrix:
        """A column has an entry for every node above its cell that has a partner, and one for the total."""
        cell = np.arange(self.cols)
        rows, values, cells, start = [np.zeros_like(cell)], [np.ones_like(cell)], [cell], 1
        for level in range(self.levels - 1, -1, -1):
            size = self._sizes[level]
            node = cell >> level
            paired = node < size - size % 2
            rows.append(start + (node[paired] >> 1))
            values.append(1 - 2 * (node[paired] & 1))
            cells.append(cell[paired])
            start += size // 2
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(cells)))
        return scipy.sparse.csc_matrix(entries, shape=(self.rows, self.cols), dtype=np.int64)

    def pair_types(self, offset: int | None) -> PairTypes:
        """Above the node where two cells part they share rows and signs, there the signs differ, below they share
        nothing.

        With None, every node is taken as the parting one, with the longest path below it on either side (which
        dominates the shorter ones), and the longest column with itself.
        """
        values = [(1, 1), (1, -1), (1, 0), (0, 1)]
        longest = 1 + self.levels  # the first cell's column: its nodes have partners at every level
        if offset == 0:
            return PairTypes.of(values, [longest, 0, 0, 0])
        if offset is not None:
            u = self._before_borders(abs(offset))
            v = u + abs(offset)
            return PairTypes.of(values, self._parted(u, v) if offset > 0 else self._parted(v, u))
        deepest, length = np.arange(self.cols), np.zeros(self.cols, dtype=np.int64)
        types = [np.array([[longest, 0, 0, 0]])]
        for size in self._sizes[:-1]:
            pairs = size // 2
            left, right = deepest[0 : size - 1 : 2], deepest[1::2]
            types += [self._parted(left, right), self._parted(right, left)]
            take_left = length[0 : size - 1 : 2] >= length[1::2]
            deepest = np.concatenate([np.where(take_left, left, right), deepest[2 * pairs :]])
            length = np.concatenate([1 + np.maximum(length[0 : size - 1 : 2], length[1::2]), length[2 * pairs :]])
        return PairTypes.of(values, np.concatenate(types))

    def _before_borders(self, step: int) -> NDArray[np.int64]:
        """Cells u such that the pairs (u, u + step) hold, for every pair, one that shares and owns no fewer rows.

        A pair parts at the border inside some node. Nodes of a level differ only at the end of the line, where they
        may be cut short, and the first of them has partners at every level above. So the pairs across the first
        border of every level are enough.
        """
        borders = [1 << level for level in range(self.levels)]
        windows = [np.arange(max(border - step, 0), border) for border in borders]
        u = distinct(np.concatenate(windows)) if windows else np.empty(0, dtype=np.int64)
        return u[u + step < self.cols]

    def _parted(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> NDArray[np.int64]:
        """For pairs of different cells: shared rows, the one where they part, and what each has below it."""
        level = np.frexp((u ^ v).astype(np.float64))[1] - 1  # the highest bit in which the cells differ
        paired = self._paired
        below_u, below_v = paired[level, u].astype(np.int64), paired[level, v].astype(np.int64)
        above = paired[-1, u].astype(np.int64) - paired[level + 1, u]
        one = np.ones_like(above)
        return np.stack([above + one, one, below_u, below_v], axis=-1)  # the total is shared as well

    def inverse_range_terms(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Array, Array]:
        """(A⁻¹)ᵀ·r for many ranges in O(log n) each: only the nodes that hold an end of the range feel it."""
        node = [np.minimum(np.floor(t), self.cols - 1).astype(np.int64) for t in (low, high)]
        share = [t - c for t, c in zip((low, high), node, strict=True)]
        terms = []
        for size in self._sizes[:-1]:
            difference = []
            for end in (0, 1):
                k, g = node[end], share[end]
                right, paired = k % 2 == 1, k < size - size % 2
                difference.append(np.where(paired, np.where(right, 0.5 * (1 - g), 0.5 * g), 0.0))
                share[end] = np.where(paired, np.where(right, 0.5 * (1 + g), 0.5 * g), g)
            same = node[0] >> 1 == node[1] >> 1
            terms += [
                np.where(same, difference[1] - difference[0], difference[1]),
                np.where(same, 0.0, difference[0]),
            ]
            node = [k >> 1 for k in node]
        terms.append(share[1] - share[0])
        return np.stack(terms, axis=-1), np.ones((1, 1), dtype=np.int64)
