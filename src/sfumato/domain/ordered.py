"""Axes whose cells follow one another between edges: what ranges, gaps and pictures ask of them.

Everything is settled by comparison with the edges, half-open cells [e_i, e_{i+1}), and values outside are clamped to
the ends. The edges are doubles, or whole numbers of microseconds.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain.axis import MOST_PAIRS, Axis
from sfumato.errors import TooLarge
from sfumato.exact import positive_fraction


class Ordered(Axis):
    """An axis with edges. Values of its own kind (numbers, times) are first put on its scale, that of the edges."""

    ordered = True
    closed = True
    """Whether the upper end itself belongs to the axis."""

    @property
    @abstractmethod
    def edges(self) -> NDArray[Any]:
        """The ``cells + 1`` edges, strictly increasing and read-only."""

    @property
    def ends(self) -> tuple[Any, Any]:
        """The first edge and the last."""
        return self.edges[0], self.edges[-1]

    @abstractmethod
    def scale(self, values: ArrayLike) -> NDArray[Any]:
        """Values of the axis's own kind as numbers that compare with its edges; refused where they are none."""

    @abstractmethod
    def written(self, value: Any) -> str:
        """A number on the scale, as people write it."""

    @abstractmethod
    def cells_at(self, scaled: NDArray[Any]) -> NDArray[np.int64]:
        """The cell of each number on the scale."""

    def locate(self, values: ArrayLike) -> NDArray[np.int64]:
        """The cell of each value, by comparison with the edges. Values outside are clamped to the ends."""
        return self.cells_at(self.scale(values))

    def outside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values lie beyond the edges."""
        return self.beyond(self.scale(values))

    def beyond(self, scaled: NDArray[Any]) -> NDArray[np.bool_]:
        """Which numbers on the scale do."""
        low, high = self.ends
        beyond: NDArray[np.bool_] = (scaled < low) | ((scaled > high) if self.closed else (scaled >= high))
        return beyond

    def coordinate(self, values: ArrayLike) -> NDArray[np.float64]:
        """Values to cell coordinates 0 … cells: clipped, linear between the edges, exact on them."""
        return self.place(self.scale(values))

    def place(self, scaled: NDArray[Any]) -> NDArray[np.float64]:
        """The same of numbers on the scale."""
        scaled = np.clip(scaled, *self.ends)
        cell = self.cells_at(scaled)
        left, right = self.edges[cell], self.edges[cell + 1]
        coordinates: NDArray[np.float64] = cell + (scaled - left) / (right - left)
        return coordinates

    def covered(self, low: ArrayLike, high: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(inside, touched): the first cell and the one after the last of those that [low, high) holds whole, and of
        those that it meets. Settled by the edges alone, as the cell of a value is; an empty interval meets no cell.
        """
        return self.cover(self.scale(low), self.scale(high))

    def cover(self, low: NDArray[Any], high: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same of numbers on the scale."""
        edges = self.edges
        first, last = (np.clip(end, edges[0], edges[-1]) for end in (low, high))
        begin, end = self.cells_at(first), self.cells_at(last)
        end += last == edges[-1]  # nothing lies beyond the last cell
        touched = np.stack([begin, np.where(first < last, end + (last > edges[end]), begin)], axis=-1)
        start = np.minimum(begin + (first > edges[begin]), touched[..., 1])
        inside = np.stack([start, np.maximum(start, np.minimum(end, touched[..., 1]))], axis=-1)
        return inside, touched

    def accumulate(self, values: NDArray[Any], cells: NDArray[np.int64]) -> None:
        """Turn each number in ``cells`` into ``number * self.cells + cell of the value``, in place."""
        self.add(self.scale(values), cells)

    def add(self, scaled: NDArray[Any], cells: NDArray[np.int64]) -> None:
        """The same of numbers on the scale."""
        np.multiply(cells, self.cells, out=cells)
        np.add(cells, self.cells_at(scaled), out=cells)

    def take(self, held: NDArray[Any], cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The same of values as counting holds them; and which of these lie beyond the edges."""
        self.add(held, cells)
        return self.beyond(held)

    def length(self, delta: Any) -> Fraction:
        """A distance along the axis, in the units of its scale."""
        return positive_fraction(delta, "delta")

    def reach(self, delta: Any) -> NDArray[np.int64]:
        """For every cell the last one that holds a value less than delta from one of its own: at least the next cell,
        which it touches.
        """
        return reached(self.edges, self.length(delta))

    def near(self, delta: Any) -> NDArray[np.int64]:
        """Every pair of cells u < v with a gap below delta between them, and touching cells: one row a pair."""
        last = self.reach(delta)
        return pairs_up_to(last, self.name)

    def cell_names(self) -> list[str]:
        """The cells as half-open intervals."""
        ends = [self.written(edge) for edge in self.edges]
        return [f"[{low}, {high})" for low, high in pairwise(ends)]


def reached(edges: NDArray[Any], delta: Fraction) -> NDArray[np.int64]:
    """For every cell i the last cell j with e_j - e_{i+1} < delta, exactly.

    Rounding keeps the order: a rounded gap below the rounded delta belongs to a gap below delta, one above it to a gap
    that is not below. Where both round to the same number, fractions decide.
    """
    n, exact = len(edges) - 1, edges.dtype.kind == "i"
    first, right = edges[:-1], edges[1:]
    if exact:  # e_j < e_{i+1} + delta, in whole numbers
        most = int(edges[-1] - edges[0]) + 1
        bound = min(-(-delta.numerator // delta.denominator), most)  # whole numbers below delta are below its ceiling
        return np.maximum(np.searchsorted(first, right + bound, side="left") - 1, _next(n))
    rounded = _double(delta)

    def near(cells: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
        gap = first[others] - right[cells]
        below: NDArray[np.bool_] = gap < rounded
        for at in np.flatnonzero(gap == rounded):
            below[at] = Fraction(float(first[others[at]])) - Fraction(float(right[cells[at]])) < delta
        return below

    last = np.maximum(np.searchsorted(first, right + rounded, side="left") - 1, _next(n))
    while True:  # the sum was rounded: look one further, and one back
        cells = np.flatnonzero(last < n - 1)
        more = cells[near(cells, last[cells] + 1)]
        last[more] += 1
        if not len(more):
            break
    while True:
        cells = np.flatnonzero(last > _next(n))
        less = cells[~near(cells, last[cells])]
        last[less] -= 1
        if not len(less):
            return last


def _double(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def _next(n: int) -> NDArray[np.int64]:
    return np.minimum(np.arange(n, dtype=np.int64) + 1, n - 1)


def pairs_up_to(last: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    """Every cell with every later one up to the last that it reaches."""
    cells = np.arange(len(last), dtype=np.int64)
    many = last - cells
    total = int(many.sum())
    if total > MOST_PAIRS:
        raise TooLarge(
            f"Axis {name!r}: {total:,} pairs of cells are near each other, too many to list (at most {MOST_PAIRS:,}). "
            "Use a smaller delta, or fewer cells."
        )
    u = np.repeat(cells, many)
    v = u + 1 + np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(many) - many, many)
    return np.stack([u, v], axis=-1)
