"""Places that a relation names: points and lines as plain numbers, frozen, before any domain has seen them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sfumato.errors import InvalidInput

# As in policies: what may stand there.
ALLOWED = "None, 'boundary', a list of points, or a list of lines, each a list of points"


def plain_places(given: Any) -> Any:
    """Sources as nested tuples of numbers, or 'boundary', or None: equal where what was given is equal."""
    if given is None or (isinstance(given, str) and given == "boundary"):
        return given
    items = [given] if hasattr(given, "__geo_interface__") else given
    if isinstance(items, (list, tuple)) and any(hasattr(item, "__geo_interface__") for item in items):
        return tuple(line for item in items for line in _lines(getattr(item, "__geo_interface__", {})))
    if isinstance(given, str):
        raise InvalidInput(f"sources={given!r} must be {ALLOWED}.")
    return _frozen(given)


def _lines(shape: Any) -> list[Any]:
    """The lines of one geometry, each a tuple of points; a point is a line of one."""
    kind, at = shape.get("type"), shape.get("coordinates", ())
    if kind == "Point":
        return [_frozen([at])]
    if kind == "MultiPoint":
        return [_frozen([point]) for point in at]
    if kind == "LineString":
        return [_frozen(at)]
    if kind == "MultiLineString":
        return [_frozen(line) for line in at]
    raise InvalidInput(
        f"sources holds a geometry of type {kind!r}, not 'Point', 'MultiPoint', 'LineString' or 'MultiLineString'. "
        "Give those, or the outline of an area as its lines."
    )


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidInput(f"sources must be {ALLOWED}.") from error
    if not math.isfinite(number):
        raise InvalidInput(f"sources must be {ALLOWED}, of finite numbers.")
    return number + 0.0
