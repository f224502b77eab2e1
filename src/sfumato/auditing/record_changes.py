"""Which changes of one record an audit tries: every edge of the policy, and changes made anew from its definition.

The second kind is for mistakes in the policy itself. Points are made up, on cell borders and corners above all, moved
by as much as the policy's words allow, and located as a user's points would be. A pair of cells that comes out and that
the policy does not join joins the list: a mechanism that took the policy's word for it will be seen to break there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations
from typing import cast

import numpy as np

from sfumato._types import Integers
from sfumato.auditing.made_up import POINTS_MADE_UP, moved, moved_in_time, near_sources
from sfumato.domain import Domain
from sfumato.errors import TooLarge
from sfumato.policies import ABSENT, Policy
from sfumato.relations import OWN, SECONDS, Relation, Rule

MOST_EDGES = 4096  # audited; of more a sample is taken
METRICS_ON_NUMBERS = ("euclidean", "manhattan", "chebyshev", "great-circle")


def changes(policy: Policy, rng: np.random.Generator) -> tuple[Integers, int]:
    """(pairs of cells to audit, how many there are in all); ⊥, always second, is -1.

    All of them where they are few, else a random sample, in random order, so that whoever stops early has
    seen all kinds. Changes from the definition that the policy lacks come first.
    """
    try:
        listed = policy.edges()
    except TooLarge:
        listed = np.empty((0, 2), dtype=np.int64)
    joined = {tuple(sorted(pair)) for pair in listed.tolist()}
    made = {pair for pair in defined(policy, rng) if not listed.size or pair not in joined}
    extra = np.array([(v, u) if u == ABSENT else (u, v) for u, v in sorted(made)], dtype=np.int64).reshape(-1, 2)
    total = len(listed) + len(extra)
    listed = rng.permutation(listed)[:MOST_EDGES]
    listed = np.where(listed[:, :1] == ABSENT, listed[:, ::-1], listed)
    return np.concatenate([extra[:MOST_EDGES], listed]), total


def defined(policy: Policy, rng: np.random.Generator) -> set[tuple[int, int]]:
    """Sorted pairs of different cells between which the policy's own words let a record change."""
    made = {
        "within": _within,
        "threshold": _threshold,
        "bounded": _bounded,
        "unbounded": _unbounded,
        "graph": _graph,
        "relation": _related,
    }.get(policy.name)
    found = set() if made is None else {(min(pair), max(pair)) for pair in made(policy, rng)}
    return {pair for pair in found if pair[0] != pair[1]}


def _bounded(policy: Policy, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    size = policy.domain.size
    if size <= 64:
        yield from combinations(range(size), 2)
    else:
        yield from map(tuple, rng.integers(0, size, (POINTS_MADE_UP, 2)).tolist())


def _unbounded(policy: Policy, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    size = policy.domain.size
    cells = range(size) if size <= MOST_EDGES else rng.integers(0, size, POINTS_MADE_UP).tolist()
    yield from ((cell, -1) for cell in cells)


def _threshold(policy: Policy, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Cells whose indices differ by at most θ, summed over the axes."""
    shape, theta = policy.domain.shape, int(policy.arguments["theta"])
    for _ in range(POINTS_MADE_UP):
        here = np.array([rng.integers(0, n) for n in shape])
        steps = rng.multinomial(theta, np.full(len(shape) + 1, 1 / (len(shape) + 1)))[:-1]
        there = here + steps * rng.choice([-1, 1], len(shape))
        if ((there >= 0) & (there < shape)).all():
            yield int(np.ravel_multi_index(tuple(here), shape)), int(np.ravel_multi_index(tuple(there), shape))


def _graph(policy: Policy, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    del rng
    yield from ((int(u), int(v)) for u, v in policy.arguments["edges"])


def _within(policy: Policy, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Points that move by less than δ, or appear within δ of a source."""
    delta, metric = Fraction(policy.arguments["delta"]), str(policy.arguments["metric"])
    yield from moved(policy.domain, delta, metric, rng)
    if (sources := policy.arguments.get("sources")) is not None:
        yield from near_sources(policy.domain, delta, metric, sources, rng)


def _related(policy: Policy, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Records that change by one of the relation's terms: some of its factors, each by its rule, all at once."""
    relation = cast(Relation, policy.relation)
    if relation.hides_presence:
        yield from _unbounded(policy, rng)
    if relation.changes_all:
        yield from _bounded(policy, rng)
    for term in relation.terms:
        ways = [_ways(rule, policy.domain, rng) for rule in term.rules]
        chosen = [chosen for chosen in ways if len(chosen[1])]
        if chosen:
            yield from _at_once(policy.domain, chosen, rng)
    for rule in relation.rules:
        if rule.places is not None and rule.limit is not None:
            positions, part = policy.domain.factor(str(rule.of)).positions, policy.domain.part(str(rule.of))
            near = near_sources(part, rule.limit.amount, rule.spec()["metric"], rule.places, rng)
            cells = np.array(sorted({cell for cell, _ in near}), dtype=np.int64)
            records = _records(policy.domain, rng, POINTS_MADE_UP if len(cells) else 0)
            records[:, positions] = np.stack(np.unravel_index(rng.choice(cells, len(records)), part.shape), -1)
            yield from (
                (int(cell), int(ABSENT)) for cell in np.ravel_multi_index(tuple(records.T), policy.domain.shape)
            )


def _ways(rule: Rule, domain: Domain, rng: np.random.Generator) -> tuple[Domain, Integers, tuple[int, ...]]:
    """(a factor, pairs of its own cells that the words of its rule let a record change between, its positions)."""
    part, positions = domain.part(str(rule.of)), domain.factor(str(rule.of)).positions
    made: Iterable[tuple[int, int]] = ()
    if rule.anywhere:
        made = map(tuple, rng.integers(0, part.size, (POINTS_MADE_UP, 2)).tolist())
    elif rule.limit is None:  # of maps and roads no second judge is at hand
        pass
    elif {axis.unit for axis in part.axes} == {OWN} and rule.spec()["metric"] in METRICS_ON_NUMBERS:
        made = moved(part, rule.limit.amount, rule.spec()["metric"], rng)
    elif part.axes[0].unit == SECONDS:
        made = moved_in_time(part, rule.limit.amount, rng)
    return part, np.array([*made], dtype=np.int64).reshape(-1, 2), positions


def _at_once(
    domain: Domain, ways: list[tuple[Domain, Integers, tuple[int, ...]]], rng: np.random.Generator
) -> Iterator[tuple[int, int]]:
    """Random records in which every factor changes in one of its ways, or stays one time in four."""
    here = _records(domain, rng, 4 * POINTS_MADE_UP)
    there = here.copy()
    for part, pairs, positions in ways:
        pair = rng.choice(np.unique(pairs, axis=0), len(here))
        stays = rng.random(len(here)) < 0.25
        here[:, positions] = np.stack(np.unravel_index(pair[:, 0], part.shape), -1)
        there[:, positions] = np.stack(np.unravel_index(np.where(stays, pair[:, 0], pair[:, 1]), part.shape), -1)
    cells = [np.ravel_multi_index(tuple(records.T), domain.shape).tolist() for records in (here, there)]
    yield from zip(*cells, strict=True)


def _records(domain: Domain, rng: np.random.Generator, number: int) -> Integers:
    """The cells of random records, axis by axis."""
    return rng.integers(0, domain.shape, (number, domain.ndim))
