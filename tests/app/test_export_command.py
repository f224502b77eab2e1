"""`sfumato export`: what is written, where, and what is refused before anything is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.app.cli import app

SPACE = sf.Grid(bounds=(-74, 40, -73, 41), shape=(3, 2)) * sf.Categories(["=bus", "bike"], name="mode")
COUNTS = np.arange(12).reshape(SPACE.shape) * 10


@pytest.fixture
def release(tmp_path: Path) -> sf.Release:
    found = sf.plan(sf.unbounded(SPACE), sf.histogram(), epsilon=1).publish(COUNTS)
    found.save(tmp_path / "r.sfumato")
    return found


def run(folder: Path, to: str, out: str, *more: str) -> Any:
    place = out if out == "-" else str(folder / out)
    return CliRunner().invoke(app, ["export", str(folder / "r.sfumato"), "--to", to, "--out", place, *more])


def refused(folder: Path, to: str, out: str, *more: str) -> str:
    """The message; nothing was written."""
    before = sorted(folder.iterdir())
    told = run(folder, to, out, *more, *(["--json"] if out != "-" else []))
    assert told.exit_code == 2 and sorted(folder.iterdir()) == before, told.output
    return told.stderr if out == "-" else json.loads(told.stdout)["error"]["message"]


def test_tables_have_every_cell_with_its_interval(release: sf.Release, tmp_path: Path) -> None:
    assert run(tmp_path, "csv", "r.csv").exit_code == run(tmp_path, "parquet", "r.parquet").exit_code == 0
    frame = release.to_frame("pandas")
    csv, parquet = pd.read_csv(tmp_path / "r.csv"), pd.read_parquet(tmp_path / "r.parquet")
    assert list(csv) == list(parquet) == list(frame)
    assert list(csv) == ["x_low", "x_high", "y_low", "y_high", "mode", "value", "stderr", "low", "high"]
    assert csv["mode"].tolist()[:2] == ["'=bus", "bike"]  # no formula for a spreadsheet
    for name in ("value", "stderr", "low", "high"):
        assert np.array_equal(csv[name], frame[name]) and np.array_equal(parquet[name], frame[name])
    about = pq.read_schema(tmp_path / "r.parquet").metadata
    assert about[b"guarantee"].decode() == str(release.guarantee)


def test_groups_and_parts_are_those_of_an_answer(release: sf.Release, tmp_path: Path) -> None:
    typed = ("--by", "mode", "--where", "x=-74,-73.5", "--confidence", "0.9")
    assert run(tmp_path, "csv", "r.csv", *typed).exit_code == 0
    found = pd.read_csv(tmp_path / "r.csv")
    wanted = release.answer(by="mode", x=(-74, -73.5), confidence=0.9)
    for name in ("value", "stderr", "low", "high"):
        assert np.array_equal(found[name], getattr(wanted, name))
    assert run(tmp_path, "csv", "-", "--where", "mode=bike").stdout.count("\n") == 7


def test_maps_and_pages(release: sf.Release, tmp_path: Path) -> None:
    geopandas = pytest.importorskip("geopandas", reason="needs sfumato[geo]")
    told = run(tmp_path, "geojson", "r.geojson", "--by", "mode", "--json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout) == {
        "file": str(tmp_path / "r.geojson"),
        "kind": "geojson",
        "bytes": (tmp_path / "r.geojson").stat().st_size,
        "promise": str(release.guarantee),
    }
    features = json.loads((tmp_path / "r.geojson").read_text())["features"]
    assert len(features) == 6 and features[0]["properties"]["count_bike"] == release.counts[0, 0, 1]
    assert run(tmp_path, "geoparquet", "map.parquet").exit_code == 0
    assert len(geopandas.read_parquet(tmp_path / "map.parquet")) == 6
    assert run(tmp_path, "html", "r.html", "--title", "Visits & more").exit_code == 0
    assert "<title>Visits &amp; more</title>" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["csv", "geojson", "html"])
def test_text_goes_to_standard_output_as_it_is_in_the_file(kind: str, release: sf.Release, tmp_path: Path) -> None:
    told = run(tmp_path, kind, "-")
    assert told.exit_code == 0 and run(tmp_path, kind, "file").exit_code == 0
    assert told.stdout_bytes == (tmp_path / "file").read_bytes()


def test_a_file_that_is_there_stays_unless_told_otherwise(release: sf.Release, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("mine")
    place = tmp_path / "r.csv"
    assert refused(tmp_path, "csv", "r.csv") == (
        f"--out {place} is there already. Nothing was written. Choose another file, or replace it with --force."
    )
    assert place.read_text() == "mine"
    assert run(tmp_path, "csv", "r.csv", "--force").exit_code == 0 and place.read_text().startswith('"x_low"')
    assert "is there already" in refused(tmp_path, "html", "r.sfumato")


@pytest.mark.parametrize(
    ("to", "out", "more", "words"),
    [
        ("cvs", "a", [], "--to 'cvs' must be one of csv, parquet, geojson, geoparquet, html. Did you mean 'csv'?"),
        ("parquet", "-", [], "--to parquet is no text and cannot go to standard output. Nothing was written."),
        ("csv", "-", ["--json"], "--json and --out - both speak on standard output. Nothing was written."),
        ("csv", "a", ["--level", "county"], "--level is for --to geojson and geoparquet. Nothing was written."),
        ("csv", "a", ["--density"], "--density is for --to geojson and geoparquet. Nothing was written."),
        ("parquet", "a", ["--title", "T"], "--title is for --to html. Nothing was written."),
        ("geojson", "a", ["--outlines", "b"], "--outlines is for --to html. Nothing was written."),
        ("csv", "no/such/folder.csv", [], "cannot be written there. Nothing was written."),
        ("csv", "a", ["--by", "mod"], "--by 'mod': 'mod' is no factor and no axis of this release"),
        ("csv", "a", ["--confidence", "2"], "confidence=2.0"),
        ("html", "a", ["--title", " "], "title=' ' must be a text. Nothing was written."),
        ("geojson", "a", ["--level", "county"], "level='county' is no level of a place of this release"),
    ],
)
def test_what_cannot_be_written_is_refused_with_nothing_written(
    to: str, out: str, more: list[str], words: str, release: sf.Release, tmp_path: Path
) -> None:
    told = refused(tmp_path, to, out, *more) if "--json" not in more else run(tmp_path, to, out, *more).stdout
    assert words in told


def test_a_file_that_is_no_release_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "r.sfumato").write_text("nothing")
    told = run(tmp_path, "csv", "a.csv", "--json")
    assert told.exit_code == 4 and json.loads(told.stdout)["error"]["kind"] == "FileFormatError"
    assert not (tmp_path / "a.csv").exists()
