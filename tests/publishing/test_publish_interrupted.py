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
from sfumato.release import outbox

PLAN = sf.plan(sf.bounded(sf.Line(0, 1, cells=6)), sf.ranges(), 1, mechanism="identity")
COUNTS = np.array([5, 0, 3, 9, 1, 2])
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(sf.__file__).parent.parent)}

needs_signals = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@pytest.fixture(autouse=True)
def _interruptible():
    """As at a terminal: what runs in the background may have been told to ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
@pytest.mark.parametrize("when", ["charge", "draw"])
def test_interrupted_parts_are_in_one_folder_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    parts = sf.Categories(["north", "west", "east"], name="part")
    plan = sf.plan(sf.within(sf.Line(0, 1, cells=4), 0.3), sf.histogram(), 1, mechanism="identity")
    counts = np.array([[1000, 0, 0, 0], [0, 2000, 0, 0], [0, 0, 3000, 0]])  # totals are public: they tell parts apart
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=5, hide=sf.move(0.3, of="x"), fixed=["part"])
    owner, name = (sf.Ledger, "charge") if when == "charge" else (type(plan.mechanism), "estimate")
    real = getattr(owner, name)

    def then_interrupted(self: Any, *given: Any, **named: Any) -> Any:
        result = real(self, *given, **named)
        if when == "charge" or not raised:
            raised.append(signal.raise_signal(signal.SIGINT))
        return result

    raised: list[None] = []
    monkeypatch.setattr(owner, name, then_interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        plan.publish_parts(counts, by=parts, public=["part"], ledger=ledger)
    monkeypatch.undo()
    assert ledger.spent == 1
    told = caught.value.__context__
    assert isinstance(told, Undelivered)
    assert told.kept is not None
    assert told.kept.parent == tmp_path / "budget.db.outbox"
    assert f"The 3 releases are not lost: they are in '{told.kept}', numbered" in str(told)
    files = sorted(told.kept.iterdir())
    assert [file.name for file in files] == ["00001.sfumato", "00002.sfumato", "00003.sfumato"]
    assert [sf.load(file).total for file in files] == [1000, 2000, 3000]


def test_parts_that_find_no_outbox_are_said_to_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_folders", lambda ledger: [tmp_path / "file" / "outbox"])
    (tmp_path / "file").write_text("no folder")
    error = outbox.rescued_parts([PLAN.publish(COUNTS)], "It was interrupted", KeyboardInterrupt(), ledger=None)
    assert error.kept is None
    assert str(error).startswith("It was interrupted after the releases of all parts were charged: KeyboardInterrupt.")
    assert "is lost with its budget" in str(error)


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
