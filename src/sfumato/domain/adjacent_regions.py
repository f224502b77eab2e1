"""Which regions are beside each other: a border in common ("rook"), or a border or a corner ("queen").

Neighbours by a corner are whatever is less than a millimetre apart, so that borders which two files round differently
are borders in common all the same. Of these, two have a border in common when a side of one is a side of the other, or
where a part of a side is within a millimetre of a side of the other that is longer than a corner would make it. What
this takes for a border and is none hides more, never less. Elsewhere is beside every region that has a side of its own.

Around a corner the regions (and elsewhere) follow one another by common borders: where those join all regions, so do
common borders alone. If rounding should ever leave them in parts, corners are added that join these.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.near_regions import near_regions, scales
from sfumato.domain.outlines import Outlines
from sfumato.errors import MissingExtra
from sfumato.linear import distinct

TOUCHING = Fraction(1, 1000)
"""Metres between regions that are beside each other."""
_LONG = 20
"""A border in common is longer than so many times that; a corner hardly reaches as far."""


def adjacent_regions(outlines: Outlines, *, corners: bool) -> Integers:
    """Every pair u < v of regions beside each other; the last number is elsewhere."""
    cells = len(outlines.regions)
    touching = near_regions(outlines, TOUCHING)
    if corners:
        return touching
    shared = _sides_in_common(outlines)
    key = touching[:, 0] * cells + touching[:, 1]
    sure = np.isin(key, shared)
    rest = np.flatnonzero(~sure & (touching[:, 1] < cells - 1))
    sure[rest] = _along_each_other(outlines, touching[rest])
    if not (touching[sure, 1] == cells - 1).any():
        sure |= touching[:, 1] == cells - 1
    return touching[_joining(touching, sure, cells)]


def _sides_in_common(outlines: Outlines) -> Integers:
    """Pairs u·cells + v of regions of which one has a side of the other; with elsewhere those with a side alone."""
    cells = len(outlines.regions)
    x, y = outlines.points.T
    folded = replace(outlines, points=np.stack([np.where(x == -180.0, 180.0, x), y], axis=1))  # one date line
    segments, number, owner = folded.borders()
    low, high = np.full(len(segments), cells), np.full(len(segments), -1)
    np.minimum.at(low, number, owner)
    np.maximum.at(high, number, owner)
    alone = low == high
    return distinct(np.where(alone, low * cells + cells - 1, low * cells + high))


def _along_each_other(outlines: Outlines, pairs: Integers) -> Any:
    """Of each pair whether the border of one runs along that of the other for more than a corner does."""
    if not len(pairs):
        return np.zeros(0, np.bool_)
    try:
        import shapely
    except ImportError as error:
        raise MissingExtra("shapely", "geo", "Which regions are beside each other") from error
    lines = _borders(shapely, outlines)
    middle: Floats = np.array([shapely.bounds(line)[[1, 3]].mean() for line in lines])[pairs[:, 0]]
    found = np.zeros(len(pairs), np.bool_)
    for i, ((one, other), latitude) in enumerate(zip(pairs.tolist(), middle.tolist(), strict=True)):
        across, along = scales(latitude, latitude)
        scale = np.array([max(across, 1.0), along])
        a, b = (shapely.transform(lines[k], lambda points, by=scale: points * by) for k in (one, other))
        near = shapely.intersection(a, shapely.buffer(b, float(TOUCHING), quad_segs=2))
        found[i] = shapely.length(near) > _LONG * float(TOUCHING)
    return found


def _borders(shapely: Any, outlines: Outlines) -> Any:
    """The rings of every region as one geometry of lines."""
    rings = shapely.linestrings(
        outlines.points, indices=np.repeat(np.arange(len(outlines.rings) - 1), np.diff(outlines.rings))
    )
    return shapely.multilinestrings(rings, indices=outlines.owners)


def _joining(pairs: Integers, chosen: Any, cells: int) -> Any:
    """Those chosen, and of the others all that join parts which they leave apart."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    kept = pairs[chosen]
    graph = csr_matrix((np.ones(len(kept), np.int8), (kept[:, 0], kept[:, 1])), shape=(cells, cells))
    _, part = connected_components(graph, directed=False)
    return chosen | (part[pairs[:, 0]] != part[pairs[:, 1]])
