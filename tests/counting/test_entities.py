"""At most m records an entity, every choice equally likely, and none that looks at the records."""

from __future__ import annotations

import functools
import itertools
import tempfile
import uuid
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from sfumato.counting import CountReport, Counts, batches, count
from sfumato.counting.columns import Columns
from sfumato.counting.entities import Entities, dealt
from sfumato.counting.inputs import Database, open_view
from sfumato.counting.reservoir import Reservoir, _below
from sfumato.counting.spill import Spill
from sfumato.domain import Grid, Line
from sfumato.errors import InvalidInput, TooLarge
from sfumato.noise import SeededSource, SystemSource

FALSE_ALARM = 1e-7


def digests(entities: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Numbers spread over 64 bits, one to one, as a digest is."""
    return entities.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def save(table: pa.Table, folder: Path) -> Any:
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


KINDS = {
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "polars-lazy": lambda table, _: pl.from_arrow(table).lazy(),
    "arrow": lambda table, _: table,
    "duckdb": lambda table, _: duckdb.from_arrow(table),
    "parquet": save,
}


@pytest.mark.parametrize("limit", [1, 2, 7])
@pytest.mark.parametrize("text", [False, True], ids=["int", "str"])
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_no_entity_keeps_more_than_its_share_and_none_loses_what_fits(
    make: Any, text: bool, limit: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    who = rng.zipf(1.5, 5000) % 300  # some entities have one record, some have hundreds
    table = pa.table({"who": [f"user {w}" for w in who] if text else who, "x": who + 0.5})
    line = Line(0, 300, cells=300)  # an entity's records lie in the entity's own cell
    counts = count(make(table, tmp_path), line, entity="who", max_per_entity=limit)
    records = np.bincount(who, minlength=300)
    assert (counts.values == np.minimum(records, limit)).all()
    assert counts.max_per_entity == limit
    assert repr(counts) == f"Counts(Line(0, 300, cells=300), max_per_entity={limit})"
    assert counts.report == CountReport(
        rows=5000,
        without_coordinates=0,
        without_entity=0,
        outside=0,
        cut=int(np.maximum(records - limit, 0).sum()),
        entities_cut=int((records > limit).sum()),
    )


def chosen_pairs(waiting: int) -> NDArray[np.int64]:
    """How often each pair among 6 records was kept by 90,000 entities with a limit of 2."""
    entities, records = 90_000, 6
    reservoir = Reservoir(2, SystemSource(), waiting=waiting)
    for record in range(records):  # an entity's records come far apart, as in a file sorted by time
        who = np.arange(entities)
        for part in np.array_split(who, 5):
            reservoir.add(digests(part), (part * records + record).astype(np.int32))
    kept = np.sort(reservoir.kept().astype(np.int64)).reshape(entities, 2)
    pairs = {pair: i for i, pair in enumerate(itertools.combinations(range(records), 2))}
    return np.bincount([pairs[a % records, b % records] for a, b in kept.tolist()], minlength=15)


@pytest.mark.slow  # many choices
@pytest.mark.parametrize("waiting", [1 << 30, 100_000], ids=["at once", "in turns"])
def test_every_set_of_records_is_equally_likely(waiting: int) -> None:
    # 90,000 choices among 15 pairs, 6,000 each: a pair that is 10 % too likely moves the statistic by 60.
    statistic, p_value = stats.chisquare(chosen_pairs(waiting))
    assert p_value > FALSE_ALARM, statistic


def test_a_choice_that_prefers_early_records_would_be_noticed() -> None:
    counts = chosen_pairs(1 << 30).astype(np.float64)
    counts[:5] *= 1.1  # the pairs with the first record
    assert stats.chisquare(counts * (90_000 / counts.sum())).pvalue < FALSE_ALARM


@pytest.mark.slow  # many records
def test_one_entity_with_very_many_records_keeps_each_with_equal_chance() -> None:
    # 4,000 runs of 50 records and 5 kept: 20,000 picks, 400 each.
    picks = np.zeros(50, np.int64)
    for _ in range(4000):
        reservoir = Reservoir(5, SystemSource(), waiting=7)
        for start in range(0, 50, 10):
            reservoir.add(np.full(10, 11, np.uint64), np.arange(start, start + 10, dtype=np.int32))
        kept = reservoir.kept()
        assert len(np.unique(kept)) == 5
        picks[kept] += 1
    # Picks of one run exclude each other, which makes the statistic smaller by the factor 45/49: correct for it.
    statistic = float(((picks - 400) ** 2 / 400).sum() * 49 / 45)
    assert stats.chi2.sf(statistic, 49) > FALSE_ALARM


def test_the_choice_does_not_look_at_the_records() -> None:
    """With the same randomness the same rows are chosen, whatever they say."""
    rng = np.random.default_rng(0)
    who, here, there = rng.integers(0, 500, 4000), np.arange(4000), rng.permutation(4000)
    line = Line(0, 4000, cells=4000)

    def chosen(place: NDArray[np.int64]) -> Counts:
        table = pa.table({"who": who, "x": place + 0.5})
        return count(table, line, entity="who", max_per_entity=2, source=SeededSource(1))

    rows = np.flatnonzero(chosen(here).values)
    assert len(rows) == np.minimum(np.bincount(who), 2).sum()
    assert (np.flatnonzero(chosen(there).values) == np.sort(there[rows])).all()


def test_the_choice_is_new_every_time() -> None:
    table = pa.table({"who": [1] * 1000, "x": np.arange(1000) + 0.5})
    runs = [count(table, Line(0, 1000, cells=1000), entity="who", max_per_entity=100).values for _ in range(2)]
    assert (runs[0] != runs[1]).any()  # equal with probability 1 / C(1000, 100) < 2^-460


@pytest.mark.parametrize(
    "who",
    [
        pa.array([None, None, None, 7, 7], pa.int64()),
        pa.array([None, None, None, "anna", "anna"], pa.string()),
        pa.array([float("nan"), None, float("nan"), 1.5, 1.5], pa.float64()),
        pa.array([None, None, None, b"x", b"x"], pa.binary()),
        pa.array([None, None, None, "anna", "anna"]).dictionary_encode(),
    ],
)
def test_records_of_nobody_are_no_records(who: pa.Array) -> None:
    """Under ⊥ they could displace each other: a second one would halve the chance of the first."""
    table = pa.table({"who": who, "x": [0.5, 0.5, 0.5, 1.5, 1.5]})
    counts = count(table, Line(0, 2, cells=2), entity="who", max_per_entity=1)
    assert counts.values.tolist() == [0, 1]
    assert counts.report.without_entity == 3


def test_python_objects_cannot_name_an_entity() -> None:
    """Polars hands Python objects over as addresses: fifty records of one person would be those of fifty."""
    ids = [uuid.UUID(int=7) for _ in range(50)]
    frame = pl.DataFrame({"who": pl.Series(ids, dtype=pl.Object), "x": [0.5] * 50})
    for data in (frame, frame.lazy()):
        with pytest.raises(InvalidInput) as refusal:
            count(data, Line(0, 2, cells=2), entity="who", max_per_entity=1)
        assert str(refusal.value) == (
            "Column 'who' is of type Object, by which an entity cannot be told from another one reliably. Nothing was "
            "counted. Convert the column to whole numbers or strings first."
        )
    as_text = pd.DataFrame({"who": [str(i) for i in ids], "x": [0.5] * 50})
    assert count(as_text, Line(0, 2, cells=2), entity="who", max_per_entity=1).values.sum() == 1


def test_digests_of_numbers_never_collide_and_those_of_names_are_salted() -> None:
    connection = duckdb.connect()
    for kind in ("BIGINT", "INTEGER", "DOUBLE", "DATE", "TIMESTAMP"):
        value = {"DATE": "DATE '2000-01-01' + i::INTEGER", "TIMESTAMP": "make_timestamp(i)"}.get(kind, f"i::{kind}")
        query = f"SELECT count(DISTINCT hash({value})) FROM range(300000) t(i)"
        assert connection.sql(query).fetchall() == [(300000,)]
    names = pa.table({"who": ["anna", "bert"], "x": [0.5, 1.5]})
    seen = []
    for _ in range(2):
        database = Database()
        line = Line(0, 2, cells=2)
        view = open_view(names, Columns(("x",), "who").fields(line), database)
        stream = batches.Batches(view, line, database, entity="who")
        seen.append([batch.column(1).to_pylist() for batch in stream])
        database.close()
    assert seen[0] != seen[1]


@pytest.mark.slow  # many entities
@pytest.mark.parametrize(
    "who",
    [
        pa.array(["person1pperson2p", "person10person20"]),  # DuckDB's hash: one digest under half of all salts
        pa.array([0, 13002426248018735194], pa.uint64()),  # their hashes are 0 and 1
    ],
    ids=["text", "numbers"],
)
def test_entities_chosen_to_collide_do_not_share_a_place(who: pa.Array) -> None:
    # 40 calls: a pair that shares its place under half of all salts passes once in 10¹² runs.
    table = pa.table({"who": who, "x": [0.5, 1.5]})
    for _ in range(40):
        counts = count(table, Line(0, 2, cells=2), entity="who", max_per_entity=1)
        assert counts.values.tolist() == [1, 1]


def test_records_without_an_entity_or_coordinates_are_counted_once_in_the_report() -> None:
    table = pa.table({"who": pa.array([None, None, 7, 7], pa.int64()), "x": [None, 0.5, None, 1.5]})
    report = count(table, Line(0, 2, cells=2), entity="who", max_per_entity=1).report
    assert (report.rows, report.without_coordinates, report.without_entity, report.cut) == (4, 2, 1, 0)


def test_counts_remember_dropping_and_seeded_choices_without_showing_them() -> None:
    class Joined:
        allows_dropping = True

    table, line = pa.table({"who": [1, 1], "x": [0.5, 1.5]}), Line(0, 2, cells=2)
    plain = count(table, line, entity="who", max_per_entity=1)
    seeded = count(table, line, entity="who", max_per_entity=1, source=SeededSource(1))
    dropping = count(table, line, entity="who", max_per_entity=1, outside="drop", policy=Joined())
    assert [(c.dropped, c.private) for c in (plain, seeded, dropping)] == [(False, True), (False, False), (True, True)]
    assert repr(plain) == repr(seeded) == repr(dropping)


@pytest.mark.parametrize("progress", [True, None])
def test_what_an_engine_could_not_read_is_not_repeated(progress: bool | None, tmp_path: Path) -> None:
    secret = "alice@secret.org"
    (tmp_path / "bad.csv").write_text("who,x\n" + "1,0.5\n" * 30000 + f"2,0.5,{secret},9\n")
    mixed = pd.DataFrame({"who": pd.Series([1, secret, 2.5], dtype=object), "x": [0.1, 0.2, 0.3]})
    for data in (str(tmp_path / "bad.csv"), mixed):
        with pytest.raises(InvalidInput) as refusal:
            count(data, Line(0, 2, cells=2), entity="who", max_per_entity=1, progress=progress)
        told: BaseException | None = refusal.value
        while told is not None:
            assert secret not in str(told)
            told = told.__cause__ or told.__context__


def test_a_record_without_coordinates_uses_up_no_share() -> None:
    table = pa.table({"who": [1] * 50, "x": pa.array([None] * 49 + [0.5], pa.float64())})
    counts = count(table, Line(0, 2, cells=2), entity="who", max_per_entity=1)
    assert counts.values.tolist() == [1, 0]


def test_a_record_that_is_dropped_takes_part_in_the_choice() -> None:
    class Joined:
        allows_dropping = True

    who = np.repeat(np.arange(20_000), 2)
    table = pa.table({"who": who, "x": np.tile([0.5, 9.5], 20_000)})
    counts = count(
        table, Line(0, 2, cells=2), entity="who", max_per_entity=1, outside="drop", policy=Joined(), engine="numpy"
    )
    # Half of 20,000 coins, standard deviation 71: six of them are passed once in 5 · 10⁸ runs.
    assert abs(int(counts.values.sum()) - 10_000) < 6 * 71
    assert counts.values[1] == 0


def test_records_beyond_what_memory_holds_go_through_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(batches, "Entities", functools.partial(Entities, rows=5000))
    monkeypatch.setattr(batches, "BATCH", 2048)
    who = np.random.default_rng(8).integers(0, 10_000, 30_000)
    x = np.where(np.arange(30_000) % 100 == 0, np.nan, who + 0.5)
    records = np.bincount(who[~np.isnan(x)], minlength=10_000)
    path = save(pa.table({"who": who, "x": x}), tmp_path)
    counts = count(path, Line(0, 10_000, cells=10_000), entity="who", max_per_entity=2)
    assert (counts.values == np.minimum(records, 2)).all()
    assert counts.report == CountReport(
        rows=30_000,
        without_coordinates=300,
        without_entity=0,
        outside=0,
        cut=int(np.maximum(records - 2, 0).sum()),
        entities_cut=int((records > 2).sum()),
    )


def test_what_goes_through_a_file_comes_back_and_cannot_be_read_there() -> None:
    spill = Spill()
    batches = [(digests(np.arange(n)), np.arange(n, dtype=np.int32)) for n in (5, 0, 1000)]
    blocks = [spill.write(batch) for batch in batches]
    for block, (entities, cells) in reversed(list(zip(blocks, batches, strict=True))):
        again = spill.read(block)
        assert (again[0] == entities).all()
        assert (again[1] == cells).all()
    spill._file.seek(0)
    stored = spill._file.read()
    assert len(stored) == 1005 * 12
    assert batches[2][0][500:502].tobytes() not in stored
    assert batches[2][1][500:504].tobytes() not in stored
    spill.close()


def test_a_full_disk_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

    spill = Spill()
    spill.close()
    monkeypatch.setattr(spill, "_file", Full())
    monkeypatch.setattr(tempfile, "tempdir", "/scratch")
    with pytest.raises(TooLarge) as refusal:
        spill.write((np.zeros(1, np.uint64), np.zeros(1, np.int32)))
    assert str(refusal.value) == (
        "The records do not fit into the temporary directory '/scratch'. Nothing was counted. Free some space there, "
        "or set TMPDIR to another directory."
    )


def test_dealing_puts_each_entity_into_one_heap() -> None:
    entities = digests(np.random.default_rng(2).integers(0, 500, 3000))
    order, starts = dealt(entities)
    assert sorted(order.tolist()) == list(range(3000))
    assert (starts[0], starts[-1]) == (0, 3000)
    heaps = [set(entities[order[a:b]].tolist()) for a, b in itertools.pairwise(starts)]
    assert sum(map(len, heaps)) == len(set(entities.tolist())) == len(set().union(*heaps))


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(1, 2**32 - 1)), min_size=1))
def test_slots_are_the_exact_quotient(draws: list[tuple[int, int]]) -> None:
    words, bounds = np.array([w for w, _ in draws], np.uint64), np.array([t for _, t in draws], np.int64)
    assert _below(words, bounds).tolist() == [w * t >> 64 for w, t in draws]


def test_a_grid_takes_entities_too() -> None:
    table = pa.table({"who": ["a", "a", "b"], "x": [0.5, 0.5, 1.5], "y": [0.5, 0.5, 1.5]})
    counts = count(table, Grid((0, 0, 2, 2), (2, 2)), entity="who", max_per_entity=1)
    assert counts.values.tolist() == [[1, 0], [0, 1]]
