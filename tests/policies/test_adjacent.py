"""Neighbours of one map as a relation: what it joins in products, what it costs, what it refuses, and its words."""

from __future__ import annotations

import numpy as np
import pytest
from maps import frame, shapely, voronoi

import sfumato as sf
from sfumato.linear import Haar, Identity, Kronecker
from sfumato.policies import price
from sfumato.policies.described import policy_from_spec
from sfumato.relations import Record, relation_from_spec


def regions(count=12, name="place", seed=0):
    return sf.Regions(frame(voronoi(count, seed=seed)), id="id", name=name)


def squares(name="place"):
    shapes = [shapely.box(x / 10, y / 10, (x + 1) / 10, (y + 1) / 10) for x in range(3) for y in range(3)]
    return sf.Regions(frame(shapes), id="id", name=name)


def edges(policy):
    return {tuple(edge) for edge in policy.edges().tolist()}


def test_its_words_and_its_text():
    hide = sf.adjacent(squares(), contiguity="rook")
    assert (
        hide.describe() == "one record changes in this way: its place becomes a neighbouring one (a border in common)"
    )
    digest = squares().axes[0].digest
    assert hide.to_text() == f'adjacent("place", contiguity="rook", map="{digest}")'
    for relation in (hide, sf.adjacent("place"), sf.adjacent(), hide | sf.change("mode")):
        assert sf.relation_from_text(relation.to_text()) == relation == relation_from_spec(relation.spec())
    assert sf.adjacent("place").to_text() == 'adjacent("place")'
    assert sf.policy(squares(), hide=sf.adjacent()).relation == sf.adjacent(squares())


def test_in_a_product_it_is_a_leg_like_others():
    place, mode = squares(), sf.Categories(["bus", "bike"], name="mode")
    alone = edges(sf.policy(place, hide=sf.adjacent(place)))
    both = edges(sf.policy(place * mode, hide=sf.adjacent(place) | sf.change("mode")))
    moved = {(2 * u + m, 2 * v + m) for u, v in alone for m in range(2)}
    assert both == moved | {(2 * cell, 2 * cell + 1) for cell in range(10)}


def test_sensitivities_are_those_of_the_edges():
    place, rng = squares(), np.random.default_rng(0)
    hours = sf.Cycle("weekday", name="t")
    for hide in (sf.adjacent("place"), sf.adjacent("place", contiguity="rook") & sf.move("1 day", of="t")):
        domain = place if hide.names == ("place",) else place * hours
        policy = sf.policy(domain, hide=hide)
        u, v = policy.edges().T
        structured = [Kronecker([part(n) for n in domain.shape]) for part in (Identity, Haar)]
        for strategy in [*structured, rng.integers(-3, 4, (9, domain.size))]:
            table = strategy.sparse().toarray() if hasattr(strategy, "sparse") else strategy
            assert policy.sensitivity(strategy) == np.abs(table[:, u] - table[:, v]).sum(axis=0).max()


def test_what_an_account_of_neighbours_pays():
    """The same map: 1, and rook is among queen; another map: the longest way; moves by metres: as many as are found."""
    place, other = squares(), regions()
    hours = sf.Cycle("hour of day", name="t")
    queen, rook = Record.of(sf.adjacent(place), fixed=["t"]), Record.of(sf.adjacent(place, contiguity="rook"))
    by = {kind: sf.policy(place, hide=sf.adjacent(place, contiguity=kind)) for kind in ("queen", "rook")}
    assert price(queen, by["queen"]) == price(rook, by["rook"]) == price(rook, by["queen"]) == 1
    assert price(queen, by["rook"]) == 2
    assert price(queen, sf.policy(place * hours, hide=sf.adjacent("place"), public=["t"])) == 1
    away = sf.policy(other, hide=sf.adjacent(other))
    assert price(queen, away) == away.diameter > 1
    assert price(Record.of(sf.move("1 m")), by["rook"]) == 2
    assert price(Record.of(sf.move("12 km")), by["queen"]) == 2


def test_a_release_is_published_charged_and_read_again(tmp_path):
    place = squares()
    account = sf.Ledger.create(tmp_path / "account.db", epsilon=3, hide=sf.adjacent(place))
    policy = sf.policy(place, hide=sf.adjacent(place))
    release = sf.plan(policy, sf.histogram(), epsilon=1).publish(np.arange(10) * 10, ledger=account)
    again = sf.load(release.save(tmp_path / "release.sfumato"))
    assert account.spent == 1 and again.guarantee == release.guarantee
    assert policy_from_spec(policy.spec()) == policy
    assert "its place becomes a neighbouring one (a border or a corner in common)" in str(again.guarantee)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: sf.policy(sf.Grid((0, 0, 1, 1), shape=(2, 2)), hide=sf.adjacent()),
            "hide speaks of neighbouring places, and 'place' is no map of them. Nothing was built. Give sf.adjacent "
            "regions, hexagons or roads, and metric='road' a domain of sf.network.",
        ),
        (
            lambda: sf.adjacent(squares() * sf.Cycle("weekday", name="t")),
            "regions has several factors, 'place', 't'. Nothing was built. Give one of them, as in "
            "regions=space.part('place').",
        ),
        (
            lambda: sf.adjacent(squares(), contiguity="bishop"),
            "contiguity='bishop' must be 'queen' (a border or a corner in common) or 'rook' (a border).",
        ),
        (
            lambda: sf.adjacent(map="here"),
            "'here' is no map: give a domain of places, such as sf.Regions(…), or the digest of one (64 hexadecimal "
            "digits).",
        ),
        (lambda: sf.adjacent(3), "regions=3 is not a domain of one place, such as sf.Regions(…). Nothing was built."),
        (
            lambda: Record.of(sf.adjacent("place")),
            "hide speaks of neighbouring places or of ways along roads, and does not say on which map. Nothing was "
            "created. Name it, as in sf.adjacent(regions) or sf.move('500 m', along=roads).",
        ),
        (
            lambda: sf.policy(regions(), hide=sf.adjacent(map="0" * 64)),
            f"hide speaks of another map than that of 'place': of 000000000000…, and this is "
            f"{regions().axes[0].digest[:12]}…. Nothing was built. Say it of the domain's own map.",
        ),
    ],
)
def test_refusals(build, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build()
    assert str(refusal.value) == message
