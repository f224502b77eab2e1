"""The engines that promise the same cells and the same choice: one line each, and every test of `test_same_cell.py`
runs on it.

An engine is a function from an Arrow table (and an empty folder) to what is handed to `sf.count`. ``lacks`` says what
the engine cannot hold: "decimals", "unsigned" (whole numbers of 64 bits without a sign), "zones" (times with a zone),
"nan" (NaN apart from null), "odd names" and "twins" (names that differ in case only).
"""

from __future__ import annotations

import atexit
import importlib.util
import itertools
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from spark_cluster import ON_SPARK, on_spark, shared

_names = itertools.count()


@dataclass(frozen=True)
class Engine:
    """How a table gets onto an engine, and what does not fit there."""

    make: Callable[[pa.Table, Path], Any]
    lacks: frozenset[str] = frozenset()
    marks: tuple[pytest.MarkDecorator, ...] = ()


class Capsule:
    """An object that only speaks the Arrow stream protocol."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.to_reader(max_chunksize=100).__arrow_c_stream__(requested_schema)


def parquet(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "records.parquet", row_group_size=500)
    return folder / "records.parquet"


def in_duckdb(table: pa.Table, _: Path) -> Any:
    connection = duckdb.connect()
    connection.register("arrow", table)
    connection.execute("CREATE TABLE records AS FROM arrow")
    return connection.table("records")


def ibis_duckdb(table: pa.Table, _: Path) -> Any:
    connection = pytest.importorskip("ibis").duckdb.connect()
    connection.con.register("arrow", table)
    connection.con.execute("CREATE TABLE records AS FROM arrow")
    return connection.table("records")


def ibis_polars(table: pa.Table, _: Path) -> Any:
    return pytest.importorskip("ibis").polars.connect().create_table("records", table)


def ibis_sqlite(table: pa.Table, folder: Path) -> Any:
    ibis = pytest.importorskip("ibis")
    kinds = {pa.float64(): "REAL", pa.string(): "TEXT", pa.timestamp("us"): "TIMESTAMP"}
    with closing(sqlite3.connect(folder / "records.sqlite")) as connection, connection:
        columns = ", ".join(f"{quoted(field.name)} {kinds.get(field.type, 'INTEGER')}" for field in table.schema)
        connection.execute(f"CREATE TABLE records ({columns})")
        rows = [[str(v) if hasattr(v, "isoformat") else v for v in row.values()] for row in table.to_pylist()]
        connection.executemany(f"INSERT INTO records VALUES ({', '.join('?' * table.num_columns)})", rows)
    return ibis.sqlite.connect(folder / "records.sqlite").table("records")


def ibis_postgres(table: pa.Table, _: Path) -> Any:
    """On the server that the tests of the ledger start."""
    ibis = pytest.importorskip("ibis")
    return postgres().create_table(f"records{next(_names)}", ibis.memtable(table), temp=True)


@lru_cache(maxsize=1)
def postgres() -> Any:
    """One connection for all tests, or a skip."""
    server = postgres_server().shared()
    connection = pytest.importorskip("ibis").postgres.connect(
        host=str(server.folder), user="postgres", database="postgres"
    )
    atexit.register(connection.disconnect)  # before the server goes
    return connection


def postgres_server() -> Any:
    """The module of the tests of the ledger."""
    if "postgres_server" not in sys.modules:
        place = Path(__file__).parent.parent / "ledger" / "postgres_server.py"
        spec = importlib.util.spec_from_file_location("postgres_server", place)
        assert spec is not None
        assert spec.loader is not None
        sys.modules["postgres_server"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["postgres_server"])
    return sys.modules["postgres_server"]


def dask(table: pa.Table, _: Path) -> Any:
    frame = pytest.importorskip("dask.dataframe")
    return frame.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3)


def spark(table: pa.Table, folder: Path) -> Any:
    """On a real cluster, in three parts."""
    return on_spark(table, folder, shared())


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


FOLDS = frozenset({"twins"})
ENGINES: dict[str, Engine] = {
    "pandas": Engine(lambda table, _: table.to_pandas(), frozenset({"decimals"})),
    "pandas-arrow": Engine(lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype)),
    "polars": Engine(lambda table, _: pl.from_arrow(table)),
    "polars-lazy": Engine(lambda table, _: pl.from_arrow(table).lazy()),  # type: ignore[union-attr]
    "arrow": Engine(lambda table, _: table),
    "arrow-reader": Engine(lambda table, _: table.to_reader(max_chunksize=100)),
    "arrow-dataset": Engine(lambda table, _: pyarrow.dataset.dataset(table)),
    "arrow-scanner": Engine(lambda table, _: pyarrow.dataset.dataset(table).scanner()),
    "arrow-capsule": Engine(lambda table, _: Capsule(table)),
    "duckdb": Engine(in_duckdb, FOLDS),
    "parquet": Engine(parquet),
    "ibis-duckdb": Engine(ibis_duckdb, FOLDS),
    "ibis-polars": Engine(ibis_polars, FOLDS),
    "ibis-sqlite": Engine(ibis_sqlite, FOLDS | {"decimals", "unsigned", "zones", "nan"}),
    "ibis-postgres": Engine(ibis_postgres, FOLDS | {"unsigned"}),
    "dask": Engine(dask),
    "spark": Engine(spark, frozenset({"unsigned"}), ON_SPARK),
}
