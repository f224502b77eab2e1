"""Lines of a road network as plain arrays: points, and where the points of each line begin.

They are located in, measured and written to files without any package for geometry. A line goes straight, in longitude
and latitude, from each of its points to the next.
"""

from __future__ import annotations

import binascii
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.near_regions import scales
from sfumato.domain.outlines import packed, starts_of, unpacked
from sfumato.errors import InvalidInput

MOST_POINTS = 1 << 24
MOST_TIMES = 64
"""Points of a file take at most so many times its bytes."""
_FEW = 1 << 20
_DAMAGED = "The roads in the description of the domain are damaged."
NORTHERNMOST = 89.0
"""Nearer to a pole there are no roads: longitudes run together."""


@dataclass(frozen=True, eq=False)
class Lines:
    """Points (n, 2) in degrees; where each line's points begin, and one end more."""

    points: Floats
    starts: Integers

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the arrays as little-endian numbers of 64 bits."""
        found = hashlib.sha256(np.ascontiguousarray(self.starts, "<i8").tobytes())
        found.update(np.ascontiguousarray(self.points, "<f8").tobytes())
        return found.hexdigest()

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def steps(self) -> tuple[Floats, Integers]:
        """(x0, y0, x1, y1) of every straight piece, and the line that it belongs to."""
        first = np.ones(len(self.points), np.bool_)
        first[self.starts[1:] - 1] = False
        at = np.flatnonzero(first)
        ends = np.concatenate([self.points[at], self.points[at + 1]], axis=1)
        return ends, np.repeat(np.arange(len(self)), np.diff(self.starts) - 1)

    @cached_property
    def lengths(self) -> Floats:
        """Metres of every line on the WGS84 ellipsoid: never too many, and too few by some millionths."""
        ends, line = self.steps
        south, north = np.minimum(ends[:, 1], ends[:, 3]), np.maximum(ends[:, 1], ends[:, 3])
        across, along = least_scales(south, north)
        metres = np.hypot((ends[:, 2] - ends[:, 0]) * across, (ends[:, 3] - ends[:, 1]) * along)
        return np.asarray(np.bincount(line, weights=metres, minlength=len(self)) * (1 - 1e-12))

    @cached_property
    def ends(self) -> tuple[Floats, Integers]:
        """The distinct ends of all lines, and which of them the first and the last point of every line is."""
        both = np.concatenate([self.points[self.starts[:-1]], self.points[self.starts[1:] - 1]]) + 0.0
        both[both[:, 0] == -180.0, 0] = 180.0  # the date line has two names
        nodes, of = np.unique(both, axis=0, return_inverse=True)
        return nodes, of.reshape(2, -1).T.astype(np.int64)

    def taken(self, chosen: Integers) -> Lines:
        """Some of the lines, in this order."""
        many = np.diff(self.starts)[chosen]
        at = np.arange(many.sum()) + np.repeat(self.starts[chosen] - starts_of(many)[:-1], many)
        return Lines(self.points[at], starts_of(many))

    def spec(self) -> dict[str, Any]:
        """As plain data: numbers of 64 bits, packed by zlib, as base64."""
        counts = np.diff(self.starts).astype("<i8")
        return {"points": packed(np.ascontiguousarray(self.points, "<f8")), "lines": packed(counts)}


def least_scales(south: Floats, north: Floats) -> tuple[Floats, Floats]:
    """(the least N cos φ, the least M) between pairs of latitudes in degrees, in metres a degree."""
    far = np.maximum(np.abs(south), np.abs(north))
    close = np.where((south <= 0) & (north >= 0), 0.0, np.minimum(np.abs(south), np.abs(north)))
    across_equator, along_equator = scales(0.0, 0.0)
    across = across_equator * np.cos(np.radians(far)) / np.sqrt(1 - _E2 * np.sin(np.radians(far)) ** 2)
    along = along_equator / (1 - _E2 * np.sin(np.radians(close)) ** 2) ** 1.5
    return across * (1 - 1e-12), along * (1 - 1e-12)


_FLAT = 1 / 298.257223563
_E2 = _FLAT * (2 - _FLAT)


def lines_from_spec(spec: Mapping[str, Any]) -> Lines:
    """What `Lines.spec()` described, or a refusal: nothing in a file is trusted."""
    try:
        most = min(16 * MOST_POINTS, max(_FEW, MOST_TIMES * len(spec["points"])))
        points = np.frombuffer(unpacked(spec["points"], most), "<f8").reshape(-1, 2).astype(np.float64)
        counts = np.frombuffer(unpacked(spec["lines"], 8 * (len(points) // 2)), "<i8")
    except (LookupError, TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise InvalidInput(_DAMAGED) from error
    fits = len(counts) and (counts >= 2).all() and (counts <= len(points)).all()
    if not fits or int(counts.sum()) != len(points) or not on_earth(points):
        raise InvalidInput(_DAMAGED)
    return Lines(points, starts_of(counts))


def on_earth(points: Floats) -> bool:
    """Whether all points are longitudes from -180 to 180, and latitudes that roads have."""
    limits = np.array([180.0, NORTHERNMOST])
    return bool(np.isfinite(points).all() and (np.abs(points) <= limits).all())
