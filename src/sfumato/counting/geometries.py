"""Columns of geometries before anything is read: that they are points whose CRS is known, as far as types say.

A column of bytes that nobody says the CRS of is refused: numbers alone do not tell metres from degrees.
"""

from __future__ import annotations

import json
from typing import Any, cast

from sfumato.counting.columns import Field
from sfumato.counting.hushing import hushed
from sfumato.counting.points import same_crs
from sfumato.domain import Ground, Places
from sfumato.errors import InvalidInput

_WGS84 = "OGC:CRS84"
_ADVICE = "Say another one, or transform the points first."


def crs_in_duckdb(field: Field, kind: str) -> str | None:
    """The CRS of a column by its type in DuckDB, which has that of GeoParquet's; None where it is the domain's."""
    if not field.geometry:
        return None
    if not kind.startswith("GEOMETRY"):
        _refuse(field, f"is of type {kind}")
    crs = kind.removeprefix("GEOMETRY").strip("()'").replace("''", "'")
    return _other(field, crs or None)


def crs_in_arrow(field: Field, column: Any) -> str | None:
    """The same of a column by its field in an Arrow schema."""
    if not field.geometry:
        return None
    about = {key.decode(): value.decode() for key, value in (column.metadata or {}).items()}
    name, written = about.get("ARROW:extension:name"), about.get("ARROW:extension:metadata", "{}")
    if hasattr(column.type, "extension_name"):  # another package knows the type
        name, written = column.type.extension_name, column.type.__arrow_ext_serialize__().decode()
    points = name == "geoarrow.point" and str(column.type).startswith(
        ("struct<x: double", "fixed_size_list<xy: double", "extension<geoarrow.point")
    )
    if name not in ("geoarrow.wkb", "ogc.wkb") and not points:
        _refuse(field, f"is of type {column.type}")
    try:
        crs = json.loads(written or "{}").get("crs")
    except (ValueError, AttributeError):
        crs = None
    return _other(field, crs)


def refuse_others(fields: Any, what: str) -> None:
    """Refuse geometries of what says nothing of a CRS."""
    for field in fields:
        if field.geometry:
            _refuse(field, f"comes from {what}")


def _other(field: Field, crs: Any) -> str | None:
    axis = cast(Places | Ground, field.axis)
    if not crs:
        _refuse(field, "has no CRS")
    same = crs == axis.crs or {crs if isinstance(crs, str) else None, axis.crs} == {_WGS84, "EPSG:4326"}
    if same or hushed(f"Column {field.column!r} has an unknown CRS", lambda: same_crs(crs, axis.crs), _ADVICE):
        return None
    return crs if isinstance(crs, str) else json.dumps(crs)


def _refuse(field: Field, why: str) -> None:
    raise InvalidInput(
        f"Column {field.column!r} {why}, and {field.needs} needs points whose CRS is known: a GeoDataFrame, "
        "GeoParquet, or GeoArrow's WKB. Nothing was counted. Give one of these, or two columns with lon= and lat= or "
        "x= and y=."
    )
