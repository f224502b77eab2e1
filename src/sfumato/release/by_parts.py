"""Polygons against the parts of a mechanism that smooths: those wholly inside bracket from below, those met from above.

As `sfumato.release.brackets` has it for ranges, with any cells of a place in the place of a box of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.mechanism import Parts, Runs, SummedArea
from sfumato.release.brackets import Known, joined_ends
from sfumato.release.intervals import query_margins


@dataclass(frozen=True, eq=False)
class Marked:
    """Some cells along some axes: an array with a row an answer, and then the cells along these axes."""

    axes: tuple[int, ...]
    inner: NDArray[np.bool_]
    outer: NDArray[np.bool_]

    def of_boxes(self, low: Sequence[Any], high: Sequence[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(rows, boxes): which boxes hold inner cells alone, and which hold an outer one; ends along every axis."""
        ends = np.stack(low, axis=-1), np.stack(high, axis=-1)
        size = np.prod((ends[1] - ends[0]).astype(np.int64), axis=-1)
        inner = np.stack([np.asarray(SummedArea(row.astype(np.int64)).sums(*ends)) for row in self.inner])
        outer = np.stack([np.asarray(SummedArea(row.astype(np.int64)).sums(*ends)) for row in self.outer])
        return inner == size, outer > 0


def by_runs(runs: Runs, marked: Sequence[Marked], confidence: float, known: Known) -> tuple[Floats, Floats]:
    """The ends of intervals by runs of cells whatever their shape."""
    flags = [one.of_boxes([runs.low[:, i] for i in one.axes], [runs.high[:, i] for i in one.axes]) for one in marked]
    inside, touched = (reduce(np.logical_and, np.broadcast_arrays(*(flag[k] for flag in flags))) for k in (0, 1))

    def known_with(rows: Integers, level: float, inner: bool) -> tuple[Floats, Floats]:
        chosen = (inside if inner else touched)[rows].astype(np.float64)
        asked = runs.queries(chosen, inside[rows].astype(np.float64))
        margin = query_margins(runs.model, asked, level)[1] if level > 0 and len(rows) else np.zeros(len(rows))
        return asked @ runs.values, margin

    sure = known.touched(np.asarray(touched.all(axis=-1)))
    return joined_ends(np.asarray(~inside.any(axis=-1)), sure, known_with, confidence)


def by_grids(
    grids: Sequence[Parts], marked: Sequence[Marked], confidence: float, known: Known
) -> tuple[Floats, Floats]:
    """The same by the bins of one grid: of that which knows the polygons best, whatever was measured."""
    flags = [_bins(parts, marked) for parts in grids]
    pairs = zip(grids, flags, strict=True)
    unsure = [float(((touched & ~inside) @ _cells(parts)).sum()) for parts, (inside, touched) in pairs]
    best = int(np.argmin(unsure))
    parts, (inside, touched) = grids[best], flags[best]
    values = np.asarray(parts.values, dtype=np.float64).ravel()

    def known_with(rows: Integers, level: float, inner: bool) -> tuple[Floats, Floats]:
        chosen = (inside if inner else touched)[rows].astype(np.float64)
        margin = query_margins(parts.model, chosen, level)[1] if level > 0 and len(rows) else np.zeros(len(rows))
        return chosen @ values, margin

    sure = known.touched(np.asarray(touched.all(axis=-1)))
    return joined_ends(np.asarray(~inside.any(axis=-1)), sure, known_with, confidence)


def _bins(parts: Parts, marked: Sequence[Marked]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(rows, bins): which bins hold inner cells alone, and which hold an outer one."""
    rows = max(len(one.inner) for one in marked)
    found = [np.ones((rows, *(1,) * len(parts.cuts)), np.bool_) for _ in range(2)]
    for one in marked:
        low = np.meshgrid(*(parts.cuts[i][:-1] for i in one.axes), indexing="ij")
        high = np.meshgrid(*(parts.cuts[i][1:] for i in one.axes), indexing="ij")
        flags = one.of_boxes([part.ravel() for part in low], [part.ravel() for part in high])
        shape = [len(cuts) - 1 if i in one.axes else 1 for i, cuts in enumerate(parts.cuts)]
        found = [both & flag.reshape(-1, *shape) for both, flag in zip(found, flags, strict=True)]
    inside, touched = (flag.reshape(rows, -1) for flag in found)
    return inside, touched


def _cells(parts: Parts) -> Floats:
    """How many cells every bin has."""
    widths = [np.diff(cuts).astype(np.float64) for cuts in parts.cuts]
    return np.asarray(reduce(np.multiply.outer, widths)).ravel()
