"""Ranges that cut cells: intervals that hold the number of records, whatever side of the cut they lie on.

**What is promised.** Let n be the number of records in a range, as they were counted. Those in cells wholly inside are
among them, and all of them are in cells that the range touches: inner ≤ n ≤ outer. Both numbers are sums over whole
cells, whose estimates are unbiased with noise that is symmetric around zero. So an interval of confidence c around
either misses on one given side with probability at most (1 - c)/2, and [inner - its half-width, outer + its
half-width] misses n with probability at most 1 - c. Where no cell is wholly inside, inner is 0 and cannot be missed:
the other side may then have all of 1 - c, and so it is where outer is a public total. Numbers of records are not
negative, and at most the public totals that the range touches: ends are cut to that, which takes no possible n out of
an interval.

A mechanism that smooths spreads what it knows of a bin over its cells: there the same holds with bins for cells.

How the records of a cut cell are shared out between the sides is not estimated: on real places it is nowhere near
proportional (a street, a station), and no noise covers that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.mechanism import NoiseModel, Parts, Runs, SummedArea
from sfumato.release.answer import CUTS, ESTIMATES
from sfumato.release.intervals import query_margins, range_margins
from sfumato.release.public import PublicTotals

# (rows, confidence, whether inside) to estimates and half-widths.
KnownWith = Callable[[Integers, float, bool], tuple[Floats, Floats]]

ENTRIES = 1 << 22  # of ranges times runs at a time


def check_cut(cut: object) -> str:
    """One of the ways to read a range that cuts cells."""
    if not isinstance(cut, str) or cut not in CUTS:
        raise InvalidInput(
            f"cut={cut!r} must be one of {', '.join(map(repr, CUTS))}: an interval that holds the records of a range "
            "that cuts cells, the noise alone with cut cells in proportion, or the nearest range of whole cells."
        )
    return cut


def check_estimate(estimate: object) -> str:
    """One of the values that an answer may have."""
    if not isinstance(estimate, str) or estimate not in ESTIMATES:
        raise InvalidInput(
            f"estimate={estimate!r} must be one of {', '.join(map(repr, ESTIMATES))}: the plain estimate, or one that "
            "is not negative, within a standard error of it. Nothing was answered."
        )
    return estimate


@dataclass(frozen=True, eq=False)
class Cover:
    """The boxes of cells wholly inside ranges, and of all cells that these touch: (ranges, axes) each."""

    inner_low: Integers
    inner_high: Integers
    outer_low: Integers
    outer_high: Integers

    @classmethod
    def whole(cls, low: Floats, high: Floats) -> Cover:
        """Of ranges that are boxes of whole cells already."""
        start, stop = low.astype(np.int64), high.astype(np.int64)
        return cls(start, stop, start, stop)

    @property
    def hollow(self) -> NDArray[np.bool_]:
        """Whether no cell lies wholly inside."""
        return np.asarray((self.inner_high <= self.inner_low).any(axis=-1))

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Whether a cell is cut; an empty range cuts none."""
        same = (self.inner_low == self.outer_low) & (self.inner_high == self.outer_high)
        return np.asarray(~same.all(axis=-1) & (self.outer_high > self.outer_low).all(axis=-1))

    def spans(self, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Whether every cell is touched."""
        return np.asarray(((self.outer_low == 0) & (self.outer_high == np.array(shape))).all(axis=-1))

    def sums(self, table: SummedArea, low: Floats, high: Floats) -> Floats:
        """What is estimated for ranges in cell coordinates, cut cells in proportion."""
        found = np.asarray(table.sums(self.outer_low, self.outer_high), dtype=np.float64)
        rows = np.flatnonzero(self.cut)
        found[rows] = table.fractional_sums(low[rows], high[rows])
        return found

    def at(self, chosen: Any) -> Cover:
        """Some of the ranges."""
        return Cover(self.inner_low[chosen], self.inner_high[chosen], self.outer_low[chosen], self.outer_high[chosen])

    def inner_sums(self, table: SummedArea) -> Floats:
        """What is estimated for the cells wholly inside."""
        return np.where(self.hollow, 0.0, table.sums(self.inner_low, self.inner_high))

    def share(self, value: Floats, table: SummedArea) -> Floats:
        """Which share of the values lies in cut cells: of |what lies in cut cells| + |what lies in whole ones|, since
        either may be negative. One where no whole cell is inside, zero where none is cut.
        """
        whole = self.inner_sums(table)
        parts, inside = np.abs(value - whole), np.abs(whole)
        share = np.divide(parts, parts + inside, out=np.zeros(len(value)), where=parts + inside > 0)
        return np.where(self.cut, np.where(self.hollow, 1.0, share), 0.0)


@dataclass(frozen=True, eq=False)
class Known:
    """What is public of ranges: the most records that each can hold, infinite where nothing says so, and whether what
    it touches is just that, exactly.
    """

    most: Floats
    exact: NDArray[np.bool_]
    least: float = 0.0

    @classmethod
    def of(cls, public: PublicTotals, cover: Cover) -> Known:
        """Of the cells that ranges touch."""
        low, high = cover.outer_low, cover.outer_high
        return cls(public.most(low, high), public.whole(low, high), public.least)

    def at(self, chosen: Any) -> Known:
        """Of some of the ranges."""
        return Known(self.most[chosen], self.exact[chosen], self.least)

    def touched(self, everything: NDArray[np.bool_]) -> Known:
        """Where a range is bracketed by all that there is, that is public as soon as anything is."""
        return Known(self.most, self.exact | (everything & np.isfinite(self.most)), self.least)

    def clipped(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Ends cut to what a number of records can be."""
        return np.clip(low, self.least, self.most), np.clip(high, self.least, self.most)


def snapped(low: Floats, high: Floats, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """The nearest boxes of whole cells, in cell coordinates: every end goes to the nearest edge.

    A range that lies within a cell becomes the cell that holds more of it, not nothing; an empty one stays empty.
    """
    start, stop = np.floor(low + 0.5), np.floor(high + 0.5)
    lost = (start == stop) & (low < high)
    most = np.array(shape, dtype=np.float64) - 1
    start = np.where(lost, np.clip(np.floor((low + high) / 2), 0, most), start)
    return start, np.where(lost, start + 1, stop)


def bracketed(
    model: NoiseModel, table: SummedArea, cover: Cover, confidence: float, known: Known
) -> tuple[Floats, Floats]:
    """(low, high) of the numbers of records in ranges that cut cells, each with at least the confidence."""

    def known_with(rows: Integers, confidence: float, inner: bool) -> tuple[Floats, Floats]:
        part = cover.at(rows)
        start, stop = (part.inner_low, part.inner_high) if inner else (part.outer_low, part.outer_high)
        sums = np.asarray(table.sums(start, stop), dtype=np.float64)
        if confidence <= 0:
            return sums, np.zeros(len(rows))
        return sums, range_margins(model, start.astype(np.float64), stop.astype(np.float64), confidence)[1]

    return joined_ends(cover.hollow, known, known_with, confidence)


def joined_ends(
    hollow: NDArray[np.bool_], known: Known, known_with: KnownWith, confidence: float
) -> tuple[Floats, Floats]:
    """The lower end for what is inside with the upper end for what is touched.

    Where one of them cannot be missed the other may be missed 1 - c of the time: a symmetric half-width of confidence
    2c - 1 does that; below one half none is needed, since symmetric noise is on either side half of the time.
    """
    low, high = np.zeros(len(hollow)), np.empty(len(hollow))
    public = known.exact
    sure = hollow | public
    for one_sided in (False, True):
        level = 2 * confidence - 1 if one_sided else confidence
        rows = np.flatnonzero((sure == one_sided) & ~hollow)
        sums, margin = known_with(rows, level, True)
        low[rows] = sums - margin
        rows = np.flatnonzero((sure == one_sided) & ~public)
        sums, margin = known_with(rows, level, False)
        high[rows] = sums + margin
    high[public] = known.most[public]
    low, high = known.clipped(low, high)
    return low, np.maximum(low, high)


def bracketed_by_parts(grids: Sequence[Parts], cover: Cover, confidence: float, known: Known) -> tuple[Floats, Floats]:
    """As `bracketed`, by the bins of one grid for each range: that which knows the range best, by the cells in bins
    that are touched but not inside. What was measured has no part in the choice, so that the interval holds.
    """
    which, least = np.zeros(len(cover.outer_low), dtype=np.int64), np.full(len(cover.outer_low), np.inf)
    for j, parts in enumerate(grids):
        inside, touched = _by_bins(parts, cover)
        unsure = parts.cells(*touched) - parts.cells(*inside)
        which[unsure < least] = j
        least = np.minimum(least, unsure)
    low, high = np.empty(len(which)), np.empty(len(which))
    for j in np.unique(which).tolist():
        rows = np.flatnonzero(which == j)
        inside, touched = _by_bins(grids[j], cover.at(rows))
        bins = Cover(*inside, *touched)
        sure = known.at(rows).touched(bins.spans(grids[j].model.shape))
        low[rows], high[rows] = bracketed(grids[j].model, grids[j].table, bins, confidence, sure)
    return low, high


def _by_bins(parts: Parts, cover: Cover) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers]]:
    return parts.inside(cover.inner_low, cover.inner_high), parts.touched(cover.outer_low, cover.outer_high)


def bracketed_by_runs(runs: Runs, cover: Cover, confidence: float, known: Known) -> tuple[Floats, Floats]:
    """As `bracketed`, by runs of cells whatever their shape: those whose box lies inside, and those whose box is met.

    A run's box may be larger than the run: fewer count as inside then and more as touched, which holds all the more.
    """
    low, high = np.empty(len(cover.outer_low)), np.empty(len(cover.outer_low))
    step = max(1, ENTRIES // len(runs.values))
    for begin in range(0, len(low), step):
        part = cover.at(slice(begin, begin + step))
        held = (runs.low >= part.inner_low[:, None]) & (runs.high <= part.inner_high[:, None])
        met = (runs.low < part.outer_high[:, None]) & (runs.high > part.outer_low[:, None])
        inside, touched = np.asarray(held.all(axis=-1)), np.asarray(met.all(axis=-1))
        touched &= np.less(part.outer_low, part.outer_high).all(axis=-1, keepdims=True)  # nothing is met by nothing

        def known_with(
            rows: Integers, level: float, inner: bool, inside: Any = inside, touched: Any = touched
        ) -> tuple[Floats, Floats]:
            chosen = (inside if inner else touched)[rows].astype(np.float64)
            asked = runs.queries(chosen, inside[rows].astype(np.float64))
            margin = query_margins(runs.model, asked, level)[1] if level > 0 and len(rows) else np.zeros(len(rows))
            return asked @ runs.values, margin

        sure = known.at(slice(begin, begin + step)).touched(np.asarray(touched.all(axis=-1)))
        found = joined_ends(np.asarray(~inside.any(axis=-1)), sure, known_with, confidence)
        low[begin : begin + step], high[begin : begin + step] = found
    return low, high
