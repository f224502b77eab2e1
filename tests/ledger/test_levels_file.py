"""The level counter in a ledger file: older files, edited files, kills and crowds leave charge and level in step."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from earlier_versions import undone
from ledger_worker import interrupt_statements

from sfumato.domain import Line
from sfumato.errors import LedgerError
from sfumato.ledger import Ledger
from sfumato.ledger import store as store_module
from sfumato.ledger.schema import SCHEMA_VERSION
from sfumato.policies import threshold

LINE = Line(0, 1, cells=5)
POLICY = threshold(LINE, theta=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    """An account of 10 with one release at ε = 1."""
    ledger = Ledger.create(path, epsilon=10)
    ledger.charge(1, POLICY, label="visits", release_id="r1")
    return ledger


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put sqlite3.connect back after `interrupt_statements`."""
    monkeypatch.setattr(store_module.sqlite3, "connect", sqlite3.connect)
    yield


def _raise(ledger: Ledger, level: int, epsilon: object, name: str = "r1") -> None:
    ledger.raise_level(name, level=level, epsilon=epsilon, label="finer")  # type: ignore[arg-type]


def _edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


# ------------------------------------------------------------------ the file


def _as_version_one(path: Path) -> None:
    """Take away what later versions added."""
    _edit(path, *undone(1), "PRAGMA user_version = 1")


def test_a_ledger_of_version_one_goes_on_as_it_was(ledger: Ledger, path: Path) -> None:
    before = ledger.history()
    _as_version_one(path)
    again = Ledger(path)
    assert (again.history(), again.spent, again.level("r1")) == (before, 1, (0, 1))
    _raise(again, 1, 2)
    assert Ledger(path).level("r1") == (1, 2)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_an_open_ledger_notices_that_the_file_is_of_version_one(ledger: Ledger, path: Path) -> None:
    """As after a backup was put back under a running program."""
    _as_version_one(path)
    _raise(ledger, 1, 2)
    assert ledger.level("r1") == (1, 2)


def test_a_damaged_ledger_of_version_one_is_refused_untouched(ledger: Ledger, path: Path) -> None:
    _as_version_one(path)
    _edit(path, "UPDATE account SET spent = '0/1'")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="its sums do not agree with its history"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_ledger_that_was_cut_inside_an_empty_page_is_refused(ledger: Ledger, path: Path) -> None:
    _edit(path, "CREATE TABLE spare (unused)")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(LedgerError) as caught:
        Ledger(path)
    assert str(caught.value) == (
        f"The ledger is damaged: '{path}' was cut short. Nothing was drawn or recorded. Restore a backup."
    )


@pytest.mark.parametrize("statement", ["UPDATE level SET level = 2", "DELETE FROM level"])
def test_levels_are_append_only(ledger: Ledger, path: Path, statement: str) -> None:
    _raise(ledger, 1, 2)
    with pytest.raises(sqlite3.IntegrityError, match="levels of a ledger are never"):
        _edit(path, statement)
    assert ledger.level("r1") == (1, 2)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM level WHERE level = 1",
        "UPDATE level SET level = 5 WHERE level = 2",
        "UPDATE level SET epsilon = '3/2' WHERE level = 2",
        "UPDATE level SET charge = 1 WHERE level = 2",
        "UPDATE level SET charge = 1",
        "UPDATE level SET entry = 5 WHERE level = 2",
    ],
)
def test_edited_levels_are_noticed(ledger: Ledger, path: Path, statement: str) -> None:
    _raise(ledger, 1, 2)
    _raise(ledger, 2, 3)
    ledger.charge(1, POLICY, label="visits", release_id="r2")
    _edit(path, "DROP TRIGGER level_never_changes", "DROP TRIGGER level_never_goes", statement)
    with pytest.raises(LedgerError) as caught:
        Ledger(path)
    what = "account 'default': the levels of release 'r1' do not add up"
    if statement.startswith("DELETE"):  # there are fewer of them than were counted
        what = f"'{path}', account 'default': its history is not the one that was recorded"
    assert str(caught.value) == f"The ledger is damaged: {what}. Nothing was drawn or recorded. Restore a backup."


def test_a_later_charge_under_the_same_id_is_no_level(ledger: Ledger, path: Path) -> None:
    _raise(ledger, 1, 2)
    ledger.charge(3, POLICY, label="another", release_id="r1")
    assert Ledger(path).level("r1") == (1, 2)
    _raise(ledger, 2, 2.5)
    assert (ledger.level("r1"), ledger.spent) == ((2, 2.5), 5.5)


# ------------------------------------------------------------------ crashes and processes


class _Fault(Exception):
    pass


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("fault", [_Fault, sqlite3.OperationalError, KeyboardInterrupt])
def test_a_fault_before_any_statement_leaves_charge_and_level_in_step(
    tmp_path: Path, fault: type[BaseException]
) -> None:
    number, struck = 0, True
    while struck:
        number += 1
        ledger = Ledger.create(tmp_path / f"{number}.db", epsilon=10)
        ledger.charge(1, POLICY, label="visits", release_id="r1")
        struck, acknowledged = False, False

        def strike(count: int, _: str, last: int = number) -> None:
            nonlocal struck
            if count == last:
                struck = True
                raise fault("injected")

        connect = sqlite3.connect
        interrupt_statements(strike)
        try:
            _raise(ledger, 1, 3)
            acknowledged = True
        except (fault, LedgerError):
            pass
        finally:
            store_module.sqlite3.connect = connect
        level, epsilon = Ledger(ledger.path).level("r1") or (None, None)
        assert (level, epsilon, ledger.spent) in ((0, 1, 1), (1, 3, 3))
        assert level == 1 or not acknowledged
    assert acknowledged
    assert number > 10  # it did walk through the statements


_RAISE_ALL = """
import sys
from sfumato.errors import InvalidInput
from sfumato.ledger import Ledger
ledger, made = Ledger(sys.argv[1], timeout=600), 0
while True:
    level, epsilon = ledger.level("r1")
    if level == 40:
        break
    try:
        ledger.raise_level("r1", level=level + 1, epsilon=epsilon + 1, label="finer")
        made += 1
    except InvalidInput:
        pass
print(made)
"""


@pytest.mark.slow
def test_processes_at_once_make_every_level_once(path: Path) -> None:
    ledger = Ledger.create(path, epsilon=1000)
    ledger.charge(1, POLICY, label="visits", release_id="r1")
    command = [sys.executable, "-c", _RAISE_ALL, str(path)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    made = [int(worker.communicate(timeout=900)[0]) for worker in workers]
    assert sum(made) == 40
    assert (ledger.level("r1"), ledger.spent) == ((40, 41), 41)


_DIE = """
import os, sqlite3, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from ledger_worker import interrupt_statements
from sfumato.ledger import Ledger
ledger, last = Ledger(Path(sys.argv[1])), int(sys.argv[2])
interrupt_statements(lambda count, _: os.kill(os.getpid(), 9) if count == last else None)
ledger.raise_level("r1", level=ledger.level("r1")[0] + 1, epsilon=ledger.level("r1")[1] + 1, label="finer")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs SIGKILL")
@pytest.mark.slow
@pytest.mark.parametrize("statement", [38, 45, 46, 48, 54, 55, 56, 57, 58, 59])
def test_killed_before_a_statement_charge_and_level_stay_in_step(path: Path, statement: int) -> None:
    Ledger.create(path, epsilon=1000).charge(1, POLICY, label="visits", release_id="r1")
    command = [sys.executable, "-c", _DIE, str(path), str(statement), str(Path(__file__).parent)]
    subprocess.run(command, capture_output=True, check=False)
    ledger = Ledger(path)
    level, epsilon = ledger.level("r1") or (None, None)
    assert (level, epsilon, ledger.spent) in ((0, 1, 1), (1, 2, 2))
    _raise(ledger, int(level or 0) + 1, 5)


@pytest.mark.usefixtures("restored")
def test_opening_takes_as_many_statements_for_many_releases_as_for_few(path: Path) -> None:
    ledger, seen, counts = Ledger.create(path, epsilon=1000), [], []
    interrupt_statements(lambda _, statement: seen.append(statement))
    for number in range(20):
        ledger.charge(1, POLICY, label="visits", release_id=f"r{number}")
        _raise(ledger, 1, 2, f"r{number}")
        before = len(seen)
        Ledger(path)
        counts.append(len(seen) - before)
    assert len(set(counts)) == 1
    assert counts[0] > 5


def test_the_level_of_a_release_waits_for_a_charge_under_way(ledger: Ledger, path: Path) -> None:
    """Who lost sight of a charge must not draw anew what it may have paid for."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        hasty = Ledger.__new__(Ledger)
        hasty.dataset, hasty._store = ledger.dataset, store_module.Store(path, timeout=0.05)
        assert hasty.remaining == 9
        with pytest.raises(LedgerError, match="Another process holds the ledger"):
            hasty.level("r1")
        other.execute("ROLLBACK")
    assert hasty.level("r1") == (0, 1)
