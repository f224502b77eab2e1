"""Parquet files: columns by the names in each file's own schema, which may differ in case only.

Names of folders (``…/mode=bus/…``) are columns behind those of the file, and never in their place: what a record says
of itself counts, whatever the folder is called. Where both have a name, whatever its case, folders are no columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sfumato.counting.columns import Field
from sfumato.counting.geometries import crs_in_duckdb
from sfumato.counting.hushing import hushed
from sfumato.counting.sql import INTEGERS, WIDE, as_double, column_list, is_number, literal
from sfumato.counting.ticks import check_kind, is_time, is_zoned, of_duckdb
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.counting.inputs import Database

_UNSAID, _USUAL = "GeometryType(crs=<null>)", "OGC:CRS84"
ADVICE = "Check that the file or address is there, may be read, and is a whole Parquet file."


@dataclass(frozen=True)
class ParquetPart:
    """Files with the same columns of the same types in the same order."""

    files: tuple[str, ...]
    header: tuple[str, ...]
    types: tuple[str, ...]
    folders: bool
    """Whether names of folders are columns too."""

    def source(self) -> str:
        """The records as SQL, columns named by position."""
        names = ", ".join(f"k{i}" for i in range(len(self.header)))
        return f"{_scan(self.files, self.folders)} AS t({names})"


def read_parts(files: list[str], database: Database, needed: Sequence[str]) -> list[ParquetPart]:
    """Files grouped by schema, or a refusal where a needed column is not in every one."""
    listed = ", ".join(map(literal, files))
    what = f"{', '.join(map(repr, files[:3]))}{', …' if len(files) > 3 else ''} could not be read as Parquet"

    def read() -> list[ParquetPart]:
        connection = database.connection
        schema = connection.sql(
            "SELECT file_name, name, num_children, (type, type_length, converted_type, scale, precision, "
            f"logical_type)::VARCHAR FROM parquet_schema([{listed}])"
        ).fetchall()
        groups: dict[Any, list[str]] = {}
        said = _said_of_places(connection, files)
        # One call lists the files in the order given; each begins with a root that has the columns as children.
        for file, rows in zip(files, _by_file(schema), strict=True):
            groups.setdefault((tuple(rows), said.get(file)), []).append(file)
        parts = []
        for (rows, places), members in groups.items():
            header = _top(rows)
            folders = not _named_by_folders(members) & {name.lower() for name in header}
            plain = connection.sql(f"SELECT * FROM {_scan(members, folders)} LIMIT 0")
            header = (*header, *plain.columns[len(header) :])
            unsaid = {str(name) for name, _, kind in rows if _UNSAID in str(kind)}
            told = {name: _crs_of(places, name) for name in unsaid}
            kinds = (told.get(name, kind) for name, kind in zip(header, map(str, plain.types), strict=True))
            parts.append(ParquetPart(tuple(members), header, tuple(kinds), folders))
        return parts

    parts = hushed(what, read, ADVICE)
    for part in parts:
        column_list(part.header, needed, of=f"{part.files[0]!r}")
    return parts


def _said_of_places(connection: Any, files: Sequence[str]) -> dict[str, str]:
    """What the metadata of GeoParquet say of the CRS of columns in each file that has them, as text to compare; those
    of two are not read as one. Metadata that nobody can read stay as they are: whoever needs them will be told.
    """
    listed = ", ".join(map(literal, files))
    rows = connection.sql(
        f"SELECT file_name, value FROM parquet_kv_metadata([{listed}]) WHERE key = 'geo'::BLOB"
    ).fetchall()
    found: dict[str, str] = {}
    for file, value in rows:
        try:
            columns = json.loads(value)["columns"]
            found[file] = json.dumps({name: about.get("crs", _USUAL) for name, about in columns.items()})
        except (ValueError, LookupError, TypeError, AttributeError):
            found[file] = repr(value)
    if set(found) <= set(files):
        return found
    if len(files) == 1:  # by a name that the engine wrote its own way
        return dict(zip(files, found.values(), strict=True))
    return {file: said for file in files for said in _said_of_places(connection, [file]).values()}


def _crs_of(said: str | None, name: str) -> str:
    """The type of a column of Parquet's own geometries that names no CRS: what the metadata of GeoParquet say of it,
    else longitude and latitude, which Parquet takes it for; without a CRS where these say that nobody knows it.
    """
    try:
        crs = _USUAL if said is None else json.loads(said).get(name, _USUAL)
    except (ValueError, AttributeError):
        crs = None
    crs = json.dumps(crs) if isinstance(crs, dict) else crs
    return f"GEOMETRY({literal(crs)})" if isinstance(crs, str) else "GEOMETRY"


def _scan(files: Sequence[str], folders: bool) -> str:
    off = "" if folders else ", hive_partitioning=false"
    return f"read_parquet([{', '.join(map(literal, files))}]{off})"


def _named_by_folders(files: Sequence[str]) -> set[str]:
    """What an engine may take for columns in the paths of files, in small letters."""
    steps = {step for file in files for step in re.split(r"[/\\]", file)[:-1] if "=" in step}
    plain = {re.sub(r"\[([*?\[])\]", r"\1", step.split("=")[0]) for step in steps}
    return {spelt.lower() for name in plain for spelt in (name, unquote(name))}


def _by_file(rows: list[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    """The rows of each file: a file ends when all children of its root are there."""
    files: list[list[tuple[Any, ...]]] = []
    open_ = 0
    for _, name, children, kind in rows:
        if not open_:
            files.append([])
            open_ = 1
        files[-1].append((name, children, kind))
        open_ += int(children or 0) - 1
    return files


def _top(rows: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """The names of the columns themselves, without what is nested in them."""
    names, position = [], 1

    def skip(at: int) -> int:
        end = at + 1
        for _ in range(int(rows[at][1] or 0)):
            end = skip(end)
        return end

    while position < len(rows):
        names.append(str(rows[position][0]))
        position = skip(position)
    return tuple(names)


def point_crs(fields: Sequence[Field], parts: Sequence[ParquetPart]) -> dict[str, str]:
    """In which CRS columns of points are, by their private names, where it is not that of their axes."""
    found: dict[str, str] = {}
    for field in fields:
        if not field.geometry:
            continue
        said = {crs_in_duckdb(field, part.types[part.header.index(field.column)]) for part in parts}
        if len(said) > 1:
            raise InvalidInput(
                f"Column {field.column!r} is in one CRS in some files and in another in others. Nothing was counted. "
                "Count them one by one, or transform some of them first."
            )
        crs = said.pop()
        if crs is not None:
            found[field.alias] = crs
    return found


def read_as(field: Field, part: ParquetPart, mixed: bool) -> str:
    """SQL for a column: times as microseconds, numbers as doubles where files disagree, others as they are."""
    position = part.header.index(field.column)
    if field.geometry:
        return f"CAST(k{position} AS BLOB)"
    if field.times is not None:
        check_kind(field, part.types[position])
        return of_duckdb(field.times, part.types[position], f"k{position}")
    if mixed and field.is_number:
        return as_double(part.types[position], f"k{position}")
    return f"k{position}"


def is_mixed(field: Field, parts: Sequence[ParquetPart]) -> bool:
    """Whether files disagree about the type of a column, or a refusal where it matters."""
    kinds = {part.types[part.header.index(field.column)]: part.files[0] for part in parts}
    if len(kinds) == 1 or (field.geometry and all(kind.startswith("GEOMETRY") for kind in kinds)):
        return False  # of two CRS, `point_crs` speaks
    same_zone = all(map(is_time, kinds)) and len(set(map(is_zoned, kinds))) == 1
    if field.times is not None and same_zone:
        return True
    if (field.is_number and all(map(is_number, kinds))) or set(kinds) <= INTEGERS | WIDE:
        return True
    (one, here), (other, there) = list(kinds.items())[:2]
    why = "a string '7' and a number 7 would be two entities" if field.axis is None else f"{field.needs} takes one type"
    raise InvalidInput(
        f"Column {field.column!r} is of type {one} in {here!r} and of type {other} in {there!r}: {why}. Nothing was "
        "counted. Write it as one type in all files."
    )
