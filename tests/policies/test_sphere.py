"""`within(metric="great-circle")`: δ in metres on a grid of degrees.

The promise: two places inside the bounds at most δ(1 - 10⁻⁹) apart on the sphere lie in the same cell or in joined
ones, wherever in the bounds they are; one that near to a source lies in a cell joined to ⊥. Offsets are edges in all
rows when they are in one, so more is joined than must be: never more than the row nearest to a pole asks for.
"""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from policy_oracle import all_distances

import sfumato as sf
from sfumato.policies import policy_from_spec, sphere, steps_within

RADIUS = 6_371_008.8
DEGREE = RADIUS * np.pi / 180

# A city, the equator, both hemispheres, the southern end of the world, the pole itself, coarse and fine, the date line,
# rows so tall that the nearest points lie inside them, a δ that sees the earth's curvature along either axis.
CASES = [
    (sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(60, 45)), 3_000),
    (sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(300, 300)), "123.4"),
    (sf.Grid(bounds=(-10, -5, 10, 5), shape=(40, 20)), 80_000),
    (sf.Grid(bounds=(-60, -40, 60, 70), shape=(24, 22)), 900_000),
    (sf.Grid(bounds=(100, -80, 170, -60), shape=(70, 40)), 60_000),
    (sf.Grid(bounds=(0, 85, 180, 90), shape=(36, 20)), 40_000),
    (sf.Grid(bounds=(10, 89.9, 20, 90), shape=(10, 10)), 300),
    (sf.Grid(bounds=(160, -20, 180, 0), shape=(20, 20)), 150_000),
    (sf.Grid(bounds=(-170, -60, 170, 60), shape=(34, 12)), 1_000_000),
    (sf.Grid(bounds=(0, 0, 90, 80), shape=(900, 3)), 2_000_000),
    (sf.Grid(bounds=(-80, -10, 80, 10), shape=(160, 10)), 8_000_000),
    (sf.Grid(bounds=(0, -80, 20, 80), shape=(4, 160)), 8_000_000),
]


def vectors(places):
    """Unit vectors in extended precision: an oracle of another kind than the haversines in the code."""
    lon, lat = (places.astype(np.longdouble) * (np.longdouble("3.14159265358979323846") / 180)).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def metres(p, q):
    a, b = vectors(p), vectors(q)
    chord = np.sqrt(((a - b) ** 2).sum(axis=-1))
    return np.longdouble(RADIUS) * 2 * np.arcsin(np.minimum(chord / 2, 1))


def joined(policy, u, v):
    shape = policy.domain.shape
    table = np.zeros(shape, dtype=bool)
    table[0, 0] = True
    table[tuple(np.abs(policy.moves.offsets).T)] = True
    apart = np.abs(np.stack(np.unravel_index(u, shape)) - np.stack(np.unravel_index(v, shape)))
    return table[tuple(apart)]


def corners(domain):
    return tuple(np.array(domain.bounds).reshape(2, -1))


def places(domain, rng, count):
    """Anywhere, on the edges of cells and one double beside, with many near the ends of the rows."""
    columns = []
    for axis in domain.intervals:
        edge = rng.choice(np.concatenate([axis.edges, np.repeat(axis.edges[[0, 1, -2, -1]], 3)]), count)
        edge = np.nextafter(edge, rng.choice([-np.inf, np.inf], count))
        columns.append(np.where(rng.random(count) < 0.4, rng.uniform(axis.low, axis.high, count), edge))
    return np.clip(np.stack(columns, axis=-1), *corners(domain))


def moved(p, delta, domain, rng):
    """Where places may go: by nearly δ on a great circle in any direction, kept where that is inside the bounds."""
    lon, lat = np.radians(p).T
    bearing = rng.choice([0, 0.5, 1, 1.5, -1], len(p)) * np.pi
    bearing = np.where(rng.random(len(p)) < 0.6, rng.uniform(0, 2 * np.pi, len(p)), bearing)
    angle = delta / RADIUS * (1 - 1.5e-9) * np.where(rng.random(len(p)) < 0.3, rng.random(len(p)), 1.0)
    there = np.arcsin(np.clip(np.sin(lat) * np.cos(angle) + np.cos(lat) * np.sin(angle) * np.cos(bearing), -1, 1))
    turn = np.arctan2(np.sin(bearing) * np.sin(angle) * np.cos(lat), np.cos(angle) - np.sin(lat) * np.sin(there))
    q = np.stack([np.degrees(lon + turn), np.degrees(there)], axis=-1)
    for shift in (-360, 360):
        inside = (q[:, 0] + shift >= domain.bounds[0]) & (q[:, 0] + shift <= domain.bounds[2])
        q[inside, 0] += shift
    q = np.clip(q, *corners(domain))
    near = metres(p, q) <= np.longdouble(delta) * (1 - np.longdouble(1e-9))
    return p[near], q[near]


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_on_the_equator_a_degree_is_a_hundred_and_eleven_kilometres():
    """Rows and columns of 1° at the equator: two cells on the gap is 111.195 km."""
    grid = sf.Grid(bounds=(-5, -1, 5, 1), shape=(10, 2))
    assert pytest.approx(111_195.08) == DEGREE
    assert sf.within(grid, 111_000, metric="great-circle").moves.reach.tolist() == [1, 1]
    assert sf.within(grid, 111_300, metric="great-circle").moves.reach.tolist() == [2, 1]


def test_the_margin_is_a_billionth_and_no_more():
    """Two rows on the gap is a degree; it is hidden when it is at most δ(1 - 10⁻⁹)."""
    grid = sf.Grid(bounds=(0, 0, 4, 4), shape=(4, 4))
    assert sf.within(grid, DEGREE * (1 + 1.05e-9), metric="great-circle").moves.reach[1] == 2
    assert sf.within(grid, DEGREE * (1 + 0.95e-9), metric="great-circle").moves.reach[1] == 1


def test_the_worst_row_decides():
    """At 60° a degree of longitude is half as long: 200 km reach the fourth gap at the top, and so in every row."""
    grid = sf.Grid(bounds=(0, 0, 20, 60), shape=(20, 60))
    policy = sf.within(grid, 200_000, metric="great-circle")
    assert policy.moves.reach.tolist() == [4, 2]
    assert policy.distance((0, 0), (4, 0)) == 1


def test_rows_at_the_pole_join_all_longitudes():
    policy = sf.within(sf.Grid(bounds=(0, 80, 180, 90), shape=(90, 10)), 1000, metric="great-circle")
    assert policy.moves.reach.tolist() == [89, 1]


def test_the_stencil_is_downward_closed():
    for grid, delta in CASES:
        policy = sf.within(grid, delta, metric="great-circle")
        found = {tuple(o) for o in np.abs(policy.moves.offsets).tolist()} | {(0, 0)}
        assert all((a - 1, b) in found or a == 0 for a, b in found)
        assert all((a, b - 1) in found or b == 0 for a, b in found)
        assert policy.connected
        assert policy.moves.reach.min() >= 1


def test_the_boundary_is_a_ring_in_metres():
    """Rows and columns of 1° around the equator: 150 km reach the second cell from every side."""
    grid = sf.Grid(bounds=(0, -3, 6, 3), shape=(6, 6))
    inner = ~sf.within(grid, 150_000, sources="boundary", metric="great-circle").absent
    assert np.argwhere(inner).tolist() == [[2, 2], [2, 3], [3, 2], [3, 3]]


def test_the_policy_says_itself_in_metres():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4))
    assert sf.within(grid, 500, metric="great-circle").describe() == (
        "one record moves by less than 500 m (great-circle, inside the bounds); the number of records is public"
    )
    line = [[(0.5, 0.0), (0.5, 1.0)]]
    assert sf.within(grid, "1.5", metric="great-circle", sources=line).describe() == (
        "one record moves by less than 1.5 m (great-circle, inside the bounds), or appears or vanishes within 1.5 m of "
        "the line"
    )


# --- the promise about places, by brute force -------------------------------------------------------------------------


@pytest.mark.parametrize(("domain", "delta"), CASES, ids=str)
def test_places_within_delta_lie_in_the_same_or_in_joined_cells(domain, delta):
    rng = np.random.default_rng(11)
    policy = sf.within(domain, delta, metric="great-circle")
    p, q = moved(places(domain, rng, 60_000), float(delta), domain, rng)
    u, v = domain.locate(p), domain.locate(q)
    assert len(p) > 10_000
    assert joined(policy, u, v).all()
    assert (u != v).mean() > 0.3


@pytest.mark.parametrize(("domain", "delta"), CASES, ids=str)
def test_offsets_are_edges_only_where_some_rows_ask_for_them(domain, delta):
    """In the first or the last rows some points along the sides of two cells are nearer than δ and a hundredth."""
    policy = sf.within(domain, delta, metric="great-circle")
    n = domain.shape[1]
    height, width = (float(domain.intervals[i].width) for i in (1, 0))
    size = np.abs(policy.moves.offsets)
    longest = {int(b): int(size[size[:, 1] == b, 0].max()) for b in np.unique(size[:, 1])}
    share = np.linspace(0, 1, 60)
    for b, a in longest.items():
        best = np.inf
        for row in {0, n - 1 - b}:
            low = domain.intervals[1].edges[row] + share[:, None] * height
            high = domain.intervals[1].edges[row + b] + share[None, :] * height
            low, high = (np.clip(x + 0 * (low + high), -90, 90).ravel() for x in (low, high))
            gap = np.full_like(low, min(max(a - 1, 0) * width, 180))
            best = min(best, float(metres(np.stack([0 * gap, low], -1), np.stack([gap, high], -1)).min()))
        assert best < float(delta) * 1.01 + 1e-6


@settings(deadline=None, max_examples=60)
@given(
    west=st.floats(-180, 170),
    south=st.floats(-90, 89),
    span=st.floats(0.01, 200),
    rise=st.floats(0.01, 180),
    shape=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    share=st.floats(0.001, 0.9),
    seed=st.integers(0, 999),
)
def test_the_promise_holds_on_any_part_of_the_globe(west, south, span, rise, shape, share, seed):
    grid = sf.Grid(bounds=(west, south, west + span, min(south + rise, 90.0)), shape=shape)
    delta = share * sphere.widest(grid)
    try:
        policy = sf.within(grid, delta, metric="great-circle", sources="boundary")
    except sf.InvalidInput as refusal:
        assert "around the globe" in str(refusal)
        assume(False)
    rng = np.random.default_rng(seed)
    p, q = moved(places(grid, rng, 3_000), delta, grid, rng)
    assert joined(policy, grid.locate(p), grid.locate(q)).all()


@settings(deadline=None, max_examples=100)
@given(
    south=st.floats(-90, 89),
    span=st.floats(0.01, 360),
    rise=st.floats(0.01, 180),
    seed=st.integers(0, 999),
)
def test_no_two_places_are_farther_apart_than_the_widest(south, span, rise, seed):
    grid = sf.Grid(bounds=(0, south, span, min(south + rise, 90.0)), shape=(1, 1))
    low, high = corners(grid)
    rng = np.random.default_rng(seed)
    p, q = (np.clip(rng.uniform(low - (high - low) / 2, high + (high - low) / 2, (4_000, 2)), low, high) for _ in "pq")
    farthest = float(metres(p, q).max())
    assert farthest <= sphere.widest(grid) * (1 + 1e-12) + 1e-6
    assert farthest >= sphere.widest(grid) * 0.9


# --- sources ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("domain", "delta"), CASES, ids=str)
def test_places_near_a_source_lie_in_cells_joined_to_nothing(domain, delta):
    rng = np.random.default_rng(13)
    line, point = places(domain, rng, 4), places(domain, rng, 1)
    policy = sf.within(domain, delta, metric="great-circle", sources=[line.tolist(), point.tolist()])
    at = rng.integers(0, 3, 60_000)
    start = line[at] + rng.random(60_000)[:, None] * (line[at + 1] - line[at])
    _, q = moved(np.concatenate([start, np.repeat(point, 5_000, axis=0)]), float(delta), domain, rng)
    assert len(q) > 10_000
    assert policy.absent.ravel()[domain.locate(q)].all()


def test_along_a_meridian_a_source_reaches_exactly_delta():
    """Rows of a degree, 111.195 km, north of a source at 80° south: 71 of them are less than 8,000 km away, 72 not."""
    grid = sf.Grid(bounds=(0, -80, 20, 80), shape=(4, 160))
    policy = sf.within(grid, 8_000_000, metric="great-circle", sources=[(10, -80)])
    assert np.flatnonzero(policy.absent[1]).tolist() == list(range(72))


def test_a_source_joins_hardly_more_cells_than_it_must():
    """The cells joined to ⊥ have a point within 1.01 δ + a tenth of a cell of the line, sampled densely."""
    grid, delta = sf.Grid(bounds=(5, 45, 10, 49), shape=(50, 40)), 30_000
    line = np.array([(5.5, 45.2), (8.1, 48.3), (9.9, 47.0)])
    policy = sf.within(grid, delta, metric="great-circle", sources=[line])
    share = np.linspace(0, 1, 400)[:, None]
    dense = np.concatenate([a + share * (b - a) for a, b in pairwise(line)])
    for i, j in np.argwhere(policy.absent):
        low = [axis.edges[k] for axis, k in zip(grid.intervals, (i, j), strict=True)]
        high = [axis.edges[k + 1] for axis, k in zip(grid.intervals, (i, j), strict=True)]
        assert metres(np.clip(dense, low, high), dense).min() < 1.01 * delta + 0.1 * 7_500
    assert 0.1 < policy.absent.mean() < 0.5


def test_places_near_the_boundary_lie_in_cells_joined_to_nothing():
    rng = np.random.default_rng(17)
    for domain, delta in CASES:
        policy = sf.within(domain, delta, metric="great-circle", sources="boundary")
        low, high = corners(domain)
        p = rng.uniform(low, high, (20_000, 2))
        axis = rng.integers(0, 2, len(p))
        p[np.arange(len(p)), axis] = np.where(rng.random(len(p)) < 0.5, low[axis], high[axis])
        _, q = moved(p, float(delta), domain, rng)
        assert policy.absent.ravel()[domain.locate(q)].all()


# --- longer moves, descriptions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("multiple", [1, 2, 3, 5])
def test_steps_of_longer_moves_are_the_largest_distance_by_brute_force(multiple):
    for bounds, delta in (((0, 40, 10, 60), 200_000), ((0, 60, 90, 85), 300_000), ((-5, -5, 5, 5), 100_000)):
        grid = sf.Grid(bounds=bounds, shape=(11, 9))
        policy, wide = (sf.within(grid, k * delta, metric="great-circle") for k in (1, multiple))
        table = all_distances(policy)
        assert steps_within(policy, multiple) == max(table[u, v] for u, v in wide.edges())


def test_a_policy_in_metres_is_rebuilt_from_its_description():
    grid, delta = CASES[0]
    for sources in (None, "boundary", [(-74.0, 40.6)], [[(-74.0, 40.6), (-73.9, 40.7)], [(-74.1, 40.8)]]):
        policy = sf.within(grid, delta, metric="great-circle", sources=sources)
        again = policy_from_spec(json.loads(json.dumps(policy.spec())))
        assert again == policy
        assert np.array_equal(again.moves.offsets, policy.moves.offsets)
        assert (again.absent is None) == (sources is None)
        assert sources is None or np.array_equal(again.absent, policy.absent)
    assert sf.within(grid, 500, metric="great-circle") == sf.within(grid, "500", metric="great-circle")


def test_the_price_between_policies_in_metres_is_the_largest_distance():
    grid = sf.Grid(bounds=(0, 40, 10, 60), shape=(11, 9))
    account, release = (sf.within(grid, d, metric="great-circle") for d in (700_000, 250_000))
    table = all_distances(release)
    assert sf.policies.exchange_rate(account, release) == max(table[u, v] for u, v in account.edges())
    assert sf.policies.exchange_rate(release, account) == 1


# --- refusals ---------------------------------------------------------------------------------------------------------


def build(*bounds, delta=1000):
    shape = (4,) * (len(bounds) // 2)
    domain = sf.Line(*bounds, cells=4) if len(bounds) == 2 else sf.Grid(bounds=bounds, shape=shape)
    return lambda: sf.within(domain, delta, metric="great-circle")


TWO_AXES = (
    "metric='great-circle' needs a grid of two axes, longitude and latitude in degrees; this domain has {}. Nothing "
    "was built. Use such a grid, or another metric."
)
AROUND = (
    "delta={} metres is more than the way around the globe between the two ends of the bounds, the longitudes {} "
    "and {}, where nothing joins the cells. Nothing was built. Cut the bounds to at most 180 degrees of longitude or "
    "farther from the pole, or use a smaller delta."
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (build(0, 1), TWO_AXES.format(1)),
        (build(0, 0, 0, 1, 1, 1), TWO_AXES.format(3)),
        (
            build(0, -91, 1, 1),
            "metric='great-circle' needs latitudes from -90 to 90 on the second axis; 'y' runs from -91 to 1. Nothing "
            "was built. Give degrees, longitude first.",
        ),
        (
            build(40, -74, 41, 90.5),
            "metric='great-circle' needs latitudes from -90 to 90 on the second axis; 'y' runs from -74 to 90.5. "
            "Nothing was built. Give degrees, longitude first.",
        ),
        (
            build(-180, 0, 181, 1),
            "metric='great-circle' needs longitudes that span at most 360 degrees on the first axis; 'x' runs from "
            "-180 to 181. Nothing was built. Cut the bounds.",
        ),
        (build(-180, -10, 180, 10), AROUND.format(1000, -180, 180)),
        (build(0, 10, 200, 90, delta="1"), AROUND.format("'1'", 0, 200)),
        (build(-179.9, 0, 179.9, 60, delta=12_000), AROUND.format(12_000, -179.9, 179.9)),
        (
            build(0, 0, 1, 1, delta=160_000),
            "delta=160000 exceeds the largest distance in the domain, 157250 m: every move is hidden, which is "
            "sf.bounded(domain). Use that, or a smaller delta.",
        ),
        (build(0, 0, 1, 1, delta=0), "delta=0 must be greater than zero. Nothing was drawn or recorded."),
        (build(0, 0, 1, 1, delta=float("nan")), "delta=nan is not a finite number."),
    ],
)
def test_what_great_circles_cannot_promise_is_refused(call, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        call()
    assert str(refusal.value) == message


def test_bounds_whose_ends_stay_apart_around_the_globe_are_fine():
    """At 60° north 0.2° of longitude around the date line are 11.1 km."""
    policy = build(-179.9, 0, 179.9, 60, delta=11_000)()
    assert policy.moves.reach.min() >= 1


# --- the date line ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(176, -18, 182, -16), (-181, 0, 0, 10), (0, 0, 180.5, 10), (350, 0, 360, 10)])
def test_bounds_beyond_the_date_line_are_refused(bounds):
    """179.99 and -179.99 degrees are two kilometres apart and were counted 39 columns from each other."""
    grid = sf.Grid(bounds=bounds, shape=(60, 10))
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.within(grid, delta=5_000, metric="great-circle")
    low, high = (sphere.plain(x) for x in (bounds[0], bounds[2]))
    assert str(refusal.value).startswith(
        "metric='great-circle' needs longitudes from -180 to 180 on the first axis; "
        f"'x' runs from {low} to {high}. Nothing was built. "
    )
    sf.within(sf.Grid(bounds=(176, -18, 180, -16), shape=(40, 20)), delta=5_000, metric="great-circle")
    sf.within(grid, delta=0.5)  # plain degrees have no date line


def test_what_was_built_beyond_the_date_line_is_still_read():
    from sfumato.policies import policy_from_spec
    from sfumato.policies.within import built_within

    old = built_within(sf.Grid(bounds=(176, -18, 182, -16), shape=(60, 20)), 5_000, metric="great-circle")
    assert policy_from_spec(old.spec()) == old
