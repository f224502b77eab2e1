"""A release for other tools: a plain table (Parquet, CSV), or rectangles on a map (GeoJSON).

These files can be read anywhere and cannot be read back as a release: of the guarantee they carry its words alone.
Every cell is written, the empty and the negative ones too; leaving out what looks empty would bias every sum that a
reader makes.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.domain import Interval, Labels
from sfumato.errors import InvalidInput, TooLarge
from sfumato.files import replacing

if TYPE_CHECKING:
    from sfumato.release.release import Release

# About 250 bytes a rectangle: beyond this no map tool opens the file.
LARGEST_GEOJSON = 1_000_000

# What a formula begins with, also in the wide forms that spreadsheets take for the same, and what is skipped before it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def to_parquet(release: Release, path: str | Path, *, points: bool = False) -> Path:
    """One row a cell: bounds or label along every axis, `count`, `stderr`; the guarantee in words in the metadata.

    With `points`, one row a synthetic point of a release of sorted points, and a column for every axis.
    """
    import pyarrow.parquet as pq

    table = points_of(release) if points else table_of(release)
    with replacing(path) as file:
        pq.write_table(table, file, compression="zstd")
    return Path(path)


def to_csv(release: Release, path: str | Path) -> Path:
    """The same table as text, with a header line.

    Spreadsheets run a cell that begins with =, +, - or @ as a formula. A label or a name of an axis that does so, or
    begins with a tab or an end of line, gets an apostrophe before it, by which they take it for text. Numbers stay
    numbers, negative ones too.
    """
    import pyarrow as pa
    import pyarrow.csv as csv

    table = table_of(release)
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            words = [_harmless(word) for word in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(words, pa.string()))
    table = table.rename_columns([_harmless(name) for name in table.column_names])
    with replacing(path) as file:
        csv.write_csv(table, file)
    return Path(path)


def _harmless(text: str) -> str:
    """A word that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def to_geojson(release: Release, path: str | Path) -> Path:
    """A FeatureCollection of rectangles with `count` and `stderr`; x is taken as longitude and y as latitude.

    The guarantee stands beside the features, under `guarantee`, `epsilon` and `private`.
    """
    domain = release.domain
    if domain.ndim != 2 or not domain.is_spatial:
        raise InvalidInput(
            "GeoJSON needs a grid of two interval axes; this release has the axes "
            f"{', '.join(map(repr, domain.names))}. Nothing was written. Use to_parquet or to_csv."
        )
    if domain.size > LARGEST_GEOJSON:
        raise TooLarge(
            f"{domain.size:,} cells are too many for GeoJSON (at most {LARGEST_GEOJSON:,}). Nothing was written. "
            "Use to_parquet."
        )
    x, y = (list(map(repr, axis.edges.tolist())) for axis in domain.intervals)
    counts, errors = release.counts.tolist(), release.cells().stderr.tolist()
    about = {
        "guarantee": str(release.guarantee),
        "epsilon": str(release.guarantee.epsilon),
        "private": release.private,
        "release": release.id,
    }
    with replacing(path) as file:
        file.write(f'{{"type":"FeatureCollection",{json.dumps(about)[1:-1]},"features":['.encode("ascii"))
        for i, (row, row_errors) in enumerate(zip(counts, errors, strict=True)):
            lines = [
                _rectangle(x[i], y[j], x[i + 1], y[j + 1], count, error)
                for j, (count, error) in enumerate(zip(row, row_errors, strict=True))
            ]
            file.write(((",\n" if i else "\n") + ",\n".join(lines)).encode("ascii"))
        file.write(b"\n]}\n")
    return Path(path)


def _rectangle(x0: str, y0: str, x1: str, y1: str, count: float, error: float) -> str:
    """One cell; its ring runs counter-clockwise, as RFC 7946 asks."""
    ring = f"[{x0},{y0}],[{x1},{y0}],[{x1},{y1}],[{x0},{y1}],[{x0},{y0}]"
    return (
        f'{{"type":"Feature","geometry":{{"type":"Polygon","coordinates":[[{ring}]]}},'
        f'"properties":{{"count":{count!r},"stderr":{"null" if math.isnan(error) else repr(error)}}}}}'
    )


def points_of(release: Release) -> Any:
    """The synthetic points of a release as a pyarrow table."""
    import pyarrow as pa

    columns = dict(zip(release.domain.names, release.points().T, strict=True))
    return pa.table(columns).replace_schema_metadata({"guarantee": str(release.guarantee), "release": release.id})


def table_of(release: Release) -> Any:
    """The release as a pyarrow table, one row a cell in C order."""
    import pyarrow as pa

    domain = release.domain
    index = np.indices(domain.shape, sparse=True)
    columns: dict[str, Any] = {}

    def add(name: str, along: Any, position: Any) -> None:
        while name in columns or name in ("count", "stderr"):  # an axis may bear any name
            name += "_"
        places = np.broadcast_to(position, domain.shape).ravel()
        columns[name] = pa.array(along).take(pa.array(places))

    for axis, position in zip(domain.axes, index, strict=True):
        if isinstance(axis, Interval):
            add(f"{axis.name}_low", axis.edges[:-1], position)
            add(f"{axis.name}_high", axis.edges[1:], position)
        elif isinstance(axis, Labels):
            add(axis.name, list(axis.labels), position)
    columns["count"] = release.counts.ravel()
    columns["stderr"] = pa.array(release.cells().stderr.ravel(), from_pandas=True)  # unknown becomes null
    return pa.table(columns).replace_schema_metadata({"guarantee": str(release.guarantee), "release": release.id})
