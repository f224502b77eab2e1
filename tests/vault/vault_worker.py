"""Helper programs for the vault's tests, run as processes of their own: `python vault_worker.py ACTION DIRECTORY …`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

from ledger_worker import PATIENCE, opened
from vault_states import NAME, SIZE, first_state, next_state

from sfumato.domain import Line
from sfumato.errors import VaultError
from sfumato.ledger import Ledger
from sfumato.policies import threshold
from sfumato.vault import Vault

POLICY = threshold(Line(0, 1, cells=5), theta=1)
SHARED = Path(__file__).resolve().parent.parent / "ledger"  # where ledger_worker.py is


def open_all(directory: Path) -> tuple[Vault, Ledger]:
    ledger = opened(directory / "budget.db", 10**6)
    return Vault(directory / "secrets", key=directory / "vault.key", timeout=PATIENCE), ledger


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
        return vault.promote(NAME, level, epsilon)


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


def stage_on_a_full_disk(directory: Path, limit: int) -> None:
    """Try to stage a level with files limited to so many bytes; prints the error."""
    vault, _ = open_all(directory)
    finer = next_state(vault.read(NAME), Fraction(2))
    _limit_files(limit)
    try:
        vault.stage(NAME, finer, finer.measured.tobytes(), expected_level=0)
    except VaultError as error:
        print(error)


def settle_on_a_full_disk(directory: Path, limit: int) -> None:
    """Try to settle what is staged with files limited to so many bytes; prints the error."""
    vault, _ = open_all(directory)
    _limit_files(limit)
    try:
        vault.promote(NAME, 1, 2)
    except VaultError as error:
        print(error)


def _limit_files(limit: int) -> None:
    import resource  # POSIX alone

    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def run(action: str, directory: Path, *numbers: int) -> subprocess.Popen[str]:
    """Start one of these programs."""
    command = [sys.executable, __file__, action, str(directory), *map(str, numbers)]
    path = os.pathsep.join([str(SHARED), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def output(process: subprocess.Popen[str]) -> str:
    """What a program that ends well has printed."""
    out, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors
    return out


if __name__ == "__main__":
    action, folder, *numbers = sys.argv[1:]
    {
        "hold": hold,
        "refine_often": refine_often,
        "die_at_each_step": die_at_each_step,
        "stage_on_a_full_disk": stage_on_a_full_disk,
        "settle_on_a_full_disk": settle_on_a_full_disk,
    }[action](Path(folder), *map(int, numbers))
