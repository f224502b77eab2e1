"""Steps run by a job: asked for first, counted once at the most, and safe to repeat after a death at any point."""

from __future__ import annotations

import os
import signal
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import postgres_server
import pytest
from ledger_worker import interrupt_server
from publisher_case import COUNTS, POLICY, budgets, fullest, hourly, stream
from vault_disk import Death, Killed, dying

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidInput, LedgerError
from sfumato.stream import publisher
from sfumato.stream.publisher import Stream

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX processes")


class Counted:
    """Counts, and how often they were asked for."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> np.ndarray:
        self.times += 1
        return COUNTS


# ------------------------------------------------------------------ outcomes


def test_a_step_is_counted_once_and_handed_out_again(tmp_path):
    counted = Counted()
    first = stream(tmp_path).run(4, counted)
    assert (first.time, first.status, first.epsilon, counted.times) == (4, "published", Fraction(1, 3), 1)
    assert str(first) == "4: published at ε = 1/3"
    again = stream(tmp_path).run(4, counted)
    assert (again.status, again.release.id, again.epsilon, counted.times) == (
        "stored",
        first.release.id,
        Fraction(1, 3),
        1,
    )
    assert again.reason == "published before at ε = 1/3; nothing was counted or charged"
    assert budgets(stream(tmp_path)) == {4: Fraction(1, 3)}


def test_what_gets_no_budget_is_skipped_without_counting(tmp_path):
    counted, series = Counted(), stream(tmp_path, "sample")
    found = [series.run(time, counted).status for time in range(4)]
    assert (found, counted.times) == (["published", "skipped", "skipped", "published"], 2)
    assert series.run(5, counted, 0).status == "skipped"
    outcome = series.run(1, counted)
    assert (outcome.status, outcome.release, outcome.epsilon) == ("skipped", None, 0)
    assert str(outcome) == "1: skipped; nothing was counted or charged"
    assert counted.times == 2


def test_a_late_step_without_room_is_refused_without_counting_and_the_job_goes_on(tmp_path):
    counted, series = Counted(), stream(tmp_path, "sample")
    series.publish(0, COUNTS)
    series.publish(3, COUNTS)
    outcome = series.run(2, counted, late=True)
    assert (outcome.status, outcome.release, outcome.epsilon, counted.times) == ("refused", None, 0, 0)
    assert outcome.reason.startswith("time=2 of stream 'visits' is late, and the windows of 3 steps that hold it")
    assert series.run(6, counted).status == "published"


def test_a_step_that_was_lost_is_told_and_the_job_goes_on(tmp_path):
    counted, series = Counted(), stream(tmp_path)
    series._account.charge(0, "1/3", label="visits", release_id="gone")
    outcome = series.run(0, counted)
    assert (outcome.status, outcome.release, outcome.epsilon, counted.times) == ("lost", None, Fraction(1, 3), 0)
    assert outcome.reason == (
        "lost: it was charged ε = 1/3, and its release is not stored. The program stopped in between, another one has "
        "not stored it yet, or the outbox is another one. Nothing was counted, and no second noise is drawn for one "
        "charge: go on with the next step"
    )
    assert series.run(1, counted).status == "published"


def test_what_counting_raises_is_raised_and_nothing_was_charged(tmp_path):
    """Also a refusal of a budget that is somebody else's."""
    series = stream(tmp_path)
    for kind in (RuntimeError, BudgetExceeded, KeyboardInterrupt):

        def fails(kind: type[BaseException] = kind) -> np.ndarray:
            raise kind("the cluster is lost")

        with pytest.raises(kind, match="the cluster is lost"):
            series.run(0, fails)
    assert series.history() == ()
    assert series.run(0, Counted()).status == "published"


def test_nobody_waits_while_a_step_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.stream.archive._PATIENCE", 0.05)
    series, other = stream(tmp_path), stream(tmp_path)
    series.publish(0, COUNTS)

    def count() -> np.ndarray:
        assert other.release(0) is not None
        return COUNTS

    assert series.run(1, count).status == "published"


def test_whoever_is_first_publishes_and_the_other_hands_it_out(tmp_path):
    series, other = stream(tmp_path), stream(tmp_path)
    made = []

    def count() -> np.ndarray:
        made.append(other.publish(0, COUNTS))
        return COUNTS

    outcome = series.run(0, count)
    assert (outcome.status, outcome.release.id) == ("stored", made[0].id)
    assert budgets(series) == {0: Fraction(1, 3)}


def test_another_machine_that_is_first_at_the_ledger_leaves_nothing_to_draw(tmp_path, monkeypatch):
    """It took the step between our look and our charge, and stores its release elsewhere."""
    series, other = stream(tmp_path, outbox=tmp_path / "a"), stream(tmp_path, outbox=tmp_path / "b")
    charge = type(series._account).charge

    def late(account, *given, **more):
        monkeypatch.undo()
        with monkeypatch.context() as patched:  # a machine of its own has a lock of its own
            patched.setattr(other, "_home", tmp_path / "elsewhere")
            other.publish(0, COUNTS)
        return charge(account, *given, **more)

    monkeypatch.setattr(type(series._account), "charge", late)
    outcome = series.run(0, Counted())
    assert (outcome.status, outcome.release) == ("lost", None)
    assert budgets(series) == {0: Fraction(1, 3)}
    assert other.run(0, Counted()).status == "stored"


def test_what_another_machine_spent_meanwhile_is_refused(tmp_path):
    series = stream(tmp_path)
    for time in (0, 3):
        series.publish(time, COUNTS)

    def spends_around() -> np.ndarray:
        series._account.charge(2, "2/3", label="visits", release_id="other", late=True)
        return COUNTS

    outcome = series.run(1, spends_around, late=True)
    assert (outcome.status, outcome.release) == ("refused", None)
    assert budgets(series) == {0: Fraction(1, 3), 2: Fraction(2, 3), 3: Fraction(1, 3)}


def test_wrong_arguments_are_raised_before_anything_is_counted(tmp_path):
    counted, series = Counted(), hourly(tmp_path)
    series.publish(datetime(2026, 3, 1, 8), COUNTS)
    for time in (datetime(2026, 3, 1, 8, 30), 3, datetime(2026, 3, 1, 7)):
        with pytest.raises(InvalidInput, match="Nothing was drawn or recorded"):
            series.run(time, counted)
    with pytest.raises(InvalidInput, match="weight=-1 must be at least 0"):
        series.run(datetime(2026, 3, 1, 9), counted, -1)
    with pytest.raises(InvalidInput) as refused:
        series.run(datetime(2026, 3, 1, 9), COUNTS)
    assert str(refused.value) == (
        "count=ndarray cannot be called. Nothing was counted, drawn or recorded. Give a function of no arguments that "
        "counts, such as lambda: sf.count(data, domain)."
    )
    assert counted.times == 0
    assert len(series.history()) == 1


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_an_outbox_without_room_is_refused_before_counting(tmp_path, monkeypatch):
    counted, series = Counted(), stream(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sfumato.files._set_aside", full)
    with pytest.raises(InvalidInput, match=r"cannot be used: No space left on device\. Nothing was drawn"):
        series.run(0, counted)
    assert counted.times == 0


def test_wrong_counts_are_refused_and_nothing_is_charged(tmp_path):
    series = stream(tmp_path)
    with pytest.raises(InvalidInput):
        series.run(0, lambda: COUNTS[:3])
    with pytest.raises(InvalidInput):
        series.run(0, lambda: None)
    assert series.history() == ()


def test_another_publisher_is_waited_for_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.stream.archive._PATIENCE", 0.05)
    series = stream(tmp_path)
    with publisher.alone(series._home, "visits"), pytest.raises(LedgerError, match="Another process is publishing"):
        series.run(0, Counted())


# ------------------------------------------------------------------ deaths


def _stores(place: Path, store: str) -> dict[str, object]:
    given: dict[str, object] = {"outbox": place / "far" / "out"} if store != "vault" else {}
    if store != "folder":
        given["vault"] = sf.Vault(place / "secrets", key=place / "vault.key")
    return given


@posix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "power_cut", "stride"),
    [("folder", False, 1), ("folder", True, 1), ("vault", True, 2), ("both", False, 4), ("both", True, 5)],
)
def test_dead_before_a_write_a_repeat_publishes_hands_out_or_says_that_it_is_lost(tmp_path, store, power_cut, stride):
    """The job runs two nights and, late, the one between. After a death before its n-th write (of a folder's every one,
    of a vault's some) it is started again.

    What was handed out before is handed out again; each step is charged once; a step is lost only where the death came
    between its charge and its store; and a step whose release is stored is not counted again.
    """
    allocation, lost = ("top-up" if store == "both" else "even"), 0

    def job(place: Path, counted: Counted, got: dict[int, str]) -> list[str]:
        series = stream(place, allocation, window=3, **_stores(place, store))
        found = []
        for time in (0, 2, 1):
            outcome = series.run(time, counted, late=True)
            found.append(outcome.status)
            if outcome.release is not None:
                got[time] = outcome.release.id
        return found

    for number in range(1, 2000, stride):
        place = tmp_path / str(number)
        place.mkdir()
        stream(place, allocation, window=3, **_stores(place, store))  # opened before: there are other tests for that
        before: dict[int, str] = {}
        try:
            with dying(place, Death(number, power_cut)) as writes:
                job(place, Counted(), before)
        except Killed:
            pass
        else:
            break
        counted, after = Counted(), {}
        found = job(place, counted, after)
        assert set(found) <= {"published", "stored", "lost"}, (writes[-1], found)
        assert {time: after.get(time) for time in before} == before, writes[-1]
        assert found.count("lost") <= 1, writes[-1]
        assert counted.times == found.count("published")
        lost += "lost" in found
        history = stream(place, allocation, window=3, **_stores(place, store)).history()
        assert [record.time for record in history] == [0, 1, 2]
        assert fullest({record.time: Fraction(record.epsilon) for record in history}, 3) <= 1
    assert number > 100  # it did walk through the writes
    assert lost  # and through those between charge and store


@posix
@pytest.mark.slow
def test_killed_before_any_statement_of_a_server_a_repeat_says_what_became_of_the_step(tmp_path):
    server = postgres_server.shared()
    ledger = sf.Ledger.create(server.url(server.fresh()), epsilon=1)

    def series() -> Stream:
        return Stream(
            POLICY, sf.histogram(), epsilon=1, window=3, ledger=ledger, name="visits", outbox=tmp_path / "out",
            mechanism="identity",
        )  # fmt: skip

    series()
    statuses = []
    for number in range(1, 500):
        child = os.fork()
        if child == 0:

            def die(count: int, _: str, last: int = number) -> None:
                if count == last:
                    os.kill(os.getpid(), signal.SIGKILL)

            job = series()
            interrupt_server(die)
            job.run(number, lambda: COUNTS)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        outcome = series().run(number, lambda: COUNTS)
        statuses.append(outcome.status)
        assert outcome.status in ("published", "stored", "lost")
        assert (outcome.release is None) == (outcome.status == "lost")
        if os.WIFEXITED(status):
            assert outcome.status == "stored"
            break
    assert {"published", "lost", "stored"} == set(statuses)
    spent = budgets(series())
    assert spent == dict.fromkeys(range(1, number + 1), Fraction(1, 3))
