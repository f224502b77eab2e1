"""The command line: every verb on a small city, in text and JSON, with its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import sfumato as sf
import sfumato.planning as planning
from sfumato.app.cli import app

GRID = ["--bounds=0,0,1,1", "--shape", "8x8", "--delta", "0.1"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def ok(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    table = pa.table({"user": np.arange(1000) % 200, "lon": rng.random(1000), "lat": rng.random(1000)})
    pq.write_table(table, tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


@pytest.fixture
def published(visits: Path) -> Path:
    out = visits.parent / "visits.sfumato"
    ok("publish", visits, "--x", "lon", "--y", "lat", *GRID, "--without-ledger", "--out", out)
    return out


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("plan",),
        ("publish",),
        ("query",),
        ("plot",),
        ("demo",),
        ("refine",),
        ("ledger",),
        ("ledger", "create"),
        ("ledger", "open"),
        ("ledger", "backup"),
        ("ledger", "check"),
        ("vault", "check"),
        ("doctor",),
    ],
)
def test_every_command_has_help_and_the_leaves_have_an_example(command: tuple[str, ...]) -> None:
    text = ok(*command, "--help")
    assert "Usage" in text
    if command not in ((), ("ledger",)):
        assert f"Example: sfumato {' '.join(command)}" in text


def test_version_is_printed() -> None:
    assert ok("--version") == f"sfumato {sf.__version__}\n"


def test_plan_prints_promise_error_and_rivals() -> None:
    text = ok("plan", *GRID, "--epsilon", "1/2")
    assert "Plan for 8 × 8 cells at ε = 0.5" in text
    assert "one record moves by less than 0.1" in text
    for name in ("identity", "hierarchy", "edges", "edge-haar"):
        assert name in text


def test_plan_as_json_equals_the_library() -> None:
    told = json.loads(ok("plan", *GRID, "--json"))
    plan = sf.plan(sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(8, 8)), 0.1), sf.ranges(), epsilon=1)
    assert told == json.loads(json.dumps(plan.to_dict()))


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [
        (["--bounds=0,24", "--shape", "24", "--policy", "threshold", "--theta", "2"], (24,)),
        (["--labels", "home,work,other", "--policy", "bounded", "--workload", "histogram"], (3,)),
        (["--bounds=0,0,0,1,1,1", "--shape", "2x3x4", "--policy", "unbounded"], (2, 3, 4)),
        ([*GRID, "--sources", "boundary"], (8, 8)),
        ([*GRID, "--sources", "0.5,0.5;0.1,0.1", "--metric", "manhattan"], (8, 8)),
    ],
)
def test_plan_takes_every_domain_and_policy(arguments: list[str], shape: tuple[int, ...]) -> None:
    told = json.loads(ok("plan", *arguments, "--json"))
    axes = told["guarantee"]["policy"]["domain"]["axes"]
    assert tuple(axis.get("cells", len(axis.get("labels", ()))) for axis in axes) == shape


def test_publish_charges_the_ledger_and_writes_a_release(visits: Path) -> None:
    budget, out = visits.parent / "budget.db", visits.parent / "out.sfumato"
    ok("ledger", "create", budget, "--epsilon", "1")
    result = run(
        "publish", visits, "--x", "lon", "--y", "lat", *GRID, "--epsilon", "0.4", "--ledger", budget, "--out", out
    )
    assert result.exit_code == 0, result.output
    assert "0.4 of 1 spent, 0.6 left" in result.stdout
    assert "1,000 rows read" in result.stderr and "1,000" not in result.stdout  # for the operator alone
    assert sf.load(out).total == 1000
    shown = json.loads(ok("ledger", "show", budget, "--json"))
    assert (shown["spent"], shown["left"]) == ("0.4", "0.6")


def test_publish_refuses_overspending_with_its_own_exit_code_and_writes_nothing(visits: Path) -> None:
    budget, out = visits.parent / "budget.db", visits.parent / "out.sfumato"
    ok("ledger", "create", budget, "--epsilon", "0.3")
    result = run(
        "publish", visits, "--x", "lon", "--y", "lat", *GRID, "--epsilon", "0.4", "--ledger", budget, "--out", out
    )
    assert result.exit_code == 3
    assert "epsilon=0.4 exceeds the 0.3 left" in result.stderr
    assert not out.exists()
    ok("ledger", "raise", budget, "--epsilon", "0.5")
    ok("publish", visits, "--x", "lon", "--y", "lat", *GRID, "--epsilon", "0.4", "--ledger", budget, "--out", out)


def test_publish_speaks_of_a_person_when_contributions_are_bounded(visits: Path) -> None:
    out = visits.parent / "out.sfumato"
    options = ["--x", "lon", "--y", "lat", *GRID, "--entity", "user", "--max-per-entity", "2", "--without-ledger"]
    told = json.loads(ok("publish", visits, *options, "--out", out, "--json"))
    assert (told["guarantee"]["unit"], told["guarantee"]["max_per_entity"], told["total"]) == ("person", 2, 400)


def test_query_answers_many_ranges_with_intervals(published: Path) -> None:
    listed = published.parent / "ranges.txt"
    listed.write_text("0,0,0.5,0.5\n0,0,1,1\n")
    told = json.loads(ok("query", published, "--range=0,0,1,0.5", "--ranges", listed, "--json"))
    release = sf.load(published)
    expected = release.answer([(0, 0, 1, 0.5), (0, 0, 0.5, 0.5), (0, 0, 1, 1)])
    for i, answer in enumerate(told["answers"]):
        names = ("value", "stderr", "low", "high", "cut_share")
        assert [answer[k] for k in names] == [getattr(expected, k)[i] for k in names]
    assert "95% interval" in ok("query", published, "--range", "0,0,1,1")


def test_query_says_what_it_does_with_cells_that_are_cut(published: Path) -> None:
    release, asked = sf.load(published), (0.1, 0.2, 0.77, 0.9)
    option = "--range=" + ",".join(map(str, asked))
    for cut in ("bracket", "proportion", "snap"):
        expected = release.answer(asked, cut=cut)
        told = json.loads(ok("query", published, option, "--cut", cut, "--json"))
        assert told["cut"] == cut
        (answer,) = told["answers"]
        assert (answer["low"], answer["high"]) == (expected.low, expected.high)
        assert answer["cut_share"] == expected.cut_share
        assert answer.get("answered", list(asked)) == list(expected.range)
    share = f"{release.answer(asked).cut_share:.0%}"
    words = ok("query", published, option)
    assert "in cut cells" in words
    assert f" {share} " in words
    assert "interval of the noise alone" in ok("query", published, option, "--cut", "proportion")
    snapped = ok("query", published, option, "--cut", "snap")
    assert "moved to the nearest whole cells" in snapped
    assert " 0% " in snapped
    assert run("query", published, option, "--cut", "half").exit_code == 2


def test_query_of_a_release_without_intervals_is_still_json(tmp_path: Path) -> None:
    line = sf.Line(0, 1, cells=8)
    path = tmp_path / "sorted.sfumato"
    sf.plan(sf.bounded(line), sf.ranges(), 1, mechanism="sorted").publish(np.full(8, 9)).save(path)
    (answer,) = json.loads(ok("query", path, "--range=0.1,0.6", "--json"))["answers"]
    assert answer["low"] is answer["high"] is answer["stderr"] is None
    assert answer["cut_share"] > 0
    assert "none: the error depends on the data" in ok("query", path, "--range=0.1,0.6")


def test_plot_writes_a_picture(published: Path) -> None:
    picture = published.parent / "map.png"
    ok("plot", published, "--out", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow  # the whole demonstration, twice
def test_demo_does_the_whole_job_again_and_again(tmp_path: Path) -> None:
    for _ in range(2):
        text = ok("demo", "--out", tmp_path / "demo", "--people", "2000")
        assert "Done in" in text
    for name in ("visits.parquet", "visits.sfumato", "map.png", "budget.db"):
        assert (tmp_path / "demo" / name).exists()
    assert sf.load(tmp_path / "demo" / "visits.sfumato").guarantee.unit == "person"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["plan"], 2, "give --bounds and --shape"),
        (["plan", "--bounds=0,1,2", "--shape", "4"], 2, "--bounds has 3 numbers; a --shape of 1 axes needs 2."),
        (["plan", "--bounds=a,1", "--shape", "4"], 2, "--bounds 'a,1' is not a list of numbers"),
        (["plan", "--bounds=0,1", "--shape", "x"], 2, "--shape 'x' is not a number of cells"),
        (["plan", *GRID[:3], "--policy", "near"], 2, "--policy 'near' is not one of within"),
        (["plan", *GRID[:3]], 2, "--policy within needs --delta"),
        (["plan", *GRID, "--theta", "3"], 2, "--theta does not belong to --policy within."),
        (["plan", *GRID[:3], "--policy", "threshold"], 2, "--policy threshold needs --theta"),
        (["plan", *GRID, "--epsilon", "0"], 2, "epsilon='0' must be greater than zero."),
        (["plan", *GRID, "--epsilon", "nan"], 2, "epsilon='nan' is not a finite number."),
        (["plan", *GRID, "--workload", "means"], 2, "--workload 'means' is not one of ranges"),
        (["plan", *GRID, "--labels", "a,b"], 2, "--labels stands alone"),
        (["plan", *GRID, "--mechanism", "magic"], 2, "mechanism='magic' is not one of"),
        (["query", "missing.sfumato", "--range", "0,1"], 4, "missing.sfumato"),
        (["plot", "missing.sfumato", "--out", "x.png"], 4, "missing.sfumato"),
        (["ledger", "show", "missing.db"], 2, "there is no ledger missing.db"),
        (["ledger", "raise", "missing.db", "--epsilon", "2"], 2, "there is no ledger missing.db"),
        (["publish", "x.parquet", *GRID, "--out", "y.sfumato"], 2, "give --ledger FILE to keep account"),
    ],
)
def test_refusals_name_the_reason_and_the_exit_code(
    arguments: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert (result.exit_code, message in result.stderr) == (code, True), result.output
    told = json.loads(run(*arguments, "--json").stdout)
    assert told["error"]["exit_code"] == code
    assert list(tmp_path.iterdir()) == []


def test_unknown_labels_go_to_the_label_for_the_rest(tmp_path: Path) -> None:
    pq.write_table(pa.table({"category": ["bus", "tram", "ship", "boat"]}), tmp_path / "trips.parquet")
    arguments = ["publish", tmp_path / "trips.parquet", "--labels", "bus,tram,rest", "--policy", "bounded"]
    arguments += ["--workload", "histogram", "--epsilon", "50", "--without-ledger", "--out", tmp_path / "trips.sfumato"]
    assert run(*arguments).exit_code == 2
    ok(*arguments, "--other", "rest")
    assert sf.load(tmp_path / "trips.sfumato").counts.round().tolist() == [1, 1, 2]


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_an_unexpected_error_tells_its_class_and_never_its_text(
    as_json: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise KeyError("alice@secret.org")

    monkeypatch.setattr(planning, "plan", broken)
    result = run("plan", *GRID, *as_json)
    assert result.exit_code == 1
    assert "an unexpected KeyError stopped the program" in result.output
    assert "alice" not in result.output
    monkeypatch.setenv("SFUMATO_DEBUG", "1")
    assert isinstance(run("plan", *GRID, *as_json).exception, KeyError)


def test_query_refuses_ranges_of_the_wrong_length(published: Path) -> None:
    result = run("query", published, "--range", "0,1")
    assert result.exit_code == 2
    assert "every range on this release needs 4 numbers" in result.stderr
    assert run("query", published).exit_code == 2


def test_publish_refuses_an_output_that_cannot_be_written_before_counting(visits: Path) -> None:
    result = run("publish", visits, *GRID, "--without-ledger", "--out", visits.parent / "no" / "out.sfumato")
    assert result.exit_code == 2
    assert "Nothing was counted, drawn or recorded." in result.stderr


# --- levels -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def refinable(visits: Path) -> Path:
    folder = visits.parent
    ok("ledger", "create", folder / "budget.db", "--epsilon", "5")
    kept = ["--vault", folder / "secrets", "--key", folder / "vault.key", "--ledger", folder / "budget.db"]
    ok("publish", visits, "--x", "lon", "--y", "lat", *GRID, *kept, "--out", folder / "a.sfumato")
    return folder


def levels(folder: Path) -> list[object]:
    return ["--vault", folder / "secrets", "--key", folder / "vault.key", "--ledger", folder / "budget.db"]


def test_refine_writes_a_finer_release_for_the_difference(refinable: Path) -> None:
    text = ok("refine", refinable / "a.sfumato", "--epsilon", "3", *levels(refinable), "--out", refinable / "b.sfumato")
    assert "Promise, for all levels together" in text
    assert sf.load(refinable / "b.sfumato").guarantee.epsilon == 3
    assert sf.Ledger(refinable / "budget.db").spent == 3
    again = json.loads(
        ok(
            "refine",
            refinable / "a.sfumato",
            "--epsilon",
            "3",
            *levels(refinable),
            "--out",
            refinable / "c.sfumato",
            "--json",
        )
    )
    assert again["ledger_left"] == "2"
    assert np.array_equal(sf.load(refinable / "b.sfumato").counts, sf.load(refinable / "c.sfumato").counts)


def test_refine_refuses_before_anything_is_drawn(refinable: Path) -> None:
    out = refinable / "b.sfumato"
    too_much = run("refine", refinable / "a.sfumato", "--epsilon", "9", *levels(refinable), "--out", out)
    assert too_much.exit_code == 3
    smaller = run("refine", refinable / "a.sfumato", "--epsilon", "0.5", *levels(refinable), "--out", out)
    assert smaller.exit_code == 2
    nowhere = run("refine", refinable / "a.sfumato", "--epsilon", "2", *levels(refinable), "--out", refinable)
    assert nowhere.exit_code == 2
    missing = run("refine", refinable / "a.sfumato", "--epsilon", "2", "--vault", refinable / "none", "--out", out)
    assert missing.exit_code == 2
    assert not out.exists()
    assert sf.Ledger(refinable / "budget.db").spent == 1


def test_vault_check_finds_what_is_broken(refinable: Path) -> None:
    text = ok("vault", "check", refinable / "secrets", "--key", refinable / "vault.key")
    assert "1 releases, 1 intact." in text
    told = json.loads(ok("vault", "check", refinable / "secrets", "--key", refinable / "vault.key", "--json"))
    assert told["releases"][0]["levels"] == [{"level": 0, "epsilon": "1"}]
    state = next((refinable / "secrets").glob("*.state"))
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 1
    state.write_bytes(content)
    broken = run("vault", "check", refinable / "secrets", "--key", refinable / "vault.key")
    assert broken.exit_code == 4
    assert "cannot be refined any more" in broken.output
    assert run("vault", "check", refinable / "none").exit_code == 2
    assert run("vault", "check", refinable / "secrets", "--key", refinable / "no.key").exit_code == 2


@pytest.mark.slow  # a process of its own
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    sf.Ledger.create(tmp_path / "budget.db", epsilon=1)
    program = "import sys; from sfumato.app.cli import main; sys.argv = ['sfumato', *sys.argv[1:]]; main()"
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run(
        [sys.executable, "-c", program, "ledger", "show", str(tmp_path / "budget.db")],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (run.returncode, run.stderr) == (0, "")
