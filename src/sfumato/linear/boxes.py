"""Sums over boxes of cells, for many boxes at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats


class SummedArea:
    """Sums over the boxes of an array from sums over its lower corners: 2^d look-ups a box, whatever its size."""

    def __init__(self, values: NDArray[np.int64] | Floats) -> None:
        table = np.zeros(tuple(n + 1 for n in values.shape), dtype=values.dtype)
        inner = table[(slice(1, None),) * values.ndim]
        inner[...] = values
        for axis in range(values.ndim):
            np.cumsum(inner, axis=axis, out=inner)
        self._table = table

    def sums(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64] | Floats:
        """The sums over boxes of whole cells, `start` to `stop` of shape (boxes, axes)."""
        total = np.zeros(len(start), dtype=self._table.dtype)
        stop = np.maximum(stop, start)
        for corner in product((False, True), repeat=start.shape[1]):
            at = tuple((stop if upper else start)[:, i] for i, upper in enumerate(corner))
            total += self._table[at] if sum(corner) % 2 == start.shape[1] % 2 else -self._table[at]
        return total

    def tiles(self, cuts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | Floats:
        """The sums over all boxes between the cuts along every axis, as an array."""
        corners = self._table[np.ix_(*cuts)]
        for axis in range(corners.ndim):
            corners = np.diff(corners, axis=axis)
        return corners

    def fractional_sums(self, low: Floats, high: Floats) -> Floats:
        """The sums over boxes that may cut cells, each cell counting in proportion."""
        total = np.zeros(len(low))
        for weight, start, stop in pieces(low, high):
            total += weight * self.sums(start, stop)
        return total


def pieces(low: Floats, high: Floats) -> Iterator[tuple[Floats, NDArray[np.int64], NDArray[np.int64]]]:
    """A box with cut cells as 3^d boxes of whole cells: (the share of its cells, start, stop).

    Along every axis there are the cell that is cut below, the whole cells, and the cell that is cut above.
    """
    first, last = np.ceil(low), np.floor(high)
    inside = last >= first  # false where both ends lie in one cell
    parts = [
        (np.where(inside, first - low, high - low), np.floor(low), np.floor(low) + 1),
        (np.ones_like(low), first, np.maximum(last, first)),
        (np.where(inside, high - last, 0.0), last, last + 1),
    ]
    for choice in product(range(3), repeat=low.shape[1]):
        weight = np.ones(len(low))
        start, stop = np.empty(low.shape, dtype=np.int64), np.empty(low.shape, dtype=np.int64)
        for axis, part in enumerate(choice):
            share, begin, end = (a[:, axis] for a in parts[part])
            weight = weight * share
            used = share > 0
            start[:, axis], stop[:, axis] = np.where(used, begin, 0), np.where(used, end, 0)
        yield weight, start, stop
