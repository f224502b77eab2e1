"""A release for other tools: a plain table (Parquet, CSV), or rectangles on a map (GeoJSON).

These files can be read anywhere and cannot be read back as a release: of the guarantee they carry its words alone.
Every cell is written, the empty and the negative ones too; leaving out what looks empty would bias every sum that a
reader makes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sfumato.domain import Domain
from sfumato.domain.factor import PLACE
from sfumato.domain.ground import WGS84
from sfumato.domain.ordered import Ordered
from sfumato.errors import InvalidInput, TooLarge
from sfumato.files import replacing
from sfumato.release.answering import tabled
from sfumato.release.asking import asked
from sfumato.release.frames import all_keys, rows_of, said
from sfumato.release.intervals import check_confidence
from sfumato.release.keys import Key

if TYPE_CHECKING:
    from sfumato.release.release import Release
    from sfumato.release.view import View

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
            words = [harmless(word) for word in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(words, pa.string()))
    table = table.rename_columns([harmless(name) for name in table.column_names])
    with replacing(path) as file:
        csv.write_csv(table, file)
    return Path(path)


def harmless(text: str) -> str:
    """A word that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def to_geojson(
    release: Release,
    view: View,
    path: str | Path,
    *,
    by: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
) -> Path:
    """A FeatureCollection of rectangles with `count`, `stderr`, `low` and `high`; x is taken as longitude and y as
    latitude. On a product everything else is summed over; with `by` there is one property a column of the table, such
    as `count_bike`, and `where` says which part is meant.

    The guarantee stands beside the features, under `guarantee`, `epsilon` and `private`.
    """
    place = _place(release.domain)
    crs = release.domain.axes[place[0]].entry().get("crs", WGS84[0])
    if crs not in WGS84:
        raise InvalidInput(
            f"GeoJSON is in degrees of WGS84, and this grid is in {crs[:60]}. Nothing was written. Use to_parquet, and "
            "transform its rectangles."
        )
    groups = (by,) if isinstance(by, str) else tuple(by or ())
    question = asked(release.domain, None, {}, where, (*(release.domain.names[i] for i in place), *groups), "bracket")
    size = math.prod(question.shape)
    if size > LARGEST_GEOJSON:
        raise TooLarge(
            f"{size:,} cells are too many for GeoJSON (at most {LARGEST_GEOJSON:,}). Nothing was written. "
            "Use to_parquet."
        )
    table = tabled(view, question, check_confidence(confidence), "bracket")
    figures = {"count": table.value, "stderr": table.stderr, "low": table.low, "high": table.high}
    across, up, *rest = table.keys
    columns = _columns(rest, list(figures))
    values = np.stack([np.asarray(part).reshape(len(across.cells), len(up.cells), -1) for part in figures.values()])
    about = {
        "guarantee": str(release.guarantee),
        "epsilon": str(release.guarantee.epsilon),
        "private": release.private,
        "release": release.id,
    }
    with replacing(path) as file:
        file.write(f'{{"type":"FeatureCollection",{json.dumps(about)[1:-1]},"features":['.encode("ascii"))
        for i, (x0, x1) in enumerate(_ends(across)):
            rows = np.moveaxis(values[:, i], 0, -1).reshape(len(up.cells), -1).tolist()
            lines = [_rectangle(x0, y0, x1, y1, columns, row) for (y0, y1), row in zip(_ends(up), rows, strict=True)]
            file.write(((",\n" if i else "\n") + ",\n".join(lines)).encode("ascii"))
        file.write(b"\n]}\n")
    return Path(path)


def _place(domain: Domain) -> tuple[int, ...]:
    """The two interval axes of a place: of the factor of that name, else of the only one with two such axes."""
    numbers = [f for f in domain.factors if [domain.axes[i].reads for i in f.positions] == ["numbers", "numbers"]]
    named = [factor for factor in numbers if factor.name == PLACE] or numbers
    if len(named) != 1:
        raise InvalidInput(
            "GeoJSON needs a grid of two interval axes; this release has the axes "
            f"{', '.join(map(repr, domain.names))}. Nothing was written. Use to_parquet or to_csv."
        )
    return named[0].positions


def _columns(keys: Sequence[Key], figures: Sequence[str]) -> list[str]:
    """The names of the properties, as JSON: count_bike, stderr_bike, …, each once."""
    found: list[str] = []
    for cells in product(*(key.short_names for key in keys)):
        for figure in figures:
            name = "_".join([figure, *cells])
            while name in found:
                name += "_"
            found.append(name)
    return [json.dumps(name) for name in found]


def _ends(key: Key) -> list[tuple[str, str]]:
    edges = list(map(repr, cast(Ordered, key.axis).edges.tolist()))
    return [(edges[cell], edges[cell + 1]) for cell in key.cells.tolist()]


def _rectangle(x0: str, y0: str, x1: str, y1: str, columns: Sequence[str], row: Sequence[float]) -> str:
    """One cell; its ring runs counter-clockwise, as RFC 7946 asks."""
    ring = f"[{x0},{y0}],[{x1},{y0}],[{x1},{y1}],[{x0},{y1}],[{x0},{y0}]"
    told = ",".join(
        f"{name}:{'null' if math.isnan(value) else repr(value)}" for name, value in zip(columns, row, strict=True)
    )
    return f'{{"type":"Feature","geometry":{{"type":"Polygon","coordinates":[[{ring}]]}},"properties":{{{told}}}}}'


def points_of(release: Release) -> Any:
    """The synthetic points of a release as a pyarrow table."""
    import pyarrow as pa

    columns = dict(zip(release.domain.names, release.points().T, strict=True))
    return pa.table(columns).replace_schema_metadata({"guarantee": str(release.guarantee), "release": release.id})


def table_of(release: Release) -> Any:
    """The release as a pyarrow table, one row a cell in C order."""
    figures = {"count": release.counts, "stderr": release.cells().stderr}
    return said(rows_of(all_keys(release.domain), release.domain.shape, figures), release)
