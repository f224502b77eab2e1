"""The records of a lazy frame as a stream of Arrow batches, a few at a time: no frame is held here whole.

Polars runs its streaming engine, Dask computes a few partitions at once, Ibis asks its backend for batches (of Polars
itself, which it would collect). What has no stream of its own is collected, the needed columns only: Polars before
1.34, SQLite, whose rows Ibis fetches at once, and Spark where counting brings records here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.counting.inputs import Frame

ROWS = 1 << 17
_AT_ONCE = 4
"""Partitions of Dask that are computed together at most."""


def arrow_reader(frame: Frame) -> Any:
    """The records of a lazy frame as an Arrow stream, or as a table where its engine has none."""
    engine, native = frame.implementation, frame.to_native()
    if engine.is_ibis():
        return _of_ibis(native)
    if engine.is_dask():
        return _of_dask(native)
    if engine.is_polars() and hasattr(native, "collect_batches"):
        return _of_polars(native)
    collected: Any = frame
    return collected.collect("pyarrow").to_arrow()


def duckdb_reader(relation: Any) -> Any:
    """The rows of a DuckDB relation, which renamed the method in 1.4."""
    return (getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader)(ROWS)


def _of_ibis(table: Any) -> Any:
    backend = table.get_backend()
    if backend.name == "polars":
        return _of_polars(table.compile())
    if backend.name == "duckdb":  # Ibis asks for its batches by a method that DuckDB 2 does not have
        backend._run_pre_execute_hooks(table)  # tables in memory get their names
        return duckdb_reader(backend.con.sql(backend.compile(table)))
    return table.to_pyarrow_batches(chunk_size=ROWS)


def _of_polars(frame: Any) -> Any:
    import polars as pl
    import pyarrow as pa

    def batches() -> Iterator[Any]:
        for chunk in frame.collect_batches(chunk_size=ROWS, maintain_order=False, engine="streaming"):
            yield from chunk.to_arrow().to_batches()

    return pa.RecordBatchReader.from_batches(pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema, batches())


def _of_dask(frame: Any) -> Any:
    import pyarrow as pa

    # Types come from the kinds of columns and not from values: a part may have nothing but nulls.
    schema = pa.Schema.from_pandas(frame._meta_nonempty, preserve_index=False)
    together = min(_AT_ONCE, os.cpu_count() or 1)

    def batches() -> Iterator[Any]:
        for start in range(0, frame.npartitions, together):
            part = frame.partitions[start : start + together].compute()
            yield from pa.Table.from_pandas(part, schema=schema, preserve_index=False).to_batches(ROWS)

    return pa.RecordBatchReader.from_batches(schema, batches())
