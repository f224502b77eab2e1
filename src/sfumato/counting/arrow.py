"""Arrow columns under private names, numbers of every Arrow type as doubles and times as microseconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sfumato.counting.columns import Field
from sfumato.counting.ticks import of_arrow


def private_table(table: Any, fields: Sequence[Field], positions: Sequence[int]) -> Any:
    """The columns that counting needs, by position, under private names: a table or a batch, as it came."""
    import pyarrow as pa

    columns = [prepared(table.column(i), field) for field, i in zip(fields, positions, strict=True)]
    return (pa.Table if isinstance(table, pa.Table) else pa.RecordBatch).from_arrays(
        columns, names=[field.alias for field in fields]
    )


def private_reader(reader: Any, fields: Sequence[Field], positions: Sequence[int]) -> Any:
    """The same of a stream, batch by batch."""
    import pyarrow as pa

    empty = private_table(reader.schema.empty_table(), fields, positions)

    def batches() -> Iterator[Any]:
        for batch in reader:
            yield private_table(batch, fields, positions)

    return pa.RecordBatchReader.from_batches(empty.schema, batches())


def prepared(column: Any, field: Field) -> Any:
    """A coordinate as doubles, whatever type of number it is, a time as microseconds; anything else as it is."""
    import pyarrow as pa

    kind = column.type
    if field.times is not None and pa.types.is_temporal(kind):
        return of_arrow(field.times, column)
    if pa.types.is_float16(kind):  # DuckDB does not know it
        column, kind = column.cast(pa.float32()), pa.float32()
    if not field.is_number or pa.types.is_float64(kind):
        return column
    if pa.types.is_decimal(kind):
        # The double nearest to what is written: Arrow's own cast rounds twice.
        return column.cast(pa.string()).cast(pa.float64())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return column.cast(pa.float64(), safe=False)  # safe would refuse whole numbers beyond 2⁵³ for their rounding
    return column
