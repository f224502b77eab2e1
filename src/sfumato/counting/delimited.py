"""CSV files: columns by the names in each file's own header, values as what the domain needs them for.

**Nothing hangs on a guess about values.** DuckDB's sniffer looks at a sample and decides about the whole file: an
identifier may look like a number for 20,000 rows, and ``007`` loses its zeros. So every column is read as text. What
names an entity stays the text that it is (``7``, ``007`` and ``7.0`` are three entities; blank is nobody), a coordinate
becomes the double nearest to what is written, and a single value that cannot be read is no record. The sniffer is asked
for the delimiter and the quotes alone, file by file.

**Nothing hangs on a position.** The header of each file is read as it is written, so two names may differ in case only,
and files whose columns stand in different orders are joined by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfumato.counting.columns import Field
from sfumato.counting.hushing import hushed
from sfumato.counting.sql import column_list, literal
from sfumato.counting.ticks import of_text, of_the_other_kind
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.counting.inputs import Database

TEXT = "text"
"""What a value is called in the queries that look at a sample: none where there is nothing but spaces."""
SAMPLE = 20_480
"""Rows in which at least one value of a coordinate has to be a number, where there is a value at all."""

ADVICE = (
    "A line may have more or fewer fields than the header, a quote may be left open, or the text may not be in UTF-8: "
    "DuckDB's read_csv shows the line."
)
_INTEGER = r"[+-]?[0-9]+(\.0*)?"
_ISO = {"DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIME"}
_FLOATING = {"DOUBLE", "FLOAT"}


@dataclass(frozen=True)
class Dialect:
    """How the fields of a file are set apart, and how many lines come before its header."""

    delimiter: str
    quote: str
    escape: str
    comment: str
    skip: int
    compression: str


@dataclass(frozen=True)
class CsvPart:
    """Files with the same header in the same order."""

    files: tuple[str, ...]
    dialect: Dialect
    header: tuple[str, ...]
    sampled: tuple[tuple[str, ...], ...]
    """What the values of each column look like, in DuckDB's words, file by file."""

    @property
    def looks(self) -> tuple[str, ...]:
        """The same of all files together; one without values looks like text, and may."""
        return tuple(_joint(set(kinds)) for kinds in zip(*self.sampled, strict=True))

    def source(self, *, header: bool = True) -> str:
        """The records as SQL, columns named by position, all of them text."""
        dialect = self.dialect
        columns = ", ".join(f"{literal(f'k{i}')}: 'VARCHAR'" for i in range(len(self.header)))
        comment = f", comment={literal(dialect.comment)}" if dialect.comment else ""
        return (
            f"read_csv([{', '.join(map(literal, self.files))}], auto_detect=false, delim={literal(dialect.delimiter)}, "
            f"quote={literal(dialect.quote)}, escape={literal(dialect.escape)}, skip={dialect.skip}{comment}, "
            f"header={str(header).lower()}, compression={literal(dialect.compression)}, hive_partitioning=false, "
            f"columns={{{columns}}})"
        )


def read_parts(files: list[str], database: Database, needed: tuple[str, ...]) -> list[CsvPart]:
    """Files grouped by header and dialect, or a refusal where a needed column is not in every header."""
    parts: dict[tuple[Any, ...], CsvPart] = {}
    for file in files:
        part = _opened(file, database, needed)
        key = part.header, part.dialect
        if key in parts:
            known = parts[key]
            part = replace(known, files=(*known.files, file), sampled=(*known.sampled, *part.sampled))
        parts[key] = part
    return list(parts.values())


def read_as(field: Field, column: str) -> tuple[str, str]:
    """SQL for what the domain needs of a text column, and SQL for whether there is a value that cannot be read."""
    text = f"nullif(trim({column}), '')"
    if field.axis is None:  # the entity: the text as it is
        return f"CASE WHEN {text} IS NOT NULL THEN {column} END", "false"
    if field.times is not None:
        value = of_text(field.times, text)
    elif field.indices:
        return column, "false"
    elif field.labels is None:
        value = f"TRY_CAST({text} AS DOUBLE)"
    elif field.labels.kind is str:
        return column, "false"
    elif field.labels.kind is bool:
        value = f"TRY_CAST({text} AS BOOLEAN)"
    else:
        number = f"TRY_CAST(split_part({text}, '.', 1) AS BIGINT)"
        value = f"CASE WHEN regexp_full_match({text}, '{_INTEGER}') THEN coalesce({number}, {field.stranger}) END"
    return value, f"({text} IS NOT NULL AND {value} IS NULL)"


def read_plainly(looks: str, column: str) -> str:
    """SQL for a column that counting does not need, by what it looks like: streams cut their steps by one of these."""
    if looks == "BIGINT":
        return f"CASE WHEN regexp_full_match(trim({column}), '[+-]?[0-9]+') THEN TRY_CAST({column} AS BIGINT) END"
    return f"TRY_CAST({column} AS {looks})" if looks in _ISO | {"DOUBLE", "BOOLEAN"} else column


def check_entity(parts: list[CsvPart], name: str, database: Database) -> None:
    """Refuse files in which an entity is written as ``7`` here and as ``7.0`` there: they would be two."""
    kinds: dict[str, str] = {}
    for part in parts:
        position = part.header.index(name)
        for file, sampled in zip(part.files, part.sampled, strict=True):
            looks = sampled[position]
            kind = looks if looks in _ISO | _FLOATING else "text"
            if kind in kinds or (looks == "VARCHAR" and not _has_value(part, file, position, database)):
                continue
            kinds[kind] = file
    if len(kinds) > 1:
        raise InvalidInput(
            f"Column {name!r} names the entity and is written in two ways, as {' and '.join(sorted(kinds))}, in "
            f"{' and '.join(repr(kinds[kind]) for kind in sorted(kinds))}: '7' and '7.0' would be two entities. "
            "Nothing was counted. Write it in one way in all files."
        )


def check_numbers(parts: list[CsvPart], field: Field, database: Database) -> None:
    """Refuse a coordinate in which the sample has values and none is a number: it was written in another format."""
    for part in parts:
        comma = f"regexp_full_match({TEXT}, '[+-]?[0-9.]*,[0-9]+([eE][+-]?[0-9]+)?')"
        values, numbers, commas = _sampled(part, field, database, f"TRY_CAST({TEXT} AS DOUBLE)", comma)
        if values and (not numbers or commas > numbers):
            how = (
                "It seems to have decimal commas. Write points instead, or read the file with an engine that takes "
                "them (duckdb.read_csv(…, decimal_separator=',')) and give the relation."
                if commas
                else "Name another column, or convert it first."
            )
            raise InvalidInput(
                f"Column {field.column!r} has values that are not numbers as {field.needs} needs them. Nothing was "
                f"counted. {how}"
            )


def check_times(parts: list[CsvPart], field: Field, database: Database) -> None:
    """Refuse a column in which the sample has values and none is a time that the axis takes."""
    if field.times is None:
        return
    for part in parts:
        wanted, others = of_text(field.times, TEXT), of_the_other_kind(field.times, TEXT)
        values, times, other = _sampled(part, field, database, wanted, others)
        if values and not times:
            if other:
                field.check_zone(zoned=not field.times.takes(zoned=True))
            raise InvalidInput(
                f"Column {field.column!r} has no value that is a time as {field.needs} needs it. Nothing was counted. "
                "Write times as 2026-03-01T14:30, with an offset such as +01:00 where the axis has a zone; or read the "
                "file with an engine that takes its format (duckdb.read_csv(…, timestampformat='%d/%m/%Y %H:%M')) and "
                "give the relation."
            )


def _sampled(part: CsvPart, field: Field, database: Database, read: str, other: str) -> tuple[int, int, int]:
    """Of the first values of a column: how many there are, how many can be read, and how many are of another kind."""
    column = f"k{part.header.index(field.column)}"
    query = (
        f"SELECT count({TEXT}), count({read}), count(*) FILTER ({other}) "
        f"FROM (SELECT nullif(trim({column}), '') AS {TEXT} FROM {part.source()} LIMIT {SAMPLE})"
    )
    (row,) = hushed("The records could not be read", lambda: _rows(database, query), ADVICE)
    values, numbers, others = row
    return values, numbers, others


def _rows(database: Database, query: str) -> Any:
    return database.connection.execute(query).fetchall()


def _has_value(part: CsvPart, file: str, position: int, database: Database) -> bool:
    source = replace(part, files=(file,)).source()
    query = f"SELECT 1 FROM {source} WHERE trim(k{position}) <> '' LIMIT 1"
    return bool(hushed("The records could not be read", lambda: _rows(database, query), ADVICE))


def _joint(kinds: set[str]) -> str:
    """What values of one column look like that look like these."""
    return kinds.pop() if len(kinds) == 1 else "DOUBLE" if kinds == {"BIGINT", "DOUBLE"} else "VARCHAR"


def _opened(file: str, database: Database, needed: tuple[str, ...]) -> CsvPart:
    """A file with its header, in which every needed column is found once."""
    query = (
        "SELECT Delimiter, Quote, Escape, Comment, SkipRows, HasHeader, Columns "
        f"FROM sniff_csv({literal(file)}, sample_size={SAMPLE})"
    )
    what = f"{file!r} could not be read as CSV"
    advice = "Check that the file or address is there and may be read. " + ADVICE
    (sniffed,) = hushed(what, lambda: _rows(database, query), advice)
    delimiter, quote, escape, comment, skip, has_header, columns = sniffed
    dialect = Dialect(
        _given(delimiter, ","), _given(quote, '"'), _given(escape, '"'), _given(comment, ""), int(skip), _packed(file)
    )
    looks = tuple(str(column["type"]) if has_header else "VARCHAR" for column in columns)
    header = _first_record(file, dialect, len(columns), database)
    if skip and not set(needed) <= set(header):
        # The sniffer passes over lines that do not look like the others, and the header may be one of them.
        first = _header_line(file, dialect, database)
        if set(needed) <= set(first):
            raise InvalidInput(
                f"{what}: its lines have not as many fields as its header. Nothing was counted. {ADVICE} Numbers with "
                "decimal commas have to stand in quotes."
            )
    column_list(header, needed, of=f"{file!r}", headed=False)
    return CsvPart((file,), dialect, header, (looks,))


def _first_record(file: str, dialect: Dialect, width: int, database: Database) -> tuple[str, ...]:
    part = CsvPart((file,), dialect, ("",) * width, ())
    query = f"SELECT * FROM {part.source(header=False)} LIMIT 1"
    rows = hushed(f"{file!r} could not be read as CSV", lambda: _rows(database, query), ADVICE)
    if not rows or all(value is None for value in rows[0]):
        raise InvalidInput(
            f"{file!r} is empty: it has no header line. Nothing was counted. Give a file whose first line names its "
            "columns; without further lines it counts as no records."
        )
    return tuple("" if value is None else str(value).strip() for value in rows[0])


def _header_line(file: str, dialect: Dialect, database: Database) -> list[str]:
    """The fields of the very first line, or nothing where it cannot be read by itself."""
    query = (
        f"SELECT line FROM read_csv([{literal(file)}], auto_detect=false, delim='\\x1f', quote='', escape='', "
        f"header=false, compression={literal(dialect.compression)}, hive_partitioning=false, "
        "columns={'line': 'VARCHAR'}) LIMIT 1"
    )
    try:
        rows = hushed("", lambda: _rows(database, query))
    except InvalidInput:
        return []
    line = str(rows[0][0]) if rows else ""
    return [name.strip().strip(dialect.quote) for name in line.split(dialect.delimiter)]


def _given(value: Any, default: str) -> str:
    return default if value in (None, "", "(empty)") else str(value)


def _packed(file: str) -> str:
    name = file.split("?")[0].lower() if "://" in file else file.lower()
    return "gzip" if name.endswith(".gz") else "zstd" if name.endswith(".zst") else "none"
