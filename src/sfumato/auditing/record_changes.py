"""Which changes of one record an audit tries: every edge of the policy, and changes made anew from its definition.

The second kind is for mistakes in the policy itself. Points are made up, on cell borders and corners above all, moved
by as much as the policy's words allow, and located as a user's points would be. A pair of cells that comes out and that
the policy does not join joins the list: a mechanism that took the policy's word for it will be seen to break there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import TooLarge
from sfumato.policies import ABSENT, Policy

SHARE_OF_DELTA = 1 - Fraction(1, 10**9)  # that is moved at the most: the margin that `within` states
MOST_EDGES = 4096  # audited; of more a sample is taken
POINTS_MADE_UP = 400  # for each way of placing them
EARTH_RADIUS = 6_371_008.8  # metres, the mean: great circles


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
    domain = policy.domain
    delta = Fraction(policy.arguments["delta"]) * SHARE_OF_DELTA
    near = _measure(str(policy.arguments["metric"]))
    low, high = np.array(domain.bounds).reshape(2, -1)
    starts = _points(domain.axes, low, high, rng)
    ends = np.clip(starts + _steps(starts, delta, str(policy.arguments["metric"]), rng), low, high)
    yield from _joined(domain.locate(starts), domain.locate(ends), starts, ends, near, delta)
    sources = policy.arguments.get("sources")
    if sources is None:
        return
    if sources == "boundary":
        anchors = starts.copy()
        side = rng.integers(0, domain.ndim, len(anchors))
        anchors[np.arange(len(anchors)), side] = np.where(rng.random(len(anchors)) < 0.5, low[side], high[side])
    else:
        flat = np.array([point for line in sources for point in (line if np.ndim(line) == 2 else [line])], dtype=float)
        anchors = np.repeat(flat, -(-POINTS_MADE_UP // len(flat)), axis=0)
    ends = np.clip(anchors + _steps(anchors, delta, str(policy.arguments["metric"]), rng), low, high)
    absent = np.full(len(ends), int(ABSENT))
    yield from _joined(domain.locate(ends), absent, anchors, ends, near, delta)


def _joined(
    here: Integers,
    there: Integers,
    starts: Floats,
    ends: Floats,
    near: Callable[[Any, Any, Fraction], bool],
    delta: Fraction,
) -> Iterator[tuple[int, int]]:
    """The pairs of cells whose points really are so near, in exact arithmetic."""
    for u, v, start, end in zip(here.tolist(), there.tolist(), starts.tolist(), ends.tolist(), strict=True):
        if u != v and near(start, end, delta):
            yield u, v


def _points(axes: Any, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Anywhere, on the borders of cells, and a hair below them: on every axis by itself, so corners are met too."""
    columns = []
    for axis, lowest, highest in zip(axes, low, high, strict=True):
        edges = np.asarray(axis.edges, dtype=np.float64)
        on = rng.choice(edges, POINTS_MADE_UP)
        below = np.nextafter(rng.choice(edges, POINTS_MADE_UP), -np.inf)
        middle = (rng.choice(edges[:-1], POINTS_MADE_UP) + rng.choice(edges[1:], POINTS_MADE_UP)) / 2
        columns.append([on, below, middle, rng.uniform(lowest, highest, POINTS_MADE_UP)])
    chosen = [list(kinds) for kinds in product(range(4), repeat=min(len(columns), 2))]
    blocks = [
        np.stack([columns[i][kinds[i] if i < len(kinds) else kinds[-1]] for i in range(len(columns))], axis=-1)
        for kinds in chosen
    ]
    return np.clip(np.concatenate(blocks), low, high)


def _steps(points: Floats, delta: Fraction, metric: str, rng: np.random.Generator) -> Floats:
    """Steps of all lengths up to δ: along an axis, diagonal, in any direction; some of hardly any length at all."""
    count, d = points.shape
    direction = rng.normal(size=(count, d))
    kind = rng.integers(0, 3, count)
    direction[kind == 0] = np.eye(d)[rng.integers(0, d, int((kind == 0).sum()))] * rng.choice(
        [-1, 1], (int((kind == 0).sum()), 1)
    )
    direction[kind == 1] = rng.choice([-1.0, 1.0], (int((kind == 1).sum()), d))
    norm = {"manhattan": 1, "chebyshev": np.inf}.get(metric, 2)
    direction /= np.linalg.norm(direction, ord=norm, axis=1, keepdims=True)
    length = float(delta) * rng.choice([1.0, 0.999, 0.5, 1e-3], count)
    if metric == "great-circle":
        degrees = np.degrees(length / EARTH_RADIUS)
        direction[:, 0] /= np.maximum(np.cos(np.radians(points[:, 1])), 1e-6)
        return direction * degrees[:, None] * 0.999
    # A float step of exactly δ lands beyond it as often as not; one part in 10¹² less keeps most of them.
    return direction * (length * (1 - 1e-12))[:, None]


def _measure(metric: str) -> Callable[[Any, Any, Fraction], bool]:
    """Whether two points are at most so far apart, in fractions; on the globe in floating point, with a margin."""
    if metric == "great-circle":
        return lambda start, end, limit: _great_circle(start, end) <= float(limit) * (1 - 1e-9)

    def near(start: Any, end: Any, limit: Fraction) -> bool:
        gaps = [abs(Fraction(a) - Fraction(b)) for a, b in zip(start, end, strict=True)]
        if metric == "manhattan":
            return sum(gaps) <= limit
        if metric == "chebyshev":
            return max(gaps) <= limit
        return sum(gap * gap for gap in gaps) <= limit * limit

    return near


def _great_circle(start: Any, end: Any) -> float:
    lon, lat, lon2, lat2 = map(math.radians, (*start, *end))
    half = math.sin((lat2 - lat) / 2) ** 2 + math.cos(lat) * math.cos(lat2) * math.sin((lon2 - lon) / 2) ** 2
    return 2 * EARTH_RADIUS * math.asin(min(1.0, math.sqrt(half)))
