"""The outlines of a public area: a GeoJSON file that is drawn below the cells, or that hexagons cover."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sfumato.errors import FileFormatError, InvalidInput

LARGEST = 16 << 20
_SHAPES = ("Polygon", "MultiPolygon", "LineString", "MultiLineString")
_POINTS = 400_000


def read(path: Path, *, apart: Path | None = None) -> dict[str, Any]:
    """Its outlines alone, without the properties of its features, and the box around them."""
    if apart is not None and apart.exists() and path.samefile(apart):
        raise InvalidInput(f"'{path.name}' is the data itself, and an area is public. Nothing was drawn.")
    if path.stat().st_size > LARGEST:
        raise InvalidInput(f"'{path.name}' has more than {LARGEST >> 20} MB. Nothing was drawn. Simplify the outlines.")
    try:
        told = json.loads(path.read_bytes())
        features = told["features"] if told.get("type") == "FeatureCollection" else [told]
        shapes = [one.get("geometry", one) for one in features]
        shapes = [one for one in shapes if isinstance(one, dict) and one.get("type") in _SHAPES]
        points: list[tuple[float, float]] = []
        for shape in shapes:
            _walk(shape["coordinates"], points)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FileFormatError(f"'{path.name}' is no GeoJSON with outlines. Nothing was drawn.") from None
    if not points or len(points) > _POINTS:
        raise InvalidInput(
            f"'{path.name}' has {len(points):,} corners of outlines, of 1 to {_POINTS:,} allowed. Nothing was drawn."
        )
    xs, ys = zip(*points, strict=True)
    kept = [{"type": "Feature", "properties": {}, "geometry": _plain(one)} for one in shapes]
    bounds = [min(xs), min(ys), max(xs), max(ys)]
    return {"name": path.name, "bounds": bounds, "geojson": {"type": "FeatureCollection", "features": kept}}


def _plain(shape: dict[str, Any]) -> dict[str, Any]:
    return {"type": shape["type"], "coordinates": shape["coordinates"]}


def _walk(value: Any, points: list[tuple[float, float]]) -> None:
    if value and isinstance(value[0], (int, float)):
        points.append((float(value[0]), float(value[1])))
        return
    for one in value:
        _walk(one, points)
