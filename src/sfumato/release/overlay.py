"""Outlines of others on a map: borders, coasts, streets that help a reader to see where a cell is.

They come from a file of GeoJSON, which is read here without any package, or from what GeoPandas reads. They are public
and change no figure. What cannot be read, or lies nowhere on the map, is refused: a map without the lines that somebody
asked for would look finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._types import Floats
from sfumato.domain.ground import WGS84
from sfumato.domain.polygons import opened_areas
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.reading import plain_data
from sfumato.release.canvas import INK

Bounds = tuple[float, float, float, float]
_LONGEST = 256 << 20
"""Bytes of a file that is read at once."""
_NESTED = {"LineString": 0, "Polygon": 1, "MultiLineString": 1, "MultiPolygon": 2}
"""How deep the lines lie in the coordinates of a geometry."""
_POINTS = {"Point", "MultiPoint"}
_WGS84 = {"CRS84", *WGS84}
_NOTHING = "Nothing was drawn."


def lines_on(outlines: Any, crs: str | None, bounds: Bounds) -> list[Floats]:
    """The lines, each an array of (x, y) in the numbers of the map; without a CRS they are taken for the same."""
    said = f"outlines={str(outlines)!r}" if isinstance(outlines, (str, Path)) else "outlines="
    if isinstance(outlines, (str, Path)) and Path(outlines).suffix.lower() not in (".parquet", ".pq"):
        lines = _moved(_read(Path(outlines), said), WGS84[0], crs)
    else:
        found, there = _of_frame(outlines)
        lines = _moved(found, there, crs)
    if not any(_meets(line, bounds) for line in lines):
        x0, y0, x1, y1 = bounds
        raise InvalidInput(
            f"{said.removesuffix('=')}: none of its {len(lines):,} lines lies on the map, which is from ({x0:.6g}, "
            f"{y0:.6g}) to ({x1:.6g}, {y1:.6g}). {_NOTHING} Check that they are of the same area, and in the same CRS."
        )
    return lines


def draw_lines(axes: list[Any], lines: list[Floats]) -> None:
    """Thin and dark with a light rim, so that they are seen on every colour; the map keeps its ends."""
    from matplotlib.collections import LineCollection

    for ax in axes:
        for colour, wide in (("white", 1.6), (INK, 0.7)):
            ax.add_collection(LineCollection(lines, colors=colour, linewidths=wide, alpha=0.8, zorder=4), autolim=False)


def _read(path: Path, said: str) -> list[Floats]:
    """The lines of a file of GeoJSON, in degrees of WGS84."""
    if not path.is_file():
        raise InvalidInput(f"{said} is no file. {_NOTHING} Check the path.")
    if path.stat().st_size > _LONGEST:
        raise InvalidInput(
            f"{said} has {path.stat().st_size:,} bytes; at most {_LONGEST:,} are read. {_NOTHING} Simplify it first."
        )
    try:
        found = plain_data(path.read_bytes())
        lines = list(_lines(found))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise InvalidInput(
            f"{said} could not be read as GeoJSON ({type(error).__name__}). {_NOTHING} Give a FeatureCollection of "
            "polygons or lines, or a GeoDataFrame."
        ) from error
    named = found.get("crs")
    if named is not None and not any(str(named).find(one) >= 0 for one in _WGS84):
        raise InvalidInput(f"{said} names a CRS other than WGS84. {_NOTHING} Convert it with to_crs('EPSG:4326').")
    if not lines:
        raise InvalidInput(f"{said} holds no line and no polygon. {_NOTHING} Give a file that does.")
    corners = np.concatenate(lines)
    if not np.isfinite(corners).all() or np.abs(corners[:, 0]).max() > 360 or np.abs(corners[:, 1]).max() > 90:
        raise InvalidInput(
            f"{said} holds numbers that are no longitudes and latitudes. {_NOTHING} GeoJSON is in degrees of WGS84: "
            "convert it with to_crs('EPSG:4326')."
        )
    return lines


def _lines(found: Any) -> Iterator[Floats]:
    """Every line of a text of GeoJSON; nothing in it is trusted."""
    kind = found["type"]
    if kind == "FeatureCollection":
        for feature in found["features"]:
            yield from _lines(feature)
    elif kind == "Feature":
        if found["geometry"] is not None:
            yield from _lines(found["geometry"])
    elif kind == "GeometryCollection":
        for geometry in found["geometries"]:
            yield from _lines(geometry)
    elif kind not in _POINTS:
        yield from _flat(found["coordinates"], _NESTED[kind])


def _flat(coordinates: Any, depth: int) -> Iterator[Floats]:
    if depth:
        for inner in coordinates:
            yield from _flat(inner, depth - 1)
        return
    line = np.array([(float(point[0]), float(point[1])) for point in coordinates], dtype=np.float64)
    if len(line) < 2:
        raise ValueError("a line has two points or more")
    yield line


def _of_frame(outlines: Any) -> tuple[list[Floats], str | None]:
    """The lines of a GeoDataFrame, or of a file that GeoPandas reads, and its CRS."""
    frame = opened_areas(outlines, "outlines")
    import shapely

    parts = shapely.get_parts(np.asarray(frame.geometry.dropna().array, dtype=object))
    rings = [line for part in parts if part.geom_type == "Polygon" for line in (part.exterior, *part.interiors)]
    lines = [*rings, *(part for part in parts if part.geom_type in ("LineString", "LinearRing"))]
    found = [shapely.get_coordinates(line) for line in lines if not line.is_empty]
    if not found:
        raise InvalidInput(f"outlines holds no line and no polygon. {_NOTHING} Give a frame that does.")
    return found, None if frame.crs is None else frame.crs.to_wkt()


def _moved(lines: list[Floats], there: str | None, crs: str | None) -> list[Floats]:
    """The lines in the CRS of the map."""
    if there is None or crs is None or there == crs or (there in WGS84 and crs in WGS84):
        return lines
    try:
        import pyproj
    except ImportError as error:
        raise MissingExtra("pyproj", "geo", "Outlines in another CRS than that of the map") from error
    transform = pyproj.Transformer.from_crs(there, crs, always_xy=True).transform
    return [np.stack(transform(*line.T), axis=-1) for line in lines]


def _meets(line: Floats, bounds: Bounds) -> bool:
    """Whether the box of a line meets the map."""
    x0, y0, x1, y1 = bounds
    with np.errstate(invalid="ignore"):
        low, high = line.min(axis=0), line.max(axis=0)
    return bool(low[0] <= x1 and high[0] >= x0 and low[1] <= y1 and high[1] >= y0)
