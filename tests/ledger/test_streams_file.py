"""Streams on disk: found by their time, brought to older files, safe from crashes, rivals and edits."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from earlier_versions import undone
from ledger_worker import interrupt_statements

from sfumato.domain import Line
from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, StreamAccount, stream_rows, stretches
from sfumato.ledger import store as store_module
from sfumato.ledger.schema import SCHEMA_VERSION
from sfumato.policies import threshold

POLICY = threshold(Line(0, 1, cells=5), theta=1)
WORKER = Path(__file__).with_name("stream_worker.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def stream(path: Path) -> StreamAccount:
    """ε = 1 in every 3 steps; three steps, the second skipped and the first raised."""
    stream = Ledger.create(path, epsilon=1).stream("visits", epsilon=1, window=3, policy=POLICY)
    stream.charge(1, "1/4", label="visits", release_id="r1")
    stream.skip(2)
    stream.charge(3, "1/4", label="visits", release_id="r3")
    stream.raise_step(1, "1/2", level=1, label="finer")
    return stream


def _edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def _fullest(stream: StreamAccount) -> Fraction:
    """The most that any run of `window` consecutive steps has spent, those that begin before the stream included."""
    spent = {int(step.time): step.epsilon for step in stream.entries()}  # type: ignore[arg-type]
    size = stream.window.size
    return max(
        sum((spent.get(tick, Fraction(0)) for tick in range(end - size + 1, end + 1)), Fraction(0)) for end in spent
    )


# ------------------------------------------------------------------ found by their time


@pytest.mark.parametrize(
    ("query", "arguments", "search"),
    [
        (stretches.ROWS, (1, 2, 9), "SEARCH step USING PRIMARY KEY (stream=? AND time>? AND time<?)"),
        (stretches._SUMS, (1, 2, 9), "SEARCH stretch USING PRIMARY KEY (stream=? AND number>? AND number<?)"),
        (stretches._LAST, (1,), "SEARCH step USING PRIMARY KEY (stream=?)"),
        (stream_rows.STEPS, (1, 2, 9), "SEARCH step USING PRIMARY KEY (stream=? AND time>? AND time<?)"),
        (stream_rows.LAST, (1,), "SEARCH step USING PRIMARY KEY (stream=?)"),
    ],
)
def test_a_window_is_one_stretch_of_the_table(
    stream: StreamAccount, path: Path, query: str, arguments: tuple[int, ...], search: str
) -> None:
    """Neither a scan of all steps nor a sort of what was found: a step takes as long after a million as after ten."""
    with closing(sqlite3.connect(path)) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", arguments)]
    assert plan == [search]


# ------------------------------------------------------------------ older and edited files


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_ledger_takes_streams_and_keeps_what_it_had(path: Path, version: int) -> None:
    ledger = Ledger.create(path, epsilon=1)
    ledger.charge(0.25, POLICY, label="visits", release_id="r1")
    before = ledger.history()
    _edit(path, *undone(version))
    _edit(path, f"PRAGMA user_version = {version}")
    again = Ledger(path)
    again.stream("visits", epsilon=1, window=3, policy=POLICY).charge(1, 1, label="visits", release_id="s1")
    assert (again.history(), again.spent, again.level("r1")) == (before, 0.25, (0, 0.25))
    again.raise_level("r1", level=1, epsilon=0.5, label="finer")
    assert len(Ledger(path).stream("visits")) == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE step SET epsilon = '0/1'",
        "DELETE FROM step",
        "UPDATE stream SET epsilon = '9/1'",
        "UPDATE stream SET clock = 'utc'",
        "DELETE FROM stream",
    ],
)
def test_streams_and_their_steps_are_append_only(stream: StreamAccount, path: Path, statement: str) -> None:
    before = stream.entries()
    with pytest.raises(sqlite3.IntegrityError, match=r"of a ledger are never (changed|deleted)"):
        _edit(path, statement)
    assert stream.entries() == before


TRIGGERS = tuple(f"DROP TRIGGER {table}_never_{end}" for table in ("step", "stream") for end in ("changes", "goes"))


# Whoever edits steps and knows of the sums takes those away as well: the next one to open the stream adds up anew.
FORGET = (
    "DROP TRIGGER stretch_never_goes",
    "DELETE FROM stretch",
    "UPDATE stream_sum SET steps = NULL, last = NULL, digest = NULL",
)


def _first_charge(path: Path) -> object:
    return Ledger(path).stream("visits").charge(4, "1/8", label="visits", release_id="r4")


def _all_steps(path: Path) -> object:
    return Ledger(path).stream("visits").entries()


@pytest.mark.parametrize(
    ("statement", "act", "what"),
    [
        (
            "UPDATE step SET epsilon = '3/2' WHERE time = 3",
            _first_charge,
            "stream 'visits': more is spent in a window than it holds",
        ),
        ("UPDATE step SET epsilon = 'much' WHERE time = 3", _first_charge, "a step of a stream cannot be read"),
        ("UPDATE step SET epsilon = '-1/2' WHERE time = 3", _all_steps, "a step of a stream cannot be read"),
        (
            "UPDATE step SET level = 2 WHERE level = 1",
            _all_steps,
            "the levels of a step of a stream do not add up",
        ),
        (
            "UPDATE step SET epsilon = '1/5' WHERE level = 1",
            _all_steps,
            "the levels of a step of a stream do not add up",
        ),
        ("UPDATE stream SET epsilon = '1/0'", _all_steps, "stream 'visits' cannot be read"),
        ("UPDATE stream SET policy = '{'", _all_steps, "stream 'visits': its policy cannot be read"),
        ("UPDATE stream SET policy = '[]'", _all_steps, "stream 'visits': its policy cannot be read"),
        (
            "UPDATE stream SET fingerprint = 'abc'",
            _all_steps,
            "stream 'visits': its policy does not match its fingerprint",
        ),
        ("UPDATE stream SET clock = NULL", _all_steps, "stream 'visits' does not say how it tells the time"),
    ],
)
def test_an_edited_stream_is_noticed(
    stream: StreamAccount, path: Path, statement: str, act: Callable[[Path], object], what: str
) -> None:
    _edit(path, *TRIGGERS, statement, *FORGET)
    with pytest.raises(LedgerError) as caught:
        act(path)
    assert str(caught.value) == (f"The ledger is damaged: {what}. Nothing was drawn or recorded. Restore a backup.")


def test_a_raise_notices_a_window_that_is_overspent(stream: StreamAccount, path: Path) -> None:
    _edit(path, *TRIGGERS, "UPDATE step SET epsilon = '3/2' WHERE time = 3", *FORGET)
    with pytest.raises(LedgerError, match=r"more is spent in a window than it holds"):
        stream.quote_step(1, epsilon="3/4")


@pytest.mark.parametrize("other", ["none", "another"])
def test_a_file_that_was_replaced_is_noticed(stream: StreamAccount, path: Path, tmp_path: Path, other: str) -> None:
    replacement = Ledger.create(tmp_path / "other.db", epsilon=1)
    if other == "another":
        replacement.stream("visits", epsilon=2, window=3, policy=POLICY)
    shutil.copy(replacement.path, path)
    with pytest.raises(LedgerError) as caught:
        stream.charge(4, "1/4", label="visits", release_id="r4")
    assert str(caught.value) == (
        f"'{path}' has no stream 'visits' with the terms it was opened with any more: the file was replaced. Nothing "
        "was drawn or recorded. Restore the ledger."
    )


# ------------------------------------------------------------------ crashes


class _Fault(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("fault", [_Fault, sqlite3.OperationalError, KeyboardInterrupt])
@pytest.mark.parametrize("act", ["charge", "raise"])
def test_a_fault_before_any_statement_never_loses_an_acknowledged_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: type[BaseException], act: str
) -> None:
    monkeypatch.setattr(store_module.sqlite3, "connect", sqlite3.connect)
    number, struck = 0, True
    while struck:
        number += 1
        ledger = Ledger.create(tmp_path / f"{number}.db", epsilon=1)
        stream = ledger.stream("visits", epsilon=1, window=3, policy=POLICY)
        stream.charge(1, "1/4", label="visits", release_id="r1")
        struck, acknowledged = False, False

        def strike(count: int, _: str, last: int = number) -> None:
            nonlocal struck
            if count == last:
                struck = True
                raise fault("injected")

        connect = sqlite3.connect
        interrupt_statements(strike)
        try:
            if act == "charge":
                stream.charge(2, "1/2", label="visits", release_id="r2")
            else:
                stream.raise_step(1, "3/4", level=1, label="finer")
            acknowledged = True
        except (fault, LedgerError):
            pass
        finally:
            store_module.sqlite3.connect = connect
        spent = sum(step.epsilon for step in Ledger(ledger.path).stream("visits").entries())
        assert spent in (Fraction(1, 4), Fraction(3, 4))
        assert spent == Fraction(3, 4) or not acknowledged
    assert acknowledged
    assert number > 10  # it did walk through the statements


def _start(action: str, path: Path, *numbers: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), action, str(path), *map(str, numbers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _output(process: subprocess.Popen[str]) -> list[int]:
    out, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors
    return [int(line) for line in out.split()]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_killed_before_any_statement_a_stream_is_whole_and_nothing_acknowledged_is_lost(path: Path) -> None:
    stream = Ledger.create(path, epsilon=1).stream("visits", epsilon=1, window=5, policy=POLICY)
    acknowledged = _output(_start("die_at_each_statement", path))
    assert acknowledged[-1] == 2
    assert len(acknowledged) > 20
    steps = stream.entries()
    assert [step.time for step in steps] == list(range(len(steps)))
    assert {(step.level, step.epsilon) for step in steps} == {(0, Fraction(1, 100)), (1, Fraction(1, 50))}
    assert sum(count >= 1 for count in acknowledged) <= len(steps) <= len(acknowledged)
    assert sum(count == 2 for count in acknowledged) <= sum(step.level for step in steps)


# ------------------------------------------------------------------ together


@pytest.mark.slow
def test_processes_that_race_release_every_step_once(path: Path) -> None:
    stream = Ledger.create(path, epsilon=1).stream("visits", epsilon=1, window=3, policy=POLICY)
    workers = [_start("race", path, 90) for _ in range(2)]
    got = [_output(worker) for worker in workers]
    assert sorted(got[0] + got[1]) == list(range(90))
    assert (len(stream), _fullest(stream)) == (90, 1)


@pytest.mark.slow
def test_processes_that_ask_for_too_much_never_overfill_a_window(path: Path) -> None:
    stream = Ledger.create(path, epsilon=1).stream("visits", epsilon=1, window=4, policy=POLICY)
    for worker in [_start("overspend", path, 120) for _ in range(2)]:
        _output(worker)
    assert Fraction(4, 5) <= _fullest(stream) <= 1
    assert any(step.level for step in stream.entries())


@pytest.mark.slow
def test_processes_that_charge_late_in_any_order_never_overfill_a_window(path: Path) -> None:
    """Each time is charged by one of them at most, and many windows are filled to the last fifth."""
    stream = Ledger.create(path, epsilon=1).stream("visits", epsilon=1, window=4, policy=POLICY)
    for worker in [_start("late", path, 40) for _ in range(2)]:
        _output(worker)
    entries = stream.entries()
    assert len(entries) == len({step.time for step in entries}) > 20
    assert Fraction(4, 5) <= _fullest(stream) <= 1
