"""The vault is a witness: a ledger that forgot, or another one in its place, hands nothing out and pays for nothing."""

from __future__ import annotations

import json
import shutil
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.ledger import Ledger
from sfumato.release import Release
from sfumato.vault import Vault
from sfumato.vault import state as state_module

LINE = sf.Line(0, 1, cells=6)
POLICY = sf.bounded(LINE)
PLAN = sf.plan(POLICY, sf.ranges(), 1, mechanism="identity")
COUNTS = np.array([5, 0, 3, 9, 1, 2])


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "secrets", key=tmp_path / "vault.key")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.db", epsilon=10)


def _refused(kind: type[Exception], act: object, *ledgers: Ledger) -> str:
    spent = [ledger.spent for ledger in ledgers]
    with pytest.raises(kind) as caught:
        act()  # type: ignore[operator]
    assert [ledger.spent for ledger in ledgers] == spent
    return str(caught.value)


def _put_back(copy: Path, ledger: Ledger) -> None:
    assert ledger.path is not None
    for suffix in ("-wal", "-shm", "-journal"):
        ledger.path.with_name(ledger.path.name + suffix).unlink(missing_ok=True)
    shutil.copy(copy, ledger.path)


def _copied(ledger: Ledger, path: Path) -> Path:
    assert ledger.path is not None
    return Path(shutil.copy(ledger.path, path))


# ------------------------------------------------------------------ an older ledger


def test_an_older_ledger_hands_out_nothing_and_takes_no_charge(vault: Vault, ledger: Ledger, tmp_path: Path) -> None:
    """18.5 under a cap of 10: half an ε, a copy, 9.5 of it, the copy put back, and another 9."""
    first = sf.plan(POLICY, sf.ranges(), "0.5", mechanism="identity").publish(COUNTS, ledger=ledger, vault=vault)
    copy = _copied(ledger, tmp_path / "older.db")
    first.refine("9.5", ledger=ledger, vault=vault)
    _put_back(copy, ledger)
    older = Ledger(tmp_path / "budget.db")
    said = (
        f"account 'default' of '{older.place}' knows of 0.5 spent, but the vault of 9.5: this is an older copy of the "
        "ledger, and what was spent since is forgotten in it. Nothing was drawn or recorded. Put the newest copy of "
        "the ledger back."
    )
    for epsilon in ("9.5", 10):
        assert _refused(sf.LedgerError, lambda e=epsilon: first.refine(e, ledger=older, vault=vault), older) == said
    again = sf.plan(POLICY, sf.ranges(), 9, mechanism="identity")
    assert _refused(sf.LedgerError, lambda: again.publish(COUNTS, ledger=older, vault=vault), older) == said


def test_a_level_that_the_ledger_forgot_is_not_handed_out_however_much_was_spent_since(
    vault: Vault, ledger: Ledger, tmp_path: Path
) -> None:
    """The sums agree again; the levels do not."""
    first = PLAN.publish(COUNTS, ledger=ledger, vault=vault)
    copy = _copied(ledger, tmp_path / "older.db")
    first.refine(2, ledger=ledger, vault=vault)
    _put_back(copy, ledger)
    older = Ledger(tmp_path / "budget.db")
    older.charge(1, POLICY, label="without the vault", release_id="other")
    for epsilon in (2, 3):
        assert _refused(sf.VaultError, lambda e=epsilon: first.refine(e, ledger=older, vault=vault), older) == (
            f"the vault has release '{first.id}' at level 1, but account 'default' of '{older.place}' knows of level 0 "
            "alone: this is an older copy of the ledger, and what was spent since is forgotten in it. Nothing was "
            "drawn or recorded. Put the newest copy of the ledger back."
        )


def test_the_newest_ledger_goes_on(vault: Vault, ledger: Ledger, tmp_path: Path) -> None:
    first = PLAN.publish(COUNTS, ledger=ledger, vault=vault)
    copy = _copied(ledger, tmp_path / "older.db")
    finer = first.refine(2, ledger=ledger, vault=vault)
    newest = _copied(ledger, tmp_path / "newest.db")
    _put_back(copy, ledger)
    _refused(sf.LedgerError, lambda: PLAN.publish(COUNTS, ledger=ledger, vault=vault), ledger)
    _put_back(newest, ledger)
    again = first.refine(2, ledger=ledger, vault=vault)
    assert again.measured is not None
    assert np.array_equal(again.measured, finer.measured)
    assert PLAN.publish(COUNTS, ledger=ledger, vault=vault).id != first.id


def test_what_a_vault_remembers_only_grows(vault: Vault) -> None:
    vault.remember("a", Fraction(2))
    vault.remember("a", Fraction(1))
    vault.remember("b", Fraction(-5))
    assert [vault.remembers(name) for name in "abc"] == [2, -5, None]


def test_an_older_vault_beside_a_newer_ledger_is_refused(vault: Vault, ledger: Ledger, tmp_path: Path) -> None:
    first = PLAN.publish(COUNTS, ledger=ledger, vault=vault)
    shutil.copytree(tmp_path / "secrets", tmp_path / "older")
    first.refine(2, ledger=ledger, vault=vault)
    older = Vault(tmp_path / "older", key=tmp_path / "vault.key")
    assert "this is an older copy, and refining it again would undo its noise" in _refused(
        sf.VaultError, lambda: first.refine(3, ledger=ledger, vault=older), ledger
    )


def test_a_copy_of_both_that_went_another_way_is_refused(vault: Vault, ledger: Ledger, tmp_path: Path) -> None:
    """Ledger and vault were both copied and refined: each pair is one chain, and the pairs do not mix."""
    first = PLAN.publish(COUNTS, ledger=ledger, vault=vault)
    shutil.copytree(tmp_path / "secrets", tmp_path / "copy")
    other = Ledger(_copied(ledger, tmp_path / "copy.db"))
    copy = Vault(tmp_path / "copy", key=tmp_path / "vault.key")
    first.refine(2, ledger=ledger, vault=vault)
    first.refine(2, ledger=other, vault=copy)
    for mine, theirs in ((ledger, copy), (other, vault)):
        for epsilon in (2, 3):
            said = _refused(sf.VaultError, lambda v=theirs, m=mine, e=epsilon: first.refine(e, ledger=m, vault=v), mine)
            assert "disagree about the levels of release" in said


# ------------------------------------------------------------------ another ledger


def _another(where: str, ledger: Ledger, tmp_path: Path) -> Ledger:
    if where == "the same file":
        return Ledger.create(ledger.place, epsilon=1000, dataset="other")
    if where == "the same name":
        assert ledger.path is not None
        ledger.path.rename(tmp_path / "moved.db")
        return Ledger.create(ledger.place, epsilon=1000)
    return Ledger.create(tmp_path / "fresh.db", epsilon=1000)


@pytest.mark.parametrize("where", ["a fresh file", "the same file", "the same name"])
def test_another_ledger_pays_for_nothing(vault: Vault, ledger: Ledger, tmp_path: Path, where: str) -> None:
    """The same charge by hand in another ledger, with room to ε = 100."""
    first = PLAN.publish(COUNTS, ledger=ledger, vault=vault)
    other = _another(where, ledger, tmp_path)
    other.charge(1, POLICY, label="by hand", release_id=first.id)
    assert _refused(sf.VaultError, lambda: first.refine(100, ledger=other, vault=vault), other) == (
        f"release '{first.id}' was not paid for by account '{other.dataset}' of '{other.place}': the vault has it "
        "sealed with the name of another ledger, account or step. Nothing was drawn or recorded. Give the ledger that "
        "the release was charged to; a ledger that was made anew in its place has another name."
    )
    assert vault.staged(first.id) is None


def test_nothing_is_handed_out_without_the_ledger_that_paid(vault: Vault, ledger: Ledger) -> None:
    """Not even a level that was made: only the ledger knows whether it still counts."""
    first = PLAN.publish(COUNTS, ledger=ledger, vault=vault)
    first.refine(2, ledger=ledger, vault=vault)
    for epsilon in (2, 3):
        assert _refused(sf.InvalidInput, lambda e=epsilon: first.refine(e, vault=vault)) == (
            f"release '{first.id}' was charged to a ledger, and so must its levels be. Nothing was drawn or recorded. "
            "Give ledger=…, the one it was published with."
        )


def test_what_was_published_without_a_ledger_is_refined_without_one(vault: Vault) -> None:
    first = PLAN.publish(COUNTS, vault=vault)
    assert first.refine(2, vault=vault).guarantee.epsilon == 2


def test_the_first_ledger_that_pays_for_a_level_stays_the_one(vault: Vault, ledger: Ledger, tmp_path: Path) -> None:
    """Published without a ledger, charged by hand, refined with it: from then on it is asked."""
    first = PLAN.publish(COUNTS, vault=vault)
    other = Ledger.create(tmp_path / "other.db", epsilon=100)
    for one in (ledger, other):
        one.charge(1, POLICY, label="by hand", release_id=first.id)
    first.refine(2, ledger=ledger, vault=vault)
    assert "was not paid for by" in _refused(sf.VaultError, lambda: first.refine(3, ledger=other, vault=vault), other)
    assert "was charged to a ledger" in _refused(sf.InvalidInput, lambda: first.refine(3, vault=vault))
    assert first.refine(3, ledger=ledger, vault=vault).guarantee.epsilon == 3


# ------------------------------------------------------------------ vaults of version 1


@pytest.fixture
def old(vault: Vault, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Release:
    """A release whose state was sealed before ledgers had names, and that no ledger is remembered with."""
    encode = state_module.encode

    def without_payer(*given: object) -> object:
        head, *rest = encode(*given)  # type: ignore[arg-type]
        about = json.loads(head[8:])
        del about["payer"]
        text = json.dumps(about).encode()
        return [struct.pack("<Q", len(text)) + text, *rest]

    with monkeypatch.context() as patched:
        patched.setattr("sfumato.vault.vault.encode", without_payer)
        patched.setattr("sfumato.vault.sealing.VERSION", 1)
        first = PLAN.publish(COUNTS, ledger=ledger, vault=vault)
    for file in (tmp_path / "secrets").glob("*.ledger"):
        file.unlink()
    assert vault.read(first.id).payer == ""
    assert (tmp_path / "secrets" / f"{first.id}.state").read_bytes()[8] == 1
    return first


def test_an_old_state_adopts_the_first_ledger_that_matches(
    old: Release, vault: Vault, ledger: Ledger, tmp_path: Path
) -> None:
    other = Ledger.create(tmp_path / "other.db", epsilon=100)
    other.charge("1.5", POLICY, label="another amount", release_id=old.id)
    assert "disagree about the levels" in _refused(sf.VaultError, lambda: old.refine(3, ledger=other, vault=vault))
    old.refine(2, ledger=ledger, vault=vault)
    assert vault.read(old.id).payer == ledger.payer
    assert (tmp_path / "secrets" / f"{old.id}.state").read_bytes()[8] == 2
    fresh = Ledger.create(tmp_path / "fresh.db", epsilon=100)
    fresh.charge(2, POLICY, label="by hand", release_id=old.id)
    assert "was not paid for by" in _refused(sf.VaultError, lambda: old.refine(3, ledger=fresh, vault=vault), fresh)
    assert old.refine(3, ledger=ledger, vault=vault).guarantee.epsilon == 3


def test_an_old_state_that_another_ledger_took_is_not_handed_out_by_the_first(
    old: Release, vault: Vault, ledger: Ledger, tmp_path: Path
) -> None:
    """Charged in a fresh ledger and refined there to ε = 100: the first one has not paid for that."""
    fresh = Ledger.create(tmp_path / "fresh.db", epsilon=100)
    fresh.charge(1, POLICY, label="by hand", release_id=old.id)
    old.refine(100, ledger=fresh, vault=vault)
    for epsilon in (100, 2):
        assert "was not paid for by" in _refused(
            sf.VaultError, lambda e=epsilon: old.refine(e, ledger=ledger, vault=vault), ledger
        )


def test_a_level_that_another_ledger_refused_does_not_stand_in_the_way(
    old: Release, vault: Vault, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Staged for one ledger and never charged: for another it is drawn anew, and it is the one that is handed out."""
    other = Ledger.create(tmp_path / "other.db", epsilon=100)
    other.charge(1, POLICY, label="by hand", release_id=old.id)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "raise_level", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            old.refine(2, ledger=other, vault=vault)
    staged = vault.staged(old.id)
    assert staged is not None
    old.refine(2, ledger=ledger, vault=vault)
    assert vault.read(old.id).token != staged[0].token
    assert "was not paid for by" in _refused(sf.VaultError, lambda: old.refine(2, ledger=other, vault=vault), other)


def test_a_release_keeps_its_refinements_when_its_ledger_moves(vault: Vault, ledger: Ledger, tmp_path: Path) -> None:
    """The name is the ledger's own, and goes with it."""
    first = PLAN.publish(COUNTS, ledger=ledger, vault=vault)
    moved = Ledger(_copied(ledger, tmp_path / "elsewhere.db"))
    assert moved.payer == ledger.payer
    assert first.refine(2, ledger=moved, vault=vault).guarantee.epsilon == 2
