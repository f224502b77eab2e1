"""At most m records an entity, every choice equally likely, and none that looks at the records."""

from __future__ import annotations

import functools
import itertools
import pickle
import tempfile
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from sfumato.counting import CountReport, Counts, batches, count, streams
from sfumato.counting.entities import Entities, dealt
from sfumato.counting.keyed import Kept, Keyed, Records
from sfumato.counting.spill import Spill
from sfumato.domain import Grid, Line
from sfumato.errors import InvalidInput, TooLarge
from sfumato.noise import SeededSource

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


def test_which_records_are_kept_follows_from_how_many_there_are_and_not_from_what_they_say() -> None:
    """With the same randomness a person's records of the same rank are kept, wherever all of them lie."""
    rng = np.random.default_rng(0)
    who, here, there = rng.integers(0, 500, 4000), np.arange(4000), rng.permutation(4000)
    line = Line(0, 4000, cells=4000)

    def ranks(place: NDArray[np.int64]) -> list[list[int]]:
        table = pa.table({"who": who, "x": place + 0.5})
        counts = count(table, line, entity="who", max_per_entity=2, source=SeededSource(1))
        kept = [set(np.flatnonzero(counts.values).tolist()) & set(place[who == w].tolist()) for w in range(500)]
        return [np.searchsorted(np.sort(place[who == w]), sorted(kept[w])).tolist() for w in range(500)]

    assert ranks(here) == ranks(there)
    assert sum(map(len, ranks(here))) == np.minimum(np.bincount(who), 2).sum()


def test_records_cut_into_any_files_are_chosen_from_as_a_whole(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    table = pa.table({"who": [f"person {w}" for w in rng.integers(0, 60, 900)], "x": rng.integers(0, 50, 900) + 0.5})
    found = []
    for parts in (1, 3, 40):
        rows = np.array_split(rng.permutation(900), parts)
        files = [tmp_path / f"{parts} {i}.parquet" for i in range(parts)]
        for file, some in zip(files, rows, strict=True):
            pq.write_table(table.take(some), file, row_group_size=50)
        line = Line(0, 50, cells=50)
        found.append(count(files, line, entity="who", max_per_entity=3, source=SeededSource(5)).values.tolist())
    assert found[0] == found[1] == found[2]
    assert sum(found[0]) == 180


def test_the_choice_is_new_every_time() -> None:
    table = pa.table({"who": [1] * 1000, "x": np.arange(1000) + 0.5})
    runs = [count(table, Line(0, 1000, cells=1000), entity="who", max_per_entity=100).values for _ in range(2)]
    assert (runs[0] != runs[1]).any()  # equal with probability 1 / C(1000, 100) < 2^-460


def test_the_key_of_the_choice_is_told_to_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not by what is printed or logged, nor by what is kept of the counts, nor by what an engine is asked."""
    keys: list[bytes] = []
    asked: list[str] = []
    drawn = Keyed.drawn.__func__  # type: ignore[attr-defined]

    def remembered(cls: type[Keyed], limit: int, source: Any) -> Keyed:
        choice: Keyed = drawn(cls, limit, source)
        keys.extend((choice.key, choice.naming_key))
        asked.append(repr(choice))
        return choice

    whose = batches.Batches._whose
    monkeypatch.setattr(Keyed, "drawn", classmethod(remembered))
    monkeypatch.setattr(batches.Batches, "_whose", lambda self: asked.append(whose(self)) or whose(self))
    with caplog.at_level(0):
        table = pa.table({"who": ["anna", "anna"], "x": [0.5, 1.5]})
        counts = count(table, Line(0, 2, cells=2), entity="who", max_per_entity=1, progress=True)
    told = " ".join([*asked, caplog.text, *capfd.readouterr(), repr(counts), repr(vars(counts))])
    assert len(keys) == len(asked) == 2
    for key in keys:
        assert key not in pickle.dumps(counts)
        assert key.hex() not in told
        assert repr(key) not in told


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


@pytest.mark.parametrize("name", [int, "user {}".format], ids=["numbers", "names"])
def test_records_beyond_what_memory_holds_go_through_a_file_and_the_choice_is_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: Any
) -> None:
    rng = np.random.default_rng(8)
    who = rng.zipf(1.6, 30_000) % 10_000  # a few have thousands of records, which a heap puts into one row
    x = np.where(np.arange(30_000) % 100 == 0, np.nan, rng.integers(0, 20, 30_000) + 0.5)
    records = np.bincount(who[~np.isnan(x)], minlength=10_000)
    path = save(pa.table({"who": [name(w) for w in who.tolist()], "x": x}), tmp_path)

    def counted() -> Counts:
        line = Line(0, 20, cells=20)
        return count(path, line, entity="who", max_per_entity=2, source=SeededSource(3))

    in_memory = counted()
    monkeypatch.setattr(streams, "ROWS", 2048)
    for rows, waiting in ((5000, 1 << 20), (5000, 100), (1 << 20, 1)):
        monkeypatch.setattr(batches, "Entities", functools.partial(Entities, rows=rows, waiting=waiting))
        counts = counted()
        assert (counts.values == in_memory.values).all()
        assert counts.report == CountReport(
            rows=30_000,
            without_coordinates=300,
            without_entity=0,
            outside=0,
            cut=int(np.maximum(records - 2, 0).sum()),
            entities_cut=int((records > 2).sum()),
        )


@pytest.mark.parametrize("rows", [100, 1 << 20], ids=["through a file", "in memory"])
def test_numbers_that_grow_too_long_on_the_way_change_nothing(rows: int) -> None:
    """Persons are held beside their cells while they fit, with what their records say; then apart."""
    rng = np.random.default_rng(9)
    persons = np.concatenate([rng.integers(0, 90, 500), rng.integers(0, 90, 500) + 2**60]).astype(np.uint64)
    cells, values = rng.integers(-1, 7, 1000), rng.integers(-20, 20, 1000)
    choice = Keyed(bytes(32), 3)
    together = choice.keep(persons, cells, values)
    held = Entities(choice, cells=7, values=(-20, 19), rows=rows)
    for start in range(0, 1000, 90):
        here = slice(start, start + 90)
        held.add(persons[here], cells[here], values[here])
    parts = [*held.kept()]

    def pairs(kept: list[Kept]) -> Counter[tuple[int, int]]:
        found: Counter[tuple[int, int]] = Counter()
        for part in kept:
            assert part.values is not None
            found.update(zip(part.cells.tolist(), part.values.tolist(), strict=True))
        return found

    assert pairs(parts) == pairs([together])
    assert (held.cut, held.entities_cut) == (together.cut, together.persons_cut)


def test_what_goes_through_a_file_comes_back_and_cannot_be_read_there() -> None:
    spill = Spill()
    parts = [Records(digests(np.arange(n)), np.arange(n, dtype=np.int32)) for n in (5, 0, 1000)]
    parts.append(Records(digests(np.arange(7)), np.arange(7), -np.arange(7, dtype=np.int16)))
    blocks = [spill.write(part) for part in parts]
    for block, part in reversed(list(zip(blocks, parts, strict=True))):
        again = spill.read(block)
        assert len(again.columns) == len(part.columns)
        for one, other in zip(again.columns, part.columns, strict=True):
            assert one.dtype == other.dtype
            assert (one == other).all()
    spill._file.seek(0)
    stored = spill._file.read()
    assert len(stored) == 1005 * 12 + 7 * 18
    assert parts[2].persons[500:502].tobytes() not in stored
    assert parts[2].cells[500:504].tobytes() not in stored
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
        spill.write(Records(np.zeros(1, np.uint64), np.zeros(1, np.int32)))
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


def test_a_grid_takes_entities_too() -> None:
    table = pa.table({"who": ["a", "a", "b"], "x": [0.5, 0.5, 1.5], "y": [0.5, 0.5, 1.5]})
    counts = count(table, Grid((0, 0, 2, 2), (2, 2)), entity="who", max_per_entity=1)
    assert counts.values.tolist() == [[1, 0], [0, 1]]
