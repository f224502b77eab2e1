"""Moves along roads: none is left out, beside other factors too; their words, their price, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from maps import WGS84, geopandas, shapely

import sfumato as sf
from sfumato.linear import Haar, Identity, Kronecker
from sfumato.policies import price
from sfumato.policies.described import policy_from_spec
from sfumato.relations import Record, relation_from_spec


def town(blocks=3, step=0.002, name="place", **more):
    """Streets on a lattice, with a road out of it at the end of each avenue; a district for every avenue."""
    at = np.arange(blocks + 1) * step
    lines, district = [], []
    for i, x in enumerate(at.tolist()):
        for y in (*at.tolist(), at[-1] + step)[:-1]:
            lines.append([(x, y), (x, y + step)])
            district.append(f"avenue {i}")
            if i < blocks:
                lines.append([(x, y), (at[i + 1], y)])
                district.append(f"avenue {i}")
    frame = geopandas.GeoDataFrame(
        {"district": district}, geometry=list(map(shapely.LineString, lines)), crs="EPSG:4326"
    )
    return sf.network(frame, levels=["district"], name=name, **more)


def edges(policy):
    return {tuple(edge) for edge in policy.edges().tolist()}


def test_its_words_say_which_moves_and_which_not():
    roads = town()
    policy = sf.policy(roads, hide=sf.move("500 m", along=roads))
    assert policy.describe() == (
        "one record changes in this way: its place moves by less than 500 m along the roads; the roads are left and "
        "entered where they end; the number of records is public"
    )
    release = sf.plan(policy, sf.histogram(), epsilon=1).publish(np.arange(roads.size))
    assert "is hidden only where the roads may be left." in release.guarantee.describe()
    both = sf.policy(roads, hide=sf.move("500 m", along=roads) | sf.presence())
    assert not both.moves_by_road and both.eccentricity == 1


def test_its_text_and_its_data():
    roads = town()
    digest = roads.axes[0].digest
    hide = sf.move("0.5 km", along=roads)
    assert hide.to_text() == f'move("500 m", of="place", along="{digest}")'
    for relation in (hide, sf.move("500 m", metric="road"), sf.move("1 km", along=digest, keep="district")):
        assert sf.relation_from_text(relation.to_text()) == relation == relation_from_spec(relation.spec())
    assert sf.policy(roads, hide=sf.move("500 m", metric="road")).relation == hide
    assert "map" not in sf.move("500 m").spec()["terms"][0]["rules"][0]


def test_no_move_along_the_roads_is_left_out():
    """Walks from places on the streets, by geodesics from corner to corner, and an hour that changes as well."""
    roads = town(snap="1 m")
    space = roads * sf.Line(0, 24, cells=24, name="t")
    hide = sf.move("400 m", along=roads) & sf.move(1, of="t")
    joined = edges(sf.policy(space, hide=hide))
    axis, rng, walks = roads.axes[0], np.random.default_rng(0), []
    ends, of = axis.lines.ends
    for _ in range(4_000):
        line = int(rng.integers(len(of)))
        here = ends[of[line, 0]] + rng.random() * (ends[of[line, 1]] - ends[of[line, 0]])
        left, at, node = 400 * (1 - 1e-9) * rng.random(), here, int(of[line, rng.integers(2)])
        while True:
            far = WGS84.inv(*at, *ends[node])[2]
            if far > left:
                there = at + left / far * (ends[node] - at)
                break
            choice = np.flatnonzero((of == node).any(axis=1))
            left, at = left - far, ends[node]
            line = int(rng.choice(choice))
            node = int(of[line].sum() - node)
            if len(choice) == 1:
                there = at
                break
        walks.append((here, there))
    places = np.array(walks)
    hour = rng.random(len(walks)) * 24
    later = np.clip(hour + rng.uniform(-1, 1, len(walks)), 0, 24)
    u, v = space.locate((places[:, 0], hour)), space.locate((places[:, 1], later))
    met = {(a, b) for a, b in zip(np.minimum(u, v).tolist(), np.maximum(u, v).tolist(), strict=True) if a < b}
    assert len(met) > 500 and not met - joined


def test_sensitivities_are_those_of_the_edges():
    roads, rng = town(), np.random.default_rng(0)
    hours = sf.Cycle("weekday", name="t")
    for hide in (sf.move("300 m", along=roads), sf.move("300 m", along=roads) | sf.move("1 day", of="t")):
        domain = roads if len(hide.terms) == 1 else roads * hours
        policy = sf.policy(domain, hide=hide)
        u, v = policy.edges().T
        for strategy in [*(Kronecker([part(n) for n in domain.shape]) for part in (Identity, Haar))]:
            table = strategy.sparse().toarray()
            assert policy.sensitivity(strategy) == np.abs(table[:, u] - table[:, v]).sum(axis=0).max()
        table = rng.integers(-3, 4, (9, domain.size))
        assert policy.sensitivity(table) == np.abs(table[:, u] - table[:, v]).sum(axis=0).max()


def test_neighbours_and_levels_on_roads(tmp_path):
    roads = town()
    beside = sf.policy(roads, hide=sf.adjacent(roads))
    assert edges(beside) == edges(sf.policy(roads, hide=sf.move("1 m", along=roads)))
    policy = sf.policy(roads, hide=sf.move("100 m", along=roads))
    plan = sf.plan(policy, sf.levels(), epsilon=1, mechanism="tree")
    release = plan.publish(np.arange(roads.size) * 10)
    table = release.answer(by="district")
    assert len(table.value) == 5 and table.value.sum() == pytest.approx(release.total)
    again = sf.load(release.save(tmp_path / "roads.sfumato"))
    assert again.guarantee == release.guarantee and again.answer(place="3").stderr > 0
    assert policy_from_spec(policy.spec()) == policy


def test_what_an_account_pays(tmp_path):
    """The same roads: 1, and for longer moves what a search finds; other roads: the longest way."""
    roads, other = town(), town(step=0.0021)
    record = Record.of(sf.move("300 m", along=roads))
    by = {far: sf.policy(roads, hide=sf.move(far, along=roads)) for far in ("100 m", "300 m", "1 km")}
    assert price(record, by["300 m"]) == price(record, by["1 km"]) == 1
    assert 1 < price(record, by["100 m"]) <= by["100 m"].diameter
    away = sf.policy(other, hide=sf.move("300 m", along=other))
    assert price(record, away) == away.diameter > 1
    as_the_crow_flies = Record.of(sf.move("300 m"))
    assert price(as_the_crow_flies, by["300 m"]) == by["300 m"].diameter
    account = sf.Ledger.create(tmp_path / "account.db", epsilon=5, hide=sf.move("300 m", along=roads))
    sf.plan(by["300 m"], sf.histogram(), epsilon=1).publish(np.arange(roads.size), ledger=account)
    assert account.spent == 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: sf.policy(town(), hide=sf.move("500 m")),
            "hide moves 'place' by less than 500 m as the crow flies, and distances on roads are those along them. "
            "Nothing was built. Say sf.move('500 m', along=roads).",
        ),
        (
            lambda: sf.policy(sf.Grid((0, 0, 1, 1), shape=(2, 2)), hide=sf.move("500 m", metric="road")),
            "hide moves 'place' along roads, and it is no network of them. Nothing was built. Build it with "
            "sf.network(…), or leave the metric out.",
        ),
        (
            lambda: sf.policy(town(), hide=sf.move("500 m", along=town(step=0.001))),
            f"hide speaks of another map than that of 'place': of {town(step=0.001).axes[0].digest[:12]}…, and this "
            f"is {town().axes[0].digest[:12]}…. Nothing was built. Say it of the domain's own map.",
        ),
        (
            lambda: sf.move("500 m", along=sf.Line(0, 1, cells=2)),
            "along=Line(0, 1, cells=2) is not a domain of roads, such as sf.network(…). Nothing was built.",
        ),
        (
            lambda: sf.move("500 m", metric="geodesic", along=town()),
            "along=… is for moves by road, and metric='geodesic'. Leave one of them out.",
        ),
        (
            lambda: sf.move(0.1, metric="euclidean", along=town()),
            "along=… is for moves by road, and metric='euclidean'. Leave one of them out.",
        ),
        (
            lambda: Record.of(sf.move("500 m", metric="road")),
            "hide speaks of neighbouring places or of ways along roads, and does not say on which map. Nothing was "
            "created. Name it, as in sf.adjacent(regions) or sf.move('500 m', along=roads).",
        ),
        (
            lambda: sf.policy(town(), hide=sf.move("500 m", metric="road", sources=[(0.0, 0.0)])),
            "hide moves 'place' with sources, which are not known to segments. Nothing was built. Leave them out, or "
            "join the move with | sf.presence().",
        ),
    ],
)
def test_refusals(build, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build()
    assert str(refusal.value) == message
