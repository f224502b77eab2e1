"""Moves in metres on grids on the ground: none is left out, over the border neither, and what releases of them cost."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from maps import WGS84, pyproj

import sfumato as sf
from sfumato.linear import Haar, Identity, Kronecker
from sfumato.policies.described import policy_from_spec

UTM = "EPSG:32618"
NEW_YORK = (-74.3, 40.5, -73.7, 40.95)


def edges(policy):
    return {tuple(sorted(edge)) for edge in policy.edges().tolist()}


GRIDS = {
    "New York": (NEW_YORK, (30, 30), "EPSG:4326"),
    "north": ((20, 69.5, 21, 70.2), (9, 31), "EPSG:4326"),
    "equator": ((-1, -0.5, 0.5, 0.7), (40, 9), "EPSG:4326"),
    "date line": ((178, -45, 182, -43), (25, 25), "EPSG:4326"),
    "pole": ((-60, 88, 60, 89.9), (12, 12), "EPSG:4326"),
    "UTM": ((560_000, 4_480_000, 620_000, 4_530_000), (30, 30), UTM),
    "edge of UTM": ((800_000, -20_000, 840_000, 20_000), (30, 30), "EPSG:32631"),
    "Europe": ((3_900_000, 2_500_000, 4_300_000, 2_900_000), (25, 25), "EPSG:3035"),
    "France": ((600_000, 6_600_000, 700_000, 6_700_000), (25, 25), "EPSG:2154"),
}


@pytest.mark.parametrize("delta", [400, 2_000, 9_000])
@pytest.mark.parametrize("name", GRIDS)
def test_no_move_of_a_record_is_left_out(name, delta):
    """Records at the corners and sides of cells and beyond the border, moved by δ and less in all directions."""
    bounds, shape, crs = GRIDS[name]
    grid = sf.Grid(bounds, shape, crs=crs)
    rng = np.random.default_rng(delta)
    there = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    corner = np.stack([axis.edges[rng.integers(axis.cells + 1, size=30_000)] for axis in grid.axes], axis=1)
    on_side = rng.random(len(corner)) < 0.5
    slide = rng.random((len(corner), 2)) * [float(axis.width) for axis in grid.axes] * on_side[:, None]
    slide[np.arange(len(corner)), rng.integers(0, 2, len(corner))] = 0
    start = np.stack(there.transform(*(corner + slide).T), axis=1)
    start = np.clip(start, [-400, -90], [400, 90])  # beyond a pole there is nobody
    close = np.where(rng.random(len(corner)) < 0.5, 1e-3, rng.random(len(corner)) * delta)
    lon, lat, turn = WGS84.fwd(*start.T, rng.random(len(corner)) * 360, close)
    far = delta * np.where(rng.random(len(corner)) < 0.7, 1 - 1e-9, rng.random(len(corner)))
    # mostly back over the place that it came from, else anywhere
    way = np.where(rng.random(len(corner)) < 0.5, turn + rng.normal(0, 20, len(corner)), rng.random(len(corner)) * 360)
    to_lon, to_lat, _ = WGS84.fwd(lon, lat, way, far)
    back = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    one, other = (grid.locate(np.stack(back.transform(*at), axis=1)) for at in ((lon, lat), (to_lon, to_lat)))
    met = {tuple(sorted(pair)) for pair in zip(one.tolist(), other.tolist(), strict=True) if pair[0] != pair[1]}
    policy = sf.policy(grid, hide=sf.move(f"{delta} m"))
    assert any(pair[0] == -1 for pair in met) and len(met) > 150
    assert not met - edges(policy)


def test_degrees_of_latitude_are_shortest_at_the_equator():
    """Three hundredths of a degree are 3,317 m there, and 3,336 m on the sphere: hidden are moves by less than 3,325 m,
    between cells with that gap and over the border from as far.
    """
    grid = sf.Grid((0, -0.1, 0.1, 0.1), (10, 20), crs="EPSG:4326")
    assert 3_317 < WGS84.inv(0, 0.02, 0, 0.05)[2] < 3_318
    for delta, near in (("3325 m", True), ("3310 m", False)):
        policy = sf.policy(grid, hide=sf.move(delta))
        assert (policy.distance((5, 5), (5, 9)) == 1) == near
        assert bool(policy.absent[5, 3]) == near and not policy.absent[5, 4]


def test_metres_of_a_plane_are_not_those_on_the_ground():
    """Three degrees off the middle of UTM 1,000 m are 999 on the ground."""
    grid = sf.Grid((832_000, -3_000, 836_000, 3_000), cell="100 m", crs="EPSG:32631")
    back = pyproj.Transformer.from_crs("EPSG:32631", "EPSG:4326", always_xy=True)
    (lon, to_lon), (lat, to_lat) = back.transform([833_000, 834_000], [0, 0])
    assert 999 < WGS84.inv(lon, lat, to_lon, to_lat)[2] < 999.1
    for delta, near in (("999.5 m", True), ("998 m", False)):
        policy = sf.policy(grid, hide=sf.move(delta))
        assert (policy.distance((10, 30), (21, 30)) == 1) == near
        assert policy.absent[9].all() and (policy.absent[10, 30] == near) and not policy.absent[11, 30]


def test_few_edges_are_superfluous():
    """The stencil of cells is the one of a δ a thousandth longer at most."""
    grid = sf.Grid(NEW_YORK, cell="1 km")
    plain = sf.Grid(NEW_YORK, grid.shape)
    more = sf.within(plain, 5_000 * 1.002, metric="great-circle")
    assert edges(sf.policy(grid, hide=sf.move("5 km"))) >= edges(sf.within(plain, 5_000, metric="great-circle"))
    inner = {edge for edge in edges(sf.policy(grid, hide=sf.move("5 km"))) if edge[0] >= 0}
    assert inner <= edges(more)


def test_elsewhere_is_not_published_and_leaving_is_hidden():
    grid = sf.Grid(NEW_YORK, (10, 10), crs="EPSG:4326")
    policy = sf.policy(grid, hide=sf.move("500 m"))
    absent = policy.absent
    assert not policy.total_is_public and absent[0].all() and absent[:, -1].all() and not absent[1:-1, 1:-1].any()
    assert policy.describe().endswith(
        "whoever is beyond the bounds is left out, and may come in or leave by the same changes"
    )
    for hide in (sf.anything(), sf.presence(), sf.change("place"), sf.move("500 km")):
        assert sf.policy(grid, hide=hide).absent.all()
    assert sf.bounded(grid) == sf.policy(grid, hide=sf.anything()) and not sf.bounded(grid).total_is_public


def test_sensitivities_are_those_of_the_edges():
    """Against every edge, alone and in products, for strategies with structure and without."""
    grid, hours = sf.Grid(NEW_YORK, (5, 6), crs="EPSG:4326"), sf.Cycle("weekday", name="t")
    rng = np.random.default_rng(0)
    for domain, hide in (
        (grid, sf.move("5 km")),
        (grid, sf.move("20 km")),
        (grid * hours, sf.move("5 km") | sf.change("t")),
        (grid * hours, sf.move("5 km") & sf.move("1 day", of="t")),
        (grid * hours, sf.change("place") | sf.change("t")),
    ):
        policy = sf.policy(domain, hide=hide)
        assert not policy.total_is_public
        u, v = policy.edges().T
        structured = [Kronecker([part(n) for n in domain.shape]) for part in (Identity, Haar)]
        for strategy in [*structured, rng.integers(-3, 4, (9, domain.size))]:
            table = strategy.sparse().toarray() if hasattr(strategy, "sparse") else strategy
            ends = np.concatenate([table, np.zeros((len(table), 1))], axis=1)  # ⊥ is counted nowhere
            assert policy.sensitivity(strategy) == np.abs(ends[:, u] - ends[:, v]).sum(axis=0).max()


def test_what_leaves_a_border_unhidden_is_refused():
    grid = sf.Grid(NEW_YORK, (4, 4), crs="EPSG:4326")
    for build in (
        lambda: sf.within(grid, 0.1),
        lambda: sf.threshold(grid, theta=2),
        lambda: sf.graph(grid, edges=[(0, 1)]),
    ):
        with pytest.raises(sf.InvalidInput, match="beyond the bounds of a grid with a CRS is elsewhere"):
            build()
    for hide, words in (
        (sf.move(0.1), "measured in metres, such as '500 m'"),
        (sf.move("500 m", metric="great-circle"), "on a sphere"),
        (sf.move("500 m", sources=[(0.0, 0.0)]), "with sources"),
    ):
        with pytest.raises(sf.InvalidInput, match=words):
            sf.policy(grid, hide=hide)
    with pytest.raises(sf.InvalidInput, match=r"Say what they are, sf.Grid\(…, crs='EPSG:4326'\)"):
        sf.policy(sf.Grid(NEW_YORK, (4, 4)), hide=sf.move("500 m"))
    mercator = sf.Grid((-8_240_000, 4_960_000, -8_230_000, 4_970_000), (2, 2), crs="EPSG:3857")
    with pytest.raises(sf.InvalidInput, match="are not metres on the ground"):
        sf.policy(mercator, hide=sf.move("500 m"))
    space = grid * sf.Line(0, 1, cells=2, name="t")
    for hide in (sf.move("500 m") | sf.presence(), sf.move("500 m") | sf.change("t"), sf.anything()):
        with pytest.raises(sf.InvalidInput, match="public names 't', which is not published exactly"):
            sf.policy(space, hide=hide, public=["t"])


def test_what_no_change_touches_may_be_named_where_records_come_in_and_leave(tmp_path):
    """The same edges as without the name: nothing is published exactly. The name says what is not hidden, and an
    account holds it fixed."""
    grid = sf.Grid(NEW_YORK, (4, 5), crs="EPSG:4326")
    space, hide = grid * sf.Line(0, 1, cells=2, name="t"), sf.move("5 km")
    named, plain = sf.policy(space, hide=hide, public=["t"]), sf.policy(space, hide=hide)
    assert edges(named) == edges(plain) and not named.components[1].any() and not named.total_is_public
    assert (named.public, named.unchanged, plain.unchanged) == ((), ("t",), ())
    assert "no change touches t: which value a record has is not hidden" in named.describe()
    assert "exact number of records for every" not in sf.plan(named, sf.histogram(), epsilon=1).guarantee.describe()
    again = policy_from_spec(json.loads(json.dumps(named.spec())))
    assert again == named != plain and again.unchanged == ("t",)
    counts = np.random.default_rng(2).integers(0, 30, space.shape)
    ledger = sf.Ledger.create(tmp_path / "first.db", epsilon=9)
    for policy in (named, sf.policy(sf.Line(0, 1, cells=3, name="t") * grid, hide=hide, public=["t"])):
        assert sf.audit(sf.plan(policy, sf.histogram(), epsilon=1, mechanism="identity"), method="exact").passed
        sf.plan(policy, sf.histogram(), epsilon=1).publish(np.resize(counts, policy.domain.shape), ledger=ledger)
    assert ledger.spent == 2 and "declared fixed: 't'" in str(ledger)
    states = sf.Categories(["NY", "NJ"], name="state")
    maps = sf.plan(sf.policy(grid, hide=hide), sf.histogram(), epsilon=1).publish_parts(
        np.ones((2, 4, 5), np.int64), by=states, public=["state"]
    )
    assert maps.guarantee.epsilon == 1


def test_prices_count_the_way_out(tmp_path):
    """An account of moves: 1 for the same and for shorter ones in it; a release that hides less is dear or refused."""
    grid = sf.Grid(NEW_YORK, (40, 40), crs="EPSG:4326")
    cells = {name: sf.policy(grid, hide=sf.move(name)) for name in ("500 m", "3 km")}
    hide = sf.move("3 km")
    account = sf.Ledger.create(tmp_path / "a.db", epsilon=1_000, hide=hide)
    for name in cells:
        plan = sf.plan(cells[name], sf.histogram(), epsilon=1, mechanism="identity")
        before = account.spent
        plan.publish(np.zeros(grid.shape, np.int64), ledger=account)
        spent = account.spent - before
        if name == "3 km":
            assert spent == 1
        else:
            away = cells["500 m"]
            ends = [[u, sf.ABSENT if v < 0 else v] for u, v in cells["3 km"].edges()[::-97].tolist()]
            worst = max(away.distance(u, v) for u, v in ends)
            assert any(v is sf.ABSENT for _, v in ends) and spent >= worst > 1


def test_grids_are_planned_published_audited_saved_and_loaded(tmp_path):
    grid = sf.Grid(NEW_YORK, (6, 6), crs="EPSG:4326")
    space = grid * sf.Cycle("weekday", name="t")
    counts = np.random.default_rng(1).integers(0, 30, space.shape)
    for domain, hide, values in (
        (grid, sf.move("500 m"), counts.sum(axis=2)),
        (space, sf.move("500 m") | sf.move("1 day", of="t"), counts),
    ):
        policy = sf.policy(domain, hide=hide)
        assert policy_from_spec(json.loads(json.dumps(policy.spec()))) == policy
        account = sf.Ledger.create(tmp_path / f"{domain.ndim}.db", epsilon=5, hide=hide)
        for mechanism in ("identity", "edges"):
            plan = sf.plan(policy, sf.histogram(), epsilon=1, mechanism=mechanism)
            if domain is grid:
                assert sf.audit(plan, method="exact").passed
            release = plan.publish(values, ledger=account)
            loaded = sf.load(release.save(tmp_path / "grid.sfumato"))
            assert loaded.guarantee == release.guarantee
            assert loaded.answer(NEW_YORK).value == pytest.approx(release.answer(NEW_YORK).value)
        assert account.spent == 2


def test_geojson_is_of_degrees(tmp_path):
    for bounds, crs, words in ((NEW_YORK, "EPSG:4326", None), (GRIDS["UTM"][0], UTM, "this grid is in EPSG:32618")):
        grid = sf.Grid(bounds, (3, 3), crs=crs)
        release = sf.plan(sf.policy(grid, hide=sf.presence()), sf.histogram(), epsilon=1).publish(np.ones((3, 3), int))
        if words is None:
            assert len(json.loads(release.to_geojson(tmp_path / "a.geojson").read_text())["features"]) == 9
        else:
            with pytest.raises(sf.InvalidInput, match=words):
                release.to_geojson(tmp_path / "b.geojson")


def test_a_median_by_cells_knows_that_records_leave_them():
    """Groups that are cells of a grid on the ground: whoever goes elsewhere is in none."""
    grid = sf.Grid(NEW_YORK, (2, 2), crs="EPSG:4326")
    rng = np.random.default_rng(0)
    rows = (rng.uniform(-74.4, -73.6, 400), rng.uniform(40.4, 41, 400))
    answer = sf.median(
        rng.random(400) * 50, bounds=(0, 50), epsilon=5, hide=sf.move("5 km"), name="fare", by=(grid, rows)
    )
    assert answer.value.shape == (2, 2) and not answer.guarantee.policy.total_is_public


WITHOUT = """
import sys
for name in ("geopandas", "shapely", "pyproj"):
    sys.modules[name] = None
import sfumato as sf
release = sf.load(sys.argv[1])
answer = release.answer((560_000, 4_480_000, 590_000, 4_500_000))
print(release.counts.shape, answer.stderr > 0, release.guarantee.policy.eccentricity)
"""


def test_a_release_in_a_plane_is_read_without_the_extra(tmp_path):
    """Scales are in the description."""
    grid = sf.Grid((560_000, 4_480_000, 620_000, 4_530_000), cell="10 km", crs=UTM)
    plan = sf.plan(sf.policy(grid, hide=sf.move("500 m")), sf.histogram(), epsilon=1)
    path = plan.publish(np.ones(grid.shape, np.int64)).save(tmp_path / "plane.sfumato")
    command = [sys.executable, "-c", WITHOUT, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith("(6, 5) True ")
