"""A ledger on a PostgreSQL server under stress: durable or refused, one writer at a time, whole after any death."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledger_worker import POLICY, charge_once
from postgres_server import Server

from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.ledger import Ledger, patience
from sfumato.ledger import postgres as postgres_module
from sfumato.ledger.postgres import PostgresStore

WORKER = Path(__file__).with_name("ledger_worker.py")


def _refusal(kind: type[Exception], act: Any) -> str:
    with pytest.raises(kind) as caught:
        act()
    return str(caught.value)


# ------------------------------------------------------------------ durable, or refused


def test_every_commit_waits_for_the_disk(server: Server, database: str, url: str) -> None:
    """Even where the server's default is not to wait."""
    server.execute("postgres", f"ALTER DATABASE {database} SET synchronous_commit = off")
    Ledger.create(url, epsilon=1)
    with PostgresStore(url, timeout=30).write() as connection:
        assert connection.execute("SELECT current_setting('synchronous_commit')").fetchone() == ("on",)
    server.execute("postgres", f"ALTER DATABASE {database} SET synchronous_commit = remote_apply")
    with PostgresStore(url, timeout=30).write() as connection:
        assert connection.execute("SELECT current_setting('synchronous_commit')").fetchone() == ("remote_apply",)


@pytest.mark.slow
def test_a_server_that_forgets_in_a_power_cut_is_refused(own_server: Server) -> None:
    own_server.execute("postgres", "ALTER SYSTEM SET fsync = off")
    own_server.stop("fast")
    own_server.start()
    url = own_server.url(own_server.fresh())
    assert _refusal(LedgerError, lambda: Ledger.create(url, epsilon=1)) == (
        f"The server of '{url}' cannot keep a ledger (fsync off, encoding UTF8). Nothing was drawn or recorded. Spent "
        "budget must outlive a power cut: use a server with fsync = on, and a database with the encoding UTF8."
    )


def test_a_database_that_cannot_hold_every_letter_is_refused(server: Server) -> None:
    server.execute("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    url = server.url("latin")
    assert _refusal(LedgerError, lambda: Ledger.create(url, epsilon=1)) == (
        f"The server of '{url}' cannot keep a ledger (fsync on, encoding LATIN1). Nothing was drawn or recorded. Spent "
        "budget must outlive a power cut: use a server with fsync = on, and a database with the encoding UTF8."
    )


def test_a_server_that_rolls_back_is_not_believed(server: Server, database: str, url: str) -> None:
    """An error that somebody swallows turns the COMMIT into a rollback, which the server reports as a success."""
    Ledger.create(url, epsilon=1)

    def swallow() -> None:
        with PostgresStore(url, timeout=30).write() as connection:
            connection.execute("UPDATE ledger SET version = version")
            with pytest.raises(postgres_module._driver().Error):
                connection.execute("SELECT 1/0")

    assert _refusal(LedgerError, swallow) == (
        f"The ledger '{url}' could not be used: the server answered ROLLBACK instead of COMMIT. Nothing was drawn or "
        "recorded. Try again."
    )


@pytest.mark.slow
def test_a_commit_that_a_standby_never_got_is_not_believed(own_server: Server) -> None:
    """Whoever cancels the wait for a synchronous standby turns the COMMIT into one with a warning."""
    url = own_server.url(own_server.fresh())
    ledger = Ledger.create(url, epsilon=1)
    own_server.execute("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
    waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    done = threading.Event()

    def cancel() -> None:
        while not done.wait(0.05):
            own_server.execute("postgres", f"SELECT pg_cancel_backend(pid) {waiting}")

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        said = ""
        while not said:  # the server takes a moment to read its settings
            try:
                charge_once(ledger)
            except LedgerError as error:
                said = str(error)
    finally:
        done.set()
        thread.join()
    assert said == (
        f"The ledger '{url}' committed with a warning: canceling wait for synchronous replication due to user request. "
        "What was charged is spent, and nothing was drawn: a server that takes over may not know of it. Look after the "
        "standby."
    )


@pytest.mark.slow
def test_what_was_acknowledged_outlives_a_crash_of_the_server(own_server: Server) -> None:
    url = own_server.url(own_server.fresh())
    ledger, done = Ledger.create(url, epsilon=100), []

    def spend() -> None:
        try:
            while True:
                charge_once(ledger)
                done.append(True)
        except LedgerError:
            pass

    thread = threading.Thread(target=spend)
    thread.start()
    while len(done) < 20:
        thread.join(0.01)
    own_server.stop("immediate")
    thread.join()
    own_server.start()
    again = Ledger(url)
    assert len(done) <= 100 * again.spent <= len(done) + 1  # the last one may be kept without an answer
    assert len(again.history()) == 1 + 100 * again.spent


# ------------------------------------------------------------------ alone


@pytest.mark.slow
def test_many_processes_never_overspend_together(url: str) -> None:
    """100 charges of 0.01 fit in 1, whoever makes them."""
    Ledger.create(url, epsilon=1)
    known = [str(WORKER.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, known))}
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), "spend_all", url], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(4)
    ]
    done = [int(worker.communicate()[0]) for worker in workers]
    assert sum(done) == 100
    assert (Ledger(url).remaining, len(Ledger(url).history())) == (0, 101)


def test_a_writer_waits_for_the_lock_and_gives_up_in_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "MARGIN", 600.0)  # a server that is busy with others is not silent
    ledger = Ledger.create(url, epsilon=1)
    hasty = Ledger(url, timeout=0.2)
    released = threading.Event()
    held = threading.Event()

    def hold() -> None:
        with postgres_module._driver().connect(url) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", postgres_module.LOCK)
            held.set()
            released.wait(600)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(600)
    try:
        assert hasty.remaining == 1  # readers do not wait
        with pytest.raises(LedgerError, match="Another process holds the ledger"):
            hasty.level("r")  # what decides about noise does: a charge under way may be the one that it would undo
        assert _refusal(LedgerError, lambda: charge_once(hasty)) == (
            f"The ledger '{url}' could not be used: canceling statement due to lock timeout (55P03). Nothing was "
            "drawn. Another process holds the ledger. Try again when it has finished."
        )
    finally:
        released.set()
        thread.join()
    charge_once(ledger)
    assert ledger.spent == Fraction(1, 100)


def test_what_waited_for_the_lock_sees_what_was_spent_meanwhile(url: str) -> None:
    """The snapshot of a strict isolation level would be older than the lock, and both would fit."""
    first, second, outcome = Ledger.create(url, epsilon=1), Ledger(url), []
    blocker = postgres_module._driver().connect(url)
    blocker.execute("SELECT pg_advisory_xact_lock(%s, %s)", postgres_module.LOCK)

    def spend(ledger: Ledger) -> None:
        try:
            ledger.charge("0.6", POLICY, label="visits", release_id="r")
            outcome.append("kept")
        except BudgetExceeded:
            outcome.append("refused")

    threads = [threading.Thread(target=spend, args=(ledger,)) for ledger in (first, second)]
    for thread in threads:
        thread.start()
    blocker.commit()
    blocker.close()
    for thread in threads:
        thread.join()
    assert sorted(outcome) == ["kept", "refused"]


def test_a_client_that_goes_silent_does_not_keep_the_lock(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(url, epsilon=1)
    monkeypatch.setattr(postgres_module, "SILENT", 1)
    connection = postgres_module._driver().connect(url, autocommit=True)
    PostgresStore(url, timeout=30)._begin(postgres_module._Session(connection), "write")
    monkeypatch.undo()  # what charges now may take its time
    charge_once(ledger)  # waits until the server has ended the other's transaction
    with pytest.raises(postgres_module._driver().Error):
        connection.execute("SELECT 1")
    connection.close()
    assert ledger.spent == Fraction(1, 100)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
def test_killed_before_any_statement_the_ledger_stays_whole(url: str) -> None:
    """A child for every n, killed before its n-th statement: an acknowledged charge is there, another one may be."""
    Ledger.create(url, epsilon=1)
    run = subprocess.run(
        [sys.executable, str(WORKER), "die_at_each_statement", url], capture_output=True, text=True, check=True
    )
    acknowledged = [line == "1" for line in run.stdout.split()]
    assert len(acknowledged) > 30  # opening and charging take that many statements
    assert acknowledged[-1] and not any(acknowledged[:-3])
    ledger = Ledger(url)
    charges = len(ledger.history()) - 1
    assert sum(acknowledged) <= charges <= sum(acknowledged) + 2
    assert ledger.spent == Fraction(charges, 100)
