"""Files, frames, tables and relations, all seen as one Narwhals frame.

Only the engine that holds the data is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.counting.columns import Field, check_columns
from sfumato.counting.hushing import hushed
from sfumato.counting.spark import from_pandas_on_spark
from sfumato.counting.sql import column_list
from sfumato.counting.ticks import of_numpy
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import narwhals as nw

    from sfumato.counting.tables import View

    Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]

_ALIKE = "Give one array a column, of one type and as long as the others."

__all__ = ["Database", "hushed", "is_files", "open_frame", "open_view"]


class Database:
    """The DuckDB of one call: in memory, quiet, apart from the caller's, opened when it is first needed.

    A relation does not keep its connection open in every version of DuckDB, so this object has to outlive it.
    """

    @cached_property
    def connection(self) -> Any:
        """The connection itself."""
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET enable_progress_bar = false")
        return connection

    def close(self) -> None:
        """Give its memory back."""
        if "connection" in self.__dict__:
            self.connection.close()


def is_files(data: Any) -> bool:
    """Whether the data is given by paths."""
    if isinstance(data, (list, tuple)):
        return bool(data) and all(isinstance(path, (str, Path)) for path in data)
    return isinstance(data, (str, Path))


def open_view(data: Any, fields: Sequence[Field], database: Database) -> View:
    """The columns that counting needs under private names, of types that their axes take, nothing counted yet."""
    import narwhals as nw

    from sfumato.counting import frames
    from sfumato.counting.tables import View, view_files

    if is_files(data):
        view = view_files(_paths(data), fields, database)
        names = [replace(field, column=field.alias, geometry=False) for field in fields]
        raw = nw.from_native(view.frame)
        untimed = tuple(field for field in fields if field.times is None)  # times were checked file by file
        check_columns(untimed, hushed("The columns of the data could not be read", raw.collect_schema))
        unreadable = () if not view.unreadable else (view.frame.columns[-1],)
        private = frames.private_relation(view.frame, names, keep=unreadable)
        return View(private, view.unreadable, view.advice, tuple(fields), view.crs)
    data = _arrays(data, fields) if isinstance(data, Mapping) else from_pandas_on_spark(data)
    frame = nw.from_native(frames.without_duplicates(data, fields), pass_through=True)
    if isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        crs = frames.crs_of_frame(frame, fields)
        return View(frames.private_frame(frame, fields, database), fields=tuple(fields), crs=crs)
    reader = _reader(data, [field.column for field in fields])
    crs = frames.crs_in_schema(reader.schema, fields)
    return View(frames.private_stream(reader, fields, database), fields=tuple(fields), crs=crs)


def open_frame(data: Any, database: Database, fields: Sequence[Field] = (), *, as_text: str | None = None) -> Frame:
    """The data as a Narwhals frame with all its columns, nothing read yet, for whoever needs more than counting does.

    ``fields`` says which columns counting will need, so that those of CSV files are read as their axes need them. The
    column ``as_text`` of CSV files stays the text that it is.
    """
    import narwhals as nw

    from sfumato.counting.tables import open_files

    if is_files(data):
        return nw.from_native(open_files(_paths(data), fields, database, as_text))
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        return frame
    return nw.from_native(database.connection.from_arrow(_reader(data)))


def _paths(data: Any) -> list[str | Path]:
    return list(data) if isinstance(data, (list, tuple)) else [data]


def _arrays(data: Mapping[str, Any], fields: Sequence[Field]) -> Any:
    """The needed columns of a mapping from names to arrays, as an Arrow table."""
    import pyarrow as pa

    names = tuple(dict.fromkeys(field.column for field in fields))
    column_list(list(data), names)
    table = hushed("The arrays could not be read", lambda: {name: of_numpy(name, data[name]) for name in names}, _ALIKE)
    return hushed("The arrays could not be put side by side", lambda: pa.table(table), _ALIKE)


def _reader(data: Any, needed: Sequence[str] = ()) -> Any:
    """The records as an Arrow stream, of a dataset the needed columns only, where it has each of them once."""
    if type(data).__module__ == "pyarrow._dataset":
        if hasattr(data, "scanner"):
            once = all(data.schema.names.count(name) == 1 for name in needed)
            data = data.scanner(columns=list(dict.fromkeys(needed)) if needed and once else None)
        if hasattr(data, "to_reader"):
            return data.to_reader()
    if not hasattr(data, "__arrow_c_stream__"):
        raise InvalidInput(
            f"data of type {type(data).__name__} cannot be counted. Give a path to Parquet or CSV files, a pandas, "
            "Polars or PySpark frame, an Arrow table, a DuckDB relation or a dict of arrays; give a NumPy array to "
            "plan.publish(points=…). Nothing was counted."
        )
    import pyarrow as pa

    return data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
