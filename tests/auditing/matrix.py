"""The cases of the audit matrix: mechanisms × policies × shapes of domains."""

from __future__ import annotations

from fractions import Fraction

import sfumato as sf
from sfumato.mechanism import build, mechanisms

EPSILON = Fraction(3, 5)
SHAPES = [(1,), (2,), (3,), (7,), (9,), (1, 4), (2, 3), (3, 4), (2, 2, 3)]
OPTIONS = {
    "hierarchy": [{}, {"blocks": [2, 1], "weights": [3, 5]}],
    "hats": [{}, {"widths": [2], "weights": [3, 2]}],
    "edge-hierarchy": [{}, {"blocks": [2, 1], "weights": [1, 2]}],
    "edge-hats": [{}, {"widths": [[2], []], "weights": [[3, 2], [1]]}],
    "prefix": [{}, {"reverse": True}],
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


def policies(domain):
    """(name, policy) for every kind of policy that the domain takes."""
    yield "replace-one", sf.bounded(domain)
    yield "add/remove", sf.unbounded(domain)
    if domain.is_spatial:
        yield "threshold", sf.threshold(domain, 2)
        yield "within", sf.within(domain, 0.3)
        yield "within, sources", sf.within(domain, 0.3, sources="boundary")
    if domain.size > 2:
        cycle = [(i, (i + 1) % domain.size) for i in range(domain.size)]
        yield "cycle", sf.graph(domain, cycle)
        yield "cycle with ⊥", sf.graph(domain, [*cycle, (0, sf.ABSENT)])


def built(policy, names=None):
    """Every mechanism, with every option tried, that takes the policy."""
    for name in mechanisms() if names is None else names:
        for options in OPTIONS.get(name, [{}]):
            try:
                yield build(name, policy, EPSILON, **options)
            except (sf.InvalidInput, sf.TooLarge):
                continue
