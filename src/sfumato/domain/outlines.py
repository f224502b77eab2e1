"""The outlines of regions as plain arrays: rings of points, parts of rings, regions of parts.

They are read, located in and written to files without any package for geometry. A ring is closed: its last point is its
first one. The first ring of a part is its shell, the others are holes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput

MOST_TIMES = 64
"""Points of a file take at most so many times its bytes. Coordinates that anybody measured pack to a half."""
_FEW = 1 << 20
"""Bytes of points that any file may have."""
_FEWEST = 4
"""Points of a ring."""
_DAMAGED = "The outlines in the description of the domain are damaged."


@dataclass(frozen=True, eq=False)
class Outlines:
    """Points (n, 2); where each ring's points, each part's rings and each region's parts begin, and one end more."""

    points: Floats
    rings: Integers
    parts: Integers
    regions: Integers

    closed: ClassVar[bool] = True
    """Whether these are outlines of something."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the arrays as little-endian numbers of 64 bits."""
        found = hashlib.sha256()
        for offsets in (self.regions, self.parts, self.rings):
            found.update(np.array([len(offsets)], "<i8").tobytes() + np.ascontiguousarray(offsets, "<i8").tobytes())
        found.update(np.ascontiguousarray(self.points, "<f8").tobytes())
        return found.hexdigest()

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """(x0, y0, x1, y1) of all points."""
        (x0, y0), (x1, y1) = self.points.min(axis=0), self.points.max(axis=0)
        return float(x0), float(y0), float(x1), float(y1)

    @property
    def on_earth(self) -> bool:
        """Whether all points are longitudes of one turn at most, whatever turn, and latitudes."""
        x0, y0, x1, y1 = self.bounds
        return max(-x0, x1, x1 - x0) <= 360.0 and max(-y0, y1) <= 90.0

    @cached_property
    def owners(self) -> Integers:
        """The region of every ring."""
        of_parts = np.repeat(np.arange(len(self.regions) - 1), np.diff(self.regions))
        return np.asarray(np.repeat(of_parts, np.diff(self.parts)), dtype=np.int64)

    def segments(self) -> tuple[Floats, Integers]:
        """(x0, y0, x1, y1) of every segment of every ring, and the region that it is on the border of."""
        last = np.zeros(len(self.points), np.bool_)
        last[self.rings[1:] - 1] = True
        first = np.flatnonzero(~last)
        ends = np.concatenate([self.points[first], self.points[first + 1]], axis=1)
        owner = np.repeat(self.owners, np.diff(self.rings) - 1)
        moved = (ends[:, :2] != ends[:, 2:]).any(axis=1)
        return ends[moved], owner[moved]

    def borders(self) -> tuple[Floats, Integers, Integers]:
        """Every distinct segment once, from its lower end to its upper one, with the regions on whose border it is:
        (segments, number of the segment, region), one row a segment and region.
        """
        ends, owner = self.segments()
        turned = (ends[:, 3] < ends[:, 1]) | ((ends[:, 3] == ends[:, 1]) & (ends[:, 2] < ends[:, 0]))
        ends = np.where(turned[:, None], ends[:, [2, 3, 0, 1]], ends) + 0.0  # one zero
        order = np.lexsort(ends.T)
        ends, owner = ends[order], owner[order]
        new = np.ones(len(ends), np.bool_)
        new[1:] = (ends[1:] != ends[:-1]).any(axis=1)
        return ends[new], np.cumsum(new) - 1, owner

    def taken(self, chosen: Integers) -> Outlines:
        """Some of the regions, in this order."""
        parts = _listed(self.regions, chosen)
        rings = _listed(self.parts, parts)
        return Outlines(
            self.points[_listed(self.rings, rings)],
            starts_of(np.diff(self.rings)[rings]),
            starts_of(np.diff(self.parts)[parts]),
            starts_of(np.diff(self.regions)[chosen]),
        )

    @cached_property
    def oriented(self) -> Outlines:
        """The same with shells counter-clockwise and holes clockwise."""
        x, y = (
            self.points - self.points[np.repeat(self.rings[:-1], np.diff(self.rings))]
        ).T  # near zero: no digits lost
        step = np.zeros(len(x))
        step[:-1] = x[:-1] * y[1:] - x[1:] * y[:-1]
        step[self.rings[1:] - 1] = 0.0
        shells = np.zeros(len(self.rings) - 1, np.bool_)
        shells[self.parts[:-1]] = True
        turned = (np.add.reduceat(step, self.rings[:-1]) > 0) != shells
        ring = np.repeat(np.arange(len(turned)), np.diff(self.rings))
        at = np.arange(len(x))
        back = self.rings[ring] + self.rings[ring + 1] - 1 - at
        return Outlines(self.points[np.where(turned[ring], back, at)], self.rings, self.parts, self.regions)

    def coordinates(self) -> Iterator[list[list[list[list[float]]]]]:
        """For every region its parts, each a list of rings of points."""
        rings, parts = self.rings.tolist(), self.parts.tolist()
        for first, last in pairwise(self.regions.tolist()):
            begin = rings[parts[first]]
            held = self.points[begin : rings[parts[last]]].tolist()
            yield [
                [held[rings[ring] - begin : rings[ring + 1] - begin] for ring in range(parts[part], parts[part + 1])]
                for part in range(first, last)
            ]

    def spec(self) -> dict[str, Any]:
        """As plain data: numbers of 64 bits, packed by zlib, as base64."""
        return {
            "points": packed(np.ascontiguousarray(self.points, "<f8")),
            "rings": packed(np.diff(self.rings).astype("<i8")),
            "parts": packed(np.diff(self.parts).astype("<i8")),
            "regions": packed(np.diff(self.regions).astype("<i8")),
        }


def outlines_from_spec(spec: Mapping[str, Any]) -> Outlines:
    """What `Outlines.spec()` described, or a refusal: nothing in a file is trusted."""
    try:
        most = max(_FEW, MOST_TIMES * len(spec["points"]))
        points = np.frombuffer(unpacked(spec["points"], most), "<f8").reshape(-1, 2).astype(np.float64)
        # Counts of one kind pack to almost nothing; there are fewer rings than points, and no more of the others.
        rings = _starts(spec["rings"], len(points) // _FEWEST)
        parts = _starts(spec["parts"], len(rings))
        regions = _starts(spec["regions"], len(parts))
    except (LookupError, TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise InvalidInput(_DAMAGED) from error
    fits = (int(rings[-1]), int(parts[-1]), int(regions[-1])) == (len(points), len(rings) - 1, len(parts) - 1)
    if not fits or not len(points) or not np.isfinite(points).all() or (np.diff(rings) < _FEWEST).any():
        raise InvalidInput(_DAMAGED)
    if (points[rings[:-1]] != points[rings[1:] - 1]).any():
        raise InvalidInput(_DAMAGED)
    return Outlines(points, rings, parts, regions)


def of_rings(rings: Sequence[Sequence[Floats]]) -> Outlines:
    """Regions of parts without holes, from the rings of each."""
    flat = [ring for region in rings for ring in region]
    one = np.arange(len(flat) + 1, dtype=np.int64)
    points = np.concatenate([np.empty((0, 2)), *flat])
    return Outlines(points, starts_of([len(ring) for ring in flat]), one, starts_of([len(region) for region in rings]))


def rectangles(x0: Floats, y0: Floats, x1: Floats, y1: Floats) -> Outlines:
    """Regions that are boxes; their rings run counter-clockwise."""
    corners = np.stack([np.stack([x0, x1, x1, x0, x0], axis=-1), np.stack([y0, y0, y1, y1, y0], axis=-1)], axis=-1)
    one = np.arange(len(corners) + 1, dtype=np.int64)
    return Outlines(corners.reshape(-1, 2), 5 * one, one, one)


def starts_of(counts: Any) -> Integers:
    """Where stretches of so many begin, and the end of the last."""
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)


def _listed(starts: Integers, chosen: Integers) -> Integers:
    """The members of some stretches, one stretch after the other."""
    many = np.diff(starts)[chosen]
    return np.asarray(np.arange(many.sum()) + np.repeat(starts[chosen] - starts_of(many)[:-1], many), dtype=np.int64)


def _starts(packed: Any, most: int) -> Integers:
    counts = np.frombuffer(unpacked(packed, 8 * most), "<i8")
    if (counts < 1).any() or (counts > 1 << 40).any() or not len(counts):
        raise ValueError("counts")
    return starts_of(counts)


def packed(array: Any) -> str:
    """Numbers packed by zlib, as base64."""
    return base64.b64encode(zlib.compress(array.tobytes(), 6)).decode("ascii")


def unpacked(text: Any, most: int) -> bytes:
    """The bytes of such a text, or an error, also where they are more than so many: no more memory is taken."""
    if not isinstance(text, str):
        raise TypeError("text")
    opened = zlib.decompressobj()
    content = opened.decompress(base64.b64decode(text, validate=True), most + 1)
    if not opened.eof or opened.unused_data or len(content) > most:
        raise ValueError("too large, or cut off")
    return content
