"""Great-circle distances on a grid of degrees, and which cells they join.

Longitudes run along the first axis, latitudes along the second; distances are in metres on a sphere of the mean earth
radius. Every comparison here errs on the side of joining: one edge too many costs a little noise, one too few would
break the promise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.domain import Domain
from sfumato.domain.interval import plain
from sfumato.errors import InvalidInput

RADIUS = 6_371_008.8
"""The mean radius of the earth in metres (IUGG)."""

# An arc is the angle of a vector of four entries, each right to a few units in the last place.
ARC_ERROR = 2.0**-48


def refuse_unless_degrees(domain: Domain) -> None:
    """Refuse a domain that is not a grid of longitudes and latitudes."""
    if domain.ndim != 2:
        raise InvalidInput(
            "metric='great-circle' needs a grid of two axes, longitude and latitude in degrees; this domain has "
            f"{domain.ndim}. Nothing was built. Use such a grid, or another metric."
        )
    if len(domain.equal) < 2:
        raise InvalidInput(
            "metric='great-circle' needs equal cells along both axes, and this grid is cut at given edges. Nothing was "
            "built. Use sf.Grid(bounds, shape), or another metric."
        )
    across, along = domain.intervals
    if along.low < -90 or along.high > 90:
        raise InvalidInput(
            "metric='great-circle' needs latitudes from -90 to 90 on the second axis; "
            f"{along.name!r} runs from {plain(along.low)} to {plain(along.high)}. Nothing was built. "
            "Give degrees, longitude first."
        )
    if across.high - across.low > 360:
        raise InvalidInput(
            "metric='great-circle' needs longitudes that span at most 360 degrees on the first axis; "
            f"{across.name!r} runs from {plain(across.low)} to {plain(across.high)}. Nothing was built. "
            "Cut the bounds."
        )


def refuse_beyond_date_line(domain: Domain) -> None:
    """Refuse longitudes that are written in two ways: the same place would be clamped to one end or the other."""
    across = domain.intervals[0]
    if across.low < -180 or across.high > 180:
        raise InvalidInput(
            "metric='great-circle' needs longitudes from -180 to 180 on the first axis; "
            f"{across.name!r} runs from {plain(across.low)} to {plain(across.high)}. Nothing was built. Beyond 180 "
            "degrees a longitude is written in two ways, as 180.01 and as -179.99: such a place and its neighbours "
            "would be counted at both ends of the bounds, as if all the way around the globe were between them. Cut "
            "the bounds at the date line."
        )


def refuse_meeting_ends(domain: Domain, delta: Any, limit: float) -> None:
    """Refuse bounds whose west and east ends come within the limit of each other around the globe.

    Only points more than 180° of longitude apart are nearer the other way round. On that way they are at least as far
    apart in longitude as the two ends, and then nearest on the parallel nearest to a pole: hav d = hav(φ - φ') +
    cos φ cos φ' hav(c) ≥ cos² m hav(c), where m is the largest latitude and c the gap between the ends.
    """
    across = domain.intervals[0]
    span = across.high - across.low
    if span > 180 and RADIUS * _on_parallel(domain, np.radians(360 - span)) < limit:
        raise InvalidInput(
            f"delta={delta!r} metres is more than the way around the globe between the two ends of the bounds, the "
            f"longitudes {plain(across.low)} and {plain(across.high)}, where nothing joins the cells. Nothing was "
            "built. Cut the bounds to at most 180 degrees of longitude or farther from the pole, or use a smaller "
            "delta."
        )


def widest(domain: Domain) -> float:
    """The largest distance between two points of the domain.

    It grows with the gap in longitude up to 180°. For points of fixed longitude the farthest pair has one latitude at
    an end of the range; the distance from there turns at the opposite point of the other meridian, or nowhere.
    """
    across, along = domain.intervals
    gap = np.radians(min(across.high - across.low, 180.0))
    low, high = math.radians(along.low), math.radians(along.high)
    ends = np.array([low, high])
    turn = _foot(ends, gap)
    others = [np.full(2, low), np.full(2, high), np.clip(turn - np.pi, low, high), np.clip(turn + np.pi, low, high)]
    return RADIUS * max(float(arc(ends, other, gap).max()) for other in others)


def rounding(domain: Domain) -> float:
    """How far, in metres, the rounding of edges and arcs can move the distance of two cells."""
    seams = sum(math.ulp(max(-a.low, a.low, -a.high, a.high)) + 4 * math.ulp(a.high - a.low) for a in domain.intervals)
    return RADIUS * (math.radians(seams) + ARC_ERROR)


def staircase(domain: Domain, limit: float) -> NDArray[np.int64]:
    """For every offset b in rows, the largest offset in columns at which *some* rows hold points nearer than the limit.

    Points in longitudes g apart and latitudes φ, φ' have hav d = hav(φ - φ') + cos φ cos φ' hav(g): less the smaller g
    is, so cells are nearest at the gap between them. Shifting both points by as many rows keeps φ - φ', and cos φ
    cos φ' = (cos(φ + φ') + cos(φ - φ'))/2 falls as |φ + φ'| grows, which is convex in the shift: of all rows b apart,
    the two nearest to the north end and the two nearest to the south end hold the nearest points. Each entry is raised
    to the largest after it, so that the stencil is downward closed.
    """
    across, along = domain.equal
    width, height = math.radians(float(across.width)), math.radians(float(along.width))
    rows = np.arange(min(int(limit / RADIUS / height) + 2, along.cells - 1) + 1)
    edges, n = np.radians(along.edges), along.cells
    pairs = [
        ((edges[0], edges[1]), (edges[rows], edges[rows + 1])),
        ((edges[n - 1 - rows], edges[n - rows]), (edges[n - 1], edges[n])),
    ]
    # Distances grow with the offset: halve the range in which the first one beyond the limit lies.
    near, far = np.full(len(rows), -1), np.full(len(rows), across.cells)
    while (far - near > 1).any():
        middle = (near + far) // 2
        gap = np.minimum(np.maximum(middle - 1, 0) * width, np.pi)
        joined = RADIUS * np.min([_between_rows(*pair, gap) for pair in pairs], axis=0) < limit
        near, far = np.where(joined, middle, near), np.where(joined, far, middle)
    near = near[: int(np.flatnonzero(near >= 0)[-1]) + 1]
    return np.maximum.accumulate(near[::-1])[::-1]


def ring(domain: Domain, limit: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which columns and which rows are nearer than the limit to the boundary in *some* row or column."""
    depths = [np.minimum(np.arange(n), np.arange(n)[::-1]) for n in domain.shape]
    across, along = (depth * math.radians(float(axis.width)) for depth, axis in zip(depths, domain.equal, strict=True))
    return RADIUS * _on_parallel(domain, np.minimum(across, np.pi)) < limit, RADIUS * along < limit


def arc(first: Any, second: Any, gap: Any) -> Floats:
    """The angle between points of two latitudes on meridians a gap apart, in radians.

    hav d = sin²(Δ/2) cos²(g/2) + cos²(s/2) sin²(g/2) with Δ, s the difference and sum of the latitudes, and 1 - hav d
    is a sum of the same kind: no digits are lost, neither for near points nor for opposite ones.
    """
    apart, total, half = (first - second) / 2, (first + second) / 2, gap / 2
    near = np.hypot(np.sin(apart) * np.cos(half), np.cos(total) * np.sin(half))
    far = np.hypot(np.cos(apart) * np.cos(half), np.sin(total) * np.sin(half))
    angle: Floats = 2 * np.arctan2(near, far)
    return angle


def _between_rows(first: tuple[Any, Any], second: tuple[Any, Any], gap: Floats) -> Floats:
    """The smallest angle between a point of one row and a point of another on meridians a gap apart: exact.

    cos d has no extremum inside the rectangle of the two latitudes but the saddle at the equator, so one of them is an
    end of its row; the best other one is the foot on the other meridian, or an end of its row as well.
    """
    found = [arc(a, b, gap) for a in first for b in second]
    for ends, (low, high) in ((first, second), (second, first)):
        found += [arc(end, np.clip(_foot(end, gap), low, high), gap) for end in ends]
    nearest: Floats = np.min(np.broadcast_arrays(*found), axis=0)
    return nearest


def _foot(latitude: Any, gap: Any) -> Any:
    """Where a great circle through two poles, a gap away in longitude, comes nearest to a point of this latitude."""
    return np.arctan2(np.sin(latitude), np.cos(latitude) * np.cos(gap))


def _on_parallel(domain: Domain, gap: Any) -> Floats:
    """The angle between meridians a gap apart on the parallel of the domain that is nearest to a pole."""
    along = domain.intervals[1]
    top = math.radians(max(abs(along.low), abs(along.high)))
    return arc(top, top, gap)
