"""A server that hangs: given up in time, a commit of unknown fate over-charges at worst, and nobody else waits for it.

The server's side of a connection is stopped by a signal, so that it says nothing and ends nothing. Where a test would
hang if the library did, it gives up after ten minutes; none depends on how fast anything is.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_worker import POLICY, charge_once

import sfumato as sf
from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, gates, patience
from sfumato.ledger import postgres as postgres_module

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")
LONG = 600
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # threads are what these are about


class Stopped:
    """Stops the backend of every connection before the first statement that begins so, while it is armed."""

    def __init__(self) -> None:
        self.before: str | None = None
        self.pids: list[int] = []
        self.happened = threading.Event()

    def seen(self, raw: Any, statement: str) -> None:
        if self.before is not None and statement.lstrip().startswith(self.before):
            self.before = None
            self.pids.append(raw.info.backend_pid)
            os.kill(self.pids[-1], signal.SIGSTOP)
            self.happened.set()

    def go_on(self) -> None:
        while self.pids:
            os.kill(self.pids.pop(), signal.SIGCONT)


@pytest.fixture
def stopped(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stopped]:
    import psycopg

    stopped = Stopped()
    execute = psycopg.Connection.execute

    def watched(self: Any, query: Any, *rest: Any, **more: Any) -> Any:
        stopped.seen(self, query)
        return execute(self, query, *rest, **more)

    monkeypatch.setattr(psycopg.Connection, "execute", watched)
    yield stopped
    stopped.go_on()


def _refusal(act: Callable[[], object]) -> str:
    with pytest.raises(LedgerError) as caught:
        act()
    return str(caught.value)


@pytest.fixture
def patient(url: str, stopped: Stopped, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """One that waits for 600 seconds. Once a server is stopped, the clock that it looks at leaps at every look."""
    now = [0.0]

    def leaping() -> float:
        now[0] += 1000.0 if stopped.pids else 0.0
        return now[0]

    monkeypatch.setattr(patience, "monotonic", leaping)
    return Ledger.create(url, epsilon=10, timeout=600)


# ------------------------------------------------------------------ given up in time


@pytest.mark.parametrize("statement", ["BEGIN ISOLATION LEVEL READ COMMITTED", "INSERT INTO entry", "UPDATE account"])
def test_a_server_that_hangs_is_given_up_and_nothing_is_charged(
    patient: Ledger, stopped: Stopped, statement: str
) -> None:
    stopped.before = statement
    assert _refusal(lambda: charge_once(patient)) == (
        f"The ledger '{patient.place}' could not be used: the server did not answer within 603 seconds. Nothing was "
        "drawn or recorded. Look after the server and the network, or open the ledger with a longer timeout."
    )
    assert stopped.happened.is_set()
    stopped.go_on()
    assert Ledger(patient.place).spent == 0


def test_a_reading_that_is_not_answered_recorded_nothing(patient: Ledger, stopped: Stopped) -> None:
    stopped.before = "COMMIT"
    assert _refusal(lambda: patient.remaining).endswith(
        "within 603 seconds. Nothing was drawn or recorded. Look after the server and the network, or open the ledger "
        "with a longer timeout."
    )


def test_a_commit_that_is_not_answered_may_be_spent(patient: Ledger, stopped: Stopped) -> None:
    write = postgres_module.PostgresStore.write

    def armed(self: Any) -> Any:
        stopped.before = "COMMIT"
        return write(self)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(postgres_module.PostgresStore, "write", armed)
        said = _refusal(lambda: charge_once(patient))
    assert said == (
        f"The ledger '{patient.place}' could not be used: the server did not answer the COMMIT within 603 seconds. "
        "What was charged may be spent, and nothing was drawn. Look after the server; what it has kept stands in the "
        "ledger's history."
    )
    stopped.go_on()
    assert Ledger(patient.place).spent == Fraction(1, 100)  # the server got it, and opening waits for it


def test_a_level_of_unknown_fate_is_one_noise_for_one_charge(patient: Ledger, stopped: Stopped, tmp_path: Path) -> None:
    """While nobody knows whether it was charged, nothing is drawn anew; then what was drawn is handed out."""
    vault = sf.Vault(tmp_path / "secrets", key=tmp_path / "key")
    first = sf.plan(POLICY, sf.ranges(), 1, mechanism="identity").publish([5, 0, 3, 2, 7], ledger=patient, vault=vault)
    raised = Ledger.raise_level

    def armed(self: Any, *given: Any, **named: Any) -> Any:
        stopped.before = "COMMIT"
        return raised(self, *given, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Ledger, "raise_level", armed)
        assert "did not answer the COMMIT" in _refusal(lambda: first.refine(2, ledger=patient, vault=vault))
    staged = vault.staged(first.id)
    assert staged is not None
    pids, stopped.pids = stopped.pids, []
    patient._store.timeout = 0.1  # type: ignore[attr-defined]
    assert "Another process holds the ledger" in _refusal(lambda: first.refine(2, ledger=patient, vault=vault))
    stopped.pids = pids
    stopped.go_on()
    finer = first.refine(2, ledger=Ledger(patient.place), vault=vault)
    assert finer.measured is not None
    assert np.array_equal(finer.measured, staged[0].measured)
    assert (patient.spent, patient.level(first.id)) == (2, (1, 2))


def test_a_server_that_accepts_and_says_nothing_is_given_up() -> None:
    """A port behind which nobody answers."""
    pytest.importorskip("psycopg")
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        url = f"postgresql://u@127.0.0.1:{listening.getsockname()[1]}/x"
        said = _refusal(lambda: Ledger(f"{url}?connect_timeout=2", timeout=0.1))
    assert said.startswith(f"The ledger '{url}' could not be used: connection timeout expired. Nothing was drawn.")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 8),
        ({"host": "a"}, 8),
        ({"host": "a,b,c"}, 3),
        ({"host": ",".join("abcdefgh")}, 2),
        ({"connect_timeout": "3"}, 3),
        ({"connect_timeout": "900"}, 8),
        ({"connect_timeout": "0"}, 8),
        ({"connect_timeout": "-1"}, 8),
    ],
)
def test_connecting_has_its_limit_whatever_the_url_says(given: dict[str, Any], seconds: int) -> None:
    assert postgres_module._seconds_to_connect(given, 8.0) == seconds


def test_an_answer_that_is_long_in_coming_is_waited_for_as_long_as_it_comes() -> None:
    """What counts is silence: each look at which the socket had something begins anew."""
    now = [0.0]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(patience, "monotonic", lambda: now[0])

        def driver() -> Any:
            for _ in range(100):
                yield "R"
            return "all of it"

        steps = patience._impatient(driver(), 5.0)
        assert next(steps) == "R"
        with pytest.raises(StopIteration) as ended:
            while True:
                now[0] += 4.9
                steps.send(1)
        assert ended.value.value == "all of it"
        steps = patience._impatient(driver(), 5.0)
        next(steps)
        now[0] += 4.9
        steps.send(0)
        now[0] += 0.2
        with pytest.raises(patience.Overdue):
            steps.send(0)


# ------------------------------------------------------------------ nobody else waits


@pytest.fixture
def hanging(url: str, stopped: Stopped) -> Iterator[threading.Thread]:
    """A charge that waits for a stopped server, for ten minutes if it must."""
    ledger = Ledger.create(url, epsilon=10, timeout=600)
    stopped.before = "INSERT INTO entry"
    thread = threading.Thread(target=charge_once, args=(ledger,))
    thread.start()
    assert stopped.happened.wait(LONG)
    yield thread
    stopped.go_on()
    thread.join(LONG)
    assert ledger.spent == Fraction(1, 100)


def _in_time(act: Callable[[], object]) -> None:
    done = threading.Thread(target=act, daemon=True)
    done.start()
    done.join(LONG)
    assert not done.is_alive()


def test_a_charge_to_a_file_does_not_wait_for_a_server_that_hangs(hanging: threading.Thread, tmp_path: Path) -> None:
    _in_time(lambda: charge_once(Ledger.create(tmp_path / "budget.db", epsilon=1)))
    assert Ledger(tmp_path / "budget.db").spent == Fraction(1, 100)
    assert hanging.is_alive()


def test_a_charge_to_another_database_does_not_wait(hanging: threading.Thread, server: Any) -> None:
    other = server.url(server.fresh())
    _in_time(lambda: charge_once(Ledger.create(other, epsilon=1)))
    assert Ledger(other).spent == Fraction(1, 100)
    assert hanging.is_alive()


def test_another_thread_gives_up_in_its_own_time(
    hanging: threading.Thread, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "MARGIN", 0.1)
    assert _refusal(lambda: Ledger(url, timeout=0.1)) == (
        f"The ledger '{url}' could not be used: another thread of this program was using it for 0.2 seconds. Nothing "
        "was drawn or recorded. Try again when it has finished, or open the ledger with a longer timeout."
    )
    assert hanging.is_alive()


@forks
def test_a_fork_does_not_wait_and_the_child_keeps_no_connection(
    hanging: threading.Thread, url: str, server: Any, tmp_path: Path
) -> None:
    """The child charges to ledgers of its own, and the parent's connection is not in it."""
    other, path = server.url(server.fresh()), tmp_path / "budget.db"
    results: list[int] = []
    (handle,) = gates._SOCKETS

    def fork() -> None:
        child = os.fork()
        if child == 0:
            try:
                os.fstat(handle)
            except OSError:
                charge_once(Ledger.create(path, epsilon=1))
                charge_once(Ledger.create(other, epsilon=1))
                os._exit(0)
            os._exit(1)
        results.append(os.waitpid(child, 0)[1])

    _in_time(fork)
    assert results == [0]
    assert hanging.is_alive()
    assert Ledger(path).spent == Ledger(other).spent == Fraction(1, 100)


@forks
def test_a_fork_waits_for_a_file(tmp_path: Path) -> None:
    """SQLite must not see its own connections in a child."""
    store = Ledger.create(tmp_path / "budget.db", epsilon=1)._store
    forked = threading.Event()

    def fork() -> None:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        forked.set()

    with store.read():
        thread = threading.Thread(target=fork)
        thread.start()
        assert not forked.wait(0.3)
    thread.join(LONG)
    assert forked.is_set()


def test_two_files_have_two_gates_and_one_file_has_one(tmp_path: Path) -> None:
    first, second = (Ledger.create(tmp_path / name, epsilon=1)._store for name in ("a.db", "b.db"))
    (tmp_path / "again.db").symlink_to(tmp_path / "a.db")
    got: list[str] = []

    def use(path: Path) -> None:
        with gates.file_gate(path):
            got.append(path.name)

    with first.read():
        _in_time(lambda: use(second.path))  # type: ignore[attr-defined]
        waiting = threading.Thread(target=use, args=(tmp_path / "again.db",))
        waiting.start()
        waiting.join(0.3)
        assert got == ["b.db"]
    waiting.join(LONG)
    assert got == ["b.db", "again.db"]
