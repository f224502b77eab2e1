"""The privacy argument itself, for every mechanism, policy, domain and edge.

A mechanism reports some function of the counts x and integer noise η. It is ε-private when for every edge of the policy
there is an *integer* vector c such that the report of (x', η) is that of (x, η + c), x' being x with one record changed
along the edge, and Σ |c_j|·rate_j ≤ ε. Both are checked here with nothing but integers and fractions, on what is built.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_oracle import (
    EPSILON,
    box,
    built,
    cases,
    cost,
    label,
    no_noise,
    some_noise,
    unit,
    witness,
)

import sfumato as sf
from sfumato.linear import Haar, Hierarchy, nested_blocks
from sfumato.mechanism import build, mechanisms

EVERY = cases()


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_noise_on_the_edges_of_three_cells_by_hand():
    """Cells 0-1-2: noise 5 on the first edge and -2 on the second moves 5 into cell 0 and -7 into cell 1."""
    mechanism = build("edges", sf.threshold(sf.Line(0, 1, cells=3), 1), Fraction(1))
    measured = mechanism.measure(np.array([10, 20, 30]), [np.array([5, -2])])
    assert measured.tolist() == [[15, 13, 32]]
    assert mechanism.estimate(measured, 60).tolist() == [15, 13, 32]
    assert mechanism.privacy_loss == 1
    assert mechanism.describe() == "edges; noise of scale 1"


def test_noise_on_counts_of_three_cells_by_hand():
    """Replace-one changes two counts, so ε = 1 means scale 2; the estimates are then moved to the public total."""
    mechanism = build("identity", sf.bounded(sf.Line(0, 1, cells=3)), Fraction(1))
    assert mechanism.sensitivity == 2
    measured = mechanism.measure(np.array([10, 20, 30]), [np.array([3, 0, 0])])
    assert measured.tolist() == [13, 20, 30]
    assert mechanism.estimate(measured, 60).tolist() == [12, 19, 29]


def test_moves_of_two_cells_cost_two_edges_or_one_long_one():
    policy = sf.threshold(sf.Line(0, 1, cells=5), 2)
    assert [block.noise.rate for block in build("edges", policy, Fraction(1)).model.blocks] == [Fraction(1, 2)]
    assert build("edges", policy, Fraction(1)).privacy_loss == 1


# --- every mechanism × policy × domain × edge -------------------------------------------------------------------------


@pytest.mark.parametrize("policy", EVERY, ids=label)
def test_every_edge_is_hidden_at_epsilon(policy):
    """report(x', η) = report(x, η + c) to the last bit, at a cost of at most ε."""
    rng = np.random.default_rng(11)
    found = 0
    for mechanism in built(policy):
        found += 1
        counts = rng.integers(0, 30, policy.domain.size)
        worst = Fraction(0)
        for u, v in policy.edges():
            noise = some_noise(mechanism, rng)
            c = witness(mechanism, u, v)
            assert all(part.dtype == np.int64 for part in c)
            moved = mechanism.measure(counts + unit(policy.domain.size, u, v), noise)
            shifted = mechanism.measure(counts, [eta + part for eta, part in zip(noise, c, strict=True)])
            assert np.array_equal(moved, shifted), (mechanism.name, mechanism.options, u, v)
            worst = max(worst, cost(mechanism, c))
        assert worst <= EPSILON, (mechanism.name, mechanism.options)
        assert worst <= mechanism.privacy_loss <= EPSILON, (mechanism.name, mechanism.options)
    assert found >= 1  # whatever the policy, there is a mechanism for it


@pytest.mark.parametrize("policy", EVERY, ids=label)
def test_without_noise_the_counts_come_back(policy):
    counts = np.random.default_rng(12).integers(0, 1000, policy.domain.size)
    total = int(counts.sum()) if policy.total_is_public else None
    for mechanism in built(policy):
        estimates = mechanism.estimate(mechanism.measure(counts, no_noise(mechanism)), total)
        assert np.allclose(estimates, counts), (mechanism.name, mechanism.options)


@pytest.mark.parametrize("policy", EVERY, ids=label)
def test_a_public_total_is_met_exactly_and_a_hidden_one_is_not_used(policy):
    rng = np.random.default_rng(13)
    counts = rng.integers(0, 1000, policy.domain.size)
    for mechanism in built(policy):
        measured = mechanism.measure(counts, some_noise(mechanism, rng))
        if policy.total_is_public:
            estimates = mechanism.estimate(measured, int(counts.sum()))
            assert estimates.sum() == counts.sum(), (mechanism.name, mechanism.options)
            assert estimates[::-1].cumsum()[-1] == counts.sum()
        else:
            assert mechanism.estimate(measured, None).shape == counts.shape


def test_measuring_changes_neither_counts_nor_noise():
    rng = np.random.default_rng(14)
    for policy in EVERY:
        for mechanism in built(policy):
            counts, noise = rng.integers(0, 9, policy.domain.size), some_noise(mechanism, rng)
            before = counts.copy(), [eta.copy() for eta in noise]
            mechanism.measure(counts, noise)
            assert np.array_equal(counts, before[0])
            assert all(np.array_equal(a, b) for a, b in zip(noise, before[1], strict=True))


# --- the estimators over edges: f(η + B·z) = f(η) + z, exactly --------------------------------------------------------


@settings(deadline=None)
@given(
    n=st.integers(1, 60),
    weights=st.lists(st.integers(1, 200), min_size=1, max_size=6),
    branching=st.integers(2, 5),
    seed=st.integers(0, 999),
    size=st.sampled_from([3, 10**3, 10**6]),
)
def test_the_rounding_estimator_of_a_weighted_hierarchy_is_equivariant(n, weights, branching, seed, size):
    """The privacy condition, and not only unbiasedness: without it a remainder of the counts would leak."""
    blocks = tuple(branching**level for level in reversed(range(len(weights))))
    strategy = Hierarchy(n, blocks, weights)
    rng = np.random.default_rng(seed)
    noise, z = rng.integers(-size, size, (2, strategy.rows)), rng.integers(-size, size, (2, n))
    moved = strategy.inverse_fixed_point(noise + strategy.forward(z))
    assert np.array_equal(moved, strategy.inverse_fixed_point(noise) + (z << strategy.fraction_bits))


@settings(deadline=None)
@given(n=st.integers(1, 40), seed=st.integers(0, 999))
def test_the_rounding_estimator_is_least_squares_but_for_its_rounding(n, seed):
    strategy = Hierarchy(n, nested_blocks(n, 3), None)
    noise = np.random.default_rng(seed).integers(-(10**6), 10**6, strategy.rows)
    exact = strategy.pinv(noise.astype(float))
    got = strategy.inverse_fixed_point(noise) / 2.0**strategy.fraction_bits
    assert np.allclose(got, exact, atol=1e-3 * np.abs(exact).max())


@pytest.mark.parametrize("name", ["edges", "edge-haar", "edge-hierarchy", "edge-hats"])
@pytest.mark.parametrize("shape", [(5, 7), (8, 8), (3, 4, 5)], ids=str)
@pytest.mark.parametrize("size", [10, 10**6])
def test_edge_estimators_in_several_dimensions_are_equivariant(name, shape, size):
    """η + B·z moves the report by the divergence of z alone, for any integer flow z along any axis."""
    rng = np.random.default_rng(15)
    policy = sf.threshold(box(shape), 1)
    mechanism = build(name, policy, Fraction(1))
    noise = some_noise(mechanism, rng, size)
    counts = np.zeros(policy.domain.size, dtype=np.int64)
    for t, block in enumerate(mechanism.model.blocks):
        factors = block.estimator.factors
        strategy = [getattr(factor, "strategy", None) for factor in factors]
        flow = rng.integers(-size, size, [n - (s is None) for n, s in zip(shape, strategy, strict=True)])
        pushed = flow
        divergence = flow
        for axis, s in enumerate(strategy):
            if s is not None:
                pushed = np.moveaxis(s.forward(np.moveaxis(pushed, axis, -1)), -1, axis)
            else:
                pad = [(1, 1) if i == axis else (0, 0) for i in range(len(shape))]
                divergence = np.diff(np.pad(divergence, pad), axis=axis)
        shifted = [eta + pushed.ravel() if i == t else eta for i, eta in enumerate(noise)]
        assert np.array_equal(mechanism.measure(counts, shifted), mechanism.measure(counts + divergence.ravel(), noise))


def test_an_estimator_that_is_nearly_unbiased_would_leak():
    """The counterexample: a count measured three times, averaged with weights 21845/65536, which nearly sum to one. The
    report in 65536ths is x·65536 + 21845·Ση, and 65536 = 3·21845 + 1: it shows x modulo 21845, whatever the noise.
    """
    for noise in ([4, -7, 1], [100, 200, -50]):
        assert [(x * 65536 + 21845 * sum(noise)) % 21845 for x in range(5)] == [0, 1, 2, 3, 4]
        # The library's estimators leave the same fraction whatever the count: it is the noise's own.
        for strategy in (Haar(3), Hierarchy(3, (3, 1), (1, 3))):
            eta = np.resize(noise, strategy.rows)
            reports = [strategy.inverse_fixed_point(eta + strategy.forward(np.full(3, x))) for x in range(5)]
            assert len({tuple(report % 2**strategy.fraction_bits) for report in reports}) == 1


def test_every_linear_mechanism_is_tried_somewhere():
    used = {mechanism.name for policy in EVERY for mechanism in built(policy)}
    linear = {"identity", "prefix", "haar", "hierarchy", "hats", "edges", "edge-haar", "edge-hierarchy", "edge-hats"}
    assert linear | {"policy-edges", "blocks"} <= used <= set(mechanisms())
