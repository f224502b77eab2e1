"""What a polygon holds of a road network: the segments all of whose places are inside, and those that have some.

The places of a segment are those within some metres of it, and nearer to it than to others. Around each segment a band
is drawn that holds them all, in the plane of the least metres a degree around the polygon, in which no two points are
farther apart than on the ground: a polygon that holds the band holds the segment, and one that does not meet it has
none of its places. What is between is cut, by the share of the line itself. Elsewhere is all around, and always cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.domain.cutting import Cut, needed
from sfumato.domain.lines import Lines, least_scales

_WIDER = 1.02
"""How much wider bands are drawn than they need be, for their round ends have corners."""


def road_cuts(lines: Lines, snap: float, polygons: Any) -> list[Cut]:
    """The segments that each polygon, in degrees, holds and cuts; elsewhere, which is the last number, is cut."""
    return [_cut(needed(), lines, snap, polygon).with_cut(len(lines)) for polygon in polygons]


def _cut(shapely: Any, lines: Lines, snap: float, polygon: Any) -> Cut:
    south, north = shapely.bounds(polygon)[[1, 3]].tolist()
    reach = 1.0 + snap / 100_000
    across, along = least_scales(np.array([max(south - reach, -89.9)]), np.array([min(north + reach, 89.9)]))
    scale = np.array([float(across[0]), float(along[0])])
    paths = shapely.linestrings(lines.points * scale, indices=np.repeat(np.arange(len(lines)), np.diff(lines.starts)))
    tree = shapely.STRtree(paths)
    found = []
    for turn in (-360.0, 0.0, 360.0):
        area = shapely.transform(polygon, lambda points, by=turn: (points + np.array([by, 0.0])) * scale)
        shapely.prepare(area)
        near = np.sort(tree.query(area, predicate="dwithin", distance=snap * _WIDER))
        bands = shapely.buffer(paths[near], snap * _WIDER)
        whole = shapely.covers(area, bands)
        part = near[~whole]
        share = shapely.length(shapely.intersection(paths[part], area)) / np.maximum(shapely.length(paths[part]), 1e-12)
        found.append(Cut(near[whole].astype(np.int64), part.astype(np.int64), np.clip(share, 0.0, 1.0)))
    return Cut.joined(found)
