"""The queries along one axis, with their Gram matrix and their averages in closed form."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.linear import Operator
from sfumato.linear.estimator import Estimator
from sfumato.linear.queries import PrefixVariances

# Up to this length an average over all queries is exact; beyond it, it is taken over this many of them, spread evenly
# by a fixed rule, each with its exact variance: good to a few tenths of a per cent.
EXACT_LENGTH = 1024
SAMPLED_QUERIES = 1 << 15


class AxisQueries(Enum):
    """All cells, all ranges or all prefixes of a line of n cells."""

    CELLS = "cells"
    RANGES = "ranges"
    PREFIXES = "prefixes"

    def count(self, n: int) -> int:
        """How many queries there are."""
        return n * (n + 1) // 2 if self is AxisQueries.RANGES else n

    def inclusion(self, n: int) -> NDArray[np.float64]:
        """The share of queries that contain each cell."""
        cell = np.arange(n, dtype=np.float64)
        if self is AxisQueries.CELLS:
            return np.full(n, 1.0 / n)
        if self is AxisQueries.PREFIXES:
            return (n - cell) / n
        return (cell + 1) * (n - cell) / self.count(n)

    def together(self, n: int, u: NDArray[np.int64], v: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of queries that contain both cells of each pair: the Gram matrix over the number of queries."""
        low, high = np.minimum(u, v).astype(np.float64), np.maximum(u, v).astype(np.float64)
        if self is AxisQueries.CELLS:
            return (u == v) / n
        if self is AxisQueries.PREFIXES:
            return (n - high) / n
        return (low + 1) * (n - high) / self.count(n)

    def mean_square(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The average over all queries of (query · values)², for every row of `values`."""
        n = values.shape[-1]
        if self is AxisQueries.CELLS:
            return (values**2).mean(axis=-1)
        sums = np.cumsum(values, axis=-1)
        square = (sums**2).sum(axis=-1)
        if self is AxisQueries.PREFIXES:
            return square / n
        # Σ_{a<b} (S_b - S_a)² over the n + 1 prefix sums, of which S_0 = 0.
        return ((n + 1) * square - sums.sum(axis=-1) ** 2) / self.count(n)

    def mean_variance(self, estimator: Operator) -> float:
        """The average over all queries q of ‖Mᵀq‖²: the variance of an answer for noise of variance one.

        The estimator M says it: closed for the identity, differences and sums of cells or bins, exact for hats and up
        to EXACT_LENGTH cells, and beyond that an average over SAMPLED_QUERIES of them.
        """
        return estimator.mean_variance(self)

    def gram(self, n: int) -> NDArray[np.float64]:
        """WᵀW over the number of queries: the share of queries that contain both of any two cells."""
        return self.together(n, np.arange(n)[:, None], np.arange(n)[None, :])

    def cut(self, n: int, u: NDArray[np.int64], v: NDArray[np.int64]) -> float:
        """How many of the pairs (u, v) have exactly one cell in a query, on average."""
        return float((self.together(n, u, u) + self.together(n, v, v) - 2 * self.together(n, u, v)).sum())

    def of_shapes(
        self, n: int, squares: NDArray[np.float64], sums: NDArray[np.float64], sums2: NDArray[np.float64]
    ) -> float:
        """The mean variance from (Σ c², Σ S, Σ S²) of every column c of M, S being the running sums of c."""
        if self is AxisQueries.CELLS:
            return float(squares.sum()) / n
        if self is AxisQueries.PREFIXES:
            return float(sums2.sum()) / n
        return float(((n + 1) * sums2 - sums**2).sum()) / self.count(n)

    def measured(self, estimator: Estimator) -> float:
        """The mean variance without a closed form: exact up to EXACT_LENGTH cells, then over SAMPLED_QUERIES queries.

        What has a key is measured once.
        """
        key = estimator.key
        if key is None:
            return self._measured(estimator)
        if (self.value, key) not in _MEANS:
            _MEANS[self.value, key] = self._measured(estimator)
        return _MEANS[self.value, key]

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

    def by_prefixes(self, strategy: PrefixVariances) -> float:
        """Exact at any length, from the variances V of the n estimated prefix sums S and that of Σ S, which counts cell
        i n - i times: over the n + 1 prefixes, one of them empty, `Σ_{a<b} Var(S_b - S_a) = (n + 1)·Σ V - Var(Σ S)`.
        """
        if self is AxisQueries.CELLS:
            return float(strategy.cell_variances().mean())
        variances = strategy.prefix_variances()
        if self is AxisQueries.PREFIXES:
            return float(variances.mean())
        n = strategy.cols
        summed = float((strategy.pinv_transpose(np.arange(n, 0, -1.0)) ** 2).sum())
        return ((n + 1) * float(variances.sum()) - summed) / self.count(n)

    def sample(self, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Queries spread evenly by a rule that knows nothing but n, as ranges in cell coordinates."""
        index = np.arange(SAMPLED_QUERIES)
        first = (index + 0.5) / SAMPLED_QUERIES
        second = (0.5 + index * 0.6180339887498949) % 1.0  # the golden ratio: no two points come close
        if self is AxisQueries.RANGES:
            a, b = np.floor(first * (n + 1)), np.floor(second * n)
            b = b + (b >= a)  # any of the n + 1 ends but a
            return np.minimum(a, b), np.maximum(a, b)
        high = np.floor(first * n) + 1
        return (high - 1 if self is AxisQueries.CELLS else np.zeros_like(high)), high


# Averages that were computed before: a plan asks for the same ones under every ε.
_MEANS: dict[tuple[str, tuple[object, ...]], float] = {}
