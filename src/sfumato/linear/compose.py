"""Operators made of operators: stacks, products, Kronecker products, and the pseudo-inverse as an operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear.estimator import largest_in_ranges
from sfumato.linear.operator import LARGEST_EXPLICIT, Array, Operator
from sfumato.linear.queries import AllOfAKind


class Stack(Operator):
    """Operators over the same columns, one above the other."""

    def __init__(self, parts: Sequence[Operator]) -> None:
        if not parts or len({part.cols for part in parts}) != 1:
            raise InvalidInput("a stack needs operators over the same number of columns.")
        self.parts = tuple(parts)
        self.rows, self.cols = sum(part.rows for part in parts), parts[0].cols

    def forward(self, x: Array) -> Array:
        """Every part's rows, in order."""
        return np.concatenate([part.forward(x) for part in self.parts], axis=-1)

    def transpose(self, y: Array) -> Array:
        """The sum of what every part sends back."""
        pieces = np.split(y, np.cumsum([part.rows for part in self.parts])[:-1], axis=-1)
        return reduce(np.add, [part.transpose(p) for part, p in zip(self.parts, pieces, strict=True)])

    @property
    def largest_norm(self) -> int | float:
        """At most that of all parts together."""
        return sum(part.largest_norm for part in self.parts)

    @property
    def largest_entry(self) -> int | float:
        """The largest of any part."""
        return max(part.largest_entry for part in self.parts)

    def sparse(self) -> scipy.sparse.csc_matrix:
        """The parts written out."""
        return scipy.sparse.csc_matrix(scipy.sparse.vstack([part.sparse() for part in self.parts]))


class Product(Operator):
    """left · right."""

    def __init__(self, left: Operator, right: Operator) -> None:
        if left.cols != right.rows:
            raise InvalidInput(
                f"a product needs inner sizes that agree, not {left.cols} columns and {right.rows} rows."
            )
        self.left, self.right = left, right
        self.rows, self.cols = left.rows, right.cols

    def forward(self, x: Array) -> Array:
        """Right first."""
        return self.left.forward(self.right.forward(x))

    def transpose(self, y: Array) -> Array:
        """Left first."""
        return self.right.transpose(self.left.transpose(y))

    @property
    def largest_norm(self) -> int | float:
        """A column of the product is a sum of columns of the left factor."""
        return self.left.largest_norm * self.right.largest_norm

    @property
    def largest_entry(self) -> int | float:
        """No entry is larger than the norm of its column."""
        return self.largest_norm

    def sparse(self) -> scipy.sparse.csc_matrix:
        """The product of the factors written out."""
        return scipy.sparse.csc_matrix(self.left.sparse() @ self.right.sparse())


class PseudoInverse(Operator):
    """A⁺ as an operator: the estimator that belongs to the strategy A. Its rows are cells, its columns noisy values."""

    def __init__(self, strategy: Operator) -> None:
        self.strategy = strategy
        self.rows, self.cols = strategy.cols, strategy.rows

    def forward(self, x: Array) -> Array:
        """A⁺·x."""
        return self.strategy.pinv(x)

    def transpose(self, y: Array) -> Array:
        """(A⁺)ᵀ·y."""
        return self.strategy.pinv_transpose(y)

    def inverts(self) -> Operator:
        """A."""
        return self.strategy

    @property
    def key(self) -> tuple[object, ...] | None:
        """That of the strategy."""
        return None if self.strategy.key is None else ("inverse", *self.strategy.key)

    def range_terms(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Array, Array] | None:
        """From the strategy's structure where it has some."""
        return self.strategy.inverse_range_terms(low, high)

    def range_moments(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Array, Array]:
        """Likewise: a hierarchy knows its variances without its coefficients, and so do hats."""
        known = self.strategy.inverse_range_moments(low, high)
        return super().range_moments(low, high) if known is None else known

    def group_terms(self, of: NDArray[np.int64]) -> tuple[Array, Array] | None:
        """Of the identity alone."""
        return self.strategy.group_terms(of) if self.strategy.inverse_is_identity else None

    def group_variances(self, of: NDArray[np.int64], chosen: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """From the strategy's structure where it has some: a tree knows its own levels."""
        known = self.strategy.inverse_group_variances(of)
        if known is None:
            return super().group_variances(of, chosen)
        return known if chosen is None else known[chosen]

    def mean_variance(self, queries: AllOfAKind) -> float:
        """Closed where the strategy has a form for it."""
        known = self.strategy.inverse_mean_variance(queries)
        return queries.measured(self) if known is None else known

    def mean_variance_at(self, queries: AllOfAKind, n: int, cells: NDArray[np.int64]) -> float | None:
        """Likewise."""
        return self.strategy.inverse_mean_variance_at(queries, n, cells)

    @property
    def largest_coefficient(self) -> float:
        """What the strategy says."""
        known = self.strategy.inverse_largest_coefficient
        return largest_in_ranges(self) if known is None else known

    @property
    def largest_of_any(self) -> float | None:
        """What the strategy says."""
        return self.strategy.inverse_largest_of_any

    @property
    def fourth_is_exact(self) -> bool:
        """What the strategy says."""
        return self.strategy.inverse_fourth_is_exact

    @property
    def keeps_integers(self) -> bool:
        """What the strategy says."""
        return self.strategy.inverse_keeps_integers

    @property
    def is_identity(self) -> bool:
        """What the strategy says."""
        return self.strategy.inverse_is_identity


class Kronecker(Operator):
    """A₁ ⊗ … ⊗ A_d over arrays in C order: every factor acts along its own axis."""

    def __init__(self, factors: Sequence[Operator]) -> None:
        self._factors = tuple(factors)
        self.shape_in = tuple(f.cols for f in self._factors)
        self.shape_out = tuple(f.rows for f in self._factors)
        self.rows, self.cols = math.prod(self.shape_out), math.prod(self.shape_in)

    @property
    def factors(self) -> tuple[Operator, ...]:
        """One for each axis."""
        return self._factors

    @property
    def largest_coefficient(self) -> float:
        """A box is a product of ranges, and so are its coefficients."""
        return math.prod(f.largest_coefficient for f in self._factors)

    @property
    def fourth_is_exact(self) -> bool:
        """Where every factor's is."""
        return all(f.fourth_is_exact for f in self._factors)

    @property
    def keeps_integers(self) -> bool:
        """Where every factor does."""
        return all(f.keeps_integers for f in self._factors)

    @property
    def is_identity(self) -> bool:
        """Where every factor is."""
        return all(f.is_identity for f in self._factors)

    def forward(self, x: Array) -> Array:
        """Every factor along its axis."""
        return self._along(x, self.shape_in, [f.forward for f in self._factors])

    def transpose(self, y: Array) -> Array:
        """Every transpose along its axis."""
        return self._along(y, self.shape_out, [f.transpose for f in self._factors])

    def pinv(self, y: Array) -> Array:
        """The pseudo-inverse of a Kronecker product is that of its factors."""
        return self._along(y, self.shape_out, [f.pinv for f in self._factors])

    def pinv_transpose(self, q: Array) -> Array:
        """Likewise, transposed."""
        return self._along(q, self.shape_in, [f.pinv_transpose for f in self._factors])

    def inverts(self) -> Operator:
        """The product of what its factors invert."""
        return Kronecker([factor.inverts() for factor in self.factors])

    def sparse(self) -> scipy.sparse.csc_matrix:
        """The factors' Kronecker product written out."""
        parts = [f.columns() for f in self._factors]
        if math.prod(part.nnz for part in parts) > LARGEST_EXPLICIT:
            raise TooLarge(
                f"a product of {math.prod(part.nnz for part in parts):,} entries is too large to be written out (at "
                f"most {LARGEST_EXPLICIT:,})."
            )
        return scipy.sparse.csc_matrix(reduce(scipy.sparse.kron, parts))

    def apart(self, reaches: NDArray[np.int64]) -> int | None:
        """Products a ⊗ b and c ⊗ d share `Σ min(a_i·b_j, c_i·d_j) ≥ Σ min(a_i, c_i)·Σ min(b_j, d_j)`, and what is not
        shared is counted twice. Nothing is said where one of the factors does not know what its columns share.
        """
        kept: list[list[int]] = []  # Python's numbers, which never wrap
        for factor, along in zip(self._factors, reaches.T, strict=True):
            steps, which = np.unique(np.minimum(along, factor.cols - 1), return_inverse=True)
            shares = [share for step in steps if (share := factor.shared(int(step))) is not None]
            if len(shares) < len(steps):
                return None
            kept.append([shares[i] for i in which])
        if not len(reaches):
            return 0
        whole = math.prod(int(factor.shared(0) or 0) for factor in self._factors)
        return int(2 * whole - 2 * min(math.prod(row) for row in zip(*kept, strict=True)))

    @property
    def largest_norm(self) -> int | float:
        """The product of the factors' largest norms."""
        return math.prod(f.largest_norm for f in self._factors)

    @property
    def largest_entry(self) -> int | float:
        """The product of the factors' largest entries."""
        return math.prod(f.largest_entry for f in self._factors)

    def column_norms(self) -> Array:
        """Products of the factors' norms."""
        return np.asarray(reduce(np.multiply.outer, [f.column_norms() for f in self._factors])).ravel()

    @staticmethod
    def _along(x: Array, shape: tuple[int, ...], maps: Sequence[Callable[[Array], Array]]) -> Array:
        lead = x.shape[:-1]
        array = x.reshape(*lead, *shape)
        for i, apply in enumerate(maps):
            axis = len(lead) + i
            array = apply(array.swapaxes(axis, -1)).swapaxes(-1, axis)
        return array.reshape(*lead, -1)
