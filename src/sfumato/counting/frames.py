"""Frames, tables and relations: the columns that counting needs under private names, coordinates as doubles.

**Private names.** Names in the data may differ in case only, hold dots or quotes, or be there twice; engines that fold
case (DuckDB, Spark) would then read one column for another, an entity for a coordinate. Columns are therefore found
here, by comparing names as they are written, and the engine gets names of ours.

**Doubles.** A number of any type becomes the double nearest to it before anything is compared, so every engine compares
the same doubles: decimals and integers of 128 bits by their text, since engines round those twice.

**Times.** A time becomes a whole number of microseconds; see `sfumato.counting.ticks`.

**Only engines that the tests run** are accepted: the same cells are promised, and one engine did not keep that promise
before it was tested (its ``floor`` gave decimals, and edges moved).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato.counting.arrow import private_reader, private_table
from sfumato.counting.columns import Field, check_columns
from sfumato.counting.geometries import crs_in_arrow, crs_in_duckdb, refuse_others
from sfumato.counting.hushing import hushed
from sfumato.counting.spark import is_spark, private_spark
from sfumato.counting.sql import WIDE, as_double, column_list, is_number, quoted
from sfumato.counting.streams import arrow_reader
from sfumato.counting.ticks import check_kind, is_time, of_duckdb, of_polars
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import narwhals as nw

    from sfumato.counting.inputs import Database, Frame

_READ = "The columns of the data could not be read"
_LOW, _HIGH = -(1 << 63), (1 << 63) - 1

_INSTEAD = {
    "MODIN": "data.modin.to_pandas()",
    "CUDF": "data.to_arrow()",
    "SQLFRAME": "data.toPandas()",
}
_TESTED = {"PANDAS", "POLARS", "PYARROW", "DUCKDB", "DASK", "IBIS", "PYSPARK", "PYSPARK_CONNECT"}
IBIS_NATIVE = ("duckdb", "polars")
"""Backends of Ibis whose arithmetic the tests compare; the records of others are brought here as they are."""


def check_engine(frame: Frame) -> None:
    """Refuse an engine that no test compares with the others."""
    name = frame.implementation.name
    if name not in _TESTED:
        line = _INSTEAD.get(name, "data.to_arrow() or data.to_pandas()")
        raise InvalidInput(
            f"data of type {type(frame.to_native()).__name__} is held by an engine ({name.lower()}) that is not tested "
            f"to put every record in the same cell. Nothing was counted. Give {line} instead."
        )


def without_duplicates(data: Any, fields: Sequence[Field]) -> Any:
    """A pandas or Arrow frame without the columns that share a name, or a refusal where one of them is needed."""
    import narwhals as nw
    from narwhals import dependencies

    if isinstance(data, (nw.DataFrame, nw.LazyFrame)):  # names were compared when it was made
        return data
    pandas = dependencies.is_pandas_dataframe(data)
    if not pandas and not dependencies.is_pyarrow_table(data):
        return data
    names = list(data.columns if pandas else data.column_names)
    if len(set(names)) == len(names):
        return data
    column_list([str(name) for name in names], tuple(dict.fromkeys(field.column for field in fields)))
    single = [i for i, name in enumerate(names) if names.count(name) == 1]
    return data.iloc[:, single] if pandas else data.select(single)


def is_native(frame: Frame) -> bool:
    """Whether the expression may run in the frame's own engine."""
    return not frame.implementation.is_ibis() or _backend(frame) in IBIS_NATIVE


def crs_of_frame(frame: Frame, fields: Sequence[Field]) -> dict[str, str]:
    """In which CRS columns of points are, by their private names, where it is not that of their axes."""
    native = frame.to_native()
    if frame.implementation.is_duckdb():
        kinds = dict(zip(native.columns, map(str, native.types), strict=True))
        found = {f.alias: crs_in_duckdb(f, kinds[f.column]) for f in fields if f.column in kinds}
        return {alias: crs for alias, crs in found.items() if crs is not None}
    return crs_in_schema(native.schema, fields) if frame.implementation.is_pyarrow() else {}


def crs_in_schema(schema: Any, fields: Sequence[Field]) -> dict[str, str]:
    """The same of Arrow tables and streams."""
    single = [field for field in fields if schema.names.count(field.column) == 1]
    found = {field.alias: crs_in_arrow(field, schema.field(field.column)) for field in single}
    return {alias: crs for alias, crs in found.items() if crs is not None}


def private_frame(frame: Frame, fields: Sequence[Field], database: Database) -> Frame:
    """The columns that counting needs as a frame of private names, checked.

    Times of engines that have no whole microseconds in common with the others come here first, by Arrow.
    """
    import narwhals as nw

    check_engine(frame)
    engine, native = frame.implementation, frame.to_native()
    if is_spark(frame):
        return private_spark(native, fields)
    needed = tuple(dict.fromkeys(field.column for field in fields))
    if engine.is_duckdb():
        column_list(list(native.columns), needed, folded=True)
        kinds = dict(zip(native.columns, map(str, native.types), strict=True))
        for field in fields:
            if field.times is not None:
                check_kind(field, kinds[field.column])
        plain = [field for field in fields if field.times is None and not field.geometry]
        _checked(plain, frame.collect_schema())
        return private_relation(native, fields)
    if not engine.is_pyarrow():
        refuse_others(fields, f"a frame of {engine.name.lower()}")
    if engine.is_pyarrow() or engine.is_pandas():
        names = list(native.column_names if engine.is_pyarrow() else native.columns)
        column_list(names, needed)
        positions = [names.index(field.column) for field in fields]
        if engine.is_pandas():
            narrow: Any = nw.from_native(native.iloc[:, positions].set_axis([f.alias for f in fields], axis=1))
            check_columns(tuple(fields), hushed(_READ, lambda: narrow.schema))
            native, positions = hushed(_READ, narrow.to_arrow), list(range(len(fields)))
        else:
            kinds = nw.from_native(native.select(list(dict.fromkeys(positions)))).schema
            _checked(fields, kinds)
        return nw.from_native(hushed(_READ, lambda: private_table(native, fields, positions)))
    schema = hushed(_READ, frame.collect_schema)
    exact = engine.is_polars() or engine.is_dask()
    column_list(schema.names(), needed, folded=not exact)
    _checked(fields, schema)
    selected: Frame = hushed(_READ, lambda: frame.select(*(_expression(f, schema[f.column], frame) for f in fields)))
    if engine.is_polars() or not any(field.times for field in fields):
        return selected
    renamed = [replace(field, column=field.alias) for field in fields]
    records: Any = hushed(_READ, lambda: arrow_reader(selected))
    if hasattr(records, "to_reader"):  # a table
        return private_frame(nw.from_native(records), renamed, database)
    return private_stream(records, renamed, database)


def private_stream(reader: Any, fields: Sequence[Field], database: Database) -> Frame:
    """An Arrow stream, read once, as a relation of private names."""
    import narwhals as nw

    names = list(reader.schema.names)
    column_list(names, tuple(dict.fromkeys(field.column for field in fields)))
    positions = [names.index(field.column) for field in fields]
    renamed = reader.schema.empty_table().select(positions).rename_columns([field.alias for field in fields])
    check_columns(tuple(fields), hushed(_READ, lambda: nw.from_native(renamed).schema))
    private = hushed(_READ, lambda: private_reader(reader, fields, positions))
    return nw.from_native(hushed(_READ, lambda: database.connection.from_arrow(private)))


def private_relation(relation: Any, fields: Sequence[Field], keep: Sequence[str] = ()) -> Frame:
    """The columns of a DuckDB relation, found by their names in the data; those to ``keep`` stay as they are."""
    import narwhals as nw

    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    columns = [f"{from_duckdb(f, kinds[f.column], quoted(f.column))} AS {f.alias}" for f in fields]
    return nw.from_native(hushed(_READ, lambda: relation.project(", ".join([*columns, *keep]))))


def from_duckdb(field: Field, kind: str, column: str) -> str:
    """SQL for a column of a DuckDB type as counting needs it."""
    if field.geometry:
        return f"CAST({column} AS BLOB)"
    if field.is_number and is_number(kind):
        return as_double(kind, column)
    if field.times is not None:  # of files they are whole numbers already
        return of_duckdb(field.times, kind, column) if is_time(kind) else column
    if field.axis is not None and kind in WIDE:
        inside = f"{column} BETWEEN {_LOW}::HUGEINT AND {_HIGH}::HUGEINT"
        return f"CASE WHEN {inside} THEN CAST({column} AS BIGINT) WHEN {column} IS NOT NULL THEN {field.stranger} END"
    return f"CAST({column} AS VARCHAR)" if field.axis is not None and kind.startswith("ENUM") else column


def _expression(field: Field, kind: nw.dtypes.DType, frame: Frame) -> nw.Expr:
    import narwhals as nw

    column = nw.col(field.column)
    if field.times is not None:
        polars = frame.implementation.is_polars()
        return (of_polars(field.times, kind, column) if polars else column).alias(field.alias)
    wide = isinstance(kind, (nw.Int128, nw.UInt128))
    if field.is_number:
        written = column.cast(nw.String) if isinstance(kind, nw.Decimal) or wide else column
        column = written.cast(nw.Float64)
    elif wide and field.axis is None:
        column = column.cast(nw.String)
    elif wide:
        inside = (column >= nw.lit(_LOW)) & (column <= nw.lit(_HIGH))
        column = nw.when(inside).then(column).otherwise(nw.lit(field.stranger)).cast(nw.Int64)
        column = nw.when(~nw.col(field.column).is_null()).then(column)
    elif (
        (field.labels is not None and field.labels.kind is str)
        or (field.indices and not kind.is_integer())
        or (field.axis is None and isinstance(kind, (nw.Categorical, nw.Enum)))  # each batch has categories of its own
    ):
        column = column.cast(nw.String)
    return column.alias(field.alias)


def _checked(fields: Sequence[Field], schema: Any) -> None:
    check_columns(tuple(fields), {field.alias: schema[field.column] for field in fields})


def _backend(frame: Frame) -> str:
    name = hushed("The engine of the data could not be asked its name", lambda: frame.to_native().get_backend().name)
    return str(name)
