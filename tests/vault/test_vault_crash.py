"""Kills, full disks and rollbacks: the vault holds the old state or the new one, and one noise for one charge."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from ledger_worker import opened
from vault_disk import Death, Killed, dying
from vault_states import NAME, SIZE, USELESS, advance, next_state, posix, same
from vault_worker import output, refine, run, start

import sfumato as sf
from sfumato.errors import VaultError
from sfumato.ledger import Ledger
from sfumato.vault import State, Vault


@posix
@pytest.mark.slow
def test_killed_at_any_step_a_level_is_charged_once_and_handed_out_once(tmp_path: Path) -> None:
    """A child is killed before each file it opens, renames, removes or locks; the level is then asked for again."""
    start(tmp_path)
    lines = [line.split() for line in output(run("die_at_each_step", tmp_path)).splitlines()]
    assert len(lines) > 20  # it did walk through the steps
    assert lines[-1][0] != "-"
    assert all(first in ("-", second) for first, second in lines)
    vault = Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    (found,) = vault.check()
    assert found.intact
    assert found.levels == tuple((level, 1 + level) for level in range(len(lines) + 1))
    assert Ledger(tmp_path / "budget.db").spent == 1 + len(lines)
    assert bytes.fromhex(lines[-1][1]) == vault.read(NAME).measured.tobytes()
    assert not [path.name for path in vault.path.iterdir() if path.name.endswith((".part", ".staged"))]


@posix
@pytest.mark.slow
@pytest.mark.parametrize("power_cut", [False, True])
def test_dead_before_any_write_a_repeat_gives_one_noise_for_one_charge(tmp_path: Path, power_cut: bool) -> None:
    """From an empty directory to a finer level: whatever was handed out can be refined, and all that is there opens."""
    plan = sf.plan(sf.bounded(sf.Line(0, 1, cells=12)), sf.histogram(), 1, mechanism="identity")
    for number in range(1, 1000):
        place = tmp_path / str(number)
        place.mkdir()
        handed_out: list[sf.Release] = []
        try:
            with dying(place, Death(number, power_cut)) as writes:
                ledger = opened(place / "budget.db", 10)
                vault = sf.Vault(place / "secrets", key=place / "vault.key")
                handed_out.append(plan.publish(np.arange(12), vault=vault, ledger=ledger))
                handed_out.append(handed_out[0].refine(2, vault=vault, ledger=ledger))
        except Killed:
            pass
        else:
            break
        ledger = opened(place / "budget.db", 10)
        vault = sf.Vault(place / "secrets", key=place / "vault.key")
        assert all(found.intact for found in vault.check()), writes[-1]
        if handed_out:
            finer, again = (handed_out[0].refine(2, vault=vault, ledger=ledger) for _ in range(2))
            assert ledger.spent == 2
            assert all(np.array_equal(other.measured, finer.measured) for other in (again, *handed_out[1:]))
        else:
            assert ledger.spent in (0, 1)
            plan.publish(np.arange(12), vault=vault, ledger=ledger)
    assert number > 80  # it did walk through the writes


@posix
@pytest.mark.parametrize("limit", [0, 20, 200, 900])
def test_a_full_disk_leaves_the_old_state(tmp_path: Path, limit: int) -> None:
    start(tmp_path)
    vault = Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    before = vault.read(NAME)
    assert (vault.path / f"{NAME}.state").stat().st_size > 900
    assert output(run("stage_on_a_full_disk", tmp_path, limit)) == USELESS.format(vault.path, "File too large") + "\n"
    assert same(vault.read(NAME), before)
    assert {path.name for path in vault.path.iterdir()} == {f"{NAME}.state", f"{NAME}.lock"}
    advance(vault, next_state(before, Fraction(2)))


@posix
@pytest.mark.parametrize("limit", [0, 20, 200, 900])
def test_a_level_that_a_full_disk_did_not_settle_is_settled_later(tmp_path: Path, limit: int) -> None:
    """The largest limit has room for the release in the outbox, and not for the state that goes with it."""
    start(tmp_path)
    vault = Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    before = vault.read(NAME)
    finer = next_state(before, Fraction(2))
    vault.stage(NAME, finer, finer.measured.tobytes(), 0)
    assert output(run("settle_on_a_full_disk", tmp_path, limit)) == USELESS.format(vault.path, "File too large") + "\n"
    assert same(vault.read(NAME), before)
    assert (vault.get_outbox(NAME, 1) is not None) == (limit == 900)
    assert vault.promote(NAME, 1, 2) == finer.measured.tobytes()
    assert same(vault.read(NAME), finer)


def test_what_a_killed_writer_left_is_removed(vault: Vault, kept: State) -> None:
    draft = vault.path / f".{NAME}.state.0123456789ab.part"
    draft.write_bytes(b"half")
    advance(vault, next_state(kept, Fraction(2)))
    assert not draft.exists()


def test_an_interrupted_write_leaves_the_old_state(vault: Vault, kept: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        vault.stage(NAME, next_state(kept, Fraction(2)), b"release", 0)
    monkeypatch.undo()
    assert same(vault.read(NAME), kept)
    assert {path.name for path in vault.path.iterdir()} == {f"{NAME}.state", f"{NAME}.lock"}


def test_a_rollback_of_the_vault_is_stopped_by_the_ledger(tmp_path: Path) -> None:
    """The older state is authentic. Refining it again would be a second noise; the ledger's counter says no."""
    start(tmp_path)
    path = tmp_path / "secrets" / f"{NAME}.state"
    older = path.read_bytes()
    first = refine(tmp_path, 1)
    path.write_bytes(older)
    (tmp_path / "secrets" / f"{NAME}.1.outbox").unlink()
    with pytest.raises(VaultError, match="has nothing staged for level 1"):
        refine(tmp_path, 1)
    with pytest.raises(VaultError, match="this is an older copy"):
        refine(tmp_path, 2)
    assert Ledger(tmp_path / "budget.db").spent == 2
    assert len(first) == 8 * 2 * SIZE
