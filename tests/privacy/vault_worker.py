"""What the vault's tests share, and helper programs: `python vault_worker.py ACTION DIRECTORY …`."""

from __future__ import annotations

import os
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from sfumato.domain import Line
from sfumato.noise import Refinable, SystemSource
from sfumato.policy import threshold
from sfumato.privacy import Ledger, State, Vault

POLICY = threshold(Line(0, 1, cells=5), theta=1)
NAME = "visits-1"
SIZE = 40


def first_state(name: str = NAME, size: int = SIZE) -> State:
    """A release of `size` zeros at ε = 1, in two blocks."""
    blocks = tuple(Refinable.draw(Fraction(1, scale), size, SystemSource()) for scale in (2, 1000))
    measured = np.concatenate([block.value for block in blocks])
    return State(
        release_id=name,
        level=0,
        epsilon=Fraction(1),
        blocks=blocks,
        measured=measured,
        charged=True,
    )


def next_state(state: State, epsilon: Fraction) -> State:
    """The state refined: the integers published move by what the noise moves."""
    factor = epsilon / state.epsilon
    blocks = tuple(block.refine(block.rate * factor, SystemSource()) for block in state.blocks)
    moved = np.concatenate([new.value - old.value for new, old in zip(blocks, state.blocks, strict=True)])
    return State(
        release_id=state.release_id,
        level=state.level + 1,
        epsilon=epsilon,
        blocks=blocks,
        measured=state.measured + moved,
        charged=state.charged,
    )


def open_all(directory: Path) -> tuple[Vault, Ledger]:
    return Vault(directory / "secrets", key=directory / "vault.key"), Ledger(directory / "budget.db", epsilon=10**6)


def start(directory: Path, size: int = SIZE) -> None:
    """A ledger and a vault with one release at level 0."""
    vault, ledger = open_all(directory)
    ledger.charge(1, POLICY, label="visits", release_id=NAME)
    vault.create(NAME, first_state(size=size))


def refine(directory: Path, level: int) -> bytes:
    """Hand out the release of a level, made at ε = 1 + level if need be: the order that the vault's docstring gives."""
    vault, ledger = open_all(directory)
    with vault.lock(NAME):
        epsilon = Fraction(1 + level)
        counted, _ = ledger.level(NAME) or (0, 0)
        if counted < level:
            if vault.staged(NAME) is None:
                finer = next_state(vault.read(NAME, at_least=counted), epsilon)
                vault.stage(NAME, finer, finer.measured.tobytes(), expected_level=level - 1)
            ledger.raise_level(NAME, level=level, epsilon=epsilon, label="finer")
        return vault.settle(NAME, level, epsilon)


def next_level(directory: Path) -> int:
    _, ledger = open_all(directory)
    level, _ = ledger.level(NAME) or (0, 0)
    return level + 1


def hold(directory: Path) -> None:
    """Hold the lock until killed."""
    vault, _ = open_all(directory)
    with vault.lock(NAME):
        print("held", flush=True)
        time.sleep(600)


def refine_often(directory: Path, times: int) -> None:
    """Make the next level `times` times, beside others that do the same."""
    vault, _ = open_all(directory)
    for _ in range(int(times)):
        with vault.lock(NAME):
            refine(directory, next_level(directory))


def die_at_each_step(directory: Path) -> None:
    """Fork a child for n = 1, 2, …, killed before the n-th time it opens, renames, removes or locks one.

    Prints what the child handed out, if it got so far, as a line of hexadecimal digits ("-" if not), and then what is
    handed out for the same level when it is asked for again. Ends with the first child that lived.
    """
    for number in range(1, 1000):
        level = next_level(directory)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            count = 0

            def strike(event: str, _: object, last: int = number) -> None:
                nonlocal count
                if event in ("open", "os.rename", "os.remove", "fcntl.flock", "sqlite3.connect"):
                    count += 1
                    if count == last:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(strike)
            os.write(writer, refine(directory, level).hex().encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            handed_out = pipe.read().decode() or "-"
        _, status = os.waitpid(child, 0)
        print(handed_out, refine(directory, level).hex(), flush=True)
        if os.WIFEXITED(status):
            return


def fill_disk(directory: Path, limit: int) -> None:
    """Try to refine with files limited to so many bytes; prints the error."""
    import resource

    from sfumato.errors import VaultError

    vault, _ = open_all(directory)
    finer = next_state(vault.read(NAME), Fraction(2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    try:
        vault.update(NAME, finer, 0)
    except VaultError as error:
        print(error)


if __name__ == "__main__":
    action, folder, *numbers = sys.argv[1:]
    {
        "hold": hold,
        "refine_often": refine_often,
        "die_at_each_step": die_at_each_step,
        "fill_disk": fill_disk,
    }[action](Path(folder), *map(int, numbers))
