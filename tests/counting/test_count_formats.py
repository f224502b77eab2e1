"""Places in every form on every kind of place: one rule of location, the same cells."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pyproj
import pytest
from maps import frame, geopandas, shapely, voronoi

import sfumato as sf

N = 1_500
BOUNDS = (-74.1, 40.6, -73.9, 40.8)
UTM = "EPSG:32618"


def hexagons():
    pytest.importorskip("h3", reason="needs sfumato[h3]")
    return sf.H3(8, cover=BOUNDS)


SPACES = {
    "grid": lambda: sf.Grid(BOUNDS, cell="1 km"),
    "plane": lambda: sf.Grid((575_000, 4_495_000, 590_000, 4_515_000), cell="1 km", crs=UTM),
    "regions": lambda: sf.Regions(frame(voronoi(30, BOUNDS)), id="id"),
    "hexagons": hexagons,
}


@pytest.fixture(scope="module", params=SPACES)
def space(request):
    return SPACES[request.param]() * sf.Line(0, 24, cells=3, name="h")


@pytest.fixture(scope="module")
def native(space):
    """The CRS of the place."""
    return UTM if space.names[0] == "x" and space.axes[0].high > 360 else "EPSG:4326"


@pytest.fixture(scope="module")
def records(native):
    """Places in the CRS of the domain, some beyond it, some missing."""
    rng = np.random.default_rng(5)
    lon, lat = rng.normal(-74, 0.08, N), rng.normal(40.7, 0.08, N)
    x, y = pyproj.Transformer.from_crs("EPSG:4326", native, always_xy=True).transform(lon, lat)
    table = pandas.DataFrame({"a": x, "b": y, "h": rng.random(N) * 24, "who": rng.integers(0, 400, N)})
    table.loc[:9, "a"] = np.nan
    return table


@pytest.fixture(scope="module")
def expected(space, records):
    """By `locate`: those in no cell of a grid are in no cell of the array."""
    there = records.iloc[10:]
    rows = there[["a", "b", "h"]].to_numpy()
    cells = space.locate(rows if space.ndim == 3 else (rows[:, :2], rows[:, 2]))
    assert (cells == -1).sum() > 100 if space.apart else (cells >= 0).all()
    return np.bincount(cells[cells >= 0], minlength=space.size).reshape(space.shape)


@pytest.fixture(scope="module")
def points(records, native):
    shapes = geopandas.points_from_xy(records.a, records.b)
    found = geopandas.GeoDataFrame(records[["h", "who"]], geometry=shapes, crs=native)
    found.loc[:4, "geometry"] = None
    found.loc[5:9, "geometry"] = shapely.Point()
    return found


def same(counts, expected, space):
    assert (counts.values == expected).all()
    report = counts.report
    gone = N - 10 - expected.sum() if space.apart else expected[-1].sum()
    assert (report.rows, report.without_coordinates, report.outside) == (N, 10, gone)


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
        {name: records[name].to_numpy() for name in ("a", "b", "h")},
    ):
        same(sf.count(data, space, x="a", y="b"), expected, space)


def test_points_of_every_kind(space, points, expected, tmp_path):
    same(sf.count(points, space), expected, space)
    same(sf.count(points.rename_geometry("at"), space, geometry="at"), expected, space)
    for version in ("1.0.0", "1.1.0"):
        points.to_parquet(tmp_path / "p.parquet", schema_version=version)
        same(sf.count(tmp_path / "p.parquet", space, geometry="geometry"), expected, space)
    same(sf.count(duckdb.sql(f"FROM '{tmp_path / 'p.parquet'}'"), space, geometry="geometry"), expected, space)
    for encoding, interleaved in (("WKB", False), ("geoarrow", False), ("geoarrow", True)):
        arrow = pyarrow.table(points.to_arrow(geometry_encoding=encoding, interleaved=interleaved))
        same(sf.count(arrow, space, geometry="geometry"), expected, space)
        same(sf.count(arrow.to_reader(max_chunksize=400), space, geometry="geometry"), expected, space)


def test_geoparquet_2(space, points, expected, tmp_path):
    """Written by DuckDB, with the geometry as a type of Parquet's own."""
    points.to_parquet(tmp_path / "1.parquet")
    duckdb.sql(f"COPY (FROM '{tmp_path / '1.parquet'}') TO '{tmp_path / '2.parquet'}' (GEOPARQUET_VERSION 'V2')")
    same(sf.count(tmp_path / "2.parquet", space, geometry="geometry"), expected, space)


def test_geoparquet_2_of_geopandas(space, native, points, expected, tmp_path):
    """Where the type names no CRS the metadata do, or it is longitude and latitude; never just the domain's."""
    try:
        points.to_parquet(tmp_path / "2.parquet", schema_version="2.0.0")
    except ValueError:
        pytest.skip("this geopandas or pyarrow writes no GeoParquet 2.0")
    same(sf.count(tmp_path / "2.parquet", space, geometry="geometry"), expected, space)
    other = UTM if native == "EPSG:4326" else "EPSG:4326"
    moved = points.to_crs(other)
    moved.to_parquet(tmp_path / "o.parquet", schema_version="2.0.0")
    same(sf.count(tmp_path / "o.parquet", space, geometry="geometry"), sf.count(moved, space).values, space)
    points.set_crs(None, allow_override=True).to_parquet(tmp_path / "n.parquet", schema_version="2.0.0")
    with pytest.raises(sf.InvalidInput, match="has no CRS"):
        sf.count(tmp_path / "n.parquet", space, geometry="geometry")


def test_points_of_another_crs_are_transformed_and_the_report_says_how(space, native, points, expected):
    other = UTM if native == "EPSG:4326" else "EPSG:4326"
    counts = sf.count(points.to_crs(other), space)
    assert abs(counts.values - expected).sum() <= 4  # the last digits of coordinates are lost on the way
    assert counts.report.transformed is not None and "utm" in counts.report.transformed
    assert sf.count(points, space).report.transformed is None


def test_points_of_files_and_tables_in_another_crs_are_transformed_alike(space, native, points, tmp_path):
    """As those of a GeoDataFrame, to the last digit; what is taken nowhere is elsewhere, and what is empty missing."""
    moved = points.to_crs(UTM if native == "EPSG:4326" else "EPSG:4326")
    far, none = shapely.Point(1e12, 1e12), shapely.Point()
    moved.geometry = [far, none, *moved.geometry[2:]]
    wanted = sf.count(moved, space)
    moved.to_parquet(tmp_path / "1.parquet")
    moved.to_parquet(tmp_path / "2.parquet", schema_version="1.1.0")
    files = [[tmp_path / "1.parquet"], tmp_path / "2.parquet", duckdb.sql(f"FROM '{tmp_path / '1.parquet'}'")]
    tables = [
        pyarrow.table(moved.to_arrow(geometry_encoding=encoding, interleaved=interleaved))
        for encoding, interleaved in (("WKB", False), ("geoarrow", False), ("geoarrow", True))
    ]
    for data in (*files, *tables, tables[0].to_reader(max_chunksize=400)):
        counts = sf.count(data, space, geometry="geometry")
        assert (counts.values == wanted.values).all()
        assert counts.report.transformed == wanted.report.transformed is not None
        assert counts.report.outside == wanted.report.outside
        assert counts.report.without_coordinates == wanted.report.without_coordinates
    points.to_parquet(tmp_path / "3.parquet")
    with pytest.raises(sf.InvalidInput, match="in one CRS in some files and in another in others"):
        sf.count([tmp_path / "1.parquet", tmp_path / "3.parquet"], space, geometry="geometry")


def test_a_crs_that_nobody_knows_is_refused(space, points):
    table = pyarrow.table(points.to_arrow())
    at = table.schema.get_field_index("geometry")
    about = {b"ARROW:extension:name": b"geoarrow.wkb", b"ARROW:extension:metadata": b'{"crs": "Middle-earth"}'}
    named = pyarrow.field("geometry", pyarrow.binary(), metadata=about)
    wkb = pyarrow.array(points.geometry.to_wkb().to_list(), pyarrow.binary())
    with pytest.raises(sf.InvalidInput, match=r"'geometry' has an unknown CRS.*Nothing was counted"):
        sf.count(table.set_column(at, named, wkb), space, geometry="geometry")


def test_persons_are_bounded(space, points):
    counts = sf.count(points, space, entity="who", max_per_entity=2)
    assert counts.max_per_entity == 2 and 300 < counts.values.sum() <= 800


def test_longitude_and_latitude_are_those_of_wgs84(space, native, records, expected):
    if native == "EPSG:4326":
        same(sf.count(records, space, lon="a", lat="b"), expected, space)
        turned = records.assign(a=records.a + 360)
        assert abs(sf.count(turned, space, lon="a", lat="b").values - expected).sum() <= 2  # their last digits
        same(sf.count(records, space, columns={"lon": "a", "lat": "b"}), expected, space)
    else:
        with pytest.raises(sf.InvalidInput, match="are those of WGS84"):
            sf.count(records, space, lon="a", lat="b")


def test_what_says_too_little_or_too_much_is_refused(space, native, points, records, tmp_path):
    areas = points.iloc[10:].set_geometry(
        geopandas.GeoSeries([shapely.box(0, 0, 1, 1)] * (N - 10), index=range(10, N), crs=native)
    )
    areas.to_parquet(tmp_path / "areas.parquet")
    bare = pandas.DataFrame({"geometry": points.to_wkb()["geometry"], "h": points.h})
    for data, words, keywords in (
        (points.set_crs(None, allow_override=True), "has no CRS", {}),
        (areas, "no points.*representative_point", {}),
        (tmp_path / "areas.parquet", "no points", {"geometry": "geometry"}),
        (bare, "needs points whose CRS is known", {"geometry": "geometry"}),
        (points.assign(a=1.0), "is told by two columns", {"lon": "a"}),
        (points.assign(a=1.0), "is told by two columns", {"lon": "a", "lat": "a", "geometry": "geometry"}),
    ):
        with pytest.raises(sf.InvalidInput, match=words) as error:
            sf.count(data, space, **keywords)
        assert "Nothing was counted" in str(error.value)


def test_a_coordinate_that_is_no_number_is_missing_before_and_after_a_transform(space, native):
    shapes = geopandas.points_from_xy([np.nan, -74.0], [40.7, 40.7])
    found = geopandas.GeoDataFrame({"h": [1.0, 1.0]}, geometry=shapes, crs="EPSG:4326")
    for data in (found, found.set_crs("EPSG:4269", allow_override=True)):
        assert sf.count(data, space).report.without_coordinates == 1


def test_a_transform_that_fails_is_elsewhere(space):
    far = geopandas.GeoDataFrame({"h": [1.0]}, geometry=[shapely.Point(1e12, 1e12)], crs="EPSG:32631")
    counts = sf.count(far, space)
    assert counts.report.without_coordinates == 0 and counts.report.outside == 1
    assert counts.values.sum() == (0 if space.apart else 1)
