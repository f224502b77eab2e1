"""Which regions hold two places less than δ apart, as the shortest way on the WGS84 ellipsoid goes: none is missed.

**The bands.** Take the borders that lie in a band of latitudes one degree high, widened by δ on both sides. A step of
the ellipsoid is ds² = M² dφ² + (N cos φ)² dλ². With the least M and the least N cos φ of the band in their place the
band is a plane in which no curve is longer than on the ellipsoid. A way shorter than δ that begins in the band stays in
the widened one; so two places less than δ apart are less than δ apart in the plane of some band. Straight borders stay
straight there, and nothing is cut into pieces.

**Borders** are enough: regions do not overlap, and a way from one into another crosses the border of both. Elsewhere is
what lies on the other side of a border of one region alone. A way over the date line is one to a copy shifted by 360
degrees. Near a pole N cos φ is taken as nothing, and all that is near in latitude is near.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain.outlines import Outlines
from sfumato.errors import MissingExtra, TooLarge
from sfumato.linear import distinct

MAJOR = 6_378_137.0
_FLAT = 1 / 298.257223563
_E2 = _FLAT * (2 - _FLAT)
_SLACK = 1e-6
"""Metres by which rounding may shorten or lengthen a way: a hundred times what it does."""
_DATUM = 1e-6
"""How much longer δ is on other ellipsoids of the earth than on this one, at most, as a share."""
HALF_EARTH = 20_037_509
"""No shortest way on the earth is as long, in metres."""
MOST_EDGES = 2_000_000


def near_regions(outlines: Outlines, delta: Fraction) -> Integers:
    """Every pair u < v of regions less than δ metres apart, and of those that touch; the last number is elsewhere."""
    cells = len(outlines.regions)
    if delta >= HALF_EARTH:
        return np.stack(np.triu_indices(cells, k=1), axis=-1).astype(np.int64)
    lines = _Lines.of(outlines)
    reach = float(delta) * (1 + _DATUM) + _SLACK
    found = np.zeros(0, np.int64)
    low, high = outlines.bounds[1], outlines.bounds[3]
    for band in range(math.floor(low), math.floor(min(high, 89.999)) + 1):
        near = lines.near(band, reach)
        found = distinct(np.concatenate([found, near[:, 0] * cells + near[:, 1]]))
        if len(found) > MOST_EDGES:
            raise TooLarge(
                f"more than {MOST_EDGES:,} pairs of regions are less than {float(delta):g} m apart, too many to list. "
                "Nothing was built. Use a smaller distance, or larger regions."
            )
    pairs = np.stack([found // cells, found % cells], axis=-1)
    if not (pairs == cells - 1).any():  # regions that cover the earth: whoever is nowhere may be anywhere
        rest = np.stack([np.arange(cells - 1), np.full(cells - 1, cells - 1)], axis=-1)
        pairs = np.concatenate([pairs, rest])
    return pairs


def scales(south: float, north: float) -> tuple[float, float]:
    """(the least N cos φ, the least M) between two latitudes in degrees, in metres a degree."""
    far = max(abs(south), abs(north))
    close = 0.0 if south <= 0 <= north else min(abs(south), abs(north))
    turn = math.pi / 180
    across = 0.0 if far >= 90 else MAJOR * math.cos(far * turn) / math.sqrt(1 - _E2 * math.sin(far * turn) ** 2)
    along = MAJOR * (1 - _E2) / (1 - _E2 * math.sin(close * turn) ** 2) ** 1.5
    return across * turn * (1 - 1e-12), along * turn * (1 - 1e-12)


class _Lines:
    """The segments of all borders in the order of their rings, each with the region that it bounds; then those that
    bound one region alone, for elsewhere.
    """

    def __init__(self, segments: Floats, owner: Integers) -> None:
        self.segments, self.owner = segments, owner
        self.low = np.minimum(segments[:, 1], segments[:, 3])
        self.high = np.maximum(segments[:, 1], segments[:, 3])

    @classmethod
    def of(cls, outlines: Outlines) -> _Lines:
        segments, owner = outlines.segments()
        borders, number, of = outlines.borders()
        ends = np.ones((len(borders), 2), np.int64) * np.array([-1, len(outlines.regions)])
        np.maximum.at(ends[:, 0], number, of)
        np.minimum.at(ends[:, 1], number, of)
        alone = borders[ends[:, 0] == ends[:, 1]]
        return cls(
            np.concatenate([segments, alone]),
            np.concatenate([owner, np.full(len(alone), len(outlines.regions) - 1)]),
        )

    def near(self, band: int, reach: float) -> NDArray[np.int64]:
        """The pairs that are near in the plane of a band of latitudes."""
        try:
            import shapely
        except ImportError as error:
            raise MissingExtra("shapely", "geo", "How near regions are to each other") from error
        _, along = scales(-1.0, 1.0)  # where degrees of latitude are shortest
        south, north = band - reach / along, band + 1 + reach / along
        across, along = scales(max(south, -90.0), min(north, 90.0))
        turn = math.inf if across == 0 else reach / across
        if turn >= 180:  # near the pole, once round is no farther than δ
            across, turn = 0.0, 0.0
        inside = (self.high >= south) & (self.low <= north)
        if not inside.any():
            return np.zeros((0, 2), np.int64)
        segments, owner = self.segments[inside], self.owner[inside]
        lines, of = self._lines(shapely, segments * np.array([across, along] * 2), owner)
        tree = shapely.STRtree(lines)
        pairs = [_near(tree, lines, of, of, reach)]
        if turn:  # over the date line
            x0, x1 = shapely.bounds(lines)[:, 0], shapely.bounds(lines)[:, 2]
            west = np.flatnonzero(x0 + 360 * across <= x1.max() + reach)
            if len(west):
                moved = shapely.transform(lines[west], lambda points: points + np.array([360 * across, 0.0]))
                pairs.append(_near(tree, moved, of[west], of, reach))
        both = np.sort(np.concatenate(pairs), axis=1)
        return both[both[:, 0] < both[:, 1]]

    @staticmethod
    def _lines(shapely: Any, segments: Floats, owner: Integers) -> tuple[Any, Integers]:
        """Segments that follow one another joined to lines, with the region of each."""
        begins = np.ones(len(segments), np.bool_)
        begins[1:] = (owner[1:] != owner[:-1]) | (segments[1:, :2] != segments[:-1, 2:]).any(axis=1)
        first = np.flatnonzero(begins)
        many = np.diff(np.append(first, len(segments)))
        line = np.repeat(np.arange(len(first)), many + 1)
        points = np.empty((len(line), 2))
        starts = np.cumsum(many + 1) - (many + 1)
        heads = np.ones(len(line), np.bool_)
        heads[starts] = False
        points[starts] = segments[first, :2]
        points[heads] = segments[:, 2:]
        return shapely.linestrings(points, indices=line), owner[first]


def _near(tree: Any, lines: Any, of: Integers, of_tree: Integers, reach: float) -> NDArray[np.int64]:
    one, other = tree.query(lines, predicate="dwithin", distance=reach)
    return np.unique(np.stack([of[one], of_tree[other]], axis=-1), axis=0)
