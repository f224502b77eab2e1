"""`sfumato init`: a publication file from names and types alone, with placeholders for what comes from elsewhere."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import sfumato as sf
from sfumato.app import init
from sfumato.app.cli import app
from sfumato.app.schema import Column, guessed

SECRETS = ("-73.4321", "40.9876", "2026-07-08", "nightly-clinic", "alice-4711")


def run(*arguments: object, input: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], input=input)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = pa.table(
        {
            "user_id": ["alice-4711"],
            "pickupLon": [-73.4321],
            "pickupLat": [40.9876],
            "pickup_time": [datetime(2026, 7, 8)],
            "mode": ["nightly-clinic"],
            'a "note"': ["nightly-clinic"],
        }
    )
    pq.write_table(table, tmp_path / "trips.parquet")
    (tmp_path / "trips.csv").write_text(
        "user_id,lon,lat,when,mode\nalice-4711,-73.4321,40.9876,2026-07-08,nightly-clinic\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("data", ["trips.parquet", "trips.csv"])
def test_nothing_of_any_value_enters_the_file(folder, data):
    result = run("init", data)
    assert result.exit_code == 0, result.output
    text = (folder / "trips.toml").read_text()
    assert not [secret for secret in SECRETS if secret in text + result.output]
    with pytest.raises(sf.SfumatoError, match="epsilon is missing"):
        sf.load_publication(folder / "trips.toml")
    assert "must come from what everybody may know" in text and "never from a look" in text


def test_what_is_known_stands_as_keys_and_the_rest_as_placeholders(folder):
    told = json.loads(run("init", "trips.parquet", "--out", "job.toml", "--json").stdout)
    assert told["columns"] == ["mode", "pickupLat", "pickupLon", "pickup_time", "user_id"]
    assert told["missing"] == ["hide", "epsilon", "bounds", "shape", "start", "stop", "every", "labels", "ledger"]
    text = (folder / "job.toml").read_text()
    for line in ('x = "pickupLon"', 't = "pickup_time"', 'entity = "user_id"', "max_per_entity = 1", "# bounds = ["):
        assert line in text
    assert '# not used: "a \\"note\\"" (VARCHAR)' in text


def test_what_is_filled_in_is_a_publication(folder):
    run("init", "trips.parquet")
    path = folder / "trips.toml"
    lines = [
        line.removeprefix("# ") if line.startswith("# ") and " = " in line else line
        for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(lines))
    publication = sf.load_publication(path)
    assert publication.domain.names == ("x", "y", "t", "mode")
    assert (publication.data.columns["t"], publication.data.entity) == ("pickup_time", "user_id")
    assert publication.policy.public == ("t",)


def test_at_a_terminal_it_asks_and_asks_again(folder, monkeypatch):
    monkeypatch.setattr(init, "at_terminal", lambda: True)
    answers = [
        "a,b",
        "-74,40,-73,41",
        "8x8",
        "0.01",
        "2026-07-01",
        "2026-08-01",
        "1 day",
        "y",
        "night,day",
        "much",
        "1/2",
        "",
    ]
    result = run("init", "trips.parquet", input="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    assert "is not a list of numbers" in result.stderr and "epsilon='much'" in result.stderr
    assert "Still to be said in it: ledger." in result.stdout
    publication = sf.load_publication(folder / "trips.toml")
    assert publication.policy == sf.policy(
        sf.Grid(bounds=(-74, 40, -73, 41), shape=(8, 8))
        * sf.Times("2026-07-01", "2026-08-01", every="1 day", name="t")
        * sf.Categories(["night", "day"], name="mode"),
        hide=sf.move(0.01) | sf.change("mode"),
        public=["t"],
    )
    assert publication.epsilon == 0.5


def test_it_never_replaces_a_file_and_wants_names(folder):
    (folder / "trips.toml").write_text("mine")
    result = run("init", "trips.parquet")
    assert result.exit_code == 2 and "is there already. Nothing was written." in result.stderr
    (folder / "bare.csv").write_text("-73.4321,40.9876,2026-07-08\n-73.4321,40.9876,2026-07-08\n")
    result = run("init", "bare.csv")
    assert result.exit_code == 2 and "looks like a record" in result.stderr
    assert not [secret for secret in SECRETS if secret in result.output]
    assert not (folder / "bare.toml").exists() and (folder / "trips.toml").read_text() == "mine"


@pytest.mark.parametrize(
    ("names", "place"),
    [
        ("lon lat", ("lon", "lat")),
        ("id Longitude Latitude", ("Longitude", "Latitude")),
        ("dropoff_lat pickup_lng pickup_lat", ("pickup_lng", "pickup_lat")),
        ("y x", ("x", "y")),
        ("lon height", None),
        ("long_name lat_name", ("long_name", "lat_name")),
    ],
)
def test_a_place_is_two_columns_of_the_same_thing(names, place):
    found = guessed([Column(name, "DOUBLE") for name in names.split()]).place
    assert place == (found and tuple(column.name for column in found))


def test_types_speak_where_there_are_some():
    columns = [Column("lon", "VARCHAR"), Column("lat", "VARCHAR"), Column("mode", "DOUBLE"), Column("t", "BIGINT")]
    found = guessed([*columns, Column("made", "TIMESTAMP")])
    assert (found.place, found.category, found.entity) == (None, None, None)
    assert found.time == Column("made", "TIMESTAMP")


@pytest.mark.parametrize("name", ["started_at", "startedAt", "created_at", "pickup_datetime"])
def test_times_of_bike_trips_are_found_by_their_names_in_files_without_types(name):
    found = guessed([Column(one, None) for one in ("ride_id", "start_lat", "start_lng", name)])
    assert found.time == Column(name, None)
    assert found.place is not None and found.place[0].name == "start_lng"
