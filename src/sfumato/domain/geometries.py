"""Outlines as geometries of shapely, which is imported when somebody asks for them, and back."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.outlines import Outlines, starts_of
from sfumato.domain.paths import Paths
from sfumato.errors import MissingExtra

_GRID = 1e-9
"""Degrees, a tenth of a millimetre: corners of neighbours that differ by less are one corner where they are joined."""


def geometries(outlines: Outlines | Paths, purpose: str) -> Any:
    """One geometry a region in an array: a polygon, or several as one; of roads a line, or several."""
    shapely = _shapely(purpose)
    if not outlines.closed:
        return _lines(shapely, cast(Paths, outlines))
    outlines = cast(Outlines, outlines)
    kind = shapely.GeometryType.MULTIPOLYGON
    offsets = (outlines.rings, outlines.parts, outlines.regions)
    found = shapely.from_ragged_array(kind, outlines.points, offsets)
    single = np.diff(outlines.regions) == 1
    found[single] = shapely.get_geometry(found[single], 0)
    return found


def _lines(shapely: Any, paths: Paths) -> Any:
    kind = shapely.GeometryType.MULTILINESTRING
    found = shapely.from_ragged_array(kind, paths.points, (paths.lines, paths.groups))
    single = np.diff(paths.groups) == 1
    found[single] = shapely.get_geometry(found[single], 0)
    return found


def outlines_of(shapes: Any) -> Outlines:
    """The outlines of polygons and multipolygons."""
    import shapely

    parts, region = shapely.get_parts(shapes, return_index=True)
    rings, part = shapely.get_rings(parts, return_index=True)
    points, ring = shapely.get_coordinates(rings, return_index=True)
    count = [np.bincount(of, minlength=n) for of, n in ((ring, len(rings)), (part, len(parts)), (region, len(shapes)))]
    found: Floats = points + 0.0
    return Outlines(found, *(starts_of(many) for many in count))


def joined(outlines: Outlines | Paths, of: Integers, groups: Integers, purpose: str) -> Outlines | Paths:
    """The outlines of groups of regions: `of` is the group of every region, and each of `groups` has some."""
    if not outlines.closed:
        return cast(Paths, outlines).joined(of, groups)
    shapely = _shapely(purpose)
    shapes = geometries(outlines, purpose)
    order = np.argsort(of, kind="stable")
    ends = [np.searchsorted(of[order], groups, side) for side in ("left", "right")]
    held = [shapes[order[low:high]] for low, high in zip(*(end.tolist() for end in ends), strict=True)]
    return outlines_of(np.array([shapely.union_all(members, grid_size=_GRID) for members in held], dtype=object))


def _shapely(purpose: str) -> Any:
    try:
        import shapely
    except ImportError as error:
        raise MissingExtra("shapely", "geo", purpose) from error
    return shapely
