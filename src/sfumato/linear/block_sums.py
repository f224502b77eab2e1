"""Weighted sums over the blocks of a grid of several lengths at once, and least squares on them.

A row is the sum of a block that has some length along every axis, one of a chain of nested lengths each: single cells,
blocks of 4 × 4, all hours of one place, the whole. A strategy is a set of such tables t, each with a whole weight w_t.
The projections onto what is constant on blocks commute, so that with `λ_k = Σ_{t ≤ k} w_t²·Π b_t` (the tables t that
are along no axis longer than level k)

    (AᵀA)⁻¹ = Σ_k E_k / λ_k,

E_k being the product of what levels k_i tell along every axis and longer ones do not. Everything follows in closed
form: least squares by passes between levels, the variance of any product of queries, how far two columns are apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.linear.estimator import CHUNK, range_weights
from sfumato.linear.hierarchy import LARGEST_WEIGHT, Hierarchy
from sfumato.linear.nests import Level, Nests, combined
from sfumato.linear.operator import Array, Operator
from sfumato.linear.pairs import PairTypes

# What is left of a variance beside what exact totals take off is rounding where it is this small.
ROUNDING = 1e-9


class BlockSums(Operator):
    """The rows of all tables, one table after the other; the cells are one of them."""

    def __init__(self, shape: Sequence[int], blocks: Sequence[Sequence[int]], weights: Sequence[int]) -> None:
        self.nests = Nests(shape, [[row[i] for row in blocks] for i in range(len(shape))])
        self.weights = tuple(int(k) for k in weights)
        if len(self.weights) != len(blocks) or not all(1 <= k <= LARGEST_WEIGHT for k in self.weights):
            raise InvalidInput(
                f"weights must be whole numbers from 1 to {LARGEST_WEIGHT}, one for each of the {len(blocks)} rows of "
                "blocks. Nothing was drawn or recorded."
            )
        self.tables: tuple[Level, ...] = tuple(self.nests.level(row) for row in blocks)
        if len(set(self.tables)) < len(self.tables) or (0,) * len(self.nests.shape) not in self.tables:
            raise InvalidInput(
                "blocks must name every table once, and one of single cells, such as "
                f"{[1] * len(self.nests.shape)}: without it no cell is told. Nothing was drawn or recorded."
            )
        self._sizes = [self.nests.size(level) for level in self.tables]
        self.rows, self.cols = sum(self._sizes), math.prod(self.nests.shape)

    @cached_property
    def precisions(self) -> Floats:
        """λ of every level of every axis."""
        own = np.zeros(self.nests.depth)
        for level, weight in zip(self.tables, self.weights, strict=True):
            own[level] = weight**2
        found: Floats = own * self.nests.volumes()
        for axis in range(found.ndim):
            found = np.cumsum(found, axis=axis)
        return found

    def forward(self, x: Array) -> Array:
        """The sums of every table."""
        lead = np.shape(x)[:-1]
        held = self.nests.empty(lead, np.asarray(x).dtype)
        self.nests.cells(held)[...] = np.reshape(x, (*lead, *self.nests.shape))
        self.nests.gather(held)
        return self._read(held, lead)

    def transpose(self, y: Array) -> Array:
        """Every cell receives the weighted values of the blocks that hold it."""
        held = self._placed(y, np.asarray(y).dtype)
        self.nests.spread(held)
        return self.nests.cells(held).reshape(*np.shape(y)[:-1], -1)

    def pinv(self, y: Array) -> Array:
        """Least squares: every block adds up what the tables inside it say of it, and keeps what longer ones do not."""
        return self.solved(y, 1 / self.precisions)

    def pinv_transpose(self, q: Array) -> Array:
        """The same passes, in reverse."""
        return self.felt(q, 1 / self.precisions)

    def solved(self, y: Array, factors: Floats) -> Array:
        """Σ_k factors_k·E_k·Aᵀ·y. With 1/λ_k the blocks hold estimates of their own mean before anything is added up,
        so that nothing large cancels.
        """
        volumes = self.nests.volumes()
        held = self._placed(y, np.dtype(np.float64), volumes)
        self.nests.gather(held)
        self.nests.scale(held, factors / volumes)
        self.nests.centre(held)
        self.nests.spread(held)
        return self.nests.cells(held).reshape(*np.shape(y)[:-1], -1)

    def felt(self, q: Array, factors: Floats) -> Array:
        """A·Σ_k factors_k·E_k·q."""
        lead, volumes = np.shape(q)[:-1], self.nests.volumes()
        held = self.nests.empty(lead, np.float64)
        self.nests.cells(held)[...] = np.reshape(q, (*lead, *self.nests.shape))
        self.nests.gather(held)
        self.nests.centre(held)
        self.nests.scale(held, factors / volumes)
        self.nests.spread(held)
        self.nests.scale(held, volumes)
        return self._read(held, lead)

    def _placed(self, y: Array, kind: np.dtype[Any], times: Floats | None = None) -> Array:
        lead = np.shape(y)[:-1]
        held, first = self.nests.empty(lead, kind), 0
        for level, weight, size in zip(self.tables, self.weights, self._sizes, strict=True):
            place = self.nests.at(held, level)
            place[...] = np.reshape(y[..., first : first + size], place.shape)
            place *= weight if times is None else weight * times[level]
            first += size
        return held

    def _read(self, held: Array, lead: tuple[int, ...]) -> Array:
        found, first = np.empty((*lead, self.rows), dtype=held.dtype), 0
        for level, weight, size in zip(self.tables, self.weights, self._sizes, strict=True):
            found[..., first : first + size] = weight * self.nests.at(held, level).reshape(*lead, size)
            first += size
        return found

    # How far two columns are apart.

    @property
    def largest_norm(self) -> int:
        """Every cell lies in one block of every table."""
        return sum(self.weights)

    @property
    def largest_entry(self) -> int:
        """The weight of the dearest table."""
        return max(self.weights)

    def column_norms(self) -> Array:
        """All alike."""
        return np.broadcast_to(np.int64(self.largest_norm), (self.cols,))

    def column_distances(self, u: Array, v: Array) -> Array:
        """Two blocks of every table on which the cells are apart."""
        distances = np.zeros(np.shape(u), dtype=np.int64)
        for start in range(0, len(u), CHUNK):
            part = slice(start, start + CHUNK)
            here, there = (np.unravel_index(cells[part], self.nests.shape) for cells in (u, v))
            for level, weight in zip(self.tables, self.weights, strict=True):
                apart = np.zeros(len(here[0]), dtype=bool)
                for a, b, chain, k in zip(here, there, self.nests.lengths, level, strict=True):
                    apart |= a // chain[k] != b // chain[k]
                distances[part] += 2 * weight * apart
        return distances

    @property
    def chains(self) -> tuple[Operator, ...]:
        """Along every axis its nested blocks, each once."""
        along = zip(self.nests.shape, self.nests.lengths, strict=True)
        return tuple(Hierarchy(n, lengths[::-1]) for n, lengths in along)

    def between(self, types: Sequence[PairTypes]) -> int:
        """Two blocks of every table that is along some axis shorter than the blocks that hold both cells: the farther
        apart along any axis, the more. So the farthest pair of every axis makes the largest distance.
        """
        together = levels_apart(types)
        shared = sum(
            weight
            for level, weight in zip(self.tables, self.weights, strict=True)
            if all(k >= least for k, least in zip(level, together, strict=True))
        )
        return 2 * (self.largest_norm - shared)

    def sparse(self) -> scipy.sparse.csc_matrix:
        """A column has an entry a table."""
        index = np.unravel_index(np.arange(self.cols), self.nests.shape)
        first = np.cumsum([0, *self._sizes[:-1]])
        rows = []
        for start, level in zip(first, self.tables, strict=True):
            place = [i // chain[k] for i, chain, k in zip(index, self.nests.lengths, level, strict=True)]
            counts = [counts[k] for counts, k in zip(self.nests.counts, level, strict=True)]
            rows.append(start + np.ravel_multi_index(place, counts))
        values = np.repeat(np.array(self.weights, dtype=np.int64)[None], self.cols, axis=0)
        starts = len(self.tables) * np.arange(self.cols + 1)
        parts = (values.ravel(), np.stack(rows, axis=-1).ravel(), starts)
        return scipy.sparse.csc_matrix(parts, shape=(self.rows, self.cols))


def levels_apart(types: Sequence[PairTypes]) -> Level:
    """Along every axis on how many levels of its nested blocks the farthest pair lies in different blocks."""
    return tuple(int((kind.counts @ np.abs(kind.values[:, 0] - kind.values[:, 1])).max()) // 2 for kind in types)


class BlockEstimator(Operator):
    """A⁺ for the sums of blocks; with `apart`, less the part of it that moves exact totals.

    Along the axes `apart` the number of records is exact for every cell, jointly (for none: the total alone). What is
    estimated of it is replaced: a query q feels noise as q less its mean over the cells of each such total.
    """

    def __init__(self, strategy: BlockSums, apart: Sequence[int] | None = None) -> None:
        self.strategy = strategy
        self.rows, self.cols = strategy.cols, strategy.rows
        nests = strategy.nests
        others = [i for i in range(len(nests.shape)) if apart is not None and i not in apart]
        self._others = tuple(others)
        # Blocks over empty cells that are not there do not add up to exact totals: then what is known is taken off.
        self._uneven = any(nests.padded[i] for i in others)
        factors = 1 / strategy.precisions
        if apart is not None and not self._uneven:
            factors[tuple(-1 if i in others else slice(None) for i in range(factors.ndim))] = 0.0
        self.factors_of_levels: Floats = factors

    def forward(self, x: Array) -> Array:
        """A⁺·x, and nothing added to exact totals."""
        return self._less_totals(self.strategy.solved(x, self.factors_of_levels))

    def transpose(self, y: Array) -> Array:
        """How strongly a query feels every row."""
        return self.strategy.felt(self._less_totals(np.asarray(y, dtype=np.float64)), self.factors_of_levels)

    def _less_totals(self, values: Array) -> Array:
        if not self._uneven:
            return values
        lead, shape = np.shape(values)[:-1], self.strategy.nests.shape
        table = values.reshape(*lead, *shape)
        along = tuple(len(lead) + i for i in self._others)
        return np.asarray((table - table.mean(axis=along, keepdims=True)).reshape(*lead, -1))

    def inverts(self) -> Operator:
        """The sums."""
        return self.strategy

    fourth_is_exact = False

    @cached_property
    def largest_coefficient(self) -> float:
        """A row moves all cells that lie equally far from its block alike: the sums of what it adds and what it takes
        away, whichever is larger. Where totals are put right, no more than twice that.
        """
        nests, largest = self.strategy.nests, 0.0
        for level, weight in zip(self.strategy.tables, self.strategy.weights, strict=True):
            moved, often = self.factors_of_levels * weight, np.ones(())
            for axis, k in enumerate(level):
                lengths = np.array(nests.lengths[axis], dtype=np.float64)
                share = np.triu(np.ones((len(lengths), len(lengths)))).T * (lengths[k] / lengths)[:, None]
                share[:k] = 0.0  # what shorter blocks tell of a whole block
                share[:, :k] = 0.0
                own = share - np.concatenate([share[1:], np.zeros_like(share[:1])])
                own[:k] = 0.0
                moved = np.moveaxis(np.tensordot(moved, own, axes=(axis, 0)), -1, axis)
                count = np.diff(lengths, prepend=0.0)
                count[: k + 1] = 0.0
                count[k] = lengths[k]
                often = np.multiply.outer(often, count)
            added = float((np.maximum(moved, 0.0) * often).sum())
            taken = float((np.maximum(-moved, 0.0) * often).sum())
            largest = max(largest, added, taken)
        return largest * (2.0 if self._uneven else 1.0)

    @property
    def largest_of_any(self) -> float:
        """Of any query, since it is one of all cells together."""
        return self.largest_coefficient

    def range_moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """On a line those of boxes."""
        return self.box_moments(self.strategy.nests.shape, low[:, None], high[:, None])

    def box_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(Σ c², and a guess of the fourth power) from the blocks that a box covers on every level.

        The fourth moment would need every coefficient: a seventh of the squared second one is its order of magnitude,
        no bound, and intervals do not rely on it.
        """
        del shape
        nests, ends = self.strategy.nests, list(zip(low.T, high.T, strict=True))
        along = [nests.of_ranges(axis, *end) for axis, end in enumerate(ends)]
        second = self._variances(along, lambda axis: nests.sums_of_ranges(axis, *ends[axis]))
        return second, second**2 / 7

    def grouped_moments(self, axis: int, of: Integers, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The same, from what sums over groups of cells of one axis have at every level."""
        second, groups = np.empty(len(low)), int(of.max()) + 1
        step = max(1, CHUNK // len(of))
        for start in range(0, len(low), step):
            part = slice(start, start + step)
            second[part] = self._of_vectors(
                axis, range_weights(groups, low[part, axis], high[part, axis])[:, of], low[part], high[part]
            )
        return second, second**2 / 7

    def _of_vectors(self, axis: int, asked: Floats, low: Floats, high: Floats) -> Floats:
        nests, ends = self.strategy.nests, list(zip(low.T, high.T, strict=True))
        along = [nests.of_vectors(i, asked) if i == axis else nests.of_ranges(i, *end) for i, end in enumerate(ends)]
        return self._variances(
            along, lambda i: nests.sums_of_vectors(i, asked) if i == axis else nests.sums_of_ranges(i, *ends[i])
        )

    def mean_square(self, kinds: Sequence[Any], shape: tuple[int, ...]) -> float:
        """The mean over products of queries, in closed form."""
        del shape
        nests = self.strategy.nests
        along = [nests.explained(axis, kind) for axis, kind in enumerate(kinds)]
        return float(self._variances(along, lambda axis: nests.sums(axis, kinds[axis])).mean())

    def _variances(self, along: list[Floats], sums: Callable[[int], tuple[Floats, Floats]]) -> Floats:
        """‖Mᵀq‖² of products q from what they have at every level; where totals are put right, q less its mean m:
        qᵀCq - 2m·qᵀC1 + m²·1ᵀC1, of which `sums` has the factors of an axis.
        """
        whole = combined(self.factors_of_levels, along)
        if not self._uneven:
            return whole
        crossed, squared = list(along), list(along)
        for axis in self._others:
            crossed[axis], squared[axis] = sums(axis)
        less = 2 * combined(self.factors_of_levels, crossed) - combined(self.factors_of_levels, squared)
        return np.where(whole - less > ROUNDING * whole, whole - less, 0.0)

    def cell_kinds(self, shape: tuple[int, ...], total_shares: tuple[Floats, ...] | None) -> Integers:
        """All blocks of a length are alike, and so are all cells; where totals are put right, those in the same last
        blocks.
        """
        del total_shares
        kinds = np.zeros((1,) * len(shape), dtype=np.int64)
        for axis, n in enumerate(shape):
            cell, lengths = np.arange(n), self.strategy.nests.lengths[axis]
            inside = sum((cell // b == n // b).astype(np.int64) for b in lengths) if self._uneven else 0 * cell
            kinds = kinds * (len(lengths) + 1) + np.expand_dims(inside, [i for i in range(len(shape)) if i != axis])
        return np.broadcast_to(kinds, shape)
