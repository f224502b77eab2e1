"""What is left of a line of values when their mean is taken off: noise that leaves sums over the whole line alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.linear.elementary import Difference, Identity
from sfumato.linear.operator import Array, Operator
from sfumato.linear.queries import AllOfAKind

# Up to so many cells the coefficients of a range are listed.
LISTED = 4_096


class Centred(Operator):
    """I - J/n: every value less the mean of all n. Symmetric, a projection; what sums to zero it leaves as it is."""

    def __init__(self, n: int) -> None:
        self.rows = self.cols = n

    def forward(self, x: Array) -> Array:
        """Less the mean."""
        return x - np.asarray(x, dtype=np.float64).mean(axis=-1, keepdims=True)

    transpose = forward  # type: ignore[assignment]

    def inverts(self) -> Operator:
        """Whole changes that sum to zero, which are those that it passes on exactly, are sums of differences."""
        return Difference(self.rows)

    @property
    def largest_coefficient(self) -> float:
        """A cell against the mean."""
        return 1.0 - 1.0 / self.rows

    @property
    def largest_of_any(self) -> float:
        """The same."""
        return self.largest_coefficient

    def range_terms(self, low: Floats, high: Floats) -> tuple[Array, Array] | None:
        """The weight of every cell less that of the mean, where they are few; as often as each occurs."""
        if self.rows > LISTED:
            return None
        weights, counts = Identity(self.rows).range_terms(low, high)
        mean = ((high - low) / self.rows)[..., None]
        counts = np.where(weights == 0, 0, counts)  # a cell that is not there is none
        rest = self.rows - counts.sum(axis=-1, keepdims=True)
        return np.concatenate([weights - mean, -mean], axis=-1), np.concatenate([counts, rest], axis=-1)

    def range_moments(self, low: Floats, high: Floats) -> tuple[Array, Array]:
        """By the sums of powers of the weights."""
        weights, counts = Identity(self.rows).range_terms(low, high)
        first, second, third, fourth = ((counts * weights**k).sum(axis=-1) for k in (1, 2, 3, 4))
        mean = first / self.rows
        left = second - first * mean
        powers = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * self.rows * mean**4
        return np.maximum(left, 0.0), np.maximum(powers, 0.0)

    def group_terms(self, of: NDArray[np.int64]) -> tuple[Array, Array]:
        """Of every group its own cells, and the others."""
        sizes = np.bincount(of)[:, None]
        share = sizes / self.rows
        return np.concatenate([1 - share, -share], axis=-1), np.concatenate([sizes, self.rows - sizes], axis=-1)

    def mean_variance(self, queries: AllOfAKind) -> float:
        """How far the cells of a query are from their mean."""
        return float(queries.spreads(self.rows)[0].mean())


def without_mean(flow: Integers, axis: int) -> Integers:
    """Whole numbers less the mean along an axis, in whole numbers that sum to zero: what does not divide evenly is
    handed to the first ones, by the sum alone. So f(η + z) = f(η) + z to the last bit where z sums to zero.
    """
    n = flow.shape[axis]
    each, rest = np.divmod(flow.sum(axis=axis, keepdims=True), n)
    first = np.arange(n).reshape([-1 if i == axis else 1 for i in range(flow.ndim)])
    return flow - each - (first < rest)
