"""Times as they are written: typed columns as they are, text by one declared format, and nothing by a guess.

A reader of CSV that guesses takes 03/01/2026 for the third of January in one file and for the first of March in
another. Here text is read as ISO 8601 (2026-03-01T14:30, with an offset or without) or as --time-format says, the whole
column in one way. A value that cannot be read so is no record, and is counted for the operator; a column in which no
value can be read was written in another format, and is refused before anything is spent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.app.step_grid import Named, StepGrid, has_unit
from sfumato.counting.columns import Field
from sfumato.counting.hushing import hushed
from sfumato.counting.inputs import Database, open_frame
from sfumato.counting.report import CountReport
from sfumato.counting.sql import quoted
from sfumato.errors import InvalidInput

ISO = "iso"
_DATE = r"[0-9]{4}(-[0-9]{2}-|/[0-9]{2}/)[0-9]{2}"
_CLOCK = r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?"
_OFFSET = r" ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_NAIVE, _ZONED = f"{_DATE}({_CLOCK})?", f"{_DATE}{_CLOCK}{_OFFSET}"
_TEXT_FILES = re.compile(r"[.](csv|tsv)([.](gz|zst))?$", re.IGNORECASE)
_YEAR, _DAY = re.compile("%-?[Yy]"), re.compile("%-?j|%-?d")
_MONTH = re.compile("%-?[mbBj]")


@dataclass(frozen=True, eq=False)
class Times:
    """Records with the column that says when they happened, as times or whole numbers."""

    frame: Any
    grid: StepGrid
    written: int | None
    """How many rows say something in the column, where it was text."""

    def report(self, begin: Any, end: Any) -> CountReport:
        """How many rows have no time, one that cannot be read, or one outside the steps; one pass, nothing charged."""
        import narwhals as nw

        time = nw.col(self.grid.column)
        low, high = self.grid.place(begin), self.grid.place(end)
        within = ((time >= low) & (time < high)).cast(nw.Int64).sum()
        asked = (nw.len().alias("rows"), time.count().alias("readable"), within.alias("within"))
        (row,) = hushed(
            "The times could not be read", lambda: self.frame.select(*asked).collect("pyarrow").rows(named=True)
        )
        rows, readable, inside = (int(row[name] or 0) for name in ("rows", "readable", "within"))
        written = readable if self.written is None else self.written
        return CountReport(
            rows=rows,
            without_time=rows - written,
            unreadable_time=None if self.written is None else written - readable,
            in_no_step=readable - inside,
        )


def read(
    data: str, database: Database, fields: Sequence[Field], column: str, step: str, written: str | None, named: Named
) -> Times:
    """The records with their times, and the grid that cuts them; refused where the column tells no time.

    ``fields`` are the columns that will be counted, and ``named`` says how a key was said, for messages.
    """
    frame = open_frame(data, database, fields)
    kind = _type(frame, column, named)
    typed = kind.is_temporal() and not _is_text_file(data)
    if not has_unit(step) or (typed and written is None):
        if written is not None:
            raise InvalidInput(
                f"{named('time_format')} {written!r} does not go with {named('step')} {step!r}, a whole number. "
                "Nothing was counted. Use 1h and the like, or leave it out."
            )
        return Times(frame, StepGrid.of(frame, column, step, named), None)
    if kind.is_numeric() and written is None and not _is_text_file(data):
        return Times(frame, StepGrid.of(frame, column, step, named), None)  # refuses, and names what goes with numbers
    if typed:
        raise InvalidInput(
            f"{named('time_format')} {written!r} is for text, and column {column!r} is of type {kind}. "
            "Nothing was counted. Leave it out."
        )
    if _is_text_file(data):
        frame = open_frame(data, database, fields, as_text=column)
    elif written is None:
        raise InvalidInput(
            f"Column {column!r} is of type {kind}, which is no time. Nothing was counted, drawn or recorded. Say how "
            "its times are written: --time-format iso for 2026-03-01T14:30, or '%m/%d/%Y %H:%M' and the like."
        )
    relation = frame.to_native()
    text = f"nullif(trim(CAST({quoted(column)} AS VARCHAR)), '')"
    expression = _iso(relation, text) if written in (None, ISO) else _declared(database, str(written), text, named)
    counted = f"count({text}), count({expression})"
    said, readable = hushed("The times could not be read", lambda: relation.aggregate(counted).fetchall()[0])
    if said and not readable:
        raise InvalidInput(
            f"no value of column {column!r} can be read as "
            + (
                "a time such as 2026-03-01T14:30"
                if written in (None, ISO)
                else f"{named('time_format')} {written!r} says"
            )
            + ". Nothing was counted, drawn or recorded. Say how its times are written, as in --time-format "
            "'%m/%d/%Y %H:%M'."
        )
    import narwhals as nw

    frame = nw.from_native(relation.project(f"* REPLACE ({expression} AS {quoted(column)})"))
    return Times(frame, StepGrid.of(frame, column, step, named), int(said))


def _type(frame: Any, column: str, named: Named) -> Any:
    schema = hushed("The columns of the data could not be read", frame.collect_schema)
    if column not in schema:
        raise InvalidInput(f"{named('time')} {column!r} is not a column of the data. Nothing was counted.")
    return schema[column]


def _is_text_file(data: str) -> bool:
    """Whether the types of the columns are nobody's word."""
    return _TEXT_FILES.search(data.split("?")[0] if "://" in data else data) is not None


def _iso(relation: Any, text: str) -> str:
    """SQL for ISO 8601, with an offset or without, whichever more values have: a column is read in one way."""
    matched = f"count(*) FILTER (regexp_full_match({text}, '{{}}'))"
    asked = ", ".join(matched.format(pattern) for pattern in (_ZONED, _NAIVE))
    zoned, naive = hushed("The times could not be read", lambda: relation.aggregate(asked).fetchall()[0])
    pattern, kind = (_ZONED, "TIMESTAMP WITH TIME ZONE") if zoned > naive else (_NAIVE, "TIMESTAMP")
    # Microseconds are what is kept; further digits are cut off: rounding could carry a record into the next step.
    cut = f"replace(regexp_replace({text}, '([.][0-9]{{6}})[0-9]+', '\\1'), '/', '-')"
    return f"CASE WHEN regexp_full_match({text}, '{pattern}') THEN TRY_CAST({cut} AS {kind}) END"


def _declared(database: Database, written: str, text: str, named: Named) -> str:
    """SQL for a declared format, or a refusal where it is none or names no day."""
    if not (_YEAR.search(written) and _MONTH.search(written) and _DAY.search(written)):
        raise InvalidInput(
            f"{named('time_format')} {written!r} does not say year, month and day, as '%m/%d/%Y %H:%M' does. "
            "Nothing was counted, drawn or recorded."
        )
    literal = "'" + written.replace("'", "''") + "'"
    try:
        hushed("", lambda: database.connection.execute(f"SELECT try_strptime('', {literal})").fetchall())
    except InvalidInput:
        raise InvalidInput(
            f"{named('time_format')} {written!r} is not a format such as '%m/%d/%Y %H:%M' or 'iso'. "
            "Nothing was counted, drawn or recorded."
        ) from None
    return f"try_strptime({text}, {literal})"
