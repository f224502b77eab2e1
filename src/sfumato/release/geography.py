"""Maps for other tools: GeoJSON, frames of GeoPandas, GeoParquet.

Every row is there, the empty and the negative ones too, and elsewhere, which has no geometry. Of the guarantee these
files carry its words alone, and they cannot be read back as a release.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.domain.geometries import geometries
from sfumato.domain.ground import WGS84
from sfumato.domain.outlines import Outlines
from sfumato.domain.paths import Paths
from sfumato.domain.surface import square_metres
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.exact import shown
from sfumato.files import replacing
from sfumato.release.frames import measures, rows_of
from sfumato.release.maps import Map, mapped

if TYPE_CHECKING:
    from sfumato.release.release import Release
    from sfumato.release.view import View

# About 250 bytes a rectangle: beyond this no map tool opens the file.
LARGEST_GEOJSON = 1_000_000
VERSIONS = ("1.1", "2.0")


def to_geojson(
    release: Release,
    view: View,
    path: str | Path,
    *,
    level: str | None = None,
    by: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    density: bool = False,
    confidence: float = 0.95,
) -> Path:
    """A FeatureCollection of outlines with `count`, `stderr`, `low` and `high`, in WGS84: outlines of regions in
    another CRS are transformed, and the numbers of a grid without one are taken for longitudes and latitudes. On a
    product everything else is summed over; with `by` there is one property a column of the table, such as
    `count_bike`, and `where` says which part is meant.

    The guarantee stands beside the features, under `guarantee`, `epsilon` and `private`.
    """
    drawn = mapped(release.domain, view, level=level, by=by, where=where, confidence=confidence, most=LARGEST_GEOJSON)
    shapes: Iterator[list[Any]] = iter(_in_wgs84(drawn).oriented.coordinates())
    kind = "Polygon" if drawn.outlines.closed else "LineString"
    figures = measures(drawn.table)
    columns = drawn.columns({"count": figures.pop("value"), **figures})
    columns |= _dense(drawn, columns) if density else {}
    names = [json.dumps(name) for name in columns]
    ids, label = _ids(drawn, columns)
    about = {
        "guarantee": str(release.guarantee),
        "epsilon": str(release.guarantee.epsilon),
        "private": release.private,
        "release": release.id,
    }
    with replacing(path) as file:
        file.write(f'{{"type":"FeatureCollection",{json.dumps(about)[1:-1]},"features":['.encode("ascii"))
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        for i, (there, row) in enumerate(zip(drawn.located.tolist(), rows, strict=True)):
            told = [f"{name}:{_number(value)}" for name, value in zip(names, row, strict=True)]
            if ids:
                told.insert(0, f"{label}:{ids[i]}")
            shape = _geometry(next(shapes), kind) if there else "null"
            line = f'{{"type":"Feature","geometry":{shape},"properties":{{{",".join(told)}}}}}'
            file.write(((",\n" if i else "\n") + line).encode("ascii"))
        file.write(b"\n]}\n")
    return Path(path)


def to_geopandas(
    release: Release,
    view: View,
    *,
    level: str | None = None,
    by: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    density: bool = False,
    confidence: float = 0.95,
) -> Any:
    """A GeoDataFrame with one row a cell or group: its name or bounds, value, stderr, low and high, and its outline."""
    try:
        import geopandas
    except ImportError as error:
        raise MissingExtra("geopandas", "geo", "A frame of GeoPandas") from error
    drawn = mapped(release.domain, view, level=level, by=by, where=where, confidence=confidence)
    shape = tuple(len(key.cells) for key in drawn.place)
    columns = drawn.columns(measures(drawn.table))
    columns |= _dense(drawn, columns) if density else {}
    frame = rows_of(drawn.place, shape, {name: part.reshape(shape) for name, part in columns.items()}).to_pandas()
    shapes = np.full(len(drawn.located), None, dtype=object)
    shapes[drawn.located] = geometries(drawn.outlines, "A frame of GeoPandas")
    geometry = "geometry"
    while geometry in frame:
        geometry += "_"
    frame[geometry] = shapes
    found = geopandas.GeoDataFrame(frame, geometry=geometry, crs=drawn.crs)
    found.attrs = {"guarantee": str(release.guarantee), "release": release.id, "confidence": drawn.table.confidence}
    return found


def to_geoparquet(frame: Any, path: str | Path, version: str) -> Path:
    """Write such a frame whole; refused where the packages that are installed do not write this version."""
    if version not in VERSIONS:
        raise InvalidInput(
            f"version={shown(version)} must be one of {', '.join(map(repr, VERSIONS))}. Nothing was written."
        )
    import geopandas
    import pyarrow

    try:
        with replacing(path) as file:
            frame.to_parquet(file, index=False, compression="zstd", schema_version=f"{version}.0")
    except ValueError as error:
        raise InvalidInput(
            f"version={version!r} is not written by geopandas {geopandas.__version__} with pyarrow "
            f"{pyarrow.__version__}, which are installed. Nothing was written. Use version='1.1', or newer ones "
            "(geopandas 1.2 and pyarrow 21 write 2.0)."
        ) from error
    return Path(path)


def _dense(drawn: Map, columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """Square kilometres of every row, and how many records there are on each, for every column of values."""
    area = square_kilometres(drawn.outlines, drawn.located, drawn.crs, "density=True", "Nothing was written.")
    found = {"area": area}
    for name, values in columns.items():
        for figure in ("value", "count"):
            if name == figure or name.startswith(f"{figure}_"):
                found["density" + name.removeprefix(figure)] = values / area
    return found


def square_kilometres(
    outlines: Outlines | Paths, located: NDArray[np.bool_], crs: str | None, asked: str, nothing: str
) -> Floats:
    """The area of every row on the ellipsoid; of one that lies nowhere NaN. `asked` and `nothing` are for refusals."""
    if crs is None:
        raise InvalidInput(
            f"{asked} needs to know where the grid lies, and this one is of plain numbers. {nothing} Build it with "
            "crs=."
        )
    if not outlines.closed:
        raise InvalidInput(f"{asked} is for areas, and roads have none. {nothing} Leave it out.")
    area = np.full(len(located), np.nan)
    found = _in_degrees(outlines, crs, "The area of the cells of this grid")
    area[located] = square_metres(cast(Outlines, found)) / 1e6
    return area


def _in_wgs84(drawn: Map) -> Outlines | Paths:
    """The outlines in degrees of WGS84; refused for grids of another CRS, whose sides would bend."""
    crs = drawn.crs
    if crs is None or crs in WGS84:
        return drawn.outlines
    if not drawn.named:
        raise InvalidInput(
            f"GeoJSON is in degrees of WGS84, and this grid is in {crs[:60]}. Nothing was written. Use to_geoparquet, "
            "or to_parquet."
        )
    return _in_degrees(drawn.outlines, crs, "GeoJSON of regions in another CRS than WGS84")


def _in_degrees(outlines: Outlines | Paths, crs: str | None, purpose: str) -> Outlines | Paths:
    """Outlines with their corners in degrees of WGS84."""
    if crs is None or crs in WGS84:
        return outlines
    try:
        import pyproj
    except ImportError as error:
        raise MissingExtra("pyproj", "geo", purpose) from error
    there = pyproj.Transformer.from_crs(crs, WGS84[0], always_xy=True)
    return replace(outlines, points=np.stack(there.transform(*outlines.points.T), axis=-1))


def _ids(drawn: Map, columns: Mapping[str, Any]) -> tuple[list[str], str]:
    """The names of the rows and of their property, as JSON; none of grids."""
    if not drawn.named:
        return [], ""
    label = drawn.place[0].axis.name
    while label in columns:
        label += "_"
    return [json.dumps(name) for name in drawn.place[0].names], json.dumps(label)


def _geometry(parts: list[Any], one: str) -> str:
    """Parts of rings (or lines) as GeoJSON; shells run counter-clockwise, as RFC 7946 asks."""
    kind, held = (one, parts[0]) if len(parts) == 1 else (f"Multi{one}", parts)
    return f'{{"type":"{kind}","coordinates":{json.dumps(held, separators=(",", ":"))}}}'


def _number(value: float) -> str:
    return "null" if math.isnan(value) else repr(value)
