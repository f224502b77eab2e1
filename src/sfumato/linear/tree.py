"""Trees of any shape: weighted counts of groups within groups, and least squares on them in two passes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear.hierarchy import LARGEST_WEIGHT
from sfumato.linear.operator import PAIRS, Array, Operator
from sfumato.linear.pairs import PairTypes
from sfumato.linear.rows import distinct_rows

# All pairs of cells are told apart by their weights up to so many; beyond, every level needs one weight.
MOST_CELLS = 2048


class Tree(Operator):
    """Weighted counts of the groups of every level, the coarsest first, and then of the cells themselves.

    A level is the group of every cell, groups being numbered from 0 without gaps, and lies within the level before:
    cells that share a group share all coarser ones, and groups of one parent follow one another. Row r is the count of
    a group times the weight of that group, a whole number. Weights are one a level or one a group, the last ones being
    those of the cells.

    The pseudo-inverse is exact least squares in O(cells), by the two passes of `Hierarchy`, for any shape and weights:
    upwards every group takes the best combination of its own value and the sum of its children's, downwards every child
    takes its share of what its parent knows better.

    >>> Tree([np.array([0, 0, 1])], [2, 1], 3).dense().tolist()
    [[2, 2, 0], [0, 0, 2], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """

    def __init__(self, levels: Sequence[Integers], weights: Sequence[Integers | int], cells: int) -> None:
        of = [np.asarray(level, dtype=np.int64) for level in levels]
        if len(weights) != len(of) + 1:
            raise InvalidInput(f"weights are for {len(weights)} levels, and with the cells there are {len(of) + 1}.")
        if any(level.shape != (cells,) for level in of) or cells < 1:
            raise InvalidInput(f"levels must give a group for each of the {cells} cells.")
        order = np.arange(cells) if not of else np.argsort(of[-1], kind="stable")
        sizes, starts = [], []
        for level in of:
            along = level[order]
            step = np.diff(along)
            if along[0] != 0 or not ((step == 0) | (step == 1)).all():
                raise InvalidInput("levels must lie within each other, their groups numbered one parent after another.")
            sizes.append(int(along[-1]) + 1)
            starts.append(np.flatnonzero(np.concatenate([[True], step > 0])))
            if len(starts) > 1 and not np.isin(starts[-2], starts[-1]).all():
                raise InvalidInput("levels must lie within each other, their groups numbered one parent after another.")
        self._sizes = [*sizes, cells]
        # The first child of every group, among the groups of the next level.
        finer = [*starts, np.arange(cells)][1:]
        self._first = [np.searchsorted(below, start) for start, below in zip(starts, finer, strict=True)]
        self._children = [
            np.diff(np.append(first, size)) for first, size in zip(self._first, self._sizes[1:], strict=True)
        ]
        self._order = None if (np.diff(order) > 0).all() else order
        self.of = of
        self.weights = [_checked(w, size) for w, size in zip(weights, self._sizes, strict=True)]
        if self._order is not None and self.weights[-1].size > 1:
            self.weights[-1] = self.weights[-1][self._order]
        self.cols, self.rows = cells, sum(self._sizes)

    # ------------------------------------------------------------------ the matrix

    def forward(self, x: Array) -> Array:
        """Weighted sums over the groups of every level."""
        levels = [x if self._order is None else x[..., self._order]]
        for first in reversed(self._first):
            levels.append(np.add.reduceat(levels[-1], first, axis=-1))
        return np.concatenate([w * level for w, level in zip(self.weights, levels[::-1], strict=True)], axis=-1)

    def transpose(self, y: Array) -> Array:
        """Every cell receives the weighted values of the groups that hold it."""
        levels = [w * level for w, level in zip(self.weights, self._split(y), strict=True)]
        total = levels[0]
        for children, level in zip(self._children, levels[1:], strict=True):
            total = np.repeat(total, children, axis=-1) + level
        return self._back(total)

    def _split(self, y: Array) -> list[Array]:
        return np.split(y, np.cumsum(self._sizes)[:-1], axis=-1)

    def _back(self, values: Array) -> Array:
        """From the order of the tree to that of the cells."""
        if self._order is None:
            return values
        result = np.empty_like(values)
        result[..., self._order] = values
        return result

    # ------------------------------------------------------------------ least squares

    @cached_property
    def _passes(self) -> tuple[list[Floats], list[Floats], list[Floats]]:
        """(own, share, variance) of every level but the cells for own, but the coarsest for share: the weight of a
        group's own value on the way up, a child's share of the remainder on the way down, and the variance of a
        group's estimate from what lies below it, all for noise of variance one.
        """
        alone = [1.0 / w.astype(np.float64) ** 2 for w in self.weights]
        variance = [np.broadcast_to(alone[-1], self._sizes[-1])]
        own: list[Floats] = []
        share: list[Floats] = []
        for depth in range(len(self._first) - 1, -1, -1):
            below = np.add.reduceat(variance[-1], self._first[depth])
            share.append(variance[-1] / np.repeat(below, self._children[depth]))
            own.append(below / (below + alone[depth]))
            variance.append(own[-1] * alone[depth])
        return own[::-1], share[::-1], variance[::-1]

    @cached_property
    def level_variances(self) -> list[Floats]:
        """‖(A⁺)ᵀq‖² of every group of every level, and of the cells in the order of the tree: exact, in two passes.

        What the children of a group learn from each other is independent of everything above: a child with the share s
        and the variance v from below has `v·(1 - s)` of its own and s² of its parent's.
        """
        _, share, variance = self._passes
        found = [np.asarray(variance[0])]
        for children, s, v in zip(self._children, share, variance[1:], strict=True):
            found.append(v * (1 - s) + s**2 * np.repeat(found[-1], children))
        return found

    def pinv(self, y: Array) -> Array:
        """Least squares: up, then down."""
        own, share, _ = self._passes
        values = [level / w for w, level in zip(self.weights, self._split(y), strict=True)]
        best = [values[-1]]
        sums: list[Array] = []
        for depth in range(len(self._first) - 1, -1, -1):
            sums.append(np.add.reduceat(best[-1], self._first[depth], axis=-1))
            best.append(sums[-1] + own[depth] * (values[depth] - sums[-1]))
        best, sums = best[::-1], sums[::-1]
        value = best[0]
        for depth, children in enumerate(self._children):
            value = best[depth + 1] + share[depth] * np.repeat(value - sums[depth], children, axis=-1)
        return np.asarray(self._back(value), dtype=np.float64)

    def pinv_transpose(self, q: Array) -> Array:
        """The adjoint of the two passes, in reverse."""
        own, share, _ = self._passes
        felt = np.asarray(q, dtype=np.float64)
        felt = felt if self._order is None else felt[..., self._order]
        levels: list[Array] = []
        for depth in range(len(self._first) - 1, -1, -1):
            parent = np.add.reduceat(share[depth] * felt, self._first[depth], axis=-1)
            levels.append(felt - np.repeat(parent, self._children[depth], axis=-1))
            felt = parent
        levels = [felt, *levels[::-1]]
        for depth, children in enumerate(self._children):
            levels[depth + 1] = levels[depth + 1] + np.repeat((1 - own[depth]) * levels[depth], children, axis=-1)
            levels[depth] = own[depth] * levels[depth]
        return np.concatenate([level / w for w, level in zip(self.weights, levels, strict=True)], axis=-1)

    def inverse_range_moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(‖(A⁺)ᵀr‖², and a guess of the fourth power): single cells and the whole from the two passes, other ranges
        one by one. A seventh of the squared second moment is the order of magnitude of the fourth, no bound, and
        intervals do not rely on it.
        """
        cells = self._back(self.level_variances[-1])
        at = np.clip(low, 0, self.cols - 1).astype(np.int64)
        single = (low == at) & (high == low + 1)
        whole = (low <= 0) & (high >= self.cols)
        second = np.where(single, cells[at], self.level_variances[0].sum())
        cell = np.arange(self.cols)
        for j in np.flatnonzero(~single & ~whole):
            part = np.clip(np.minimum(high[j], cell + 1) - np.maximum(low[j], cell), 0.0, 1.0)
            second[j] = (self.pinv_transpose(part) ** 2).sum()
        return second, second**2 / 7

    inverse_fourth_is_exact = False

    def inverse_group_variances(self, of: Integers) -> Floats | None:
        """‖(A⁺)ᵀq‖² of the groups of one of its own levels; None of others."""
        for level, variances in zip(self.of, self.level_variances, strict=False):
            if level is of or np.array_equal(level, of):
                return variances
        return None

    @property
    def inverse_largest_coefficient(self) -> float:
        """A query whose weights lie between 0 and 1 feels the value of a group by its mean weight there, less a mean of
        such means: by one at most.
        """
        return 1.0 / min(int(w.min()) for w in self.weights)

    inverse_largest_of_any = inverse_largest_coefficient

    # ------------------------------------------------------------------ sensitivity

    @property
    def largest_entry(self) -> int:
        """The dearest group."""
        return max(int(w.max()) for w in self.weights)

    @property
    def largest_norm(self) -> int:
        """A cell lies in one group of every level."""
        return sum(int(w.max()) for w in self.weights)

    @cached_property
    def _weighed(self) -> list[Integers]:
        """The weight that every cell finds on every level."""
        return [np.broadcast_to(w, size)[of] for w, size, of in zip(self.weights, self._sizes, self._each, strict=True)]

    @cached_property
    def _each(self) -> list[Integers]:
        return [*self.of, self._back(np.arange(self.cols))]

    def column_norms(self) -> Array:
        """Sums along the way to the coarsest level."""
        return np.asarray(sum(self._weighed[1:], self._weighed[0]))

    def column_distances(self, u: Array, v: Array) -> Array:
        """Both groups on every level on which the cells are apart."""
        distances = np.zeros(np.shape(u), dtype=np.int64)
        for of, weight in zip(self._each, self._weighed, strict=True):
            distances += np.where(of[u] != of[v], weight[u] + weight[v], 0)
        return distances

    def sparse(self) -> scipy.sparse.csc_matrix:
        """A column has an entry a level."""
        first = np.cumsum([0, *self._sizes[:-1]])
        rows = np.stack([start + of for start, of in zip(first, self._each, strict=True)], axis=-1)
        starts = len(self._sizes) * np.arange(self.cols + 1)
        values = np.stack(self._weighed, axis=-1).ravel()
        return scipy.sparse.csc_matrix((values, rows.ravel(), starts), shape=(self.rows, self.cols))

    def types_of_pairs(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> PairTypes:
        """How often each two weights meet: a group that both cells share, or one of either."""
        known = np.unique(np.concatenate([np.unique(w) for w in self.weights]))
        k = len(known)
        places = [np.searchsorted(known, weight) for weight in self._weighed]
        found = [np.zeros((0, 3 * k), dtype=np.int64)]
        for start in range(0, len(u), PAIRS):
            a, b = u[start : start + PAIRS], v[start : start + PAIRS]
            row = np.arange(len(a))
            counts = np.zeros((len(a), 3 * k), dtype=np.int64)
            for of, place in zip(self._each, places, strict=True):
                same = of[a] == of[b]
                counts[row, np.where(same, 0, k) + place[a]] += 1
                counts[row, 2 * k + place[b]] += ~same
            found.append(distinct_rows(counts))
        values = np.stack([np.tile(known, 3), np.tile(known, 3)], axis=-1)
        values[k : 2 * k, 1] = values[2 * k :, 0] = 0
        return PairTypes.of(values, np.concatenate(found))

    def pair_types(self, offset: int | None) -> PairTypes:
        """Of all pairs one stands for all that part on the same level, where a level has one weight."""
        if offset is not None:
            return super().pair_types(offset)
        if all(w.size == 1 or (w == w[0]).all() for w in self.weights):
            u, v = [0], [0]
            for depth, level in enumerate(self._each):
                above = self._each[depth - 1] if depth else np.zeros(self.cols, dtype=np.int64)
                order = np.lexsort((level, above))
                parts = np.flatnonzero((np.diff(above[order]) == 0) & (np.diff(level[order]) != 0))
                if len(parts):
                    u.append(int(order[parts[0]]))
                    v.append(int(order[parts[0] + 1]))
            return self.types_of_pairs(np.array(u), np.array(v))
        if self.cols > MOST_CELLS:
            raise TooLarge(
                f"a tree with several weights a level has too many pairs among {self.cols:,} cells to compare; give "
                "every level one weight."
            )
        return super().pair_types(None)


def _checked(weights: Integers | int, size: int) -> Integers:
    """One weight, or one for every group."""
    found = np.atleast_1d(np.asarray(weights, dtype=np.int64))
    if found.shape not in ((1,), (size,)) or found.min() < 1 or found.max() > LARGEST_WEIGHT:
        raise InvalidInput(f"weights must be whole numbers from 1 to {LARGEST_WEIGHT}, one for a level or a group.")
    return found
