"""Every engine gives the same counts, record for record, on doubles chosen to break them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from counting_engines import Capsule, dask, ibis_duckdb, ibis_polars, ibis_sqlite
from numpy.typing import NDArray

from sfumato.counting import CountReport, count, count_points
from sfumato.domain import Categories, Domain, Grid, Interval, Labels, Line

GRID = Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(60, 45))

# Ibis calls what DuckDB and pandas will drop one day; that is between them.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis.*")

Make = Callable[[pa.Table, Path], Any]


def parquet(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "records.parquet", row_group_size=1000)
    return folder / "records.parquet"


def two_files(table: pa.Table, folder: Path) -> list[str]:
    half = len(table) // 2
    pq.write_table(table[:half], folder / "a.parquet")
    pq.write_table(table[half:], folder / "b.parquet")
    return [str(folder / "a.parquet"), str(folder / "b.parquet")]


def directory(table: pa.Table, folder: Path) -> Path:
    two_files(table, folder)
    return folder


def csv(table: pa.Table, folder: Path) -> str:
    # Python writes the shortest decimals that read back as the same double.
    lines = [",".join("" if v is None else repr(v).strip("'") for v in row.values()) for row in table.to_pylist()]
    (folder / "records.csv").write_text("\n".join([",".join(table.column_names), *lines]) + "\n")
    return str(folder / "records.csv")


DATA: dict[str, Make] = {
    "pandas": lambda table, _: table.to_pandas(),
    "pandas-arrow": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, _: pl.from_arrow(table),
    "polars-lazy": lambda table, _: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "arrow": lambda table, _: table,
    "duckdb": lambda table, _: duckdb.from_arrow(table),
    "parquet": parquet,
    "glob": lambda table, folder: str(folder / "*.parquet") if two_files(table, folder) else None,
    "list": two_files,
    "directory": directory,
    "csv": csv,
    "ibis-duckdb": ibis_duckdb,
    "ibis-polars": ibis_polars,
    "ibis-sqlite": ibis_sqlite,
    "dask": dask,
}
EXPRESSIONS = ("pandas", "polars-lazy", "arrow", "duckdb", "ibis-duckdb", "ibis-polars", "dask")
STREAMS: dict[str, Make] = {
    "reader": lambda table, _: table.to_reader(max_chunksize=500),
    "capsule": lambda table, _: Capsule(table),
}


def adversarial(axis: Interval) -> NDArray[np.float64]:
    near = [np.nextafter(axis.edges, direction) for direction in (-np.inf, np.inf)]
    return np.concatenate([axis.edges, *near, [np.inf, -np.inf, 0.0, 1e300, -1e300]])


def skip_native(make: Make, engine: str | None) -> None:
    if make is ibis_sqlite and engine == "native":
        pytest.skip("refused: see test_backends_that_are_not_compared_run_no_expression")


def points(domain: Domain) -> NDArray[np.float64]:
    """Edges, their neighbours, infinities and rounded numbers of every axis, in a fixed order that mixes them."""
    rng = np.random.default_rng(5)
    columns = []
    for axis in domain.intervals:
        rounded = [np.round(rng.uniform(axis.low, axis.high, 2000), places) for places in (1, 2, 3)]
        columns.append(rng.choice(np.concatenate([adversarial(axis), *rounded, -0.0 * np.ones(1)]), 4000))
    return np.column_stack(columns)


@pytest.mark.slow  # every engine, twice
@pytest.mark.parametrize("engine", [None, "numpy", "native"])
@pytest.mark.parametrize("make", DATA.values(), ids=DATA)
def test_every_engine_puts_every_double_in_the_same_cell(make: Make, engine: Any, tmp_path: Path) -> None:
    where = points(GRID)
    table = pa.table({"lon": where[:, 0], "lat": where[:, 1], "note": pa.array(["n"] * len(where))})
    skip_native(make, engine)
    counts = count(make(table, tmp_path), GRID, x="lon", y="lat", engine=engine)
    assert (counts.values == count_points(where, GRID).values).all()
    low, high = np.array(GRID.bounds[:2]), np.array(GRID.bounds[2:])
    outside = int(((where < low) | (where > high)).any(axis=1).sum())
    unreadable = 0 if make is csv else None
    assert counts.report == CountReport(rows=4000, without_coordinates=0, unreadable=unreadable, outside=outside)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1e-3, 1e-3), (1e6, 1e6 + 1), (-1e300, 1e300), (0.1, 0.7)])
@pytest.mark.parametrize("make", [DATA[name] for name in EXPRESSIONS])
def test_the_expression_agrees_with_the_edges_wherever_the_axis_lies(make: Make, bounds: tuple[float, float]) -> None:
    for cells in (1, 3, 7, 1000):
        line = Line(*bounds, cells=cells)
        values = adversarial(line.intervals[0])
        counts = count(make(pa.table({"x": values}), Path()), line, engine="native")
        edges = line.intervals[0].edges
        cell = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, cells - 1)
        assert (counts.values == np.bincount(cell, minlength=cells)).all()


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("make", DATA.values(), ids=DATA)
def test_null_and_nan_coordinates_are_no_records(make: Make, engine: Any, tmp_path: Path) -> None:
    table = pa.table(
        {
            "x": pa.array([0.5, None, float("nan"), 1.5, float("inf"), None]),
            "y": pa.array([0.5, 0.5, 0.5, None, -7.5, None]),
        }
    )
    grid = Grid(bounds=(0, 0, 2, 2), shape=(2, 2))
    skip_native(make, engine)
    counts = count(make(table, tmp_path), grid, engine=engine)
    assert counts.values.tolist() == [[1, 0], [1, 0]]
    unreadable = 0 if make is csv else None
    assert counts.report == CountReport(rows=6, without_coordinates=4, unreadable=unreadable, outside=1)


@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("entity", [None, "who"])
def test_arrow_streams_are_read_once(make: Make, entity: str | None) -> None:
    where = points(GRID)
    table = pa.table({"x": where[:, 0], "y": where[:, 1], "who": np.arange(len(where))})
    limit = None if entity is None else 1
    counts = count(make(table, Path()), GRID, entity=entity, max_per_entity=limit)
    assert (counts.values == count_points(where, GRID).values).all()


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("make", DATA.values(), ids=DATA)
def test_labels_are_counted_alike(make: Make, engine: Any, tmp_path: Path) -> None:
    table = pa.table(
        {
            "age": pa.array(["old", "young", None, "unheard of", "old", "old"]),
            "hour": pa.array([1, 23, 5, 7, None, 24], pa.int64()),
            "day": pa.array([1, 2, 3, 1, 2, 3], pa.int32()),
        }
    )
    domain = Domain(
        (
            Interval("hour", 0, 24, 2),
            Labels("age", ("young", "old", "other"), other="other"),
            Labels("day", (3, 2, 1)),
        )
    )
    skip_native(make, engine)
    counts = count(make(table, tmp_path), domain, engine=engine)
    expected = np.zeros((2, 3, 3), np.int64)
    for hour, age, day in ((0, 1, 2), (1, 0, 1), (0, 2, 2), (1, 1, 0)):
        expected[hour, age, day] += 1
    assert (counts.values == expected).all()
    unreadable = 0 if make is csv else None
    assert counts.report == CountReport(rows=6, without_coordinates=2, unreadable=unreadable, outside=1)


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("make", [DATA[name] for name in ("pandas", "polars", "arrow", "duckdb", "dask")])
def test_truth_values_and_categoricals_are_labels(make: Make, engine: Any) -> None:
    table = pa.table({"flag": [True, False, True], "kind": pa.array(["a", "b", "a"]).dictionary_encode()})
    assert count(make(table, Path()), Categories([False, True], name="flag"), engine=engine).values.tolist() == [1, 2]
    assert count(make(table, Path()), Categories(["a", "b"], name="kind"), engine=engine).values.tolist() == [2, 1]


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(5, 2)])
@pytest.mark.parametrize("make", [DATA[name] for name in ("polars", "arrow", "duckdb", "parquet")])
def test_numbers_of_every_type_are_located(make: Make, kind: pa.DataType, engine: Any, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([0.0, 1.0, 2.0, 3.0, 4.0]).cast(kind)})
    assert count(make(table, tmp_path), Line(0, 4, cells=4), engine=engine).values.tolist() == [1, 1, 1, 2]


# Older versions of DuckDB take no quotes in the names of an expression, which is what "native" builds.
@pytest.mark.parametrize(("engine", "name"), [("numpy", 'a "b"; --'), ("native", "a 'b'; --")])
def test_column_names_need_not_be_polite(engine: Any, name: str, tmp_path: Path) -> None:
    table = pa.table({name: [0.5], "key": [1.5], "v0": [7.0]})
    counts = count(parquet(table, tmp_path), Grid((0, 0, 2, 2), (2, 2)), x=name, y="key", engine=engine)
    assert counts.values.tolist() == [[0, 1], [0, 0]]


def test_columns_are_chosen_by_order_by_name_or_by_axis() -> None:
    frame = pd.DataFrame({"x": [0.5], "y": [1.5], "b": [0.5]})
    grid = Grid((0, 0, 2, 2), (2, 2))
    assert count(frame, grid).values.tolist() == [[0, 1], [0, 0]]
    assert count(frame, grid, x="y", y="x").values.tolist() == [[0, 0], [1, 0]]
    assert count(frame, grid, columns={"y": "b"}).values.tolist() == [[1, 0], [0, 0]]


def test_nothing_to_count_is_counted() -> None:
    for engine in ("numpy", "native"):
        counts = count(pa.table({"x": pa.array([], pa.float64())}), Line(0, 1, cells=3), engine=engine)  # type: ignore[arg-type]
        assert counts.values.tolist() == [0, 0, 0]
    assert count_points(np.empty((0, 2)), GRID).values.sum() == 0


def test_a_lazy_frame_stays_lazy(tmp_path: Path) -> None:
    """Only the grouped result is collected: no more rows than two for each cell leave the engine."""
    collected: list[int] = []
    frame = pl.LazyFrame({"x": np.arange(10_000.0), "y": np.arange(10_000.0)})
    collect = pl.LazyFrame.collect

    def spy(self: pl.LazyFrame, *args: Any, **kwargs: Any) -> Any:
        result = collect(self, *args, **kwargs)
        collected.append(len(result))
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl.LazyFrame, "collect", spy)
        count(frame, Grid((0, 0, 1, 1), (2, 2)))
    assert collected
    assert max(collected) <= 8


def test_dropping_leaves_out_what_lies_outside() -> None:
    class Joined:
        allows_dropping = True

    frame = pd.DataFrame({"x": [-1.0, 0.5, 2.0, np.inf, 2.5], "k": ["a", "a", "b", "b", "?"]})
    domain = Domain((Interval("x", 0, 2, 2), Labels("k", ("a", "b"))))
    for engine in ("numpy", "native"):
        counts = count(frame, domain, outside="drop", policy=Joined(), engine=engine)  # type: ignore[arg-type]
        assert counts.values.tolist() == [[1, 0], [0, 1]]
        assert counts.report.outside == 3


def test_counts_are_read_only_and_silent() -> None:
    counts = count_points([[0.5, 0.5]], Grid((0, 0, 1, 1), (2, 2)))
    assert counts.values.dtype == np.int64
    assert repr(counts) == "Counts(Grid(bounds=(0, 0, 1, 1), shape=(2, 2)))"
    with pytest.raises(ValueError, match="read-only"):
        counts.values[0, 0] = 7


@pytest.mark.parametrize(
    ("use", "imported"),
    [
        ("import sfumato.counting", set()),
        ("count_points([[0.5, 0.5]], grid)", set()),
        ("import polars; count(polars.LazyFrame({'x': [0.5], 'y': [0.5]}), grid)", {"narwhals", "polars", "pyarrow"}),
        (f"count({str(Path('PARQUET'))!r}, grid)", {"narwhals", "duckdb", "pyarrow"}),
    ],
)
def test_engines_that_are_not_used_are_not_imported(use: str, imported: set[str], tmp_path: Path) -> None:
    path = parquet(pa.table({"x": [0.5], "y": [0.5]}), tmp_path)
    program = (
        "import sys\nfrom sfumato.counting import count, count_points\nfrom sfumato.domain import Grid\n"
        "grid = Grid((0, 0, 1, 1), (2, 2))\n"
        f"{use.replace('PARQUET', str(path))}\n"
        "print(*({'duckdb', 'narwhals', 'pandas', 'polars', 'pyarrow', 'pyspark', 'rich'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) <= imported
