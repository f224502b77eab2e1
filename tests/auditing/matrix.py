"""The cases of the audit matrix: mechanisms × policies × shapes of domains, and × relations × products."""

from __future__ import annotations

import json
from fractions import Fraction

import sfumato as sf
from sfumato.mechanism import build, mechanisms

EPSILON = Fraction(3, 5)
SHAPES = [(1,), (2,), (3,), (7,), (9,), (1, 4), (2, 2), (2, 3), (3, 4), (2, 2, 3)]
OPTIONS = {
    "hierarchy": [{}, {"blocks": [2, 1], "weights": [3, 5]}],
    "hats": [{}, {"widths": [2], "weights": [3, 2]}],
    "edge-hierarchy": [{}, {"blocks": [2, 1], "weights": [1, 2]}],
    "diagonal-hats": [{}, {"widths": [[2], []], "weights": [[3, 9], [9]], "diagonal": 4}],
    "edge-hats": [{}, {"widths": [[2], []], "weights": [[3, 2], [1]]}],
    "hat-products": [{"hats": [0, 0], "height": 1, "weights": [2]}, {"hats": [3], "height": 6, "weights": [5, 2]}],
    "levels": [{}, {"blocks": [[1, 1], [2, 2]], "weights": [1, 2]}],
    "prefix": [{}, {"reverse": True}],
    "dawa": [{}, {"queries": "cells", "first": "noise"}],
    "shifted": [{"width": 2}, {"width": 3}],
    "shifted-edges": [{"width": 2}, {"width": 3}],
    "sorted": [{}, {"group": 2}],
    "marginals": [
        {"tables": [[0]], "weights": [1]},
        {"tables": [[0], [1]], "weights": [2, 1]},
        {"tables": [[], [0], [0, 1]], "weights": [1, 2, 3]},
        {"tables": [[0, 1], [1, 2]], "weights": [1, 2]},
    ],
}


def box(shape):
    d = len(shape)
    return sf.Line(0, 1, cells=shape[0]) if d == 1 else sf.Grid(bounds=(0,) * d + (1,) * d, shape=shape)


DOMAINS = [*map(box, SHAPES), sf.Categories(["bus", "tram", "rest"])]
DOMAINS.append(sf.Categories(list("abcd"), levels={"half": list("LLRR")}))


def policies(domain):
    """(name, policy) for every kind of policy that the domain takes."""
    yield "replace-one", sf.bounded(domain)
    yield "add/remove", sf.unbounded(domain)
    yield "both of them", (sf.presence() | sf.anything()).on(domain)
    if domain.is_spatial:
        yield "threshold", sf.threshold(domain, 2)
        yield "within", sf.within(domain, 0.3)
        yield "within, sources", sf.within(domain, 0.3, sources="boundary")
    if domain.size > 2:
        cycle = [(i, (i + 1) % domain.size) for i in range(domain.size)]
        yield "cycle", sf.graph(domain, cycle)
        yield "cycle with ⊥", sf.graph(domain, [*cycle, (0, sf.ABSENT)])


MODE = sf.Categories(["bus", "bike"], name="mode")
DAYS = sf.Times("2026-03-07", "2026-03-10", every="1 day", tz="America/New_York", name="t")
PRODUCTS = [
    sf.Line(edges=[0, 0.1, 0.5, 1], name="place") * MODE,
    MODE * sf.Grid(bounds=(0, 0, 1, 1), shape=(2, 2)),
    sf.Line(0, 1, cells=2, name="place") * DAYS * MODE,
    sf.Line(0, 1, cells=1, name="place") * sf.Cycle("weekday", name="t") * MODE,
]


def relations(domain):
    """(name, policy) for relations of every kind on a product of a place, a mode and perhaps a time."""
    here = sf.move(0.3)
    middle = (0.5,) * domain.part("place").ndim
    yield "one at a time", here | sf.change("mode"), ["t"]
    yield "at once", here & sf.change("mode"), ["t"]
    yield "move, rest public", here, ["mode", "t"]
    yield "change, rest public", sf.change("mode"), ["place", "t"]
    yield "at once, or presence", (here & sf.change("mode")) | sf.presence(), []
    yield "presence or anything", sf.presence() | sf.anything(), []
    yield "near a source", sf.move(0.3, sources=[middle]) | sf.change("mode"), []
    if "t" in domain.names:
        hour = sf.move("1 h", of="t")
        yield "a & b, or b & c", (here & hour) | (hour & sf.change("mode")), []
        yield "each of three", here | hour | sf.change("mode"), []


def related(domain):
    """The same as policies, with those of its factors public that nothing changes."""
    for name, hide, public in relations(domain):
        known = [factor.name for factor in domain.factors if factor.name in public]
        try:
            yield name, sf.policy(domain, hide=hide, public=known, publish_component_totals=True)
        except sf.InvalidInput:  # near a source of one factor, and nothing hides another
            continue


def built(policy, names=None):
    """Every mechanism, with every option tried, that takes the policy."""
    seen = set()  # on small domains many options come to the same
    for name in mechanisms() if names is None else names:
        for options in OPTIONS.get(name, [{}]):
            try:
                mechanism = build(name, policy, EPSILON, **options)
            except (sf.InvalidInput, sf.TooLarge):
                continue
            if (made := json.dumps(mechanism.spec())) not in seen:
                seen.add(made)
                yield mechanism
