"""Crashes, processes and forks: over-charged at worst, never under-charged, never overspent."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_worker import POLICY, charge_once, interrupt_statements, opened

from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.ledger import Ledger
from sfumato.ledger import store as store_module

ONE = Fraction(1, 100)
WORKER = Path(__file__).with_name("ledger_worker.py")
posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put sqlite3.connect back after `interrupt_statements`."""
    monkeypatch.setattr(store_module.sqlite3, "connect", sqlite3.connect)


def _start(action: str, path: Path, *numbers: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), action, str(path), *map(str, numbers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _output(process: subprocess.Popen[str]) -> list[int]:
    out, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors
    return [int(line) for line in out.split()]


# ------------------------------------------------------------------ faults between statements


class _Fault(Exception):
    pass


def _faulty_run(path: Path, number: int, fault: type[BaseException]) -> tuple[bool, bool]:
    """Open and charge with a fault before the n-th statement: (was the charge acknowledged, did the fault strike)."""
    struck = []

    def strike(count: int, statement: str) -> None:
        if count == number:
            struck.append(statement)
            raise fault("injected")

    connect = sqlite3.connect
    interrupt_statements(strike)
    try:
        charge_once(opened(path, 1))
        return True, bool(struck)
    except (fault, LedgerError):
        return False, bool(struck)
    finally:
        store_module.sqlite3.connect = connect


@pytest.mark.slow  # a ledger for every statement
@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("fault", [_Fault, sqlite3.OperationalError, KeyboardInterrupt])
@pytest.mark.parametrize("exists", [False, True])
def test_a_fault_before_any_statement_never_loses_an_acknowledged_charge(
    tmp_path: Path, fault: type[BaseException], exists: bool
) -> None:
    number = 0
    while True:
        number += 1
        path = tmp_path / f"{number}.db"
        if exists:
            Ledger.create(path, epsilon=1)
        acknowledged, struck = _faulty_run(path, number, fault)
        ledger = opened(path, 1)
        assert acknowledged * ONE <= ledger.spent <= ONE
        charge_once(ledger)  # and it works on
        if not struck:
            break
    assert acknowledged
    assert number > 15  # it did walk through the statements
    assert {p.suffix for p in tmp_path.iterdir()} == {".db"}  # no journal and no draft is left


@pytest.mark.usefixtures("restored")
def test_a_fault_before_the_commit_records_nothing(path: Path) -> None:
    ledger = Ledger.create(path, epsilon=1)
    charge_once(ledger)
    before = ledger.history()

    def strike(_: int, statement: str) -> None:
        if statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")

    connect = sqlite3.connect
    # `charge` reads first and writes then; the read commits as well, so only the charge's own commit is
    # struck.
    real_account = ledger._account()
    ledger._account = lambda: real_account  # type: ignore[method-assign]
    interrupt_statements(strike)
    with pytest.raises(LedgerError) as caught:
        charge_once(ledger)
    store_module.sqlite3.connect = connect
    assert str(caught.value) == (
        f"The ledger '{path}' could not be used: disk I/O error (OperationalError). Nothing was drawn. Check the file."
    )
    assert ledger.history() == before


# ------------------------------------------------------------------ killed


@posix
@pytest.mark.slow
def test_killed_before_any_statement_the_ledger_is_whole_and_nothing_acknowledged_is_lost(path: Path) -> None:
    acknowledged = _output(_start("die_at_each_statement", path))
    assert len(acknowledged) > 15
    assert acknowledged[-1] == 1
    ledger = Ledger(path, epsilon=1)
    releases = [entry for entry in ledger.history() if entry.kind == "release"]
    assert ledger.spent == len(releases) * ONE
    assert sum(acknowledged) * ONE <= ledger.spent <= len(acknowledged) * ONE


@posix
@pytest.mark.slow
def test_killed_at_random_moments_the_ledger_never_forgets_and_never_overspends(path: Path) -> None:
    (acknowledged,) = _output(_start("die_at_random", path, 60))
    ledger = Ledger(path, epsilon=1)
    releases = [entry for entry in ledger.history() if entry.kind == "release"]
    assert ledger.spent == len(releases) * ONE
    assert acknowledged * ONE <= ledger.spent <= 1
    assert acknowledged > 0


# ------------------------------------------------------------------ together


@pytest.mark.slow
def test_processes_at_once_spend_exactly_the_total(path: Path) -> None:
    workers = [_start("spend_all", path) for _ in range(3)]  # they also race to create it
    assert sum(sum(_output(worker)) for worker in workers) == 100
    ledger = Ledger(path)
    assert ledger.spent == 1
    assert len(ledger.history()) == 101


def test_threads_at_once_spend_exactly_the_total(path: Path) -> None:
    ledger, acknowledged = Ledger.create(path, epsilon=0.2), []

    def spend() -> None:
        try:
            while True:
                charge_once(ledger)
                acknowledged.append(1)
        except BudgetExceeded:
            return

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(acknowledged) == 20
    assert ledger.remaining == 0


def test_two_first_releases_at_once_agree_on_the_terms(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process's first release arrives between the weighing and the recording of ours."""
    ledger, rival = Ledger.create(path, epsilon=1), Ledger(path)
    module = sys.modules[Ledger.__module__]
    weigh = module.rate_of

    def overtaken(*terms: object, **left_out: object) -> int:
        monkeypatch.setattr(module, "rate_of", weigh)
        rival.charge("0.01", POLICY, "person", max_per_entity=2, label="rival", release_id="r1")
        return int(weigh(*terms, **left_out))

    monkeypatch.setattr(module, "rate_of", overtaken)
    receipt = ledger.charge("0.01", POLICY, max_per_entity=3, label="ours", release_id="r2")
    assert receipt.entry.rate == 3  # weighed again, for the account of persons it has become
    assert ledger.spent == 4 * ONE


@posix
@pytest.mark.slow
def test_a_fork_beside_a_charging_thread_loses_nothing(path: Path) -> None:
    (acknowledged,) = _output(_start("fork_beside_a_thread", path, 40))
    assert Ledger(path).spent == acknowledged * ONE
