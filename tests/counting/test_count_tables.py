"""Tables of a product counted in one pass: the sums of what is counted cell by cell, on products of any size."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.counting import entities
from sfumato.linear.tables import Tables
from sfumato.noise import SeededSource

PLACE = sf.Grid(bounds=(0, 0, 3, 2), shape=(3, 2))
HOUR = sf.Line(0, 24, cells=4, name="hour")
MODE = sf.Categories(["bus", "bike", "rest"], name="mode", other="rest")
SPACE = PLACE * HOUR * MODE
ASKED = sf.marginals("mode", ("place", "hour"), ("x", "mode"))
ROWS = 400


def records():
    rng = np.random.default_rng(1)
    mode = rng.choice(np.array(["bus", "bike", "boat", "rest"]), ROWS)
    x = np.where(rng.random(ROWS) < 0.1, np.nan, rng.uniform(-1, 4, ROWS))
    return {
        "x": x,
        "y": rng.uniform(-0.5, 2.5, ROWS),
        "hour": rng.uniform(0, 24, ROWS),
        "mode": mode,
        "person": rng.integers(0, 60, ROWS),
    }


def sources(folder):
    table = pa.table(records())
    pq.write_table(table, folder / "visits.parquet")
    pl.from_arrow(table).write_csv(folder / "visits.csv", null_value="")
    yield table
    yield records()
    yield pd.DataFrame(records())
    yield pl.from_arrow(table)
    yield pl.from_arrow(table).lazy()
    yield duckdb.connect().from_arrow(table)
    yield folder / "visits.parquet"


@pytest.mark.filterwarnings("ignore::sfumato.DataWarning")
def test_tables_are_the_sums_of_the_cells_on_every_engine(tmp_path):
    cells = sf.count(records(), SPACE)
    for data in sources(tmp_path):
        found = sf.count(data, SPACE, tables=ASKED)
        assert found.tables.sets == ((0, 1, 2), (0, 3))
        assert np.array_equal(found.values, found.tables.of_cells(cells.values.ravel()))
        assert (found.report.rows, found.report.outside) == (cells.report.rows, cells.report.outside)
        assert found.values.flags.writeable is False


def few_in_memory(monkeypatch, rows):
    start = entities.Entities.__init__
    monkeypatch.setattr(start, "__kwdefaults__", {**start.__kwdefaults__, "rows": rows})


@pytest.mark.filterwarnings("ignore::sfumato.DataWarning")
@pytest.mark.parametrize("rows", [entities.ROWS, 64], ids=["in memory", "put away"])
def test_the_bound_on_a_person_holds_for_all_tables_together(rows, monkeypatch):
    few_in_memory(monkeypatch, rows)
    bound = {"entity": "person", "max_per_entity": 2, "policy": sf.unbounded(SPACE), "outside": "drop"}
    cells = sf.count(records(), SPACE, **bound, source=SeededSource(3))
    found = sf.count(records(), SPACE, **bound, tables=ASKED, source=SeededSource(3))
    assert np.array_equal(found.values, found.tables.of_cells(cells.values.ravel()))
    assert (found.max_per_entity, found.dropped, found.private) == (2, True, False)
    assert "person" not in repr(found)
    assert repr(found).endswith("max_per_entity=2, 2 tables)")


def test_cells_beyond_32_bits_survive_the_choice_by_entity(monkeypatch):
    few_in_memory(monkeypatch, 64)
    long = sf.Line(0, 1 << 20, cells=1 << 20, name="a") * sf.Line(0, 1 << 20, cells=1 << 20, name="b") * MODE
    rng = np.random.default_rng(2)
    data = {"a": rng.integers(1 << 19, 1 << 20, ROWS), "b": rng.integers(0, 1 << 20, ROWS), "mode": ["bus"] * ROWS}
    data["person"] = np.arange(ROWS)
    found = sf.count(data, long, tables=sf.marginals("a", "mode"), entity="person", max_per_entity=1)
    assert np.array_equal(found.tables.table(found.values, (0,)), np.bincount(data["a"], minlength=1 << 20))
    assert found.tables.table(found.values, (2,)).tolist() == [ROWS, 0, 0]


def test_a_product_too_large_to_hold_says_what_to_type():
    huge = HOUR
    for i in range(16):
        huge = huge * sf.Categories(list("abcdefgh"), name=f"f{i}")
    data = {"hour": [1.0, 2.0], **{f"f{i}": ["a", "h"] for i in range(16)}}
    with pytest.raises(sf.TooLarge) as refusal:
        sf.count(data, huge)
    assert str(refusal.value).endswith(
        "Nothing was read. Use fewer cells. Or count tables of a few factors each: sf.count(…, tables=sf.marginals(2))."
    )
    found = sf.count(data, huge, tables=sf.marginals(2))
    assert len(found.tables.sets) == 17 * 16 // 2
    assert found.tables.table(found.values, (0, 16)).sum() == 2
    assert found.tables.table(found.values, (1, 16))[[0, 7], [0, 7]].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tables": 2}, "tables=int is not a workload"),
        ({"tables": sf.marginals("hours")}, "'hours' is no factor and no axis"),
        ({"tables": sf.queries(np.eye(SPACE.size))}, "tables asks for queries on single cells"),
        ({"tables": ASKED, "engine": "native"}, "engine='native' counts cells"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(sf.InvalidInput, match=message):
        sf.count(pl.DataFrame(records()), SPACE, **options)


def test_counts_of_tables_know_their_shape():
    tables = Tables.holding(SPACE.shape, [(3,)])
    assert sf.Counts(np.zeros(3, dtype=int), SPACE, tables=tables).values.tolist() == [0, 0, 0]
    with pytest.raises(sf.InvalidInput, match="in the shape \\(3,\\)"):
        sf.Counts(np.zeros(4, dtype=int), SPACE, tables=tables)
    with pytest.raises(sf.InvalidInput, match="tables are those of another domain"):
        sf.Counts(np.zeros(3, dtype=int), PLACE, tables=tables)
