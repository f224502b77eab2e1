"""How long does a step of a stream take, at the start and after a million steps, and with eight processes at once?

A step is `StreamAccount.charge`: read the window, check, record, and wait for the disk. The floor is the disk itself:
a transaction of one page in the same file, committed as durably. The million steps in between are written by the code
that writes a step, in large transactions instead of one each; the steps that are timed are ordinary ones.

    python bench/stream_ledger.py [--steps 1000000] [--timed 300]
    python bench/stream_ledger.py --url postgresql://user@host/database     # an empty database of a server
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from statistics import median

from _report import table, write_json

from sfumato.domain import Line
from sfumato.errors import InvalidInput
from sfumato.ledger import Ledger, Step, StreamAccount, stream_rows
from sfumato.policies import threshold
from sfumato.promise import Epsilon

POLICY = threshold(Line(0, 1, cells=256), theta=4)
WINDOWS = (7, 24, 1000)
PROCESSES = 8


def charge(stream: StreamAccount, step: int) -> None:
    stream.charge(step, Fraction(1, stream.window.size), label="hourly counts", release_id=f"{step:032x}")


def milliseconds(numbers: range, *acts: Callable[[int], object]) -> list[float]:
    """What one call of each act takes, the median over the numbers. They take turns, and so share the disk."""
    taken: list[list[float]] = [[] for _ in acts]
    for number in numbers:
        for times_of_act, act in zip(taken, acts, strict=True):
            begun = time.perf_counter()
            act(number)
            times_of_act.append(1000 * (time.perf_counter() - begun))
    return [median(times_of_act) for times_of_act in taken]


def durable_transaction(stream: StreamAccount) -> None:
    """What no step can be faster than: open, write one page, commit, close."""
    with stream._store.write() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS scratch (value INTEGER)")
        connection.execute("INSERT INTO scratch VALUES (1)")


def fill(stream: StreamAccount, first: int, stop: int, batch: int = 50_000) -> None:
    """Steps as `charge` writes them, without waiting for the disk after each."""
    share = Epsilon(Fraction(1, stream.window.size))
    for begin in range(first, stop, batch):
        with stream._store.write() as connection:
            found = stream._found(connection)
            for number in range(begin, min(begin + batch, stop)):
                step = Step(time=number, epsilon=share, label="hourly counts", release_id=f"{number:032x}", level=0)
                stream_rows.insert_step(connection, found, stream.name, number, step)


def times(place: str, window: int, steps: int, timed: int) -> dict[str, object]:
    ledger = Ledger.create(place, epsilon=1)
    stream = ledger.stream(f"window-{window}", epsilon=1, window=window, policy=POLICY)

    def step(number: int) -> None:
        charge(stream, number)

    def floor(_: int) -> None:
        durable_transaction(stream)

    fill(stream, 0, window)  # the window is full from the start, so that both ends do the same work
    first, floor_first = milliseconds(range(window, window + timed), step, floor)
    fill(stream, window + timed, steps)
    last, floor_last = milliseconds(range(steps, steps + timed), step, floor)
    (reading,) = milliseconds(range(timed), lambda _: stream.remaining())
    (opening,) = milliseconds(range(1), lambda _: Ledger(place))
    return {
        "window": window,
        "steps": len(stream),
        "ms a step, first": first,
        "disk alone": floor_first,
        "ms a step, last": last,
        "disk alone then": floor_last,
        "ms, remaining()": reading,
        "s to open": opening / 1000,
        "MB": None if ledger.path is None else round(ledger.path.stat().st_size / 1e6),
    }


def rival(place: str, steps: int) -> None:
    """Charge the next step, against the others, until there are so many. Prints its beginning, end and own steps."""
    stream, got = Ledger(place).stream("together"), 0
    begun, number = time.time(), 0
    while number < steps:
        try:
            charge(stream, number)
            got += 1
        except InvalidInput:
            pass  # another one took it
        number = int(stream.last().time) + 1
    print(begun, time.time(), got)


def together(place: str, steps: int) -> dict[str, object]:
    stream = Ledger(place).stream("together", epsilon=1, window=24, policy=POLICY)
    command = [sys.executable, __file__, "--rival", place, str(steps)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    lines = [worker.communicate()[0].split() for worker in workers]
    begun, ended = min(float(line[0]) for line in lines), max(float(line[1]) for line in lines)
    spent = [step.epsilon for step in stream.entries()]
    fullest = max(sum(spent[max(end - 24, 0) : end], Fraction(0)) for end in range(1, len(spent) + 1))
    return {
        "processes": PROCESSES,
        "steps": len(spent),
        "acknowledged": sum(int(line[2]) for line in lines),
        "steps a second": len(spent) / (ended - begun),
        "fullest window": float(fullest),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10**6)
    parser.add_argument("--timed", type=int, default=300)
    parser.add_argument("--together", type=int, default=2000)
    parser.add_argument("--url", help="a PostgreSQL server in place of files")
    parser.add_argument("--rival", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rival:
        rival(options.rival[0], int(options.rival[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            times(options.url or f"{folder}/{window}.db", window, options.steps, options.timed) for window in WINDOWS
        ]
        rivals = together(options.url or f"{folder}/together.db", options.together)
    table(rows)
    print()
    table([rivals])
    name = "stream_ledger_server" if options.url else "stream_ledger"
    print(f"\nwritten to {write_json(name, {'steps': rows, 'together': rivals})}")


if __name__ == "__main__":
    main()
