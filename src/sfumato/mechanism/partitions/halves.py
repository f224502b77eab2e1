"""The boxes of cells that come of halving a grid along every axis, again and again, down to single cells.

Nothing here sees private data but `counts`, which only adds up. Boxes are numbered in C order on every level.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers


@dataclass(frozen=True)
class Halves:
    """Of a grid of this shape; a side of an odd number of cells has the larger half first, one cell stays whole."""

    shape: tuple[int, ...]

    @property
    def depth(self) -> int:
        """On how many levels there are boxes to halve."""
        return max((n - 1).bit_length() for n in self.shape)

    @cached_property
    def cuts(self) -> list[list[Integers]]:
        """For every level where the boxes begin along each axis, and the end."""
        levels = [[np.array([0, n], dtype=np.int64) for n in self.shape]]
        for _ in range(self.depth):
            levels.append([np.union1d(cut, (cut[:-1] + cut[1:] + 1) // 2) for cut in levels[-1]])
        return levels

    def sides(self, level: int) -> tuple[int, ...]:
        """How many boxes there are along each axis."""
        return tuple(len(cut) - 1 for cut in self.cuts[level])

    def single(self, level: int) -> NDArray[np.bool_]:
        """Which boxes are single cells, flat."""
        return reduce(np.logical_and.outer, [np.diff(cut) == 1 for cut in self.cuts[level]]).ravel()

    def parents(self, level: int) -> Integers:
        """The box on this level of every box on the next, flat."""
        pairs = zip(self.cuts[level], self.cuts[level + 1], strict=True)
        along = [np.searchsorted(upper, lower[:-1], side="right") - 1 for upper, lower in pairs]
        return np.ravel_multi_index(np.meshgrid(*along, indexing="ij"), self.sides(level)).ravel()

    def boxes(self, level: int, chosen: Integers) -> tuple[Integers, Integers]:
        """(first cell, cell after the last) along each axis, one row a box."""
        at = np.unravel_index(chosen, self.sides(level))
        low = [cut[i] for cut, i in zip(self.cuts[level], at, strict=True)]
        high = [cut[i + 1] for cut, i in zip(self.cuts[level], at, strict=True)]
        return np.stack(low, axis=-1), np.stack(high, axis=-1)

    def counts(self, cells: Integers) -> list[Integers]:
        """The sums over all boxes, level by level, flat, from flat cells; in integers."""
        levels = [cells.reshape(self.shape)]
        for level in range(self.depth - 1, -1, -1):
            table = levels[-1]
            for axis, (upper, lower) in enumerate(zip(self.cuts[level], self.cuts[level + 1], strict=True)):
                table = np.add.reduceat(table, np.searchsorted(lower, upper[:-1]), axis=axis)
            levels.append(table)
        return [table.ravel() for table in levels[::-1]]

    def spread(self, level: int, values: Floats) -> Floats:
        """What all boxes of a level have in every cell, in the grid's shape."""
        table = values.reshape(self.sides(level))
        for axis, cut in enumerate(self.cuts[level]):
            table = np.repeat(table, np.diff(cut), axis=axis)
        return table
