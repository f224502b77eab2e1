"""`within`: which cells are neighbours, and the promise about points that stands behind it.

The promise: two points that are at most δ(1 - 10⁻⁹) apart lie in the same cell or in joined ones, and a point that near
to a source lies in a cell joined to ⊥. Nothing more is joined: every edge has two points nearer than δ.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_oracle import all_distances, box

import sfumato as sf
from sfumato.policies import steps_within

NORMS = {
    "euclidean": lambda gaps: np.sqrt((gaps**2).sum(axis=-1)),
    "manhattan": lambda gaps: gaps.sum(axis=-1),
    "chebyshev": lambda gaps: gaps.max(axis=-1),
}
# Bounds that are round, negative, far from the origin, uneven; widths that divide δ and widths that do not.
CASES = [
    (sf.Line(0, 1, cells=10), "0.2"),
    (sf.Line(0, 1, cells=10), "0.1"),
    (sf.Line(0, 1, cells=7), "3/7"),
    (sf.Line(-0.7, 0.9, cells=16), "0.3"),
    (sf.Line(1000, 1001, cells=400), "0.0025"),
    (sf.Line(0, 1e-9, cells=30), "1e-10"),
    (sf.Grid(bounds=(0, 0, 1, 1), shape=(10, 10)), "0.2"),
    (sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(60, 45)), "0.05"),
    (sf.Grid(bounds=(-1, 0, 2, 0.3), shape=(30, 3)), "0.1"),
    (sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(5, 6, 7)), "0.4"),
]


def offsets(policy):
    return {tuple(o) for o in policy.moves.offsets.tolist()}


def joined(policy, u, v):
    """Whether cells are equal or joined, for many pairs; a stencil holds every choice of signs."""
    shape = policy.domain.shape
    table = np.zeros(shape, dtype=bool)
    table[(0,) * len(shape)] = True
    table[tuple(np.abs(policy.moves.offsets).T)] = True
    apart = np.abs(np.stack(np.unravel_index(u, shape)) - np.stack(np.unravel_index(v, shape)))
    return table[tuple(apart)]


def apart(p, q, metric):
    """Distances in extended precision: the points are doubles, so nothing is lost that matters."""
    return NORMS[metric](np.abs(p.astype(np.longdouble) - q.astype(np.longdouble)))


def seam_points(domain, rng, count):
    """Points on the cell edges, one double beside them, and anywhere."""
    columns = []
    for axis in domain.intervals:
        edge = rng.choice(axis.edges, count)
        beside = rng.integers(-1, 2, count)
        edge = np.where(beside > 0, np.nextafter(edge, np.inf), np.where(beside < 0, np.nextafter(edge, -np.inf), edge))
        columns.append(np.where(rng.random(count) < 0.2, rng.uniform(axis.low, axis.high, count), edge))
    return np.stack(columns, axis=-1)


def steps_of(delta, metric, d, rng, count):
    """Moves of nearly δ: along an axis, along a diagonal, in any direction, some shorter."""
    direction = rng.normal(size=(count, d))
    direction[::3] = 0
    direction[::3][np.arange(len(direction[::3])), rng.integers(0, d, len(direction[::3]))] = 1
    direction[1::3] = 1
    direction *= rng.choice([-1, 1], (count, d))
    length = delta * (1 - 1e-9) * np.where(rng.random(count) < 0.2, rng.random(count), 1.0)
    return direction / NORMS[metric](np.abs(direction))[:, None] * length[:, None]


def moved(p, delta, metric, domain, rng):
    """Where the points p may move to: as far as δ(1 - 10⁻⁹) allows, to the last double, and never farther."""
    low, high = corners(domain)
    q = np.clip(p + steps_of(delta, metric, domain.ndim, rng, len(p)), low, high)
    allowed = np.longdouble(delta) * (1 - np.longdouble(1e-9))
    for _ in range(8):
        far = apart(p, q, metric) > allowed
        q[far] = np.nextafter(q[far], p[far])
    near = apart(p, q, metric) <= allowed
    assert near.mean() > 0.5
    return p[near], q[near]


def corners(domain):
    return tuple(np.array(domain.bounds).reshape(2, -1))


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_cells_whose_nearest_points_are_exactly_delta_apart_are_not_joined():
    """Cells of 0.1 and δ = 0.2: two cells on, the gap is 0.1 and counts; three cells on, it is 0.2 and does not."""
    assert offsets(sf.within(sf.Line(0, 1, cells=10), 0.2)) == {(1,), (2,)}
    assert offsets(sf.within(sf.Line(0, 1, cells=10), 0.200001)) == {(1,), (2,), (3,)}


def test_the_margin_is_a_billionth_and_no_more():
    """A gap of 0.2 is within δ(1 - 10⁻⁹) when δ exceeds it by two billionths, and not by a tenth of one."""
    line = sf.Line(0, 1, cells=10)
    assert (3,) in offsets(sf.within(line, "0.2000000004"))
    assert (3,) not in offsets(sf.within(line, "0.20000000002"))


def test_even_a_tiny_delta_joins_cells_that_touch_at_a_corner():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(3, 3))
    assert offsets(sf.within(grid, 1e-5)) == {(0, 1), (1, -1), (1, 0), (1, 1)}
    assert len(sf.within(grid, 1e-5).edges()) == 20


@pytest.mark.parametrize(("metric", "corner"), [("euclidean", True), ("manhattan", False), ("chebyshev", True)])
def test_the_metric_decides_about_diagonals(metric, corner):
    """On unit cells, two on along both axes, the gaps are (1, 1): √2, 2 and 1 apart."""
    grid = sf.Grid(bounds=(0, 0, 6, 6), shape=(6, 6))
    assert ((2, 2) in offsets(sf.within(grid, 1.5, metric=metric))) is corner


def test_cells_that_are_not_square_reach_differently_along_each_axis():
    grid = sf.Grid(bounds=(0, 0, 4, 4), shape=(4, 8))
    assert sf.within(grid, 1).moves.reach.tolist() == [1, 2]


def test_a_source_joins_the_cells_nearer_than_delta_to_nothing():
    """Four cells of a quarter: from the source at 0, cell 1 is exactly δ = 0.25 away, and exactly δ does not count."""
    line = sf.Line(0, 1, cells=4)
    assert sf.within(line, 0.25, sources=[0.0]).absent.tolist() == [True, False, False, False]
    assert sf.within(line, 0.2501, sources=[0.0]).absent.tolist() == [True, True, False, False]
    assert sf.within(line, 0.2, sources=0.5).absent.tolist() == [False, True, True, False]
    assert sf.within(line, 0.25, sources=[[0.1], [0.9]]).absent.tolist() == [True, True, True, True]
    assert sf.within(line, 0.25).absent is None


def test_the_boundary_as_a_source_is_a_ring():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(5, 5))
    ring = np.ones((5, 5), dtype=bool)
    ring[1:-1, 1:-1] = False
    assert np.array_equal(sf.within(grid, 0.2, sources="boundary").absent, ring)
    ring[1:-1, 1:-1] = True
    ring[2, 2] = False
    assert np.array_equal(sf.within(grid, 0.4, sources="boundary").absent, ring)


def test_the_number_of_records_is_public_only_without_sources():
    line = sf.Line(0, 1, cells=4)
    assert sf.within(line, 0.25).total_is_public
    assert not sf.within(line, 0.25, sources=[0.0]).total_is_public
    assert not sf.within(line, 0.25, sources=[0.0]).allows_dropping
    assert sf.within(line, 0.25, sources="boundary").allows_dropping


def test_the_policy_says_itself():
    line = sf.Line(0, 1, cells=4)
    assert sf.within(line, 0.25).describe() == (
        "one record moves by less than 0.25 (euclidean); the number of records is public"
    )
    assert sf.within(line, 0.25, sources="boundary").describe() == (
        "one record moves by less than 0.25 (euclidean), or appears or vanishes within 0.25 of the boundary"
    )
    assert sf.within(line, 0.25, sources=[0.0, 0.5], metric="chebyshev").describe() == (
        "one record moves by less than 0.25 (chebyshev), or appears or vanishes within 0.25 of one of 2 sources"
    )
    assert repr(sf.within(line, 0.25)) == "within(Line(0, 1, cells=4), delta='1/4', metric='euclidean')"


# --- the promise about points, by brute force -------------------------------------------------------------------------


@pytest.mark.parametrize("metric", NORMS)
@pytest.mark.parametrize(("domain", "delta"), CASES, ids=lambda value: str(value))
def test_points_within_delta_lie_in_the_same_or_in_joined_cells(domain, delta, metric):
    rng = np.random.default_rng(7)
    policy = sf.within(domain, delta, metric=metric)
    points = np.clip(seam_points(domain, rng, 60_000), *corners(domain))
    p, q = moved(points, float(Fraction(delta)), metric, domain, rng)
    u, v = domain.locate(p), domain.locate(q)
    assert joined(policy, u, v).all()
    assert (u != v).mean() > 0.3


@pytest.mark.parametrize("metric", NORMS)
@pytest.mark.parametrize(("domain", "delta"), CASES, ids=lambda value: str(value))
def test_every_edge_joins_two_points_nearer_than_delta(domain, delta, metric):
    policy = sf.within(domain, delta, metric=metric)
    pairs = policy.edges()
    pairs = pairs[np.random.default_rng(3).permutation(len(pairs))[:20_000]]
    u, v = (np.unravel_index(side, domain.shape) for side in pairs.T)
    p, q = [], []
    for axis, a, b in zip(domain.intervals, u, v, strict=True):
        swap = a > b
        first, second = np.where(swap, b, a), np.where(swap, a, b)
        last_of_first = np.where(first == second, axis.edges[first], np.nextafter(axis.edges[first + 1], -np.inf))
        p.append(np.where(swap, axis.edges[second], last_of_first))
        q.append(np.where(swap, last_of_first, axis.edges[second]))
    p, q = np.stack(p, axis=-1), np.stack(q, axis=-1)
    assert np.array_equal(domain.locate(p), pairs[:, 0])
    assert np.array_equal(domain.locate(q), pairs[:, 1])
    assert (apart(p, q, metric) < np.longdouble(float(Fraction(delta)))).all()


@settings(deadline=None)
@given(
    low=st.floats(-1000, 1000),
    side=st.floats(0.5, 1000),
    cells=st.integers(1, 60),
    multiple=st.sampled_from([0.5, 1, 1.5, 2, 3, 5]),
    seed=st.integers(0, 999),
)
def test_the_promise_holds_on_any_line_at_multiples_of_the_cell_width(low, side, cells, multiple, seed):
    line = sf.Line(low, low + side, cells=cells)
    delta = min(multiple * float(line.intervals[0].width), line.intervals[0].high - line.intervals[0].low)
    policy = sf.within(line, delta)
    rng = np.random.default_rng(seed)
    p, q = moved(np.clip(seam_points(line, rng, 2_000), *corners(line)), delta, "euclidean", line, rng)
    assert joined(policy, line.locate(p), line.locate(q)).all()


@pytest.mark.parametrize("metric", NORMS)
@pytest.mark.parametrize(("domain", "delta"), CASES, ids=lambda value: str(value))
def test_points_near_a_source_lie_in_cells_joined_to_nothing(domain, delta, metric):
    rng = np.random.default_rng(5)
    low, high = corners(domain)
    size = float(Fraction(delta))
    sources = np.clip(seam_points(domain, rng, 4), low, high)
    policy = sf.within(domain, delta, sources=sources, metric=metric)
    _, q = moved(sources[rng.integers(0, len(sources), 40_000)], size, metric, domain, rng)
    assert policy.absent.ravel()[domain.locate(q)].all()
    # Nothing more: each cell joined to ⊥ has a point nearer than δ to a source, namely the nearest of its closed box.
    index = np.stack(np.nonzero(policy.absent), axis=-1)
    lower = np.stack([axis.edges[i] for axis, i in zip(domain.intervals, index.T, strict=True)], axis=-1)
    upper = np.stack([axis.edges[i + 1] for axis, i in zip(domain.intervals, index.T, strict=True)], axis=-1)
    gaps = [apart(np.clip(source, lower, upper), source, metric) for source in sources]
    assert (np.min(gaps, axis=0) < np.longdouble(size)).all()


@pytest.mark.parametrize(("domain", "delta"), CASES, ids=lambda value: str(value))
def test_points_near_the_boundary_lie_in_cells_joined_to_nothing(domain, delta):
    rng = np.random.default_rng(6)
    low, high = corners(domain)
    size = float(Fraction(delta))
    policy = sf.within(domain, delta, sources="boundary")
    p = rng.uniform(low, high, (40_000, domain.ndim))
    axis, upper = rng.integers(0, domain.ndim, len(p)), rng.random(len(p)) < 0.5
    inset = size * (1 - 1e-9) * np.where(rng.random(len(p)) < 0.5, 1.0, rng.random(len(p)))
    p[np.arange(len(p)), axis] = np.where(upper, high[axis] - inset, low[axis] + inset)
    p = np.clip(p, low, high)
    gap = np.minimum(p - low.astype(np.longdouble), high.astype(np.longdouble) - p).min(axis=1)
    near = gap <= np.longdouble(size) * (1 - np.longdouble(1e-9))
    assert policy.absent.ravel()[domain.locate(p[near])].all()


# --- how many steps a longer move takes -------------------------------------------------------------------------------


def test_a_longer_move_takes_as_many_steps_by_hand():
    """Cells of 0.1. δ = 0.2 reaches 2 cells. Below 0.4 the gap is at most 3 cells, so 4 cells on: 2 steps. Coarse cells
    need fewer: δ = 0.05 reaches 1 cell, and so does every move below 0.1.
    """
    line = sf.Line(0, 1, cells=10)
    assert [steps_within(sf.within(line, 0.2), k) for k in (1, 2, 5, 6)] == [1, 2, 5, None]
    assert [steps_within(sf.within(line, 0.05), k) for k in (1, 2, 4)] == [1, 1, 2]
    assert steps_within(sf.within(line, 0.5), 2) == 2
    assert steps_within(sf.within(line, 0.2, sources=[[(0.0,), (1.0,)]]), 5) == 2  # through ⊥
    cube = sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(5, 5, 5))
    assert [steps_within(sf.within(cube, 0.4), k) for k in (1, 2, 4, 5)] == [1, 2, 2, None]


@pytest.mark.parametrize("metric", NORMS)
@pytest.mark.parametrize("multiple", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(12,), (9, 7), (4, 5, 3)])
def test_steps_of_longer_moves_are_the_largest_distance_by_brute_force(shape, multiple, metric):
    domain = box(shape)
    for delta in (Fraction(1, 10), Fraction(19, 100)):
        policy, wide = sf.within(domain, delta, metric=metric), sf.within(domain, multiple * delta, metric=metric)
        table = all_distances(policy)
        largest = max(table[u, v] for u, v in wide.edges())
        found = steps_within(policy, multiple)
        assert largest <= found <= multiple
        if domain.ndim <= 2:
            assert found == largest


# --- refusals ---------------------------------------------------------------------------------------------------------

LINE = sf.Line(0, 1, cells=4)
GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4))
ONLY = "must be None, 'boundary', a list of points, or a list of lines, each a list of points."
SHAPE = "sources must be one or more points, or lines of points, of {} coordinates each."


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: sf.within(LINE, 0), "delta=0 must be greater than zero. Nothing was drawn or recorded."),
        (lambda: sf.within(LINE, -1), "delta=-1 must be greater than zero. Nothing was drawn or recorded."),
        (lambda: sf.within(LINE, float("nan")), "delta=nan is not a finite number."),
        (lambda: sf.within(LINE, None), "delta=None is not a finite number."),
        (
            lambda: sf.within(LINE, 1.5),
            "delta=1.5 exceeds the largest distance in the domain, 1: every move is hidden, which is "
            "sf.bounded(domain). Use that, or a smaller delta.",
        ),
        (
            lambda: sf.within(GRID, "1e400"),
            "delta='1e400' exceeds the largest distance in the domain, 1.41421: every move is hidden, which is "
            "sf.bounded(domain). Use that, or a smaller delta. If the bounds are degrees and delta is in metres, say "
            "metric='great-circle'.",
        ),
        (
            lambda: sf.within(sf.Line(1_000_000, 1_000_001, cells=4), 0.001),
            "delta=0.001 is too small for coordinates of this size: cell edges are only known to 1.2e-10 in double "
            "precision. Use at least 2.3e-01, or a nearer origin.",
        ),
        (
            lambda: sf.within(LINE, 0.1, metric="geodesic"),
            "metric='geodesic' is not one of 'euclidean', 'manhattan', 'chebyshev', 'great-circle'.",
        ),
        (lambda: sf.within(LINE, 0.1, sources="border"), f"sources='border' {ONLY}"),
        (lambda: sf.within(LINE, 0.1, sources=[object()]), f"sources {ONLY}"),
        (lambda: sf.within(LINE, 0.1, sources=[[0.1, 0.2]]), SHAPE.format(1)),
        (lambda: sf.within(GRID, 0.1, sources=[0.5]), SHAPE.format(2)),
        (lambda: sf.within(GRID, 0.1, sources=[]), SHAPE.format(2)),
        (
            lambda: sf.within(LINE, 0.1, sources=[2.0]),
            "sources holds a point outside the domain's bounds. Sources must lie inside.",
        ),
        (
            lambda: sf.within(LINE, 0.1, sources=[float("nan")]),
            "sources holds a point outside the domain's bounds. Sources must lie inside.",
        ),
        (
            lambda: sf.within(sf.Categories(["a", "b"]), 0.1),
            "within needs a domain whose axes are all intervals; labels have no distance. Use sf.graph.",
        ),
    ],
)
def test_what_within_cannot_promise_is_refused(build, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build()
    assert str(refusal.value) == message


def test_a_stencil_beyond_counting_is_refused():
    with pytest.raises(sf.TooLarge) as refusal:
        sf.within(sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(512, 512, 512)), 0.9)
    assert str(refusal.value) == (
        "this policy has moves of 791,453,125 kinds, more than can be told apart one by one (at most 10,000,000). "
        "Use a smaller reach, fewer cells, or sf.bounded(domain)."
    )


def test_moves_that_differ_in_signs_alone_are_told_apart_only_for_who_looks_at_each() -> None:
    """3¹³ moves of 13 axes have 2¹³ lengths: neither policy nor noise on edges needs more than these."""
    cube = sf.Grid(bounds=[0] * 13 + [2] * 13, shape=[2] * 13)
    policy = sf.within(cube, 3, metric="manhattan")
    plan = sf.plan(policy, sf.histogram(), epsilon=1, mechanism="edges")
    assert plan.guarantee.epsilon == 1
    assert policy.moves.count(cube.shape) == 2**12 * (2**13 - 1)
    assert len(policy.moves.lengths) == 2**13 - 1
    assert "offsets" not in vars(policy.moves)


@pytest.mark.parametrize("policy", [sf.within(sf.Grid(bounds=(0, 0, 0, 3, 4, 2), shape=(3, 4, 2)), 0.9), sf.threshold(
    sf.Grid(bounds=(0, 0, 0, 0, 1, 1, 1, 1), shape=(3, 2, 4, 2)), 3)], ids=["within", "threshold"])  # fmt: skip
def test_offsets_are_every_length_with_every_choice_of_signs_once(policy: sf.Policy) -> None:
    lengths = {tuple(o) for o in policy.moves.lengths.tolist()}
    box = np.ndindex(*(2 * n - 1 for n in policy.domain.shape))
    every = [tuple(int(o) - n + 1 for o, n in zip(place, policy.domain.shape, strict=True)) for place in box]
    half = [o for o in every if tuple(map(abs, o)) in lengths and next(x for x in o if x) > 0]
    assert policy.moves.offsets.tolist() == [list(o) for o in half]
