"""Helper programs for the streams' tests, run as processes of their own: `python stream_worker.py ACTION PATH …`."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from pathlib import Path

from ledger_worker import PATIENCE, interrupt_statements

from sfumato.errors import BudgetExceeded, InvalidInput
from sfumato.ledger import Ledger, StreamAccount


def next_step(stream: StreamAccount) -> int:
    last = stream.last()
    return 0 if last is None else int(last.time) + 1  # type: ignore[arg-type]


def race(path: Path, steps: int) -> None:
    """Charge 1/3 at one step after the other, against whoever else does, and print which steps this process got."""
    stream = Ledger(path, timeout=PATIENCE).stream("visits")
    while (step := next_step(stream)) < steps:
        try:
            stream.charge(step, "1/3", label="visits", release_id=f"{os.getpid()}")
            print(step)
        except InvalidInput:
            pass  # the other process was first


def overspend(path: Path, steps: int) -> None:
    """Ask for more than there is, in rivalry: charge 2/5 wherever it fits, and raise what can be raised.

    The step just charged is raised as well as the one before, so that a process whose rival comes too late does it all.
    """
    stream = Ledger(path, timeout=PATIENCE).stream("visits")
    while (step := next_step(stream)) < steps:
        for act in (
            lambda: stream.charge(step, "2/5", label="visits", release_id=f"{os.getpid()}"),
            lambda: stream.raise_step(step, "3/5", level=1, label="finer"),
            lambda: stream.raise_step(step - 1, "3/5", level=1, label="finer"),
            lambda: stream.skip(step + 1),
        ):
            try:
                act()
            except (InvalidInput, BudgetExceeded):
                continue


def late(path: Path, steps: int) -> None:
    """Go over all times again and again in an order of one's own, and charge whatever is taken, late or not."""
    stream = Ledger(path, timeout=PATIENCE).stream("visits")
    order = random.Random(os.getpid())
    for _ in range(3):
        for step in order.sample(range(steps), steps):
            asked = order.choice(["1/5", "2/5", "1/2"])
            with contextlib.suppress(InvalidInput, BudgetExceeded):
                stream.charge(step, asked, label="visits", release_id=f"{os.getpid()}-{step}", late=True)
            with contextlib.suppress(InvalidInput, BudgetExceeded):
                stream.raise_step(step, "3/5", level=1, label="finer")


def die_at_each_statement(path: Path) -> None:
    """Fork a child for n = 1, 2, …, which charges and raises a step, and is killed before its n-th statement.

    Prints a line for each child: how many of its two acts were acknowledged. Ends with the first child that lived.
    """
    for number in range(1, 1000):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:

            def die(count: int, _: str, last: int = number) -> None:
                if count == last:
                    os.kill(os.getpid(), signal.SIGKILL)

            stream = Ledger(path, timeout=PATIENCE).stream("visits")
            step = next_step(stream)
            interrupt_statements(die)
            stream.charge(step, "1/100", label="visits", release_id="r")
            os.write(writer, b"x")
            stream.raise_step(step, "1/50", level=1, label="finer")
            os.write(writer, b"x")
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            acknowledged = len(pipe.read())
        _, status = os.waitpid(child, 0)
        print(acknowledged, flush=True)
        if os.WIFEXITED(status):
            return


if __name__ == "__main__":
    action, path, *numbers = sys.argv[1:]
    {"race": race, "overspend": overspend, "late": late, "die_at_each_statement": die_at_each_statement}[action](
        Path(path), *map(int, numbers)
    )
