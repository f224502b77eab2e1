"""Noise on the edges of a spanner: the path of every move, the error of every query, the choice of cubes and split.

By hand, then every edge of small policies with the noise that hides it, then the noise model against the mechanism
itself, the plan's choice, and refusals.
"""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from mechanism_oracle import all_queries, box, cost, no_noise, some_noise, unit
from spanner_oracle import spanner_witness

import sfumato as sf
from sfumato.linear import CubeIncidence, Difference, Embedded, Haar, Hierarchy, Identity, Incidence, PseudoInverse
from sfumato.linear.operator import range_weights
from sfumato.mechanism import build, mechanism_from_spec, variants
from sfumato.mechanism.edges.spanner import split
from sfumato.noise import DiscreteLaplace
from sfumato.release.intervals import cell_margins

ONE, HALF = Fraction(1), Fraction(1, 2)
UNIT = 1 << 20  # noise this large makes the rounding of fixed point invisible
SHAPES = [(1,), (2,), (5,), (8,), (11,), (3, 4), (5, 2), (1, 6), (4, 5), (2, 3, 3)]
NESTED = {"blocks": [2, 1], "weights": [2, 3]}


def policies(shape):
    domain = box(shape)
    yield from (sf.threshold(domain, theta) for theta in (1, 2, 4))
    yield sf.within(domain, 0.3)


def listed():
    """Graphs that were listed: a cycle, with chords, with ⊥, a complete one."""
    for n in (3, 6, 7):
        domain = sf.Line(0, 1, cells=n)
        cycle = [(i, (i + 1) % n) for i in range(n)]
        yield sf.graph(domain, cycle)
        yield sf.graph(domain, [*cycle, (0, sf.ABSENT), (n // 2, sf.ABSENT)])
        yield sf.graph(domain, list(itertools.combinations(range(n), 2)))
    yield sf.graph(box((2, 3)), [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5), (0, 4)])


@cache
def spanners(policy):
    """With every side, and the options that a plan or a test tries."""
    if not hasattr(policy.moves, "reach"):
        return [build("spanner", policy, HALF)]
    tried = [options for name, options in variants(policy, sf.ranges()) if name == "spanner"]
    for side in range(1, max(policy.domain.shape) + 1):
        cubes = policy.spanner(side=side)
        tried += [{"side": side}] if cubes.is_tree else [{"side": side, "blocks": [1]}, {"side": side, **NESTED}]
        if all(max(pair[kind] for pair in cubes.usage) for kind in (0, 1)):
            tried += [{"side": side, "share": 37}]
    return [build("spanner", policy, HALF, **options) for options in tried]


EVERY = [policy for shape in SHAPES for policy in policies(shape)] + list(listed())


def label(policy):
    return f"{policy!r}".replace("bounds=", "")


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_line_of_six_cells_by_hand():
    """Cells 0 1 [2] 3 4 [5], red ones in brackets. Moves of up to three cells take at most two internal edges and one
    external one, or (from 2 to 5) one external one alone: `2·r_i + r_e ≤ 1`.
    """
    policy = sf.threshold(sf.Line(0, 1, cells=6), 3)
    mechanism = build("spanner", policy, ONE, side=3, share=40)
    assert mechanism.spanner.usage == ((2, 1),)
    assert mechanism.rates == (Fraction(1, 5), Fraction(3, 5))
    assert [block.noise.rate for block in mechanism.model.blocks] == [Fraction(1, 5), Fraction(3, 5)]
    assert mechanism.privacy_loss == 1
    measured = mechanism.measure(np.array([10, 20, 30, 40, 50, 60]), [np.array([1, 2, 3, 4]), np.array([100])])
    assert measured.tolist() == [[11, 22, 30 - 3 + 100, 43, 54, 60 - 7 - 100]]
    assert mechanism.estimate(measured, 210).tolist() == measured[0].tolist()
    assert mechanism.describe() == "spanner, side 3, share 40; noise of scale 5 and 5/3"


def test_rates_share_epsilon_where_no_path_has_the_most_of_both():
    """With side 3 and θ = 4 a path has two internal and one external edges, or one and two: at shares of one half both
    cost 2/4 + 1/4, so both rates are raised by a third.
    """
    cubes = sf.threshold(sf.Line(0, 1, cells=30), 4).spanner(side=3)
    assert cubes.usage == ((2, 1), (1, 2))
    assert split(cubes, ONE, 50) == (Fraction(1, 3), Fraction(1, 3))
    assert split(cubes, ONE, 80) == (Fraction(4, 9), Fraction(1, 9))


def test_a_tree_by_hand():
    """A triangle: the spanning tree has two edges and stretch two, so noise of rate ε/2 on each."""
    policy = sf.graph(sf.Line(0, 1, cells=3), [(0, 1), (1, 2), (0, 2)])
    mechanism = build("spanner", policy, ONE)
    (block,) = mechanism.model.blocks
    assert block.estimator.cols == 2
    assert block.noise.rate == HALF
    assert mechanism.privacy_loss == 1
    assert mechanism.describe() == "spanner; noise of scale 2"


def test_cubes_as_wide_as_the_line_have_internal_edges_alone():
    mechanism = build("spanner", sf.threshold(sf.Line(0, 1, cells=5), 2), ONE, side=5)
    assert mechanism.options == {"side": 5, "share": 100}
    assert mechanism.rates == (HALF, 0)
    assert mechanism.measure(np.zeros(5, np.int64), [np.array([1, 2, 3, 4])]).tolist() == [[1, 2, 3, 4, -10]]


def test_cubes_of_one_cell_are_the_edges_of_the_line():
    policy = sf.threshold(sf.Line(0, 1, cells=9), 2)
    mechanism, edges = build("spanner", policy, ONE, side=1), build("edges", policy, ONE)
    assert mechanism.options == {"side": 1, "share": 0}
    noise = [np.arange(8) - 3]
    assert np.array_equal(mechanism.measure(np.arange(9), noise), edges.measure(np.arange(9), noise))
    error = edges.model.expected_error(sf.ranges(), policy.domain)
    assert mechanism.model.expected_error(sf.ranges(), policy.domain) == pytest.approx(error)


# --- privacy ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow  # every edge of every spanner
@pytest.mark.parametrize("policy", EVERY, ids=label)
def test_every_edge_is_hidden_at_epsilon(policy):
    """report(x', η) = report(x, η + c) to the last bit, c being the path in the spanner, at a cost of at most ε. The
    worst path costs what `privacy_loss` says where every external edge costs the same.
    """
    rng = np.random.default_rng(31)
    for mechanism in spanners(policy):
        counts = rng.integers(0, 30, policy.domain.size)
        worst = Fraction(0)
        for u, v in policy.edges():
            noise = some_noise(mechanism, rng)
            c = spanner_witness(mechanism, u, v)
            moved = mechanism.measure(counts + unit(policy.domain.size, u, v), noise)
            shifted = mechanism.measure(counts, [eta + part for eta, part in zip(noise, c, strict=True)])
            assert np.array_equal(moved, shifted), (mechanism.options, u, v)
            worst = max(worst, cost(mechanism, c))
        assert worst == mechanism.privacy_loss <= HALF, mechanism.options
        assert mechanism.privacy_loss == (HALF if len(policy.edges()) else 0)


@pytest.mark.parametrize("policy", EVERY, ids=label)
def test_without_noise_the_counts_come_back_and_with_it_totals_are_exact(policy):
    rng = np.random.default_rng(32)
    counts = rng.integers(0, 1000, policy.domain.size)
    total = int(counts.sum()) if policy.total_is_public else None
    for mechanism in spanners(policy):
        assert np.array_equal(mechanism.estimate(mechanism.measure(counts, no_noise(mechanism)), total), counts)
        noise = some_noise(mechanism, rng, 10**6)
        before = counts.copy(), [eta.copy() for eta in noise]
        estimates = mechanism.estimate(mechanism.measure(counts, noise), total)
        if total is not None:
            assert estimates.sum() == total == estimates[::-1].cumsum()[-1]
        assert np.array_equal(counts, before[0])
        assert all(np.array_equal(a, b) for a, b in zip(noise, before[1], strict=True))


def test_every_pair_of_the_usage_fits_epsilon_for_every_split():
    for policy in EVERY:
        if hasattr(policy.moves, "reach"):
            for side, share in itertools.product(range(1, max(policy.domain.shape) + 1), (1, 37, 99)):
                cubes = policy.spanner(side=side)
                r_i, r_e = split(cubes, Fraction(3, 7), share)
                assert max(i * r_i + e * r_e for i, e in cubes.usage) == (Fraction(3, 7) if policy.moves.longest else 0)


# --- the noise model --------------------------------------------------------------------------------------------------


def linear_map(mechanism):
    """(L, the variance, the fourth cumulant of each noise), by pushing one noise after the other through."""
    counts = np.zeros(mechanism.policy.domain.size, dtype=np.int64)
    columns, variance, fourth = [], [], []
    for t, block in enumerate(mechanism.model.blocks):
        for j in range(block.estimator.cols):
            noise = no_noise(mechanism)
            noise[t][j] = UNIT
            columns.append(mechanism.estimate(mechanism.measure(counts, noise), None) / UNIT)
            variance.append(block.noise.variance)
            fourth.append(block.noise.fourth_cumulant)
    return np.array(columns).reshape(-1, len(counts)).T, np.array(variance), np.array(fourth)


def boxes(domain, rng, count=30):
    ends = np.sort(rng.uniform(0, 1, (count, 2, domain.ndim)) * domain.shape, axis=1)
    ends[: count // 2] = np.floor(ends[: count // 2])
    ends[0, 0], ends[0, 1] = 0, domain.shape
    ends[1] = domain.shape  # empty, at the very end
    cells = np.array(list(itertools.product(*map(range, domain.shape))))
    shares = np.clip(np.minimum(ends[:, 1, None], cells + 1) - np.maximum(ends[:, 0, None], cells), 0, 1)
    return ends[:, 0], ends[:, 1], shares.prod(axis=-1)


@pytest.mark.parametrize("policy", EVERY, ids=label)
def test_the_noise_model_is_that_of_the_mechanism(policy):
    rng = np.random.default_rng(33)
    domain = policy.domain
    some = rng.normal(size=(5, domain.size))
    low, high, weights = boxes(domain, rng)
    for mechanism in spanners(policy):
        model, what = mechanism.model, mechanism.options
        nested = any(isinstance(strategy, Hierarchy) for strategy in getattr(mechanism, "across", ()))
        near = {"rtol": 2e-3, "atol": 1e-3} if nested else {"rtol": 1e-6, "atol": 1e-6}  # coefficients of 14 bits
        effect, variance, fourth = linear_map(mechanism)
        assert np.allclose(model.query_cumulants(some)[0], (some @ effect) ** 2 @ variance, **near), what
        got = model.range_cumulants(low, high)
        assert np.allclose(got[0], (weights @ effect) ** 2 @ variance, **near), what
        if not nested:  # a hierarchy has a stand-in for the fourth moment
            assert np.allclose(got[1], (weights @ effect) ** 4 @ fourth, **near), what
        groups = model.range_groups(low, high)
        if groups is not None:
            for power, cumulant in ((2, "variance"), (4, "fourth_cumulant")):
                terms = [(often * c**power).sum(axis=1) * getattr(noise, cumulant) for c, often, noise in groups]
                want = (weights @ effect) ** power @ (variance if power == 2 else fourth)
                assert np.allclose(sum(terms, np.zeros(len(low))), want, **near), what
        for workload in (sf.histogram(), sf.ranges(), sf.prefixes()):
            mean = ((all_queries(workload, domain) @ effect) ** 2 @ variance).mean()
            assert np.allclose(model.expected_error(workload, domain), mean, **near), (what, workload)


def test_the_edges_that_carry_noise_are_those_of_the_spanner():
    for policy in EVERY:
        for mechanism in spanners(policy):
            for estimator in (block.estimator for block in mechanism.model.blocks):
                if isinstance(estimator, CubeIncidence):
                    edges = mechanism.spanner.internal
                    dense = Incidence(policy.domain.size, edges[:, 0], edges[:, 1]).dense()
                    assert np.array_equal(estimator.dense(), dense)
                    assert np.array_equal(estimator.degrees.ravel(), np.abs(dense).sum(axis=1))


@pytest.mark.parametrize(
    "inner", [Identity(4), Difference(4), PseudoInverse(Haar(4)), PseudoInverse(Hierarchy(4, (2, 1)))]
)
def test_an_embedded_operator_equals_its_dense_form(inner):
    rng = np.random.default_rng(34)
    cells, n = np.array([1, 2, 6, 8]), 10
    operator = Embedded(inner, cells, n)
    dense = np.zeros((n, inner.cols))
    dense[cells] = inner.forward(np.eye(inner.cols)).T
    x, y = rng.normal(size=(2, 3, inner.cols))[0], rng.normal(size=(3, n))
    assert np.allclose(operator.forward(x), x @ dense.T)
    assert np.allclose(operator.transpose(y), y @ dense)
    low, high = np.sort(rng.uniform(0, n, (2, 200)), axis=0)
    low[:50], high[:50] = np.floor(low[:50]), np.floor(high[:50])
    want = range_weights(n, low, high) @ dense
    assert np.allclose(operator.range_moments(low, high)[0], (want**2).sum(axis=1))
    terms = operator.range_terms(low, high)
    if terms is not None:
        assert np.allclose((terms[1] * terms[0] ** 4).sum(axis=1), (want**4).sum(axis=1))


def test_operators_refuse_what_they_cannot_do():
    with pytest.raises(sf.InvalidInput) as refusal:
        Embedded(Identity(2), np.array([3, 1]), 5)
    assert str(refusal.value) == "cells must be 2 rising positions on a line of 5 cells, one for each row."
    with pytest.raises(sf.InvalidInput) as refusal:
        CubeIncidence((4, 4), 2).range_moments(np.zeros(1), np.ones(1))
    assert str(refusal.value) == "ranges over the shape (4, 4) have 2 axes: use box_moments."


def test_ranges_in_many_dimensions_are_described_by_their_moments():
    assert CubeIncidence((3, 3, 3), 2).box_terms((3, 3, 3), np.zeros((1, 3)), np.ones((1, 3))) is not None
    assert CubeIncidence((3, 3, 3, 3), 2).box_terms((3, 3, 3, 3), np.zeros((1, 4)), np.ones((1, 4))) is None


# --- the choice -------------------------------------------------------------------------------------------------------


CHOICES = [((60,), 3), ((200,), 8), ((24, 24), 2), ((40, 40), 4), ((64, 80), 6), ((32, 32, 32), 3)]


@pytest.mark.slow  # a hundred splits of each
@pytest.mark.parametrize(("shape", "theta"), CHOICES, ids=str)
@pytest.mark.parametrize("workload", [sf.ranges(), sf.histogram()], ids=["ranges", "histogram"])
def test_the_split_is_the_best_in_whole_per_cents(shape, theta, workload):
    """At small ε, where the noise is as good as continuous, no other split has less error."""
    policy = sf.threshold(box(shape), theta)
    for name, options in variants(policy, workload):
        if name == "spanner":
            errors = {
                share: build(name, policy, Fraction(1, 20), **{**options, "share": share}).model.expected_error(
                    workload, policy.domain
                )
                for share in range(max(1, options["share"] - 3), min(99, options["share"] + 3) + 1)
            }
            assert min(errors, key=errors.get) == options["share"]
            assert errors[options["share"]] <= min(errors.values())


@pytest.mark.parametrize(("shape", "theta"), CHOICES, ids=str)
def test_the_plan_is_no_worse_than_any_side_it_tries_and_little_worse_than_any_other(shape, theta):
    policy = sf.threshold(box(shape), theta)
    domain = policy.domain

    def error(**options):
        return build("spanner", policy, HALF, **options).model.expected_error(sf.ranges(), domain)

    tried = [error(**options) for name, options in variants(policy, sf.ranges()) if name == "spanner"]
    assert sf.plan(policy, sf.ranges(), HALF).expected_error <= min(tried)
    assert min(tried) <= 1.05 * min(error(side=side) for side in range(2, 2 * theta + 1))


@pytest.mark.parametrize(
    ("shape", "theta", "split_alone", "side_too"),
    [((4096,), 4, 1.006, 1.250), ((4096,), 8, 1.021, 1.138), ((64, 64), 4, 1.014, 1.350), ((64, 64), 6, 1.206, 1.399)],
    ids=str,
)
def test_one_rate_for_all_edges_has_at_least_the_error_of_the_best_split(shape, theta, split_alone, side_too):
    """The paper's version: cubes of side θ/d and the rate ε/stretch on every edge. Measured over all ranges, its error
    is 1.006 and 1.021 times that of the best split of the same cubes on a line (θ = 4 and 8), 1.014 and 1.206 times on
    a grid of 64 × 64 (θ = 4 and 6); with the best side as well, 1.25, 1.14, 1.35 and 1.40 times.
    """
    policy, epsilon = sf.threshold(box(shape), theta), Fraction(1, 20)
    domain = policy.domain
    best = build("spanner", policy, epsilon)
    rate = epsilon / best.spanner.stretch
    uniform = sum(
        term * DiscreteLaplace(rate * block.noise.rate / paid).variance
        for term, block, paid in zip(
            best.model.error_terms(sf.ranges(), domain),
            best.model.blocks,
            [best.rates[0]] + [best.rates[1]] * (len(best.model.blocks) - 1),
            strict=True,
        )
    )
    error = best.model.expected_error(sf.ranges(), domain)
    sides = [o for name, o in variants(policy, sf.ranges()) if name == "spanner"]
    least = min(build("spanner", policy, epsilon, **o).model.expected_error(sf.ranges(), domain) for o in sides)
    assert uniform >= error >= least
    assert uniform / error == pytest.approx(split_alone, abs=5e-3)
    assert uniform / least == pytest.approx(side_too, abs=5e-3)


def test_options_survive_a_file():
    for policy in EVERY:
        for mechanism in spanners(policy):
            again = mechanism_from_spec(json.loads(json.dumps(mechanism.spec())), policy)
            assert type(again) is type(mechanism)
            assert again.spec() == mechanism.spec()
            assert again.describe() == mechanism.describe()
            assert [b.noise for b in again.model.blocks] == [b.noise for b in mechanism.model.blocks]


def test_a_million_cells_are_never_written_out():
    policy = sf.threshold(box((1024, 1024)), 4)
    mechanism = build("spanner", policy, ONE, side=3)
    counts = np.zeros(policy.domain.size, dtype=np.int64)
    noise = some_noise(mechanism, np.random.default_rng(35))
    assert mechanism.estimate(mechanism.measure(counts, noise), 0).sum() == 0
    assert mechanism.model.expected_error(sf.ranges(), policy.domain) > 0


def test_a_plan_publishes_and_answers_through_a_spanner():
    policy = sf.threshold(box((16, 16)), 4)
    counts = np.arange(256).reshape(16, 16)
    release = sf.plan(policy, sf.ranges(), 1, mechanism="spanner", side=3).publish(counts)
    assert release.counts.sum() == counts.sum()
    answer = release.answer((0.1, 0.1, 0.6, 0.8))
    assert answer.low < answer.value < answer.high


@pytest.mark.parametrize(("shape", "side"), [((11,), 3), ((7, 8), 3), ((5, 4, 3), 2)], ids=str)
def test_the_error_of_every_cell_is_known(shape, side):
    mechanism = build("spanner", sf.threshold(box(shape), 3), ONE, side=side)
    cells = np.eye(mechanism.policy.domain.size)
    variance = mechanism.model.query_cumulants(cells)[0]
    assert np.allclose(cell_margins(mechanism.model, 0.95)[0].ravel() ** 2, variance)


# --- refusals ---------------------------------------------------------------------------------------------------------


LINE = sf.threshold(sf.Line(0, 1, cells=30), 4)


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        (
            sf.bounded(sf.Line(0, 1, cells=8)),
            {},
            "mechanism='spanner' is for moves on a line or grid without ⊥, and for graphs listed edge by edge; this "
            "policy hides that one record is replaced by any other record (replace-one); the number of records is "
            "public. Nothing was computed. Use mechanism='edges'.",
        ),
        (
            sf.unbounded(sf.Line(0, 1, cells=8)),
            {},
            "mechanism='spanner' is for moves on a line or grid without ⊥, and for graphs listed edge by edge; this "
            "policy hides that one record is added or removed, wherever it lies (add/remove). Nothing was "
            "computed. Use mechanism='edges'.",
        ),
        (
            sf.within(box((4, 4)), 0.3, sources="boundary"),
            {},
            "mechanism='spanner' is for moves on a line or grid without ⊥, and for graphs listed edge by edge; this "
            "policy hides that one record moves by less than 0.3 (euclidean), or appears or vanishes within 0.3 of the "
            "boundary. Nothing was computed. Use mechanism='edges'.",
        ),
        (
            sf.graph(sf.Line(0, 1, cells=3), [(0, 1), (1, 2)]),
            {},
            "mechanism='spanner': this policy is a tree and its own spanner. Nothing was computed. "
            "Use mechanism='edges', which does the same.",
        ),
        (
            sf.graph(sf.Line(0, 1, cells=3), [(0, 1), (1, 2), (0, 2)]),
            {"side": 2},
            "mechanism='spanner' takes no option side.",
        ),
        (LINE, {"width": 2}, "mechanism='spanner' takes no option width."),
        (LINE, {"blocks": [1]}, "mechanism='spanner' takes no option blocks."),
        (
            LINE,
            {"side": 31},
            "side=31 is longer than every side of the grid, whose shape is (30,). Nothing was computed. "
            "Use at most 30.",
        ),
        (
            LINE,
            {"share": 0},
            "share=0 must be between 1 and 99: the internal edges' part of epsilon in whole per cents. Nothing was "
            "computed. Leave it out to have it tuned.",
        ),
        (
            LINE,
            {"share": 0.5},
            "share=0.5 must be between 1 and 99: the internal edges' part of epsilon in whole per cents. Nothing was "
            "computed. Leave it out to have it tuned.",
        ),
        (
            LINE,
            {"side": 1, "share": 40},
            "share=40 must be 0: with side=1 moves use external edges alone. Nothing was computed. "
            "Leave it out to have it tuned.",
        ),
        (
            LINE,
            {"side": 30, "share": True},
            "share=True must be 100: with side=30 moves use internal edges alone. Nothing was computed. "
            "Leave it out to have it tuned.",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_next_step(policy, options, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build("spanner", policy, ONE, **options)
    assert str(refusal.value) == message


def test_noise_beyond_fixed_point_is_refused_with_the_epsilon_that_was_asked_for():
    policy = sf.threshold(box((512, 512)), 2)
    with pytest.raises(sf.InvalidInput) as refusal:
        build("spanner", policy, Fraction(1, 10**9))
    assert str(refusal.value) == (
        "epsilon=1e-09 on 262,144 cells needs noise beyond what 64-bit fixed point holds under mechanism='spanner'. "
        "Use a larger epsilon, fewer cells or blocks=[1]."
    )


def test_the_plan_says_why_a_spanner_does_not_fit():
    plan = sf.plan(sf.bounded(sf.Line(0, 1, cells=8)), sf.ranges(), 1)
    (other,) = (alternative for alternative in plan.alternatives if alternative.name == "spanner")
    assert other.error is None
    assert other.reason.startswith("is for moves on a line or grid without ⊥")
