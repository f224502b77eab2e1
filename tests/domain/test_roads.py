"""Road networks: what their segments are, which is nearest to a place, and which are near to each other by road."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from maps import WGS84, geopandas, shapely

import sfumato as sf
from sfumato.domain import domain_from_spec
from sfumato.domain.outlines import packed


def roads(lines, **more):
    table = {"road": [f"r{i}" for i in range(len(lines))], "district": ["a", "b"] * (len(lines) // 2) + ["a"] * 2}
    table["district"] = table["district"][: len(lines)]
    frame = geopandas.GeoDataFrame(table, geometry=list(map(shapely.LineString, lines)), crs="EPSG:4326")
    return sf.network(frame, id="road", **more)


def wild(seed, count=25, at=(-74.0, 40.7), side=0.02):
    """Lines between random crossings, each by way of a random point; some crossings are met by one line alone."""
    rng = np.random.default_rng(seed)
    nodes = rng.random((count // 2 + 3, 2)) * side + at
    ends = rng.integers(len(nodes), size=(count, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return [np.array([nodes[a], (nodes[a] + nodes[b]) / 2 + rng.normal(0, side / 20, 2), nodes[b]]) for a, b in ends]


def near(domain, delta):
    return {tuple(pair) for pair in domain.axes[0].near(delta).tolist()}


# ------------------------------------------------------------------ by hand


def test_three_roads_that_meet_and_one_that_passes_over():
    """A thousandth of a degree is 111 m: by road the last one is reached from nowhere, as near as it is."""
    lines = [[(-0.001, 0), (0, 0)], [(0, 0), (0.001, 0)], [(0.001, 0), (0.002, 0)], [(0.0005, -0.001), (0.0005, 0.001)]]
    domain = roads(lines)
    assert domain.axes[0].labels == ("r0", "r1", "r2", "r3", "elsewhere")
    assert near(domain, 50) == {(0, 1), (1, 2), (0, 4), (2, 4), (3, 4)}
    assert near(domain, 111) == near(domain, 50)
    assert near(domain, 112) == {(0, 1), (0, 2), (1, 2), (0, 4), (1, 4), (2, 4), (3, 4)}


def test_lines_are_cut_where_they_share_a_point():
    """A side street ends on a point of the long one, which closes a ring at its own end."""
    long = [(0, 0), (0.001, 0), (0.002, 0), (0.002, 0.001), (0.001, 0)]
    domain = roads([long, [(0.001, 0), (0.001, -0.001)]])
    assert domain.axes[0].labels == ("r0:1", "r0:2", "r1", "elsewhere")
    assert domain.axes[0].lines.points[domain.axes[0].lines.starts[:-1]].tolist() == [[0, 0], [0.001, 0], [0.001, 0]]
    assert near(domain, 1) == {(0, 1), (0, 2), (1, 2), (0, 3), (2, 3)}


def test_several_lines_of_a_row_and_numbers_for_names():
    both = shapely.MultiLineString([[(0, 0), (1, 0)], [(2, 0), (3, 0)]])
    frame = geopandas.GeoDataFrame(geometry=[shapely.LineString([(5, 5), (5, 5), (6, 5)]), both], crs="EPSG:4326")
    assert sf.network(frame).axes[0].labels == ("0", "1:1", "1:2", "elsewhere")


def test_roads_are_left_where_they_end_and_those_that_end_nowhere_anywhere():
    ring = [[(0, 0), (0.001, 0)], [(0.001, 0), (0.001, 0.001)], [(0.001, 0.001), (0, 0)]]
    away = [[(1, 0), (1.001, 0)], [(1.001, 0), (1.002, 0)], [(1.002, 0), (1.003, 0)]]
    assert near(roads(ring + away), 1) == {(0, 1), (0, 2), (1, 2), (3, 4), (4, 5)} | {(k, 6) for k in (0, 1, 2, 3, 5)}
    anywhere = roads(ring + away, exits="anywhere")
    assert near(anywhere, 1) == {(0, 1), (0, 2), (1, 2), (3, 4), (4, 5)} | {(k, 6) for k in range(6)}
    assert {tuple(pair) for pair in anywhere.axes[0].adjacent(corners=True).tolist()} == near(anywhere, 1)


def test_the_date_line_is_no_end():
    domain = roads([[(179.999, 0), (180, 0)], [(-180, 0), (-179.999, 0)]])
    assert (0, 1) in near(domain, 1)
    at = [(180.00001, 0), (-179.99999, 0), (180.0, 0.0), (-180.00005, 0.0001), (540.0005, 0)]
    assert domain.locate(at).tolist() == [1, 1, 0, 0, 1]


# ------------------------------------------------------------------ the oracles


def dense(lines, each=12):
    """Places on every line, and the way along the roads between all of them: geodesics from each to the next."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    places, owner, number = [], [], {}
    edges = []
    for line, points in enumerate(lines):
        share = np.linspace(0, 1, each)[:, None]
        along = np.concatenate([a + share * (b - a) for a, b in pairwise(points)])
        ends = {0: tuple(points[0]), len(along) - 1: tuple(points[-1])}
        ids = []
        for i in range(len(along)):
            key = ends.get(i, (line, i))
            if key not in number:
                number[key] = len(number)
            ids.append(number[key])
            places.append(number[key])
            owner.append(line)
        apart = WGS84.inv(*along[:-1].T, *along[1:].T)[2]
        edges += [(a, b, max(d, 1e-9)) for a, b, d in zip(ids[:-1], ids[1:], apart, strict=True)]
    u, v, long = map(np.array, zip(*edges, strict=True))
    best = {}
    for a, b, d in zip(u, v, long, strict=True):
        best[a, b] = best[b, a] = min(d, best.get((a, b), np.inf))
    rows, columns = np.array(list(best)).T
    graph = csr_matrix((list(best.values()), (rows, columns)), shape=(len(number),) * 2)
    return np.array(places), np.array(owner), dijkstra(graph)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("delta", [150, 800])
def test_no_near_pair_is_missed_and_few_are_superfluous(seed, delta):
    lines = wild(seed)
    domain = roads(lines)
    assert domain.size == len(lines) + 1
    places, owner, way = dense(lines)
    apart = way[places][:, places]
    u, v = np.nonzero(apart < delta)
    seen = {(a, b) for a, b in zip(owner[u].tolist(), owner[v].tolist(), strict=True) if a < b}
    u, v = np.nonzero(apart < delta * 1.001)
    about = {(a, b) for a, b in zip(owner[u].tolist(), owner[v].tolist(), strict=True) if a < b}
    inner = {pair for pair in near(domain, delta) if pair[1] < domain.size - 1}
    assert len(seen) > 10 and seen <= inner <= about
    ends = np.concatenate([[line[0], line[-1]] for line in lines])
    dead = [i for i, end in enumerate(ends.tolist()) if ends.tolist().count(end) == 1]
    first = {line: np.flatnonzero(owner == line) for line in range(len(lines))}
    if dead:
        start = [places[first[i // 2][0 if i % 2 == 0 else -1]] for i in dead]
        left = {k for k in range(len(lines)) if way[start][:, places[owner == k]].min() < delta}
        assert {(k, len(lines)) for k in left} <= near(domain, delta)


def test_tiles_change_nothing(monkeypatch):
    domain = roads(wild(7, count=60, side=0.05))
    expected = near(domain, 700)
    monkeypatch.setattr("sfumato.domain.near_roads._TILE", 4)
    monkeypatch.setattr("sfumato.domain.near_roads._TABLE", 16)
    assert near(domain, 700) == expected and len(expected) > 100


@pytest.mark.parametrize("at", [(-74.0, 40.7), (25.0, 71.0), (100.0, 0.0)])
def test_places_are_on_the_nearest_segment(at):
    """Against a plane around each place (azimuthal equidistant): the same, but where two are as near to a tenth."""
    lines = wild(3, at=at)
    domain = roads(lines, snap="150 m")
    points = np.random.default_rng(0).random((2_000, 2)) * 0.024 + np.array(at) - 0.002
    found = domain.locate(points)
    placed = 0
    for point, cell in zip(points[:300], found[:300].tolist(), strict=True):
        apart = []
        for line in lines:
            azimuth, _, metres = WGS84.inv(np.full(3, point[0]), np.full(3, point[1]), *line.T)
            flat = np.stack([metres * np.sin(np.radians(azimuth)), metres * np.cos(np.radians(azimuth))], axis=1)
            apart.append(shapely.distance(shapely.Point(0, 0), shapely.LineString(flat)))
        least = min(apart)
        if cell == len(lines):
            assert least > 149.5
        else:
            assert apart[cell] < least + 0.5 and least < 150.5
            placed += 1
    assert placed > 100 and (found == len(lines)).any()


def test_few_buckets_and_few_pairs_at_once_change_nothing(monkeypatch):
    lines = wild(5)
    points = np.random.default_rng(1).random((3_000, 2)) * 0.02 + [-74.0, 40.7]
    expected = roads(lines).locate(points)
    monkeypatch.setattr("sfumato.domain.nearest_lines._FINEST", 1)
    monkeypatch.setattr("sfumato.domain.nearest_lines._PAIRS", 7)
    assert (roads(lines).locate(points) == expected).all()


def test_polygons_hold_and_cut_segments():
    """Its places are those of segments that it holds or cuts; all those of segments that it holds are in it."""
    lines = wild(4)
    domain = roads(lines, snap="80 m")
    points = np.random.default_rng(2).random((20_000, 2)) * 0.03 + [-74.005, 40.695]
    cells = domain.locate(points)
    area = shapely.Point(-73.99, 40.71).buffer(0.009)
    there = shapely.contains_xy(area, *points.T)
    for shape in (area, shapely.transform(area, lambda at: at + np.array([360, 0]))):
        (cut,) = domain.axes[0].cuts([shape], moved=False)
        assert set(cells[there]) <= {*cut.inside.tolist(), *cut.cut.tolist()}
        assert there[np.isin(cells, cut.inside)].all() and len(cut.inside) and domain.size - 1 in cut.cut
        outside = set(range(len(lines))) - {*cut.inside.tolist(), *cut.cut.tolist()}
        assert outside and not there[np.isin(cells, list(outside))].any()


# ------------------------------------------------------------------ levels, engines, files


def test_levels_and_elsewhere():
    domain = roads(wild(1), levels=["district"])
    (level,) = domain.axes[0].coarser
    assert level.names == ("a", "b", "elsewhere") and level.of[-1] == 2


def test_records_are_counted_on_every_path(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="needs sfumato[duckdb]")
    pandas = pytest.importorskip("pandas")
    domain = roads(wild(2), snap="400 m")
    points = np.random.default_rng(4).random((500, 2)) * 0.02 + [-74.0, 40.7]
    table = pandas.DataFrame({"lon": points[:, 0], "lat": points[:, 1]})
    expected = np.bincount(domain.locate(points), minlength=domain.size)
    gdf = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(*points.T), crs="EPSG:4326")
    assert 0 < expected[-1] < 500
    for data in (table, gdf, gdf.to_crs("EPSG:3857"), duckdb.from_df(table)):
        counts = sf.count(data, domain)
        assert (counts.values == expected).all()
    assert counts.report.outside == expected[-1]


def test_the_description_is_read_again():
    domain = roads(wild(2), levels=["district"], snap="0.05 km", exits="anywhere")
    again = domain_from_spec(json.loads(json.dumps(domain.spec())))
    assert again == domain and type(again) is type(domain) and again.fingerprint == domain.fingerprint
    assert near(again, 300) == near(domain, 300)
    assert roads(wild(2), snap="51 m").axes[0].digest != domain.axes[0].digest


@pytest.mark.parametrize("key", ["digest", "roads", "snap", "exits", "rule", "ids", "levels"])
def test_damaged_descriptions_are_refused(key):
    spec = json.loads(json.dumps(roads(wild(2), levels=["district"]).spec()))
    for value in (
        None,
        "x",
        [],
        -1.0,
        {"points": "AAAA", "lines": "AAAA"},
        {"points": spec["axes"][0]["roads"]["lines"]},
    ):
        broken = json.loads(json.dumps(spec))
        broken["axes"][0][key] = value
        if key == "levels" and value == []:
            continue
        with pytest.raises(sf.InvalidInput):
            domain_from_spec(broken)


def test_roads_that_pack_to_nothing_are_refused():
    """Sixteen million bytes of zeros are sixteen thousand of text."""
    spec = json.loads(json.dumps(roads([[(0, 0), (1, 0)]]).spec()))
    spec["axes"][0]["roads"]["points"] = packed(np.zeros(2_000_000))
    with pytest.raises(sf.InvalidInput, match="The roads in the description of the domain are damaged"):
        domain_from_spec(spec)


# ------------------------------------------------------------------ refusals


def test_too_many_pairs_are_refused(monkeypatch):
    domain = roads(wild(2))
    monkeypatch.setattr("sfumato.domain.near_roads.MOST_EDGES", 10)
    with pytest.raises(sf.TooLarge) as refusal:
        near(domain, 500)
    assert str(refusal.value) == (
        "more than 10 pairs of segments are less than 500 m apart by road, too many to list. Nothing was built. Use a "
        "smaller distance, or fewer roads."
    )


LINE = [(0, 0), (1, 0)]


def frame(shapes, crs="EPSG:4326", **columns):
    return geopandas.GeoDataFrame(columns, geometry=shapes, crs=crs)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: sf.network(frame([shapely.box(0, 0, 1, 1)])),
            "lines has geometries that are no lines: '0'. Nothing was built. Leave them out.",
        ),
        (
            lambda: sf.network(frame([shapely.LineString(LINE), None])),
            "lines has rows without a geometry: '1'. Nothing was built. Leave them out.",
        ),
        (
            lambda: sf.network(frame([shapely.LineString([(0, 0), (0, 0)])])),
            "lines has lines of one point: '0'. Nothing was built. Leave them out.",
        ),
        (
            lambda: sf.network(frame([shapely.LineString([(179, 0), (-179, 0)])])),
            "lines has a line that crosses the date line: '0'. Nothing was built. Cut it there, at 180 and -180.",
        ),
        (
            lambda: sf.network(frame([shapely.LineString([(0, 0), (0, 89.5)])])),
            "lines lies beyond longitudes of -180 to 180 or nearer than a degree to a pole. Nothing was built. Are "
            "longitude and latitude in this order? What crosses the date line must be cut there, at 180 and -180.",
        ),
        (
            lambda: sf.network(frame([shapely.LineString(LINE)] * 2, id=["a", "a"]), id="id"),
            "id='id': several lines have the same name: 'a'. Nothing was built. Give a column with one name a row, or "
            "leave id out.",
        ),
        (
            lambda: sf.network(frame([shapely.LineString(LINE)], id=["elsewhere"]), id="id"),
            "id='id': 'elsewhere' is the cell of all that is on no road. Rename that line.",
        ),
        (
            lambda: sf.network(frame([shapely.LineString(LINE)], crs=None)),
            "lines has no CRS, so that nobody knows where its numbers lie. Nothing was built. Say it with "
            "lines.set_crs(…), such as lines.set_crs('EPSG:4326') for longitudes and latitudes.",
        ),
        (lambda: sf.network(frame([])), "lines has no rows. Nothing was built. Give a road or more."),
        (
            lambda: roads([LINE], snap=30),
            "snap=30 must be metres as text, such as '30 m'. Nothing was built.",
        ),
        (
            lambda: roads([LINE], snap="11 km"),
            "snap=11000.0 must be metres above zero, at most 10000, such as '30 m'.",
        ),
        (
            lambda: roads([LINE], exits="never"),
            "exits='never' must be 'ends' (roads are left where they end) or 'anywhere'. Nothing was built.",
        ),
        (
            lambda: roads([LINE], levels="district"),
            "levels='district' must be a list of columns, such as levels=['district']. Nothing was built.",
        ),
    ],
)
def test_refusals(build, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build()
    assert str(refusal.value) == message
