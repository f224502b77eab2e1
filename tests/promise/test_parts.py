"""Prices of releases made of parts: never below the worst change by brute force, and no higher than need be."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.policies import exchange_rate
from sfumato.promise.parts import Part, Partition

CELLS = 3
PLACES = sf.Line(0, CELLS, cells=CELLS)


def distance(policy, u, v):
    """Between two cells, or a cell and ⊥ (None)."""
    if u is None and v is None:
        return 0
    return policy.distance(*(sf.ABSENT if w is None else w for w in (u, v)))


def policies():
    return [
        sf.bounded(PLACES),
        sf.unbounded(PLACES),
        sf.threshold(PLACES, theta=1),
        (sf.presence() | sf.move(0.5, of="x")).on(PLACES),
        (sf.presence() | sf.anything()).on(PLACES),
        sf.graph(PLACES, edges=[(0, 1), (1, 2), (2, sf.ABSENT)]),
    ]


def case(dice):
    """Two or three parts with their ε and policies, and what of a record (part, place) is hidden: edges, None is ⊥."""
    number = dice.choice([2, 3])
    made = [(Fraction(dice.randint(1, 6), 4), dice.choice(policies())) for _ in range(number)]
    inside = dice.choice([None, sf.bounded(PLACES), sf.threshold(PLACES, theta=1)])
    crossing = dice.choice(["no", "in place", "anywhere"])
    joined = [pair for pair in itertools.combinations(range(number), 2) if dice.random() < 0.6]
    joined = [] if crossing == "no" else joined
    presence = dice.random() < 0.4
    edges = []
    if inside is not None:
        edges += [((i, int(u)), (i, int(v))) for i in range(number) for u, v in inside.edges()]
    for i, j in joined:
        edges += [
            ((i, u), (j, v)) for u, v in itertools.product(range(CELLS), repeat=2) if crossing == "anywhere" or u == v
        ]
    if presence:
        edges += [((i, u), None) for i in range(number) for u in range(CELLS)]
    return made, inside, tuple(joined), presence, crossing, edges


def loss(made, one, other):
    """What all parts together tell of a change of one record."""
    total = 0
    for i, (epsilon, policy) in enumerate(made):
        here = one[1] if one is not None and one[0] == i else None
        there = other[1] if other is not None and other[0] == i else None
        steps = distance(policy, here, there)
        total += 0 if steps == 0 else float(epsilon) * steps
    return total


def partition(made, inside, joined, presence):
    parts = tuple(
        Part(epsilon=epsilon, inside=0 if inside is None else exchange_rate(inside, policy), absent=policy.eccentricity)
        for epsilon, policy in made
    )
    return Partition(parts=parts, joined=joined, presence=presence)


@pytest.mark.parametrize("seed", range(150))
def test_the_price_is_the_worst_change_of_a_record(seed):
    made, inside, joined, presence, crossing, edges = case(random.Random(seed))
    worst = max((loss(made, u, v) for u, v in edges), default=0)
    try:
        price = partition(made, inside, joined, presence).price
    except sf.PolicyMismatch:
        assert math.isinf(worst)
        return
    assert float(price) >= worst - 1e-12
    at_least = 0 if inside is None else max(e for e, _ in made)  # a price is never below ε where something changes
    if crossing != "in place":  # there the two ends are farthest at the same place or not
        assert float(price) <= max(worst, at_least) + 1e-12


@pytest.mark.parametrize("seed", range(40))
def test_a_person_bounded_before_the_split_pays_for_her_costliest_changes(seed):
    """All databases of a person with at most two records, each of which changes along an edge or stays."""
    made, inside, joined, presence, _, edges = case(random.Random(1000 + seed))
    both = [*edges, *((v, u) for u, v in edges)]
    try:
        price = 2 * partition(made, inside, joined, presence).price
    except sf.PolicyMismatch:
        return
    worst = max(
        (loss(made, *a) + loss(made, *b) for a, b in itertools.combinations_with_replacement(both, 2)), default=0
    )
    assert float(price) >= worst - 1e-12


def test_parts_that_no_change_joins_cost_the_largest_by_hand():
    quarter, half = (Part(epsilon=Fraction(e), inside=1, absent=1) for e in ("1/4", "1/2"))
    assert Partition(parts=(quarter, half)).price == Fraction(1, 2)
    assert Partition(parts=(quarter, half), presence=True).price == Fraction(1, 2)
    assert Partition(parts=(quarter, half), joined=((0, 1),)).price == Fraction(3, 4)


def test_many_parts_alike_cost_what_two_do():
    part = Part(epsilon=Fraction(1), inside=2, absent=1)
    assert Partition.alike(part, 1000, crossed=False, presence=False).price == 2
    steep = Part(epsilon=Fraction(1), inside=1, absent=Fraction(3, 2))
    assert Partition.alike(steep, 1000, crossed=True, presence=True).price == 3
    assert Partition.alike(steep, 1, crossed=True, presence=False).price == 1


def test_what_joins_a_part_without_absence_is_refused():
    exact = Part(epsilon=Fraction(1), inside=1)
    assert Partition(parts=(exact, exact)).price == 1
    for parts in (
        Partition(parts=(exact, exact), joined=((0, 1),)),
        Partition(parts=(exact,), presence=True),
    ):
        with pytest.raises(sf.PolicyMismatch, match="shows its exact total: no price is high enough"):
            _ = parts.price


def test_steps_are_numbers():
    with pytest.raises(sf.InvalidInput, match="inside=-1 must be a number of steps, at least 0"):
        Part(epsilon=Fraction(1), inside=-1)
    with pytest.raises(sf.InvalidInput):
        Part(epsilon=Fraction(1), inside=math.nan)
