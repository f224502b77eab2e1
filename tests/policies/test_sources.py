"""Sources that are lines: cells whose closed box is nearer than δ to a polyline are joined to ⊥, and no others.

By hand on straight lines; for oblique ones by dense sampling along the line (a superset, and hardly larger) and, in the
Euclidean plane, by the distance from the line to the four sides of every box.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_oracle import all_distances, box

import sfumato as sf
from sfumato.policies import policy_from_spec

NORMS = {
    "euclidean": lambda gaps: np.sqrt((gaps**2).sum(axis=-1)),
    "manhattan": lambda gaps: gaps.sum(axis=-1),
    "chebyshev": lambda gaps: gaps.max(axis=-1),
}
SHAPES = [(13,), (24, 18), (9, 8, 7)]


@dataclass
class Shape:
    """A geometry as other libraries hand it over."""

    type: str
    coordinates: Any

    @property
    def __geo_interface__(self):
        return {"type": self.type, "coordinates": self.coordinates}


def boxes(domain):
    """The lower and upper corners of all cells."""
    low = np.meshgrid(*[axis.edges[:-1] for axis in domain.intervals], indexing="ij")
    high = np.meshgrid(*[axis.edges[1:] for axis in domain.intervals], indexing="ij")
    return np.stack(low, axis=-1), np.stack(high, axis=-1)


def sampled(domain, lines, metric, count=2_001):
    """The distance of every box to the nearest of many points on the lines."""
    low, high = boxes(domain)
    nearest = np.full(domain.shape, np.inf)
    share = np.linspace(0, 1, count)[:, None]
    for line in lines:
        line = np.asarray(line, dtype=float)
        for a, b in pairwise(line):
            for point in a + share * (b - a):
                nearest = np.minimum(nearest, NORMS[metric](np.maximum(np.maximum(low - point, point - high), 0)))
    return nearest


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_an_interval_is_a_line_in_one_dimension():
    """Ten cells of 0.1, the interval from 0.35 to 0.5 and δ = 0.1: cell 2 is 0.05 away, cell 5 touches, cell 6 is
    exactly 0.1 away and does not count.
    """
    policy = sf.within(sf.Line(0, 1, cells=10), 0.1, sources=[[(0.35,), (0.5,)]])
    assert np.flatnonzero(policy.absent).tolist() == [2, 3, 4, 5]
    points = sf.within(sf.Line(0, 1, cells=10), 0.1, sources=[[0.35], [0.5]])  # one list less: two points
    assert points.arguments["sources"] == [[0.35], [0.5]]
    assert points.describe().endswith("one of 2 sources")


@pytest.mark.parametrize("metric", NORMS)
def test_a_straight_line_joins_the_cells_beside_it_exactly(metric):
    """Unit cells and the line y = 4 from x = 2 to x = 5: exactly 1 away does not count, a hair more does."""
    grid = sf.Grid(bounds=(0, 0, 8, 8), shape=(8, 8))
    line = [[(2, 4), (5, 4)]]
    near = sf.within(grid, 1, sources=line, metric=metric).absent
    beside = np.zeros((8, 8), dtype=bool)
    beside[1:6, 3:5] = True  # touching the line counts: distance 0
    assert np.array_equal(near, beside)
    wider = sf.within(grid, 1.001, sources=line, metric=metric).absent
    beside[0:7, 3:5] = True
    beside[1:6, 2:6] = True
    if metric == "chebyshev":
        beside[0:7, 2:6] = True  # the corners are (1, 1) away
    assert np.array_equal(wider, beside)


def test_a_diagonal_line_is_measured_across():
    """The diagonal of unit cells: a cell k beside it has its nearest corner (k - 1)/√2 away."""
    grid = sf.Grid(bounds=(0, 0, 20, 20), shape=(20, 20))
    policy = sf.within(grid, 2, sources=[[(0, 0), (20, 20)]])
    i, j = np.indices((20, 20))
    assert np.array_equal(policy.absent, (np.abs(i - j) - 1) / np.sqrt(2) < 2)


def test_a_line_is_the_same_whichever_way_it_runs_and_however_it_is_cut():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(200, 150))
    a, b = np.array([0.03, 0.11]), np.array([0.97, 0.71])
    whole = sf.within(grid, 0.02, sources=[[a, b]]).absent
    cut = [a + s * (b - a) for s in np.linspace(0, 1, 7)]
    assert np.array_equal(whole, sf.within(grid, 0.02, sources=[[b, a]]).absent)
    assert np.array_equal(whole, sf.within(grid, 0.02, sources=[cut]).absent)
    assert np.array_equal(whole, sf.within(grid, 0.02, sources=[cut[:4], cut[3:]]).absent)


def test_a_line_that_hardly_moves_is_a_point():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(20, 20))
    for metric in NORMS:
        point = sf.within(grid, 0.13, sources=[(0.0, 0.41)], metric=metric).absent
        for end in ((0.0, 0.41), (5e-324, 0.41), (1e-300, 0.41)):
            assert np.array_equal(point, sf.within(grid, 0.13, sources=[[(0.0, 0.41), end]], metric=metric).absent)


def test_the_policy_counts_its_lines():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4))
    line, other = [(0.1, 0.1), (0.9, 0.2)], [(0.5, 0.5), (0.5, 0.9), (0.7, 0.9)]
    assert sf.within(grid, 0.2, sources=[line]).describe().endswith("within 0.2 of the line")
    assert sf.within(grid, 0.2, sources=[line, other]).describe().endswith("within 0.2 of one of 2 lines")
    assert sf.within(grid, 0.2, sources=[line, [(0.5, 0.5)]]).describe().endswith("within 0.2 of one of 2 sources")


# --- brute force ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", NORMS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("delta", [0.004, 0.05, 0.17])
def test_oblique_lines_join_what_they_must_and_nothing_else(shape, delta, metric):
    """Samples are at most 10⁻³ apart (in any of the norms): nothing they find is missing, nothing joined is farther."""
    rng = np.random.default_rng(21)
    domain = box(shape)
    lines = [rng.random((4, len(shape))), rng.random((2, len(shape)))]
    absent = sf.within(domain, delta, sources=lines, metric=metric).absent
    nearest = sampled(domain, lines, metric)
    assert absent[nearest < delta * (1 - 1e-9)].all()
    assert (nearest[absent] < delta + 2e-3).all()


@settings(deadline=None, max_examples=150)
@given(
    ends=st.lists(st.tuples(*[st.integers(0, 24)] * 2), min_size=2, max_size=4),
    eighths=st.integers(1, 30),
)
def test_in_the_plane_the_distance_is_that_of_ends_and_corners(ends, eighths):
    """Where a segment does not meet a box, the nearest pair has an end of the segment or a corner of the box in it."""
    grid = sf.Grid(bounds=(0, 0, 6, 6), shape=(6, 6))
    line, delta = np.array(ends) / 4, eighths / 8 + 0.01
    absent = sf.within(grid, delta, sources=[line]).absent
    low, high = boxes(grid)
    best = np.full((6, 6), np.inf)
    for a, b in pairwise(line):
        for end in (a, b):
            best = np.minimum(best, np.linalg.norm(np.clip(end, low, high) - end, axis=-1))
        corners = [np.stack([x, y], -1) for x in (low[..., 0], high[..., 0]) for y in (low[..., 1], high[..., 1])]
        span = float((b - a) @ (b - a)) or 1.0
        side = []
        for corner in corners:
            foot = a + np.clip((corner - a) @ (b - a) / span, 0, 1)[..., None] * (b - a)
            best = np.minimum(best, np.linalg.norm(corner - foot, axis=-1))
            side.append((b - a)[0] * (corner - a)[..., 1] - (b - a)[1] * (corner - a)[..., 0])
        overlaps = ((np.minimum(a, b) <= high) & (np.maximum(a, b) >= low)).all(axis=-1)
        crosses = overlaps & (np.min(side, axis=0) <= 0) & (np.max(side, axis=0) >= 0)
        best = np.where(crosses, 0.0, best)
    assert np.array_equal(absent, best < delta)


def test_distances_to_nothing_are_those_of_the_graph():
    for shape in ((12,), (8, 7), (4, 4, 3)):
        policy = sf.within(box(shape), 0.2, sources=[[(0.1,) * len(shape), (0.4,) * len(shape)]])
        table = all_distances(policy)
        assert policy.connected
        assert policy.eccentricity == table[-1].max()
        assert policy.diameter == table[:-1, :-1].max()


# --- what sources may be given as -------------------------------------------------------------------------------------

GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(10, 10))
ROAD, RIVER = [(0.1, 0.1), (0.6, 0.4)], [(0.9, 0.0), (0.8, 0.5), (0.9, 0.95)]


@pytest.mark.parametrize(
    ("given", "same"),
    [
        (Shape("Point", (0.1, 0.1)), [(0.1, 0.1)]),
        (Shape("MultiPoint", ROAD), ROAD),
        ([Shape("Point", ROAD[0]), Shape("Point", ROAD[1])], ROAD),
        (Shape("LineString", ROAD), [ROAD]),
        ((Shape("LineString", tuple(ROAD)),), [ROAD]),
        (Shape("MultiLineString", [ROAD, RIVER]), [ROAD, RIVER]),
        ([Shape("LineString", ROAD), Shape("Point", RIVER[0])], [ROAD, RIVER[:1]]),
        (np.array([ROAD]), [ROAD]),
        ([np.array(ROAD), np.array(RIVER)], [ROAD, RIVER]),
        ((0.1, 0.1), [(0.1, 0.1)]),
        ([[(0.1, 0.1)]], [(0.1, 0.1)]),
    ],
)
def test_geometries_arrays_and_lists_say_the_same(given, same):
    policy = sf.within(GRID, 0.2, sources=given)
    assert policy == sf.within(GRID, 0.2, sources=same)
    assert np.array_equal(policy.absent, sf.within(GRID, 0.2, sources=same).absent)


@pytest.mark.parametrize("sources", [[ROAD], [ROAD, RIVER], [ROAD, RIVER[:1]], ROAD, "boundary", None])
@pytest.mark.parametrize("metric", NORMS)
def test_a_policy_with_sources_is_rebuilt_from_its_description(sources, metric):
    policy = sf.within(GRID, "0.2", sources=sources, metric=metric)
    again = policy_from_spec(json.loads(json.dumps(policy.spec())))
    assert again == policy
    assert again.describe() == policy.describe()
    assert sources is None or np.array_equal(again.absent, policy.absent)


# --- refusals ---------------------------------------------------------------------------------------------------------

SHAPED = "sources must be one or more points, or lines of points, of 2 coordinates each."
OUTSIDE = "sources holds a point outside the domain's bounds. Sources must lie inside."
KIND = (
    "sources holds a geometry of type {}, not 'Point', 'MultiPoint', 'LineString' or 'MultiLineString'. Give those, or "
    "the outline of an area as its lines."
)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([[(0.1, 0.1), (0.2, 1.1)]], OUTSIDE),
        ([ROAD, [(0.1, float("nan")), (0.2, 0.3)]], OUTSIDE),
        ([[(0.1, 0.1), (float("inf"), 0.3)]], OUTSIDE),
        (Shape("LineString", [(0, 0), (2, 2)]), OUTSIDE),
        ([[(0.1, 0.1, 0.1), (0.2, 0.2, 0.2)]], SHAPED),
        ([ROAD, []], SHAPED),
        (Shape("MultiPoint", []), SHAPED),
        ([ROAD, (0.1, 0.1)], SHAPED),
        (Shape("Point", (0.1, 0.1, 0.1)), SHAPED),
        (Shape("Polygon", [[(0, 0), (1, 0), (1, 1), (0, 0)]]), KIND.format("'Polygon'")),
        ([Shape("Point", (0.1, 0.1)), (0.1, 0.1)], KIND.format("None")),
        (
            [[("a", "b"), ("c", "d")]],
            "sources must be None, 'boundary', a list of points, or a list of lines, each a list of points.",
        ),
    ],
)
def test_what_is_no_source_is_refused(sources, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.within(GRID, 0.2, sources=sources)
    assert str(refusal.value) == message
