"""An older ledger under a stream: the vault knows of what it has forgotten, and nothing is published."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from publisher_case import COUNTS, stream

import sfumato as sf


def _put_back(folder: Path, copy: Path) -> None:
    for suffix in ("-wal", "-shm", "-journal"):
        (folder / f"budget.db{suffix}").unlink(missing_ok=True)
    shutil.copy(copy, folder / "budget.db")


@pytest.mark.parametrize("kept", [0, 2])
def test_a_step_that_the_ledger_forgot_is_not_published_again(tmp_path: Path, kept: int) -> None:
    """A second noise of one step, out of another step's budget."""
    vault = sf.Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    series = stream(tmp_path, vault=vault)
    for time in range(kept):
        series.publish(time, COUNTS)
    shutil.copy(tmp_path / "budget.db", tmp_path / "older.db")
    for time in range(kept, kept + 2):
        series.publish(time, COUNTS)
    _put_back(tmp_path, tmp_path / "older.db")
    for time in (kept, kept + 1):
        with pytest.raises(sf.LedgerError) as caught:
            stream(tmp_path, vault=vault).publish(time, COUNTS)
        assert str(caught.value) == (
            "stream 'visits' has forgotten steps that the vault knows of: this is an older copy of the ledger, and "
            "what was spent since is forgotten in it. Nothing was drawn or recorded. Put the newest copy of the ledger "
            "back."
        )
    assert len(stream(tmp_path, vault=vault).history()) == kept


def test_a_top_up_that_the_ledger_forgot_is_not_made_again(tmp_path: Path) -> None:
    """The steps are all there, and the raise of one is not: nothing finer is made of it, and nothing is charged."""
    series = stream(tmp_path, "top-up")
    for time in range(4):
        series.publish(time, COUNTS, 1.0 if time % 2 == 0 else 0.0)
    shutil.copy(tmp_path / "budget.db", tmp_path / "older.db")
    raised = series.top_up(ended=True)
    assert raised
    before = {release.id for release in raised}
    _put_back(tmp_path, tmp_path / "older.db")
    again = stream(tmp_path, "top-up")
    with pytest.raises(sf.LedgerError, match="this is an older copy of the ledger"):
        again.top_up(ended=True)
    assert all(record.level == 0 for record in again.history() if record.release_id in before)


def test_another_stream_of_the_same_ledger_pays_for_nothing(tmp_path: Path) -> None:
    vault = sf.Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    release = stream(tmp_path, vault=vault).publish(0, COUNTS)
    assert release is not None
    other = sf.Ledger(tmp_path / "budget.db").stream("other", epsilon=9, window=3, policy=release.guarantee.policy)
    other.charge(0, release.guarantee.epsilon, label="by hand", release_id=release.id)
    from sfumato.publishing.step import StreamStep

    with pytest.raises(sf.VaultError, match="was not paid for by time 0 of stream 'other'"):
        release.refine(9, vault=vault, ledger=StreamStep(other, 0))  # type: ignore[arg-type]
