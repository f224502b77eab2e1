"""What every operator offers: forward, transpose, least squares, and the columns that sensitivity needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # it loads scipy.sparse when that is first used, which keeps `import sfumato` quick
from numpy.typing import NDArray

from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear.estimator import LARGEST_EXPLICIT as LARGEST_EXPLICIT
from sfumato.linear.estimator import Array as Array
from sfumato.linear.estimator import Estimator
from sfumato.linear.estimator import range_weights as range_weights
from sfumato.linear.pairs import PairTypes
from sfumato.linear.rows import counted_columns, distinct_rows

if TYPE_CHECKING:
    from sfumato.linear.queries import AllOfAKind

# Pairs of columns that are compared at a time.
PAIRS = 1 << 16

# Pairs of values that are counted in a table, and numbers of it held at a time.
MOST_VALUE_PAIRS, HELD = 1 << 16, 1 << 22

# Floats that are whole numbers up to this size are read as whole numbers.
LARGEST_ENTRY = 1 << 40
# Whole numbers from here on are refused: the difference of two of them must fit 64 bits.
LARGEST_WHOLE = 1 << 61


class Operator(Estimator):
    """A matrix of `rows` × `cols` that is applied along the last axis of an array.

    `forward` and `transpose` of integer operators keep integers integers. `pinv` is the Moore-Penrose inverse and
    `pinv_transpose` its transpose; both are there only where the structure gives them.
    """

    # Whether `pair_types` says more than the columns themselves.
    has_structure = True
    # Whether nearly every pair of columns is a type of its own.
    has_many_types = False
    # Whether no two columns are farther apart, row by row, than some two side by side: for nested blocks and cells. The
    # types of pairs that are one apart then stand for those of all lengths, in products as well.
    parts_at_borders = False

    @property
    def factors(self) -> tuple[Operator, ...]:
        """The operators whose Kronecker product this one is, one for each axis."""
        return (self,)

    def pinv(self, y: Array) -> Array:
        """A⁺·y: the least-squares estimate of x from A·x + noise."""
        del y
        raise InvalidInput(f"{type(self).__name__} has no structured pseudo-inverse.")

    def pinv_transpose(self, q: Array) -> Array:
        """(A⁺)ᵀ·q: how strongly the answer to the query q feels each noisy row."""
        del q
        raise InvalidInput(f"{type(self).__name__} has no structured pseudo-inverse.")

    def inverts(self) -> Operator:
        """The strategy A where this is its least-squares estimator A⁺; the identity where it is no such estimator."""
        return Matrix(scipy.sparse.identity(self.cols, dtype=np.int64))

    def sparse(self) -> scipy.sparse.csc_matrix:
        """The matrix written out, for tests and for sensitivities on small domains."""
        if self.rows * self.cols > LARGEST_EXPLICIT:
            raise TooLarge(
                f"{type(self).__name__} of {self.rows} × {self.cols} entries is too large to be written out "
                f"(at most {LARGEST_EXPLICIT:,})."
            )
        return scipy.sparse.csc_matrix(self.forward(np.eye(self.cols, dtype=np.int64)).T)

    def columns(self) -> scipy.sparse.csc_matrix:
        """The same for operators of any size whose columns have few entries."""
        return self.sparse()

    def dense(self) -> Array:
        """The matrix as an array, for tests."""
        return np.asarray(self.sparse().todense())

    def column_norms(self) -> Array:
        """The L1 norm of every column."""
        return np.asarray(abs(self.sparse()).sum(axis=0)).ravel()

    @property
    def largest_norm(self) -> int | float:
        """No column has a larger L1 norm: in Python's numbers, which never wrap, however large the entries are."""
        return _number(self.column_norms().max(initial=0))

    @property
    def largest_entry(self) -> int | float:
        """No entry is larger in absolute value; in Python's numbers."""
        return _number(abs(self.sparse()).max()) if self.rows and self.cols else 0

    def column_distances(self, u: Array, v: Array) -> Array:
        """The L1 distances of the columns u and v, pair by pair."""
        columns = self.columns()
        found = [np.zeros(0, dtype=columns.dtype)]
        for start in range(0, len(u), PAIRS):
            part = slice(start, start + PAIRS)
            difference = abs(scipy.sparse.csc_matrix(columns[:, u[part]] - columns[:, v[part]]))
            found.append(np.asarray(difference.sum(axis=0)).ravel())
        return np.concatenate(found)

    def farthest(self, offsets: Array) -> int | None:
        """The largest L1 distance of two columns that lie one of the offsets 1, 2, …, r apart; None: no closed form."""
        del offsets
        return None

    def shared(self, reach: int) -> int | None:
        """The least Σ min(a, b) of two columns a, b at most `reach` apart, where all columns are non-negative, sum to
        the same, and share less the farther they are apart; None elsewhere.
        """
        del reach
        return None

    def apart(self, reaches: NDArray[np.int64]) -> int | None:
        """A bound on the L1 distance of two columns that are no farther apart, along all axes together, than one of the
        rows of `reaches`; None: no closed form.
        """
        del reaches
        return None

    @property
    def chains(self) -> tuple[Operator, ...] | None:
        """Operators along every axis of which the types of pairs of columns are all that `between` has to know; None:
        there are no such operators.
        """
        return None

    def between(self, types: Sequence[PairTypes]) -> int:
        """The largest L1 distance of two columns that are along every axis a pair of one of these types of `chains`."""
        raise NotImplementedError(f"{type(self).__name__} has no chains.")

    def farthest_of(self, kinds: Iterable[Sequence[PairTypes]]) -> int:
        """The same over several kinds of pairs, each with its types along every axis."""
        return max(map(self.between, kinds), default=0)

    def pair_types(self, offset: int | None) -> PairTypes:
        """The types of all column pairs (u, u + offset); with None, of all pairs whatever, u = v included."""
        n = self.cols
        if offset is None:
            u, v = (index.ravel() for index in np.indices((n, n)))
        else:
            u = np.arange(max(0, -offset), n - max(0, offset))
            v = u + offset
        return self.types_of_pairs(u, v)

    def types_of_pairs(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> PairTypes:
        """The types of the pairs of columns (u, v), written out."""
        if len(u) * self.rows > LARGEST_EXPLICIT:
            raise TooLarge(f"{type(self).__name__} with {self.cols} columns has too many pairs of columns to compare.")
        columns = self.sparse().toarray()
        values, code = np.unique(columns, return_inverse=True)
        code, many = code.reshape(columns.shape), len(values)
        if many**2 > MOST_VALUE_PAIRS:
            pairs = np.stack([columns[:, u], columns[:, v]], axis=-1).reshape(-1, 2)
            kinds, kind = np.unique(pairs, axis=0, return_inverse=True)
            return PairTypes.of(kinds, counted_columns(kind.reshape(self.rows, len(u)), len(kinds)))
        step = max(1, HELD // max(self.rows, many**2))
        parts = [slice(start, start + step) for start in range(0, max(len(u), 1), step)]
        counts = [distinct_rows(counted_columns(many * code[:, u[k]] + code[:, v[k]], many**2)) for k in parts]
        found = np.concatenate(counts)
        there = np.flatnonzero(found.any(axis=0))
        return PairTypes.of(np.stack([values[there // many], values[there % many]], axis=-1), found[:, there])

    # As a strategy whose pseudo-inverse is the estimator: what `PseudoInverse` says of itself.

    def inverse_range_terms(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Array, Array] | None:
        """(A⁺)ᵀ·r for many ranges r, as `range_terms` lists them; None where no structure does."""
        del low, high
        return None

    def inverse_range_moments(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """(Σ c², Σ c⁴, or a guess of it) of (A⁺)ᵀ·r for many ranges r; None where no structure gives them."""
        del low, high
        return None

    @property
    def inverse_fourth_is_exact(self) -> bool:
        """Whether Σ c⁴ is there exact, and no guess."""
        return True

    def inverse_mean_variance(self, queries: AllOfAKind) -> float | None:
        """The average of ‖(A⁺)ᵀq‖² over all queries of a kind; None where there is no closed form."""
        del queries
        return None

    def inverse_mean_variance_at(self, queries: AllOfAKind, n: int, cells: NDArray[np.int64]) -> float | None:
        """The same where the columns are some cells of an axis of n."""
        del queries, n, cells
        return None

    def inverse_group_variances(self, of: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """‖(A⁺)ᵀq‖² of the groups 0, 1, … into which `of` puts the columns; None where no structure gives them."""
        del of
        return None

    @property
    def inverse_largest_coefficient(self) -> float | None:
        """No noise of A⁺ moves any range by more than this many times its own size; None where it is to be computed."""
        return None

    @property
    def inverse_largest_of_any(self) -> float | None:
        """The same for any query of which every cell has a weight between 0 and 1."""
        return None

    @property
    def inverse_keeps_integers(self) -> bool:
        """Whether A⁺ has whole entries."""
        return False

    @property
    def inverse_is_identity(self) -> bool:
        """Whether every cell is measured by itself, once."""
        return False


def _number(value: Any) -> int | float:
    """An entry of an array as a number of Python's."""
    return int(value) if isinstance(value, (int, np.integer)) else float(value)


def as_operator(given: Any) -> Operator:
    """An operator as it is, and a matrix that the user wrote down as one."""
    return given if isinstance(given, Operator) else Matrix(given)


class Matrix(Operator):
    """A matrix that the user wrote down, dense or sparse."""

    has_structure = False

    def __init__(self, matrix: Any) -> None:
        try:
            table = scipy.sparse.csr_matrix(matrix)
        except (TypeError, ValueError) as error:
            raise InvalidInput("matrix must be a two-dimensional array or sparse matrix of numbers.") from error
        if table.dtype.kind not in "biuf":
            raise InvalidInput(f"matrix holds entries of type {table.dtype}; give real numbers.")
        if not np.isfinite(table.data).all():
            raise InvalidInput("matrix holds entries that are not finite numbers.")
        # Whole numbers are read as 64-bit integers: differences of columns would wrap around in narrow or unsigned
        # types, and make a sensitivity too small; so would doubles in the place of large ones, which they round.
        sizes = abs(table.astype(float))
        sizes.sum_duplicates()
        largest = sizes.data.max(initial=0.0)
        if table.dtype.kind == "f":
            whole = bool((np.floor(table.data) == table.data).all() and largest < LARGEST_ENTRY)
        else:
            whole = bool(largest < LARGEST_WHOLE)
        if not whole and (table.data.astype(float).astype(object) != table.data.astype(object)).any():
            raise TooLarge(
                "matrix holds numbers that double precision does not hold exactly, and that are no whole numbers below "
                "2^61. Nothing was computed. Give smaller or rounder ones."
            )
        self._matrix = table.astype(np.int64 if whole else np.float64)
        self._matrix.sum_duplicates()
        self.rows, self.cols = (int(n) for n in self._matrix.shape)

    @property
    def largest_norm(self) -> int | float:
        """From the largest entry and the fullest column: a bound that cannot wrap."""
        fullest = int(np.bincount(self._matrix.indices, minlength=1).max(initial=0))
        return self.largest_entry * fullest

    @property
    def largest_entry(self) -> int | float:
        """Read off."""
        return _number(abs(self._matrix.data).max(initial=0)) if self._matrix.nnz else 0

    def forward(self, x: Array) -> Array:
        """A·x."""
        return _apply(self._matrix, x)

    def transpose(self, y: Array) -> Array:
        """Aᵀ·y."""
        return _apply(self._matrix.T.tocsr(), y)

    def sparse(self) -> scipy.sparse.csc_matrix:
        """The matrix itself."""
        return scipy.sparse.csc_matrix(self._matrix)


def _apply(matrix: Any, x: Array) -> Array:
    flat = np.asarray(x).reshape(-1, matrix.shape[1])
    result = np.asarray((matrix @ flat.T).T)
    return result.reshape(*np.shape(x)[:-1], matrix.shape[0])
