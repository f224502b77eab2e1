"""Workloads: all cells, ranges, prefixes, given ranges, or any matrix of queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sfumato._types import Floats
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.linear.estimator import box_weights
from sfumato.workload.axis import AxisQueries


class Coefficients(Protocol):
    """Noise in parts, each with its scale, that knows how strongly queries feel it. A workload asks in its own way."""

    def product_terms(self, kind: AxisQueries) -> list[float]:
        """For every part, the mean of the squared coefficients over all products of queries of one kind."""

    def range_terms(self, low: Floats, high: Floats) -> list[float]:
        """The same over boxes in cell coordinates."""

    def query_terms(self, matrix: Any) -> list[float]:
        """The same over the rows of a sparse matrix."""


class Workload(ABC):
    """A set of linear queries on the counts, each as important as the next. It is public and knows no data.

    >>> sf.ranges().count(sf.Line(0, 4, cells=4)), sf.histogram().count(sf.Line(0, 4, cells=4))
    (10, 4)
    """

    @abstractmethod
    def check(self, domain: Domain) -> None:
        """Refuse a domain on which these queries make no sense."""

    @abstractmethod
    def count(self, domain: Domain) -> int:
        """The number of queries."""

    @abstractmethod
    def gram(self, domain: Domain) -> Floats:
        """WᵀW over the number of queries, dense: all that a squared error knows of a workload. For small domains."""

    @abstractmethod
    def error_terms(self, noise: Coefficients, domain: Domain) -> list[float]:
        """The mean over the queries of the squared coefficients of each part of the noise."""

    @abstractmethod
    def describe(self) -> str:
        """The queries in words."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What of the workload goes into a file: enough to say what the plan was made for."""


@dataclass(frozen=True)
class ProductQueries(Workload):
    """The same kind of query along every axis: cells, boxes, or boxes that begin at the lower corner. Never written
    out.
    """

    kind: AxisQueries

    def check(self, domain: Domain) -> None:
        """Ranges and prefixes need an order."""
        if self.kind is not AxisQueries.CELLS and not domain.is_ordered:
            raise InvalidInput(
                f"{self.describe()} need a domain whose axes are all intervals; labels have no order. "
                "Use sf.histogram() or sf.queries(matrix)."
            )

    def count(self, domain: Domain) -> int:
        """The product over the axes."""
        total = 1
        for n in domain.shape:
            total *= self.kind.count(n)
        return total

    def gram(self, domain: Domain) -> Floats:
        """The Kronecker product of those along the axes, in closed form."""
        gram: Floats = np.ones((1, 1))
        for n in domain.shape:
            gram = np.asarray(np.kron(gram, self.kind.gram(n)), dtype=np.float64)
        return gram

    def error_terms(self, noise: Coefficients, domain: Domain) -> list[float]:
        """In closed forms, by kind."""
        del domain
        return noise.product_terms(self.kind)

    def describe(self) -> str:
        """The queries in words."""
        return {"cells": "single cells", "ranges": "all ranges", "prefixes": "all prefixes"}[self.kind.value]

    def spec(self) -> dict[str, Any]:
        """The kind alone."""
        return {"kind": self.kind.value}


@dataclass(frozen=True, eq=False)
class GivenRanges(Workload):
    """Ranges that the user listed, in the domain's units: (lo, hi) on a line, (x0, y0, x1, y1) on a grid."""

    ranges: NDArray[np.float64]

    def check(self, domain: Domain) -> None:
        """Shape, order and finiteness, by the domain's own rule."""
        domain.fractional(self.ranges)

    def count(self, domain: Domain) -> int:
        """The length of the list."""
        del domain
        return len(self.ranges)

    def gram(self, domain: Domain) -> Floats:
        """From the share of every cell in every range."""
        weights = box_weights(domain.shape, *domain.fractional(self.ranges))
        return np.asarray(weights.T @ weights / len(weights), dtype=np.float64)

    def error_terms(self, noise: Coefficients, domain: Domain) -> list[float]:
        """Range by range."""
        return noise.range_terms(*domain.fractional(self.ranges))

    def describe(self) -> str:
        """The queries in words."""
        return f"{len(self.ranges)} given ranges"

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

    def gram(self, domain: Domain) -> Floats:
        """The matrix's own."""
        del domain
        return np.asarray((self.matrix.T @ self.matrix).todense()) / self.matrix.shape[0]

    def error_terms(self, noise: Coefficients, domain: Domain) -> list[float]:
        """Row by row."""
        del domain
        return noise.query_terms(self.matrix)

    def describe(self) -> str:
        """The queries in words."""
        return f"{self.matrix.shape[0]} given linear queries"

    def spec(self) -> dict[str, Any]:
        """Their number; the matrix itself matters only to the plan."""
        return {"kind": "given queries", "count": int(self.matrix.shape[0])}


def histogram() -> Workload:
    """Every cell by itself.

    >>> sf.histogram().count(sf.Grid(bounds=(0, 0, 1, 1), shape=(8, 8)))
    64
    """
    return ProductQueries(AxisQueries.CELLS)


def prefixes() -> Workload:
    """Every range that begins at the lower end of each axis: the distribution function.

    >>> sf.prefixes().count(sf.Line(0, 24, cells=24))
    24
    """
    return ProductQueries(AxisQueries.PREFIXES)


def ranges(given: ArrayLike | None = None) -> Workload:
    """All ranges (boxes of whole cells), or the given ones in the domain's units.

    >>> sf.ranges([(0, 6), (6, 12)]).count(sf.Line(0, 24, cells=24))
    2
    """
    if given is None:
        return ProductQueries(AxisQueries.RANGES)
    try:
        array = np.atleast_2d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError) as error:
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
