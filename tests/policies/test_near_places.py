"""What a move by metres hides on regions: no move of a record is left out, alone and beside other factors."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from maps import WGS84, frame, hard, shapely, voronoi

import sfumato as sf
from sfumato.linear import Haar, Identity, Kronecker
from sfumato.policies import price
from sfumato.policies.described import policy_from_spec
from sfumato.relations import Record

NEW_YORK = (-74.3, 40.5, -73.7, 40.95)


def regions(shapes, name="place"):
    return sf.Regions(frame(shapes), id="id", name=name)


def edges(policy):
    return {tuple(edge) for edge in policy.edges().tolist()}


def test_two_regions_far_apart_are_joined_through_elsewhere():
    policy = sf.policy(regions([shapely.box(0, 0, 0.1, 0.1), shapely.box(5, 0, 5.1, 0.1)]), hide=sf.move("500 m"))
    assert edges(policy) == {(0, 2), (1, 2)}
    assert policy.diameter == 2 and policy.distance(0, 1) == 2 and policy.total_is_public
    assert policy.connected and (policy.components[0] == 0).all()
    assert policy.describe() == (
        "one record changes in this way: its place moves by less than 500 m (on the ellipsoid); the number of records "
        "is public"
    )


@pytest.mark.parametrize("delta", [300, 20_000])
def test_no_move_of_a_record_is_left_out(delta):
    """Records beside borders, on the ellipsoid, in all directions, and an hour that changes as well."""
    place = regions(voronoi(25, NEW_YORK, seed=4))
    space = place * sf.Line(0, 24, cells=24, name="t")
    hide = sf.move(f"{delta} m") & sf.move(1, of="t")
    rng = np.random.default_rng(delta)
    corners = place.axes[0].outlines.points
    at = corners[rng.integers(len(corners), size=20_000)]
    lon, lat, _ = WGS84.fwd(*at.T, rng.random(len(at)) * 360, rng.random(len(at)) * delta)
    to_lon, to_lat, _ = WGS84.fwd(lon, lat, rng.random(len(at)) * 360, rng.random(len(at)) * delta * (1 - 1e-9))
    hour = rng.random(len(at)) * 24
    later = np.clip(hour + rng.uniform(-1, 1, len(at)), 0, 24)
    u = space.locate((np.stack([lon, lat], 1), hour))
    v = space.locate((np.stack([to_lon, to_lat], 1), later))
    met = {tuple(sorted(pair)) for pair in zip(u.tolist(), v.tolist(), strict=True) if pair[0] != pair[1]}
    assert len(met) > 100 and not met - edges(sf.policy(space, hide=hide))


def test_a_sphere_is_no_ellipsoid_to_an_account():
    """A great circle of 500 m is up to 502.8 m on the ellipsoid: its name alone does not make it one step."""
    release = sf.policy(regions(voronoi(25, NEW_YORK, seed=4)), hide=sf.move("500 m"))
    assert price(Record.of(sf.move("500 m")), release) == 1
    assert price(Record.of(sf.move("500 m", metric="great-circle")), release) == release.diameter > 1


def test_sensitivities_are_those_of_the_edges():
    """Against every edge, alone (a list) and in a product (a leg), for strategies with structure and without."""
    place = regions(hard(2))
    hours = sf.Cycle("weekday", name="t")
    rng = np.random.default_rng(0)
    for hide in (sf.move("2 km"), sf.move("2 km") | sf.change("t"), sf.move("2 km") & sf.move("1 day", of="t")):
        domain = place if hide.names == () else place * hours
        policy = sf.policy(domain, hide=hide)
        u, v = policy.edges().T
        shape = domain.shape
        structured = [Kronecker([part(n) for n in shape]) for part in (Identity, Haar)]
        for strategy in [*structured, rng.integers(-3, 4, (9, domain.size))]:
            table = strategy.sparse().toarray() if hasattr(strategy, "sparse") else strategy
            assert policy.sensitivity(strategy) == np.abs(table[:, u] - table[:, v]).sum(axis=0).max()


def test_other_relations_on_regions():
    place = regions(voronoi(8))
    assert sf.anything().on(place) == sf.bounded(place)
    assert sf.presence().on(place) == sf.unbounded(place)
    assert len(edges(sf.change("place").on(place))) == 36
    both = sf.policy(place, hide=sf.move("500 m") | sf.presence())
    assert both.absent.all() and both.eccentricity == 1


def test_what_means_nothing_on_regions_is_refused():
    place = regions(voronoi(4))
    for hide, words in (
        (sf.move(0.1), "measured in metres, such as '500 m'"),
        (sf.move("5 min"), "measured in metres, such as '500 m'"),
        (sf.move("500 m", metric="great-circle"), "its regions are on the ellipsoid"),
        (sf.move("500 m", sources=[(0.0, 0.0)]), "sources, which are not known to regions"),
    ):
        with pytest.raises(sf.InvalidInput, match=words):
            sf.policy(place, hide=hide)


def test_an_origin_and_a_destination_move_by_themselves():
    shapes = voronoi(5)
    space = regions(shapes, "origin") * regions(shapes, "destination")
    hide = sf.move("1 km", of="origin") | sf.move("1 km", of="destination")
    alone = edges(sf.policy(regions(shapes), hide=sf.move("1 km")))
    n = 6
    expected = {(a * n + c, b * n + c) for a, b in alone for c in range(n)}
    expected |= {(c * n + a, c * n + b) for a, b in alone for c in range(n)}
    assert edges(sf.policy(space, hide=hide)) == expected


def test_a_map_is_planned_published_charged_saved_and_loaded(tmp_path):
    place = regions(voronoi(20, NEW_YORK))
    space = place * sf.Cycle("hour of day", name="t")
    counts = np.random.default_rng(1).integers(0, 30, space.shape)
    for domain, hide, values in (
        (place, sf.move("500 m"), counts.sum(axis=1)),
        (space, sf.move("500 m") | sf.move("1 h", of="t"), counts),
    ):
        policy = sf.policy(domain, hide=hide)
        account = sf.Ledger.create(tmp_path / f"{domain.ndim}.db", epsilon=5)
        for mechanism in (None, "edges"):
            plan = sf.plan(policy, sf.histogram(), epsilon=1, mechanism=mechanism)
            release = plan.publish(values, ledger=account)
            loaded = sf.load(release.save(tmp_path / "map.sfumato"))
            assert loaded.guarantee == release.guarantee and loaded.total == values.sum()
            assert loaded.answer(place="r3").value == pytest.approx(release.answer(place="r3").value)
            assert loaded.answer(by="place").value.shape == (21,)
        assert account.spent == 2
    assert release.to_frame().column("place").to_pylist()[-1] == "elsewhere"


def test_a_description_without_outlines_is_the_same_policy():
    policy = sf.policy(regions(voronoi(6)), hide=sf.move("500 m"))
    spec = json.loads(json.dumps(policy.spec()))
    assert policy_from_spec(spec) == policy
    assert edges(policy_from_spec(spec)) == edges(policy)
    spec["domain"]["axes"][0]["outlines"] = None
    read = policy_from_spec(spec)
    assert read == policy and read.connected
    with pytest.raises(sf.InvalidInput, match="read without the outlines"):
        read.edges()


WITHOUT = """
import sys
for name in ("geopandas", "shapely", "pyproj"):
    sys.modules[name] = None
import sfumato as sf
release = sf.load(sys.argv[1])
axis = release.domain.axes[0]
print(dict(zip(axis.labels, release.counts.tolist()))["r3"], axis.locate([[-74, 40.7]]).shape, release.total)
for call in (lambda: release.answer(place="r3"), lambda: sf.Regions("map.geojson", id="id")):
    try:
        call()
    except sf.MissingExtra as error:
        print(error)
"""


def test_a_release_is_read_without_the_extra(tmp_path):
    """Values by name; and what is missing for their errors."""
    plan = sf.plan(sf.policy(regions(voronoi(6, NEW_YORK)), hide=sf.move("500 m")), sf.histogram(), epsilon=1)
    release = plan.publish(np.arange(7) * 10)
    path = release.save(tmp_path / "map.sfumato")
    command = [sys.executable, "-c", WITHOUT, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0] == f"{release.counts[3]} (1,) {release.total}"
    assert said[1] == (
        "How near regions are to each other needs the package 'shapely', which is not installed. Install it with: pip "
        "install 'sfumato[geo]'"
    )
    assert said[2].startswith("A domain of regions needs the package 'geopandas'")


@pytest.mark.slow
def test_two_thousand_regions_are_planned():
    place = regions(voronoi(2_000, NEW_YORK))
    plan = sf.plan(sf.policy(place, hide=sf.move("500 m")), sf.histogram(), epsilon=1, mechanism="identity")
    assert plan.publish(np.ones(2_001, np.int64)).answer(by="place").stderr.max() < 3
