"""A family of shifted grids: coarse grids over the same cells whose gridlines keep clear of each other.

Every grid of the family has bins `width` cells wide along each axis; grid j is shifted against grid 0 by `j·width/m`
cells along all axes at once, rounded down. The gridlines of the *whole* family along an axis are then at least
`floor(width/m)` cells apart, and with m = floor(width / longest step), the smallest such number over the axes, no move
of the policy crosses more than one of them along any axis. (With ceil in the place of floor, as printed in Fang and
Chang, ASIA CCS 2014, section 5.3, the last shift comes too close to the first of the next period.) Nothing below relies
on that: what a move crosses is counted on the gridlines that were built.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato._types import Integers


@dataclass(frozen=True)
class Family:
    """The grids, given by the width of their bins and the number of their shifts."""

    shape: tuple[int, ...]
    width: tuple[int, ...]
    shifts: int

    @classmethod
    def for_steps(cls, shape: tuple[int, ...], width: tuple[int, ...], reach: Integers) -> Family:
        """As many shifts as the longest step along each axis allows; axes that are not moved along allow any number."""
        allowed = [w // int(r) for w, r, n in zip(width, reach, shape, strict=True) if r > 0 and n > 1]
        return cls(shape, width, max(1, min(allowed, default=1)))

    @cached_property
    def grids(self) -> tuple[tuple[Integers, ...], ...]:
        """For every grid, along every axis, its cuts: 0, the gridlines inside, and the number of cells."""
        grids = []
        for j in range(self.shifts):
            grid = []
            for n, w in zip(self.shape, self.width, strict=True):
                inside = np.arange((j * w) // self.shifts, n, w, dtype=np.int64)
                grid.append(np.unique(np.concatenate([[0], inside, [n]])))
            grids.append(tuple(grid))
        return tuple(grids)

    def crossings(self, axis: int, longest: int) -> Integers:
        """The most gridlines of the whole family that a step of 0, 1, …, `longest` cells along an axis crosses.

        A line at p lies between the cells p - 1 and p: a step from u to u + r crosses those with u < p ≤ u + r, and the
        worst step begins just before a line.
        """
        lines = np.sort(np.concatenate([grid[axis][1:-1] for grid in self.grids]))
        first = np.arange(len(lines))
        steps = np.arange(longest + 1)
        most = [int((np.searchsorted(lines, lines + r, side="left") - first).max(initial=0)) for r in steps]
        return np.array(most, dtype=np.int64)

    @property
    def bins(self) -> tuple[tuple[int, ...], ...]:
        """The shape of every grid."""
        return tuple(tuple(len(cuts) - 1 for cuts in grid) for grid in self.grids)
