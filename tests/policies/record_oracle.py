"""What a release truly costs an account, found among records: every pair of values that the relation joins is asked.

Attributes have a few fine values, some beyond the bounds of every domain. The account's rules are applied to the values
themselves, each seen through the release's domain, and the steps between their cells are counted in the release's graph
written out (`product_oracle`). Nothing of `sfumato.policies.price` is used, nor of the cells that a rule joins.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np
from product_oracle import distances

import sfumato as sf
from sfumato.policies import Policy
from sfumato.relations import Record, Rule

NORMS = {
    "euclidean": lambda gaps: np.sqrt((gaps**2).sum(axis=-1)),
    "manhattan": lambda gaps: gaps.sum(axis=-1),
    "chebyshev": lambda gaps: gaps.max(axis=-1),
}


@cache
def values(attribute: str) -> np.ndarray:
    """The values of an attribute: rows of numbers, microseconds, or the numbers of labels."""
    if attribute == "place":
        side = np.linspace(-0.35, 1.35, 18) + 0.003
        return np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    if attribute == "hour":
        return np.linspace(-1, 5, 49)[:, None] + 0.01
    if attribute == "t":
        first = datetime(2026, 3, 7, tzinfo=UTC)
        return np.array([[(first + timedelta(minutes=30 * k)).timestamp() * 1e6] for k in range(150)])
    return np.arange(3.0)[:, None]  # the labels a, b, c


def joined(rule: Rule) -> np.ndarray:
    """Which values of its attribute a rule joins; every value is joined with itself, since it may stay."""
    at = values(str(rule.of))
    if rule.kind == "change":
        return np.ones((len(at), len(at)), dtype=bool)
    gaps = np.abs(at[:, None] - at[None])
    scale = 1e6 if rule.of == "t" else 1.0
    near = NORMS[rule.metric](gaps / scale) < float(rule.delta.amount) * (1 - 1e-9)
    return near | np.eye(len(at), dtype=bool)


def near_source(rule: Rule) -> np.ndarray:
    """Which values of a place are near a source, a point."""
    far = [NORMS[rule.metric](np.abs(values("place") - np.array(source))) for source in rule.places]
    return np.min(far, axis=0) < float(rule.delta.amount) * (1 - 1e-9)


def seen(attribute: str, part: sf.Domain) -> np.ndarray:
    """The cell of every value of an attribute on the factors that show it: a place, or its axes alone."""
    at = values(attribute)
    if attribute == "place":
        return part.locate(tuple(at[:, "xy".index(name)].copy() for name in part.names))
    if attribute == "t":
        return part.locate([datetime.fromtimestamp(v / 1e6, UTC) for v in at[:, 0]])
    if attribute == "mode":
        return part.locate(np.array(["a", "b", "c"])[at[:, 0].astype(int)])
    return part.locate(at[:, 0].copy())


def true_price(record: Record, release: Policy, steps: np.ndarray, left_out: Collection[str] = ()) -> float:
    """The most steps of the release's graph (all distances, ⊥ last) that one change of one record takes."""
    domain = release.domain
    shows = {
        name: [f.name for f in domain.factors if f.name == name or (name == "place" and f.name in ("x", "y"))]
        for name in ("place", "hour", "t", "mode")
    }
    shows = {name: factors for name, factors in shows.items() if factors}
    size, absent, worst = domain.size, domain.size, 0.0
    cells = np.arange(size).reshape(domain.shape)
    for term in record.relation.terms:
        if term.kind == "presence":
            worst = max(worst, steps[:size, absent].max())
            continue
        if term.kind == "anything":
            worst = max(worst, steps[:size, :size].max(), steps[:size, absent].max() if left_out else 0)
            continue
        rules = {str(rule.of): rule for rule in term.rules}
        if set(rules) & set(left_out):
            worst = max(worst, steps[:size, absent].max())
        pairs, positions = [], []
        for name, factors in shows.items():
            part = domain.part(*factors)
            own = seen(name, part)
            near = joined(rules[name]) if name in rules else np.eye(len(own), dtype=bool)
            u, v = np.nonzero(near)
            pairs.append(np.unique(np.stack([own[u], own[v]], axis=-1), axis=0))
            positions.append([i for i, axis in enumerate(domain.names) if axis in part.names])
        order = [i for own in positions for i in own]
        table = cells.transpose(order).reshape([int(np.prod([domain.shape[i] for i in own])) for own in positions])
        for choice in itertools.product(*(range(len(p)) for p in pairs[1:])):
            rest = [p[k] for p, k in zip(pairs[1:], choice, strict=True)]
            here = table[(pairs[0][:, 0], *(int(p[0]) for p in rest))]
            there = table[(pairs[0][:, 1], *(int(p[1]) for p in rest))]
            worst = max(worst, steps[here, there].max())
        for rule in term.rules:
            if rule.places is not None:
                near = near_source(rule)
                for name, factors in shows.items():
                    if name != "place" or not near.any():
                        continue
                    own = np.unique(seen("place", domain.part(*factors))[near])
                    at = list(shows).index("place")
                    worst = max(worst, steps[np.moveaxis(table, at, 0)[own].ravel(), absent].max())
                if "place" not in shows and near.any():
                    worst = max(worst, steps[:size, absent].max())
    return worst


def release_graph(release: Policy) -> np.ndarray:
    """All distances in the graph of a policy, ⊥ last."""
    size = release.domain.size
    table = np.zeros((size + 1, size + 1), dtype=bool)
    ends = np.where(release.edges() < 0, size, release.edges())
    table[ends[:, 0], ends[:, 1]] = table[ends[:, 1], ends[:, 0]] = True
    return distances(table)
