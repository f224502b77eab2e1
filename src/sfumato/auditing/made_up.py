"""Points and times that an audit makes up: on borders above all, moved by as much as a rule's words allow.

They are located as a user's would be. The distances are computed anew here, in exact arithmetic where there is some,
and nothing of `sfumato.policies` is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain import Domain, Timed
from sfumato.policies import ABSENT

SHARE_OF_DELTA = 1 - Fraction(1, 10**9)  # that is moved at the most: the margin that `within` states
POINTS_MADE_UP = 400  # for each way of placing them
EARTH_RADIUS = 6_371_008.8  # metres, the mean: great circles
YEAR = 366 * 86_400 * 1_000_000  # microseconds, of which a cycle is looked at from 2026 on
BEGINS = 1_767_225_600 * 1_000_000


def moved(part: Domain, delta: Fraction, metric: str, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Cells of points that are less than δ apart, on plain numbers."""
    limit, near = delta * SHARE_OF_DELTA, _measure(metric)
    low, high = np.array(part.bounds).reshape(2, -1)
    starts = _points(part.axes, low, high, rng)
    ends = np.clip(starts + _steps(starts, limit, metric, rng), low, high)
    yield from _joined(part.locate(starts), part.locate(ends), starts, ends, near, limit)


def near_sources(
    part: Domain, delta: Fraction, metric: str, sources: Any, rng: np.random.Generator
) -> Iterator[tuple[int, int]]:
    """(the cell of a point that is less than δ from a source, ⊥)."""
    limit, near = delta * SHARE_OF_DELTA, _measure(metric)
    low, high = np.array(part.bounds).reshape(2, -1)
    if sources == "boundary":
        anchors = _points(part.axes, low, high, rng)
        side = rng.integers(0, part.ndim, len(anchors))
        anchors[np.arange(len(anchors)), side] = np.where(rng.random(len(anchors)) < 0.5, low[side], high[side])
    else:
        flat = np.array([point for line in sources for point in (line if np.ndim(line) == 2 else [line])], dtype=float)
        anchors = np.repeat(flat, -(-POINTS_MADE_UP // len(flat)), axis=0)
    ends = np.clip(anchors + _steps(anchors, limit, metric, rng), low, high)
    absent = np.full(len(ends), int(ABSENT))
    yield from _joined(part.locate(ends), absent, anchors, ends, near, limit)


def moved_in_time(part: Domain, seconds: Fraction, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Cells of times that are less than so many seconds apart: at borders of steps, and where clocks are changed."""
    axis = cast(Timed, part.axes[0])
    longest = -(-seconds * 1_000_000 // 1) - 1  # the last microsecond below
    if axis.winds:
        changes = np.empty(0, np.int64) if axis.zone is None else axis.zone.changes
        hours = BEGINS + rng.integers(0, YEAR // 3_600_000_000, POINTS_MADE_UP) * 3_600_000_000
        months = np.arange("2026-01", "2027-02", dtype="M8[M]").astype("M8[us]").astype(np.int64)
        marks = np.concatenate([hours, months, changes[(changes > BEGINS) & (changes < BEGINS + YEAR)]])
    else:
        marks = np.asarray(axis.edges)
    starts = rng.choice(marks, 2 * POINTS_MADE_UP) + rng.integers(-longest - 1, longest + 2, 2 * POINTS_MADE_UP)
    starts[::2] = rng.choice(marks, POINTS_MADE_UP) - rng.integers(0, 2, POINTS_MADE_UP)
    ends = starts + (rng.choice([longest, -longest, 1, -1, longest // 2], len(starts)))
    yield from zip(axis.place_ticks(starts).tolist(), axis.place_ticks(ends).tolist(), strict=True)


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
