"""Tables of some axes each, one after the other: what stands for the cells of a product too large to hold.

A table is told by its axes, rising; everything else is summed over. An axis of one cell says nothing and is in none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from operator import and_
from typing import Any

import numpy as np
from numpy.typing import NDArray

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Tables:
    """The axes of every table over a product of some shape; sizes are Python's integers, which do not wrap.

    >>> tables = Tables.holding((3, 1, 4, 2), [(2,), (0, 1), (0, 2), (3,)])
    >>> tables.sets, tables.sizes, tables.length
    (((0, 2), (3,)), (12, 2), 14)
    >>> tables.of_cells(np.ones(24, dtype=np.int64))[-2:].tolist(), tables.holds((1, 2)), tables.holds((2, 3))
    ([12, 12], True, False)
    """

    shape: tuple[int, ...]
    sets: tuple[Axes, ...]

    @classmethod
    def holding(cls, shape: Sequence[int], asked: Iterable[Axes]) -> Tables:
        """The tables that hold all that is asked: those that no other one holds, in order."""
        found = sorted({real(shape, axes) for axes in asked})
        having = _having(found)
        largest = [axes for axes in found if _all_of(axes, having, len(found)).bit_count() == 1]  # held by itself alone
        return cls(tuple(shape), tuple(largest))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each table has."""
        return tuple(math.prod(self.shape[i] for i in axes) for axes in self.sets)

    @property
    def length(self) -> int:
        """How many cells they have together."""
        return sum(self.sizes)

    def holds(self, axes: Axes) -> bool:
        """Whether some table has all of these axes."""
        return self._holder(axes) is not None

    def covers(self, other: Tables) -> bool:
        """Whether all tables of the other can be summed up from these."""
        return self.shape == other.shape and all(self.holds(axes) for axes in other.sets)

    def split(self, vector: NDArray[Any]) -> list[NDArray[Any]]:
        """Every table in its own shape."""
        parts = np.split(vector, np.cumsum(self.sizes)[:-1]) if self.sets else []
        return [part.reshape([self.shape[i] for i in axes]) for part, axes in zip(parts, self.sets, strict=True)]

    def table(self, vector: NDArray[Any], axes: Axes) -> NDArray[Any]:
        """The table of any axes that one table holds, summed up from the smallest such."""
        holder = self._holder(axes)
        if holder is None:
            raise LookupError(f"no table holds the axes {axes}")
        start = self._starts[holder]
        part = vector[start : start + self.sizes[holder]].reshape([self.shape[i] for i in self.sets[holder]])
        own = real(self.shape, axes)
        summed = part.sum(axis=tuple(at for at, i in enumerate(self.sets[holder]) if i not in own))
        return np.asarray(summed).reshape([self.shape[i] for i in axes])

    def of_tables(self, other: Tables, vector: NDArray[Any]) -> NDArray[Any]:
        """The same from tables that cover these."""
        if other == self:
            return vector
        return np.concatenate([np.zeros(0, vector.dtype), *(other.table(vector, axes).ravel() for axes in self.sets)])

    def of_cells(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same from all cells of the product, flat."""
        return self.of_tables(Tables.holding(self.shape, [tuple(range(len(self.shape)))]), cells)

    def add(self, vector: NDArray[np.int64], cells: NDArray[np.int64], weights: NDArray[np.int64] | int = 1) -> None:
        """Count records, given by the numbers of their cells in the product, into every table; each with its weight."""
        index: dict[int, NDArray[np.int64]] = {}
        rest = cells
        for axis in reversed(range(len(self.shape))):
            rest, index[axis] = np.divmod(rest, self.shape[axis])
        start = 0
        for axes, size in zip(self.sets, self.sizes, strict=True):
            place = np.zeros(len(cells), dtype=np.int64)
            for axis in axes:
                place *= self.shape[axis]
                place += index[axis]
            np.add.at(vector, place + start, weights)
            start += size

    def _holder(self, axes: Axes) -> int | None:
        holders = _all_of(real(self.shape, axes), self._having, len(self.sets))
        return self._by_size[(holders & -holders).bit_length() - 1] if holders else None

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(self.sizes)]

    @cached_property
    def _by_size(self) -> list[int]:
        return sorted(range(len(self.sets)), key=self.sizes.__getitem__)

    @cached_property
    def _having(self) -> dict[int, int]:
        return _having([self.sets[at] for at in self._by_size])


def _having(tables: Sequence[Axes]) -> dict[int, int]:
    """For every axis the tables that have it, as the bits of a whole number: thousands are then compared at once."""
    found: dict[int, bytearray] = {}
    for at, axes in enumerate(tables):
        for i in axes:
            found.setdefault(i, bytearray(len(tables) // 8 + 1))[at >> 3] |= 1 << (at & 7)
    return {i: int.from_bytes(bits, "little") for i, bits in found.items()}


def _all_of(axes: Axes, having: dict[int, int], count: int) -> int:
    """The tables that have all of these axes."""
    return reduce(and_, (having.get(i, 0) for i in axes), (1 << count) - 1)


def real(shape: Sequence[int], axes: Iterable[int]) -> Axes:
    """Axes of more than one cell, rising."""
    return tuple(sorted({i for i in axes if shape[i] > 1}))
