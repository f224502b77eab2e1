"""Helper programs for the ledger's tests, run as processes of their own: `python ledger_worker.py ACTION PATH …`."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable

from sfumato.domain import Line
from sfumato.errors import BudgetExceeded, LedgerCreated
from sfumato.ledger import Ledger
from sfumato.ledger import store as store_module
from sfumato.policies import threshold

POLICY = threshold(Line(0, 1, cells=5), theta=1)
PATIENCE = 600  # seconds to wait for the others: a slow disk or a busy machine is no failure


def opened(path: str | os.PathLike[str], epsilon: float) -> Ledger:
    """Open a ledger that another process may have made or may be making; make it where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LedgerCreated)
        return Ledger(path, epsilon=epsilon, timeout=PATIENCE)


def charge_once(ledger: Ledger) -> None:
    ledger.charge("0.01", POLICY, label="visits", release_id=f"{os.getpid()}")


def interrupt_statements(interrupt: Callable[[int, str], None]) -> None:
    """Call `interrupt(number, statement)` before every statement from now on, and on every close."""
    connect, count = sqlite3.connect, [0]

    class Interrupted(sqlite3.Connection):
        def execute(self, statement: str, *rest: object) -> sqlite3.Cursor:  # type: ignore[override]
            count[0] += 1
            interrupt(count[0], statement)
            return super().execute(statement, *rest)  # type: ignore[arg-type]

        def close(self) -> None:
            count[0] += 1
            try:
                interrupt(count[0], "close")
            finally:
                super().close()

    store_module.sqlite3.connect = lambda *a, **k: connect(*a, **k, factory=Interrupted)  # type: ignore[assignment]


def interrupt_server(interrupt: Callable[[int, str], None]) -> None:
    """The same where a PostgreSQL server keeps the ledger."""
    import psycopg

    connect, count = psycopg.connect, [0]

    class Interrupted(psycopg.Connection):
        def execute(self, query: str, *rest: object, **more: object) -> psycopg.Cursor:  # type: ignore[override]
            count[0] += 1
            interrupt(count[0], query)
            return super().execute(query, *rest, **more)  # type: ignore[arg-type, call-overload]

        def close(self) -> None:
            count[0] += 1
            try:
                interrupt(count[0], "close")
            finally:
                super().close()

    assert connect == psycopg.Connection.connect
    psycopg.connect = Interrupted.connect  # type: ignore[assignment]


def spend_all(path: str) -> None:
    """Charge until nothing is left, and print how often that went well."""
    ledger, done = opened(path, 1), 0
    try:
        while True:
            charge_once(ledger)
            done += 1
    except BudgetExceeded:
        print(done)


def die_at_each_statement(path: str) -> None:
    """Fork a child for n = 1, 2, …, which opens the ledger, charges once, and is killed before its n-th statement.

    Prints a line for each child: whether its charge was acknowledged. Ends with the first child that lived.
    """
    for number in range(1, 1000):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:

            def die(count: int, _: str, last: int = number) -> None:
                if count == last:
                    os.kill(os.getpid(), signal.SIGKILL)

            (interrupt_server if "://" in path else interrupt_statements)(die)
            charge_once(opened(path, 1))
            os.write(writer, b"x")
            os._exit(0)
        os.close(writer)
        acknowledged = os.read(reader, 1) == b"x"
        os.close(reader)
        _, status = os.waitpid(child, 0)
        print(int(acknowledged), flush=True)
        if os.WIFEXITED(status):
            return


def die_at_random(path: str, rounds: int) -> None:
    """Fork children that charge without pause, and kill each after a random moment. Prints the acknowledgements."""
    acknowledged = 0
    for number in range(rounds):
        reader, writer = os.pipe()
        children = []
        for _ in range(2):
            child = os.fork()
            if child == 0:
                ledger = opened(path, 1)
                while True:
                    try:
                        charge_once(ledger)
                    except BudgetExceeded:
                        os._exit(0)
                    os.write(writer, b"x")
            children.append(child)
        os.close(writer)
        if number % 3 == 0:  # however busy the machine is, some charges are acknowledged
            acknowledged += len(os.read(reader, 1))
        time.sleep(random.uniform(0, 0.03))
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as pipe:
            acknowledged += len(pipe.read())
    print(acknowledged)


def fork_beside_a_thread(path: str, forks: int) -> None:
    """Fork again and again while a thread charges; each child charges once. Prints the acknowledged charges."""
    import threading

    ledger, stop, done = Ledger.create(path, epsilon=1000, timeout=PATIENCE), threading.Event(), [0]

    def spend() -> None:
        while not stop.is_set():
            charge_once(ledger)
            done[0] += 1
            time.sleep(0.001)  # locks are not fair: without a pause the forks would wait for ever

    thread = threading.Thread(target=spend)
    thread.start()
    for _ in range(forks):
        child = os.fork()
        if child == 0:
            charge_once(ledger)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        done[0] += status == 0
    stop.set()
    thread.join()
    print(done[0])


if __name__ == "__main__":
    action, path, *numbers = sys.argv[1:]
    {
        "spend_all": spend_all,
        "die_at_each_statement": die_at_each_statement,
        "die_at_random": die_at_random,
        "fork_beside_a_thread": fork_beside_a_thread,
    }[action](path, *map(int, numbers))
