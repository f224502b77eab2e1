"""Frames of Spark: the columns that counting needs under private names, and labels as positions.

Classic Spark and Connect take the same SQL, so all of this is SQL on columns that were renamed by position first: names
with dots or backticks, and names that Spark takes for one, are then nobody's concern. A column becomes what every
engine compares: a double, whole microseconds, the label itself. Zones are not asked of Spark, and neither is the
session's own.

Labels are found by a join with a small frame that every worker is sent: two thousand of them as fast as two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfumato.counting.columns import Field, check_columns
from sfumato.counting.geometries import refuse_others
from sfumato.counting.place import representable
from sfumato.counting.spark_failures import explained, refuse_stopped
from sfumato.counting.sql import column_list
from sfumato.counting.ticks import marked_sql
from sfumato.domain import Domain, Labels
from sfumato.domain.durations import DAY, SECOND
from sfumato.domain.moments import EARLIEST, LATEST
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.counting.inputs import Frame

_READ = "The columns of the data could not be read"
_EPOCH = "timestamp_ntz'1970-01-01 00:00:00'"
_BIGGEST = (1 << 63) - 1


def is_spark(frame: Frame) -> bool:
    """Whether a frame is held by Spark, classic or Connect."""
    return frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect()


def from_pandas_on_spark(data: Any) -> Any:
    """A frame of `pyspark.pandas` as one of Spark, without its index; anything else as it is."""
    kind = type(data)
    if kind.__module__ != "pyspark.pandas.frame" or kind.__name__ != "DataFrame":
        return data
    return explained(_READ, data.to_spark)


def private_spark(native: Any, fields: Sequence[Field]) -> Frame:
    """The columns that counting needs as a frame of private names, checked; nothing is read yet."""
    import narwhals as nw

    refuse_stopped(native)
    if explained(_READ, lambda: native.isStreaming):
        raise InvalidInput(
            "data is a stream of Spark, which has no end and so no counts. Nothing was counted. Count each of its "
            "batches: data.writeStream.foreachBatch(lambda batch, number: publish(sf.count(batch, …))).start()"
        )
    names = explained(_READ, lambda: native.columns)
    column_list(names, tuple(dict.fromkeys(field.column for field in fields)))
    refuse_others(fields, "a frame of Spark")
    columns = [f"p{names.index(field.column)} AS {field.alias}" for field in fields]
    narrow = explained(_READ, lambda: native.toDF(*(f"p{i}" for i in range(len(names)))).selectExpr(*columns))
    schema = explained(_READ, nw.from_native(narrow).collect_schema)
    check_columns(tuple(fields), schema)
    kinds = {column.name: column.dataType.simpleString() for column in narrow.schema.fields}
    selected = [f"{_as_needed(field, kinds[field.alias])} AS {field.alias}" for field in fields]
    return nw.from_native(explained(_READ, lambda: narrow.selectExpr(*selected)))


def _as_needed(field: Field, kind: str) -> str:
    """SQL for a column of a type of Spark as counting needs it."""
    column = field.alias
    if field.times is not None:
        ticks = marked_sql(
            f"greatest(least({_ticks(column, kind)}, {LATEST}), {EARLIEST})", field.times, zoned=kind == "timestamp"
        )
        return f"CASE WHEN {column} IS NOT NULL THEN {ticks} END"  # greatest and least pass over what is null
    if field.is_number:  # the double nearest to what is written: Spark's own cast of decimals rounds twice
        return (
            f"CAST(CAST({column} AS STRING) AS DOUBLE)" if kind.startswith("decimal") else f"CAST({column} AS DOUBLE)"
        )
    if field.labels is not None and field.labels.kind is not bool:
        return f"CAST({column} AS {'STRING' if field.labels.kind is str else 'BIGINT'})"
    return column


def _ticks(column: str, kind: str) -> str:
    """SQL for microseconds: of an instant, or of what a clock shows, which Spark tells as a span of time alone."""
    if kind == "timestamp":
        return f"unix_micros({column})"
    if kind == "date":
        days = f"greatest(least(unix_date({column}), {LATEST // DAY + 1}), {EARLIEST // DAY - 1})"
        return f"CAST({days} AS BIGINT) * {DAY}"
    return f"CAST(CAST({column} - {_EPOCH} AS DECIMAL(20, 6)) * {SECOND} AS BIGINT)"


def with_positions(frame: Frame, domain: Domain) -> Frame:
    """The frame with the positions of labels in the place of the labels, -1 for one that the axis does not have."""
    import narwhals as nw

    native: Any = frame.to_native()
    names = list(native.columns)
    found = {f"c{i}": axis for i, axis in enumerate(domain.axes) if isinstance(axis, Labels)}
    for name, axis in found.items():
        native = explained(_READ, lambda: _joined(native, name, axis))  # noqa: B023  # it is called at once
    known = (
        f"CASE WHEN {name} IS NOT NULL THEN coalesce(at_{name}, -1D) END AS {name}" if name in found else name
        for name in names
    )
    return nw.from_native(explained(_READ, lambda: native.selectExpr(*known)))


def _joined(native: Any, name: str, axis: Labels) -> Any:
    labels, places = representable(axis.labels, *((-_BIGGEST - 1, _BIGGEST) if axis.kind is int else (None, None)))
    kind = {str: "string", int: "bigint", bool: "boolean"}[axis.kind]
    rows = list(zip(labels, places, strict=True))
    small = native.sparkSession.createDataFrame(rows, f"{name} {kind}, at_{name} double")
    return native.join(small.hint("broadcast"), on=name, how="left")
