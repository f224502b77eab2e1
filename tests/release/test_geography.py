"""Maps for others: every row once with its outline, the figures of answers, and nothing where nothing lies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from maps import frame, geopandas, hard, shapely, voronoi
from released import known

import sfumato as sf
from sfumato.release.geography import to_geoparquet

NAMES = ["value", "stderr", "low", "high"]
MODES = sf.Categories(["bus", "bike"], name="mode")


def regions(name: str = "place", crs: str = "EPSG:4326") -> sf.Domain:
    """Twelve or fewer regions with holes and islands, in three counties of two states."""
    shapes = hard()
    county = [f"c{i % 3}" for i in range(len(shapes))]
    state = ["s0" if one == "c0" else "s1" for one in county]
    areas = frame(shapes, crs, county=county, state=state)
    return sf.Regions(areas, id="id", levels=["state", "county"], name=name)


def hexagons(levels: tuple[int, ...] = ()) -> sf.Domain:
    pytest.importorskip("h3", reason="needs sfumato[h3]")
    return sf.H3(7, cover=(-74.05, 40.68, -73.9, 40.88), levels=levels)


def published(domain: sf.Domain, mechanism: str = "identity", **options: Any) -> sf.Release:
    plan = sf.plan(sf.unbounded(domain), sf.histogram(), epsilon=1, mechanism=mechanism, **options)
    return plan.publish(np.arange(domain.size).reshape(domain.shape) % 97)


def same(table: Any, frame: Any, suffix: str = "") -> bool:
    return all(
        np.array_equal(np.asarray(getattr(table, name)).ravel(), frame[f"{name}{suffix}"], equal_nan=True)
        for name in NAMES
    )


# ---------------------------------------------------------------------------------------------- frames


def test_a_row_for_every_region_and_elsewhere_without_geometry():
    release = published(regions())
    found = release.to_geopandas()
    assert list(found.columns) == ["place", *NAMES, "geometry"]
    assert found["place"].tolist() == [*(f"r{i}" for i in range(len(hard()))), "elsewhere"]
    assert same(release.answer(by="place"), found)
    assert found.geometry.iloc[-1] is None and found.geometry.notna().sum() == len(hard())
    assert shapely.equals_exact(np.asarray(found.geometry)[:-1], np.array(hard(), dtype=object), 0).all()
    assert found.crs == "EPSG:4326"
    assert found.attrs == {"guarantee": str(release.guarantee), "release": release.id, "confidence": 0.95}


@pytest.mark.parametrize("level", ["county", "state"])
@pytest.mark.parametrize("mechanism", ["identity", "tree"])
def test_a_level_has_the_answers_that_it_has_by_name_and_the_outlines_of_its_members(level, mechanism):
    domain = regions()
    release = published(domain, mechanism)
    found, table = release.to_geopandas(level, confidence=0.9), release.answer(by=level, confidence=0.9)
    assert list(found.columns) == [level, *NAMES, "geometry"]
    assert found[level].tolist() == table.keys[0].names and same(table, found)
    coarse = next(one for one in domain.axes[0].coarser if one.name == level)
    for group, (name, shape) in enumerate(zip(found[level], found.geometry, strict=True)):
        members = np.array(hard(), dtype=object)[coarse.of[:-1] == group]
        if name == "elsewhere":
            assert shape is None and not len(members)
        else:
            assert shape.symmetric_difference(shapely.union_all(members)).area < 1e-8


def test_on_a_product_all_else_is_summed_over_or_has_a_column_a_group():
    release = published(regions() * MODES)
    assert same(release.answer(by="place"), release.to_geopandas())
    wide = release.to_geopandas(by="mode")
    assert list(wide.columns) == ["place", *(f"{n}_{m}" for m in ("bus", "bike") for n in NAMES), "geometry"]
    for mode in ("bus", "bike"):
        assert same(release.answer(by="place", mode=mode), wide, f"_{mode}")
        assert same(release.answer(by="county", mode=mode), release.to_geopandas("county", where={"mode": mode}))
    assert same(release.answer(by="state", mode="bike"), release.to_geopandas("state", by="mode"), "_bike")


def test_where_takes_some_regions_in_their_order():
    release = published(regions() * MODES)
    found = release.to_geopandas(where={"place": ["r4", "elsewhere", "r1"], "mode": "bus"})
    assert found["place"].tolist() == ["r1", "r4", "elsewhere"]
    assert found.geometry[1].equals(hard()[4]) and found.geometry[2] is None
    assert found["value"].tolist() == [release.answer(place=name, mode="bus").value for name in found["place"]]
    assert release.to_geopandas(where={"county": "c1"})["place"].tolist() == ["r1", "r4", "r7", "r10"][: len(found) + 1]


def test_hexagons_have_their_corners_and_parents_their_members():
    import h3

    domain = hexagons((5, 6))
    release = published(domain)
    found = release.to_geopandas()
    assert found.crs == "EPSG:4326" and found["place"].tolist() == list(domain.axes[0].labels)
    for cell, shape in list(zip(found["place"], found.geometry, strict=True))[:-1:9]:
        assert shape.equals(shapely.Polygon([(lon, lat) for lat, lon in h3.cell_to_boundary(cell)]))
    level = release.to_geopandas("resolution 6")
    assert same(release.answer(by="resolution 6"), level)
    whole = [np.nansum(shapely.area(np.asarray(one.geometry))) for one in (level, found)]
    assert whole[0] == pytest.approx(whole[1], rel=1e-6)


def test_grids_have_boxes_and_bounds_and_no_elsewhere():
    for crs in (None, "EPSG:4326", "EPSG:32618"):
        bounds = (560_000, 4_480_000, 563_000, 4_482_000) if crs == "EPSG:32618" else (-3, 40, 0, 42)
        domain = sf.Grid(bounds, shape=(3, 2), names=("x", "y"), **({} if crs is None else {"crs": crs}))
        release = known(domain, range(6))
        found = release.to_geopandas()
        assert list(found.columns) == ["x_low", "x_high", "y_low", "y_high", *NAMES, "geometry"]
        assert found["value"].tolist() == [0, 1, 2, 3, 4, 5] and found.crs == crs
        assert (
            found.geometry.bounds.to_numpy().tolist() == found[["x_low", "y_low", "x_high", "y_high"]].values.tolist()
        )


def test_an_axis_of_any_name_keeps_its_column():
    for name in ("geometry", "value"):
        found = published(regions(name)).to_geopandas()
        assert len(set(found.columns)) == 6 and len(found.columns) == 6
        assert found.geometry.notna().sum() == len(hard())


def test_of_several_places_the_one_that_nothing_is_asked_of_is_drawn():
    release = published(regions("a") * regions("b"))
    with pytest.raises(sf.InvalidInput) as refusal:
        release.to_geopandas()
    assert str(refusal.value) == (
        "this release has several places: 'a', 'b'. Nothing was written. Name all but the one that is to be drawn in "
        "where= or by=."
    )
    found = release.to_geopandas(where={"a": "r1"})
    assert same(release.answer(by="b", a="r1"), found) and found.columns[0] == "b"
    assert same(release.answer(by="a.state"), release.to_geopandas("a.state"))


# ---------------------------------------------------------------------------------------------- GeoParquet


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_geoparquet_is_read_back_as_it_was(version: str, tmp_path: Path):
    release = published(regions() * MODES)
    path = tmp_path / "map.parquet"
    path.write_bytes(b"old")
    assert release.to_geoparquet(str(path), version=version, by="mode", level="county") == path
    found, meant = geopandas.read_parquet(path), release.to_geopandas("county", by="mode")
    assert list(found.columns) == list(meant.columns) and found.crs == meant.crs
    assert found.drop(columns="geometry").equals(meant.drop(columns="geometry"))
    assert found.geometry.iloc[-1] is None and found.geometry.iloc[:-1].geom_equals(meant.geometry.iloc[:-1]).all()
    schema = pq.read_schema(path)
    assert json.loads(schema.metadata[b"geo"])["version"] == f"{version}.0"
    assert json.loads(schema.metadata[b"PANDAS_ATTRS"])["guarantee"] == str(release.guarantee)
    column = pq.ParquetFile(path).schema.column(len(schema.names) - 1)
    assert ("geometry" in str(column.logical_type).lower()) == (version == "2.0")
    assert list(tmp_path.iterdir()) == [path]


def test_other_versions_and_packages_that_do_not_write_one_are_refused(tmp_path: Path):
    release = published(regions())
    with pytest.raises(sf.InvalidInput, match=r"version='3' must be one of '1\.1', '2\.0'\. Nothing was written\."):
        release.to_geoparquet(tmp_path / "a", version="3")

    class Old:
        def to_parquet(self, file: Any, **_: Any) -> None:
            file.write(b"half")
            raise ValueError("schema_version must be one of 1.1.0")

    with pytest.raises(sf.InvalidInput, match=r"version='2\.0' is not written by geopandas .* Use version='1\.1'"):
        to_geoparquet(Old(), tmp_path / "a", "2.0")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------- GeoJSON


def features(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text("ascii"))["features"]


def test_geojson_of_regions_holds_every_ring_the_right_way_round(tmp_path: Path):
    release = published(regions())
    found = features(release.to_geojson(tmp_path / "a.geojson"))
    assert [one["properties"]["place"] for one in found] == list(release.domain.axes[0].labels)
    assert list(found[0]["properties"]) == ["place", "count", "stderr", "low", "high"]
    assert [one["properties"]["count"] for one in found] == release.counts.tolist()
    assert found[-1]["geometry"] is None
    shapes = [shapely.geometry.shape(one["geometry"]) for one in found[:-1]]
    assert all(shape.equals(meant) for shape, meant in zip(shapes, hard(), strict=True))
    for part in shapely.get_parts(shapes):
        assert part.exterior.is_ccw and not any(hole.is_ccw for hole in part.interiors)
    again = geopandas.read_file(tmp_path / "a.geojson")
    assert again.crs == "EPSG:4326" and again["place"].tolist()[-1] == "elsewhere"


def test_geojson_has_levels_and_groups_and_hexagons(tmp_path: Path):
    release = published(regions() * MODES)
    found = features(release.to_geojson(tmp_path / "a.geojson", level="state", by="mode"))
    assert [one["properties"]["state"] for one in found] == ["s0", "s1", "elsewhere"]
    table = release.answer(by=("state", "mode"))
    assert [one["properties"]["high_bike"] for one in found] == table.high[:, 1].tolist()
    cells = published(hexagons())
    found = features(cells.to_geojson(tmp_path / "b.geojson"))
    assert len(found) == 77 and found[0]["geometry"]["type"] == "Polygon"
    assert [one["properties"]["count"] for one in found] == cells.counts.tolist()


def test_geojson_of_another_crs_is_transformed(tmp_path: Path):
    """WGS 72 has another meridian: half a second of arc."""
    shapes = [shapely.box(10, 50, 11, 51)]
    areas = frame(shapes, "EPSG:4322")
    release = published(sf.Regions(areas, id="id"))
    found = features(release.to_geojson(tmp_path / "a.geojson"))[0]
    meant = areas.to_crs("EPSG:4326").geometry[0]
    shape = shapely.geometry.shape(found["geometry"])
    assert shape.hausdorff_distance(meant) < 1e-9 < 1.5e-4 < shape.hausdorff_distance(shapes[0])


# ---------------------------------------------------------------------------------------------- refusals


def test_what_is_no_level_of_a_place_is_refused_with_the_nearest(tmp_path: Path):
    release = published(regions() * sf.Categories(["a", "b"], name="kind", levels={"group": ["x", "x"]}))
    for level in ("conty", "place", "group"):
        with pytest.raises(sf.InvalidInput, match=rf"level='{level}' is no level of a place .*'state', 'county'"):
            release.to_geojson(tmp_path / "a", level=level)
    with pytest.raises(sf.InvalidInput, match="Did you mean 'county'"):
        release.to_geopandas("conty")
    with pytest.raises(sf.InvalidInput, match="A map needs regions"):
        known(MODES, [1, 2]).to_geopandas()
    assert list(tmp_path.iterdir()) == []


def test_a_release_of_tables_says_what_to_ask_instead():
    plan = sf.plan(sf.unbounded(regions() * MODES), sf.marginals(1), epsilon=1, mechanism="marginals")
    release = plan.publish(np.ones(plan.policy.domain.shape, int))
    with pytest.raises(sf.TooLarge, match=r"no counts of the .* release\.marginal\('place'\)"):
        release.to_geopandas()


WITHOUT = """
import sys
for name in ("geopandas", "shapely"):
    sys.modules[name] = None
import sfumato as sf
release = sf.load(sys.argv[1])
print(release.to_geojson(sys.argv[2]).name)
for call in (release.to_geopandas, lambda: release.to_geojson(sys.argv[2], level="state")):
    try:
        call()
    except sf.MissingExtra as error:
        print(error)
"""


def test_without_the_extra_geojson_is_there_and_frames_name_it(tmp_path: Path):
    path = published(regions()).save(tmp_path / "map.sfumato")
    command = [sys.executable, "-c", WITHOUT, str(path), str(tmp_path / "a.geojson")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    pip = "which is not installed. Install it with: pip install 'sfumato[geo]'"
    assert said == [
        "a.geojson",
        f"A frame of GeoPandas needs the package 'geopandas', {pip}",
        f"The outline of a level needs the package 'shapely', {pip}",
    ]
    assert len(features(tmp_path / "a.geojson")) == len(hard()) + 1


def test_intervals_of_groups_hold_as_answers_do():
    """Mechanisms that smooth: cells whose error is not known are NaN, groups are bracketed as answers are."""
    domain = sf.Regions(frame(voronoi(8), side=["l"] * 4 + ["r"] * 4), id="id", levels=["side"])
    release = published(domain, "dawa")
    assert release.to_geopandas()["stderr"].isna().all()
    assert same(release.answer(by="side"), release.to_geopandas("side"))
