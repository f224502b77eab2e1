"""Outlines as a page draws them: on a fine grid of whole numbers across the map, without what falls on one point."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain.outlines import Outlines, starts_of
from sfumato.domain.paths import Paths
from sfumato.errors import TooLarge
from sfumato.report.packing import whole_numbers

Bounds = tuple[float, float, float, float]
FINE = 10_000
"""Steps across the longer side of a map: a screen has a fifth of them."""
MOST_POINTS = 400_000


def packed_outlines(outlines: Outlines | Paths, bounds: Bounds) -> dict[str, Any]:
    """Every region as some lines, rings or roads: which points are whose."""
    if outlines.closed:
        drawn = cast(Outlines, outlines).oriented
        lines, groups = drawn.rings, drawn.parts[drawn.regions]
    else:
        drawn_paths = cast(Paths, outlines)
        lines, groups = drawn_paths.lines, drawn_paths.groups
    found = _packed(outlines.points, lines, bounds)
    return {**found, "groups": whole_numbers(np.diff(groups), "<u4"), "closed": outlines.closed}


def packed_lines(lines: list[Floats], bounds: Bounds) -> dict[str, Any]:
    """Lines that belong to nothing, as far as they lie on the map."""
    x0, y0, x1, y1 = bounds
    pieces: list[Floats] = []
    for line in lines:
        x, y = line.T
        near: NDArray[np.bool_] = (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
        seen = np.array(near)  # and one point before and behind, cut at the margin below
        seen[:-1] |= near[1:]
        seen[1:] |= near[:-1]
        runs = np.flatnonzero(np.diff(np.concatenate([[0], seen.astype(np.int8), [0]])))
        pieces += [line[a:b] for a, b in runs.reshape(-1, 2).tolist() if b - a > 1]
    points = np.concatenate([np.empty((0, 2)), *pieces])
    return _packed(points, starts_of([len(piece) for piece in pieces]), bounds)


def _packed(points: Floats, lines: Integers, bounds: Bounds) -> dict[str, Any]:
    """Points as whole numbers in the box; of points that follow each other on one place one is kept, and two a line."""
    x0, y0, x1, y1 = bounds
    step = max(x1 - x0, y1 - y0) / FINE
    # A margin as wide as the map on every side: lines that leave it go on towards where they lead.
    at = np.clip(np.rint((points - (x0, y0)) / step), -FINE, 2 * FINE).astype(np.int64)
    new = np.ones(len(at), np.bool_)
    new[1:] = (at[1:] != at[:-1]).any(axis=1)
    new[lines[:-1]] = True
    new[lines[1:] - 1] = True
    if int(new.sum()) > MOST_POINTS:
        raise TooLarge(
            f"the outlines have {int(new.sum()):,} points at the size of a page (at most {MOST_POINTS:,}). Nothing was "
            "written. Simplify them first, or ask for a level."
        )
    counts = np.add.reduceat(new.astype(np.int64), lines[:-1]) if len(lines) > 1 else np.empty(0, np.int64)
    return {
        "points": whole_numbers(at[new], "<i2"),
        "lines": whole_numbers(counts, "<u4"),
        "step": step,
    }
