"""Polygons that somebody asks about, against the cells of a place: which lie wholly inside, and which are cut.

**No touched cell is missed.** A polygon holds its points by the rule by which regions do (`sfumato.domain.crossings`),
which is that of half-open cells, too: a point on a border stands for one a hair to its right, and a hair of that above.
Whatever lies in a cell and in a polygon therefore lies, moved by that, inside of both. So a cell is touched when the
interiors meet, and wholly inside when the polygon covers it; predicates that compute no new point tell both. Only the
shares of cut cells are rounded, and no interval depends on them.

Whoever asks for a polygon in longitudes asks for it modulo 360, as places are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.exact import shown

_TURNS = (-360.0, 0.0, 360.0)
_WGS84 = ("EPSG:4326", "OGC:CRS84")
_BLOCK = 4
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Cut:
    """The cells wholly inside a polygon, those that it cuts, and which share of each of those is inside."""

    inside: Integers
    cut: Integers
    share: Floats

    @classmethod
    def joined(cls, parts: Sequence[Cut]) -> Cut:
        """Of a polygon in several parts that do not overlap: what is inside of one is inside, and shares add up."""
        inside = np.unique(np.concatenate([_NONE, *(part.inside for part in parts)]))
        cut, which = np.unique(np.concatenate([_NONE, *(part.cut for part in parts)]), return_inverse=True)
        share = np.bincount(which, np.concatenate([np.zeros(0), *(part.share for part in parts)]), len(cut))
        kept = ~np.isin(cut, inside)
        return cls(inside, cut[kept], np.clip(share[kept], 0.0, 1.0))

    def with_cut(self, cell: int) -> Cut:
        """With one more that is touched, of which nobody knows how much."""
        return Cut(self.inside, np.append(self.cut, cell), np.append(self.share, 0.0))

    @property
    def is_empty(self) -> bool:
        """Whether no cell is touched."""
        return not len(self.inside) + len(self.cut)

    @property
    def snapped(self) -> Integers:
        """The cells of which at least half is inside."""
        return np.sort(np.concatenate([self.inside, self.cut[self.share >= 0.5]]))


def are_polygons(value: Any) -> bool:
    """Whether something is a geometry, a GeoDataFrame, a column of one, or a list of geometries."""
    if hasattr(value, "__geo_interface__"):
        return True
    listed = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype == object)
    return listed and len(value) > 0 and all(hasattr(one, "__geo_interface__") for one in value)


def read_polygons(value: Any, crs: str | None, name: str) -> tuple[Any, bool, bool]:
    """(polygons in the CRS of a place as an array, whether there was but one, whether they were transformed), or a
    refusal.
    """
    shapely = needed()
    frame = hasattr(value, "crs") and hasattr(value, "geometry")
    series = _in_crs(value.geometry, crs, name) if frame else None
    given = np.asarray(series if frame else value if _is_list(value) else [_shape(value)], dtype=object)
    single = not frame and not _is_list(value)
    shapes = shapely.force_2d(np.array([_shape(one) for one in given], dtype=object))
    bad = shapely.is_missing(shapes) | shapely.is_empty(shapes)
    _refuse(bad, f"{name} holds rows without a polygon", "Leave them out")
    _refuse(~np.isin(shapely.get_type_id(shapes), (3, 6)), f"{name} holds what is no polygon", "Give polygons")
    _refuse(~shapely.is_valid(shapes), f"{name} holds invalid polygons", "Mend them, as with .make_valid()")
    _refuse(~np.isfinite(shapely.bounds(shapes)).all(axis=1), f"{name} holds polygons without end", "Give finite ones")
    moved = series is not None and series is not value.geometry
    return shapes, single, moved


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray))


def _shape(one: Any) -> Any:
    """A geometry of shapely as it is, and what only describes itself as one, read."""
    shapely = needed()
    if one is None or isinstance(one, shapely.Geometry):
        return one
    try:
        return shapely.geometry.shape(one.__geo_interface__)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{type(one).__name__} is no polygon. Nothing was answered. Give polygons.") from error


def _in_crs(series: Any, crs: str | None, name: str) -> Any:
    """A column of geometries in a CRS; the very same where it is in it already."""
    if crs is None:
        if series.crs is None:
            return series
        raise InvalidInput(
            f"{name} has the CRS {shown(series.crs.name)}, and the place is a grid of plain numbers, of which nobody "
            "knows where they lie. Nothing was answered. Build the grid with crs=, or give the polygons without a CRS."
        )
    if series.crs is None:
        raise InvalidInput(
            f"{name} has no CRS, so that nobody knows where its numbers lie. Nothing was answered. Say it with "
            f"set_crs(…), such as set_crs({crs[:60]!r}), in which the place is."
        )
    own = ":".join(series.crs.to_authority() or ())
    if own == crs or (own in _WGS84 and crs in _WGS84):
        return series
    return series.to_crs(crs)


def _refuse(bad: NDArray[np.bool_], what: str, hint: str) -> None:
    if bad.any():
        listed = ", ".join(map(str, np.flatnonzero(bad)[:5].tolist())) + (" and others" if bad.sum() > 5 else "")
        raise InvalidInput(f"{what}: number {listed}. Nothing was answered. {hint}.")


def turned_copies(polygon: Any, low: float, high: float) -> list[Any]:
    """A polygon of longitudes, by whole turns, wherever it lies between two of them."""
    import shapely.affinity

    west, _, east, _ = polygon.bounds
    turns = [turn for turn in _TURNS if west + turn < high and east + turn > low]
    return [polygon if turn == 0 else shapely.affinity.translate(polygon, turn) for turn in turns]


def sorted_out(polygon: Any, shapes: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of some shapes lie wholly inside a polygon, and which have something in common with its interior."""
    shapely = needed()
    shapely.prepare(polygon)
    touched = shapely.intersects(polygon, shapes)
    at = np.flatnonzero(touched)
    touched[at] = ~shapely.touches(polygon, shapes[at])
    inside = touched.copy()
    inside[touched] = shapely.covers(polygon, shapes[touched])
    return inside, touched


def cut_by(polygon: Any, shapes: Any, cells: Integers) -> Cut:
    """The cells with these shapes."""
    shapely = needed()
    inside, touched = sorted_out(polygon, shapes)
    rest = touched & ~inside
    area = np.maximum(shapely.area(shapes[rest]), 1e-300)
    share = shapely.area(shapely.intersection(polygon, shapes[rest])) / area
    return Cut(cells[inside], cells[rest], np.clip(share, 0.0, 1.0))


def cut_grid(x: Floats, y: Floats, polygon: Any, *, turns: bool) -> Cut:
    """The cells of a grid between these edges, numbered in C order: large blocks first, and only those that are cut
    cell by cell.
    """
    copies: Iterable[Any] = turned_copies(polygon, x[0], x[-1]) if turns else [polygon]
    return Cut.joined([_cut_grid(x, y, copy) for copy in copies])


def _cut_grid(x: Floats, y: Floats, polygon: Any) -> Cut:
    shapely = needed()
    x0, y0, x1, y1 = polygon.bounds
    first = [max(int(np.searchsorted(edges, low, "right")) - 1, 0) for edges, low in ((x, x0), (y, y0))]
    after = [min(int(np.searchsorted(edges, high)), len(edges) - 1) for edges, high in ((x, x1), (y, y1))]
    wide, tall = (stop - start for start, stop in zip(first, after, strict=True))
    if min(wide, tall) <= 0:
        return Cut(_NONE, _NONE, np.zeros(0))
    side = 1
    while side * 16 < max(wide, tall):
        side *= _BLOCK
    filled = np.zeros((wide, tall), np.bool_)
    i, j = (part.ravel() for part in np.mgrid[0:wide:side, 0:tall:side])
    pieces = np.full(len(i), polygon, dtype=object)  # what of it is in every block, rounded: for shares alone
    while True:
        i_end, j_end = np.minimum(i + side, wide) + first[0], np.minimum(j + side, tall) + first[1]
        boxes = shapely.box(x[i + first[0]], y[j + first[1]], x[i_end], y[j_end])
        inside, touched = sorted_out(polygon, boxes)
        for a, b in zip(i[inside].tolist(), j[inside].tolist(), strict=True):
            filled[a : a + side, b : b + side] = True
        rest = touched & ~inside
        i, j, boxes = i[rest], j[rest], boxes[rest]
        pieces = shapely.intersection(pieces[rest], boxes)
        if side == 1:
            break
        side //= _BLOCK
        steps = side * np.arange(_BLOCK)
        i, j = (
            np.broadcast_to(part, (len(i), _BLOCK, _BLOCK)).ravel()
            for part in (i[:, None, None] + steps[:, None], j[:, None, None] + steps)
        )
        there = (i < wide) & (j < tall)
        i, j, pieces = i[there], j[there], np.repeat(pieces, _BLOCK**2)[there]
    rows = len(y) - 1
    a, b = np.nonzero(filled)
    share = shapely.area(pieces) / np.maximum(shapely.area(boxes), 1e-300)
    return Cut((a + first[0]) * rows + b + first[1], (i + first[0]) * rows + j + first[1], np.clip(share, 0.0, 1.0))


def needed() -> Any:
    """shapely, or its pip line."""
    try:
        import shapely
        import shapely.geometry
    except ImportError as error:
        raise MissingExtra("shapely", "geo", "An answer for a polygon") from error
    return shapely
