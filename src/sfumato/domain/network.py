"""`network`: a place that is a network of roads, from a GeoDataFrame or a file of lines.

What reading takes is in the extra `geo`, imported when somebody has lines; locating and measuring takes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.axis import axis_name
from sfumato.domain.coarser import Level
from sfumato.domain.factor import PLACE, Factor
from sfumato.domain.lines import Lines, on_earth
from sfumato.domain.outlines import starts_of
from sfumato.domain.places import ELSEWHERE
from sfumato.domain.product import Domain
from sfumato.domain.roads import ENDS, Roads
from sfumato.errors import InvalidInput
from sfumato.exact import shown

_METRES = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(m|km)\s*")
_LINES = (1, 2, 5)  # a line, a closed one, several as one


class Network(Domain):
    """Segments of roads, one cell for each, and elsewhere. Made by `network`."""


def network(
    lines: Any,
    *,
    id: str | None = None,
    levels: Sequence[str] = (),
    snap: str = "30 m",
    exits: str = ENDS,
    name: str = PLACE,
) -> Network:
    """A road network: one cell for each segment of its lines, then one for elsewhere, which is all that is on no road.

    ``lines`` is a GeoDataFrame, or the path of a GeoJSON or GeoParquet file, with a line a row, and a CRS of degrees on
    an ellipsoid of the earth. Lines are joined where they end at the same point, and are cut where a point of one is a
    point of another; those that cross without one pass over each other. ``id`` is the column of the names (numbers, if
    left out), with :1, :2, … for the pieces of a line; ``levels`` are columns of coarser names, such as the district.
    Roads are public by declaration: take them from a map, and never from where people went.

    *Location.* A place is on the nearest segment within ``snap``, of two equally near on the first, on every engine the
    same; else it is elsewhere, the last cell in ``shape``. *Moves* are those along the roads: `sf.move("500 m",
    along=roads)` joins the segments that hold two places less than 500 m apart by road. With ``exits="ends"`` roads go
    on beyond the map where they end, and there alone a record comes from elsewhere or goes there (of roads that end
    nowhere: anywhere); with "anywhere" it does so on every segment. Reading needs ``sfumato[geo]``.

    >>> import geopandas, shapely
    >>> crossing = [[(-0.01, 0), (0, 0)], [(0, 0), (0.01, 0)], [(0, 0), (0, 0.01)]]
    >>> shapes = [shapely.LineString(line) for line in crossing]
    >>> lines = geopandas.GeoDataFrame({"road": ["west", "east", "north"]}, geometry=shapes, crs="EPSG:4326")
    >>> roads = sf.network(lines, id="road")
    >>> roads.shape, roads.locate([(0.005, 0.0001), (0.0001, 0.005), (0.005, 0.005)]).tolist()
    ((4,), [1, 2, 3])
    """
    axis_name(name)
    frame, crs = _opened(lines)
    given = _names(frame, id)
    if isinstance(levels, str):
        raise InvalidInput(
            f"levels={levels!r} must be a list of columns, such as levels=[{levels!r}]. Nothing was built."
        )
    from sfumato.domain.polygons import names_in

    coarser = [(level, names_in(frame, level, "levels", "lines")) for level in levels]
    found, row = _segments(frame, given)
    ids = _called(given, row)
    import geopandas
    import shapely

    made = (("geopandas", geopandas.__version__), ("shapely", shapely.__version__))
    axis = Roads(
        name=name,
        ids=ids,
        crs=crs,
        snap=_metres(snap),
        exits=exits,
        levels=tuple(Level(level, tuple(of[i] for i in row.tolist())) for level, of in coarser),
        lines=found,
        made=made,
    )
    domain = Network.__new__(Network)
    Domain.__init__(domain, (axis,), (Factor(name, (0,)),))
    return domain


def _opened(lines: Any) -> tuple[Any, str]:
    """The frame and its CRS."""
    from sfumato.domain.polygons import checked_crs, opened_areas  # need packages of the geo extra

    frame = opened_areas(lines, "lines")
    return frame, checked_crs(frame.crs, "lines")


def _names(frame: Any, id: str | None) -> tuple[str, ...]:
    from sfumato.domain.polygons import names_in

    if not len(frame):
        raise InvalidInput("lines has no rows. Nothing was built. Give a road or more.")
    found = tuple(map(str, range(len(frame)))) if id is None else names_in(frame, id, "id", "lines")
    if len(set(found)) < len(found):
        twice = sorted({one for one in found if found.count(one) > 1}) if len(found) < 5000 else []
        raise InvalidInput(
            f"id={id!r}: several lines have the same name{': ' + ', '.join(map(repr, twice[:5])) if twice else ''}. "
            "Nothing was built. Give a column with one name a row, or leave id out."
        )
    if ELSEWHERE in found:
        raise InvalidInput(f"id={id!r}: {ELSEWHERE!r} is the cell of all that is on no road. Rename that line.")
    return found


def _segments(frame: Any, names: Sequence[str]) -> tuple[Lines, Integers]:
    """The lines, cut where they share points, and the row of each."""
    import shapely

    shapes = np.asarray(frame.geometry.array, dtype=object)
    missing = shapely.is_missing(shapes) | shapely.is_empty(shapes)
    wrong = ~missing & ~np.isin(shapely.get_type_id(shapes), _LINES)
    for mask, why in ((missing, "rows without a geometry"), (wrong, "geometries that are no lines")):
        if mask.any():
            named = ", ".join(repr(names[i]) for i in np.flatnonzero(mask)[:5])
            raise InvalidInput(f"lines has {why}: {named}. Nothing was built. Leave them out.")
    parts, row = shapely.get_parts(shapes, return_index=True)
    points, part = shapely.get_coordinates(parts, return_index=True)
    points = points + 0.0
    if not on_earth(points):
        raise InvalidInput(
            "lines lies beyond longitudes of -180 to 180 or nearer than a degree to a pole. Nothing was built. Are "
            "longitude and latitude in this order? What crosses the date line must be cut there, at 180 and -180."
        )
    kept = np.ones(len(points), np.bool_)
    kept[1:] = (points[1:] != points[:-1]).any(axis=1) | (part[1:] != part[:-1])
    points, part = points[kept], part[kept]
    many = np.bincount(part, minlength=len(parts))
    if (many < 2).any():
        short = ", ".join(repr(names[row[i]]) for i in np.flatnonzero(many < 2)[:5])
        raise InvalidInput(f"lines has lines of one point: {short}. Nothing was built. Leave them out.")
    _refuse_wide(points, part, [names[i] for i in row.tolist()])
    cut, line = _cut(points, part)
    return cut, row[line]


def _refuse_wide(points: Floats, part: Integers, names: Sequence[str]) -> None:
    wide = (np.abs(np.diff(points[:, 0])) > 180) & (part[1:] == part[:-1])
    if wide.any():
        raise InvalidInput(
            f"lines has a line that crosses the date line: {names[part[np.flatnonzero(wide)[0]]]!r}. Nothing was "
            "built. Cut it there, at 180 and -180."
        )


def _cut(points: Floats, part: Integers) -> tuple[Lines, Integers]:
    """Lines that share no points but their ends, and the line that each was a part of."""
    key = np.where(points[:, :1] == -180.0, [[180.0, 0.0]], points * [[1.0, 0.0]]) + points * [[0.0, 1.0]]
    _, of, many = np.unique(key, axis=0, return_inverse=True, return_counts=True)
    begins = np.ones(len(part), np.bool_)
    begins[1:] = part[1:] != part[:-1]
    ends = np.append(begins[1:], True)
    shared = (many[of.reshape(-1)] > 1) & ~begins & ~ends  # such a point ends one piece and begins the next
    times = 1 + shared.astype(np.int64)
    at = np.repeat(np.arange(len(points)), times)
    again = np.zeros(len(at), np.bool_)
    again[1:] = at[1:] == at[:-1]
    first = np.flatnonzero(begins[at] | again)
    return Lines(points[at], starts_of(np.diff(np.append(first, len(at))))), part[at[first]]


def _called(names: Sequence[str], row: Integers) -> tuple[str, ...]:
    """The name of every segment: that of its row, with :1, :2, … where it is one of several."""
    many = np.bincount(row, minlength=len(names))
    number = np.arange(len(row)) - np.repeat(starts_of(many)[:-1], many) + 1
    return tuple(
        names[i] if many[i] == 1 else f"{names[i]}:{k}" for i, k in zip(row.tolist(), number.tolist(), strict=True)
    )


def _metres(given: Any) -> float:
    """A distance as people write it."""
    read = _METRES.fullmatch(given) if isinstance(given, str) else None
    if read is None:
        raise InvalidInput(f"snap={shown(given)} must be metres as text, such as '30 m'. Nothing was built.")
    return float(read[1]) * (1000 if read[2] == "km" else 1)
