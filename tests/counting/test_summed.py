"""Sums are the same whole numbers on every engine, and distinct people depend on nothing but who was where."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import combinations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.counting import entities
from sfumato.counting.keyed import KEY_BYTES, Records
from sfumato.counting.person_cells import PersonCells

LINE = sf.Line(0, 8, cells=8, name="x")
FARES = sf.amounts("fare", clip=(-5, 100), step=0.25)


def trips() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "x": rng.uniform(-1, 9, 3000),
            "fare": np.round(rng.normal(30, 60, 3000) * 8) / 8,  # many of them half way between two steps
            "user": rng.integers(0, 200, 3000),
            "mode": rng.choice(["bus", "bike"], 3000),
        }
    )
    frame.loc[:5, "fare"] = [np.nan, np.inf, -np.inf, 0.125, -0.125, 1e300]
    return frame


def expected(frame: pd.DataFrame, cells: np.ndarray) -> np.ndarray:
    steps = np.floor(frame["fare"].clip(-5, 100) / 0.25 + 0.5)
    there = ~frame["fare"].isna().to_numpy()
    sums = np.zeros(cells.max() + 1, dtype=np.int64)
    np.add.at(sums, cells[there], steps[there].astype(int))
    return sums


def cells_of(frame: pd.DataFrame) -> np.ndarray:
    return np.clip(np.floor(frame["x"]), 0, 7).astype(int).to_numpy()


ENGINES = {
    "dict": lambda frame, folder: {name: frame[name].to_numpy() for name in frame},
    "pandas": lambda frame, folder: frame,
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "lazy polars": lambda frame, folder: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame, folder: pa.Table.from_pandas(frame),
    "duckdb": lambda frame, folder: duckdb.from_df(frame),
    "parquet": lambda frame, folder: frame.to_parquet(folder / "a.parquet") or folder / "a.parquet",
    "csv": lambda frame, folder: frame.to_csv(folder / "a.csv", index=False) or folder / "a.csv",
}


@pytest.mark.parametrize("engine", [None, "native"])
@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
def test_every_engine_adds_up_the_same_whole_numbers(make, engine, tmp_path):
    frame = trips()
    counts = sf.count(make(frame, tmp_path), LINE, values=FARES, engine=engine)
    assert counts.values.tolist() == expected(frame, cells_of(frame)).tolist()
    assert counts.counted == FARES
    assert counts.report.without_coordinates == 1
    assert counts.report.outside == int(((frame["x"] < 0) | (frame["x"] > 8))[1:].sum())  # of places, not of fares


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 300], pa.int64()),
        pa.array([1, 2, 2**64 - 1], pa.uint64()),  # beyond 64 bits with a sign
        pa.array([Decimal("1.00"), Decimal("2.00"), Decimal("300.00")]),
        pa.array([1, 2, 300], pa.int16()),
        pa.array([1, 2, 300], pa.float32()),
    ],
    ids=lambda column: str(column.type),
)
def test_numbers_of_any_type_are_cut_to_the_bounds(column):
    counts = sf.count(pa.table({"x": [0.5, 0.5, 3.5], "fare": column}), LINE, values=FARES)
    assert counts.values.tolist() == [12, 0, 0, 400, 0, 0, 0, 0]


def test_tables_of_factors_hold_the_same_sums():
    frame, space = trips(), LINE * sf.Categories(["bus", "bike"], name="mode")
    cells = sf.count(frame, space, values=FARES)
    tables = sf.count(frame, space, values=FARES, tables=sf.marginals(1))
    assert tables.values.tolist() == [*cells.values.sum(axis=1), *cells.values.sum(axis=0)]


def test_at_most_so_many_records_of_a_person_are_added_up():
    frame = pd.DataFrame({"x": np.full(50, 0.5), "fare": np.full(50, 10.0), "user": np.repeat([1, 2], 25)})
    counts = sf.count(frame, LINE, values=FARES, entity="user", max_per_entity=3)
    assert counts.values.sum() == 2 * 3 * 40
    assert counts.max_per_entity == 3


def test_a_value_beyond_its_bounds_is_cut_even_where_places_beyond_theirs_are_dropped():
    frame = pd.DataFrame({"x": [0.5, -3.0], "fare": [1e6, 1.0]})
    policy = sf.policy(LINE, hide=sf.presence(), values=FARES)
    counts = sf.count(frame, LINE, values=FARES, outside="drop", policy=policy)
    assert counts.values.sum() == 400


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"x": [1.0]}, "no column 'fare'"),
        ({"x": [1.0], "fare": ["twelve"]}, "Column 'fare' is of type String, and axis 'fare' needs numbers"),
        ({"x": [1.0], "fare": np.array(["2026-01-01"], dtype="datetime64[us]")}, "needs numbers"),
    ],
)
def test_columns_that_are_no_numbers_are_refused(data, message):
    with pytest.raises(sf.InvalidInput, match=message):
        sf.count(pd.DataFrame(data), LINE, values=FARES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"values": "fare"}, "values=str are no values"),
        ({"values": sf.people("user", cells=2), "entity": "user"}, "Leave entity out"),
        ({"values": sf.people("user", cells=2), "max_per_entity": 2}, "Leave max_per_entity out"),
        ({"values": sf.people("user", cells=2), "engine": "native"}, "cannot choose records by entity"),
        ({"values": sf.amounts("x", clip=(0, 1), step=1)}, "the domain has an axis of that name"),
    ],
)
def test_calls_that_could_mean_two_things_are_refused(call, message):
    with pytest.raises(sf.InvalidInput, match=message):
        sf.count(trips(), LINE, **call)


# ---------------------------------------------------------------- distinct people


def test_a_person_counts_once_a_cell():
    frame = trips()
    counts = sf.count(frame, LINE, values=sf.people("user", cells=8))
    pairs = set(zip(frame["user"], cells_of(frame), strict=True))
    assert counts.values.tolist() == [sum(cell == i for _, cell in pairs) for i in range(8)]


@pytest.mark.parametrize("cells", [1, 2, 5])
def test_a_person_is_in_so_many_cells_at_most(cells):
    frame = trips()
    counts = sf.count(frame, LINE, values=sf.people("user", cells=cells))
    held = frame.assign(cell=cells_of(frame)).groupby("user")["cell"].nunique()
    assert counts.values.sum() == np.minimum(held, cells).sum()
    assert counts.max_per_entity == cells


def chosen(key: bytes, limit: int, persons: list[int], cells: list[int]) -> Counter[int]:
    """How many people every cell has, under a key."""
    parts = PersonCells(key, limit).kept([Records(np.array(persons, np.uint64), np.array(cells, np.int32))])
    return Counter(cell for part in parts for cell in part.cells.tolist())


def test_one_record_changes_at_most_one_cell_of_its_person_under_every_key():
    """Every set of at most four records in five cells (and elsewhere), every change of one of them, many keys."""
    rng = np.random.default_rng(3)
    states = [[], *([cell] for cell in range(-1, 5))]
    states += [list(pair) for pair in combinations(range(-1, 5), 2)] + [
        list(three) for three in combinations(range(5), 3)
    ]
    states += [list(four) for four in combinations(range(5), 4)] + [[0, 0, 1], [2, 2, 3, 3]]
    for _ in range(3):
        key = rng.bytes(KEY_BYTES)
        for limit in (1, 2, 3):
            for state in states:
                before = chosen(key, limit, [7] * len(state), state)
                changed = [[*state[:i], cell, *state[i + 1 :]] for i in range(len(state)) for cell in range(-1, 5)]
                changed += [[*state[:i], *state[i + 1 :]] for i in range(len(state))] + [[*state, c] for c in range(5)]
                for other in changed:
                    after = chosen(key, limit, [7] * len(other), other)
                    gone, come = before - after, after - before
                    assert gone.total() <= 1
                    assert come.total() <= 1
                    assert after.total() <= limit


def test_the_choice_looks_at_nothing_but_who_was_where():
    rng = np.random.default_rng(4)
    persons, cells = rng.integers(0, 30, 500), rng.integers(0, 12, 500)
    key = rng.bytes(KEY_BYTES)
    first = chosen(key, 3, persons.tolist(), cells.tolist())
    order = rng.permutation(500)
    again = chosen(key, 3, [*persons[order], *persons], [*cells[order], *cells])  # in another order, and each twice
    assert again == first


def test_every_set_of_cells_is_equally_likely():
    """Of the ten pairs of five cells, over 8,000 keys: 800 each, deviation 27. A difference of 160 is six deviations:
    by chance in one of ten million runs. Favouring one cell by a tenth shifts its pairs by 3 × 27 or more together.
    """
    rng = np.random.default_rng(5)
    persons, cells = [7] * 40, [0] * 30 + [1, 1, 2, 2, 2, 3, 4, 4, 4, 4]  # most records lie in one cell
    found = Counter(tuple(sorted(chosen(rng.bytes(KEY_BYTES), 2, persons, cells))) for _ in range(8_000))
    assert set(found) == set(combinations(range(5), 2))
    assert all(abs(number - 800) < 160 for number in found.values())
    for cell in range(5):  # 3,200 each, deviation 44
        assert abs(sum(n for pair, n in found.items() if cell in pair) - 3_200) < 264


def test_people_without_a_name_are_nobody():
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5], "user": ["a", None, "a"]})
    counts = sf.count(frame, LINE, values=sf.people("user", cells=8))
    assert counts.values.tolist() == [1, 0, 1, 0, 0, 0, 0, 0]
    assert counts.report.without_entity == 1


@pytest.mark.parametrize("rows", [50, 1 << 24], ids=["put away", "in memory"])
@pytest.mark.parametrize("names", [False, True], ids=["numbers", "text"])
def test_people_are_counted_alike_in_memory_and_put_away(rows, names, monkeypatch):
    start = entities.Entities.__init__
    monkeypatch.setattr(
        entities.Entities, "__init__", lambda self, choice, **more: start(self, choice, **more, rows=rows)
    )
    frame = trips()
    if names:
        frame["user"] = "user " + frame["user"].astype(str)
    pairs = set(zip(frame["user"], cells_of(frame), strict=True))
    held = Counter(user for user, _ in pairs)
    every = sf.count(frame, LINE, values=sf.people("user", cells=8))
    assert every.values.tolist() == [sum(cell == i for _, cell in pairs) for i in range(8)]
    some = sf.count(frame, LINE, values=sf.people("user", cells=3))
    assert some.values.sum() == sum(min(number, 3) for number in held.values())
    assert some.report.entities_cut == sum(number > 3 for number in held.values())
