"""The queries along one axis: what all kinds offer, and all cells, all ranges, all prefixes in closed form."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.linear import Operator
from sfumato.linear.estimator import Estimator, range_weights
from sfumato.linear.queries import PrefixVariances

# Up to this length an average over all queries is exact; beyond it, it is taken over this many of them, spread evenly
# by a fixed rule, each with its exact variance: good to a few tenths of a per cent.
EXACT_LENGTH = 1024
SAMPLED_QUERIES = 1 << 15
# A difference of sums smaller than this beside them is rounding.
_ROUNDED = 1e-12


class AxisQueries(ABC):
    """Queries along an axis of n cells, all alike important; frozen values.

    >>> RANGES.count(4), TOTAL.count(4), Blocks(3).count(4)
    (10, 1, 2)
    """

    ordered: ClassVar[bool] = True
    """Whether they mean something only where the cells have an order."""
    partial: ClassVar[bool] = True
    """Whether some of them add up several cells and leave out others, for which strategies have something to gain."""

    @property
    def lengths(self) -> frozenset[int]:
        """How long the equal blocks of cells are that are asked for, where they are such blocks."""
        return frozenset()

    @property
    def steps(self) -> int | None:
        """How many there are where they go in step with those along other axes; None where every one meets every
        one.
        """
        return None

    def at(self, step: int) -> AxisQueries:
        """The one query of a step."""
        del step
        return self

    @abstractmethod
    def count(self, n: int) -> int:
        """How many queries there are."""

    @abstractmethod
    def inclusion(self, n: int) -> Floats:
        """The share of queries that contain each cell."""

    @abstractmethod
    def together(self, n: int, u: Integers, v: Integers) -> Floats:
        """The share of queries that contain both cells of each pair: the Gram matrix over the number of queries."""

    @abstractmethod
    def root(self, values: NDArray[Any]) -> Floats:
        """R·values along the last axis, for an R with RᵀR the Gram matrix: squares of it add up to a mean square."""

    @abstractmethod
    def mean_variance(self, estimator: Operator) -> float:
        """The average over all queries q of ‖Mᵀq‖²: the variance of an answer for noise of variance one."""

    @abstractmethod
    def explained(self, n: int, length: int) -> float:
        """tr(G·Π), G being the Gram matrix and Π the projection onto what is constant on blocks of `length` cells."""

    @abstractmethod
    def sample(self, n: int) -> tuple[Floats, Floats]:
        """Queries spread evenly by a rule that knows nothing but n, as ranges in cell coordinates."""

    @abstractmethod
    def nuclear_norm(self, n: int) -> float | None:
        """The sum of the singular values of all queries, over the root of their number; None: no closed form."""

    @abstractmethod
    def describe(self) -> str:
        """The queries in words."""

    def listed(self, n: int) -> tuple[Floats, Floats] | None:
        """All of them as ranges in cell coordinates, where they are few; evenly thinned out beyond SAMPLED_QUERIES."""
        del n
        return None

    def gram(self, n: int) -> Floats:
        """WᵀW over the number of queries: the share of queries that contain both of any two cells."""
        return self.together(n, np.arange(n)[:, None], np.arange(n)[None, :])

    def cut(self, n: int, u: Integers, v: Integers) -> float:
        """How many of the pairs (u, v) have exactly one cell in a query, on average."""
        return float((self.together(n, u, u) + self.together(n, v, v) - 2 * self.together(n, u, v)).sum())

    def mean_square(self, values: NDArray[Any]) -> Floats:
        """The average over all queries of (query · values)², for every row of `values`."""
        squares: Floats = (self.root(values) ** 2).sum(axis=-1)
        return squares

    def spreads(self, n: int) -> tuple[Floats, Floats]:
        """(the mean of ‖q - q̄‖², the mean of q̄²) over the queries q, q̄ being the mean of q along the axis; of queries
        in step those of each.
        """
        cell = np.arange(n)
        square, whole = float(self.together(n, cell, cell).sum()), self.explained(n, n)
        within = square - whole
        return np.array([within if within > _ROUNDED * square else 0.0]), np.array([whole / n])

    def variances(self, estimator: Operator) -> float | Floats:
        """`mean_variance`; for queries in step that of each, to be multiplied with those along the other axes first."""
        return self.mean_variance(estimator)

    def weights(self, n: int) -> Floats:
        """The share of each cell in each query, one row a query; for few queries."""
        return range_weights(n, *(self.listed(n) or self.sample(n)))

    def held(self, n: int, cell: int) -> float | Floats:
        """The mean square of a query's share of a cell; for queries in step that of each."""
        return float(self.together(n, np.array(cell), np.array(cell)))


class EveryOne(AxisQueries):
    """All cells, all ranges or all prefixes: too many to list, and in closed form for most estimators."""

    name: ClassVar[str]

    def mean_variance(self, estimator: Operator) -> float:
        """The estimator M says it: closed for the identity, differences and sums of cells or bins, exact for hats and
        up to EXACT_LENGTH cells, and beyond that an average over SAMPLED_QUERIES of them.
        """
        return estimator.mean_variance(self)

    @abstractmethod
    def of_shapes(self, n: int, squares: Floats, sums: Floats, sums2: Floats) -> float:
        """The mean variance from (Σ c², Σ S, Σ S²) of every column c of M, S being the running sums of c."""

    @abstractmethod
    def by_prefixes(self, strategy: PrefixVariances) -> float:
        """The mean variance from those of cells and prefixes; exact at any length."""

    def measured(self, estimator: Estimator) -> float:
        """The mean variance without a closed form: exact up to EXACT_LENGTH cells, then over SAMPLED_QUERIES queries.

        What has a key is measured once.
        """
        key = estimator.key
        if key is None:
            return self._measured(estimator)
        if (self.name, key) not in _MEANS:
            _MEANS[self.name, key] = self._measured(estimator)
        return _MEANS[self.name, key]

    def _measured(self, estimator: Estimator) -> float:
        n = estimator.rows
        if n > EXACT_LENGTH:
            return float(estimator.range_moments(*self.sample(n))[0].mean())
        step = max(1, (1 << 20) // n)
        total = 0.0
        for start in range(0, estimator.cols, step):
            unit = np.eye(min(step, estimator.cols - start), estimator.cols, k=start)
            total += float(self.mean_square(estimator.forward(unit)).sum())
        return total

    def explained(self, n: int, length: int) -> float:
        """The mean over the queries of Σ over the blocks of overlap²/length."""
        count = n // length
        whole = self._overlaps(n, length, count, length * count * (count - 1) // 2, length**2 * _squares(count))
        rest = n - count * length  # the last block may be cut short
        return whole + (self._overlaps(n, rest, 1, n - rest, (n - rest) ** 2) if rest else 0.0)

    @abstractmethod
    def _overlaps(self, n: int, b: int, count: int, starts: int, squares: int) -> float:
        """That of `count` blocks of b cells, from the sum of their first cells and that of the squares of these."""


@dataclass(frozen=True)
class Cells(EveryOne):
    """Every cell by itself."""

    name: ClassVar[str] = "cells"
    ordered: ClassVar[bool] = False
    partial: ClassVar[bool] = False

    def count(self, n: int) -> int:
        """One a cell."""
        return n

    def inclusion(self, n: int) -> Floats:
        """One of n."""
        return np.full(n, 1.0 / n)

    def together(self, n: int, u: Integers, v: Integers) -> Floats:
        """A cell with itself alone."""
        return (u == v) / n

    def root(self, values: NDArray[Any]) -> Floats:
        """The cells."""
        return np.asarray(values / math.sqrt(values.shape[-1]))

    def of_shapes(self, n: int, squares: Floats, sums: Floats, sums2: Floats) -> float:
        """Σ c²."""
        del sums, sums2
        return float(squares.sum()) / n

    def by_prefixes(self, strategy: PrefixVariances) -> float:
        """The mean over the cells."""
        return float(strategy.cell_variances().mean())

    def sample(self, n: int) -> tuple[Floats, Floats]:
        """Cells at even distances."""
        high = _even_ends(n)
        return high - 1, high

    def nuclear_norm(self, n: int) -> float:
        """That of the identity."""
        return math.sqrt(n)

    def describe(self) -> str:
        """In words."""
        return "single cells"

    def _overlaps(self, n: int, b: int, count: int, starts: int, squares: int) -> float:
        del b, starts, squares
        return count / n


@dataclass(frozen=True)
class Prefixes(EveryOne):
    """Every range that begins at the lower end."""

    name: ClassVar[str] = "prefixes"

    def count(self, n: int) -> int:
        """One for every end."""
        return n

    def inclusion(self, n: int) -> Floats:
        """Those that end behind the cell."""
        return (n - np.arange(n, dtype=np.float64)) / n

    def together(self, n: int, u: Integers, v: Integers) -> Floats:
        """Those that end behind the upper one."""
        return np.asarray((n - np.maximum(u, v).astype(np.float64)) / n)

    def root(self, values: NDArray[Any]) -> Floats:
        """Running sums."""
        return np.asarray(np.cumsum(values, axis=-1) / math.sqrt(values.shape[-1]))

    def of_shapes(self, n: int, squares: Floats, sums: Floats, sums2: Floats) -> float:
        """Σ S²."""
        del squares, sums
        return float(sums2.sum()) / n

    def by_prefixes(self, strategy: PrefixVariances) -> float:
        """Their mean."""
        return float(strategy.prefix_variances().mean())

    def sample(self, n: int) -> tuple[Floats, Floats]:
        """Ends at even distances."""
        high = _even_ends(n)
        return np.zeros_like(high), high

    def nuclear_norm(self, n: int) -> float:
        """The Gram matrix is the inverse of a second difference with one end held, whose eigenvalues are known."""
        k = np.arange(1, n + 1)
        return float((0.5 / np.sin(math.pi * (2 * k - 1) / (2 * (2 * n + 1)))).sum() / math.sqrt(n))

    def describe(self) -> str:
        """In words."""
        return "all prefixes"

    def _overlaps(self, n: int, b: int, count: int, starts: int, squares: int) -> float:
        del squares
        after = count * n - starts  # Σ (n - start)
        return (b**2 * after - count * (b**2 * (b - 1) - _squares(b))) / (n * b)


@dataclass(frozen=True)
class Ranges(EveryOne):
    """Every range of one cell or more."""

    name: ClassVar[str] = "ranges"

    def count(self, n: int) -> int:
        """One for every two different ends."""
        return n * (n + 1) // 2

    def inclusion(self, n: int) -> Floats:
        """Those that begin before the cell and end behind it."""
        cell = np.arange(n, dtype=np.float64)
        return np.asarray((cell + 1) * (n - cell) / self.count(n))

    def together(self, n: int, u: Integers, v: Integers) -> Floats:
        """Those that begin before the lower one and end behind the upper one."""
        low, high = np.minimum(u, v).astype(np.float64), np.maximum(u, v).astype(np.float64)
        return np.asarray((low + 1) * (n - high) / self.count(n))

    def root(self, values: NDArray[Any]) -> Floats:
        """A range is the difference of two of the n + 1 running sums S, of which S_0 = 0, and the squares of all
        differences add up to n + 1 times those of the distances from the mean.
        """
        n = values.shape[-1]
        sums = np.concatenate([np.zeros_like(values[..., :1]), np.cumsum(values, axis=-1)], axis=-1, dtype=np.float64)
        return np.asarray((sums - sums.mean(axis=-1, keepdims=True)) * math.sqrt((n + 1) / self.count(n)))

    def of_shapes(self, n: int, squares: Floats, sums: Floats, sums2: Floats) -> float:
        """(n + 1)·Σ S² - (Σ S)², over the n + 1 running sums."""
        del squares
        return float(((n + 1) * sums2 - sums**2).sum()) / self.count(n)

    def by_prefixes(self, strategy: PrefixVariances) -> float:
        """From the variances V of the n estimated prefix sums S and that of Σ S, which counts cell i n - i times: over
        the n + 1 prefixes, one of them empty, `Σ_{a<b} Var(S_b - S_a) = (n + 1)·Σ V - Var(Σ S)`.
        """
        variances, n = strategy.prefix_variances(), strategy.cols
        summed = float((strategy.pinv_transpose(np.arange(n, 0, -1.0)) ** 2).sum())
        return ((n + 1) * float(variances.sum()) - summed) / self.count(n)

    def sample(self, n: int) -> tuple[Floats, Floats]:
        """Two ends, the second by the golden ratio, so that no two points come close."""
        index = np.arange(SAMPLED_QUERIES)
        first = (index + 0.5) / SAMPLED_QUERIES
        second = (0.5 + index * 0.6180339887498949) % 1.0
        a, b = np.floor(first * (n + 1)), np.floor(second * n)
        b = b + (b >= a)  # any of the n + 1 ends but a
        return np.minimum(a, b), np.maximum(a, b)

    def nuclear_norm(self, n: int) -> float:
        """The Gram matrix is n + 1 times the inverse of the second difference with both ends held."""
        k = np.arange(1, n + 1)
        return float(math.sqrt((n + 1) / self.count(n)) * (0.5 / np.sin(math.pi * k / (2 * (n + 1)))).sum())

    def describe(self) -> str:
        """In words."""
        return "all ranges"

    def _overlaps(self, n: int, b: int, count: int, starts: int, squares: int) -> float:
        least = _squares(b)
        most = b**2 * (b - 1) - least
        after = count * n - starts  # Σ (n - start)
        before = starts + count  # Σ (start + 1)
        both = count * n + (n - 1) * starts - squares  # Σ (start + 1)(n - start)
        overlap = b**2 * both + least * after - most * before - count * (b * (b - 1) // 2) ** 2
        return overlap / (self.count(n) * b)


CELLS, RANGES, PREFIXES = Cells(), Ranges(), Prefixes()


def _squares(count: int) -> int:
    """0² + 1² + … + (count - 1)²."""
    return (count - 1) * count * (2 * count - 1) // 6


def _even_ends(n: int) -> Floats:
    return np.floor((np.arange(SAMPLED_QUERIES) + 0.5) / SAMPLED_QUERIES * n) + 1


# Averages that were computed before: a plan asks for the same ones under every ε.
_MEANS: dict[tuple[str, tuple[object, ...]], float] = {}
