"""A release as boxes of cells see it: estimates, the law of their noise, and what is public.

Every answer goes through here, in chunks, so that memory stays bounded however many are asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.mechanism import NoiseModel, Parts, Runs, SummedArea
from sfumato.release.brackets import Cover, Known, bracketed, bracketed_by_parts, bracketed_by_runs
from sfumato.release.combined import Sums, combined_model
from sfumato.release.gathered import gathered, gathered_model
from sfumato.release.grouped import grouped, grouped_model
from sfumato.release.intervals import range_margins
from sfumato.release.public import PublicTotals

Cells: TypeAlias = Mapping[int, Integers]
_Number = TypeVar("_Number", np.float64, np.int64)

# Boxes answered at a time.
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Boxes:
    """Ranges in cell coordinates, of shape (ranges, axes), and the cells that they hold and touch."""

    low: Floats
    high: Floats
    cover: Cover

    def __len__(self) -> int:
        return len(self.low)

    def at(self, chosen: slice | Integers) -> Boxes:
        """Some of them."""
        return Boxes(self.low[chosen], self.high[chosen], self.cover.at(chosen))

    def along(self, axis: int, start: int, stop: int) -> Boxes:
        """The same ranges, from one cell to another along one axis."""
        cover = self.cover
        whole = Cover(
            _with(cover.inner_low, axis, start),
            _with(cover.inner_high, axis, stop),
            _with(cover.outer_low, axis, start),
            _with(cover.outer_high, axis, stop),
        )
        return Boxes(_with(self.low, axis, start), _with(self.high, axis, stop), whole)


def _with(ends: NDArray[_Number], axis: int, cell: int) -> NDArray[_Number]:
    changed = ends.copy()
    changed[:, axis] = cell
    return changed


@dataclass(frozen=True, eq=False)
class Figures:
    """Of many ranges: estimates, their standard errors, the ends of their intervals, the shares in cut cells."""

    value: Floats
    stderr: Floats
    low: Floats
    high: Floats
    share: Floats

    @classmethod
    def joined(cls, parts: Sequence[Figures]) -> Figures:
        """One after the other."""
        names = ("value", "stderr", "low", "high", "share")
        return cls(*(np.concatenate([np.empty(0), *(getattr(part, name) for part in parts)]) for name in names))

    def in_units(self, unit: float) -> Figures:
        """With steps of so much."""
        if unit == 1.0:
            return self
        return Figures(self.value * unit, self.stderr * unit, self.low * unit, self.high * unit, self.share)

    def at(self, rows: Integers) -> Figures:
        """Some of them, in another order."""
        return Figures(self.value[rows], self.stderr[rows], self.low[rows], self.high[rows], self.share[rows])


@dataclass(frozen=True, eq=False)
class View:
    """Estimates in the shape of the domain, and all that is known of their error."""

    counts: Floats
    model: NoiseModel | None
    biased: bool
    public: PublicTotals
    grids: Sequence[Parts] = ()
    runs: Runs | None = None
    shared: Floats | None = None
    """Where values are to be non-negative, the estimates made so."""
    unit: float = 1.0
    """What one step of a sum is worth. Everything here is in steps, and what goes out is in units."""

    @cached_property
    def table(self) -> SummedArea:
        """Sums over boxes of cells."""
        return SummedArea(self.counts)

    @property
    def alone(self) -> View:
        """Without the parts of a mechanism that smooths: of every cell its noise is told, where that is all."""
        return replace(self, grids=(), runs=None)

    def figures(self, boxes: Boxes, confidence: float, cut: str, sets: Mapping[int, Integers]) -> Figures:
        """The answers to ranges; `sets` are cells taken together along some axes, whatever the ranges say of those."""
        if sets and (self.grids or self.runs is not None):
            return self._in_pieces(boxes, confidence, cut, sets)
        seen = self
        for axis, cells in sets.items():
            seen, boxes = seen.gathered(axis, cells), boxes.along(axis, 0, 1)
        steps = range(0, len(boxes), CHUNK)
        return Figures.joined([seen._some(boxes.at(slice(at, at + CHUNK)), confidence, cut) for at in steps])

    def gathered(self, axis: int, cells: Integers) -> View:
        """With two cells along an axis: these taken together, and the others."""
        return replace(
            self.alone,
            counts=np.asarray(gathered(self.counts, axis, cells), dtype=np.float64),
            model=None if self.model is None else gathered_model(self.model, axis, cells),
            public=self.public.gathered(axis, cells),
            shared=None if self.shared is None else np.asarray(gathered(self.shared, axis, cells), dtype=np.float64),
        )

    def at_levels(self, boxes: Boxes, confidence: float, cut: str, sets: Cells, levels: Cells) -> Figures:
        """The answers to ranges that are single groups along some axes: `levels` has the group of every cell there."""
        if not self.grids and self.runs is None:
            seen = self
            for axis, of in levels.items():
                seen = seen.grouped(axis, of)
            return seen.figures(boxes, confidence, cut, sets)
        found = np.stack([boxes.cover.inner_low[:, axis] for axis in levels], axis=-1)
        groups, which = np.unique(found, axis=0, return_inverse=True)
        parts, rows = [], []
        for number, group in enumerate(groups):
            own = {axis: np.flatnonzero(of == k) for (axis, of), k in zip(levels.items(), group, strict=True)}
            rows.append(np.flatnonzero(which.reshape(-1) == number))
            parts.append(self.figures(boxes.at(rows[-1]), confidence, cut, {**sets, **own}))
        return Figures.joined(parts).at(np.argsort(np.concatenate(rows)))

    def grouped(self, axis: int, of: Integers) -> View:
        """With one cell a group along an axis."""
        return replace(
            self.alone,
            counts=np.asarray(grouped(self.counts, axis, of), dtype=np.float64),
            model=None if self.model is None else grouped_model(self.model, axis, of),
            public=self.public.grouped(axis, of),
            shared=None,
        )

    def combined(self, sums: Sums) -> View:
        """With a few sums of cells in the place of the cells of a place."""
        return replace(
            self.alone,
            counts=np.asarray(sums.forward(self.counts), dtype=np.float64),
            model=None if self.model is None else combined_model(self.model, sums),
            public=self.public.combined(sums),
            shared=None if self.shared is None else np.asarray(sums.forward(self.shared), dtype=np.float64),
        )

    def _some(self, boxes: Boxes, confidence: float, cut: str) -> Figures:
        cover = boxes.cover
        stderr, margin = range_margins(self.model, boxes.low, boxes.high, None if self.biased else confidence)
        value = cover.sums(self.table, boxes.low, boxes.high)
        exact = self.public.whole(cover.outer_low, cover.outer_high) & ~cover.cut
        value[exact] = np.rint(value[exact])
        stderr[exact] = margin[exact] = 0.0
        begin, end = value - margin, value + margin
        if cut != "proportion":
            if self.public.signed and cover.cut.any() and cut == "bracket":
                raise _unbracketed()
            known = Known.of(self.public, cover)
            begin, end = known.clipped(begin, end)
            if self.grids:
                begin, end = bracketed_by_parts(self.grids, cover, confidence, known)
            elif self.runs is not None:
                begin, end = bracketed_by_runs(self.runs, cover, confidence, known)
            elif self.model is not None and not self.biased:
                rows = np.flatnonzero(cover.cut)
                found = bracketed(self.model, self.table, cover.at(rows), confidence, known.at(rows))
                begin[rows], end[rows] = found
            begin[exact] = end[exact] = value[exact]
        share = cover.share(value, self.table)
        if self.shared is not None:
            value = self._clipped(value, stderr, cover.sums(SummedArea(self.shared), boxes.low, boxes.high))
        return Figures(value, stderr, begin, end, share)

    @staticmethod
    def _clipped(value: Floats, stderr: Floats, shared: Floats) -> Floats:
        """What the non-negative map says, kept within a standard error of the estimate, and not below zero: what is
        known exactly stays, and where no standard error is known the map alone speaks.
        """
        near = np.where(np.isnan(stderr), np.inf, stderr)
        return np.maximum(np.clip(shared, value - near, value + near), 0.0)

    def _in_pieces(self, boxes: Boxes, confidence: float, cut: str, sets: Mapping[int, Integers]) -> Figures:
        """Where parts found by the mechanism bracket a range, each run of cells is bracketed by itself, and so that all
        intervals hold at once: what may be missed is shared out among them.
        """
        runs = [_runs_of(cells) for cells in sets.values()]
        pieces = list(product(*runs))
        each = 1 - (1 - confidence) / max(len(pieces), 1)
        sums = self.alone.figures(boxes, confidence, cut, sets)
        low, high = np.zeros(len(boxes)), np.zeros(len(boxes))
        for piece in pieces:
            part = boxes
            for axis, (start, stop) in zip(sets, piece, strict=True):
                part = part.along(axis, start, stop)
            found = self.figures(part, each, cut, {})
            low, high = low + found.low, high + found.high
        return replace(sums, low=low, high=high)


def _unbracketed() -> InvalidInput:
    return InvalidInput(
        "the range cuts cells, and what is summed may be negative: what lies on one side of a cut is bounded by "
        "nothing that is known. Nothing was answered. Ask for whole cells, or say cut='snap' for the nearest range of "
        "these, or cut='proportion' for the noise alone."
    )


def _runs_of(cells: Integers) -> list[tuple[int, int]]:
    """Cells as runs of such as follow one another: (the first, the one after the last)."""
    cells = np.unique(cells)
    parts = np.split(cells, np.flatnonzero(np.diff(cells) > 1) + 1)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts if len(part)]
