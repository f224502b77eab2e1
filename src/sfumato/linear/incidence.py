"""The incidence matrix of a graph over cells, with edges to ⊥."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.linear.operator import Array, Operator, _apply
from sfumato.linear.queries import Queries, averaged

FEW_CELLS = 512


class Incidence(Operator):
    """P: one row a cell, one column an edge, +1 at its tail and -1 at its head; an edge to ⊥ (head -1) has the +1
    alone.

    P·z is the divergence of z. It moves counts along edges, so the sum over a component without ⊥ stays what it is. The
    pseudo-inverse is Pᵀ(PPᵀ)⁺: the smallest flow with a given divergence.
    """

    def __init__(self, cells: int, tail: NDArray[np.int64], head: NDArray[np.int64]) -> None:
        self.rows, self.cols = cells, len(tail)
        self.tail, self.head = tail, head
        edge = np.arange(self.cols)
        inner = head >= 0
        self._matrix = scipy.sparse.csr_matrix(
            (
                np.concatenate([np.ones(self.cols), -np.ones(int(inner.sum()))]).astype(np.int64),
                (np.concatenate([tail, head[inner]]), np.concatenate([edge, edge[inner]])),
            ),
            shape=(self.rows, self.cols),
        )
        self._grounded = np.zeros(cells, dtype=bool)
        self._grounded[tail[~inner]] = True

    @cached_property
    def _transposed(self) -> Any:
        return self._matrix.T.tocsr()

    def forward(self, x: Array) -> Array:
        """The divergence."""
        return _apply(self._matrix, x)

    def transpose(self, y: Array) -> Array:
        """The difference across every edge."""
        return _apply(self._transposed, y)

    @cached_property
    def quick(self) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
        """P and Pᵀ for single vectors of floats, to the same last bit. Applied many times to few cells, the plain ones
        take most of their time to ask what they were given.
        """
        if self.rows > FEW_CELLS:
            return self.forward, self.transpose
        cell = np.repeat(np.arange(self.rows), np.diff(self._matrix.indptr))
        edge, sign = self._matrix.indices, self._matrix.data.astype(np.float64)
        tail, head = self.tail, np.where(self.head < 0, self.rows, self.head)

        def forward(x: Floats) -> Floats:
            return np.asarray(np.bincount(cell, sign * x[edge], minlength=self.rows), dtype=np.float64)

        def transpose(y: Floats) -> Floats:
            return y[tail] - np.append(y, 0.0)[head]

        return forward, transpose

    def sparse(self) -> scipy.sparse.csc_matrix:
        """The matrix itself: it has two entries a column."""
        return scipy.sparse.csc_matrix(self._matrix)

    @cached_property
    def _laplacian(self) -> tuple[Any, NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        """A factor of PPᵀ with one cell of every free component held at zero, and what is needed to centre."""
        from scipy.sparse.csgraph import connected_components  # slow to import, and only least squares needs them
        from scipy.sparse.linalg import splu

        laplacian = (self._matrix @ self._matrix.T).astype(np.float64).tocsc()
        count, label = connected_components(laplacian, directed=False)
        free = np.ones(count, dtype=bool)
        free[label[self._grounded]] = False
        held = np.zeros(self.rows, dtype=bool)
        first = np.unique(label, return_index=True)[1]
        held[first[free]] = True
        kept = ~held
        factor = splu(laplacian[kept][:, kept].tocsc()) if kept.any() else None
        return factor, label.astype(np.int64), free, kept

    def _potential(self, x: Array) -> Array:
        """(PPᵀ)⁺·x up to a constant on every free component, which the difference across edges does not see."""
        factor, label, free, kept = self._laplacian
        flat = np.asarray(x, dtype=np.float64).reshape(-1, self.rows)
        sizes = np.bincount(label)
        result = np.zeros_like(flat)
        for i, row in enumerate(flat):
            mean = np.bincount(label, weights=row) / sizes
            centred = row - np.where(free, mean, 0.0)[label]
            if factor is not None:
                result[i, kept] = factor.solve(centred[kept])
        return result.reshape(np.shape(x))

    largest_coefficient = largest_of_any = 1.0
    keeps_integers = True
    is_listed = True

    def group_terms(self, of: NDArray[np.int64]) -> tuple[Array, Array]:
        """As many noises as edges lead out of a group, each once."""
        inner = self.head >= 0
        u, v = of[self.tail], of[np.where(inner, self.head, 0)]
        apart = inner & (u != v)
        count = int(of.max()) + 1
        cut = np.bincount(u[apart | ~inner], minlength=count) + np.bincount(v[apart], minlength=count)
        return np.ones((count, 1)), cut[:, None]

    def box_terms(self, shape: tuple[int, ...], low: Floats, high: Floats) -> None:
        """Too many edges feel a box, in too many ways."""
        del shape, low, high

    def box_moments(self, shape: tuple[int, ...], low: Floats, high: Floats) -> tuple[Array, Array]:
        """Edge by edge."""
        return self._written_moments(shape, low, high)

    def mean_square(self, kinds: Sequence[Queries], shape: tuple[int, ...]) -> float:
        """The mean number of edges with exactly one end in a query, from the Gram matrix in closed form."""
        tail, head = self.tail, self.head
        inner = head >= 0

        def mean(kinds: Sequence[Queries]) -> float:
            def together(u: NDArray[np.int64], v: NDArray[np.int64]) -> Any:
                index = zip(kinds, np.unravel_index(u, shape), np.unravel_index(v, shape), shape, strict=True)
                return reduce(np.multiply, [kind.together(n, a, b) for kind, a, b, n in index])

            grounded = together(tail[~inner], tail[~inner]).sum()
            u, v = tail[inner], head[inner]
            return float(grounded + (together(u, u) + together(v, v) - 2 * together(u, v)).sum())

        return averaged(kinds, mean)

    def cell_kinds(self, shape: tuple[int, ...], total_shares: tuple[Floats, ...] | None) -> NDArray[np.int64]:
        """All noises are alike, so that the number of edges of a cell says everything."""
        del total_shares
        ends = np.concatenate([self.tail, self.head[self.head >= 0]])
        return np.bincount(ends, minlength=self.rows).astype(np.int64).reshape(shape)

    def pinv(self, y: Array) -> Array:
        """The smallest flow whose divergence is (nearest to) y."""
        return self.transpose(self._potential(y))

    def pinv_transpose(self, q: Array) -> Array:
        """(PPᵀ)⁺·P·q, centred on every free component."""
        _, label, free, _ = self._laplacian
        flat = self._potential(self.forward(np.asarray(q, dtype=np.float64))).reshape(-1, self.rows)
        sizes = np.bincount(label)
        means = np.stack([np.bincount(label, weights=row) / sizes for row in flat])
        result = flat - np.where(free, means, 0.0)[:, label]
        return result.reshape(*np.shape(q)[:-1], self.rows)
