"""Releases for the tests of this directory: every mechanism, policy and kind of domain, and one with known counts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.mechanism import build

LINE = sf.Line(0, 8, cells=8)
GRID = sf.Grid(bounds=(-1.0, 40.5, 1.0, 41.0), shape=(6, 5), names=("lon", "lat"))
CUBE = sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(3, 2, 4))
MEANS = sf.Categories(["bus", "tram", 'by "foot", slowly'], other="tram")
MIXED = sf.Domain((sf.Interval("hour", 0, 24, 4), sf.Labels("week", (1, 2, 3))))

PLANS: dict[str, tuple[sf.Policy, str, dict[str, Any]]] = {
    "bounded identity": (sf.bounded(LINE), "identity", {}),
    "bounded hierarchy": (sf.bounded(GRID), "hierarchy", {"branching": 2}),
    "unbounded identity": (sf.unbounded(GRID), "identity", {}),
    "unbounded haar": (sf.unbounded(CUBE), "haar", {}),
    "unbounded hierarchy": (sf.unbounded(LINE), "hierarchy", {"branching": 4, "root": True}),
    "unbounded hats": (sf.unbounded(GRID), "hats", {"widths": [2], "weights": [5, 3]}),
    "bounded hat-products": (sf.bounded(GRID), "hat-products", {"hats": [3, 0], "height": 7, "weights": [5, 2]}),
    "bounded levels": (sf.bounded(GRID), "levels", {"blocks": [[1, 1], [2, 2]], "weights": [3, 2]}),
    "unbounded prefix": (sf.unbounded(LINE), "prefix", {"reverse": True}),
    "unbounded labels": (sf.unbounded(MEANS), "identity", {}),
    "unbounded mixed": (sf.unbounded(MIXED), "identity", {}),
    "threshold edges": (sf.threshold(LINE, 2), "edges", {}),
    "threshold prefix": (sf.threshold(LINE, 1), "prefix", {}),
    "within edges": (sf.within(GRID, delta="1/10"), "edges", {}),
    "within edge-haar": (sf.within(GRID, delta=0.25, metric="chebyshev"), "edge-haar", {}),
    "within boundary": (sf.within(GRID, delta=0.2, sources="boundary"), "edges", {}),
    "within points": (sf.within(LINE, delta=1.5, sources=[[2.5]]), "identity", {}),
    "graph edges": (sf.graph(MEANS, [("bus", "tram"), (1, 2), (0, sf.ABSENT)]), "edges", {}),
    "graph parts": (sf.graph(LINE, [(0, 1), (2, 3)], publish_component_totals=True), "edges", {}),
    "graph identity": (sf.graph(LINE, [(i, i + 1) for i in range(7)]), "identity", {}),
    "graph spanner": (sf.graph(LINE, [(i, (i + 1) % 8) for i in range(8)]), "spanner", {}),
    "threshold policy-edges": (sf.threshold(LINE, 3), "policy-edges", {}),
    "threshold blocks": (sf.threshold(LINE, 2), "blocks", {}),
    "threshold spanner": (sf.threshold(GRID, 4), "spanner", {}),
    "within edge-hierarchy": (sf.within(GRID, delta=0.25), "edge-hierarchy", {}),
    "within diagonal-hats": (sf.within(GRID, delta=0.25), "diagonal-hats", {}),
    "within edge-hats": (sf.within(GRID, delta=0.25), "edge-hats", {}),
    "threshold consistent": (sf.threshold(LINE, 1), "consistent", {}),
    "within adaptive-grid": (sf.within(GRID, delta=0.25), "adaptive-grid", {}),
    "within quadtree": (sf.within(GRID, delta=0.25), "quadtree", {}),
    "unbounded dawa, noise first": (sf.unbounded(LINE), "dawa", {"queries": "cells", "first": "noise"}),
    "unbounded dawa": (sf.unbounded(LINE), "dawa", {}),
}


@lru_cache
def sample(name: str, *, epsilon: Any = "0.7", seed: int = 3) -> sf.Release:
    """A seeded release by one of the plans above."""
    policy, mechanism, options = PLANS[name]
    counts = np.arange(policy.domain.size).reshape(policy.domain.shape) % 7
    plan = sf.plan(policy, sf.histogram(), epsilon=epsilon, mechanism=mechanism, **options)
    return plan.publish(counts, source=sf.SeededSource(seed))


def known(domain: sf.Domain, counts: Any, *, public_total: bool = False) -> sf.Release:
    """A release whose estimates are the given numbers."""
    return with_mechanism(sf.bounded(domain) if public_total else sf.unbounded(domain), counts, "identity", {})


def with_mechanism(policy: sf.Policy, counts: Any, name: str, options: dict[str, Any]) -> sf.Release:
    """The given numbers, as if this mechanism had made them."""
    guarantee = sf.Guarantee(policy=policy, epsilon=1)  # type: ignore[arg-type]
    return sf.Release(
        id="known",
        estimates=np.array(counts, dtype=np.float64).reshape(policy.domain.shape),
        guarantee=guarantee,
        mechanism=build(name, policy, guarantee.epsilon, **options),
        workload="single cells",
        created="2026-03-01T12:00:00+00:00",
    )
