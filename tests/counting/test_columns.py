"""Columns are found by their names as they are written, on every engine: an entity is never another column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.counting import count
from sfumato.counting.inputs import Database, open_frame
from sfumato.domain import Grid, Line
from sfumato.errors import InvalidInput

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis.*")
LINE = Line(0, 1000, cells=1000)
Make = Callable[[pa.Table, Path], Any]


def parquet(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "records.parquet")
    return folder / "records.parquet"


def csv(table: pa.Table, folder: Path) -> Path:
    names = ['"' + name.replace('"', '""') + '"' for name in table.column_names]
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    (folder / "records.csv").write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return folder / "records.csv"


EXACT: dict[str, Make] = {
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "polars-lazy": lambda table, _: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "arrow": lambda table, _: table,
    "reader": lambda table, _: table.to_reader(max_chunksize=100),
    "parquet": parquet,
    "csv": csv,
    "dask": lambda table, _: pytest.importorskip("dask.dataframe").from_pandas(table.to_pandas(), npartitions=2),
}
FOLDING: dict[str, Make] = {
    "duckdb": lambda table, _: duckdb.sql('SELECT 0.5 AS x, 1 AS "X", 2 AS who'),
    "ibis": lambda table, _: pytest.importorskip("ibis").memtable(table.to_pandas(), columns=table.column_names),
}


@pytest.mark.parametrize("make", EXACT.values(), ids=EXACT)
def test_names_that_differ_in_case_only_are_two_columns(make: Make, tmp_path: Path) -> None:
    """All 1,000 records are one person's: with the coordinate taken for the person, all would stay."""
    table = pa.table({"x": np.arange(1000) + 0.5, "X": np.full(1000, 7)})
    assert count(make(table, tmp_path), LINE, x="x", entity="X", max_per_entity=1).values.sum() == 1
    assert count(make(table, tmp_path), LINE, x="X", entity="x", max_per_entity=1).values[7] == 1000


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("make", [make for name, make in EXACT.items() if name != "reader"])
def test_twins_feed_two_axes_on_every_path(make: Make, engine: Any, tmp_path: Path) -> None:
    table = pa.table({"x": [0.5, 0.5], "X": [1.5, 1.5]})
    grid = Grid((0, 0, 2, 2), (2, 2))
    assert count(make(table, tmp_path), grid, x="x", y="X", engine=engine).values.tolist() == [[0, 2], [0, 0]]
    assert count(make(table, tmp_path), grid, x="X", y="x", engine=engine).values.tolist() == [[0, 0], [2, 0]]


@pytest.mark.parametrize("make", FOLDING.values(), ids=FOLDING)
def test_engines_that_fold_case_are_refused_columns_that_differ_in_case_only(make: Make, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        count(make(pa.table({"x": [0.5], "X": [1]}), tmp_path), LINE, x="x", entity="X", max_per_entity=1)
    assert str(refusal.value) == (
        "The data has 2 columns whose names differ from 'x' in case at most, which its engine does not tell apart. "
        "Nothing was counted. Rename all but one of them."
    )


NAMES = [
    "geo.lon",
    "a b",
    'a "b"; --',
    "a 'b'; --",
    "`x`",
    "ß",
    "straße",
    "İ",
    "c0",
    "entity",
    "key",
    "k1",
    "unreadable",
]


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("make", [make for name, make in EXACT.items() if name != "reader"])
@pytest.mark.parametrize("name", NAMES)
def test_names_need_not_be_polite(make: Make, name: str, engine: Any, tmp_path: Path) -> None:
    table = pa.table({"other": [7.0], name: [0.5], "c1": [1.5]})
    counts = count(make(table, tmp_path), Grid((0, 0, 2, 2), (2, 2)), x=name, y="c1", engine=engine)
    assert counts.values.tolist() == [[0, 1], [0, 0]]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_a_relation_need_not_be_polite(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    for engine in ("numpy", "native"):
        relation = duckdb.sql(f"SELECT 7.0 AS other, 0.5 AS {quoted}, 1.5 AS c1")
        counts = count(relation, Grid((0, 0, 2, 2), (2, 2)), x=name, y="c1", engine=engine)  # type: ignore[arg-type]
        assert counts.values.tolist() == [[0, 1], [0, 0]]


@pytest.mark.parametrize("make", EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("twins", [("ß", "SS"), ("İ", "i̇"), ("K", "\N{KELVIN SIGN}"), ("ς", "σ")])
def test_twins_beyond_ascii_are_two_columns(make: Make, twins: tuple[str, str], tmp_path: Path) -> None:
    one, other = twins
    table = pa.table({one: np.arange(100) + 0.5, other: np.full(100, 7)})
    assert count(make(table, tmp_path), LINE, x=one, entity=other, max_per_entity=1).values.sum() == 1


@pytest.mark.parametrize("entity", [None, "who"])
def test_one_column_may_serve_twice(entity: str | None, tmp_path: Path) -> None:
    table = pa.table({"who": [0.5, 0.5, 1.5]})
    for make in EXACT.values():
        grid = Grid((0, 0, 2, 2), (2, 2))
        limit = None if entity is None else 1
        counts = count(make(table, tmp_path), grid, x="who", y="who", entity=entity, max_per_entity=limit)
        assert counts.values.tolist() == [[2 if entity is None else 1, 0], [0, 1]]


def duplicated_parquet(folder: Path) -> Path:
    pq.write_table(duplicated(), folder / "records.parquet")
    return folder / "records.parquet"


def duplicated_csv(folder: Path) -> Path:
    (folder / "records.csv").write_text("x,x,y\n0.5,1.5,0.5\n")
    return folder / "records.csv"


def duplicated() -> pa.Table:
    return pa.Table.from_arrays([pa.array([0.5]), pa.array([1.5]), pa.array([0.5])], names=["x", "x", "y"])


TWICE: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda _: pd.DataFrame([[0.5, 1.5, 0.5]], columns=["x", "x", "y"]),
    "arrow": lambda _: duplicated(),
    "reader": lambda _: duplicated().to_reader(),
    "parquet": duplicated_parquet,
    "csv": duplicated_csv,
}


@pytest.mark.parametrize("make", TWICE.values(), ids=TWICE)
def test_a_name_that_is_there_twice_is_refused(make: Callable[[Path], Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"has 2 columns named 'x'\. Nothing was counted\. Rename all but one"):
        count(make(tmp_path), Grid((0, 0, 2, 2), (2, 2)))
    assert count(make(tmp_path), Line(0, 2, cells=2), x="y").values.tolist() == [1, 0]  # twins that nobody needs


def test_a_name_in_another_case_is_not_taken() -> None:
    with pytest.raises(InvalidInput) as refusal:
        count(pd.DataFrame({"X": [0.5]}), LINE)
    assert str(refusal.value) == (
        "The data has no column 'x'. Nothing was counted. A name differs from 'x' in case only: names are taken as "
        "they are written. Name the columns with x=, y=, z= or columns={axis: column}, and the entity's with entity=."
    )


def test_a_frame_of_all_columns_leaves_twins_out(tmp_path: Path) -> None:
    """Streams cut their steps by a further column: DuckDB sees the names, and would take one twin for the other."""
    table = pa.table({"t": [1], "x": [0.5], "X": [7]})
    for make in (parquet, csv):
        database = Database()
        assert open_frame(make(table, tmp_path), database).columns == ["t"]
        database.close()


def test_engines_that_no_test_compares_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.counting import frames

    monkeypatch.setattr(frames, "_TESTED", {"DUCKDB"})
    with pytest.raises(InvalidInput) as refusal:
        count(pd.DataFrame({"x": [0.5]}), LINE)
    assert str(refusal.value) == (
        "data of type DataFrame is held by an engine (pandas) that is not tested to put every record in the same cell. "
        "Nothing was counted. Give data.to_arrow() or data.to_pandas() instead."
    )


def test_backends_that_are_not_compared_run_no_expression() -> None:
    ibis = pytest.importorskip("ibis")
    table = ibis.sqlite.connect().create_table("t", pd.DataFrame({"x": [0.5]}))
    assert count(table, LINE).values.sum() == 1
    with pytest.raises(InvalidInput) as refusal:
        count(table, LINE, engine="native")
    assert str(refusal.value) == (
        "engine='native' on Ibis is for DuckDB and Polars: how other backends calculate is not tested. Nothing was "
        "counted. Leave engine= out: the needed columns are then brought here, batch by batch."
    )


@pytest.mark.parametrize("other", [0, None, ("who", "id"), np.nan])
def test_names_in_pandas_need_not_be_text(other: Any) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], other: [0.5, 0.5]})
    assert count(frame, LINE, x="x").values.sum() == 2
    for missing in ("y", 7):
        with pytest.raises(InvalidInput, match=f"no column {missing!r}"):
            count(frame, LINE, x=missing)  # type: ignore[arg-type]


def test_names_of_two_levels_are_no_columns() -> None:
    frame = pd.DataFrame(np.ones((2, 2)), columns=pd.MultiIndex.from_tuples([("x", "a"), ("who", "b")]))
    with pytest.raises(InvalidInput, match="no column 'x'"):
        count(frame, LINE, x="x")
