"""Several machines that publish one stream: the ledger takes every step once, and no machine says what is not so."""

from __future__ import annotations

import shutil
import warnings
from datetime import datetime
from fractions import Fraction

import pytest
from publisher_case import COUNTS, HOUR, budgets, fullest, hourly, stream

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidInput, VaultError


def machine(folder, name):
    """A publisher with a folder and a vault of its own, at the ledger of all."""
    vault = sf.Vault(folder / f"secrets-{name}", key=folder / "vault.key")
    return stream(folder, "top-up", vault=vault, outbox=folder / f"out-{name}")


@pytest.fixture
def left_behind(tmp_path):
    """(a machine that went on, one with a copy of its vault from before)."""
    ahead = machine(tmp_path, "a")
    for step in range(3):
        ahead.publish(step, COUNTS)
    shutil.copytree(tmp_path / "secrets-a", tmp_path / "secrets-b")
    shutil.copytree(tmp_path / "out-a", tmp_path / "out-b")
    for step in range(3, 12):
        ahead.publish(step, COUNTS) if step % 3 == 0 else ahead.skip(step)
    assert any(record.level for record in ahead.history())
    return ahead, machine(tmp_path, "b")


def test_a_step_stands_when_a_past_one_cannot_be_raised(left_behind):
    """A refusal that says 'nothing was drawn or recorded' must not come after a release that was both."""
    ahead, behind = left_behind
    with pytest.warns(
        UserWarning, match=r"The step of 12 of stream 'visits' is done; a past one could not be raised: "
    ):
        release = behind.publish(12, COUNTS)
    assert release is not None
    assert behind.publish(12, COUNTS).id == release.id
    assert budgets(ahead)[12] == release.guarantee.epsilon
    with pytest.warns(
        UserWarning, match=r"The step of 13 of stream 'visits' is done; a past one could not be raised: "
    ):
        behind.skip(13)
    assert fullest(budgets(ahead), 3) <= 1


def test_what_another_machine_was_first_to_spend_is_no_failure(left_behind, monkeypatch):
    ahead, _ = left_behind

    def spent(*_, **__):
        raise BudgetExceeded("epsilon=1 is too much. Nothing was drawn or recorded.")

    monkeypatch.setattr(type(ahead._archive), "refine", spent)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ahead.publish(12, COUNTS) is not None


def test_one_step_that_cannot_be_raised_does_not_stop_the_others(tmp_path, monkeypatch):
    series = machine(tmp_path, "a")
    for step in range(3):
        series.publish(step, COUNTS)
    refine = type(series._archive).refine

    def refused_once(archive, step, epsilon):
        if step.time == 0:
            raise VaultError("the state is lost. Nothing was drawn or recorded.")
        return refine(archive, step, epsilon)

    monkeypatch.setattr(type(series._archive), "refine", refused_once)
    with pytest.warns(UserWarning, match=r"Not every step of stream 'visits' could be raised: the state is lost\."):
        finer = series.top_up(ended=True)
    assert len(finer) == 2
    assert [record.level for record in series.history()] == [0, 1, 1]


def test_when_none_can_be_raised_the_refusal_is_told(left_behind):
    _, behind = left_behind
    before = budgets(behind)
    with pytest.raises(VaultError):
        behind.top_up(ended=True)
    assert budgets(behind) == before


def test_two_machines_take_turns(tmp_path):
    machines = [machine(tmp_path, name) for name in "ab"]
    for step in range(12):
        assert machines[step % 2].publish(step, COUNTS) is not None
    spent = budgets(machines[0])
    assert sorted(spent) == list(range(12))
    assert Fraction(9, 10) < fullest(spent, 3) <= 1


def test_a_machine_with_steps_of_another_length_is_named(tmp_path):
    begin = datetime(2026, 3, 1, 8)
    whole = hourly(tmp_path)
    whole.publish(begin, COUNTS)
    hourly(tmp_path, step=HOUR / 2).publish(begin + HOUR / 2, COUNTS)
    with pytest.raises(InvalidInput) as caught:
        whole.publish(begin + HOUR, COUNTS)
    assert str(caught.value) == (
        "stream 'visits' has a step at 2026-03-01 08:30:00, which lies between the steps of this publisher: another "
        "one publishes it with a step of another length. Nothing was drawn or recorded. Use the same step everywhere, "
        "or another name."
    )
