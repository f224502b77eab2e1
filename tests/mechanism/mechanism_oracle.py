"""Every mechanism under every policy on small domains, and the witness of its privacy for every edge."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

import sfumato as sf
from sfumato.linear import CrossingEstimator, Difference, Identity, Incidence, Kronecker, PseudoInverse, Selection
from sfumato.mechanism import build, mechanisms, variants

EPSILON = Fraction(1, 2)
EXTRA = {
    "hierarchy": [{"branching": 2}, {"branching": 3, "root": True}, {"blocks": [2, 1], "weights": [3, 5]}],
    "edge-hierarchy": [{"blocks": [2, 1]}, {"blocks": [4, 2, 1], "weights": [1, 3, 2]}],
    "edge-hats": [{}, {"widths": [2], "weights": [3, 2]}, {"widths": [[], [2]], "weights": [[1], [5, 4]]}],
    "diagonal-hats": [
        {},
        {"widths": [[2], [2]], "weights": [[3, 9], [4, 9]], "diagonal": 2},
        {"widths": [[], [2]], "weights": [[7], [2, 6]], "diagonal": 5},
    ],
    "hats": [{}, {"widths": [2], "weights": [3, 2]}, {"widths": [4, 2], "weights": [5, 4, 7]}],
    "blocks": [{"blocks": [2, 1]}, {"blocks": [4, 2, 1], "weights": [2, 1, 3]}],
    "hat-products": [
        {},
        {"hats": [3], "height": 6, "weights": [5, 2]},
        {"hats": [0, 0], "height": 1, "weights": [1]},
    ],
    "levels": [
        {},
        {"blocks": [[1, 1], [2, 1], [4, 4]], "weights": [3, 1, 2]},
        {"blocks": [[1], [3]], "weights": [2, 5]},
    ],
    "prefix": [{}, {"reverse": True}],
}


def box(shape):
    d = len(shape)
    return sf.Line(0, 1, cells=shape[0]) if d == 1 else sf.Grid(bounds=(0,) * d + (1,) * d, shape=shape)


DOMAINS = [box(s) for s in [(1,), (2,), (3,), (7,), (8,), (12,), (3, 4), (5, 2), (1, 4), (4, 4), (2, 3, 4)]]
DOMAINS += [
    sf.Categories(["bus", "tram", "rest"]),
    sf.Categories(["only"]),
    sf.Domain((sf.Interval("x", 0, 1, 3), sf.Labels("kind", ("bus", "tram")))),
    sf.Categories(list("abcde"), levels={"state": list("AABBA"), "county": list("xyxxx")}),
]


def policies(domain):
    yield sf.bounded(domain)
    yield sf.unbounded(domain)
    if domain.is_spatial:
        d = domain.ndim
        yield sf.threshold(domain, 1)
        yield sf.threshold(domain, 2)
        yield sf.within(domain, 0.3)
        yield sf.within(domain, 0.3, sources="boundary")
        yield sf.within(domain, 0.2, sources=[(0.1,) * d])
    if domain.size > 2:
        cycle = [(i, i + 1) for i in range(domain.size - 1)] + [(0, domain.size - 1)]
        yield sf.graph(domain, cycle)
        yield sf.graph(domain, [*cycle, (0, sf.ABSENT)])
        yield sf.graph(domain, [(0, 1)], publish_component_totals=True)


@cache  # every module asks for all of them
def built(policy, epsilon=EPSILON):
    """Every unbiased linear mechanism that takes the policy, with every option that a plan or a test tries.

    Spanners have paths of their own, and a module of their own; so have shifted families.
    """
    tried = list(variants(policy, sf.ranges() if policy.domain.is_spatial else sf.histogram()))
    tried += [(name, options) for name in mechanisms() for options in EXTRA.get(name, [{}])]
    found = {}
    for name, options in tried:
        if name == "spanner":
            continue
        try:
            mechanism = build(name, policy, epsilon, **options)
        except (sf.InvalidInput, sf.TooLarge):
            continue
        if mechanism.model is not None and not mechanism.biased:
            found.setdefault(json.dumps(mechanism.spec()), mechanism)  # on small domains many options come to the same
    return tuple(found.values())


@lru_cache(maxsize=1)
def cases():
    return tuple(policy for domain in DOMAINS for policy in policies(domain))


def label(policy):
    return f"{policy.name}{policy.domain.shape}{'' if policy.absent is None else '⊥'}"


def no_noise(mechanism):
    return [np.zeros(block.estimator.cols, dtype=np.int64) for block in mechanism.model.blocks]


def some_noise(mechanism, rng, size=50):
    return [rng.integers(-size, size + 1, block.estimator.cols) for block in mechanism.model.blocks]


def witness(mechanism, u, v):
    """An integer vector c with L·c = e_u - e_v (e_u alone when v is ⊥), block by block: found from the model alone."""
    blocks = mechanism.model.blocks
    if blocks and isinstance(blocks[0].estimator, CrossingEstimator) and v >= 0:
        return [diagonal_walk(blocks[0].estimator, mechanism.policy.domain.shape, u, v), *no_noise(mechanism)[1:]]
    change = unit(mechanism.policy.domain.size, u, v)
    if hasattr(mechanism, "strategy"):  # A·x + η is published: the strategy's own change
        return [mechanism.strategy.forward(change)]
    found = no_noise(mechanism)
    for block, c in zip(blocks, found, strict=True):  # one noise that does it alone
        if isinstance(block.estimator, (Incidence, Selection)) or (
            isinstance(block.estimator, Difference) and block.estimator.cols
        ):
            columns = block.estimator.dense()
            same = np.flatnonzero((columns == change[:, None]).all(axis=0))
            other = np.flatnonzero((columns == -change[:, None]).all(axis=0))
            if len(same) or len(other):
                c[(same if len(same) else other)[0]] = 1 if len(same) else -1
                return found
    # A walk along the axes, one after the other, through the strategy of every axis's edges.
    shape = mechanism.policy.domain.shape
    here, there = list(np.unravel_index(v, shape)), list(np.unravel_index(u, shape))
    for block, c in zip(blocks, found, strict=True):
        if isinstance(block.estimator, Selection):
            continue
        factors = block.estimator.factors
        (axis,) = (i for i, factor in enumerate(factors) if isinstance(factor, Difference))
        flow = np.zeros([n - (i == axis) for i, n in enumerate(shape)], dtype=np.int64)
        low, high = sorted((here[axis], there[axis]))
        index = list(here)
        index[axis] = slice(low, high)
        flow[tuple(index)] = 1 if there[axis] < here[axis] else -1
        here[axis] = there[axis]
        across = [
            Identity(factor.cols) if i == axis else factor.strategy if isinstance(factor, PseudoInverse) else factor
            for i, factor in enumerate(factors)
        ]
        c += Kronecker(across).forward(flow.ravel())
    return found


def diagonal_walk(estimator, shape, u, v):
    """B·z for a walk from v to u over corners, and then along the longer axis."""
    z = [np.zeros(size, dtype=np.int64) for size in estimator.parts[:4]]
    here, there = (np.array(np.unravel_index(cell, shape)) for cell in (v, u))
    while (here != there).any():
        step = np.sign(there - here)
        low = np.minimum(here, here + step)
        kind = {(1, 0): 0, (0, 1): 1}.get(tuple(np.abs(step)), 2 if step[0] == step[1] else 3)
        z[kind][tuple(low)] += -1 if (step[0] or step[1]) > 0 else 1  # an edge leaves the cell with the smaller x, or y
        here = here + step
    return estimator.edge_noise(z)


def unit(size, u, v):
    change = np.zeros(size, dtype=np.int64)
    change[u] += 1
    if v >= 0:
        change[v] -= 1
    return change


def cost(mechanism, c):
    """Σ |c_j|·rate_j, exactly."""
    return sum(
        (int(np.abs(part).sum()) * block.noise.rate for part, block in zip(c, mechanism.model.blocks, strict=True)),
        Fraction(0),
    )


def all_queries(workload, domain):
    """Every query of a workload over all axes, one row each."""
    kind = workload.kind.name
    rows = []
    spans = [
        [
            (i, j)
            for i in range(n)
            for j in range(i + 1, n + 1)
            if kind == "ranges" or (kind == "cells" and j == i + 1) or (kind == "prefixes" and i == 0)
        ]
        for n in domain.shape
    ]
    for choice in itertools.product(*spans):
        query = np.zeros(domain.shape)
        query[tuple(slice(*span) for span in choice)] = 1
        rows.append(query.ravel())
    return np.array(rows)
