"""Files, frames, tables and relations, all seen as one Narwhals frame.

Only the engine that holds the data is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.errors import InvalidInput, SfumatoError

if TYPE_CHECKING:
    import narwhals as nw

    Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]

_Result = TypeVar("_Result")

_KINDS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv"}
_COMPRESSED = (".gz", ".zst")


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


def open_frame(data: Any, database: Database, *, as_text: str | None = None) -> Frame:
    """The data as a Narwhals frame, nothing read yet: files and Arrow streams become a DuckDB relation.

    The column ``as_text`` of CSV files stays the text that it is.
    """
    import narwhals as nw

    if is_files(data):
        return read_files(list(data) if isinstance(data, (list, tuple)) else [data], database, as_text)
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        return frame
    if hasattr(data, "__arrow_c_stream__"):
        import pyarrow as pa

        reader = data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
        return nw.from_native(database.connection.from_arrow(reader))
    raise InvalidInput(
        f"data of type {type(data).__name__} cannot be counted. Give a path to Parquet or CSV files, a pandas, "
        "Polars or PySpark frame, an Arrow table or a DuckDB relation; give a NumPy array to plan.publish(points=…). "
        "Nothing was counted."
    )


def read_files(paths: list[str | Path], database: Database, as_text: str | None = None) -> nw.LazyFrame[Any]:
    """Parquet or CSV files as a DuckDB relation.

    A path may be a directory of Parquet files, a glob pattern or an address.
    """
    import narwhals as nw

    names = [_checked(path) for path in paths]
    kinds = {_kind(name) for name in names}
    if len(kinds) > 1:
        raise InvalidInput(f"data={[str(p) for p in paths]!r} mixes Parquet and CSV. Count them one after the other.")
    (kind,), connection = kinds, database.connection
    texts = {} if as_text is None else {"dtype": {as_text: "VARCHAR"}}
    read = connection.read_parquet if kind == "parquet" else partial(connection.read_csv, **texts)
    return nw.from_native(hushed(f"{', '.join(names)} could not be read as {kind}", lambda: read(names)))


def _checked(path: str | Path) -> str:
    name = str(path)
    if "://" in name or any(character in name for character in "*?["):
        return name
    if not Path(name).exists():
        raise InvalidInput(f"data={name!r} does not exist. Nothing was counted. Check the path.")
    return str(Path(name) / "**" / "*.parquet") if Path(name).is_dir() else name


def _kind(name: str) -> str:
    suffixes = Path(name.split("?")[0] if "://" in name else name).suffixes
    while suffixes and suffixes[-1].lower() in _COMPRESSED:
        suffixes.pop()
    kind = _KINDS.get(suffixes[-1].lower()) if suffixes else None
    if kind is None:
        raise InvalidInput(
            f"data={name!r} has none of the known endings {', '.join(_KINDS)} (also with {', '.join(_COMPRESSED)}). "
            "Nothing was counted. Rename the file, or open it with DuckDB or Polars and give the relation or frame."
        )
    return kind


def hushed(what: str, work: Callable[[], _Result]) -> _Result:
    """The result of ``work``, or a refusal in our own words: engines quote the value that they could not read.

    Only the class of the engine's error is passed on, and the error itself is not kept as a cause or context. What is
    ours, or an interrupt, goes through as it is.
    """
    try:
        return work()
    except (SfumatoError, ImportError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  # engines share no base class below this one
        kind = type(error).__name__
    # Raised outside the handler: inside, Python would keep the engine's error as its context.
    raise InvalidInput(
        f"{what}: the engine stopped with {kind}. Its message may quote a record and is not repeated. Nothing was "
        "counted. Run the same read in the engine itself to see it."
    )
