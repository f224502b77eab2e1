"""Polygons against the hexagons of H3, whose sides are no straight lines of longitudes and latitudes.

A side is an arc of a great circle. It is drawn in steps; how far it still is from straight lines between them, at most,
and a centimetre for the rounding of the library, is added around a cell before it is compared: a cell is then wholly
inside only where its arcs are, and none that a polygon touches is missed. Cells near the poles count as cut wherever
their latitudes are reached.

**Elsewhere** begins in the cells around the cover: what leads out of it enters one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.cutting import Cut, needed, turned_copies

_STEPS = 8
_ROUNDED = 1e-7
"""Degrees, a centimetre: what the library rounds, a hundred times over."""
_POLAR = 85.0


@dataclass(frozen=True, eq=False)
class Comb:
    """Cells as shapes that can be looked up, a little wider than they are; `inside` of them are of the cover."""

    shapes: Any
    plain: Any
    tree: Any
    polar: Integers
    bottom: Floats
    top: Floats
    inside: int

    @classmethod
    def of(cls, corners: Floats, inside: int) -> Comb:
        """From the corners (lon, lat) of cells, of shape (cells, corners, 2)."""
        shapely = needed()
        sides, bent = _arcs(corners)
        lat = np.abs(sides[..., 1]).max(axis=1)
        slack = 2 * bent + _ROUNDED / np.cos(np.radians(np.minimum(lat, _POLAR)))
        plain = shapely.polygons(np.where((lat < _POLAR)[:, None, None], sides, [[[0.0, 0.0]]]))
        shapes = shapely.buffer(plain, slack, join_style="mitre")
        polar = np.flatnonzero(lat >= _POLAR)
        bottom = sides[polar][..., 1].min(axis=1) - slack[polar]
        top = sides[polar][..., 1].max(axis=1) + slack[polar]
        north, south = top > _POLAR, bottom < -_POLAR  # one of them may hold the pole, which none of its corners does
        shapes[polar] = None
        return cls(
            shapes,
            plain,
            shapely.STRtree(shapes),
            polar,
            np.where(south, -90.0, bottom),
            np.where(north, 90.0, top),
            inside,
        )

    def cut_by(self, polygon: Any) -> tuple[Cut, bool]:
        """The cells of the cover that a polygon holds and cuts, and whether it meets cells around them."""
        shapely = needed()
        beyond = False
        parts: list[Cut] = []
        for copy in turned_copies(polygon, -540.0, 540.0):
            shapely.prepare(copy)
            near = np.sort(self.tree.query(copy, predicate="intersects"))
            beyond |= bool((near >= self.inside).any())
            near = near[near < self.inside]
            whole = shapely.covers(copy, self.shapes[near])
            rest = near[~whole]
            share = shapely.area(shapely.intersection(copy, self.plain[rest])) / shapely.area(self.plain[rest])
            parts.append(Cut(near[whole], rest, np.clip(share, 0.0, 1.0)))
        _, low, _, high = polygon.bounds
        reached = self.polar[(self.bottom <= high) & (self.top >= low)]
        beyond |= bool((reached >= self.inside).any())
        reached = reached[reached < self.inside]
        return Cut.joined([*parts, Cut(reached[:0], reached, np.zeros(len(reached)))]), beyond


def around_bounds(centres: Floats, polygons: Any, resolution: int) -> Integers:
    """The cells whose middles (lon, lat) are so near to the bounds of some polygons that these may reach a cell beside
    them; all near the poles.
    """
    shapely = needed()
    reach = 3 * 20.0 / 7 ** (resolution / 2)  # a cell of resolution 0 has no corner 20 degrees from its middle
    x0, y0, x1, y1 = shapely.total_bounds(polygons)
    lon, lat = centres.T
    wide = reach / np.cos(np.radians(np.minimum(np.abs(lat) + reach, _POLAR)))
    level = (lat >= y0 - reach) & (lat <= y1 + reach)
    across = np.mod(lon - (x0 - wide), 360.0) <= x1 - x0 + 2 * wide
    return np.flatnonzero((level & across) | (np.abs(lat) + reach >= _POLAR))


def _arcs(corners: Floats) -> tuple[Floats, Floats]:
    """The sides of cells in steps, as closed rings that are not torn at the date line; and how far an arc is from
    straight lines between two of them, at most, in degrees: what is seen in the middle, where it is farthest.
    """
    lon, lat = np.radians(corners[..., 0]), np.radians(corners[..., 1])
    space = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)
    ends = np.roll(space, -1, axis=1)
    share = np.arange(2 * _STEPS) / (2 * _STEPS)
    along = space[:, :, None] + (ends - space)[:, :, None] * share[:, None]
    along = along.reshape(len(corners), -1, 3)
    along /= np.linalg.norm(along, axis=-1, keepdims=True)
    found = np.degrees(np.stack([np.arctan2(along[..., 1], along[..., 0]), np.arcsin(along[..., 2])], axis=-1))
    first = corners[:, :1, 0]
    found[..., 0] = first + np.mod(found[..., 0] - first + 180.0, 360.0) - 180.0
    found[:, :: 2 * _STEPS] = np.stack(
        [first + np.mod(corners[..., 0] - first + 180.0, 360.0) - 180.0, corners[..., 1]], axis=-1
    )
    rings = np.concatenate([found[:, ::2], found[:, :1]], axis=1)
    bent = np.linalg.norm(found[:, 1::2] - (rings[:, :-1] + rings[:, 1:]) / 2, axis=-1).max(axis=1)
    return rings, bent
