"""Variances of what is estimated from hats: of ranges one by one, of all prefixes and all cells in one pass.

With the diagonal D of the cells' own weights and the p hats in the rows of H, `AᵀA = D² + HᵀH`, whose inverse is
`D⁻² - EᵀQ⁻¹E` with `E = H·D⁻²` and `Q = I + E·Hᵀ` (Woodbury). A query r has the variance `Σ r²/d² - vᵀQ⁻¹v`, v = E·r.

The hats are eliminated in the order in which they end. When one goes, all that end before it are gone and those that
begin after it have not been met: its column of L in `Q = L·Δ·Lᵀ` keeps an entry for each hat that is open there, two
or three a level, however long the line is. And all prefixes at once cost little more than one: let y = L⁻¹E·1. For the
prefix that ends at a, L⁻¹v begins as y does, over the hats that have ended; what is left, `v - L·y` over these, is
zero except for the hats that are open at a, and the rest of vᵀQ⁻¹v is a quadratic form of it with the entries of Q⁻¹
at pairs of open hats, which `SelectedInverse` has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from sfumato._types import Floats, Integers
from sfumato.linear.selected_inverse import SelectedInverse

# Numbers held at a time while many ranges are answered.
CHUNK = 1 << 22
# Up to so many cells all pairs of prefixes are kept: 32 MB, after which a range takes four look-ups.
TABLED = 2048


class Level(NamedTuple):
    """The interval between two knots in which each cell lies, its entries in the hats on the one before and after, the
    row of the first hat, and how many there are.
    """

    interval: Integers
    before: Integers
    after: Integers
    first: int
    size: int


class HatVariances:
    """The system behind hats, factorised once."""

    def __init__(self, levels: Sequence[Level], own: Integers, hats: scipy.sparse.csr_matrix) -> None:
        self.levels = tuple(levels)
        self.cells, self.hats = len(own), hats.shape[0]
        self.inverse = 1.0 / own.astype(np.float64) ** 2
        if self.hats:
            from scipy.sparse.linalg import splu  # slow to import, and only hats need it

            self.spread = scipy.sparse.csr_matrix(hats.astype(np.float64).multiply(self.inverse))
            begin, end = (np.append(hats.indices, -1)[at] for at in (hats.indptr[:-1], hats.indptr[1:] - 1))
            some = np.diff(hats.indptr) > 0  # under the smallest weights a hat may be rounded away
            self.begin, self.end = np.where(some, begin, 0), np.where(some, end + 1, 0)
            self.order = np.argsort(self.end, kind="stable")
            system = scipy.sparse.csc_matrix(scipy.sparse.eye_array(self.hats) + self.spread @ hats.T)
            self.factors = splu(
                system[self.order][:, self.order],
                permc_spec="NATURAL",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )

    def solve(self, v: Floats) -> Floats:
        """Q⁻¹·v along the last axis."""
        flat = v.reshape(math.prod(v.shape[:-1]), self.hats)
        solved = np.empty_like(flat)
        solved[:, self.order] = self.factors.solve(flat[:, self.order].T).T
        return solved.reshape(v.shape)

    @cached_property
    def _running(self) -> list[Floats]:
        """Sums over the cells before each: of 1/d², and of every level's falling and rising entries of E."""
        halves = [half * self.inverse for level in self.levels for half in (level.before, level.after)]
        return [np.concatenate([[0.0], np.cumsum(values)]) for values in (self.inverse, *halves)]

    @cached_property
    def _starts(self) -> list[Integers]:
        """The first cell of every interval of every level, and the number of cells."""
        return [np.searchsorted(level.interval, np.arange(level.size + 2)) for level in self.levels]

    def of_ranges(self, low: Floats, high: Floats) -> Floats:
        """Of ranges in cell coordinates, a cell that is cut in proportion; those inside one cell from the table."""
        second = self._own_squares(low, high)
        if not self.hats:
            return second
        cell = np.minimum(low.astype(np.int64), self.cells - 1)
        inside, tabled = high <= cell + 1, self.cells <= TABLED
        if tabled or inside.sum() > self.hats:  # fewer are solved faster than the table is made
            second[inside] = self.of_cells[cell[inside]] * (high - low)[inside] ** 2
        else:
            inside[:] = False
        if tabled:
            s, t = low[~inside], high[~inside]
            second[~inside] -= self._together(s, s) - 2 * self._together(s, t) + self._together(t, t)
            return np.maximum(second, 0.0)
        left = np.flatnonzero(~inside)
        step = max(1, CHUNK // self.hats)
        for start in range(0, len(left), step):
            part = left[start : start + step]
            v = self._before(high[part]) - self._before(low[part])
            second[part] -= np.einsum("ij,ij->i", v, self.solve(v))
        return np.maximum(second, 0.0)

    @cached_property
    def _pairs(self) -> Floats:
        """bᵀQ⁻¹b′ for all pairs of prefixes, b = E·[0, k)."""
        before = self._before(np.arange(self.cells + 1, dtype=np.float64))
        return np.asarray(before @ self.solve(before).T)

    def _together(self, s: Floats, t: Floats) -> Floats:
        """The same between cell coordinates: what lies under a hat grows linearly within a cell."""
        (i, along), (j, across) = ((cell := np.minimum(x.astype(np.int64), self.cells - 1), x - cell) for x in (s, t))
        table = self._pairs
        below = table[i, j] * (1 - along) + table[i + 1, j] * along
        above = table[i, j + 1] * (1 - along) + table[i + 1, j + 1] * along
        return np.asarray(below * (1 - across) + above * across)

    def _own_squares(self, low: Floats, high: Floats) -> Floats:
        """Σ r²/d² over the cells of every range."""
        sums, weight = self._running[0], self.inverse
        first, last = (np.minimum(t.astype(np.int64), self.cells - 1) for t in (low, high))
        apart = sums[last] - sums[first] - weight[first] * (1 - (1 - (low - first)) ** 2)
        apart += weight[last] * (high - last) ** 2
        return np.asarray(np.where(first == last, weight[first] * (high - low) ** 2, apart))

    def _before(self, t: Floats) -> Floats:
        """E·[0, t): what lies under every hat before each cell coordinate."""
        cell = np.minimum(t.astype(np.int64), self.cells - 1)
        query, parts = np.arange(len(t)), []
        for i, level in enumerate(self.levels):
            j = level.interval[cell]
            rises, falls = self._risen[i], self._fallen[i]
            whole = np.concatenate([[0.0], rises[:-1] + falls[1:], [0.0]])
            under = np.where(np.arange(level.size + 2) < j[:, None], whole, 0.0)
            under[query, j], under[query, j + 1] = self._open_at(i, t, j)
            parts.append(under[:, 1:-1])  # the two knots at the ends carry no hat
        return np.concatenate(parts, axis=-1)

    @cached_property
    def _risen(self) -> list[Floats]:
        """Of every interval, what lies under the hat that rises there."""
        return [np.diff(self._running[2 * i + 2][start]) for i, start in enumerate(self._starts)]

    @cached_property
    def _fallen(self) -> list[Floats]:
        """Of every interval, what lies under the hat that falls there."""
        return [np.diff(self._running[2 * i + 1][start]) for i, start in enumerate(self._starts)]

    def _open_at(self, i: int, t: Floats, j: Integers) -> tuple[Floats, Floats]:
        """What lies before t, in interval j of a level, under the hat that falls there and the one that rises."""
        at, start = np.arange(self.cells + 1), self._starts[i][j]
        falls, rises = self._running[2 * i + 1 : 2 * i + 3]
        before = np.concatenate([[0.0], self._risen[i]])[j]
        return before + np.interp(t, at, falls) - falls[start], np.interp(t, at, rises) - rises[start]

    @cached_property
    def _fronts(self) -> tuple[Integers, Integers, Floats]:
        """(the front of every cell, the ranks of a front's hats in the order of their ends, Q⁻¹ among them).

        Two hats a level: the one that falls and the one that rises. Beyond the ends there is none, of rank -1.
        """
        changes = np.zeros(self.cells, dtype=bool)
        for level in self.levels:
            changes[1:] |= np.diff(level.interval) != 0
        front, first = np.cumsum(changes), np.flatnonzero(np.concatenate([[True], changes[1:]]))
        rank = np.empty(self.hats, dtype=np.int64)
        rank[self.order] = np.arange(self.hats)
        ranks = []
        for level in self.levels:
            j = level.interval[first]
            ranks.append(np.where(j > 0, rank[level.first + np.maximum(j - 1, 0)], -1))
            ranks.append(np.where(j < level.size, rank[level.first + np.minimum(j, level.size - 1)], -1))
        table = np.stack(ranks, axis=-1)
        # Entries are asked for where two hats are open at one cell: there Q has one, and so has L.
        begin = np.where(table < 0, self.cells, np.maximum(self.begin[self.order[table]], first[:, None]))
        end = np.minimum(self.end[self.order[table]], np.append(first[1:], self.cells)[:, None])
        there = np.maximum(begin[:, :, None], begin[:, None, :]) < np.minimum(end[:, :, None], end[:, None, :])
        pairs = [np.where(there, side, 0) for side in (table[:, :, None], table[:, None, :])]
        return front, table, np.where(there, SelectedInverse(self.factors)(*pairs), 0.0)

    def _quadratic(self, x: Floats, part: slice) -> Floats:
        """xᵀQ⁻¹x for vectors over the open hats of a run of cells."""
        return np.asarray(np.einsum("ni,nij,nj->n", x, self._fronts[2][self._fronts[0][part]], x))

    @cached_property
    def of_cells(self) -> Floats:
        """Of every single cell: E has entries at the hats that are open there alone."""
        if not self.hats:
            return self.inverse
        entries = np.stack([half for level in self.levels for half in (level.before, level.after)], axis=-1)
        parts = [self._quadratic(entries[part] * self.inverse[part, None], part) for part in self._parts()]
        return np.maximum(self.inverse - np.concatenate(parts), 0.0)

    def of_prefixes(self) -> Floats:
        """Of the n prefixes that end behind each cell."""
        if not self.hats:
            return self._running[0][1:]
        lower = self.factors.L.tocsr()
        lower.sort_indices()
        pivots = self.factors.U.diagonal()
        under = np.asarray(self.spread.sum(axis=1)).ravel()[self.order]
        y = self.factors.U @ self.factors.solve(under)  # Δ·Lᵀ·Q⁻¹·v = L⁻¹·v
        ended = np.concatenate([[0.0], np.cumsum(y**2 / pivots)])
        passed = np.concatenate([[0.0], np.cumsum(lower.data * y[lower.indices])])
        keys = np.repeat(np.arange(self.hats), np.diff(lower.indptr)) * self.hats + lower.indices
        front, table, _ = self._fronts
        explained = np.empty(self.cells)
        for part in self._parts():
            cell = np.arange(self.cells)[part]
            behind = cell.astype(np.float64) + 1
            gone = np.searchsorted(self.end[self.order], cell + 1, side="right")
            open_hats = [
                half for i, level in enumerate(self.levels) for half in self._open_at(i, behind, level.interval[cell])
            ]
            rank = table[front[cell]]
            still = rank >= gone[:, None]
            at = np.searchsorted(keys, np.where(still, rank, 0) * self.hats + gone[:, None])
            before = passed[at] - passed[lower.indptr[np.where(still, rank, 0)]]
            rest = np.where(still, np.stack(open_hats, axis=-1) - before, 0.0)
            explained[part] = ended[gone] + self._quadratic(rest, part)
        return np.maximum(self._running[0][1:] - explained, 0.0)

    def _parts(self) -> list[slice]:
        step = max(1, CHUNK // (2 * len(self.levels)) ** 2)
        return [slice(start, min(start + step, self.cells)) for start in range(0, self.cells, step)]
