"""What every operator offers: forward, transpose, least squares, and the columns that sensitivity needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy  # it loads scipy.sparse when that is first used, which keeps `import sfumato` quick
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear.pairs import PairTypes

Array = NDArray[Any]

# Above this many entries an operator is not written out, not even sparsely.
LARGEST_EXPLICIT = 60_000_000

# Pairs of columns that are compared at a time.
PAIRS = 1 << 16

# Floats that are whole numbers up to this size are read as whole numbers.
LARGEST_ENTRY = 1 << 40
# Whole numbers from here on are refused: the difference of two of them must fit 64 bits.
LARGEST_WHOLE = 1 << 61


class Operator(ABC):
    """A matrix of `rows` × `cols` that is applied along the last axis of an array.

    `forward` and `transpose` of integer operators keep integers integers. `pinv` is the Moore-Penrose inverse and
    `pinv_transpose` its transpose; both are there only where the structure gives them.
    """

    rows: int
    cols: int

    @property
    def key(self) -> tuple[object, ...] | None:
        """What tells this operator from others, for looking up what was computed for it before; None: nothing short."""
        return None

    @abstractmethod
    def forward(self, x: Array) -> Array:
        """A·x along the last axis."""

    @abstractmethod
    def transpose(self, y: Array) -> Array:
        """Aᵀ·y along the last axis."""

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

    @property
    def inverse_largest_coefficient(self) -> float | None:
        """No entry of (A⁺)ᵀ·q is larger for any query q with weights from 0 to 1; None: to be found from A⁺ itself."""
        return None

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

    def pair_types(self, offset: int | None) -> PairTypes:
        """The types of all column pairs (u, u + offset); with None, of all pairs whatever, u = v included."""
        columns = self.sparse().toarray()
        n = self.cols
        if offset is None:
            u, v = (index.ravel() for index in np.indices((n, n)))
        else:
            u = np.arange(max(0, -offset), n - max(0, offset))
            v = u + offset
        if len(u) * self.rows > LARGEST_EXPLICIT:
            raise TooLarge(f"{type(self).__name__} with {n} columns has too many pairs of columns to compare.")
        pairs = np.stack([columns[:, u], columns[:, v]], axis=-1).reshape(-1, 2)
        values, kind = np.unique(pairs, axis=0, return_inverse=True)
        kind = kind.reshape(self.rows, len(u))
        counts = np.zeros((len(u), len(values)), dtype=np.int64)
        for k in range(len(values)):
            counts[:, k] = (kind == k).sum(axis=0)
        return PairTypes.of(values, counts)

    def range_terms(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Array, Array] | None:
        """Aᵀ·r for many ranges r at once, as (coefficients, how often each occurs), each of shape (ranges, terms).

        Here the operator is an estimator: its rows are cells and its columns are noises. A range runs from cell
        coordinate `low` to `high`; a cell that is cut counts in proportion. Coefficients of zero may be there. None
        where a range is felt by too many noises for such a list.
        """
        del low, high
        return None

    def range_moments(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Array, Array]:
        """(Σ c², Σ c⁴) over the coefficients c of many ranges: what variance and kurtosis of an answer need."""
        terms = self.range_terms(low, high)
        if terms is not None:
            coefficients, counts = terms
            return (counts * coefficients**2).sum(axis=-1), (counts * coefficients**4).sum(axis=-1)
        second, fourth = np.empty(len(low)), np.empty(len(low))
        step = max(1, (1 << 22) // self.rows)
        for start in range(0, len(low), step):
            part = slice(start, start + step)
            squares = self.transpose(range_weights(self.rows, low[part], high[part])) ** 2
            second[part], fourth[part] = squares.sum(axis=-1), (squares**2).sum(axis=-1)
        return second, fourth


def _number(value: Any) -> int | float:
    """An entry of an array as a number of Python's."""
    return int(value) if isinstance(value, (int, np.integer)) else float(value)


def range_weights(n: int, low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """The share of each of n cells that lies in [low, high), one row a range."""
    cell = np.arange(n)
    lower = np.asarray(low, dtype=np.float64)[..., None]
    upper = np.asarray(high, dtype=np.float64)[..., None]
    weights: NDArray[np.float64] = np.clip(np.minimum(upper, cell + 1) - np.maximum(lower, cell), 0.0, 1.0)
    return weights


def largest_in_ranges(estimator: Operator) -> float:
    """A bound on the coefficients of any query whose weights lie between 0 and 1: the larger of the sums of a column's
    positive and of its negative entries.
    """
    if estimator.rows * estimator.cols > LARGEST_EXPLICIT:
        raise TooLarge(
            f"{type(estimator).__name__} of {estimator.rows} × {estimator.cols} entries is too large to be written out "
            f"(at most {LARGEST_EXPLICIT:,}): its strategy has to say its inverse_largest_coefficient."
        )
    largest, step = 0.0, max(1, (1 << 22) // max(estimator.rows, estimator.cols, 1))
    for start in range(0, estimator.cols, step):
        unit = np.eye(min(step, estimator.cols - start), estimator.cols, k=start)
        columns = np.asarray(estimator.forward(unit), dtype=np.float64)
        positive, negative = np.maximum(columns, 0.0).sum(axis=-1), np.maximum(-columns, 0.0).sum(axis=-1)
        largest = max(largest, float(positive.max()), float(negative.max()))
    return largest


class Matrix(Operator):
    """A matrix that the user wrote down, dense or sparse."""

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
