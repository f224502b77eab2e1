"""The sums of a stream's steps: one that is deleted, edited or slipped in is noticed, at opening and at a charge."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from earlier_versions import undone
from ledger_worker import POLICY

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, StreamAccount, stretches
from sfumato.ledger.database import Connection
from sfumato.promise.window import Window

OTHER = (
    "The ledger is damaged: the steps of stream 'visits' are not those that were recorded. Nothing was drawn or "
    "recorded. Restore a backup."
)
FREE = ("DROP TRIGGER IF EXISTS step_never_goes", "DROP TRIGGER IF EXISTS step_never_changes")
FREE_ON_SERVER = (
    "ALTER TABLE step DISABLE TRIGGER step_never_goes",
    "ALTER TABLE step DISABLE TRIGGER step_never_changes",
)
EDITS = {
    "the first": "DELETE FROM step WHERE time = 1",
    "one in the middle": "DELETE FROM step WHERE time = 20",
    "the last": "DELETE FROM step WHERE time = 40",
    "all": "DELETE FROM step",
    "a level": "DELETE FROM step WHERE level = 1",
    "less": "UPDATE step SET epsilon = '1/100' WHERE time = 40",
    "moved": "UPDATE step SET time = 41 WHERE time = 40",
    "another release": "UPDATE step SET release_id = 'x' WHERE time = 39",
    "another weight": "UPDATE step SET weight = '2.0' WHERE time = 39",
    "another floor": "UPDATE step SET floor = '1.0' WHERE time = 39",
    "no weight": "UPDATE step SET weight = NULL WHERE time = 39",
    "another label": "UPDATE step SET label = 'x' WHERE time = 39",
    "slipped in": "INSERT INTO step (stream, time, level, epsilon, label, recorded) VALUES (1, 17, 1, '1/1', 'x', 'x')",
    "the sum": "UPDATE stream_sum SET steps = 7",
    "a stretch": "UPDATE stretch SET digest = 'x' WHERE number = 2",
}


@pytest.fixture
def stream(place: str) -> StreamAccount:
    """ε = 1 in every 4 steps; 40 steps, one of them raised."""
    stream = Ledger.create(place, epsilon=1).stream("visits", epsilon=1, window=4, policy=POLICY)
    with stream._store.write() as connection:  # as `charge` records them, in one transaction
        _record(connection, stream, range(1, 41))
    stream.raise_step(39, "1/4", level=1, label="finer")
    return stream


def _record(connection: Connection, stream: StreamAccount, times: range) -> None:
    found = stream._found(connection)
    for time in times:
        row = (time, 0, "1/8", "visits", f"s{time}", "2026-01-01T00:00:00+00:00", "1.0", None)
        connection.execute(
            "INSERT INTO step (stream, time, level, epsilon, label, release_id, recorded, weight, floor) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (found.row, *row),
        )
        stretches.record(connection, found.row, "visits", stream.window, row)


def _edit(stream: StreamAccount, *statements: str) -> None:
    free = FREE_ON_SERVER if "://" in stream._store.place else FREE
    with stream._store.write() as connection:
        for statement in (*free, *statements):
            connection.execute(statement)


def _refusal(act: Callable[[], object]) -> str:
    with pytest.raises(LedgerError) as caught:
        act()
    return str(caught.value)


@pytest.mark.parametrize("edit", EDITS)
def test_a_step_that_was_touched_is_noticed_at_opening(stream: StreamAccount, edit: str) -> None:
    ledger = Ledger(stream._store.place)
    _edit(stream, EDITS[edit])
    assert _refusal(lambda: Ledger(ledger.place)) == OTHER
    assert _refusal(lambda: ledger.stream("visits")) == OTHER


@pytest.mark.parametrize("edit", ["the last", "all", "a level", "less", "moved", "another release", "another label"])
def test_a_step_that_was_touched_is_noticed_by_a_charge_to_its_window(stream: StreamAccount, edit: str) -> None:
    """Also by the program that has it open."""
    _edit(stream, EDITS[edit])
    assert _refusal(lambda: stream.charge(42, "1/8", label="visits", release_id="new")) == OTHER
    assert _refusal(lambda: stream.remaining(42)) == OTHER
    if edit in ("less", "another release", "another label"):
        assert _refusal(lambda: stream.raise_step(38, "1/4", level=1, label="finer")) == OTHER
        assert _refusal(lambda: stream.quote_step(38, epsilon="1/4")) == OTHER


def test_the_last_step_is_missed_however_long_ago_it_was(stream: StreamAccount) -> None:
    """It would be charged again otherwise."""
    _edit(stream, EDITS["the last"])
    for time in (40, 41, 1000):
        assert _refusal(lambda t=time: stream.charge(t, "1/8", label="visits", release_id="new")) == OTHER  # type: ignore[misc]


def test_what_was_recorded_adds_up(stream: StreamAccount) -> None:
    stream.charge(41, "1/8", label="a, b", release_id="c")
    stream.skip(100)
    again = Ledger(stream._store.place).stream("visits")
    assert len(again) == 42
    with stream._store.read() as connection:
        found = stream._found(connection)
        (number,) = connection.execute("SELECT count(*) FROM stretch WHERE stream = ?", (found.row,)).fetchone()
        head = connection.execute("SELECT steps, last FROM stream_sum").fetchone()
    assert (number, head) == (7, (43, 100))  # eight steps to a stretch, and a row for every level


def test_a_charge_reads_its_window_and_little_else(stream: StreamAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long after 400 steps as after 40."""
    with stream._store.write() as connection:
        _record(connection, stream, range(41, 401))
    hashed: list[stretches.Row] = []
    mark = stretches._mark
    monkeypatch.setattr(stretches, "_mark", lambda row: (hashed.append(row), mark(row))[1])
    stream.charge(401, "1/8", label="visits", release_id="new")
    assert len(hashed) <= 4 + 8 + 1
    assert min(row[0] for row in hashed) >= 392


@pytest.mark.parametrize("size", [1, 7, 24, 1000, 10**12])
def test_stretches_are_a_part_of_a_window(size: int) -> None:
    assert stretches._width(Window("steps", size)) == max(8, size // 8)


def test_marks_tell_all_that_a_row_says() -> None:
    rows = [
        (1, 0, "1/2", "a", None, "t", None, None),
        (1, 0, "1/2", "a", "", "t", None, None),
        (1, 0, "1/2", "a=", None, "t", None, None),
        (1, 0, "1/2", "a", "b", "t", None, None),
        (1, 0, "1/2", "a,b", None, "t", None, None),
        (1, 0, "1/2", "a", "b,c", "t", None, None),
        (1, 0, "1/2", "a", "b", "t,1", None, None),
        (1, 1, "1/2", "a", "b", "t", None, None),
        (-1, 1, "1/2", "a", "b", "t", None, None),
        (1, 10, "1/2", "a", "b", "t", None, None),
        (11, 0, "1/2", "a", "b", "t", None, None),
        (1, 0, "1/21", "a", "b", "t", None, None),
        (1, 0, "1/2", "a", "b", "t", "1.0", None),
        (1, 0, "1/2", "a", "b", "t", None, "1.0"),
        (1, 0, "1/2", "a", "b", "t", "1.0", "1.0"),
    ]
    assert len({stretches._mark(row) for row in rows}) == len(rows)


@pytest.mark.parametrize("window", [timedelta(hours=1), timedelta(days=365 * 9998)])
def test_clock_time_has_stretches_too(place: str, window: timedelta) -> None:
    """At the ends of the calendar as well."""
    stream = Ledger.create(place, epsilon=1).stream("visits", epsilon=1, window=window, policy=POLICY)
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]
    for time in times:
        stream.charge(time, "1/8", label="visits", release_id=str(time))
    stream.raise_step(times[1], "1/4", level=1, label="finer")
    again = Ledger(place).stream("visits")
    assert [step.time for step in again.entries()] == times
    _edit(stream, "DELETE FROM step WHERE level = 1")
    assert _refusal(lambda: Ledger(place)) == OTHER


def test_steps_at_the_ends_of_what_is_counted(place: str) -> None:
    window = (1 << 62) - 1
    stream = Ledger.create(place, epsilon=1).stream("visits", epsilon=1, window=window, policy=POLICY)
    for time in (-(1 << 61), 0, 1 << 61):
        stream.charge(time, "1/8", label="visits", release_id=str(time))
    assert len(Ledger(place).stream("visits")) == 3


# ------------------------------------------------------------------ ledgers that are older than the sums


def _as_it_was(stream: StreamAccount) -> None:
    """What a ledger of an older version has once the tables were added."""
    goes = "ALTER TABLE stretch DISABLE TRIGGER stretch_never_goes"
    _edit(
        stream,
        goes if "://" in stream._store.place else "DROP TRIGGER stretch_never_goes",
        "DELETE FROM stretch",
        "UPDATE stream_sum SET steps = NULL, last = NULL, digest = NULL",
    )


@pytest.mark.parametrize("act", ["open", "charge", "raise"])
def test_an_older_stream_is_added_up_when_it_is_next_written_to(stream: StreamAccount, act: str) -> None:
    _as_it_was(stream)
    ledger = Ledger(stream._store.place)  # opens
    assert stream.remaining(41).epsilon > 0  # reads
    if act == "open":
        ledger.stream("visits")
    elif act == "charge":
        stream.charge(41, "1/8", label="visits", release_id="new")
    else:
        stream.raise_step(38, "1/4", level=1, label="finer")
    _edit(stream, EDITS["less"])
    assert _refusal(lambda: Ledger(ledger.place)) == OTHER


def test_a_long_stream_is_counted_with_its_ledger_and_added_up_by_itself(
    stream: StreamAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretches, "MANY", 10)
    ledger = Ledger(stream._store.place)
    _edit(stream, EDITS["less"])
    assert Ledger(ledger.place).spent == 0
    assert _refusal(lambda: ledger.stream("visits")) == OTHER
    _edit(stream, EDITS["the first"])
    assert _refusal(lambda: Ledger(ledger.place)) == OTHER


def test_a_ledger_of_version_four_gets_its_name_and_its_sums(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    stream = Ledger.create(path, epsilon=1).stream("visits", epsilon=1, window=4, policy=POLICY)
    stream.charge(1, "1/8", label="visits", release_id="s")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in undone(4):
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 4")
    ledger = Ledger(path)
    again = ledger.stream("visits")
    again.charge(2, "1/8", label="visits", release_id="t")
    assert [step.release_id for step in Ledger(path).stream("visits").entries()] == ["s", "t"]
    assert Ledger(path).payer == ledger.payer
    assert Ledger.create(tmp_path / "other.db", epsilon=1).payer != ledger.payer
