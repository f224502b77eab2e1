"""A relation on a product: the edges, distances, parts and sensitivities are those of the graph written out."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from product_oracle import built, distances, graph, random_case

import sfumato as sf
from sfumato.linear import Haar, Hierarchy, Identity, Kronecker
from sfumato.policies import policy_from_spec

TABLE = sf.Categories(["north", "south"], name="region") * sf.Categories(["ill", "well"], name="case")
DAYS = sf.Times("2026-01-01", "2026-01-08", every="1 day", name="t")
CITY = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4)) * sf.Categories(["bus", "bike", "car"], name="mode")


def test_three_cells_by_hand() -> None:
    policy = sf.policy(TABLE, hide=sf.change("case"), public=["region"])
    assert policy.edges().tolist() == [[0, 1], [2, 3]]
    assert policy.distance((0, 0), (0, 1)) == 1
    assert policy.distance((0, 0), (1, 0)) == np.inf
    assert policy.diameter == np.inf
    assert policy.components[1].tolist() == [True, True]
    assert policy.describe().startswith("the exact number of records for every region is public, jointly")


def outermost(sets: set[frozenset[int]]) -> set[frozenset[int]]:
    """Those that no other one holds."""
    return {one for one in sets if not any(one < other for other in sets)}


def test_a_factor_of_one_cell_keeps_the_others_of_its_term_moving() -> None:
    space = sf.Line(0, 1, cells=1, name="t") * sf.Line(0, 4, cells=4, name="u") * sf.Line(0, 3, cells=3, name="v")
    hide = sf.move(1, of="t") & sf.move(2, of="u") & sf.move(1, of="v")
    policy = sf.policy(space, hide=hide)
    assert policy.moves.sizes(space.shape).tolist() == [[0, 1, 1], [0, 2, 1]]
    assert policy.changes == {frozenset({1, 2})}
    for name in ("edges", "edge-hats", "edge-haar", "identity", "hats"):
        found = sf.audit(sf.plan(policy, sf.ranges(), epsilon=1, mechanism=name))
        assert (found.method in ("exact", "argument"), found.epsilon) == (True, 1)


@pytest.mark.parametrize("seed", range(60))
def test_everything_is_that_of_the_graph_written_out(seed: int) -> None:
    dice = random.Random(seed)
    domain, hide = random_case(dice)
    policy, joined = built(domain, hide), graph(domain, hide)
    size = domain.size
    away = distances(joined)

    edges = policy.edges()
    found = np.zeros_like(joined)
    ends = np.where(edges < 0, size, edges)
    found[ends[:, 0], ends[:, 1]] = found[ends[:, 1], ends[:, 0]] = True
    assert (found == joined).all()
    assert len(np.unique(edges, axis=0)) == len(edges)
    between = (edges >= 0).all(axis=1).sum()
    assert policy.moves.count(domain.shape) <= between <= len(policy.relation.terms) * policy.moves.count(domain.shape)

    one_rule = len({(rule.of, json.dumps(rule.spec())) for rule in policy.relation.rules}) == len(
        {rule.of for rule in policy.relation.rules}
    )
    for _ in range(40):
        u, v = dice.randrange(size), dice.randrange(size)
        told = policy.distance(u, v)
        assert told >= away[u, v]
        if one_rule:
            assert told == away[u, v]
    assert policy.diameter >= away[:size, :size].max()
    assert policy.eccentricity >= away[:size, size].max()

    index = np.stack(np.unravel_index(edges[(edges >= 0).all(axis=1)], domain.shape), axis=-1)
    moved = {frozenset(np.flatnonzero(row).tolist()) for row in index[:, 0] != index[:, 1]}
    assert outermost(policy.changes) == outermost(moved)
    assert policy.hides_presence == bool(joined[:size, size].all())

    label, public = policy.components
    for u in range(size):
        assert ((label == label[u]) == np.isfinite(away[u, :size])).all()
        assert public[label[u]] == np.isinf(away[u, size])

    factors = [
        dice.choice(
            [Identity(n), Haar(n), Hierarchy(n, (2, 1) if n % 2 == 0 else (1,), (3, 2) if n % 2 == 0 else (2,))]
        )
        for n in domain.shape
    ]
    strategy = Kronecker(factors)
    dense = strategy.dense()
    largest = max(
        (np.abs(dense[:, u] - (dense[:, v] if v < size else 0)).sum() for u, v in np.argwhere(np.triu(joined, 1))),
        default=0,
    )
    assert policy.sensitivity(strategy) == largest
    assert policy.sensitivity(dense) == largest

    sizes = policy.moves.sizes(domain.shape)
    for u, v in np.argwhere(np.triu(joined[:size, :size], 1)):
        step = np.abs(np.subtract(np.unravel_index(u, domain.shape), np.unravel_index(v, domain.shape)))
        assert (sizes >= step).all(axis=1).any()
        longest = policy.moves.longest_along(domain.shape)
        assert all(step.sum() <= longest[axis] for axis in np.flatnonzero(step))


def test_what_changes_at_once_with_a_factor_of_one_cell_is_hidden() -> None:
    """One cell cannot be left, and whatever may change together with it changes all the same."""
    for here in (sf.Line(0, 1, cells=1, name="place"), sf.Times("2026-03-08", "2026-03-09", every="1 day", name="t")):
        table = here * sf.Categories(["ill", "well"], name="case")
        rule = sf.move(0.1, of="place") if "place" in table.names else sf.move("1 h", of="t")
        policy = sf.policy(table, hide=rule & sf.change("case"))
        assert policy.moves.longest_along(table.shape) == (0, 1)
        for mechanism in ("edges", "edge-hierarchy", "hats"):
            plan = sf.plan(policy, sf.histogram(), epsilon=1, mechanism=mechanism)
            assert plan.expected_error > 0.5, mechanism


@pytest.mark.parametrize("seed", range(60))
def test_a_description_is_read_back(seed: int) -> None:
    domain, hide = random_case(random.Random(seed))
    policy = built(domain, hide)
    again = policy_from_spec(json.loads(json.dumps(policy.spec())))
    assert again == policy
    assert again.describe() == policy.describe()
    assert again.relation == policy.relation
    assert again.public == policy.public


def test_short_forms_are_the_policies_that_they_always_were() -> None:
    grid, line = sf.Grid(bounds=(0, 0, 1, 1), shape=(8, 8)), sf.Line(0, 24, cells=24)
    degrees = sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(8, 8))
    assert sf.move(0.2).on(grid) == sf.within(grid, 0.2)
    assert sf.move(0.2, sources="boundary").on(grid) == sf.within(grid, 0.2, sources="boundary")
    assert sf.move(2, metric="manhattan").on(line) == sf.within(line, 2, metric="manhattan")
    assert sf.move("5 km", metric="great-circle").on(degrees) == sf.within(degrees, 5000, metric="great-circle")
    assert sf.anything().on(CITY) == sf.bounded(CITY)
    assert sf.presence().on(CITY) == sf.unbounded(CITY)


def test_the_standard_neighbourhood_adds_removes_and_replaces() -> None:
    policy = sf.policy(CITY, hide=sf.presence() | sf.anything())
    assert policy.diameter == 1
    assert policy.eccentricity == 1
    assert not policy.total_is_public


def test_a_move_as_long_as_the_place_joins_all_of_its_cells() -> None:
    policy = sf.policy(CITY, hide=sf.move(5), public=["mode"])
    assert policy.distance((0, 0, 1), (3, 3, 1)) == 1


def test_a_cycle_comes_round_and_the_night_of_the_change_of_clocks_counts() -> None:
    hours = sf.Cycle("hour of day", name="hour", tz="America/New_York")
    policy = sf.move("30 min", of="hour").on(hours)
    assert policy.distance(23, 0) == 1
    assert policy.distance(1, 3) == 1  # 01:45 and half an hour later 03:15, when clocks go forward
    assert policy.distance(11, 13) == 2


def test_with_two_rules_for_one_factor_a_distance_is_never_too_short() -> None:
    hour = sf.Line(0, 6, cells=6, name="hour")
    space = hour * sf.Categories(["a", "b"], name="mode")
    policy = sf.policy(space, hide=sf.move(0.5, of="hour") | (sf.move(1.5, of="hour") & sf.change("mode")))
    away = distances(graph(space, policy.relation))
    for u in range(space.size):
        for v in range(space.size):
            assert policy.distance(u, v) >= away[u, v]


REFUSED = [
    (lambda: sf.policy(CITY, hide=sf.move(0.2)), "hide changes nothing of 'mode'"),
    (lambda: sf.policy(CITY, hide=sf.move(0.2), public=["mod"]), "Did you mean 'mode'?"),
    (lambda: sf.policy(CITY, hide=sf.move(0.2), public="mode"), "public='mode' must be a list of factors"),
    (lambda: sf.policy(CITY, hide=sf.change("mode") | sf.move(0.2), public=["mode"]), "is not published exactly"),
    (lambda: sf.policy(CITY, hide=sf.presence(), public=["mode"]), "is not published exactly"),
    (lambda: sf.policy(CITY, hide=sf.anything(), public=["mode"]), "is not published exactly"),
    (lambda: sf.policy(CITY, hide=sf.move(0.2, sources=[(0, 0)]), public=["mode"]), "is not published exactly"),
    (lambda: sf.policy(CITY, hide=sf.change("x")), "an axis of 'place', which moves as a whole"),
    (lambda: sf.policy(CITY, hide=sf.change("diagnosis")), "which is no factor of this domain"),
    (lambda: sf.policy(CITY, hide=sf.move("500 m")), "no known CRS"),
    (lambda: sf.policy(CITY, hide=sf.move("30 min")), "measured in a number in its own units"),
    (lambda: sf.policy(CITY, hide=sf.move(1, of="mode")), "has values without distances"),
    (lambda: sf.move(2).on(DAYS), "measured in a time, such as '30 min'"),
    (lambda: sf.move("2 km").on(DAYS), "by less than 2000 m, but that is measured in a time, such as '30 min'"),
    (lambda: sf.policy(TABLE, hide=sf.move(1)), "Say which one moves"),
    (lambda: sf.policy("grid", hide=sf.move(1)), "is not a domain"),
    (lambda: sf.policy(CITY, hide="move"), "is not a relation"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_what_is_refused(call, words: str) -> None:
    with pytest.raises(sf.InvalidInput) as refused:
        call()
    assert words in str(refused.value)


def test_a_spanning_tree_among_too_many_edges_is_refused_before_they_are_listed() -> None:
    place = sf.Grid(bounds=(0, 0, 1, 1), shape=(1024, 1024))
    space = place * sf.Line(0, 1024, cells=1024, name="t")
    policy = sf.policy(space, hide=sf.move(0.01) | sf.move(1, of="t"))
    with pytest.raises(sf.TooLarge, match="too many to search for a spanning tree"):
        policy.spanner()


SECONDS = sf.Times("2026-01-01", "2027-01-01", every="1 s", name="t")
YEARS = sf.Times("0001-01-01", "9999-12-31", every="1 us", name="t")
CUBE = sf.Grid(bounds=[0] * 13 + [2] * 13, shape=[2] * 13)


@pytest.mark.parametrize(
    ("domain", "moves"),
    [
        (YEARS, [sf.move("1 s", of="t")]),
        (SECONDS, [sf.move(f"{i} s", of="t") for i in range(1, 4)]),
        (CUBE, [sf.move(3 + i / 64, metric="manhattan") for i in range(64)]),
        (CUBE, [sf.move(3 + i / 64, metric="manhattan", sources="boundary") for i in range(2)]),
    ],
    ids=["microseconds of all years", "a year of seconds three times", "13 dimensions 64 times", "and with sources"],
)
def test_more_moves_than_a_machine_can_hold_are_refused_before_any_is_made(
    domain: sf.Domain, moves: list[sf.Relation]
) -> None:
    hide = moves[0]
    for other in moves[1:]:
        hide = hide | other
    with pytest.raises(sf.TooLarge, match="Nothing was built"):
        sf.policy(domain, hide=hide)
