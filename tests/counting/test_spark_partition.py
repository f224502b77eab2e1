"""What a worker of Spark does with its part, without a cluster: on batches of Arrow, as Spark hands them over."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.counting import spark_partition
from sfumato.counting.columns import Columns
from sfumato.counting.keyed import Keyed
from sfumato.counting.spark_partition import Part, added, packed, unpacked
from sfumato.domain import Domain

LINE = sf.Line(0, 90, cells=90)


def crowd(rows: int = 3000) -> pa.Table:
    """Private columns: a place, and whose it is; a few have no place, a few are nobody's, a few lie outside."""
    rng = np.random.default_rng(2)
    who = rng.zipf(1.5, rows) % 70
    x = who + rng.random(rows) - 1.0
    x[:9] = np.nan
    return pa.table({"c0": x, "entity": pa.array([None if i % 40 == 3 else int(w) for i, w in enumerate(who)])})


def part(domain: Domain = LINE, choice: Keyed | None = None, **more: Any) -> Part:
    fields = Columns(("x",), None if choice is None else "who").fields(domain)
    given = {"drop": False, "tables": None, "choice": choice, "summed": None, **more}
    return pickle.loads(pickle.dumps(Part.of(domain, fields, **given)))  # as it comes to a worker


def cut(table: pa.Table, parts: int) -> list[Iterator[Any]]:
    """All records of a person in one part, as Spark deals them."""
    at = np.array([-1 if w is None else w for w in table["entity"].to_pylist()]) % parts
    return [iter(table.filter(pa.array(at == i)).to_batches(max_chunksize=100)) for i in range(parts)]


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_parts_together_keep_what_all_of_it_keeps(parts: int, limit: int) -> None:
    table = crowd()
    expected = sf.count(
        table.rename_columns(["x", "who"]), LINE, entity="who", max_per_entity=limit, source=sf.SeededSource(1)
    )
    one = part(choice=Keyed.drawn(limit, sf.SeededSource(1)))
    blobs = [batch.column(0)[0].as_py() for stream in cut(table, parts) for batch in one.whole(stream)]
    tally = np.zeros(90, np.int64)
    report = added(map(unpacked, blobs), tally, persons=True)
    assert (tally == expected.values).all()
    assert report == expected.report
    again = [batch.column(0)[0].as_py() for stream in cut(table, parts) for batch in one.whole(stream)]
    assert blobs == again  # what is done twice gives the same, byte for byte


def test_records_are_counted_a_row_for_each_number() -> None:
    table = crowd()
    expected = sf.count(table.rename_columns(["x", "who"]), LINE)
    found = [batch for stream in cut(table, 3) for batch in part().rows(stream)]
    tally = np.zeros(90, np.int64)
    numbers = ((batch.column(0).to_numpy(), batch.column(1).to_numpy()) for batch in found)
    report = added(numbers, tally, persons=False)
    assert (tally == expected.values).all()
    assert report == expected.report


def test_parts_without_rows_count_nothing() -> None:
    for stream in (iter(()), iter([pa.RecordBatch.from_pydict({"c0": pa.array([], pa.float64())})])):
        keys, records = part().counted(stream)
        assert not records.any()
        assert len(keys) == len(records)


def test_what_is_sent_is_small_and_comes_back() -> None:
    rng = np.random.default_rng(0)
    keys = np.concatenate([[-3, -1], np.sort(rng.choice(1 << 40, 20_000, replace=False)), [(1 << 62) - 1]])
    found = unpacked(packed((keys, np.ones(len(keys), np.int64))))
    assert (found[0] == keys).all()
    assert (found[1] == 1).all()
    dense = np.arange(65_536)
    assert len(packed((dense, rng.poisson(5, 65_536)))) < 2 * 65_536


def test_an_error_on_a_worker_says_nothing_of_a_record() -> None:
    table = pa.table({"c0": ["planted-7f3a"]})
    with pytest.raises(RuntimeError) as caught:
        list(part().rows(iter(table.to_batches())))
    assert "7f3a" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_the_key_is_shown_by_nothing() -> None:
    choice = Keyed.drawn(1, sf.SeededSource(1))
    assert choice.key.hex() not in repr(part(choice=choice))
    assert repr(choice.key)[2:-1] not in repr(part(choice=choice))


def test_a_worker_with_another_footing_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the version, and of the table of a zone."""
    one, cycle = part(), sf.Cycle("hour of day", name="x", tz="Europe/Berlin")
    zoned = part(cycle)
    monkeypatch.setattr(spark_partition, "__version__", "0.0")
    with pytest.raises(RuntimeError, match=r"another version of sfumato.*Nothing was counted"):
        list(one.rows(iter(crowd().to_batches())))
    monkeypatch.undo()
    zone = cycle.axes[0].zone  # type: ignore[attr-defined]
    before = zone.changes
    object.__setattr__(zone, "changes", before + 3_600_000_000)
    try:
        assert spark_partition.footing(cycle) != zoned.footing
    finally:
        object.__setattr__(zone, "changes", before)
    assert spark_partition.footing(cycle) == zoned.footing
