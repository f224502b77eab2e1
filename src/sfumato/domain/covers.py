"""From what a user says of a public area to the hexagons of H3 that cover it: polygons, bounds, or cells themselves.

Everything here is about public areas, in longitudes and latitudes of WGS84.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.domain.h3_index import FINEST, Indices, are_cells, parents_at, read_texts, resolutions
from sfumato.domain.polygons import opened_areas
from sfumato.errors import InvalidInput, MissingExtra, TooLarge
from sfumato.exact import is_number, is_whole, shown

MOST_CELLS = 1 << 22
_WAYS = (
    "a GeoDataFrame, a polygon, the path of a GeoJSON or GeoParquet file, bounds (lon0, lat0, lon1, lat1), or a list "
    "of cells"
)
_PART = 90.0
"""Degrees of longitude that H3 is asked for at once: it takes what is wider than 180 for the other side."""


def h3() -> Any:
    """The package, or its pip line."""
    try:
        import h3.api.basic_int
    except ImportError as error:
        raise MissingExtra("h3", "h3", "A domain of hexagons") from error
    return h3.api.basic_int


def covering(cover: Any, resolution: int) -> Indices:
    """Every cell of the resolution that has a part of the area, rising."""
    h3()
    if not is_whole(resolution) or not 0 <= resolution <= FINEST:
        raise InvalidInput(
            f"resolution={shown(resolution)} must be a whole number from 0 to {FINEST}. Nothing was built."
        )
    found = _listed(cover, int(resolution)) if _is_list(cover) else _of_area(cover, int(resolution))
    if not len(found):
        raise InvalidInput(f"cover holds no cell. Nothing was built. Give {_WAYS}.")
    return found


def _is_list(cover: Any) -> bool:
    """Whether these are cells, and no bounds: four numbers below a million are no cells of H3."""
    if isinstance(cover, (str, Path)) or hasattr(cover, "__geo_interface__") or not isinstance(cover, Iterable):
        return False
    return not _is_bounds(cover)


def _is_bounds(cover: Any) -> bool:
    return isinstance(cover, Sequence) and len(cover) == 4 and all(is_number(x) and abs(x) < 1e6 for x in cover)


def _listed(cover: Iterable[Any], resolution: int) -> Indices:
    given = [x.item() if isinstance(x, np.generic) else x for x in cover]
    numbers = all(is_whole(x) and 0 <= x < 1 << 64 for x in given)
    cells = np.array(given, np.uint64) if numbers else read_texts(given)
    bad = ~are_cells(cells)
    if bad.any():
        first = shown(given[int(np.flatnonzero(bad)[0])])
        raise InvalidInput(
            f"cover lists {int(bad.sum())} that are no cells of H3, the first of them {first}. Nothing was built. Give "
            "cells as text in hexadecimal, or as whole numbers."
        )
    other = resolutions(cells) != resolution
    if other.any():
        has = int(resolutions(cells)[int(np.flatnonzero(other)[0])])
        raise InvalidInput(
            f"cover lists cells of resolution {has}, and the domain is one of resolution {resolution}. Nothing was "
            f"built. Say sf.H3({has}, …), or convert them with h3.uncompact_cells or h3.cell_to_parent."
        )
    return np.unique(cells)


def _of_area(cover: Any, resolution: int) -> Indices:
    shapes = _bounds(cover) if _is_bounds(cover) else _polygons(cover)
    rough = max(0, resolution - 5)
    many = len(_touching(shapes, rough)) * 7 ** (resolution - rough)
    if rough < resolution and many > 4 * MOST_CELLS:  # the rough cells reach beyond the area
        raise TooLarge(_too_many(many, resolution))
    found = np.array(sorted(_touching(shapes, resolution)), np.uint64)
    if len(found) > MOST_CELLS:
        raise TooLarge(_too_many(len(found), resolution))
    return found


def _too_many(cells: int, resolution: int) -> str:
    return (
        f"cover has about {cells:,} cells of resolution {resolution}, and a domain of hexagons has at most "
        f"{MOST_CELLS:,}. Nothing was built. Use a coarser resolution, or a smaller cover."
    )


def _touching(shapes: list[Any], resolution: int) -> set[int]:
    package = h3()
    found: set[int] = set()
    for shape in shapes:
        found.update(package.h3shape_to_cells_experimental(shape, resolution, "overlap"))
        for lat, lon in shape.outer:
            found.add(package.latlng_to_cell(lat, lon, resolution))
    return found


def _bounds(bounds: Sequence[float]) -> list[Any]:
    x0, y0, x1, y1 = map(float, bounds)
    if not (x0 < x1 <= x0 + 360 and -90 <= y0 < y1 <= 90 and x0 >= -360 and x1 <= 360):
        raise InvalidInput(
            f"cover={bounds!r} are no bounds (lon0, lat0, lon1, lat1) in degrees. Nothing was built. Are longitude and "
            "latitude in this order, and the lower ends first?"
        )
    return [_rectangle(a, y0, b, y1) for west, east in _cut(x0, x1) for a, b in _parts(west, east)]


def _cut(west: float, east: float) -> list[tuple[float, float]]:
    """Longitudes between -180 and 180, cut at the date line."""
    found = []
    for turn in (-360.0, 0.0, 360.0):
        low, high = max(west + turn, -180.0), min(east + turn, 180.0)
        if low < high:
            found.append((low, high))
    return found


def _parts(west: float, east: float) -> list[tuple[float, float]]:
    ends = np.linspace(west, east, int(np.ceil((east - west) / _PART)) + 1).tolist()
    return list(pairwise(ends))


def _rectangle(x0: float, y0: float, x1: float, y1: float) -> Any:
    return h3().LatLngPoly([(y0, x0), (y0, x1), (y1, x1), (y1, x0)])


def _polygons(cover: Any) -> list[Any]:
    """Polygons of a frame, a file or a geometry, as H3 takes them."""
    shape = cover
    if isinstance(cover, (str, Path)):
        shape = _in_degrees(opened_areas(cover, "cover"))
    elif hasattr(cover, "crs") and hasattr(cover, "geometry"):  # a GeoDataFrame, or a column of one
        shape = _in_degrees(cover)
    about = getattr(shape, "__geo_interface__", None)
    if not isinstance(about, dict):
        raise InvalidInput(f"cover of type {type(cover).__name__} is no area. Nothing was built. Give {_WAYS}.")
    return [_shape(part) for part in _rings(about)]


def _in_degrees(frame: Any) -> Any:
    if frame.crs is None:
        raise InvalidInput(
            "cover has no CRS, so that nobody knows where its numbers lie. Nothing was built. Say it with "
            "cover.set_crs(…), such as cover.set_crs('EPSG:4326') for longitudes and latitudes."
        )
    shapes = frame.geometry
    shapes = shapes[~(shapes.isna() | shapes.is_empty)]
    return shapes if str(frame.crs).upper() in ("EPSG:4326", "OGC:CRS84") else shapes.to_crs("EPSG:4326")


def _rings(about: Any) -> list[Any]:
    """The polygons of a GeoJSON object, each a list of rings."""
    kind = about.get("type")
    if kind == "FeatureCollection":
        return [ring for part in about["features"] for ring in _rings(part)]
    if kind == "Feature":
        return _rings(about["geometry"])
    if kind == "GeometryCollection":
        return [ring for part in about["geometries"] for ring in _rings(part)]
    if kind == "Polygon":
        return [about["coordinates"]]
    if kind == "MultiPolygon":
        return list(about["coordinates"])
    raise InvalidInput(f"cover holds a geometry of type {shown(kind)}. Nothing was built. Give polygons.")


def _shape(rings: Any) -> Any:
    """A polygon of H3, whose places are (lat, lon)."""
    turned = [[(float(place[1]), float(place[0])) for place in ring] for ring in rings]
    flat = np.array([place for ring in turned for place in ring])
    if not len(flat) or np.abs(flat[:, 0]).max() > 90 or np.abs(flat[:, 1]).max() > 360:
        raise InvalidInput(
            "cover lies beyond the poles, or goes round the earth more than once. Nothing was built. Are longitude and "
            "latitude in this order, and is its CRS the right one?"
        )
    if np.ptp(flat[:, 1]) > 180:
        raise InvalidInput(
            "cover has a part that is wider than 180°. Nothing was built. What crosses the date line must be cut "
            "there, at 180 and -180; or give bounds."
        )
    return h3().LatLngPoly(*turned)


def finer_than(cells: Indices, resolution: int) -> Indices:
    """The cells of this resolution of which these are parts; 0 for what is no cell, or a coarser one."""
    good = are_cells(cells) & (resolutions(cells) >= resolution)
    return np.where(good, parents_at(cells, resolution), np.uint64(0))
