"""The queries along one axis, with their Gram matrix and their averages in closed form."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.linear import Difference, Identity, Operator, Prefix, PseudoInverse

# Up to this length an average over all queries is exact; beyond it, it is taken over this many of them, drawn by a
# fixed rule, each with its exact variance.
EXACT_LENGTH = 4096
SAMPLED_QUERIES = 4096


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

        Closed where the estimator M is the identity or a difference, exact up to EXACT_LENGTH cells, and beyond that an
        average over queries that are drawn by a fixed rule.
        """
        n = estimator.rows
        inner = estimator.strategy if isinstance(estimator, PseudoInverse) else estimator
        if isinstance(inner, Identity):
            return float(self.inclusion(n).sum())
        if isinstance(inner, Difference):
            return self._ends(n)
        if isinstance(inner, Prefix):
            outermost = self.together(
                n, np.array([0 if inner.reverse else n - 1]), np.array([0 if inner.reverse else n - 1])
            )
            return self._ends(n) + float(outermost[0])
        if n <= EXACT_LENGTH:
            step = max(1, (1 << 22) // n)
            total = 0.0
            for start in range(0, estimator.cols, step):
                unit = np.eye(min(step, estimator.cols - start), estimator.cols, k=start)
                total += float(self.mean_square(estimator.forward(unit)).sum())
            return total
        low, high = self.sample(n)
        return float(estimator.range_moments(low, high)[0].mean())

    def _ends(self, n: int) -> float:
        """How many edges between cells a query has at its ends, on average."""
        if self is AxisQueries.CELLS:
            return 2 * (n - 1) / n
        return 2 * (n - 1) / (n + 1) if self is AxisQueries.RANGES else (n - 1) / n

    def sample(self, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Queries drawn by a fixed rule that knows nothing but n, as ranges in cell coordinates."""
        rng = np.random.default_rng(n)
        if self is AxisQueries.RANGES:
            ends = rng.integers(0, n + 1, (4 * SAMPLED_QUERIES, 2))
            ends = np.sort(ends[ends[:, 0] != ends[:, 1]][:SAMPLED_QUERIES], axis=1)
            return ends[:, 0].astype(np.float64), ends[:, 1].astype(np.float64)
        high = rng.integers(1, n + 1, SAMPLED_QUERIES).astype(np.float64)
        return (high - 1 if self is AxisQueries.CELLS else np.zeros_like(high)), high
