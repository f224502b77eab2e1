"""Exports: tables and maps that other tools read back, cell for cell."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from released import GRID, LINE, MEANS, MIXED, PLANS, known, sample

import sfumato as sf
from sfumato.release import geography


@pytest.mark.parametrize("name", PLANS)
def test_tables_hold_every_cell_once_with_its_error(name: str, tmp_path: Path) -> None:
    release = sample(name)
    parquet = pl.read_parquet(release.to_parquet(tmp_path / "a.parquet"))
    csv = pd.read_csv(release.to_csv(tmp_path / "a.csv"))
    for table in (parquet, csv):
        assert list(table.columns)[-2:] == ["count", "stderr"]
        assert np.array_equal(table["count"].to_numpy(), release.counts.ravel())
        if release.mechanism.model is not None:
            assert np.array_equal(table["stderr"].to_numpy(), release.cells().stderr.ravel())
    assert list(parquet.columns) == list(csv.columns)


def test_intervals_become_two_columns_and_labels_one(tmp_path: Path) -> None:
    grid = pd.read_parquet(known(GRID, range(30)).to_parquet(tmp_path / "g"))
    assert list(grid.columns) == ["lon_low", "lon_high", "lat_low", "lat_high", "count", "stderr"]
    lon, lat = (axis.edges for axis in GRID.intervals)
    assert grid.iloc[7].tolist()[:5] == [lon[1], lon[2], lat[2], lat[3], 7]  # C order: cell 7 is (1, 2)
    means = pd.read_csv(known(MEANS, range(3)).to_csv(tmp_path / "c"))
    assert means["category"].tolist() == ["bus", "tram", 'by "foot", slowly']
    mixed = pd.read_parquet(known(MIXED, range(12)).to_parquet(tmp_path / "m"))
    assert list(mixed.columns) == ["hour_low", "hour_high", "week", "count", "stderr"]
    assert mixed["week"].tolist() == [1, 2, 3] * 4


def test_axes_with_awkward_names_keep_their_columns_apart(tmp_path: Path) -> None:
    domain = sf.Domain((sf.Interval("a", 0, 1, 2), sf.Labels("a_low", (1, 2)), sf.Labels("count", ("x", "y"))))
    table = pd.read_parquet(known(domain, range(8)).to_parquet(tmp_path / "t"))
    assert list(table.columns) == ["a_low", "a_high", "a_low_", "count_", "count", "stderr"]
    assert table["count"].tolist() == list(range(8))


def test_a_table_carries_the_guarantee_in_words(tmp_path: Path) -> None:
    release = sample("within edges")
    about = pq.read_schema(release.to_parquet(tmp_path / "a")).metadata
    assert about[b"guarantee"].decode() == str(release.guarantee)
    assert about[b"guarantee"].decode().startswith("NOT PRIVATE")


def test_geojson_holds_a_rectangle_for_every_cell(tmp_path: Path) -> None:
    release = sample("within boundary")
    content = json.loads(release.to_geojson(tmp_path / "a.geojson").read_text("utf-8"))
    assert content["type"] == "FeatureCollection"
    assert (content["epsilon"], content["private"], content["release"]) == ("0.7", False, release.id)
    assert content["guarantee"] == str(release.guarantee)
    features = content["features"]
    assert [f["properties"]["count"] for f in features] == release.counts.ravel().tolist()
    assert [f["properties"]["stderr"] for f in features] == release.cells().stderr.ravel().tolist()
    (ring,) = features[7]["geometry"]["coordinates"]
    lon, lat = (axis.edges.tolist() for axis in GRID.intervals)
    assert ring[0] == ring[4] == [lon[1], lat[2]]
    assert ring[2] == [lon[2], lat[3]]
    area = sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise(ring)) / 2
    assert area == pytest.approx((lon[2] - lon[1]) * (lat[3] - lat[2]))  # positive: counter-clockwise


def test_an_export_replaces_an_older_file_and_returns_its_path(tmp_path: Path) -> None:
    for suffix in ("parquet", "csv", "geojson"):
        path = tmp_path / f"a.{suffix}"
        path.write_text("old")
        assert getattr(sample("within edges"), f"to_{suffix}")(str(path)) == path
        assert path.stat().st_size > 100
    assert len(list(tmp_path.iterdir())) == 3


def test_an_error_that_is_unknown_is_missing_rather_than_a_number(tmp_path: Path) -> None:
    release = sample("threshold consistent")
    assert pl.read_parquet(release.to_parquet(tmp_path / "a"))["stderr"].null_count() == 8
    assert pd.read_csv(release.to_csv(tmp_path / "b"))["stderr"].isna().all()
    grid = sf.plan(sf.unbounded(GRID), sf.histogram(), 1, mechanism="dawa").publish(np.zeros(GRID.shape, int))
    features = json.loads(grid.to_geojson(tmp_path / "c").read_text("utf-8"))["features"]
    assert [f["properties"]["stderr"] for f in features] == [None] * 30


# ---------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(("domain", "names"), [(LINE, "'x'"), (MIXED, "'hour', 'week'"), (MEANS, "'category'")])
def test_geojson_is_for_two_interval_axes(domain: sf.Domain, names: str, tmp_path: Path) -> None:
    with pytest.raises(sf.InvalidInput) as refusal:
        known(domain, range(domain.size)).to_geojson(tmp_path / "a")
    assert str(refusal.value) == (
        f"A map needs regions, hexagons or a grid of two interval axes; this release has the axes {names}. Nothing was "
        "written. Use to_frame, to_parquet or to_csv."
    )
    assert list(tmp_path.iterdir()) == []


def test_geojson_of_too_many_cells_is_refused_before_it_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert geography.LARGEST_GEOJSON == 1_000_000
    monkeypatch.setattr(geography, "LARGEST_GEOJSON", 29)
    with pytest.raises(sf.TooLarge) as refusal:
        sample("within edges").to_geojson(tmp_path / "a")
    assert str(refusal.value) == (
        "30 cells are too many for GeoJSON (at most 29). Nothing was written. Use to_parquet."
    )
    assert list(tmp_path.iterdir()) == []
