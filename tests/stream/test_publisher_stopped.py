"""Streams that are stopped anywhere and started again: one release and one charge a step, or a budget that is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from publisher_case import COUNTS, POLICY, budgets, fullest, ledger, stream

import sfumato as sf
from sfumato.errors import InvalidInput, LedgerError
from sfumato.stream import publisher
from sfumato.stream.publisher import Stream


class Stopped(BaseException):
    """The power goes."""


def stop(*_, **__):
    raise Stopped


@pytest.mark.parametrize("kept", ["beside the ledger", "outbox", "vault"])
def test_a_repeat_gives_the_stored_release_and_charges_nothing(tmp_path, kept):
    given = {"outbox": tmp_path / "out"} if kept == "outbox" else {}
    if kept == "vault":
        given["vault"] = sf.Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    first = stream(tmp_path, **given).publish(4, COUNTS)
    again = stream(tmp_path, **given).publish(4, COUNTS * 2)
    assert (again.id, again.counts.tolist(), again.created) == (first.id, first.counts.tolist(), first.created)
    assert budgets(stream(tmp_path, **given)) == {4: Fraction(1, 3)}


def test_a_new_object_goes_on_where_the_last_one_stopped(tmp_path):
    weights = [1, 1, 0, 1, 2, 1, 0, 1]
    for time, weight in enumerate(weights):
        stream(tmp_path, "online").publish(time, COUNTS, weight)
    other = tmp_path / "other"
    other.mkdir()
    series = stream(other, "online")
    for time, weight in enumerate(weights):
        series.publish(time, COUNTS, weight)
    assert budgets(stream(tmp_path, "online")) == budgets(series)


def test_stopped_before_the_charge_nothing_happened(tmp_path, monkeypatch):
    series = stream(tmp_path)
    monkeypatch.setattr(series._account, "charge", stop)
    with pytest.raises(Stopped):
        series.publish(0, COUNTS)
    monkeypatch.undo()
    assert series.history() == ()
    assert stream(tmp_path).publish(0, COUNTS) is not None


@pytest.mark.parametrize("point", ["before drawing", "before storing"])
def test_stopped_between_charge_and_box_the_budget_is_lost_and_the_step_closed(tmp_path, monkeypatch, point):
    series = stream(tmp_path)
    if point == "before drawing":
        monkeypatch.setattr(type(series._plan.mechanism), "estimate", stop)
    else:
        monkeypatch.setattr(series._archive.store, "put", stop)
    with pytest.raises(Stopped):
        series.publish(0, COUNTS)
    monkeypatch.undo()
    series = stream(tmp_path)
    with pytest.raises(InvalidInput) as refused:
        series.publish(0, COUNTS)
    assert str(refused.value) == (
        "time=0 of stream 'visits' was charged 1/3, but its release is not stored: the program stopped in between, or "
        "the outbox is another one. Nothing was drawn or recorded. A second noise for one charge would undo both, so "
        "its budget is lost; go on with the next step."
    )
    assert budgets(series) == {0: Fraction(1, 3)}
    assert series.publish(1, COUNTS) is not None
    assert series.history()[0].path is None


def test_stopped_after_storing_the_release_is_handed_out_again(tmp_path, monkeypatch):
    series = stream(tmp_path)
    put = series._archive.store.put

    def put_and_stop(*given):
        put(*given)
        raise Stopped

    monkeypatch.setattr(series._archive.store, "put", put_and_stop)
    with pytest.raises(Stopped):
        series.publish(0, COUNTS)
    release = stream(tmp_path).publish(0, COUNTS)
    assert (release.id, release.guarantee.epsilon) == (series.history()[0].release_id, Fraction(1, 3))


@pytest.mark.parametrize("point", ["stage", "raise_step", "promote", "put_outbox", "after"])
@pytest.mark.parametrize("folder", [True, False])
def test_a_raise_stopped_anywhere_is_finished_later_and_charged_once(tmp_path, monkeypatch, point, folder):
    given = {"outbox": tmp_path / "out"} if folder else {}
    series = stream(tmp_path, "top-up", **given)
    for time, weight in enumerate([1, 1, 0]):
        series.publish(time, COUNTS, weight)
    if point == "after":
        monkeypatch.setattr(type(series._archive.store), "put", stop)
    elif point == "raise_step":
        monkeypatch.setattr(type(series._account), "raise_step", stop)
    else:
        monkeypatch.setattr(sf.Vault, point, stop)
    before = budgets(series)
    with pytest.raises(Stopped):
        series.top_up(ended=True)
    monkeypatch.undo()
    series = stream(tmp_path, "top-up", **given)
    series.top_up(ended=True)
    spent = budgets(series)
    assert fullest(spent, 3) <= 1
    assert spent[0] > before[0]
    for record in series.history():
        if record.release_id is not None:
            release = series.release(record.time)
            assert (release.id, release.guarantee.epsilon) == (record.release_id, record.epsilon)
            if folder:
                assert sf.load(record.path).guarantee.epsilon == record.epsilon


def test_two_publishers_of_one_stream_wait_for_each_other(tmp_path, monkeypatch):
    series, other = stream(tmp_path), stream(tmp_path)
    monkeypatch.setattr("sfumato.stream.archive._PATIENCE", 0.05)
    with publisher.alone(series._home, "visits"), pytest.raises(LedgerError) as refused:
        other.publish(0, COUNTS)
    assert str(refused.value) == (
        "Another process is publishing to stream 'visits'. Nothing was drawn or recorded. Try again when it has "
        "finished."
    )
    assert series.history() == ()


SCRIPT = """
import sys
import numpy as np
from pathlib import Path
from publisher_case import POLICY, ledger, COUNTS, stream
series = stream(Path(sys.argv[1]), "even", outbox=Path(sys.argv[1]) / "out")
time = max((record.time for record in series.history()), default=-1) + 1
while True:
    series.publish(time, COUNTS)
    print(time, flush=True)
    time += 1
"""


@pytest.mark.slow
def test_a_process_that_is_killed_again_and_again_never_publishes_a_step_twice(tmp_path):
    """Killed at any point for real: every step that was reported is stored, and each kill loses one step at most."""
    reported: set[int] = set()
    kills = 4
    for pause in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        )
        lines = [int(process.stdout.readline()) for _ in range(2 + pause)]
        sleep(0.005 * pause)
        process.kill()
        rest, _ = process.communicate()
        lines += [int(line) for line in rest.split()]
        assert not reported & set(lines)
        reported |= set(lines)
    series = stream(tmp_path, "even", outbox=tmp_path / "out")
    history = series.history()
    stored = {record.time for record in history if record.path is not None}
    assert reported <= stored
    assert len(history) - len(stored) <= kills
    assert fullest(budgets(series), 3) <= 1
    assert all(series.publish(time, COUNTS).id == series.history()[time].release_id for time in stored)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "visits 2026", "ünï", "con.d"])
def test_a_name_stays_in_its_own_folder(tmp_path, name):
    series = Stream(POLICY, sf.histogram(), epsilon=1, window=3, ledger=ledger(tmp_path), name=name)
    series.publish(0, COUNTS)
    path = series.history()[0].path
    assert path.parent.parent == tmp_path / "budget.db.streams" / "default"
    assert len(path.parent.name) > 0
    assert ".." not in path.parent.parts


def test_a_step_that_the_disk_does_not_take_after_its_charge_is_in_the_outbox(tmp_path, monkeypatch):
    series = stream(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(type(series._archive.store), "put", full)
        with pytest.raises(sf.Undelivered, match="The step of 0 of stream 'visits' could not be stored") as lost:
            series.publish(0, COUNTS)
    kept = lost.value.kept
    assert kept.parent == tmp_path / "budget.db.outbox"
    released = sf.load(kept)
    assert series.history()[0].release_id == released.id
    kept.rename(series._archive.store._file(0, 0))  # where it belongs, and the stream has it again
    assert np.array_equal(series.publish(0, COUNTS).counts, released.counts)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_step_without_room_on_the_disk_charges_nothing(tmp_path, monkeypatch):
    series = stream(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("sfumato.files._set_aside", full)
        with pytest.raises(InvalidInput, match=r"cannot be used: No space left on device\. Nothing was drawn"):
            series.publish(0, COUNTS)
    assert series.history() == ()
    assert series.publish(0, COUNTS) is not None
