"""Identity, prefix sums and their inverse, differences along a line of cells."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.linear.operator import Array, Operator
from sfumato.linear.pairs import PairTypes
from sfumato.linear.queries import AllOfAKind


class Identity(Operator):
    """The counts themselves."""

    fraction_bits = 0
    keeps_fractions = False
    factor_bits = 0
    parts_at_borders = True

    def __init__(self, n: int) -> None:
        self.rows = self.cols = n

    def solved(self, y: NDArray[np.int64], bits: int) -> tuple[NDArray[np.int64], int]:
        """Unchanged."""
        return y, bits

    def forward(self, x: Array) -> Array:
        """x."""
        return x

    transpose = pinv = pinv_transpose = inverse_fixed_point = forward  # type: ignore[assignment]

    largest_entry = 1

    def column_norms(self) -> Array:
        """All ones."""
        return np.ones(self.cols, dtype=np.int64)

    def column_distances(self, u: Array, v: Array) -> Array:
        """Two cells have a row each."""
        return np.where(u == v, 0, 2)

    def shared(self, reach: int) -> int:
        """Two cells share nothing."""
        return 1 if min(reach, self.cols - 1) == 0 else 0

    def farthest(self, offsets: Array) -> int:
        """Any two cells differ in two rows."""
        return 2 if len(offsets) and self.cols > 1 else 0

    def columns(self) -> scipy.sparse.csc_matrix:
        """Ones on the diagonal."""
        return scipy.sparse.csc_matrix(scipy.sparse.identity(self.cols, dtype=np.int64, format="csc"))

    def pair_types(self, offset: int | None) -> PairTypes:
        """Two cells share no row; a cell shares its row with itself."""
        values = [(1, 1), (1, 0), (0, 1)]
        same, other = (1, 0, 0), (0, 1, 1)
        if offset is None:
            return PairTypes.of(values, [same, other] if self.cols > 1 else [same])
        return PairTypes.of(values, [same if offset == 0 else other])

    def types_of_pairs(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> PairTypes:
        """Those of pairs of one cell, of pairs of two, or both."""
        same = u == v
        found = [self.pair_types(0)] if same.any() else []
        other = PairTypes.of([(1, 1), (1, 0), (0, 1)], [(0, 1, 1)])
        return found[0] if same.all() and found else found[0].joined(other) if found else other

    def range_terms(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Array, Array]:
        """Weight one for the whole cells, a share for the one that is cut at either end."""
        first, last = np.ceil(low), np.floor(high)
        inside = last >= first  # false where the range lies within one cell
        coefficients = np.stack(
            [
                np.ones_like(low),
                np.where(inside, first - low, high - low),
                np.where(inside, high - last, 0.0),
            ],
            axis=-1,
        )
        counts = np.stack([np.maximum(last - first, 0), np.ones_like(low), np.ones_like(low)], axis=-1)
        return coefficients, counts.astype(np.int64)

    def group_terms(self, of: NDArray[np.int64]) -> tuple[Array, Array]:
        """As many noises as a group has cells."""
        sizes = np.bincount(of)[:, None]
        return np.ones(sizes.shape), sizes

    def inverse_group_variances(self, of: NDArray[np.int64]) -> Floats:
        """Likewise."""
        return np.bincount(of).astype(np.float64)

    inverse_range_terms = range_terms
    largest_coefficient = inverse_largest_coefficient = 1.0
    largest_of_any = inverse_largest_of_any = 1.0
    keeps_integers = inverse_keeps_integers = True
    is_identity = inverse_is_identity = True

    def mean_variance(self, queries: AllOfAKind) -> float:
        """As many noises as a query has cells."""
        return float(queries.inclusion(self.rows).sum())

    inverse_mean_variance = mean_variance

    def mean_variance_at(self, queries: AllOfAKind, n: int, cells: NDArray[np.int64]) -> float:
        """Those of its cells that are there."""
        return float(queries.inclusion(n)[cells].sum())

    inverse_mean_variance_at = mean_variance_at

    def spread_shapes(self, widths: Floats) -> tuple[Floats, Floats, Floats]:
        """A bin of b cells has c = 1/b and running sums 1/b, 2/b, …, 1, which stay at one."""
        rise, rise2 = (widths + 1) / 2, (widths + 1) * (2 * widths + 1) / (6 * widths)
        after = widths.sum() - np.cumsum(widths)
        return 1 / widths, rise + after, rise2 + after


class Prefix(Operator):
    """Sums of the first cells: row i is x₀ + … + x_i. With `reverse`, sums of the last ones: x_i + … + x_{n-1}.

    A record that moves by k cells changes k sums, however long the line is: this is what makes a line policy cheap. A
    record that appears at u changes n - u sums (u + 1 in reverse), so the direction should start far from the
    sources.
    """

    def __init__(self, n: int, *, reverse: bool = False) -> None:
        self.rows = self.cols = n
        self.reverse = reverse

    def forward(self, x: Array) -> Array:
        """Cumulative sums."""
        return np.flip(np.cumsum(np.flip(x, -1), -1), -1) if self.reverse else np.cumsum(x, axis=-1)

    def transpose(self, y: Array) -> Array:
        """Cumulative sums from the other end."""
        return np.cumsum(y, axis=-1) if self.reverse else np.flip(np.cumsum(np.flip(y, -1), -1), -1)

    def pinv(self, y: Array) -> Array:
        """Differences of neighbouring sums: the matrix is square and unimodular."""
        if self.reverse:
            return y - np.concatenate([y[..., 1:], np.zeros_like(y[..., :1])], axis=-1)
        return np.diff(y, axis=-1, prepend=np.zeros_like(y[..., :1]))

    def pinv_transpose(self, q: Array) -> Array:
        """Differences the other way round."""
        if self.reverse:
            return np.diff(q, axis=-1, prepend=np.zeros_like(q[..., :1]))
        return q - np.concatenate([q[..., 1:], np.zeros_like(q[..., :1])], axis=-1)

    largest_entry = 1
    inverse_largest_coefficient = 1.0
    inverse_keeps_integers = True

    def inverse_range_terms(self, low: Floats, high: Floats) -> tuple[Array, Array]:
        """The inverse of n prefix sums is the divergence of n edges, the last of which leads out of the line."""
        shift = 1.0 if self.reverse else 0.0
        return Difference(self.cols + 1).range_terms(low + shift, high + shift)

    def inverse_mean_variance(self, queries: AllOfAKind) -> float:
        """The edges that a query cuts, and the one that leads out."""
        n = self.cols
        outermost = np.array([0 if self.reverse else n - 1])
        inner = Difference(n).mean_variance(queries)
        return inner + float(queries.together(n, outermost, outermost)[0])

    def column_norms(self) -> Array:
        """How many sums a cell enters."""
        norms = np.arange(1, self.cols + 1, dtype=np.int64)
        return norms if self.reverse else norms[::-1]

    def farthest(self, offsets: Array) -> int:
        """As far as a step leads."""
        return min(int(offsets.max(initial=0)), self.cols - 1)

    def column_distances(self, u: Array, v: Array) -> Array:
        """Two cells share all sums but those between them."""
        return np.abs(u - v)

    def pair_types(self, offset: int | None) -> PairTypes:
        """Two cells k apart share all but k of the sums of the one that enters more of them.

        Dominated pairs are left out: for a given distance more shared rows never make a product's distance smaller, so
        the pair at the end of the line where the most sums are shared stands for all.
        """
        apart = np.arange(self.cols) if offset is None else np.array([abs(offset)])
        ahead = np.stack([self.cols - apart, apart, np.zeros_like(apart)], axis=-1)
        behind = ahead[:, [0, 2, 1]]
        if offset is None:
            counts = np.concatenate([ahead, behind])
        else:
            counts = ahead if (offset > 0) != self.reverse else behind
        return PairTypes.of([(1, 1), (1, 0), (0, 1)], counts)


class Difference(Operator):
    """The divergence of the edges of one length along a line: cell i receives z_i - z_{i-stride}, so the sum is zero.

    n rows (cells) and n - stride columns (edges between cells that far apart). With stride one it is the incidence
    matrix of a path, and inverts the prefix sums when the total is known.
    """

    def __init__(self, n: int, stride: int = 1) -> None:
        self.rows, self.cols, self.stride = n, max(n - stride, 0), stride

    def forward(self, x: Array) -> Array:
        """Every edge gives to its lower end and takes from its upper one."""
        result = np.zeros_like(x, shape=(*x.shape[:-1], self.rows))
        result[..., : self.cols] += x
        result[..., self.rows - self.cols :] -= x
        return result

    def transpose(self, y: Array) -> Array:
        """y_i - y_{i+stride} for every edge."""
        return y[..., : self.cols] - y[..., self.rows - self.cols :]

    def range_terms(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Array, Array]:
        """Only edges across one of the two ends of a range carry weight."""
        near = np.arange(-self.stride, 2)
        below, above = np.floor(low)[..., None] + near, np.floor(high)[..., None] + near
        edges = np.concatenate([below, above], axis=-1)
        lower, upper = low[..., None], high[..., None]

        def weight(cell: NDArray[np.float64]) -> NDArray[np.float64]:
            share: NDArray[np.float64] = np.clip(np.minimum(upper, cell + 1) - np.maximum(lower, cell), 0.0, 1.0)
            return share

        new = np.concatenate([np.ones_like(below, dtype=bool), above > below[..., -1:]], axis=-1)
        there = new & (edges >= 0) & (edges < self.cols)
        coefficients = np.where(there, weight(edges) - weight(edges + self.stride), 0.0)
        return coefficients, np.ones((1, 1), dtype=np.int64)

    largest_coefficient = 1.0
    keeps_integers = True

    def mean_variance(self, queries: AllOfAKind) -> float:
        """How many edges have exactly one end in a query."""
        return self.mean_variance_at(queries, self.rows, np.arange(self.rows))

    def mean_variance_at(self, queries: AllOfAKind, n: int, cells: NDArray[np.int64]) -> float:
        """Likewise, between the cells that are there."""
        return queries.cut(n, cells[: self.cols], cells[self.rows - self.cols :])

    def spread_shapes(self, widths: Floats) -> tuple[Floats, Floats, Floats] | None:
        """A difference of two bins rises over the first one and comes down again over the second one."""
        if self.stride != 1:
            return None
        rise, rise2 = (widths + 1) / 2, (widths + 1) * (2 * widths + 1) / (6 * widths)
        fall, fall2 = (widths - 1) / 2, (widths - 1) * (2 * widths - 1) / (6 * widths)
        return 1 / widths[:-1] + 1 / widths[1:], rise[:-1] + fall[1:], rise2[:-1] + fall2[1:]
