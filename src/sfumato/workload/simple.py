"""All cells, ranges or prefixes, given ranges, or any matrix of queries."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sfumato._types import Floats, Integers
from sfumato.calls import plain_number
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.workload.axis import CELLS, PREFIXES, RANGES, EveryOne
from sfumato.workload.listed import Given
from sfumato.workload.part import Part
from sfumato.workload.workload import Coefficients, Workload

_NAMES = {CELLS.name: "histogram"}  # where the kind is called otherwise than what one writes


@dataclass(frozen=True)
class ProductQueries(Workload):
    """The same kind of query along every axis: cells, boxes, or boxes that begin at the lower corner. Never written
    out.
    """

    kind: EveryOne

    def check(self, domain: Domain) -> None:
        """Ranges and prefixes need an order."""
        if self.kind.ordered:
            require_order(domain, self.describe())

    def parts(self, domain: Domain) -> tuple[Part, ...]:
        """One."""
        return (Part(Fraction(1), (self.kind,) * domain.ndim),)

    def describe(self) -> str:
        """The queries in words."""
        return self.kind.describe()

    def to_text(self) -> str:
        """The kind alone."""
        return f"{_NAMES.get(self.kind.name, self.kind.name)}()"

    def spec(self) -> dict[str, Any]:
        """The kind alone."""
        return {"kind": self.kind.name}


@dataclass(frozen=True, eq=False)
class GivenRanges(Workload):
    """Ranges that the user listed, in the domain's units: (lo, hi) on a line, (x0, y0, x1, y1) on a grid."""

    ranges: NDArray[np.float64]

    def check(self, domain: Domain) -> None:
        """Shape, order and finiteness, by the domain's own rule."""
        domain.fractional(self.ranges)

    def parts(self, domain: Domain) -> tuple[Part, ...]:
        """One, in which the ranges along the axes go in step."""
        low, high = domain.fractional(self.ranges)
        return (Part(Fraction(1), tuple(Given(a, b) for a, b in zip(low.T, high.T, strict=True))),)

    def describe(self) -> str:
        """The queries in words."""
        return f"{len(self.ranges)} given ranges"

    def to_text(self) -> str:
        """All of them."""
        rows = (", ".join(map(plain_number, row)) for row in self.ranges.tolist())
        return f"ranges([{', '.join(f'({row})' for row in rows)}])"

    def spec(self) -> dict[str, Any]:
        """Their number; the ranges themselves matter only to the plan."""
        return {"kind": "given ranges", "count": len(self.ranges)}


@dataclass(frozen=True, eq=False)
class MatrixQueries(Workload):
    """Any linear queries: a (sparse) matrix with one row a query and one column a cell, in C order."""

    matrix: Any

    def check(self, domain: Domain) -> None:
        """One column a cell."""
        if self.matrix.shape[1] != domain.size:
            raise InvalidInput(
                f"matrix has {self.matrix.shape[1]} columns, but the domain has {domain.size} cells: one column a cell."
            )

    def count(self, domain: Domain) -> int:
        """The number of rows."""
        del domain
        return int(self.matrix.shape[0])

    def weight(self, domain: Domain) -> Fraction:
        """Likewise."""
        return Fraction(self.count(domain))

    def gram(self, domain: Domain) -> Floats:
        """The matrix's own."""
        del domain
        return np.asarray((self.matrix.T @ self.matrix).todense()) / self.matrix.shape[0]

    def partition(self, domain: Domain) -> Integers | None:
        """Where every cell has a one in one row at the most."""
        del domain
        entries = self.matrix.tocoo()
        there = entries.data != 0
        cells, rows = entries.col[there], entries.row[there]
        if (entries.data[there] != 1).any() or len(np.unique(cells)) < len(cells):
            return None
        of = np.full(self.matrix.shape[1], self.matrix.shape[0], dtype=np.int64)
        of[cells] = rows
        return np.unique(of, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def error_terms(self, noise: Coefficients, domain: Domain) -> list[float]:
        """Row by row."""
        del domain
        return noise.query_terms(self.matrix)

    def mean_square(self, values: Floats, domain: Domain) -> float:
        """Row by row."""
        del domain
        return float(((self.matrix @ values.ravel()) ** 2).mean())

    def describe(self) -> str:
        """The queries in words."""
        return f"{self.matrix.shape[0]} given linear queries"

    def spec(self) -> dict[str, Any]:
        """Their number; the matrix itself matters only to the plan."""
        return {"kind": "given queries", "count": int(self.matrix.shape[0])}


def require_order(domain: Domain, asked: str, instead: str = "") -> None:
    """Refuse axes whose cells lie in no order, by name, and say what to use instead."""
    for axis in domain.axes:
        if not axis.ordered:
            along = f" along it, as in sf.ask(…, {axis.name}=sf.histogram())," if domain.ndim > 1 else ""
            raise InvalidInput(
                f"{asked} need an order, and the labels of axis {axis.name!r} have none. Nothing was computed. Use "
                f"{instead or f'sf.histogram(){along} or sf.queries(matrix)'}."
            )


def histogram() -> Workload:
    """Every cell by itself.

    >>> sf.histogram().count(sf.Grid(bounds=(0, 0, 1, 1), shape=(8, 8)))
    64
    """
    return ProductQueries(CELLS)


def prefixes() -> Workload:
    """Every range that begins at the lower end of each axis: the distribution function.

    >>> sf.prefixes().count(sf.Line(0, 24, cells=24))
    24
    """
    return ProductQueries(PREFIXES)


def ranges(given: ArrayLike | None = None) -> Workload:
    """All ranges (boxes of whole cells), or the given ones in the domain's units.

    >>> sf.ranges([(0, 6), (6, 12)]).count(sf.Line(0, 24, cells=24))
    2
    """
    if given is None:
        return ProductQueries(RANGES)
    try:
        array = np.atleast_2d(np.asarray(given, dtype=np.float64))
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidInput("ranges must be numbers: one row (lo…, hi…) a range.") from error
    if array.ndim != 2 or array.size == 0:
        raise InvalidInput("ranges is empty or has too many dimensions: give one row (lo…, hi…) a range.")
    return GivenRanges(array)


def queries(matrix: Any) -> Workload:
    """Any linear queries, one row each, over the cells in C order; dense or SciPy sparse.

    >>> sf.queries([[1, 1, 0], [0, 0, 1]]).count(sf.Line(0, 3, cells=3))
    2
    """
    try:
        table = scipy.sparse.csr_matrix(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("matrix must be a two-dimensional array or sparse matrix of numbers.") from error
    if table.shape[0] == 0 or not np.isfinite(table.data).all():
        raise InvalidInput("matrix must have at least one row, and finite entries alone.")
    return MatrixQueries(table)
