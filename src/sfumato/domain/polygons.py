"""From a GeoDataFrame, or a file of polygons, to the axis of regions: read, checked, and refused by name.

Everything here is about public outlines. What it needs is in the extra `geo`, imported when somebody has regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.domain.areas import Areas
from sfumato.domain.axis import axis_name
from sfumato.domain.coarser import Level
from sfumato.domain.geometries import outlines_of
from sfumato.domain.outlines import Outlines
from sfumato.domain.places import ELSEWHERE
from sfumato.errors import DeclarationWarning, InvalidInput, MissingExtra, warn_caller
from sfumato.exact import shown
from sfumato.naming import nearest

NARROW = 1e-5
"""Gaps narrower than this, in degrees (about a metre), were hardly meant."""
_TOUCH = 1e-9
"""Two regions that overlap in a strip narrower than this, a tenth of a millimetre, meet at a border."""
_WIDEST = 180.0
_NEAR_POLE = 89.0
_NAMED = 5


def read_areas(areas: Any, id: str, levels: Sequence[str], name: str, repair: bool) -> Areas:
    """The axis of the regions, or a refusal."""
    axis_name(name)
    frame = opened_areas(areas)
    import geopandas
    import pyproj
    import shapely

    crs = checked_crs(frame.crs)
    ids = names_in(frame, id, "id")
    if not ids:
        raise InvalidInput("areas has no rows. Nothing was built. Give a region or more.")
    if len(set(ids)) < len(ids):
        twice = sorted({one for one in ids if ids.count(one) > 1}) if len(ids) < 5000 else []
        raise InvalidInput(
            f"id={id!r}: several regions have the same name{': ' + _some(twice) if twice else ''}. Nothing was built. "
            "Give a column with one name a row, or dissolve them."
        )
    if ELSEWHERE in ids:
        raise InvalidInput(f"id={id!r}: {ELSEWHERE!r} is the cell of all that lies in no region. Rename that region.")
    if isinstance(levels, str):
        raise InvalidInput(
            f"levels={levels!r} must be a list of columns, such as levels=[{levels!r}]. Nothing was built."
        )
    coarser = tuple(Level(level, names_in(frame, level, "levels")) for level in levels)
    shapes = _checked_shapes(np.asarray(frame.geometry.array, dtype=object), ids, repair)
    shapes = _apart(shapes, ids, repair)
    _warn_of_slivers(shapes)
    outlines = outlines_of(shapes)
    _refuse_wide(outlines, ids)
    made = (("geopandas", geopandas.__version__), ("pyproj", pyproj.__version__), ("shapely", shapely.__version__))
    return Areas(
        name=name,
        ids=ids,
        crs=crs,
        degrees=True,
        digest=outlines.digest,
        levels=coarser,
        outlines=outlines,
        made=(*made, ("geos", ".".join(map(str, shapely.geos_version)))),
    )


def opened_areas(areas: Any, name: str = "areas") -> Any:
    """A GeoDataFrame; in messages it bears the name of the argument."""
    try:
        import geopandas
    except ImportError as error:
        what = "A domain of regions" if name == "areas" else "Reading polygons"
        raise MissingExtra("geopandas", "geo", what) from error
    if isinstance(areas, (str, Path)):
        path = Path(areas)
        if not path.exists():
            raise InvalidInput(f"{name}={str(areas)!r} does not exist. Nothing was built. Check the path.")
        try:
            if path.suffix.lower() in (".parquet", ".pq"):
                return geopandas.read_parquet(path)
            return geopandas.read_file(path)
        except MissingExtra:
            raise
        except Exception as error:  # of several readers, each with errors of its own
            raise InvalidInput(
                f"{name}={str(areas)!r} could not be read as GeoJSON or GeoParquet ({type(error).__name__}). Nothing "
                "was built. Open it with GeoPandas and give the GeoDataFrame."
            ) from error
    if not isinstance(areas, geopandas.GeoDataFrame):
        raise InvalidInput(
            f"{name} of type {type(areas).__name__} must be a GeoDataFrame, or the path of a GeoJSON or GeoParquet "
            "file. Nothing was built."
        )
    return areas


def checked_crs(crs: Any, said: str = "areas") -> str:
    """The name of a CRS in degrees on the earth, or a refusal."""
    if crs is None:
        raise InvalidInput(
            f"{said} has no CRS, so that nobody knows where its numbers lie. Nothing was built. Say it with "
            f"{said}.set_crs(…), such as {said}.set_crs('EPSG:4326') for longitudes and latitudes."
        )
    earth = crs.ellipsoid is not None and abs(crs.ellipsoid.semi_major_metre / 6_378_137 - 1) < 1e-5
    degrees = crs.is_geographic and crs.axis_info and "degree" in crs.axis_info[0].unit_name
    greenwich = crs.prime_meridian is None or crs.prime_meridian.longitude == 0
    if not (earth and degrees and greenwich):
        raise InvalidInput(
            f"{said} has the CRS {shown(crs.name)}, which is not one of degrees from Greenwich on the earth. Nothing "
            f"was built. Convert it with {said}.to_crs('EPSG:4326')."
        )
    found = crs.to_authority(min_confidence=100)
    return ":".join(found) if found else str(crs.to_wkt())


def names_in(frame: Any, column: str, keyword: str, said: str = "areas") -> tuple[str, ...]:
    """A column of names as text, none missing."""
    if column not in frame.columns or column == frame.geometry.name:
        known = [str(name) for name in frame.columns if name != frame.geometry.name]
        raise InvalidInput(
            f"{keyword} names {shown(column)}, which is no column of {said}: {', '.join(map(repr, known))}."
            f"{nearest(str(column), known)} Nothing was built."
        )
    values = frame[column]
    if values.isna().any():
        raise InvalidInput(f"{keyword}={column!r} has rows without a value. Nothing was built. Name every row.")
    return tuple(str(value) for value in values.tolist())


def _checked_shapes(shapes: Any, ids: Sequence[str], repair: bool) -> Any:
    """Valid polygons and multipolygons."""
    import shapely

    missing = shapely.is_missing(shapes) | shapely.is_empty(shapes)
    if missing.any():
        raise InvalidInput(
            f"areas has regions without a geometry: {_some(_which(ids, missing))}. Nothing was built. Leave them out."
        )
    collections = shapely.get_type_id(shapes) == 7
    invalid = ~shapely.is_valid(shapes) | collections
    if invalid.any() and not repair:
        first = np.flatnonzero(invalid)[0]
        why = "a collection" if collections[first] else shapely.is_valid_reason(shapes[first]).split("[")[0]
        raise InvalidInput(
            f"areas has invalid polygons: {_some(_which(ids, invalid))} (the first: {why}). Nothing was built. Mend "
            "them, or say repair=True."
        )
    if invalid.any():
        shapes = shapes.copy()
        shapes[invalid] = [_polygons(shape) for shape in shapely.make_valid(shapes[invalid])]
    shapes = shapely.force_2d(shapes)
    kinds = shapely.get_type_id(shapes)
    other = ~np.isin(kinds, (3, 6)) | shapely.is_empty(shapes)
    if other.any():
        raise InvalidInput(
            f"areas has regions that are no polygons: {_some(_which(ids, other))}. Nothing was built. Give polygons "
            "and multipolygons."
        )
    return shapes


def _polygons(shape: Any) -> Any:
    """The polygons of what `make_valid` returns, which may hold multipolygons beside lines."""
    import shapely

    parts = shapely.get_parts(shapely.get_parts(shape))
    kept = parts[shapely.get_type_id(parts) == 3]
    return kept[0] if len(kept) == 1 else shapely.multipolygons(list(kept))


def _apart(shapes: Any, ids: Sequence[str], repair: bool) -> Any:
    """Polygons of which no two overlap."""
    import shapely

    tree = shapely.STRtree(shapes)
    one, other = tree.query(shapes, predicate="intersects")
    one, other = one[one < other], other[one < other]
    shared = shapely.intersection(shapes[one], shapes[other])
    thick = shapely.area(shared) > _TOUCH * np.maximum(shapely.length(shared), _TOUCH)
    one, other = one[thick], other[thick]
    if not len(one):
        return shapes
    if not repair:
        pairs = [f"{ids[a]!r} and {ids[b]!r}" for a, b in zip(one[:_NAMED], other[:_NAMED], strict=True)]
        more = f", and {len(one) - _NAMED} more pairs" if len(one) > _NAMED else ""
        raise InvalidInput(
            f"areas has polygons that overlap: {', '.join(pairs)}{more}. Nothing was built. Mend them, or say "
            "repair=True, which gives what two share to the first of them."
        )
    shapes = shapes.copy()
    for a, b in sorted(zip(one.tolist(), other.tolist(), strict=True)):
        shapes[b] = _polygons(shapely.difference(shapes[b], shapes[a]))
    empty = shapely.is_empty(shapes)
    if empty.any():
        raise InvalidInput(
            f"areas has regions of which the others leave nothing: {_some(_which(ids, empty))}. Nothing was built. "
            "Leave them out."
        )
    return shapes


def _warn_of_slivers(shapes: Any) -> None:
    """Gaps that are narrow were hardly meant."""
    import shapely

    parts = shapely.get_parts(shapely.union_all(shapes))
    holes = [ring for part in parts for ring in part.interiors]
    if not holes:
        return
    filled = shapely.polygons(holes)
    narrow = int((2 * shapely.area(filled) < NARROW * shapely.length(filled)).sum())
    if narrow:
        warn_caller(
            f"areas leaves {narrow} gap{'s' if narrow > 1 else ''} narrower than about a metre between its regions. "
            "What lies there is counted as elsewhere. Close them where they were not meant.",
            DeclarationWarning,
        )


def _refuse_wide(outlines: Outlines, ids: Sequence[str]) -> None:
    """Refuse what was drawn the long way round the earth, and what lies beyond its poles."""
    points, begins = outlines.points, outlines.rings[:-1]
    high = np.maximum.reduceat(np.abs(points[:, 1]), begins)
    wide = np.maximum.reduceat(points[:, 0], begins) - np.minimum.reduceat(points[:, 0], begins) > _WIDEST
    owners = outlines.owners
    around = np.zeros(len(ids), np.bool_)
    around[owners[wide & (high < _NEAR_POLE)]] = True
    if around.any():
        raise InvalidInput(
            f"areas has parts that are wider than 180°: {_some(_which(ids, around))}. Nothing was built. What crosses "
            "the date line must be cut there, at 180 and -180."
        )
    if not outlines.on_earth:
        raise InvalidInput(
            "areas lies beyond the poles, or goes round the earth more than once. Nothing was built. Are longitude and "
            "latitude in this order, and is its CRS the right one?"
        )


def _which(ids: Sequence[str], mask: Any) -> list[str]:
    return [ids[i] for i in np.flatnonzero(mask).tolist()]


def _some(ids: Sequence[str]) -> str:
    """A few names."""
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return ", ".join(map(repr, ids[:_NAMED])) + more
