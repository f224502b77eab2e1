"""Places that come as geometries: points of a GeoDataFrame, and WKB in the columns of files and tables.

Geometries say in which CRS they are, or are refused; those of another CRS than the domain's are transformed, with x
first always. Whatever is no point is refused, since nobody can say where in it a record is. A missing or empty point is
no record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.counting.columns import Field
from sfumato.counting.place import fixed_width
from sfumato.domain import Hexagons
from sfumato.domain.h3_index import Indices, read_texts
from sfumato.errors import InvalidInput, MissingExtra

_POINT = 21
"""Bytes of a point in WKB: the order of bytes, the type, x and y."""
_HEAD = np.frombuffer(b"\x01\x01\x00\x00\x00", np.uint8)
_NO_POINTS = (
    "holds geometries that are no points, and nobody knows where in them a record is. Nothing was counted. Give "
    "points, such as their .representative_point() where that is what a record means."
)


def is_geographic(data: Any) -> bool:
    """Whether data is a GeoDataFrame, without importing its package."""
    return any(
        kind.__module__.startswith("geopandas.") and kind.__name__ == "GeoDataFrame" for kind in type(data).mro()
    )


def unfolded(frame: Any, column: str | None, crs: str) -> tuple[Any, tuple[str, str], str | None]:
    """A GeoDataFrame as a plain frame without its geometries, with two more columns, the places in the CRS of the
    domain; and the pipeline by which they came into it, where they were in another one.

    A point that it takes nowhere is elsewhere, and no missing one.
    """
    if column is None and getattr(frame, "_geometry_column_name", None) not in frame.columns:
        raise InvalidInput("data has no active geometry column. Nothing was counted. Say which with geometry=….")
    name = frame.geometry.name if column is None else column
    geometries = {str(key) for key, kind in frame.dtypes.items() if str(kind) == "geometry"}
    if name not in geometries:
        raise InvalidInput(f"data has no geometry column {name!r}. Nothing was counted. It has {sorted(geometries)}.")
    series = frame[name]
    if series.crs is None:
        raise InvalidInput(f"Column {name!r} {_UNKNOWN}")
    points = series[~(series.isna() | series.is_empty)]
    if not (points.geom_type == "Point").all():
        raise InvalidInput(f"Column {name!r} {_NO_POINTS}")
    x, y, pipeline = np.asarray(points.x, np.float64), np.asarray(points.y, np.float64), None
    if series.crs != crs and not same_crs(series.crs, crs):
        transformation = Transformation.between(series.crs, crs)
        x, y = transformation(x, y)
        pipeline = transformation.pipeline
    plain = frame.drop(columns=list(geometries))
    names = tuple(_free(f"{name} {end}", plain.columns) for end in ("x", "y"))
    at = np.flatnonzero(~(series.isna() | series.is_empty))
    for new, values in zip(names, (x, y), strict=True):
        whole = np.full(len(frame), np.nan)
        whole[at] = values
        plain[new] = whole
    return plain, (names[0], names[1]), pipeline


@dataclass(frozen=True, eq=False)
class Transformation:
    """From places in one CRS to places in another, x first always."""

    transformer: Any

    @classmethod
    def between(cls, source: Any, target: str) -> Transformation:
        """By pyproj."""
        try:
            import pyproj
        except ImportError as error:
            raise MissingExtra("pyproj", "geo", "Transforming points") from error
        return cls(pyproj.Transformer.from_crs(source, target, always_xy=True))

    @property
    def pipeline(self) -> str:
        """How, in the words of PROJ."""
        return str(self.transformer.definition)

    def __call__(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Missing places stay missing; those that are taken nowhere are beyond everything."""
        missing = np.isnan(x) | np.isnan(y)
        found = (np.where(np.isfinite(moved), moved, np.inf) for moved in self.transformer.transform(x, y))
        moved_x, moved_y = (np.where(missing, np.nan, moved) for moved in found)
        return moved_x, moved_y


_UNKNOWN = (
    "has no CRS, so that nobody knows where its points lie. Nothing was counted. Say it first, with set_crs(…) of "
    "GeoPandas, or give x and y with x= and y=."
)


def _free(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def same_crs(one: Any, other: Any) -> bool:
    """Whether two CRS are one, in whatever order their axes are named: places are always x first."""
    try:
        import pyproj
    except ImportError as error:
        raise MissingExtra("pyproj", "geo", "Comparing two CRS") from error
    found = (pyproj.CRS.from_user_input(crs) for crs in (one, other))
    return bool(next(found).equals(next(found), ignore_axis_order=True))


def places_in(column: Any, field: Field) -> Floats:
    """(x, y) of every place in an Arrow column that tells places by itself, NaN where there is none."""
    if field.indices:
        return cast(Hexagons, field.axis).places_of(_indices(column))
    return points_of(column, field.column)


def _indices(column: Any) -> Indices:
    """Cells of H3 as numbers, of numbers or of text; 0 where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type):
        return fixed_width(column.fill_null(0), np.uint64)  # a negative number is no cell either
    coded = pc.dictionary_encode(column)
    known = np.append(read_texts(coded.dictionary.to_pylist()), np.uint64(0))
    return np.asarray(known[fixed_width(coded.indices.fill_null(len(known) - 1), np.int32)])


def points_of(column: Any, name: str) -> Floats:
    """(x, y) of every WKB in a binary Arrow column, NaN where there is none or an empty one."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(column.type) and column.type.list_size == 2:  # GeoArrow's points, x and y in turn
        flat = column.values.slice(2 * column.offset, 2 * len(column)).fill_null(np.nan)
        found = np.array(fixed_width(flat, np.float64).reshape(-1, 2))
        found[np.asarray(column.is_null())] = np.nan
        return found
    if pa.types.is_struct(column.type):  # GeoArrow's points, as two columns beside each other
        both = [part.fill_null(np.nan) for part in column.flatten()[:2]]  # null where the whole is
        return np.stack([fixed_width(part, np.float64) for part in both], axis=-1)
    column = column.cast(pa.large_binary())
    offsets = np.frombuffer(column.buffers()[1], np.int64, len(column) + 1, column.offset * 8)
    content = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    found = np.full((len(column), 2), np.nan)
    there = np.flatnonzero(lengths)  # a missing one has no bytes
    if not len(there):
        return found
    if (lengths[there] == _POINT).all() and len(there) == len(column):
        rows = content[offsets[0] : offsets[-1]].reshape(-1, _POINT)
    elif (lengths[there] >= _POINT).all():
        rows = content[offsets[there][:, None] + np.arange(_POINT)]
    else:
        raise InvalidInput(f"Column {name!r} {_NO_POINTS}")
    if not _plain(rows, lengths[there]):
        return _slowly(column, found, name)
    found[there] = np.ascontiguousarray(rows[:, 5:]).view("<f8")
    return found


def _plain(rows: NDArray[np.uint8], lengths: NDArray[np.int64]) -> bool:
    return bool((lengths == _POINT).all() and (rows[:, :5] == _HEAD).all())


def _slowly(column: Any, found: Floats, name: str) -> Floats:
    """The same of points with a third coordinate, or in another order of bytes."""
    try:
        import shapely
    except ImportError as error:
        raise MissingExtra("shapely", "geo", "Reading these geometries") from error
    shapes = shapely.from_wkb(np.array(column.to_pylist(), dtype=object), on_invalid="ignore")
    there = ~(shapely.is_missing(shapes) | shapely.is_empty(shapes))
    if (shapely.get_type_id(shapes[there]) != 0).any():
        raise InvalidInput(f"Column {name!r} {_NO_POINTS}")
    found[there] = np.stack([shapely.get_x(shapes[there]), shapely.get_y(shapes[there])], axis=-1)
    return found
