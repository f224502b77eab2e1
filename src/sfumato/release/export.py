"""A release for other tools as a plain table: Parquet, CSV.

These files can be read anywhere and cannot be read back as a release: of the guarantee they carry its words alone.
Every cell is written, the empty and the negative ones too; leaving out what looks empty would bias every sum that a
reader makes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.files import replacing
from sfumato.release.frames import all_keys, rows_of, said

if TYPE_CHECKING:
    from sfumato.release.release import Release

# What a formula begins with, also in the wide forms that spreadsheets take for the same, and what is skipped before it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def to_parquet(release: Release, path: str | Path, *, points: bool = False) -> Path:
    """One row a cell: bounds or label along every axis, `count`, `stderr`; the guarantee in words in the metadata.

    With `points`, one row a synthetic point of a release of sorted points, and a column for every axis.
    """
    return write_parquet(points_of(release) if points else table_of(release), path)


def write_parquet(table: Any, path: str | Path) -> Path:
    """A table of pyarrow as a file, whole."""
    import pyarrow.parquet as pq

    with replacing(path) as file:
        pq.write_table(table, file, compression="zstd")
    return Path(path)


def to_csv(release: Release, path: str | Path) -> Path:
    """The same table as text, with a header line."""
    return write_csv(table_of(release), path)


def write_csv(table: Any, path: str | Path) -> Path:
    """A table of pyarrow as text, whole.

    Spreadsheets run a cell that begins with =, +, - or @ as a formula. A label or a name of an axis that does so, or
    begins with a tab or an end of line, gets an apostrophe before it, by which they take it for text. Numbers stay
    numbers, negative ones too.
    """
    import pyarrow as pa
    import pyarrow.csv as csv

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


def points_of(release: Release) -> Any:
    """The synthetic points of a release as a pyarrow table."""
    import pyarrow as pa

    columns = dict(zip(release.domain.names, release.points().T, strict=True))
    return pa.table(columns).replace_schema_metadata({"guarantee": str(release.guarantee), "release": release.id})


def table_of(release: Release) -> Any:
    """The release as a pyarrow table, one row a cell in C order."""
    figures = {"count": release.counts, "stderr": release.cells().stderr}
    return said(rows_of(all_keys(release.domain), release.domain.shape, figures), release)
