"""Errors known before any data is seen: coefficients, variances and averages against the mechanism itself.

The map L from noise to estimates is read off the mechanism by pushing one noise after the other through it, and
everything that the noise model says is then compared with dense algebra.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from mechanism_oracle import all_queries, box, built, cases, label, no_noise

import sfumato as sf
from sfumato.mechanism import SummedArea, build
from sfumato.noise import SeededSource
from sfumato.workload import histogram, prefixes, queries, ranges

EVERY = [policy for policy in cases() if policy.domain.size <= 16]
# Noise this large makes the rounding of fixed-point estimators invisible; what is left is that of their coefficients.
UNIT = 1 << 20


def linear_map(mechanism, total):
    """(L, the variance of each noise): the effect of one unit of every noise on the estimates."""
    counts = np.zeros(mechanism.policy.domain.size, dtype=np.int64)
    columns, variance = [], []
    for t, block in enumerate(mechanism.model.blocks):
        for j in range(block.estimator.cols):
            noise = no_noise(mechanism)
            noise[t][j] = UNIT
            columns.append(mechanism.estimate(mechanism.measure(counts, noise), total) / UNIT)
            variance.append(block.noise.variance)
    return np.array(columns).reshape(-1, len(counts)).T, np.array(variance)


def close(mechanism, got, want):
    rough = mechanism.name in ("edge-hierarchy", "edge-hats", "diagonal-hats")  # rounded behind the point
    return np.allclose(got, want, rtol=2e-3 if rough else 1e-6, atol=1e-3 if rough else 1e-6)


def some_boxes(domain, rng, count=24):
    """Boxes in cell coordinates: whole cells, cut cells, empty, everything."""
    ends = np.sort(rng.uniform(0, 1, (count, 2, domain.ndim)) * domain.shape, axis=1)
    ends[: count // 2] = np.floor(ends[: count // 2])
    ends[0, 0], ends[0, 1] = 0, domain.shape
    return ends[:, 0], ends[:, 1]


def box_weights(domain, low, high):
    cells = list(itertools.product(*map(range, domain.shape)))
    shares = np.clip(np.minimum(high[:, None], np.array(cells) + 1) - np.maximum(low[:, None], cells), 0, 1)
    return shares.prod(axis=-1)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_range_pays_for_its_boundary_by_hand():
    """On a line with θ = 1 a range cuts two edges, one if it reaches an end; on a grid, its whole outline."""
    line = build("edges", sf.threshold(sf.Line(0, 1, cells=8), 1), Fraction(1))
    one = line.model.blocks[0].noise.variance
    low, high = np.array([[2.0], [0.0], [0.0]]), np.array([[5.0], [5.0], [8.0]])
    assert line.model.range_cumulants(low, high)[0] == pytest.approx([2 * one, one, 0])
    grid = build("edges", sf.threshold(box((6, 6)), 1), Fraction(1))
    assert grid.model.range_cumulants(np.array([[1.0, 1.0]]), np.array([[3.0, 4.0]]))[0] == pytest.approx([10 * one])


def test_counts_with_noise_pay_for_their_area_by_hand():
    mechanism = build("identity", sf.unbounded(box((6, 6))), Fraction(1))
    one = mechanism.model.blocks[0].noise.variance
    assert mechanism.model.range_cumulants(np.array([[1.0, 1.0]]), np.array([[3.0, 4.0]]))[0] == pytest.approx(
        [6 * one]
    )
    assert mechanism.model.range_cumulants(np.array([[1.0, 1.0]]), np.array([[1.5, 2.0]]))[0] == pytest.approx(
        [one / 4]
    )


# --- oracle -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", EVERY, ids=label)
def test_the_noise_model_is_that_of_the_mechanism(policy):
    rng = np.random.default_rng(21)
    domain = policy.domain
    total = 0 if policy.total_is_public else None
    some = rng.normal(size=(5, domain.size))
    low, high = some_boxes(domain, rng)
    boxes = box_weights(domain, low, high)
    for mechanism in built(policy):
        what = (mechanism.name, mechanism.options)
        effect, variance = linear_map(mechanism, total)
        model = mechanism.model
        assert close(mechanism, model.query_cumulants(some)[0], ((some @ effect) ** 2) @ variance), what
        want = ((boxes @ effect) ** 2) @ variance
        got, fourth = model.range_cumulants(low, high)
        assert close(mechanism, got, want), what
        assert (fourth >= 0).all()
        groups = model.range_groups(low, high)
        if groups is not None:
            listed = sum((often * c**2).sum(axis=1) * noise.variance for c, often, noise in groups)
            assert close(mechanism, listed, want), what
        workloads = [histogram(), queries(some)]
        if domain.is_spatial:
            workloads += [ranges(), prefixes()]
        for workload in workloads:
            asked = some if workload is workloads[1] else all_queries(workload, domain)
            mean = (((asked @ effect) ** 2) @ variance).mean()
            assert close(mechanism, model.expected_error(workload, domain), mean), (what, workload)
            terms = model.error_terms(workload, domain)
            assert len(terms) == len(model.blocks)
            assert all(term >= 0 for term in terms)


@pytest.mark.parametrize("policy", [p for p in EVERY if p.domain.is_spatial], ids=label)
def test_given_ranges_have_the_errors_of_their_boxes(policy):
    rng = np.random.default_rng(22)
    domain = policy.domain
    given = np.sort(rng.uniform(-0.1, 1.1, (6, 2, domain.ndim)), axis=1).reshape(6, -1)
    low, high = domain.fractional(given)
    for mechanism in built(policy):
        want = mechanism.model.range_cumulants(low, high)[0].mean()
        assert mechanism.model.expected_error(ranges(given), domain) == pytest.approx(want)


@pytest.mark.parametrize("shape", [(7,), (4, 5), (2, 3, 4)], ids=str)
def test_sums_over_boxes_with_cut_cells(shape):
    rng = np.random.default_rng(23)
    domain = box(shape)
    values = rng.integers(-9, 9, shape)
    low, high = some_boxes(domain, rng)
    table = SummedArea(values)
    assert np.allclose(table.fractional_sums(low, high), box_weights(domain, low, high) @ values.ravel())
    whole = np.floor(low).astype(int), np.floor(high).astype(int)
    assert np.array_equal(table.sums(*whole), box_weights(domain, *whole) @ values.ravel())


def test_error_falls_as_epsilon_grows():
    policy = sf.threshold(sf.Line(0, 1, cells=16), 2)
    for name in ("identity", "haar", "hierarchy", "edges", "policy-edges"):
        errors = [
            build(name, policy, Fraction(e)).model.expected_error(ranges(), policy.domain) for e in ("1/4", "1", "4")
        ]
        assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("edge-haar", {}),
        ("edge-hierarchy", {"blocks": [2, 1]}),
        ("edge-hierarchy", {"blocks": [4, 2, 1], "weights": [9_000, 30, 1]}),
        ("edge-hats", {}),
    ],
)
@pytest.mark.parametrize("shape", [(2, 2), (8, 8), (2, 2, 2), (4, 4, 4)], ids=str)
def test_fixed_point_does_not_overflow_at_the_smallest_epsilon_that_is_taken(name, options, shape):
    """The largest noise that is not refused goes through 64-bit integers as it would through exact arithmetic."""
    policy = sf.threshold(box(shape), 1)
    mechanism = build(name, policy, Fraction(1), **options)
    for halvings in range(1, 80):
        try:
            mechanism = build(name, policy, Fraction(1, 2**halvings), **options)
        except sf.InvalidInput:
            break
    counts = np.zeros(policy.domain.size, dtype=np.int64)
    for seed in range(100):
        noise = [block.noise.sample(block.estimator.cols, SeededSource(seed)) for block in mechanism.model.blocks]
        want = sum(b.estimator.forward(eta.astype(float)) for b, eta in zip(mechanism.model.blocks, noise, strict=True))
        got = mechanism.estimate(mechanism.measure(counts, noise), None)
        assert np.abs(got - want).max() <= 1e-2 * np.abs(want).max()  # eight bits behind the point in three dimensions


@pytest.mark.parametrize("name", ["edge-hierarchy", "edge-hats"])
def test_sums_of_many_cells_of_a_product_have_the_noise_that_is_stated(name):
    """Rounding behind the point neither grows with a long block nor adds up along the border of many cells."""
    space = box((8, 8)) * sf.Line(0, 1, cells=168, name="t") * sf.Categories(["a", "b", "c"], name="mode")
    policy = sf.policy(space, hide=sf.move(0.1) | sf.change("mode"), public=["t"])
    blocks = {"blocks": [[1], [1], [168, 1], [3, 1]], "weights": [[1], [1], [3, 1], [3, 1]]}
    mechanism = build(name, policy, Fraction(1), **(blocks if name == "edge-hierarchy" else {}))
    noise = [block.noise.sample(block.estimator.cols, SeededSource(1)) for block in mechanism.model.blocks]
    want = sum(b.estimator.forward(eta.astype(float)) for b, eta in zip(mechanism.model.blocks, noise, strict=True))
    got = mechanism.estimate(mechanism.measure(np.zeros(space.size, dtype=np.int64), noise), None)
    off = (got - want).reshape(space.shape)
    assert np.abs(off).max() < 0.02
    assert np.abs(off.sum(axis=(0, 1, 2))).max() < 2  # of a table by mode, whose noise is some sixty
    assert np.abs(off.sum(axis=(2, 3))).max() < 1
