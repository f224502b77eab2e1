"""`sfumato stream`: a table of times cut into steps, published in order, and gone on with."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import sfumato as sf
from sfumato.app.cli import app as APP
from sfumato.app.step_grid import StepGrid
from sfumato.publication import publication

BEGIN = datetime(2026, 3, 1)
WHERE = ["--x", "x", "--bounds=0,4", "--shape", "4", "--policy", "threshold", "--theta", "1", "--workload", "histogram"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(APP, ["stream", *map(str, arguments)])


def told(*arguments: object) -> dict:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    return " ".join(result.stderr.split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten hours of visits, ten an hour in cell 0 and as many as the hour's number in cell 3."""
    rows = [(BEGIN + timedelta(hours=h, minutes=5 * i), 0.5) for h in range(10) for i in range(10)]
    rows += [(BEGIN + timedelta(hours=h, minutes=59), 3.5) for h in range(10) for _ in range(h)]
    when, x = zip(*rows, strict=True)
    hour = [int((t - BEGIN).total_seconds() // 60) for t in when]
    table = pa.table({"t": pa.array(when), "x": x, "minute": hour, "user": np.arange(len(rows)) % 7})
    pq.write_table(table, tmp_path / "visits.parquet")
    zoned = table.set_column(0, "t", pa.array([t.replace(tzinfo=UTC) for t in when]))
    pq.write_table(zoned, tmp_path / "zoned.parquet")
    sf.Ledger.create(tmp_path / "budget.db", epsilon=1)
    return tmp_path


def given(folder: Path, *more: object, data: str = "visits.parquet", time: str = "t", step: str = "1h") -> list[object]:
    base = [folder / data, "--time", time, "--step", step, "--window", 4, "--ledger", folder / "budget.db"]
    return [*base, "--name", "visits", "--out", folder / "out", *WHERE, *more]


def totals(folder: Path) -> list[int]:
    """The policy makes the total public: what was counted is what is published."""
    return [sf.load(path).total for path in sorted((folder / "out").iterdir())]


def test_steps_are_half_open_and_published_in_order(folder):
    answer = told(*given(folder, "--start", "2026-03-01", "--stop", "2026-03-01T10:30"))
    assert totals(folder) == [10 + hour for hour in range(10)]
    assert answer == {
        "stream": "visits",
        "epsilon": "1",
        "window": "4 hours",
        "published": 10,
        "skipped": 0,
        "refused": [],
        "passed_over": [],
        "steps": 10,
        "lost": [],
        "raised": 0,
        "last": "2026-03-01 09:00:00",
        "left": "0.25",
        "folder": str(folder / "out"),
    }
    first = sf.load(sorted((folder / "out").iterdir())[0])
    assert (first.guarantee.epsilon, first.guarantee.window_epsilon) == (0.25, 1)


def test_a_second_run_goes_on_where_the_first_stopped(folder):
    told(*given(folder, "--start", "2026-03-01", "--stop", "2026-03-01T04:00"))
    first = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    assert told(*given(folder, "--stop", "2026-03-01T07:00"))["published"] == 3
    assert told(*given(folder, "--stop", "2026-03-01T07:00"))["published"] == 0
    assert len(totals(folder)) == 7
    assert all((folder / "out" / name).read_bytes() == content for name, content in first.items())


def test_a_run_that_is_killed_goes_on_with_nothing_charged_twice(folder, monkeypatch):
    calls = []
    count = sf.count

    def count_and_stop(*args, **more):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return count(*args, **more)

    monkeypatch.setattr(publication, "count", count_and_stop)
    run(*given(folder, "--start", "2026-03-01", "--stop", "2026-03-01T08:00"))
    monkeypatch.undo()
    account = sf.Ledger(folder / "budget.db").stream("visits")
    assert len(account) == 3
    assert told(*given(folder, "--stop", "2026-03-01T08:00"))["published"] == 5
    assert totals(folder) == [10 + hour for hour in range(8)]
    assert [step.epsilon for step in account.entries()] == [0.25] * 8


def test_a_budget_that_was_lost_is_told(folder):
    told(*given(folder, "--start", "2026-03-01", "--stop", "2026-03-01T02:00"))
    next((folder / "out").glob("*T01-00-00*")).unlink()
    result = run(*given(folder, "--stop", "2026-03-01T03:00"))
    assert (
        f"The release of 2026-03-01 01:00:00 was charged and is not in {folder / 'out'}: another machine stored it, or "
        "it was lost with its budget."
    ) in " ".join(result.stderr.split())
    assert "Published 1 steps" in result.stdout
    assert "Promise: ε = 1 for every window of 4 hours; 0.25 left for the next step." in result.stdout


def test_steps_that_were_passed_over_are_told_and_published_when_asked(folder):
    """Another program published a later step first; with --late the missed ones follow, in their own windows."""
    told(*given(folder, "--start", "2026-03-01", "--stop", "2026-03-01T01:00"))
    account = sf.Ledger(folder / "budget.db").stream("visits")
    account.charge(BEGIN + timedelta(hours=3), "0.75", label="by hand", release_id="elsewhere")
    run_again = given(folder, "--stop", "2026-03-01T05:00")
    assert "2 steps were passed over, the first at 2026-03-01 01:00:00: --late publishes" in run(*run_again).stdout
    both = ["2026-03-01 01:00:00", "2026-03-01 02:00:00"]
    assert told(*run_again)["passed_over"] == both
    answer = told(*run_again, "--late")
    assert (answer["published"], answer["refused"], answer["passed_over"]) == (0, both, [])
    assert "2026-03-01 01:00:00: time=2026-03-01 01:00:00 of stream 'visits' is late" in " ".join(
        run(*run_again, "--set", "stream.late=true").stderr.split()
    )
    assert [step.epsilon for step in account.entries()] == [0.25, 0.75, 0.25]


def test_late_steps_are_published_where_their_windows_have_room(folder):
    told(*given(folder, "--start", "2026-03-01", "--stop", "2026-03-01T01:00"))
    account = sf.Ledger(folder / "budget.db").stream("visits")
    account.charge(BEGIN + timedelta(hours=3), "0.25", label="by hand", release_id="elsewhere")
    answer = told(*given(folder, "--stop", "2026-03-01T05:00", "--late"))
    assert (answer["published"], answer["refused"], answer["steps"]) == (3, [], 5)
    assert [step.epsilon for step in account.entries()] == [0.25] * 5
    assert totals(folder) == [10, 11, 12, 14]


def test_a_step_without_budget_is_not_counted(folder, monkeypatch):
    """Nothing reads the records of a step that gets nothing."""
    counted = []
    count = publication.count
    monkeypatch.setattr(publication, "count", lambda *args, **more: counted.append(1) or count(*args, **more))
    options = ["--start", "2026-03-01", "--stop", "2026-03-01T08:00", "--allocation", "sample"]
    assert told(*given(folder, *options))["published"] == len(counted) == 2


def test_the_ledger_shows_its_streams(folder):
    told(*given(folder, "--start", "2026-03-01", "--stop", "2026-03-01T03:00"))
    show = ["ledger", "show", str(folder / "budget.db")]
    shown = CliRunner().invoke(APP, [*show, "--json"]).stdout
    (told_of,) = json.loads(shown)["streams"]
    assert told_of.pop("policy")["name"] == "threshold"
    assert told_of.pop("policy_in_words").startswith("one record moves by at most 1 cell")
    assert told_of == {
        "name": "visits",
        "epsilon": "1",
        "window": "4 hours",
        "steps": 3,
        "unit": "record",
        "max_per_entity": None,
    }
    assert "stream 'visits': ε 1 for every window of 4 hours, 3 steps so far" in CliRunner().invoke(APP, show).stdout


def test_whole_numbers_are_cut_into_whole_steps(folder):
    answer = told(*given(folder, "--start", "120", "--stop", "420", time="minute", step="60"))
    assert (answer["published"], answer["last"], answer["window"]) == (5, "6", "4 steps")
    assert totals(folder) == [12, 13, 14, 15, 16]


def test_a_column_with_a_zone_takes_times_with_one(folder):
    answer = told(
        *given(folder, "--start", "2026-03-01T02:00+02:00", "--stop", "2026-03-01T02:00Z", data="zoned.parquet")
    )
    assert (answer["published"], answer["last"]) == (2, "2026-03-01 01:00:00+00:00")
    assert totals(folder) == [10, 11]


@pytest.mark.parametrize(
    ("options", "published"),
    [
        (["--allocation", "sample"], 2),
        (["--allocation", "offline", "--weights", "1,0"], 4),
        (["--allocation", "online", "--distribution", "bernoulli:0.5", "--weights", "1,1,0,0"], 4),
        (["--allocation", "online", "--distribution", "periodic:1,0", "--weights", "1,0"], 4),
        (["--allocation", "online", "--distribution", "empirical:1,0,1"], 8),
        (["--allocation", "online", "--distribution", "markov:0,1;0.9,0.1;0.3,0.7", "--weights", "1,1,0,0"], 4),
    ],
)
def test_the_budget_can_be_divided_otherwise(folder, options, published):
    answer = told(*given(folder, "--start", "2026-03-01", "--stop", "2026-03-01T08:00", *options))
    assert (answer["published"], answer["skipped"]) == (published, 8 - published)


def test_top_up_raises_past_releases(folder):
    (folder / "weights.txt").write_text("1 1\n0 0 0 0\n")
    options = ["--allocation", "top-up", "--distribution", "bernoulli:0.5", "--weights", folder / "weights.txt"]
    options += ["--vault", folder / "secrets", "--key", folder / "vault.key", "--picture", folder / "visits.png"]
    answer = told(*given(folder, "--start", "2026-03-01", "--stop", "2026-03-01T10:00", *options))
    assert answer["raised"] > 0
    assert any("level-1" in path.name for path in (folder / "out").iterdir())
    assert (folder / "visits.png").read_bytes().startswith(b"\x89PNG")


def test_a_stream_that_has_ended_spends_what_is_left(folder):
    options = ["--allocation", "top-up", "--distribution", "bernoulli:0.5", "--vault", folder / "secrets"]
    options += ["--key", folder / "vault.key", "--stop", "2026-03-01T02:00"]
    assert told(*given(folder, "--start", "2026-03-01", *options))["raised"] == 0  # their windows are still open
    assert told(*given(folder, *options, "--ended"))["raised"] == 2
    steps = sf.Ledger(folder / "budget.db").stream("visits").entries()
    assert 0.999 < sum(step.epsilon for step in steps) <= 1


def test_what_lies_outside_may_be_dropped_where_the_policy_hides_it(folder):
    """At ε = 1,000 a window the noise is zero but once in 10¹⁰⁰ draws."""
    where = [part for part in given(folder, "--start", "2026-03-01", "--stop", "2026-03-01T04:00") if part != "4"]
    where[where.index("--bounds=0,4")] = "--bounds=0,3"
    where[where.index("--shape")] = "--shape=3"
    assert refused(*where, "--outside", "drop") == (
        "Error: outside='drop' is possible only under a policy whose border cells are all joined to ⊥, and the policy "
        "given has border cells that are not: a record that moves across the border would change the exact total, "
        "which is public there. Nothing was counted. Use outside='clamp', or pass such a policy."
    )
    assert not any((folder / "out").iterdir())
    anybody = [part for part in where if part not in ("--policy", "threshold", "--theta", "1")]
    anybody += ["--policy", "unbounded", "--epsilon", "1000", "--outside", "drop"]
    anybody[anybody.index("visits")] = "others"
    told(*anybody)
    assert totals(folder) == [10, 10, 10, 10]


def test_a_person_is_bounded_in_every_step(folder):
    told(
        *given(folder, "--start", "2026-03-01", "--stop", "2026-03-01T02:00", "--entity", "user", "--max-per-entity", 1)
    )
    release = sf.load(sorted((folder / "out").iterdir())[0])
    assert (release.guarantee.unit, release.total) == ("person", 7)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            [],
            "Error: stream 'visits' is new: say when its first step begins, with --start. It is not read off the "
            "records, which are private. Nothing was counted, drawn or recorded.",
        ),
        (
            ["--weights", "1,0"],
            "Error: --weights count from --start. Nothing was counted, drawn or recorded. Give --start.",
        ),
        (
            ["--start", "soon"],
            "Error: --start 'soon' is not a date or time. Nothing was counted, drawn or recorded.",
        ),
        (
            ["--start", "2026-03-01T00:00+01:00"],
            "Error: --start '2026-03-01T00:00+01:00' has a time zone, and column 't' has none. Nothing was counted, "
            "drawn or recorded.",
        ),
        (
            ["--start", "2026-03-01", "--time", "when"],
            "Error: --time 'when' is not a column of the data. Nothing was counted.",
        ),
        (
            ["--start", "2026-03-01", "--step", "hourly"],
            "Error: --step 'hourly' is not a length such as 15m, 1h or 1d, or a whole number. Nothing was counted.",
        ),
        (
            ["--start", "0", "--time", "minute"],
            "Error: --step '1h' does not go with column 'minute' of type Int64. Nothing was counted. Use 1h and the "
            "like for dates and times, a whole number for whole numbers.",
        ),
        (
            ["--start", "0", "--time", "minute", "--step", "60"],
            "Error: --stop is needed: column 'minute' has numbers, and the present is none. Nothing was counted, drawn "
            "or recorded.",
        ),
        (
            ["--start", "30", "--time", "minute", "--step", "60"],
            "Error: --start '30' is not a multiple of 60. Nothing was counted, drawn or recorded.",
        ),
        (
            ["--start", "2026-03-01", "--allocation", "online", "--distribution", "normal:0"],
            "Error: --distribution 'normal:0' is not one of bernoulli:P, periodic:W,W,…, empirical:W,W,… or "
            "markov:W,…;P,…;…. Nothing was counted.",
        ),
        (
            ["--start", "2026-03-01", "--stop", "2026-03-02", "--ended"],
            "Error: --ended goes with --allocation top-up and --stop. Nothing was counted or drawn.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(folder, more, message):
    assert refused(*given(folder, *more)) == message
    assert not (folder / "out").exists()


def test_without_stop_the_steps_that_are_over_by_now_are_published(folder, monkeypatch):
    monkeypatch.setattr(StepGrid, "now", lambda self: BEGIN + timedelta(hours=2, minutes=59))
    assert told(*given(folder, "--start", BEGIN.isoformat()))["published"] == 2


def test_the_present_is_told_as_the_column_tells_the_time():
    """To a day: a clock is put forward and back."""
    for zone in (None, UTC):
        now = StepGrid("t", timedelta(hours=1), zoned=zone is not None).now()
        assert now.tzinfo == zone
        assert abs(now.replace(tzinfo=None) - datetime.now(zone).replace(tzinfo=None)) < timedelta(days=1)
