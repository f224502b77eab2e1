"""The operator's preflight: `sfumato check`, and what `publish` tells, asks and stops before anything is charged."""

from __future__ import annotations

import contextlib
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
from sfumato.app import preflight
from sfumato.app.cli import app

NEW_YORK = ["--bounds=-74.3,40.5,-73.7,40.95", "--shape", "32x32"]
RULE = ["--policy", "bounded", "--workload", "histogram"]
RNG = np.random.default_rng(5)
LON, LAT = RNG.normal(-74, 0.02, 500), RNG.normal(40.72, 0.02, 500)
DISASTERS = {
    "swapped": ([*NEW_YORK, "--x", "lat", "--y", "lon"], "outside the bounds"),
    "feet": ([*NEW_YORK, "--x", "feet_x", "--y", "feet_y"], "outside the bounds"),
    "bounds turned": (["--bounds=-74.3,-73.7,40.5,40.95", "--shape", "32x32", "--x", "lon", "--y", "lat"], "small box"),
    "nulls": ([*NEW_YORK, "--x", "lon", "--y", "seldom"], "have no coordinates"),
    "no rows": ([*NEW_YORK, "--x", "lon", "--y", "lat"], "There are no rows."),
}


def run(*arguments: object, input: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], input=input)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    columns = {"lon": LON, "lat": LAT, "feet_x": LON * 288_000, "feet_y": LAT * 364_000}
    table = pa.table(columns | {"seldom": [None] * 400 + LAT[:100].tolist(), "user": np.arange(500) % 50})
    pq.write_table(table, tmp_path / "visits.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    sf.Ledger.create(tmp_path / "budget.db", epsilon=2)
    return tmp_path


def given(folder: Path, name: str | None = None) -> list[object]:
    where = [*NEW_YORK, "--x", "lon", "--y", "lat"] if name is None else DISASTERS[name][0]
    data = folder / ("empty.parquet" if name == "no rows" else "visits.parquet")
    return [data, *where, *RULE, "--ledger", folder / "budget.db", "--out", folder / "out.sfumato"]


def untouched(folder: Path) -> bool:
    return sf.Ledger(folder / "budget.db").spent == 0 and not (folder / "out.sfumato").exists()


def test_check_takes_the_options_of_publish_and_charges_nothing(folder):
    result = run("check", *given(folder), "--label", "x", "--strict", "--yes", "--vault", folder / "vault")
    assert result.exit_code == 0, result.output
    assert "500 rows read, 0 without coordinates, 0 outside the bounds." in result.stdout
    assert "Nothing gross was found." in result.stdout
    assert "Nothing was charged, drawn or recorded." in result.stdout
    assert "The release would cost ε 1 of the 2 left in the ledger." in result.stdout
    assert untouched(folder) and not (folder / "vault").exists()


@pytest.mark.parametrize("name", DISASTERS)
def test_check_finds_a_disaster_and_exits_with_its_own_code(folder, name):
    result = run("check", *given(folder, name))
    assert result.exit_code == 8, result.output
    assert f"{DISASTERS[name][1]}" in result.stdout.split("Gross: ", 1)[1]
    told = json.loads(run("check", *given(folder, name), "--json").stdout)
    assert (told["ok"], told["private"], told["cost"], told["ledger_left"]) == (False, True, "1", "2")
    assert DISASTERS[name][1] in " ".join(told["gross"])
    assert untouched(folder)


def test_check_tells_shares_and_keeps_to_the_limit_it_is_given(folder):
    assert run("check", *given(folder, "nulls"), "--limit", "0.8").exit_code == 0
    told = json.loads(run("check", *given(folder, "nulls"), "--limit", "0.79", "--json").stdout)
    assert told["shares"] == {"without coordinates": 0.8, "outside": 0}
    assert (told["rows"], told["without_coordinates"], told["limit"]) == (500, 400, 0.79)
    people = ["--entity", "user", "--max-per-entity", "2"]
    assert json.loads(run("check", *given(folder), *people, "--json").stdout)["cut"] == 400
    for wrong in ("2", "-1", "half"):
        assert run("check", *given(folder), "--limit", wrong).exit_code == 2


@pytest.mark.parametrize("name", DISASTERS)
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_without_a_terminal_publish_warns_and_goes_on(folder, name, as_json):
    """Silence of a nightly job would be an output."""
    result = run("publish", *given(folder, name), *as_json)
    assert result.exit_code == 0, result.output
    assert "Warning: " in result.stderr and DISASTERS[name][1] in result.stderr
    assert DISASTERS[name][1] not in result.stdout
    assert sf.Ledger(folder / "budget.db").spent == 1


@pytest.mark.parametrize("name", DISASTERS)
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_strict_stops_before_anything_is_charged(folder, name, as_json):
    result = run("publish", *given(folder, name), "--strict", *as_json)
    assert result.exit_code == 8, result.output
    text = json.loads(result.stdout)["error"]["message"] if as_json else result.stderr
    assert DISASTERS[name][1] in text
    assert text.strip().endswith("--strict stops here. Nothing was drawn or recorded.")
    assert untouched(folder)


def test_strict_lets_good_data_pass(folder):
    assert run("publish", *given(folder), "--strict").exit_code == 0
    assert sf.Ledger(folder / "budget.db").spent == 1


@pytest.mark.parametrize(("answer", "published"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
@pytest.mark.parametrize("name", [None, "swapped"])
def test_at_a_terminal_somebody_is_asked_before_anything_is_charged(folder, monkeypatch, answer, published, name):
    monkeypatch.setattr(preflight, "at_terminal", lambda: True)
    result = run("publish", *given(folder, name), input=answer)
    assert "500 rows read" in result.stderr and "Publish? [y/N]" in result.stderr
    assert ("Warning: All (100 %) of the records" in result.stderr) == (name == "swapped")
    assert result.exit_code == (0 if published else 8)
    assert (folder / "out.sfumato").exists() == published
    assert sf.Ledger(folder / "budget.db").spent == (1 if published else 0)


def test_yes_is_for_scripts_at_a_terminal(folder, monkeypatch):
    monkeypatch.setattr(preflight, "at_terminal", lambda: True)
    result = run("publish", *given(folder, "swapped"), "--yes")
    assert result.exit_code == 0 and "Publish?" not in result.output and "Warning: " in result.stderr


def all_that_was_written(master: int) -> bytes:
    """To a terminal that nobody has open any more: in pieces, and some systems say so with an error."""
    told = b""
    with os.fdopen(master, "rb", buffering=0) as reader, contextlib.suppress(OSError):
        while piece := reader.read(1 << 16):
            told += piece
    return told


@pytest.mark.slow  # a process of its own
def test_a_real_terminal_is_asked(folder):
    """In a terminal of its own, answered with no."""
    pty = pytest.importorskip("pty", reason="POSIX terminals")
    master, terminal = pty.openpty()
    program = "import sys; from sfumato.app.cli import main; sys.argv = ['sfumato', *sys.argv[1:]]; main()"
    arguments = [sys.executable, "-c", program, "publish", *map(str, given(folder, "swapped"))]
    os.write(master, b"n\n")
    process = subprocess.run(arguments, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, check=False)
    os.close(terminal)
    told = all_that_was_written(master)
    assert process.returncode == 8, told
    assert b"Publish? [y/N]" in told and b"Nothing was drawn or recorded." in told
    assert untouched(folder)


@pytest.mark.slow  # a process of its own
def test_a_warning_stops_no_run_whatever_python_is_told(folder):
    program = "import sys; from sfumato.app.cli import main; sys.argv = ['sfumato', *sys.argv[1:]]; main()"
    arguments = [*map(str, given(folder, "bounds turned"))]
    environment = os.environ | {"PYTHONWARNINGS": "error"}
    process = subprocess.run(
        [sys.executable, "-c", program, "publish", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "Warning: bounds=(-74.3, -73.7, 40.5, 40.95) are read as (lo…, hi…)" in process.stderr


def test_a_range_outside_the_map_is_refused(folder):
    assert run("publish", *given(folder)).exit_code == 0
    outside = run("query", folder / "out.sfumato", "--range=40.6,-74.1,40.8,-73.9")
    assert outside.exit_code == 2
    assert "lies outside the bounds (-74.3, 40.5, -73.7, 40.95)" in outside.stderr
    turned = run("query", folder / "out.sfumato", "--range=-74.1,-74,40.6,40.7")
    assert turned.exit_code == 0
    assert "Warning: ranges holds (-74.1, -74, 40.6, 40.7), which reaches beyond the bounds" in turned.stderr
