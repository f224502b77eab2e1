"""Roads as maps for other tools: a line a segment, several a district, and elsewhere without any."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sfumato as sf

geopandas = pytest.importorskip("geopandas", reason="needs sfumato[geo]")
shapely = pytest.importorskip("shapely", reason="needs sfumato[geo]")

SHAPES = [
    shapely.LineString([(0, 0), (0.001, 0), (0.002, 0)]),
    shapely.LineString([(0.001, 0), (0.001, 0.001)]),
    shapely.LineString([(0.002, 0), (0.003, 0.001)]),
]


def released():
    lines = geopandas.GeoDataFrame({"road": ["a", "b", "c"], "ward": ["x", "y", "x"]}, geometry=SHAPES, crs="EPSG:4326")
    roads = sf.network(lines, id="road", levels=["ward"])
    policy = sf.policy(roads, hide=sf.move("100 m", along=roads))
    return sf.plan(policy, sf.histogram(), epsilon=1).publish(np.array([10, 20, 30, 40, 5]))


def test_a_frame_of_segments():
    release = released()
    frame = release.to_geopandas()
    assert frame["place"].tolist() == ["a:1", "a:2", "b", "c", "elsewhere"]
    assert frame.geometry.geom_type[:4].tolist() == ["LineString"] * 4 and frame.geometry[4] is None
    assert shapely.equals(shapely.line_merge(shapely.union_all(frame.geometry[:2])), SHAPES[0])
    assert frame["value"].tolist() == pytest.approx(release.counts.tolist())


def test_a_frame_of_a_level():
    frame = released().to_geopandas("ward")
    assert frame["ward"].tolist() == ["x", "y", "elsewhere"]
    assert frame.geometry.geom_type[:2].tolist() == ["MultiLineString", "LineString"]
    assert frame.geometry[0].length == pytest.approx(SHAPES[0].length + SHAPES[2].length)
    assert shapely.equals(frame.geometry[1], SHAPES[1])


def test_files(tmp_path):
    release = released()
    kinds = {None: ["LineString"] * 4, "ward": ["MultiLineString", "LineString"]}
    for level, expected in kinds.items():
        features = json.loads(release.to_geojson(tmp_path / "roads.geojson", level=level).read_text())["features"]
        assert [one["geometry"]["type"] for one in features[:-1]] == expected and features[-1]["geometry"] is None
        read = geopandas.read_file(tmp_path / "roads.geojson")
        frame = release.to_geopandas(level)
        assert all(map(shapely.equals, read.geometry[:-1], frame.geometry[:-1]))
    path = release.to_geoparquet(tmp_path / "roads.parquet")
    assert geopandas.read_parquet(path)["place"].tolist() == ["a:1", "a:2", "b", "c", "elsewhere"]


def test_roads_are_drawn_in_colours(tmp_path):
    pytest.importorskip("matplotlib", reason="needs sfumato[plot]")
    from sfumato.release.cartography import lines_of

    release = released()
    release.plot(tmp_path / "roads.png")
    assert (tmp_path / "roads.png").stat().st_size > 5_000
    place = release.domain.axes[0]
    paths = lines_of(place.outlined.joined(np.array([0, 0, 1, 0]), np.array([0, 1])))
    assert [path.codes.tolist() for path in paths] == [[1, 2, 1, 2, 1, 2], [1, 2]]


def test_roads_have_no_area():
    with pytest.raises(sf.InvalidInput) as refusal:
        released().to_geopandas(density=True)
    assert str(refusal.value) == "density=True is for areas, and roads have none. Nothing was written. Leave it out."
