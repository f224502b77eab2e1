"""Spent, then lost: whatever stops a publication after its charge, the release is in hand or kept."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import Undelivered, VaultError
from sfumato.interruptions import INSISTING, undisturbed

PLAN = sf.plan(sf.bounded(sf.Line(0, 1, cells=6)), sf.ranges(), 1, mechanism="identity")
COUNTS = np.array([5, 0, 3, 9, 1, 2])
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(sf.__file__).parent.parent)}

needs_signals = pytest.mark.skipif(os.name != "posix", reason="needs signals")


def _outbox(folder: Path) -> list[sf.Release]:
    return [sf.load(file) for file in (folder / "budget.db.outbox").iterdir()]


@pytest.mark.parametrize("error", [VaultError("full"), OSError("full")])
def test_a_vault_that_cannot_remember_the_ledger_leaves_the_release_in_the_outbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    ledger, vault = sf.Ledger.create(tmp_path / "budget.db", epsilon=5), sf.Vault(tmp_path / "v", key=tmp_path / "k")

    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(sf.Vault, "remember", full)
    with pytest.raises(Undelivered) as caught:
        PLAN.publish(COUNTS, ledger=ledger, vault=vault)
    monkeypatch.undo()
    (kept,) = _outbox(tmp_path)
    assert caught.value.kept is not None
    assert ledger.spent == 1
    assert kept.refine(epsilon=2, vault=vault, ledger=ledger).guarantee.epsilon == 2


@needs_signals
@pytest.mark.parametrize("when", ["charge", "draw"])
@pytest.mark.parametrize("vault", [False, True])
def test_an_interruption_after_the_charge_leaves_the_release_in_the_outbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, vault: bool
) -> None:
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=5)
    owner, name = (sf.Ledger, "charge") if when == "charge" else (type(PLAN.mechanism), "estimate")
    real = getattr(owner, name)

    def then_interrupted(self: Any, *given: Any, **named: Any) -> Any:
        result = real(self, *given, **named)
        signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(owner, name, then_interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        PLAN.publish(COUNTS, ledger=ledger, vault=sf.Vault(tmp_path / "v", key=tmp_path / "k") if vault else None)
    monkeypatch.undo()
    (kept,) = _outbox(tmp_path)
    assert isinstance(caught.value.__context__, Undelivered)
    assert [entry.release_id for entry in ledger.history()][1:] == [kept.id]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@needs_signals
def test_a_wish_to_stop_waits_for_the_outermost_block_and_insistence_is_obeyed() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), undisturbed() as interrupted:
        with undisturbed() as inner:
            signal.raise_signal(signal.SIGINT)
            done.append(inner())
        done.append(interrupted())
    assert done == [False, True]
    with pytest.raises(KeyboardInterrupt), undisturbed():
        for number in range(INSISTING):
            done.append(number)
            signal.raise_signal(signal.SIGINT)
        done.append("not reached")
    assert done[2:] == list(range(INSISTING))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with undisturbed() as interrupted:
        assert not interrupted()


@pytest.mark.slow
@needs_signals
@pytest.mark.parametrize("command", ["publish", "stream"])
def test_commands_that_are_interrupted_anywhere_lose_no_release(tmp_path: Path, command: str) -> None:
    """At moments all over the run, denser where it charges; after each the charges are the releases that there are."""
    (tmp_path / "visits.csv").write_text("t,x,y\n" + "2026-03-01T00:30,0.5,0.5\n2026-03-01T02:30,0.2,0.3\n" * 20)
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=1000)
    grid = ["--bounds=0,0,1,1", "--shape", "8x8", "--delta", "0.3", "--ledger", str(tmp_path / "budget.db")]
    first = [sys.executable, "-c", "from sfumato.app.cli import app; app()", command, str(tmp_path / "visits.csv")]
    hourly = ["--time", "t", "--step", "1h", "--window", "4", "--start", "2026-03-01", "--stop", "2026-03-01T20:00"]
    randomness, waited = random.Random(12), None
    environment = {**ENVIRONMENT, "XDG_STATE_HOME": str(tmp_path / "state")}
    for number in range(6):
        mine = [
            "--epsilon",
            "1",
            "--out",
            str(tmp_path / (f"{number}.sfumato" if command == "publish" else f"s{number}")),
        ]
        mine += [] if command == "publish" else [*hourly, "--name", f"s{number}"]
        begun = time.monotonic()
        process = subprocess.Popen(
            [*first, *grid, *mine], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if waited is not None:
            time.sleep(waited * randomness.uniform(0.6, 1.05))
            process.send_signal(randomness.choice([signal.SIGINT, signal.SIGTERM]))
        code = process.wait(timeout=900)
        if waited is None:
            assert code == 0
            waited = time.monotonic() - begun
    ids = {sf.load(file).id for file in tmp_path.rglob("*.sfumato")}
    charged = {entry.release_id for entry in ledger.history() if entry.kind == "release"}
    spent = Fraction(0)
    for name in ledger.streams():
        for step in ledger.stream(name).entries():
            charged |= {step.release_id} - {None}
            spent += step.epsilon
    assert ids == charged
    ledger.check()
