"""Hats over what crosses grid lines, diagonals among it: exact in integers, least squares, and less error."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from mechanism_oracle import box, cost, witness

import sfumato as sf
from sfumato.linear import Crossing, CrossingEstimator
from sfumato.linear.crossings import FRACTION_BITS
from sfumato.linear.estimator import box_weights
from sfumato.linear.queries import joint_gram
from sfumato.mechanism import build
from sfumato.workload import CELLS, PREFIXES, RANGES, TOTAL

CASES = [
    (9, 7, (3,), (2,), (5, 14), 9),
    (12, 5, (4, 2), (), (3, 4, 8), 6),
    (2, 3, (), (), (4,), 3),
]


def estimator(nx, ny, along_x, along_y, weights, diagonal):
    lines = [
        Crossing(n, widths, (*weights[: len(widths)], weights[-1]), diagonal)
        for n, widths in ((nx, along_x), (ny, along_y))
    ]
    return CrossingEstimator((nx, ny), (lines[0], lines[1]))


def some_flows(made, rng, size):
    return [rng.integers(-size, size + 1, part) for part in made.parts[:4]]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [3, 10**3, 10**6])
def test_integer_flows_add_their_divergence_to_the_last_bit(case, size):
    made, rng = estimator(*case), np.random.default_rng(size)
    for _ in range(16):
        noise, z = rng.integers(-size, size + 1, made.cols), some_flows(made, rng, size)
        moved = made.fixed(noise + made.edge_noise(z)) - made.fixed(noise)
        assert np.array_equal(moved, made.divergence(z) << FRACTION_BITS)
    near = np.abs(np.ldexp(made.fixed(noise).astype(float), -FRACTION_BITS) - made.forward(noise))
    assert near.max() < 8 * 2.0**-FRACTION_BITS


@pytest.mark.parametrize("case", CASES)
def test_estimates_are_least_squares_and_variances_those_of_the_matrix(case):
    made = estimator(*case)
    shape, strategy = made.shape, made.inverts().dense()
    written = made.forward(np.eye(made.cols)).T
    sizes = [a * b for a, b in made.parts[:4]]
    unit = np.split(np.eye(sum(sizes), dtype=np.int64), np.cumsum(sizes)[:-1], axis=-1)
    divergence = made.divergence([u.reshape(-1, *part) for u, part in zip(unit, made.parts, strict=False)]).T
    assert np.allclose(written, divergence @ np.linalg.pinv(strategy))
    assert np.allclose(made.transpose(np.eye(made.rows)), written)
    rng = np.random.default_rng(0)
    ends = np.sort(rng.uniform(0, 1, (40, 2, 2)), axis=1) * shape
    ends[:20] = np.round(ends[:20])
    felt = box_weights(shape, ends[:, 0], ends[:, 1]) @ written
    assert np.allclose(made.box_moments(shape, ends[:, 0], ends[:, 1])[0], (felt**2).sum(axis=1))
    assert np.abs(felt).max() <= made.largest_coefficient
    for kinds in product([RANGES, CELLS, PREFIXES, TOTAL], repeat=2):
        mean = np.einsum("ij,ij", written, joint_gram(kinds, shape) @ written)
        assert made.mean_square(kinds, shape) == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("options", [{}, {"widths": [2], "weights": [7, 9], "diagonal": 3}])
@pytest.mark.parametrize(
    "policy",
    [
        sf.within(box((8, 7)), 0.01),
        sf.within(box((8, 7)), 0.2),
        sf.threshold(box((8, 7)), 3),
        sf.within(box((8, 7)), 0.2, sources="boundary"),
    ],
    ids=lambda p: p.name,
)
def test_every_move_is_hidden_by_a_walk(policy, options):
    """B·z by hand for every edge: what it costs, and that it makes up for the move."""
    mechanism = build("diagonal-hats", policy, Fraction(1), **options)
    rng, worst = np.random.default_rng(0), Fraction(0)
    noise = [rng.integers(-99, 100, block.estimator.cols) for block in mechanism.model.blocks]
    before = mechanism.disturbance(noise)
    for u, v in policy.edges():
        u, v = (int(u), int(v)) if u >= 0 else (int(v), int(u))
        c = witness(mechanism, u, v)
        worst = max(worst, cost(mechanism, c))
        moved = mechanism.disturbance([a + b for a, b in zip(noise, c, strict=True)]) - before
        change = np.zeros(policy.domain.size, dtype=np.int64)
        change[u] += 1
        if v >= 0:
            change[v] -= 1
        assert np.array_equal(moved, np.stack([change, 0 * change]))
    if not options:  # else the lines' ends may give a diagonal less than the most
        assert worst == 1
    assert mechanism.privacy_loss == 1
    assert worst <= 1


@pytest.mark.parametrize(("n", "delta", "most"), [(64, 0.5, 376), (256, 0.5, 830), (256, 2, 3_200)])
def test_a_plan_takes_them_where_moves_cross_corners(n, delta, most):
    plan = sf.plan(sf.within(box((n, n)), delta / n), sf.ranges(), 1)
    assert plan.mechanism.name == "diagonal-hats"
    assert plan.expected_error <= most
    hats = next(other.error for other in plan.alternatives if other.name == "edge-hats")
    assert plan.expected_error < 0.78 * hats


def test_moves_along_the_axes_alone_are_left_to_others():
    plan = sf.plan(sf.threshold(box((32, 32)), 1), sf.ranges(), 1)
    assert "diagonal-hats" not in [other.name for other in plan.alternatives]
    forced = sf.plan(sf.threshold(box((32, 32)), 1), sf.ranges(), 1, mechanism="diagonal-hats")
    assert forced.expected_error > plan.expected_error


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        (sf.threshold(box((9,)), 1), {}, "is for grids of two axes of at most 16384 cells, here 9"),
        (sf.threshold(box((4, 4, 4)), 2), {}, "is for grids of two axes of at most 16384 cells, here 4 × 4 × 4"),
        (sf.bounded(box((1, 9))), {}, "needs a policy made of moves on a grid of two axes"),
        (sf.graph(box((2, 2)), [(0, 3), (1, 3), (2, 3)]), {}, "needs a policy made of moves on a grid of two axes"),
        (sf.unbounded(box((9, 9))), {}, "is for moves along both axes"),
        (sf.threshold(box((9, 9)), 2), {"diagonal": 0}, "diagonal=0"),
        (sf.threshold(box((9, 9)), 2), {"blocks": [2, 1]}, "takes no option blocks"),
    ],
)
def test_refusals(policy, options, message):
    with pytest.raises(sf.InvalidInput, match=message):
        build("diagonal-hats", policy, Fraction(1), **options)


def test_noise_that_would_not_fit_is_refused():
    with pytest.raises(sf.InvalidInput, match="needs noise beyond what 64-bit fixed point holds"):
        build("diagonal-hats", sf.threshold(box((64, 64)), 2), Fraction(1, 2**36))
