"""Files as one table whose columns have private names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.counting import columnar, delimited
from sfumato.counting.columnar import ParquetPart
from sfumato.counting.columns import UNREADABLE, Field
from sfumato.counting.delimited import CsvPart
from sfumato.counting.files import find_files
from sfumato.counting.geometries import refuse_others
from sfumato.counting.hushing import hushed
from sfumato.counting.sql import quoted
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.counting.inputs import Database


@dataclass(frozen=True)
class View:
    """The columns that counting needs, as a relation or frame under private names.

    ``unreadable`` says whether one of them tells rows with an unreadable coordinate, and ``advice`` what to do when the
    engine cannot go on. ``crs`` has the columns of points in another CRS than that of their axis, by private name.
    """

    frame: Any
    unreadable: bool = False
    advice: str = ""
    fields: tuple[Field, ...] = ()
    crs: Mapping[str, str] = dataclasses.field(default_factory=dict)


def view_files(paths: list[str | Path], fields: Sequence[Field], database: Database) -> View:
    """What counting needs of Parquet or CSV files."""
    kind, files = find_files(paths, database)
    needed = tuple(dict.fromkeys(field.column for field in fields))
    if kind == "parquet":
        parquet = columnar.read_parts(files, database, needed)
        _check_same_columns(parquet)
        mixed = {field: columnar.is_mixed(field, parquet) for field in fields}
        crs = columnar.point_crs(fields, parquet)
        selects = [
            _select(part, (f"{columnar.read_as(field, part, mixed[field])} AS {field.alias}" for field in fields))
            for part in parquet
        ]
        return View(_union(selects, database), advice=columnar.ADVICE, crs=crs)
    refuse_others(fields, "a file of text")
    csv = delimited.read_parts(files, database, needed)
    _check_same_columns(csv)
    for field in fields:
        if field.axis is None:
            delimited.check_entity(csv, field.column, database)
        elif field.is_number:
            delimited.check_numbers(csv, field, database)
        delimited.check_times(csv, field, database)
    return View(
        _union([_select(part, _read_csv(part, fields)) for part in csv], database),
        unreadable=True,
        advice=delimited.ADVICE,
    )


def open_files(paths: list[str | Path], fields: Sequence[Field], database: Database, as_text: str | None = None) -> Any:
    """Parquet or CSV files as a relation with the names of the data, for whoever needs further columns than counting.

    Columns of CSV files that a field names are read as it needs them, and ``as_text`` is not read at all. Names that
    differ in case only are left out: DuckDB would take one for the other.
    """
    kind, files = find_files(paths, database)
    needed = tuple(dict.fromkeys(field.column for field in fields))
    parts: Sequence[ParquetPart | CsvPart]
    parts = (columnar if kind == "parquet" else delimited).read_parts(files, database, needed)
    _check_same_columns(parts)
    lower = [name.lower() for name in parts[0].header]
    names = [name for name in parts[0].header if name and lower.count(name.lower()) == 1]
    wanted = {field.column: field for field in reversed(fields)}
    parquet = [part for part in parts if isinstance(part, ParquetPart)]
    mixed = {name for name, field in wanted.items() if parquet and columnar.is_mixed(field, parquet)}
    return _union([_select(part, _named(part, names, wanted, mixed, as_text)) for part in parts], database)


def _named(
    part: ParquetPart | CsvPart, names: list[str], wanted: dict[str, Field], mixed: set[str], as_text: str | None
) -> Iterable[str]:
    for name in names:
        position, field = part.header.index(name), wanted.get(name)
        field = None if field is None or field.times else field  # a time stays what it looks like
        column = f"k{position}"
        if isinstance(part, CsvPart) and field is None and name != as_text:
            column = delimited.read_plainly(part.looks[position], column)
        elif field is not None:
            column = (
                delimited.read_as(field, column)[0]
                if isinstance(part, CsvPart)
                else columnar.read_as(field, part, name in mixed)
            )
        yield f"{column} AS {quoted(name)}"


def _read_csv(part: CsvPart, fields: Sequence[Field]) -> Iterable[str]:
    wrong = []
    for field in fields:
        value, unreadable = delimited.read_as(field, f"k{part.header.index(field.column)}")
        yield f"{value} AS {field.alias}"
        wrong.append(unreadable)
    yield f"({' OR '.join(wrong)}) AS {UNREADABLE}"


def _select(part: ParquetPart | CsvPart, columns: Iterable[str]) -> str:
    return f"SELECT {', '.join(columns)} FROM {part.source()}"


def _union(selects: list[str], database: Database) -> Any:
    query = " UNION ALL ".join(selects)
    return hushed("The records could not be read", lambda: database.connection.sql(query))


def _check_same_columns(parts: Sequence[ParquetPart | CsvPart]) -> None:
    first = parts[0]
    for part in parts[1:]:
        if sorted(part.header) != sorted(first.header):
            raise InvalidInput(
                f"{first.files[0]!r} and {part.files[0]!r} have different columns, and may hold different things. "
                "Nothing was counted. Give files of one kind; or join them in DuckDB "
                "(read_parquet or read_csv with union_by_name=true) and give the relation."
            )
