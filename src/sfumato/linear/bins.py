"""Bins of neighbouring cells on a line: sums over them, and what is said about bins seen from the cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.linear.operator import Array, Operator
from sfumato.linear.queries import AllOfAKind


class Bins(Operator):
    """The sums over bins of n cells; bin i holds the cells from cuts[i] to cuts[i+1]."""

    def __init__(self, cuts: NDArray[np.int64]) -> None:
        self.cuts = _rising(cuts)
        self.rows, self.cols = len(self.cuts) - 1, int(self.cuts[-1])

    largest_entry = 1

    def forward(self, x: Array) -> Array:
        """Sums."""
        return np.add.reduceat(x, self.cuts[:-1], axis=-1)

    def transpose(self, y: Array) -> Array:
        """Every cell gets what its bin holds."""
        return np.repeat(y, np.diff(self.cuts), axis=-1)


class Coarse(Operator):
    """An estimator over bins, spread evenly over their cells and weighted.

    A range over the cells is one over the bins, of which it cuts two in proportion: so whatever the inner operator
    (the identity, or differences of neighbouring bins) knows about ranges holds here.
    """

    def __init__(self, inner: Operator, cuts: NDArray[np.int64], weight: float = 1.0) -> None:
        self.cuts = _rising(cuts)
        if inner.rows != len(self.cuts) - 1:
            raise InvalidInput(f"an estimator over {inner.rows} bins needs {inner.rows + 1} cuts, not {len(cuts)}.")
        self.inner, self.weight = inner, weight
        self.rows, self.cols = int(self.cuts[-1]), inner.cols

    def forward(self, x: Array) -> Array:
        """The inner result, spread over the cells."""
        widths = np.diff(self.cuts)
        return np.repeat(self.inner.forward(x) * (self.weight / widths), widths, axis=-1)

    def transpose(self, y: Array) -> Array:
        """The mean of every bin, sent back."""
        means = np.add.reduceat(y, self.cuts[:-1], axis=-1) * (self.weight / np.diff(self.cuts))
        return self.inner.transpose(means)

    def range_terms(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Array, Array] | None:
        """Those of the range over the bins."""
        places = np.arange(len(self.cuts), dtype=np.float64)
        terms = self.inner.range_terms(np.interp(low, self.cuts, places), np.interp(high, self.cuts, places))
        return None if terms is None else (self.weight * terms[0], terms[1])

    def mean_variance(self, queries: AllOfAKind) -> float:
        """Closed where the inner operator knows the shapes of its columns over bins."""
        shapes = self.column_shapes()
        return queries.measured(self) if shapes is None else queries.of_shapes(self.rows, *shapes)

    @property
    def largest_coefficient(self) -> float:
        """That of the inner operator, which a small weight makes no larger."""
        return max(1.0, abs(self.weight)) * self.inner.largest_coefficient

    @property
    def fourth_is_exact(self) -> bool:
        """As for the inner operator."""
        return self.inner.fourth_is_exact

    def column_shapes(self) -> tuple[Array, Array, Array] | None:
        """For every column c, over the cells: (Σ c², Σ S, Σ S²), S being the running sums of c.

        With these three numbers the mean over all ranges is known.
        """
        shapes = self.inner.spread_shapes(np.diff(self.cuts).astype(np.float64))
        if shapes is None:
            return None
        return shapes[0] * self.weight**2, shapes[1] * self.weight, shapes[2] * self.weight**2


def _rising(cuts: NDArray[np.int64]) -> NDArray[np.int64]:
    array = np.asarray(cuts, dtype=np.int64)
    if array.ndim != 1 or len(array) < 2 or array[0] != 0 or (np.diff(array) <= 0).any():
        raise InvalidInput("cuts must rise from 0 to the number of cells.")
    return array
