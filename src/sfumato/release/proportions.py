"""How a map lies on the ground: its true proportions, the length of its scale bar, and the units along its sides.

A degree of longitude is shorter than one of latitude by the cosine of the latitude: a map in degrees that is drawn with
equal units is too wide, New York 1.3 times. Lengths are those in the middle of the map, on the ellipsoid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.domain.ground import WGS84

_RADIUS, _SQUASHED = (
    6_378_137.0,
    0.00669437999014,
)  # of WGS84: metres at the equator, and the square of its eccentricity
_LEAST = 0.01
"""The cosine at which a map at a pole is still drawn."""
_DEGREES = {"lon", "lng", "long", "longitude"}, {"lat", "latitude"}
_GUESSED = "drawn as degrees, which the bounds look like; crs= of the grid would say so"


@dataclass(frozen=True)
class Proportions:
    """Of a map: how many metres a unit of x and one of y are in its middle, or None where nobody knows; how much longer
    a unit of y is drawn than one of x; what the units are called; and what is to be said of it.
    """

    metres: tuple[float, float] | None
    aspect: float
    unit: str = ""
    note: str = ""

    @property
    def degrees(self) -> bool:
        """Whether its sides are longitudes and latitudes."""
        return self.unit == "degrees"

    def label(self, name: str) -> str:
        """What stands along a side."""
        return f"{name} ({self.unit})" if self.unit else name


def proportions(
    crs: str | None, bounds: tuple[float, float, float, float], names: tuple[str, str] = ("", "")
) -> Proportions:
    """Those of a map with these bounds (x0, y0, x1, y1).

    Without a CRS no length is known. Axes that are called longitude and latitude, or whose bounds look like them, are
    drawn as degrees all the same, since that is what they mostly are; the second is said below the picture.
    """
    x0, y0, x1, y1 = bounds
    middle = (x0 + x1) / 2, (y0 + y1) / 2
    if crs is None:
        called = all(name.lower() in known for name, known in zip(names, _DEGREES, strict=True))
        if not called and not _like_degrees(bounds):
            return Proportions(None, 1.0)
        return Proportions(None, 1 / _cosine(middle[1]), "degrees" if called else "", "" if called else _GUESSED)
    if crs in WGS84:
        return _in_degrees(middle[1])
    return _elsewhere(crs, middle)


def _like_degrees(bounds: tuple[float, float, float, float]) -> bool:
    """Whether plain numbers look like a place on the earth: none of those that begin at zero, as most others do."""
    x0, y0, x1, y1 = bounds
    on_earth = -180 <= x0 < x1 <= 180 and -90 <= y0 < y1 <= 90
    return on_earth and not (x0 <= 0 <= x1 and y0 <= 0 <= y1)


def _cosine(latitude: float) -> float:
    return max(math.cos(math.radians(latitude)), _LEAST)


def _in_degrees(latitude: float) -> Proportions:
    """Along a parallel of the ellipsoid; a degree of latitude is taken for one of the sphere that touches it there."""
    degree = math.radians(_RADIUS / math.sqrt(1 - _SQUASHED * math.sin(math.radians(latitude)) ** 2))
    return Proportions((degree * _cosine(latitude), degree), 1 / _cosine(latitude), "degrees")


def _elsewhere(crs: str, middle: tuple[float, float]) -> Proportions:
    """Of a map in another CRS, whose own scale in the middle is taken off; unknown where pyproj is missing."""
    try:
        import pyproj
    except ImportError:
        return Proportions(None, 1.0)
    known = pyproj.CRS.from_user_input(crs)
    if known.is_geographic:
        return _in_degrees(middle[1])
    if not known.axis_info:
        return Proportions(None, 1.0)
    axis = known.axis_info[0]
    unit = "m" if axis.unit_conversion_factor == 1.0 else axis.unit_name
    lon, lat = pyproj.Transformer.from_crs(known, WGS84[0], always_xy=True).transform(*middle)
    scale = pyproj.Proj(known).get_factors(lon, lat)
    metres = axis.unit_conversion_factor / scale.parallel_scale, axis.unit_conversion_factor / scale.meridional_scale
    if not all(0 < length < math.inf for length in metres):
        return Proportions(None, 1.0, unit)
    return Proportions(metres, 1.0, unit)
