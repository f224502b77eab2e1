"""A publication from the studio is charged once, whatever is pressed twice, runs twice, or is killed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import sfumato as sf
from sfumato.app.studio import jobs as module
from sfumato.app.studio.hearing import heard
from sfumato.app.studio.jobs import Jobs
from sfumato.app.studio.once import Claim
from sfumato.app.studio.said import publication_of

TABLES = {
    "hide": "move(0.2)",
    "ask": "ranges()",
    "epsilon": "1/2",
    "domain": {"place": {"bounds": [0, 0, 1, 1], "shape": [8, 8]}},
    "data": {"path": "visits.csv"},
    "account": {"ledger": "budget.db"},
    "output": {"file": "visits.sfumato"},
}

# What another process does: it publishes, and dies where it is told to, as if the power had gone.
OTHER = """
import json, os, sys
from pathlib import Path
from sfumato.app.studio import jobs, once
from sfumato.app.studio.said import publication_of
where = sys.argv[1]
if where == "before the charge":
    jobs.publish = lambda *a, **k: os._exit(9)
elif where == "before the release is written":
    jobs.deliver = lambda *a, **k: os._exit(9)
elif where == "before it is noted as done":
    once.Claim.done = lambda self: os._exit(9)
publication = publication_of(json.loads(sys.argv[2]), Path.cwd())
jobs.account_of(publication)
all = jobs.Jobs()
all.begin("publish", publication)
all.close()
"""


@pytest.fixture
def folder(tmp_path):
    """Data and an account."""
    points = np.random.default_rng(5).random((300, 2))
    lines = ["x,y", *(f"{x:.4f},{y:.4f}" for x, y in points)]
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    sf.Ledger.create(tmp_path / "budget.db", epsilon=3)
    with heard():
        yield tmp_path


def meant(folder, **changed):
    return publication_of({**TABLES, **changed}, folder)


def published(folder, jobs=None, **changed):
    """The job, when it has ended."""
    mine = jobs or Jobs()
    job = mine.begin("publish", meant(folder, **changed))
    if jobs is None:
        mine.close()
    return job


def killed(folder, where, **changed):
    told = json.dumps({**TABLES, **changed})
    run = subprocess.run([sys.executable, "-c", OTHER, where, told], cwd=folder, check=False)
    assert run.returncode == 9


def spent(folder):
    return sf.Ledger(folder / "budget.db").spent


def test_pressed_again_it_is_the_same_release_and_nothing_more_is_charged(folder):
    first, again = published(folder), published(folder)
    assert first.error is None and again.error is None
    assert (first.result["again"], again.result["again"]) == (False, True)
    assert first.result["id"] == again.result["id"] == sf.load(folder / "visits.sfumato").id
    assert spent(folder) == sf.Ledger(folder / "budget.db").total / 6
    assert not list(folder.glob(".*.part"))


def test_tabs_of_one_studio_share_the_work(folder, monkeypatch):
    may, usual = threading.Event(), module.publish
    monkeypatch.setattr(module, "publish", lambda *a, **k: (may.wait(), usual(*a, **k))[1])
    jobs = Jobs()
    pressed = [jobs.begin("publish", meant(folder)) for _ in range(5)]
    assert len(set(map(id, pressed))) == 1 and pressed[0].running
    may.set()
    jobs.close()
    assert pressed[0].result is not None
    assert spent(folder) == 0.5


def test_of_two_studios_at_once_one_publishes_and_the_other_waits_to_be_asked_again(folder, monkeypatch):
    may, there, usual = threading.Event(), threading.Event(), module.publish

    def slowly(*a, **k):
        there.set()
        may.wait()
        return usual(*a, **k)

    monkeypatch.setattr(module, "publish", slowly)
    one = Jobs()
    first = one.begin("publish", meant(folder))
    assert there.wait(60)
    second = published(folder)
    assert second.error["message"] == (
        "another studio is publishing 'visits.sfumato' right now. Nothing was counted, drawn or recorded here. Wait "
        "for it, and open the release."
    )
    may.set()
    one.close()
    assert first.result is not None and spent(folder) == 0.5
    assert published(folder).result["again"] is True


def test_many_at_once_charge_once(folder):
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: published(folder), range(8)))
    assert spent(folder) == 0.5
    ids = {job.result["id"] for job in done if job.result}
    assert ids == {sf.load(folder / "visits.sfumato").id}


@pytest.mark.slow  # processes of their own
@pytest.mark.parametrize(("where", "charged"), [("before the charge", 0), ("before it is noted as done", 0.5)])
def test_a_studio_that_is_killed_is_charged_once_all_in_all(folder, where, charged):
    killed(folder, where)
    ledger = sf.Ledger(folder / "budget.db")
    ledger.check()
    assert spent(folder) == charged
    job = published(folder)
    assert job.error is None and spent(folder) == 0.5
    assert job.result["again"] is (where == "before it is noted as done")
    release = sf.load(folder / "visits.sfumato")
    assert [release.id] == [entry.release_id for entry in ledger.history() if entry.kind == "release"]
    assert release.private and release.total == 300
    assert not list(folder.glob(".*.part"))


LOST = (
    "and was never written: it is not drawn again. Nothing was counted, drawn or recorded now, and that charge stands."
)


@pytest.mark.slow
@pytest.mark.parametrize("output", [{}, {"vault": "secrets", "key": "vault.key"}], ids=["alone", "with a vault"])
def test_what_was_charged_and_never_written_is_lost_and_not_drawn_again(folder, output):
    """Its noise may have been seen: a second one for the same charge would tell more than was paid for."""
    output = {"file": "visits.sfumato", **output}
    killed(folder, "before the release is written", output=output)
    for _ in range(2):
        job = published(folder, output=output)
        assert LOST in job.error["message"] and job.error["field"] == "output.file"
        assert spent(folder) == 0.5 and not (folder / "visits.sfumato").exists()
    other = published(folder, output={**output, "file": "again.sfumato"})
    assert other.error is None and spent(folder) == 1  # under another name, and paid for


@pytest.mark.slow
def test_a_release_that_was_moved_before_it_was_noted_is_not_drawn_again(folder):
    killed(folder, "before it is noted as done")
    (folder / "visits.sfumato").rename(folder / "elsewhere.sfumato")
    assert LOST in published(folder).error["message"]
    assert spent(folder) == 0.5 and not (folder / "visits.sfumato").exists()


@pytest.mark.slow
def test_another_publication_does_not_take_the_charge_of_one_that_was_killed(folder):
    killed(folder, "before the release is written")
    job = published(folder, epsilon="1/4")
    assert "a release was charged for 'visits.sfumato' before, as " in job.error["message"]
    assert "for another publication. Nothing was counted" in job.error["message"]
    assert (job.error["field"], spent(folder)) == ("output.file", 0.5)
    assert not (folder / "visits.sfumato").exists()


def test_a_release_that_waits_in_the_outbox_is_put_where_it_belongs(folder, monkeypatch):
    def full(release, file, *, ledger):
        from sfumato.release.outbox import rescued

        raise rescued(release, "'visits.sfumato' could not be written", OSError(28, "No space left"), ledger=ledger)

    monkeypatch.setattr(module, "deliver", full)
    first = published(folder)
    assert first.error["kind"] == "Undelivered" and first.error["kept"].endswith(".sfumato")
    monkeypatch.undo()
    kept = sf.load(first.error["kept"])
    again = published(folder)
    assert again.result["id"] == kept.id and again.result["again"] is True
    assert np.array_equal(sf.load(folder / "visits.sfumato").counts, kept.counts)
    assert spent(folder) == 0.5 and not list((folder / "budget.db.outbox").iterdir())


def test_no_file_is_replaced(folder):
    (folder / "visits.sfumato").write_text("something of mine")
    job = published(folder)
    assert job.error["message"] == (
        "'visits.sfumato' is there already, and the studio replaces no file. Nothing was counted, drawn or recorded. "
        "Choose another name."
    )
    assert job.error["field"] == "output.file"
    assert spent(folder) == 0 and (folder / "visits.sfumato").read_text() == "something of mine"


def test_a_folder_that_is_not_there_is_named(folder):
    with pytest.raises(sf.InvalidInput) as refused:
        Jobs().begin("publish", meant(folder, output={"file": "none/visits.sfumato"}))
    assert module.refusal(refused.value) == {
        "kind": "InvalidInput",
        "message": "there is no folder 'none' for it. Nothing was counted, drawn or recorded.",
        "field": "output.file",
    }


def test_a_release_that_was_moved_away_is_not_made_again_under_its_name(folder):
    published(folder)
    (folder / "visits.sfumato").rename(folder / "elsewhere.sfumato")
    job = published(folder)
    assert "and is no longer there" in job.error["message"] and "Choose another name" in job.error["message"]
    assert spent(folder) == 0.5


def test_a_release_that_does_not_fit_is_refused_before_anything_is_drawn(folder):
    job = published(folder, epsilon="4")
    assert job.error["kind"] == "BudgetExceeded" and spent(folder) == 0
    assert not (folder / "visits.sfumato").exists() and not list(folder.glob(".*.part"))
    assert published(folder).error is None  # the same file, at an ε that fits


def test_stopped_in_time_nothing_is_charged(folder, monkeypatch):
    jobs, usual = Jobs(), Jobs._counts

    def stopped(self, job, publication):
        job.stop.set()
        return usual(self, job, publication)

    monkeypatch.setattr(Jobs, "_counts", stopped)
    job = published(folder, jobs)
    jobs.close()
    assert job.error["message"] == "stopped before anything was charged. Nothing was drawn or recorded."
    assert spent(folder) == 0 and not (folder / "visits.sfumato").exists()


def test_an_intent_that_is_none_is_refused_and_not_guessed(folder):
    (folder / ".visits.sfumato.intent").write_text("{}")
    job = published(folder)
    assert job.error["message"] == (
        "'.visits.sfumato.intent' beside the release is no intent of the studio's. Nothing was counted, drawn or "
        "recorded. Look in the ledger whether something was charged, and choose another name."
    )
    assert spent(folder) == 0


def test_the_intent_is_on_disk_before_the_charge(folder, monkeypatch):
    seen, usual = [], sf.Ledger.charge

    def charge(self, *guarantee, release_id, **more):
        told = json.loads((folder / ".visits.sfumato.intent").read_text())
        seen.append((told["release_id"] == release_id, told["done"]))
        return usual(self, *guarantee, release_id=release_id, **more)

    monkeypatch.setattr(sf.Ledger, "charge", charge)
    assert published(folder).error is None
    assert seen == [(True, False)]
    assert json.loads((folder / ".visits.sfumato.intent").read_text())["done"] is True


@pytest.mark.parametrize(
    ("account", "field", "said"),
    [
        ({}, "account", "ledger is missing: name the ledger that keeps account, or say without_ledger."),
        ({"ledger": "none.db"}, "account.ledger", "there is no ledger none.db."),
    ],
)
def test_without_an_account_nothing_begins(folder, account, field, said):
    with pytest.raises(sf.InvalidInput) as refused:
        Jobs().begin("publish", meant(folder, account=account))
    told = module.refusal(refused.value)
    assert said in told["message"] and told["field"] in (field, "account.ledger")
    assert not (folder / "none.db").exists()


def test_without_a_ledger_that_is_said_and_published_once_all_the_same(folder):
    account = {"without_ledger": True}
    first, again = published(folder, account=account), published(folder, account=account)
    assert first.result["left"] is None and first.result["id"] == again.result["id"]
    assert spent(folder) == 0


def test_a_claim_is_let_go(folder):
    for _ in range(2):
        with Claim(folder / "visits.sfumato", meant(folder)):
            pass
