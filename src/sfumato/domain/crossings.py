"""In which region a point lies: a lookup grid, and exact parity of crossings at the borders.

**The rule.** A point is in a region when a ray from it towards smaller x crosses the region's border an odd number of
times. A segment is crossed when lower y ≤ y < upper y and the point lies on it or to its right. So every point on a
common border is in exactly one region, and in the same one on every machine: which side of a segment a point is on is
computed in doubles where an error bound allows it, and in fractions elsewhere.

**The grid** has cells that no border touches, with one region each, and others. Those lie in runs along the rows. All
that a ray crosses inside of a run are segments that touch it, so the region is the one before the run, changed by the
segments of the run alone. Regions are joined by exclusive or: a segment changes the region on its one side into that on
its other. Where borders do not meet exactly, two regions overlap by less than anybody can see, and the result is no
region's: then the parity of every region is counted, and the first one wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain.outlines import Outlines
from sfumato.errors import InvalidInput

RULE = "crossings 1"
"""The name of the rule in files: it changes when any point's region would."""
SIDE = 2048
"""Cells of the lookup grid along each axis."""
_SLACK = 1e-6  # of a cell of the grid: more than rounding moves a point
_ERROR = 8 * 2.0**-53  # of an orientation, relative to what it is the difference of; Shewchuk needs 3 + 16·2⁻⁵³
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Lookup:
    """The grid: a region (from 1; 0 is none) or, below zero, a run of cells that borders touch; and the runs."""

    cells: NDArray[np.int32]
    origin: tuple[float, float]
    scale: tuple[float, float]
    before: Integers
    starts: Integers
    crossed: Integers
    segments: Floats
    change: Integers
    mark: NDArray[np.uint64]
    marks: NDArray[np.uint64]
    owned: tuple[Integers, Integers]

    @classmethod
    def of(cls, outlines: Outlines, side: int = SIDE) -> Lookup:
        """Made of the outlines; regions that overlap by whole cells of the grid are refused."""
        segments, number, owner = outlines.borders()
        marks = np.concatenate([[0], _marks(len(outlines.regions) - 1)]).astype(np.uint64)
        change, mark = np.zeros(len(segments), np.int64), np.zeros(len(segments), np.uint64)
        np.bitwise_xor.at(change, number, owner + 1)
        np.bitwise_xor.at(mark, number, marks[owner + 1])
        x0, y0, x1, y1 = outlines.bounds
        # One cell more on every side: whatever lies there is outside.
        scale = (side - 2) / max(x1 - x0, 1e-300), (side - 2) / max(y1 - y0, 1e-300)
        origin = (x0 - 1 / scale[0], y0 - 1 / scale[1])
        of_row, row, first, last = _spread(segments, origin, scale, side)
        touched = _filled(row, first, last, side)
        begins = touched & ~np.pad(touched, ((0, 0), (1, 0)))[:, :-1]
        run = np.cumsum(begins.ravel()).reshape(touched.shape) - 1
        of_run = run[row, first]
        order = np.argsort(of_run, kind="stable")
        crossed, of_run = of_row[order], of_run[order]
        starts = np.searchsorted(of_run, np.arange(int(run[-1, -1]) + 2))
        middle = origin[1] + (np.arange(side) + 0.5) / scale[1]
        at = middle[row[order]]
        passed = (segments[crossed, 1] <= at) & (at < segments[crossed, 3])
        after, signs = (
            _running(np.where(passed, what[crossed], what.dtype.type(0)), starts) for what in (change, mark)
        )
        known = (after >= 0) & (after < len(marks))
        if (marks[np.where(known, after, 0)] != signs).any() or not known.all():
            raise InvalidInput("regions overlap. Nothing was built. Give regions that meet at borders at most.")
        cells = np.concatenate([[0], after])[run + 1].astype(np.int32)
        cells[touched] = -1 - run[touched]
        before = np.concatenate([[0], after[:-1]])
        return cls(cells, origin, scale, before, starts, crossed, segments, change, mark, marks, (number, owner))

    def __call__(self, points: Floats) -> Integers:
        """The region of every point of an array (n, 2), -1 where there is none."""
        found = np.empty(len(points), np.int64)
        for start in range(0, len(points), _BLOCK):
            block = slice(start, start + _BLOCK)
            found[block] = self._block(points[block, 0], points[block, 1])
        return found

    def _block(self, x: Floats, y: Floats) -> Integers:
        side = len(self.cells)
        with np.errstate(invalid="ignore", over="ignore"):
            column, row = (x - self.origin[0]) * self.scale[0], (y - self.origin[1]) * self.scale[1]
        inside = (column >= 0) & (column < side) & (row >= 0) & (row < side)
        every = bool(inside.all())
        if not every:
            column, row = np.where(inside, column, 0), np.where(inside, row, 0)
        label = self.cells.ravel()[row.astype(np.int32) * np.int32(side) + column.astype(np.int32)].astype(np.int64)
        if not every:
            label[~inside] = 0
        near = np.flatnonzero(label < 0)
        if len(near):
            label[near] = self._at_borders(x[near], y[near], -1 - label[near])
        return label - 1

    def _at_borders(self, x: Floats, y: Floats, run: Integers) -> Integers:
        """The regions of points in cells that borders touch."""
        many = self.starts[run + 1] - self.starts[run]
        which = np.repeat(np.arange(len(x)), many)
        place = np.repeat(self.starts[run] - np.cumsum(many) + many, many) + np.arange(len(which))
        segment = self.crossed[place]
        low, high = self.segments[segment, 1], self.segments[segment, 3]
        at = y[which]
        level = (low <= at) & (at < high)
        which, segment = which[level], segment[level]
        passed = right_of(self.segments[segment], x[which], y[which])
        which, segment = which[passed], segment[passed]
        label, sign = self.before[run], self.marks[self.before[run]]
        np.bitwise_xor.at(label, which, self.change[segment])
        np.bitwise_xor.at(sign, which, self.mark[segment])
        wrong = (label < 0) | (label >= len(self.marks))
        wrong |= self.marks[np.where(wrong, 0, label)] != sign
        for i in np.flatnonzero(wrong):
            label[i] = self._first(x[i], y[i])
        return label

    def _first(self, x: float, y: float) -> int:
        """The first region whose own border is crossed an odd number of times, from 1; 0 for none."""
        number, owner = self.owned
        level = (self.segments[:, 1] <= y) & (y < self.segments[:, 3])
        passed = np.zeros(len(self.segments), np.bool_)
        at = np.flatnonzero(level)
        passed[at] = right_of(self.segments[at], np.full(len(at), x), np.full(len(at), y))
        odd = np.bincount(owner[passed[number]], minlength=1) % 2
        return int(np.argmax(odd)) + 1 if odd.any() else 0


def right_of(segments: Floats, x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Whether each point lies on its segment, which goes upwards, or to the right of it: exactly."""
    x0, y0, x1, y1 = segments.T
    one, other = (x1 - x0) * (y - y0), (x - x0) * (y1 - y0)
    found: NDArray[np.bool_] = one <= other
    unsure = np.abs(one - other) <= _ERROR * (np.abs(one) + np.abs(other)) + 1e-290
    for i in np.flatnonzero(unsure):
        a, b, c, d, e, f = (Fraction(float(v[i])) for v in (x0, y0, x1, y1, x, y))
        found[i] = (c - a) * (f - b) <= (e - a) * (d - b)
    return found


def _spread(
    segments: Floats, origin: tuple[float, ...], scale: tuple[float, ...], side: int
) -> tuple[Integers, Integers, Integers, Integers]:
    """For every segment the rows of the grid that it touches, and from which column to which it does so there."""
    x0, y0, x1, y1 = segments.T
    across, up = (np.stack([a, b]) for a, b in ((x0, x1), (y0, y1)))
    across, up = (across - origin[0]) * scale[0], (up - origin[1]) * scale[1]
    low, high = (np.floor(up[0] - _SLACK).astype(np.int64), np.floor(up[1] + _SLACK).astype(np.int64))
    many = high - low + 1
    which = np.repeat(np.arange(len(segments)), many)
    row = np.repeat(low - np.cumsum(many) + many, many) + np.arange(len(which))
    height = np.maximum(up[1] - up[0], 1e-300)[which]
    ends = []
    for edge in (row - _SLACK, row + 1 + _SLACK):
        share = np.clip((edge - up[0][which]) / height, 0.0, 1.0)
        ends.append(across[0][which] + share * (across[1] - across[0])[which])
    # Nearly level segments are as wide as they are, whatever their share in a row was rounded to.
    flat = height < 1e-3
    left = np.where(flat, across.min(axis=0)[which], np.minimum(*ends))
    right = np.where(flat, across.max(axis=0)[which], np.maximum(*ends))
    first = np.clip(np.floor(left - 1e-3), 0, side - 1).astype(np.int64)
    last = np.clip(np.floor(right + 1e-3), 0, side - 1).astype(np.int64)
    return which, np.clip(row, 0, side - 1), first, last


def _filled(row: Integers, first: Integers, last: Integers, side: int) -> NDArray[np.bool_]:
    """The cells from first to last in their rows."""
    ends = np.zeros((side, side + 1), np.int32)
    np.add.at(ends, (row, first), 1)
    np.add.at(ends, (row, last + 1), -1)
    return np.cumsum(ends, axis=1)[:, :-1] > 0


def _running(changes: NDArray[Any], starts: Integers) -> NDArray[Any]:
    """All changes up to the end of each stretch."""
    found: NDArray[Any] = np.bitwise_xor.accumulate(np.bitwise_xor.reduceat(changes, starts[:-1]))
    return found


def _marks(count: int) -> NDArray[np.uint64]:
    """A word of 64 bits for every region, which no few of them give together (splitmix64)."""
    with np.errstate(over="ignore"):
        word = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
