"""The axes of a grid on the ground: an interval whose numbers are coordinates of a known CRS.

**Elsewhere** stands beside the cells. A place beyond the bounds is in none of them: it is left out, as if it were not
there, and a move over the border is hidden as one that appears or vanishes. It is never clamped: in metres on degrees
that would lengthen moves.

**Longitudes** are taken modulo 360. **Metres** of a CRS in metres are those of its plane: `scales` says how much longer
than on the ground a way can be there, at most, for places no farther from the bounds than a margin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain.axis import METRES
from sfumato.domain.interval import Interval
from sfumato.domain.near_regions import MAJOR, scales
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.exact import fraction, is_number, shown

WGS84 = ("EPSG:4326", "OGC:CRS84")
MARGINS = (1_000.0, 10_000.0, 100_000.0)
"""Metres around the bounds for which scales are known; no move is longer than the last."""
_SAMPLES = 65
_CELL = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(m|km)\s*")


@dataclass(frozen=True, repr=False)
class Ground(Interval):
    """An interval of longitudes, of latitudes, or of metres in a plane."""

    crs: str
    degrees: bool
    turns: bool
    scales: tuple[tuple[float, float], ...] = ()
    """(margin in metres, the largest scale within it); empty where none is known."""

    apart = True

    def __post_init__(self) -> None:
        super().__post_init__()
        most = 360.0 if self.turns else 180.0
        if self.degrees and (
            self.high - self.low > most or max(-self.low, self.high) > (360.0 if self.turns else 90.0)
        ):
            raise InvalidInput(
                f"Axis {self.name!r}: from {self.low:g} to {self.high:g} are no "
                f"{'longitudes' if self.turns else 'latitudes'} in degrees. Nothing was built. Give "
                "bounds=(lon0, lat0, lon1, lat1)."
            )

    @property
    def unit(self) -> str | None:
        """Distances are on the ground."""
        return METRES

    def turned(self, values: NDArray[Any]) -> NDArray[Any]:
        """Longitudes from the west end on, less than one turn; what lies between the ends stays as it is."""
        beyond = (values < self.low) | (values > self.high)
        if not self.turns or not beyond.any():
            return values
        found = np.array(values)
        with np.errstate(invalid="ignore"):
            found[beyond] = self.low + np.mod(found[beyond] - self.low, 360.0)
        return np.where(np.isinf(values), values, found)

    def locate(self, values: ArrayLike) -> NDArray[np.int64]:
        """The cell of each value; of those beyond the ends the nearest, which `outside` tells apart."""
        return self.cells_at(self.turned(self.scale(values)))

    def outside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values lie beyond the ends."""
        return self.beyond(self.turned(self.scale(values)))

    def accumulate(self, values: NDArray[Any], cells: NDArray[np.int64]) -> None:
        """Turn each number in ``cells`` into ``number * self.cells + cell of the value``, in place."""
        self.add(self.turned(self.scale(values)), cells)

    def take(self, held: NDArray[Any], cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The same of values as counting holds them; and which of these lie beyond the ends."""
        turned = self.turned(held)
        self.add(turned, cells)
        return self.beyond(turned)

    def plain(self) -> Interval:
        """The same cells as numbers of no CRS."""
        return Interval(self.name, self.low, self.high, self.cells)

    def scale_within(self, delta: Fraction) -> float:
        """The largest scale for moves of so many metres, or a refusal where none is known."""
        if not self.scales:
            raise InvalidInput(
                f"metres of {self.crs[:60]} are not metres on the ground, and how much longer they are differs from "
                "place to place. Nothing was built. Use a grid of degrees, crs='EPSG:4326', or a local CRS such as UTM."
            )
        for margin, scale in self.scales:
            if delta <= fraction(margin, "delta"):
                return scale
        raise InvalidInput(
            f"a move by {float(delta):g} m leads farther from the bounds than scales are known for, "
            f"{self.scales[-1][0]:g} m. Nothing was built. Use a smaller delta, or a grid of degrees."
        )

    def entry(self) -> dict[str, Any]:
        """Its ends, the number of cells, and the CRS."""
        return super().entry() | {"crs": self.crs}

    def spec(self) -> dict[str, Any]:
        """The axis as plain data."""
        return super().spec() | {
            "kind": "ground",
            "crs": self.crs,
            "degrees": self.degrees,
            "turns": self.turns,
            "scales": [list(pair) for pair in self.scales],
        }


def ground_from_spec(spec: Mapping[str, Any]) -> Ground:
    """What `Ground.spec()` described, or a refusal."""
    pairs = [tuple(pair) for pair in spec["scales"]]
    if not isinstance(spec["crs"], str) or not all(isinstance(spec[name], bool) for name in ("degrees", "turns")):
        raise TypeError("crs")
    if not all(len(pair) == 2 and all(map(is_number, pair)) and 0 < min(pair) < 1e9 for pair in pairs):
        raise TypeError("scales")
    return Ground(
        spec["name"],
        spec["low"],
        spec["high"],
        spec["cells"],
        spec["crs"],
        spec["degrees"],
        spec["turns"],
        tuple(pairs),
    )


def ground_axes(
    bounds: Sequence[float], shape: Sequence[int] | None, cell: str | None, names: Sequence[str], crs: Any
) -> tuple[Ground, Ground]:
    """The two axes of a grid on the ground, x first."""
    given = "EPSG:4326" if crs is None else crs
    name, degrees, known = _read(given)
    x0, y0, x1, y1 = map(float, bounds)
    if degrees and not (-90 <= y0 < y1 <= 90 and x0 >= -360 and x1 <= 360 and x1 - x0 <= 360):
        raise InvalidInput(
            f"bounds={tuple(bounds)!r} are no longitudes and latitudes in degrees, as crs={name[:60]!r} asks for. "
            "Nothing was built. Give bounds=(lon0, lat0, lon1, lat1)."
        )
    sides = _shape((x0, y0, x1, y1), cell, degrees) if shape is None else shape
    found = () if degrees else _scales(known, (x0, y0, x1, y1))
    return (
        Ground(names[0], bounds[0], bounds[2], sides[0], name, degrees, degrees, found),
        Ground(names[1], bounds[1], bounds[3], sides[1], name, degrees, False, found),
    )


def _read(crs: Any) -> tuple[str, bool, Any]:
    """(the name of a CRS, whether its numbers are degrees, itself where a package had to read it)."""
    if isinstance(crs, str) and crs.upper() in WGS84:
        return crs.upper(), True, None
    try:
        import pyproj
    except ImportError as error:
        raise MissingExtra("pyproj", "geo", f"Any crs but {WGS84[0]}") from error
    try:
        known = pyproj.CRS.from_user_input(crs)
    except pyproj.exceptions.CRSError as error:
        raise InvalidInput(
            f"crs={shown(str(crs))} is no CRS. Nothing was built. Give one such as 'EPSG:4326'."
        ) from error
    earth = known.ellipsoid is not None and abs(known.ellipsoid.semi_major_metre / MAJOR - 1) < 1e-5
    greenwich = known.prime_meridian is None or known.prime_meridian.longitude == 0
    units = {axis.unit_name for axis in known.axis_info[:2]}
    degrees = known.is_geographic and units == {"degree"} and greenwich
    if not earth or not (degrees or (known.is_projected and units == {"metre"})):
        raise InvalidInput(
            f"crs={shown(known.name)} is not one of degrees from Greenwich or of metres on the earth. Nothing was "
            "built. Use one such as 'EPSG:4326' or the UTM of your place."
        )
    found = known.to_authority(min_confidence=100)
    return (":".join(found) if found else str(known.to_wkt())), degrees, known


def _shape(bounds: tuple[float, float, float, float], cell: Any, degrees: bool) -> tuple[int, int]:
    """How many cells of about this size fill the bounds."""
    written = _CELL.fullmatch(cell) if isinstance(cell, str) else None
    if written is None or float(written[1]) == 0:
        raise InvalidInput(f"cell={shown(cell)} is no length. Nothing was built. Give one in metres, such as '100 m'.")
    side = float(written[1]) * (1000 if written[2] == "km" else 1)
    x0, y0, x1, y1 = bounds
    middle = (y0 + y1) / 2
    across, along = scales(middle, middle) if degrees else (1.0, 1.0)
    return max(1, round((x1 - x0) * across / side)), max(1, round((y1 - y0) * along / side))


def _scales(crs: Any, bounds: tuple[float, float, float, float]) -> tuple[tuple[float, float], ...]:
    """The largest scale within every margin of the bounds: of samples, and as much more as it changes between two of
    them, rounded up. None of web mercator, whose formulas are no map of the ellipsoid.
    """
    import pyproj

    if crs.coordinate_operation is None or "Pseudo" in crs.coordinate_operation.method_name:
        return ()
    plane = pyproj.Proj(crs)
    x0, y0, x1, y1 = bounds
    found = []
    for margin in MARGINS:
        wide = 1.1 * margin
        x, y = np.meshgrid(np.linspace(x0 - wide, x1 + wide, _SAMPLES), np.linspace(y0 - wide, y1 + wide, _SAMPLES))
        lon, lat = plane(x, y, inverse=True)
        if not (np.isfinite(lon).all() and np.isfinite(lat).all()):
            break
        back = np.stack(plane(lon, lat)) - np.stack([x, y])
        scale = np.asarray(plane.get_factors(lon, lat).tissot_semimajor)
        if not np.isfinite(scale).all() or np.abs(back).max() > 1e-3 or scale.max() > 1.1:
            break
        change = max(float(np.abs(np.diff(scale, axis=axis)).max()) for axis in (0, 1))
        found.append((margin, math.ceil((float(scale.max()) + change) * 1e6 + 1) / 1e6))
    return tuple(found)
