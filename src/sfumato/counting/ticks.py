"""Times of every engine as whole microseconds, by the rule of `sfumato.domain.moments`: finer ones are rounded down,
those beyond the years 1 to 9999 are moved to their ends, and infinite ones are beyond.

Instants are microseconds since 1970 in UTC, readings of a clock since 1970 on that clock. Nothing here asks a zone of
an engine: which cell an instant lies in is settled by our own tables, the same for all.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.counting.columns import Field, refuse_type
from sfumato.domain import Timed
from sfumato.domain.moments import COARSER, EARLIEST, FINER, LATEST, from_ticks, times
from sfumato.domain.timed import READING, marked
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import narwhals as nw

_ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "TIMESTAMPTZ_NS"}
_NAIVE = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_DAY = r"[0-9]{4}(-[0-9]{2}-|/[0-9]{2}/)[0-9]{2}"
_CLOCK = r"[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?"
_OFFSET = r" ?(Z|UTC|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9](:?[0-5][0-9])?)?)"


def is_time(kind: str) -> bool:
    """Whether a type of DuckDB is that of dates or times."""
    return kind in _ZONED | _NAIVE | {"DATE"}


def is_zoned(kind: str) -> bool:
    """Whether it tells a zone."""
    return kind in _ZONED


def check_kind(field: Field, kind: str) -> None:
    """Refuse a type of DuckDB that the axis does not take."""
    if not is_time(kind):
        refuse_type(field, kind)
    field.check_zone(zoned=is_zoned(kind))


def of_duckdb(axis: Timed, kind: str, column: str) -> str:
    """SQL for a column of dates or times."""
    nanoseconds = f"epoch_ns({column})"
    ticks = f"epoch_us({column})"
    if kind == "DATE":  # a day millions of years away has no microseconds
        ticks = f"epoch_us(greatest(least({column}, DATE '9999-12-31'), DATE '0001-01-01'))"
    elif kind.endswith("_NS"):  # DuckDB rounds these to microseconds, and divides towards zero
        ticks = f"({nanoseconds} - ({nanoseconds} % 1000 + 1000) % 1000) // 1000"
    kept = f"greatest(least({ticks}, {LATEST}), {EARLIEST})"
    last, first = f"{column} = CAST('infinity' AS {kind})", f"{column} = CAST('-infinity' AS {kind})"
    value = f"CASE WHEN {last} THEN {LATEST} WHEN {first} THEN {EARLIEST} WHEN {column} IS NOT NULL THEN {kept} END"
    return f"CAST({marked_sql(value, axis, zoned=is_zoned(kind))} AS BIGINT)"


def marked_sql(ticks: str, axis: Timed, *, zoned: bool) -> str:
    """SQL for microseconds of one kind as the axis takes them."""
    return f"({ticks}) + {READING}" if axis.marks and not zoned else ticks


def of_text(axis: Timed, text: str) -> str:
    """SQL for text in ISO 8601; null where it is none, or not of a kind that the axis takes."""
    zoned, naive = f"{_DAY}{_CLOCK}{_OFFSET}", f"{_DAY}({_CLOCK})?"
    # Digits beyond microseconds are cut off: rounding could carry a record into the next cell.
    clock = f"replace(regexp_extract({text}, '^{_DAY}({_CLOCK})?'), '/', '-')"
    cut = f"regexp_replace(replace({clock}, ',', '.'), '([.][0-9]{{6}})[0-9]+', '\\1')"
    reading = f"CASE WHEN left({text}, 4) <> '0000' THEN epoch_us(TRY_CAST({cut} AS TIMESTAMP)) END"
    offset = f"rpad(replace(regexp_extract({text}, '[+-][0-9:]+$'), ':', ''), 7, '0')"
    hours, minutes, seconds = (f"CAST(substr({offset}, {at}, 2) AS BIGINT)" for at in (2, 4, 6))
    size = f"1000000 * (3600 * {hours} + 60 * {minutes} + {seconds})"
    ahead = f"CASE WHEN right({text}, 1) IN ('Z', 'C') THEN 0 WHEN left({offset}, 1) = '-' THEN -{size} ELSE {size} END"
    instant = f"greatest(least(({reading}) - ({ahead}), {LATEST}), {EARLIEST})"
    cases = []
    if axis.takes(zoned=True):
        cases.append(f"WHEN regexp_full_match({text}, '{zoned}') THEN {instant}")
    if axis.takes(zoned=False):
        cases.append(f"WHEN regexp_full_match({text}, '{naive}') THEN {marked_sql(reading, axis, zoned=False)}")
    return f"CAST(CASE {' '.join(cases)} END AS BIGINT)"


def of_the_other_kind(axis: Timed, text: str) -> str:
    """SQL for whether text is a time with a zone although the axis has none, or the other way round."""
    pattern = f"{_DAY}({_CLOCK})?" if axis.takes(zoned=True) else f"{_DAY}{_CLOCK}{_OFFSET}"
    return f"regexp_full_match({text}, '{pattern}')"


def of_arrow(axis: Timed, column: Any) -> Any:
    """An Arrow column of dates or times, in one piece or in many."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([of_arrow(axis, chunk) for chunk in column.chunks], pa.int64())
    kind = column.type
    if pa.types.is_date32(kind):
        unit, width = "D", pa.int32()
    else:
        unit, width = ("ms" if pa.types.is_date64(kind) else kind.unit), pa.int64()
    missing = column.is_null()
    # Arrow's own ways to coarser units fail where a time has finer digits.
    numbers = np.asarray(column.view(width).fill_null(0), np.int64)
    zoned = getattr(kind, "tz", None) is not None
    return pa.array(marked(from_ticks(numbers, unit), axis, zoned=zoned), pa.int64(), mask=np.asarray(missing))


def of_polars(axis: Timed, kind: Any, column: nw.Expr) -> nw.Expr:
    """The same as an expression of Polars, whose whole numbers are divided downwards."""
    import narwhals as nw

    unit = getattr(kind, "time_unit", "D")
    ticks = column.cast(nw.Int64)
    if unit in FINER:
        ticks = (ticks // FINER[unit]).clip(EARLIEST, LATEST)
    else:
        factor = COARSER[unit]
        ticks = (ticks.clip(EARLIEST // factor, LATEST // factor + 1) * factor).clip(EARLIEST, LATEST)
    return marked(ticks, axis, zoned=getattr(kind, "time_zone", None) is not None)


def of_numpy(name: str, values: Any) -> Any:
    """A column of a mapping as Arrow holds it; NumPy's units that Arrow does not know become microseconds."""
    import pyarrow as pa

    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidInput(
            f"Column {name!r} has {array.ndim} dimensions. Nothing was counted. Give one value for each record."
        )
    if array.dtype.kind == "M":
        missing, filled = np.isnat(array), array.copy()
        filled[missing] = np.datetime64("1970")
        return pa.array(times(filled, name)[0].view("M8[us]"), mask=missing)
    if len({value.tzinfo is None for value in array.tolist() if isinstance(value, datetime)}) > 1:
        raise InvalidInput(  # Arrow would forget the zones
            f"Column {name!r}: some values have a time zone and some have none. Nothing was counted. Convert them to "
            "one kind first."
        )
    return pa.array(array, from_pandas=array.dtype.kind == "O")
