"""One number, one cell: of every type, on every engine and on both paths, also where engines round it in other ways."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.counting import count
from sfumato.domain import Categories, Domain, Labels, Line
from sfumato.errors import InvalidInput

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis.*")


def ibis_duckdb(table: pa.Table) -> Any:
    connection = pytest.importorskip("ibis").duckdb.connect()
    connection.con.register("arrow", table)
    connection.con.execute("CREATE TABLE records AS FROM arrow")
    return connection.table("records")


def dask(table: pa.Table) -> Any:
    frame = pytest.importorskip("dask.dataframe")
    return frame.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=2)


FAST: dict[str, Callable[[pa.Table], Any]] = {
    "pandas-arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars-lazy": lambda table: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "arrow": lambda table: table,
    "duckdb": duckdb.from_arrow,
}
ENGINES = FAST | {
    "ibis-duckdb": ibis_duckdb,
    "ibis-polars": lambda table: pytest.importorskip("ibis").polars.connect().create_table("records", table),
    "dask": dask,
}
DECIMALS = Line(0, 1, cells=997)


def cells(line: Domain, values: Any) -> list[int]:
    """The counts by comparison with the edges: the definition."""
    doubles = np.array([float(value) for value in values])
    return np.bincount(line.locate(doubles), minlength=line.size).tolist()


def decimals() -> list[Decimal]:
    rng = np.random.default_rng(7)
    edges = [Decimal(float(edge)).quantize(Decimal(10) ** -20) for edge in DECIMALS.intervals[0].edges]
    return [Decimal(int(n)) / 10**6 for n in rng.integers(0, 10**6, 1000)] + edges


CASES: dict[str, tuple[Line, pa.Array]] = {
    "decimals at the edges": (DECIMALS, pa.array(decimals(), pa.decimal128(30, 20))),
    "whole numbers beyond 2^53": (
        Line(-(2.0**63), 2.0**63, cells=64),
        pa.array([2**53 + 1, 2**53 + 3, 2**62 + 1, -(2**53) - 1, 2**60 + 129, -(2**63), 2**63 - 1], pa.int64()),
    ),
    "whole numbers beyond 2^63": (
        Line(0, 2.0**64, cells=64),
        pa.array([2**63 + 1, 2**64 - 1, 2**64 - 2048, 2**64 - 1025, 5], pa.uint64()),
    ),
    "small whole numbers": (Line(-128, 127, cells=255), pa.array([-128, 127, 127, 0, 5, -1], pa.int8())),
    "small unsigned numbers": (Line(-1, 256, cells=257), pa.array([0, 255, 128, 127], pa.uint8())),
    "single precision at double edges": (
        Line(0, 1, cells=10),
        pa.array(np.array([0.1, 0.2, 0.3, 0.7, 1.0, -0.0, 0.6, 0.9, np.inf, -np.inf], np.float32)),
    ),
}


@pytest.mark.parametrize("engine", [None, "numpy", "native"])
@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_number_of_any_type_is_the_double_nearest_to_it(case: Any, make: Any, engine: Any) -> None:
    line, values = case
    counts = count(make(pa.table({"x": values})), line, engine=engine)
    assert counts.values.tolist() == cells(line, values.to_pylist())


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("kind", ["HUGEINT", "UHUGEINT", "DECIMAL(38, 10)", "DECIMAL(18, 3)"])
def test_wide_numbers_of_duckdb_are_rounded_once(kind: str, engine: Any) -> None:
    """2**64 + 2**24 is an edge, and what lies a hair above the middle between it and the double below belongs to it."""
    if "HUGE" in kind:
        values = [2**64 + 2**24 - 2**11 + 1, 2**64 + 2**24 - 2**11 - 1, 2**70 + 2**17 + 1, 7]
        line = Line(2.0**64, 2.0**64 + 2.0**30, cells=2**6)
    else:
        values, line = [Decimal("0.1"), Decimal("0.7"), Decimal("123456.789")], Line(0, 1, cells=10)
    rows = ", ".join(f"('{value}'::{kind})" for value in values)
    relation = duckdb.sql(f"SELECT * FROM (VALUES {rows}) t(x)")
    assert count(relation, line, engine=engine).values.tolist() == cells(line, values)


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_half_precision_is_located(engine: Any) -> None:
    line, values = Line(0, 1, cells=10), np.array([0.1, 0.2, 0.3, 0.7, 1.0], np.float16)
    table = pa.table({"x": pa.array(values)})
    expected = cells(line, values)
    assert count(table, line, engine=engine).values.tolist() == expected
    assert count(table.to_reader(), line, engine=engine).values.tolist() == expected
    assert count(pd.DataFrame({"x": values}), line, engine=engine).values.tolist() == expected


LABELS: dict[str, tuple[Labels, pa.Array, list[int]]] = {
    "labels beyond the column's type": (
        Labels("k", (1, 2, 300, -1, 2**70), other=300),
        pa.array([1, 2, 2, 200, None], pa.uint8()),
        [1, 2, 1, 0, 0],
    ),
    "no label that the column can hold": (
        Labels("k", (-1, 300), other=300),
        pa.array([1, 2, 2, 200, None], pa.uint8()),
        [0, 4],
    ),
    "whole numbers that doubles cannot hold": (
        Labels("k", (2**53, 2**53 + 1, 0), other=0),
        pa.array([2**53, 2**53 + 1, 2**53 + 2], pa.int64()),
        [1, 1, 1],
    ),
    "big unsigned numbers": (
        Labels("k", (2**64 - 1, 2**63, 0), other=0),
        pa.array([2**64 - 1, 2**63, 2**64 - 2], pa.uint64()),
        [1, 1, 1],
    ),
    "a dictionary with a null": (
        Labels("k", ("a", "b"), other="b"),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, None, 2]), pa.array(["a", None, "z"])),
        [1, 1],
    ),
    "words that differ in case": (
        Labels("k", ("ß", "SS", "ss", "o"), other="o"),
        pa.array(["ß", "SS", None, "İ"]),
        [1, 1, 0, 1],
    ),
    "truth values": (Labels("k", (True, False)), pa.array([True, False, None]), [1, 1]),
}


@pytest.mark.parametrize("engine", [None, "numpy", "native"])
@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("case", LABELS.values(), ids=LABELS)
def test_labels_of_any_type_are_found(case: Any, make: Any, engine: Any) -> None:
    axis, values, expected = case
    counts = count(make(pa.table({"k": values})), Domain((axis,)), engine=engine)
    assert counts.values.tolist() == expected
    assert counts.report.without_coordinates == len(values) - sum(expected)


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_wide_labels_of_duckdb_are_found(engine: Any) -> None:
    relation = duckdb.sql("SELECT * FROM (VALUES (1::HUGEINT), (1::HUGEINT << 70), (-1), (NULL)) t(category)")
    assert count(relation, Categories([0, 1, -1], other=0), engine=engine).values.tolist() == [1, 1, 1]
    with pytest.raises(InvalidInput, match="some values are not among its labels"):
        count(relation, Categories([0, 1, -1]), engine=engine)


REFUSED: dict[str, Any] = {
    "negative durations": pa.array([-1, 1], pa.duration("ns")),
    "times with a zone": pa.array([0, 1], pa.timestamp("us", "Europe/Berlin")),
    "times of day": pa.array([0, 1], pa.time64("ns")),
    "nothing but nulls": pa.nulls(2),
    "numbers as text": pa.array(["1", "2"]),
    "truth values": pa.array([True, False]),
}


@pytest.mark.parametrize("make", FAST.values(), ids=FAST)
@pytest.mark.parametrize("values", REFUSED.values(), ids=REFUSED)
def test_what_is_no_number_is_refused_on_every_path(values: pa.Array, make: Any) -> None:
    said = set()
    for engine in (None, "numpy", "native"):
        try:
            assert count(make(pa.table({"x": values})), Line(0, 1, cells=2), engine=engine).values.sum() == 0
            said.add("counted")  # DuckDB has a type for a column of nulls: it has no records
        except InvalidInput as refusal:
            said.add(str(refusal))
    assert len(said) == 1
    assert "counted" in said or "and axis 'x' needs numbers. Nothing was counted." in said.pop()


@pytest.mark.parametrize("kind", [pa.duration("ns"), pa.time64("ns")])
def test_times_that_duckdb_cuts_name_no_entity(kind: pa.DataType) -> None:
    """One nanosecond apart, two entities would share a place."""
    table = pa.table({"x": [0.5, 0.5], "who": pa.array([1, 2], kind)})
    with pytest.raises(InvalidInput, match="by which an entity cannot be told from another one reliably"):
        count(table, Line(0, 1, cells=2), entity="who", max_per_entity=1)


def test_instants_a_nanosecond_apart_are_two_entities() -> None:
    for zone in (None, "Europe/Berlin"):
        table = pa.table({"x": [0.5, 0.5], "who": pa.array([1_000, 2_000], pa.timestamp("ns", zone))})
        assert count(table, Line(0, 1, cells=2), entity="who", max_per_entity=1).values.sum() == 2


@pytest.mark.slow  # every engine
@settings(max_examples=25, deadline=None)
@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.integers(1, 300),
    st.lists(st.one_of(st.floats(allow_nan=False), st.integers(0, 300).map(float)), max_size=20),
)
def test_every_engine_gives_one_cell_for_one_double(low: float, width: float, n: int, more: list[float]) -> None:
    line = Line(low, low + width, cells=n)
    edges: NDArray[np.float64] = line.intervals[0].edges
    values = np.concatenate(
        [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), np.round(edges, 2), more]
    )
    table = pa.table({"x": values})
    expected = cells(line, values)
    for make in FAST.values():
        for engine in ("numpy", "native"):
            assert count(make(table), line, engine=engine).values.tolist() == expected  # type: ignore[arg-type]
