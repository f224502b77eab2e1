"""Hats along one axis that divide every cell among them: sums of cells under triangles, and their spectrum."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.linear.operator import Array, Operator
from sfumato.linear.pairs import PairTypes
from sfumato.linear.rows import distinct_rows

# Fewer hats than on this many intervals are no strategy: two cells far apart are to share none of them.
FEWEST = 3
# More hats along an axis have too many eigenvectors.
MOST = 2048
# What a cell is worth to itself where pairs of cells are compared: more than any hat is.
_MARK = 1 << 20
# Types of pairs that are compared with all others at a time.
AT_ONCE = 256
# Eigenvalues below this part of the largest are none.
_NOTHING = 1e-9


class HatAxis(Operator):
    """Hats on the knots 0, n/m, 2·n/m, …, n of an axis of n cells, the two at the ends cut in half; none with m = 0.

    Every cell has `height` to give away, and splits it between the two hats over it by where its middle lies between
    their knots, rounded to whole numbers that add up: the sum of every column is `height`, exactly.
    """

    has_many_types = True

    def __init__(self, n: int, hats: int, height: int) -> None:
        if hats and not FEWEST <= hats <= min(n // 2, MOST):
            raise InvalidInput(
                f"hats={hats} along an axis of {n} cells must be 0 for none, or from {FEWEST} to half the cells, here "
                f"{min(n // 2, MOST)}. Nothing was drawn or recorded."
            )
        if not 1 <= height < _MARK:
            raise InvalidInput(f"height={height} must lie between 1 and {_MARK - 1}. Nothing was drawn or recorded.")
        self.cols, self.count, self.height = n, hats, height
        self.rows = hats + 1 if hats else 0

    @cached_property
    def _places(self) -> tuple[Integers, Integers]:
        """(the interval between two knots in which the middle of every cell lies, what it gives to the later hat)."""
        interval, along = np.divmod((2 * np.arange(self.cols, dtype=np.int64) + 1) * self.count, 2 * self.cols)
        return interval, (self.height * along + self.cols) // (2 * self.cols)

    @cached_property
    def matrix(self) -> scipy.sparse.csr_matrix:
        """H, one row a hat."""
        if not self.count:
            return scipy.sparse.csr_matrix((0, self.cols), dtype=np.int64)
        interval, after = self._places
        values, cells = np.concatenate([self.height - after, after]), np.tile(np.arange(self.cols), 2)
        parts = (values, (np.concatenate([interval, interval + 1]), cells))
        return scipy.sparse.csr_matrix(parts, shape=(self.rows, self.cols))

    def forward(self, x: Array) -> Array:
        """H·x."""
        return self._applied(self.matrix, x)

    def transpose(self, y: Array) -> Array:
        """Hᵀ·y."""
        return self._applied(self.matrix.T, y)

    @staticmethod
    def _applied(matrix: scipy.sparse.spmatrix, x: Array) -> Array:
        flat = np.asarray(x).reshape(-1, matrix.shape[1])
        return np.asarray((matrix @ flat.T).T).reshape(*np.shape(x)[:-1], matrix.shape[0])

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """(the vectors V that HᵀH has in its rows, their eigenvalues): all others have zero."""
        if not self.count:
            return np.zeros((0, self.cols)), np.zeros(0)
        # HHᵀ has the same eigenvalues, and hats are so far from depending on one another that they keep their digits.
        sizes, vectors = np.linalg.eigh((self.matrix @ self.matrix.T).toarray().astype(np.float64))
        kept = sizes > _NOTHING * sizes[-1]
        along = np.asarray((self.matrix.T @ vectors[:, kept]).T) / np.sqrt(sizes[kept])[:, None]
        return along, sizes[kept]

    @cached_property
    def _sums(self) -> Floats:
        """V summed over the cells before each, one row an end."""
        vectors = self.spectrum[0]
        return np.concatenate([np.zeros((1, len(vectors))), np.cumsum(vectors, axis=1).T])

    def of_ranges(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(V·r, ‖r‖²) of ranges in cell coordinates, a cell that is cut in proportion."""
        first, last = (np.minimum(t.astype(np.int64), self.cols - 1) for t in (low, high))
        apart = (1 - (low - first)) ** 2 + (last - first - 1) + (high - last) ** 2
        return self._before(high) - self._before(low), np.where(first == last, (high - low) ** 2, apart)

    def _before(self, t: Floats) -> Floats:
        cell = np.minimum(t.astype(np.int64), self.cols - 1)
        part = (t - cell)[:, None]
        return np.asarray(self._sums[cell] * (1 - part) + self._sums[cell + 1] * part)

    # How two columns stand beside each other: the cells by their mark, and what both have of the same hats.

    def pair_types(self, offset: int | None) -> PairTypes:
        """As `types_of_pairs`. Of all pairs whatever, the one that is farthest in any product: two cells that share no
        hat, as the outermost ones do.
        """
        n = self.cols
        if offset is None:
            return self.types_of_pairs(np.zeros(1, dtype=np.int64), np.array([n - 1], dtype=np.int64))
        u = np.arange(max(0, -offset), n - max(0, offset))
        return self.types_of_pairs(u, u + offset)

    def types_of_pairs(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> PairTypes:
        """Of the cells by themselves, marked, and of the hats over both, the pairs of values.

        What two columns of any product share is a sum of smaller ones of two products, and grows with every value of a
        pair: a type all of whose values are at least those of another one is never farther apart, and is left out.
        """
        same = u == v
        shared = _least(self._shared(u[~same], v[~same]).reshape(-1, 4))
        values = [np.array([[_MARK, _MARK], [_MARK, 0], [0, _MARK]]), shared.reshape(-1, 2)]
        pairs, which = np.unique(np.concatenate(values), axis=0, return_inverse=True)
        which = which.ravel()
        counts = []
        if same.any():
            counts.append(np.bincount(which[:1], minlength=len(pairs))[None])
        if len(values[1]):
            marks, rows = np.bincount(which[1:3], minlength=len(pairs)), which[3:].reshape(-1, 2)
            types = np.tile(marks, (len(rows), 1))
            for side in range(2):
                types[np.arange(len(rows)), rows[:, side]] += 1
            counts.append(types)
        found = np.concatenate(counts) if counts else np.zeros((0, len(pairs)), dtype=np.int64)
        return PairTypes(values=pairs, counts=found)

    def _shared(self, u: Integers, v: Integers) -> Integers:
        """For every pair two hats at most that are over both cells, as (value at u, value at v); zeros for none."""
        found = np.zeros((len(u), 2, 2), dtype=np.int64)
        if not self.count:
            return found
        interval, after = self._places
        before = self.height - after
        steps = interval[v] - interval[u]
        here, onward, back = steps == 0, steps == 1, steps == -1
        found[here, 0] = np.stack([before[u], before[v]], axis=-1)[here]
        found[here, 1] = np.stack([after[u], after[v]], axis=-1)[here]
        found[onward, 0] = np.stack([after[u], before[v]], axis=-1)[onward]
        found[back, 0] = np.stack([before[u], after[v]], axis=-1)[back]
        return found


def shared_hats(types: PairTypes) -> tuple[bool, Integers]:
    """(whether some type is of a cell with itself, what the others share: two pairs of values each)."""
    own = (types.values == _MARK).all(axis=1)
    same = types.counts[:, own].any(axis=1)
    hats = np.flatnonzero((types.values > 0).all(axis=1) & ~own)
    found = np.zeros((int((~same).sum()), 2, 2), dtype=np.int64)
    counts = types.counts[~same][:, hats]
    if counts.size:
        order = np.argsort(-counts, axis=1, kind="stable")
        first = order[:, 0]
        row = np.arange(len(counts))
        second = np.where(counts[row, first] > 1, first, order[:, min(1, len(hats) - 1)])
        found[:, 0] = types.values[hats[first]] * (counts[row, first] > 0)[:, None]
        there = (counts[row, first] > 1) | ((counts[row, second] > 0) & (second != first))
        found[:, 1] = types.values[hats[second]] * there[:, None]
    return bool(same.any()), found


def _least(rows: Integers) -> Integers:
    """Those of the rows (a, b, c, d) of which no other has all values smaller or equal, in either order of the hats."""
    pairs = rows.reshape(-1, 2, 2)
    later = (pairs[:, 0] < pairs[:, 1]).any(axis=1) & ~(
        (pairs[:, 0, 0] > pairs[:, 1, 0]) | ((pairs[:, 0, 0] == pairs[:, 1, 0]) & (pairs[:, 0, 1] > pairs[:, 1, 1]))
    )
    ordered = distinct_rows(np.where(later[:, None, None], pairs[:, ::-1], pairs).reshape(-1, 4))
    kept = np.ones(len(ordered), dtype=bool)
    for start in range(0, len(ordered), AT_ONCE):
        part = ordered[start : start + AT_ONCE, None]
        below = np.asarray((ordered <= part).all(axis=2) | (ordered[:, [2, 3, 0, 1]] <= part).all(axis=2))
        below[np.arange(len(below)), start + np.arange(len(below))] = False
        kept[start : start + AT_ONCE] = ~below.any(axis=1)
    return ordered[kept]
