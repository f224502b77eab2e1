"""Places on regions from every kind of data: two columns, or points, always the same cells."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from maps import frame, geopandas, hard, shapely

import sfumato as sf
from sfumato.counting.points import points_of

N = 4_000


@pytest.fixture(scope="module")
def space():
    return sf.Regions(frame(hard()), id="id") * sf.Line(0, 24, cells=6, name="h")


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(3)
    table = pandas.DataFrame({"lon": rng.random(N) * 1.6, "lat": rng.random(N) * 1.1, "h": rng.random(N) * 24})
    table["who"] = rng.integers(0, 300, N)
    table.loc[:9, "lon"] = np.nan
    return table


@pytest.fixture(scope="module")
def expected(space, records):
    there = records.iloc[10:]
    cells = space.locate((there[["lon", "lat"]].to_numpy(), there.h.to_numpy()))
    return np.bincount(cells, minlength=space.size).reshape(space.shape)


@pytest.fixture(scope="module")
def points(records):
    found = geopandas.GeoDataFrame(
        records[["h", "who"]], geometry=geopandas.points_from_xy(records.lon, records.lat), crs="EPSG:4326"
    )
    found.loc[:4, "geometry"] = None
    found.loc[5:9, "geometry"] = shapely.Point()
    return found


def same(counts, expected):
    assert (counts.values == expected).all()
    report = counts.report
    assert (report.rows, report.without_coordinates, report.outside) == (N, 10, expected[-1].sum())


def test_two_columns_of_every_engine(space, records, expected, tmp_path):
    records.to_parquet(tmp_path / "d.parquet")
    records.to_csv(tmp_path / "d.csv", index=False)
    table = pyarrow.Table.from_pandas(records)
    for data in (
        tmp_path / "d.parquet",
        tmp_path / "d.csv",
        records,
        polars.from_pandas(records),
        polars.from_pandas(records).lazy(),
        table,
        table.to_reader(),
        duckdb.from_arrow(table),
        {name: records[name].to_numpy() for name in ("lon", "lat", "h")},
    ):
        same(sf.count(data, space), expected)


def test_columns_by_every_keyword(space, records, expected):
    renamed = records.rename(columns={"lon": "a", "lat": "b"})
    for keywords in ({"lon": "a", "lat": "b"}, {"x": "a", "y": "b"}, {"columns": {"place": ("a", "b")}}):
        same(sf.count(renamed, space, **keywords), expected)
    same(sf.count(renamed.rename(columns={"h": "hour"}), space, lon="a", lat="b", h="hour"), expected)


def test_points_of_every_kind(space, points, expected, tmp_path):
    points.to_parquet(tmp_path / "p.parquet")
    same(sf.count(points, space), expected)
    same(sf.count(points.rename_geometry("at"), space, geometry="at"), expected)
    same(sf.count(tmp_path / "p.parquet", space, geometry="geometry"), expected)
    same(sf.count(duckdb.sql(f"FROM '{tmp_path / 'p.parquet'}'"), space, geometry="geometry"), expected)
    same(sf.count(pyarrow.table(points.to_arrow()), space, geometry="geometry"), expected)


def test_points_of_another_crs_are_transformed(space, points, expected):
    moved = sf.count(points.to_crs("EPSG:32631"), space)
    assert abs(moved.values - expected).sum() <= 4  # the last digits of coordinates are lost on the way
    assert moved.values.sum() == expected.sum()


def test_a_transform_that_fails_is_elsewhere(space):
    """Beyond the end of a projection there is no place on the map, and still a record."""
    far = geopandas.GeoDataFrame({"h": [1.0]}, geometry=[shapely.Point(1e12, 1e12)], crs="EPSG:32631")
    assert sf.count(far, space).values[-1].sum() == 1


def test_persons_are_bounded_on_regions(space, records, points):
    for data in (records, points):
        counts = sf.count(data, space, entity="who", max_per_entity=2)
        assert counts.max_per_entity == 2 and 500 < counts.values.sum() <= 600


def test_an_origin_and_a_destination():
    shapes = hard()
    space = sf.Regions(frame(shapes), id="id", name="origin") * sf.Regions(frame(shapes), id="id", name="destination")
    data = {name: np.array([value]) for name, value in (("a", 0.5), ("b", 0.5), ("c", 9.0), ("d", 9.0))}
    counts = sf.count(data, space, columns={"origin": ("a", "b"), "destination": ("c", "d")})
    cell = space.axes[0].locate([(0.5, 0.5)])[0]
    assert counts.values[cell, -1] == 1


def test_points_in_the_place_of_counts(space):
    rows = np.array([(0.5, 0.5, 1.0), (9.0, 9.0, 23.0)])
    plan = sf.plan(sf.policy(space, hide=sf.move("1 km"), public=["h"]), sf.histogram(), epsilon=1)
    assert plan.publish(points=rows).total == 2


def refused(match, data, space, **keywords):
    with pytest.raises(sf.InvalidInput, match=match):
        sf.count(data, space, **keywords)


def test_what_is_said_twice_or_by_half_is_refused(space, records):
    for keywords in (
        {"lon": "lon"},
        {"lon": "lon", "lat": "lat", "x": "lon", "y": "lat"},
        {"x": "lon", "geometry": "h"},
    ):
        refused("is told by two columns", records, space, **keywords)
    refused("Did you mean 'lon'", records, space, lonn="lon")
    refused("has no expression for the regions", records, space, engine="native")
    refused("lon= is no keyword of sf.count", {"x": np.zeros(1)}, sf.Line(0, 1, cells=2), lon="x")


def test_geometries_that_say_too_little_are_refused(space, records, points, tmp_path):
    refused("has no CRS", points.set_crs(None, allow_override=True), space)
    refused("no points", points.set_geometry(shapely.buffer(points.geometry.values, 0.1)), space)
    refused("no geometry column 'h'", points, space, geometry="h")
    refused("comes from a frame of pandas", records, space, geometry="h")
    records.to_csv(tmp_path / "d.csv", index=False)
    refused("comes from a file of text", tmp_path / "d.csv", space, geometry="lon")
    wkb = pyarrow.table({"g": pyarrow.array(points.geometry.to_wkb().to_list()), "h": points.h})
    refused("is of type binary", wkb, space, geometry="g")
    polygons = points.set_geometry(shapely.buffer(points.geometry.values, 0.1))
    polygons.to_parquet(tmp_path / "a.parquet")
    refused("no points", tmp_path / "a.parquet", space, geometry="geometry")


def test_wkb_of_all_kinds_is_read():
    shapes = [shapely.Point(1, 2), None, shapely.Point(), shapely.Point(3, 4)]
    expected = [[1, 2], [np.nan] * 2, [np.nan] * 2, [3, 4]]
    plain = pyarrow.array([shapely.to_wkb(shape) for shape in shapes])
    assert np.array_equal(points_of(plain, "g"), expected, equal_nan=True)
    assert np.array_equal(points_of(plain[1:], "g"), expected[1:], equal_nan=True)
    big = pyarrow.array([shapely.to_wkb(shape, byte_order=0) for shape in shapes])
    assert np.array_equal(points_of(big, "g"), expected, equal_nan=True)
    deep = pyarrow.array([shapely.to_wkb(shapely.Point(1, 2, 3)), shapely.to_wkb(shapely.Point(5, 6))])
    assert points_of(deep, "g").tolist() == [[1, 2], [5, 6]]
    line = pyarrow.array([shapely.to_wkb(shapely.LineString([(0, 0), (1, 1)]))])
    with pytest.raises(sf.InvalidInput, match="no points"):
        points_of(line, "g")
