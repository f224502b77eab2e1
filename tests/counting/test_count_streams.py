"""No engine's records are held here whole: what was produced and not yet counted stays a few batches, by construction.

Every source below counts the rows that it has produced and stops the run where it is too far ahead of the rows that
are counted. Sources have many times more rows than may be under way, so that whoever collects them first fails.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from sfumato.counting import count, streams
from sfumato.domain import Line
from sfumato.errors import InvalidInput

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis.*")
LINE = Line(0, 100, cells=100)
ROWS, BATCHES = 1 << 13, 768
TOGETHER = 8  # batches in a partition of Dask
MOST = ROWS * BATCHES // 2
"""DuckDB reads ahead what its buffers hold, some half a million rows of two columns here; more on more threads."""


class Meter:
    """Rows produced, rows counted, and the most that were between the two."""

    def __init__(self) -> None:
        self.produced = self.counted = self.most = 0

    def produce(self, rows: int) -> None:
        self.produced += rows
        self.most = max(self.most, self.produced - self.counted)

    def progress(self, done: int, _: int | None) -> None:
        self.counted = done


def columns(number: int) -> dict[str, Any]:
    """A batch of records: 50 persons, all of them in every batch."""
    rng = np.random.default_rng(number)
    return {"who": rng.integers(0, 50, ROWS), "x": rng.uniform(0, 100, ROWS)}


def arrow(meter: Meter) -> Any:
    def batches() -> Iterator[Any]:
        for number in range(BATCHES):
            meter.produce(ROWS)
            yield pa.record_batch(columns(number))

    return pa.RecordBatchReader.from_batches(pa.schema({"who": pa.int64(), "x": pa.float64()}), batches())


def in_duckdb(meter: Meter) -> Any:
    return duckdb.connect().from_arrow(arrow(meter))


def polars(meter: Meter) -> Any:
    def source(with_columns: Any, predicate: Any, n_rows: Any, batch_size: Any) -> Iterator[pl.DataFrame]:
        for number in range(BATCHES):
            meter.produce(ROWS)
            frame = pl.DataFrame(columns(number))
            yield frame if with_columns is None else frame.select(with_columns)

    plugins = pytest.importorskip("polars.io.plugins")
    return plugins.register_io_source(source, schema={"who": pl.Int64, "x": pl.Float64})


def ibis_polars(meter: Meter) -> Any:
    return pytest.importorskip("ibis").polars.connect().create_table("records", polars(meter))


def dask(meter: Meter) -> Any:
    import pandas as pd

    def part(number: int) -> Any:
        meter.produce(TOGETHER * ROWS)
        return pd.concat([pd.DataFrame(columns(number))] * TOGETHER)

    frame = pytest.importorskip("dask.dataframe")
    meta = pd.DataFrame({"who": pd.Series([], dtype="int64"), "x": pd.Series([], dtype="float64")})
    return frame.from_map(part, range(BATCHES // TOGETHER), meta=meta)


SOURCES: dict[str, Callable[[Meter], Any]] = {
    "arrow": arrow,
    "duckdb": in_duckdb,
    "polars": polars,
    "ibis-polars": ibis_polars,
    "dask": dask,
}


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_few_rows_are_under_way(make: Callable[[Meter], Any], limit: int | None, monkeypatch: Any) -> None:
    monkeypatch.setattr(streams, "ROWS", ROWS)
    meter = Meter()
    counts = count(
        make(meter),
        LINE,
        entity=None if limit is None else "who",
        max_per_entity=limit,
        engine="numpy",
        progress=meter.progress,
    )
    assert meter.counted == counts.report.rows == BATCHES * ROWS
    assert counts.values.sum() == (BATCHES * ROWS if limit is None else 50 * limit)
    assert meter.most < MOST


def test_a_source_that_is_collected_first_is_noticed() -> None:
    meter = Meter()
    count(arrow(meter).read_all(), LINE, engine="numpy", progress=meter.progress)
    assert meter.most == ROWS * BATCHES


def test_batches_are_let_go_while_their_persons_are_remembered() -> None:
    """What is held until the choice is a copy: a column that is only looked at would keep its batch."""
    alive, most = 0, 0

    def gone() -> None:
        nonlocal alive
        alive -= 1

    def batches() -> Iterator[Any]:
        nonlocal alive, most
        for number in range(BATCHES):
            arrays = [np.ascontiguousarray(column) for column in columns(number).values()]
            for array in arrays:
                weakref.finalize(array, gone)
            alive += len(arrays)
            most = max(most, alive)
            kinds = (pa.int64(), pa.float64())
            held = [pa.Array.from_buffers(k, ROWS, [None, pa.py_buffer(a)]) for k, a in zip(kinds, arrays, strict=True)]
            yield pa.record_batch(held, names=["who", "x"])

    reader = pa.RecordBatchReader.from_batches(pa.schema({"who": pa.int64(), "x": pa.float64()}), batches())
    counts = count(reader, LINE, entity="who", max_per_entity=1)
    assert counts.values.sum() == 50
    assert most < BATCHES  # of twice as many columns


def test_categories_of_persons_may_differ_by_partition() -> None:
    """Dask declares few categories of many; every part has codes of its own."""
    import pandas as pd

    def part(number: int) -> Any:
        names = [f"person {n}" for n in range(number, number + 300)]
        return pd.DataFrame({"who": pd.Categorical(names), "x": np.arange(300) % 100 + 0.5})

    meta = pd.DataFrame({"who": pd.Categorical([]), "x": pd.Series([], dtype="float64")})
    frame = pytest.importorskip("dask.dataframe").from_map(part, range(6), meta=meta)
    assert count(frame, LINE, entity="who", max_per_entity=1).values.sum() == 305
    whole = pl.concat([pl.from_pandas(part(number).astype({"who": str})) for number in range(6)])
    lazy = whole.with_columns(pl.col("who").cast(pl.Categorical)).lazy()
    assert count(lazy, LINE, entity="who", max_per_entity=1).values.sum() == 305


def test_an_engine_that_fails_on_the_way_is_not_quoted() -> None:
    secret = "alice@secret.org"
    import pandas as pd

    def part(number: int) -> Any:
        raise ValueError(secret)

    meta = pd.DataFrame({"who": pd.Series([], dtype="int64"), "x": pd.Series([], dtype="float64")})
    texts = pl.LazyFrame({"who": [1, 2], "x": ["0.5", secret]}).with_columns(pl.col("x").cast(pl.Float64))
    for data in (texts, pytest.importorskip("dask.dataframe").from_map(part, range(2), meta=meta)):
        with pytest.raises(InvalidInput, match="could not be read: the engine stopped with") as refusal:
            count(data, LINE, entity="who", max_per_entity=1)
        told: BaseException | None = refusal.value
        while told is not None:
            assert secret not in str(told)
            told = told.__cause__ or told.__context__
