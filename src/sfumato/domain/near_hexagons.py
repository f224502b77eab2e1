"""Which hexagons of H3 hold two places less than δ apart, as the shortest way on the WGS84 ellipsoid goes: none is
missed.

**Chords.** A way on the ellipsoid is never shorter than the straight line through the earth between its ends. Between
two corners the border of a cell is an arc of a great circle of latitudes and longitudes, and lies within the sagitta
L²/(8R) of the straight line between them (`slack`, which also covers that the earth is no sphere). So two cells with
places less than δ apart have outlines of straight lines less than δ and twice the sagitta apart, in space. Seen along
any direction they are no farther from each other than that: they are compared in the plane that touches the earth
between them, where disjoint outlines are as near as a corner of one and a side of the other. There is no date line in
space and no pole, and a pentagon is a cell with five sides.

**Elsewhere** begins in the cells around the cover: a way out of it enters one of them. Whatever is near to such a cell
is near to elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain.near_regions import MAJOR, MOST_EDGES
from sfumato.errors import TooLarge

_E2 = (2 - 1 / 298.257223563) / 298.257223563
_ROUNDED = 1e-3
"""Metres by which corners and cells of places differ from what is said here, at most: a thousand times what they do."""
_BENT = 1.02
"""How much more than a sphere of the larger radius the ellipsoid is bent along a great circle of latitudes."""
_DATUM = 1e-6
_FLAT = MAJOR / 4
"""Farther apart than this the earth is no plane: such cells are taken for near."""
_AT_ONCE = 1 << 15


def near_hexagons(corners: Floats, centres: Floats, inside: int, delta: Fraction) -> Integers:
    """Every pair u < v of cells less than δ metres apart; ``inside`` is the number of those of the cover, which stand
    first, and the number of elsewhere, which the cells behind them belong to.

    ``corners`` are (lon, lat) of shape (cells, corners, 2), the last corner repeated where a cell has fewer.
    """
    from scipy.spatial import cKDTree

    points, middles = in_space(corners), in_space(centres)
    sag = slack(points)
    reach = float(delta) * (1 + _DATUM) + 2 * sag + 2 * _ROUNDED
    around = np.linalg.norm(points - middles[:, None], axis=2).max(axis=1) + sag + _ROUNDED
    wide = float(around.max())
    own, every = cKDTree(middles[:inside]), cKDTree(middles)
    least = float(delta) + float(np.median(around))
    refuse_many((int(own.count_neighbors(own, least)) - inside) // 2, delta)
    parts, many = [np.zeros(0, np.int64)], 0
    for one, other in _candidates(own, every, middles, reach + 2 * wide):
        apart = np.linalg.norm(middles[one] - middles[other], axis=1)
        kept = (other > one) & (apart < reach + around[one] + around[other])
        one, other, apart = one[kept], other[kept], apart[kept]
        near = apart < reach
        near[~near] = _outlines_near(points, one[~near], other[~near], reach)
        parts.append(np.unique(one[near] * (inside + 1) + np.minimum(other[near], inside)))
        many += len(parts[-1])
        refuse_many(many, delta)
    found = np.sort(np.concatenate(parts))
    pairs = np.stack([found // (inside + 1), found % (inside + 1)], axis=-1)
    if len(centres) == inside:  # a cover of the earth: whoever is nowhere may be anywhere
        rest = np.stack([np.arange(inside), np.full(inside, inside)], axis=-1)
        pairs = np.concatenate([pairs, rest])
    return pairs


def refuse_many(pairs: int, delta: Fraction) -> None:
    """Refuse more pairs than a list of them may hold."""
    if pairs > MOST_EDGES:
        raise TooLarge(
            f"{pairs:,} pairs of hexagons or more are less than {float(delta):g} m apart, and a list holds at "
            f"most {MOST_EDGES:,}. Nothing was built. Use a smaller distance, a coarser resolution, or a smaller cover."
        )


def in_space(places: Floats) -> Floats:
    """(lon, lat) in degrees on the WGS84 ellipsoid as points in space, in metres."""
    lon, lat = np.radians(places[..., 0]), np.radians(places[..., 1])
    across = MAJOR / np.sqrt(1 - _E2 * np.sin(lat) ** 2)
    flat = across * np.cos(lat)
    return np.stack([flat * np.cos(lon), flat * np.sin(lon), across * (1 - _E2) * np.sin(lat)], axis=-1)


def slack(points: Floats) -> float:
    """How far a border is from the straight line between two corners, at most: of the longest side of all."""
    longest = float(np.linalg.norm(points - np.roll(points, 1, axis=1), axis=2).max())
    turn = 2 * math.asin(min(longest / (2 * MAJOR * (1 - _E2)), 1.0))  # the ellipsoid is nowhere nearer to its middle
    return _BENT * MAJOR * turn**2 / 8


def _candidates(own: object, every: object, middles: Floats, radius: float) -> Iterator[tuple[Integers, Integers]]:
    """(cells of the cover, cells near to them by their middles), some at a time."""
    for start in range(0, own.n, 2048):  # type: ignore[attr-defined]
        block = np.arange(start, min(start + 2048, own.n))  # type: ignore[attr-defined]
        lists = every.query_ball_point(middles[block], radius)  # type: ignore[attr-defined]
        one = np.repeat(block, [len(near) for near in lists])
        yield one, np.concatenate([np.asarray(near, np.int64) for near in lists])


def _outlines_near(points: Floats, one: Integers, other: Integers, reach: float) -> NDArray[np.bool_]:
    """Whether outlines are less than ``reach`` apart."""
    found = np.empty(len(one), np.bool_)
    for start in range(0, len(one), _AT_ONCE):
        block = slice(start, start + _AT_ONCE)
        found[block] = _flat_near(points[one[block]], points[other[block]], reach)
    return found


def _flat_near(these: Floats, those: Floats, reach: float) -> NDArray[np.bool_]:
    """The same of outlines (pairs, corners, 3), in the plane that touches the earth between each two."""
    up = these[:, 0] + those[:, 0]
    long = np.linalg.norm(up, axis=1, keepdims=True)
    far = np.linalg.norm(these[:, 0] - those[:, 0], axis=1) > _FLAT
    up = np.where(long > 1.0, up / np.maximum(long, 1.0), [0.0, 0.0, 1.0])
    east = np.cross(np.where(np.abs(up[:, 2:]) < 0.9, [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]), up)
    east /= np.linalg.norm(east, axis=1, keepdims=True)
    plane = np.stack([east, np.cross(up, east)], axis=2)
    a, b = these @ plane, those @ plane
    return far | (np.minimum(_to_sides(a, b), _to_sides(b, a)) < reach)


def _to_sides(corners: Floats, outline: Floats) -> Floats:
    """The least distance of corners (pairs, k, 2) from the sides of outlines (pairs, m, 2)."""
    ends = np.roll(outline, -1, axis=1)
    along = (ends - outline)[:, None]
    away = corners[:, :, None] - outline[:, None]
    square = (along**2).sum(axis=3)
    share = np.clip((away * along).sum(axis=3) / np.maximum(square, 1e-30), 0.0, 1.0)
    least: Floats = np.sqrt(((away - share[..., None] * along) ** 2).sum(axis=3).min(axis=(1, 2)))
    return least
