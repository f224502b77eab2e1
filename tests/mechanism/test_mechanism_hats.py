"""Hats as a mechanism: exact sensitivities and errors, better than the peers on ranges, and chosen where they are."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from mechanism_oracle import all_queries, box

import sfumato as sf
from sfumato.linear import Hats, PseudoInverse
from sfumato.mechanism import build, mechanism_from_spec, variants
from sfumato.mechanism.cells.hat_tuning import best_hats
from sfumato.noise import SeededSource
from sfumato.workload import RANGES, AxisQueries, MatrixQueries, queries

SMALL = Fraction(1, 1000)  # discrete noise is as good as continuous here: errors times ε² are those of the papers
ONE = Fraction(1)
CASES = [
    ((9,), {}),
    ((13,), {"widths": [5, 2], "weights": [3, 4, 5]}),
    ((11,), {"widths": [4], "weights": [1, 1]}),
    ((6, 5), {"widths": [2], "weights": [3, 2]}),
    ((8, 3), {"widths": [[3, 2], []], "weights": [[2, 3, 4], [7]]}),
]


def mean(n: int, widths: tuple[int, ...], weights: tuple[int, ...], kind: AxisQueries, known: bool) -> float:
    """2·Δ²·(mean variance), as a plan would have it at ε = 1 with continuous noise."""
    hats = Hats(n, widths, weights)
    estimator = PseudoInverse(hats)
    variance = kind.mean_variance(estimator)
    if known:
        pull = estimator.forward(estimator.transpose(np.ones(n)))
        variance -= float(kind.mean_square(pull) / pull.sum())
    return 2 * ((1 + known) * hats.total) ** 2 * variance


def policies_on(domain: sf.Domain) -> list[sf.Policy]:
    size = domain.size
    path = [(i, i + 1) for i in range(size - 1)]
    found = [sf.bounded(domain), sf.unbounded(domain), sf.graph(domain, [*path, (0, size - 1), (2, sf.ABSENT)])]
    found += [sf.threshold(domain, theta) for theta in (1, 3, size - 1)]
    if domain.ndim == 1:
        found += [sf.within(domain, 0.3, sources="boundary"), sf.within(domain, 0.2, sources=[(0.1,)])]
    return found


# --- sensitivity ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "options"), CASES)
def test_sensitivity_is_the_largest_change_along_any_edge(shape, options):
    for policy in policies_on(box(shape)):
        mechanism = build("hats", policy, ONE, **options)
        dense = mechanism.strategy.dense()
        changes = [int(np.abs(dense[:, u] - (dense[:, v] if v >= 0 else 0)).sum()) for u, v in policy.edges()]
        assert mechanism.sensitivity == max(changes), policy
        assert mechanism.privacy_loss == ONE


def test_under_add_remove_the_sensitivity_is_the_sum_of_the_weights_by_hand():
    line = sf.Line(0, 1, cells=4096)
    mechanism = build("hats", sf.unbounded(line), ONE)
    assert mechanism.options == {"widths": [[335, 18]], "weights": [[256, 256, 256]]}
    assert mechanism.sensitivity == 768
    assert build("hats", sf.bounded(line), ONE).sensitivity == 2 * 768
    assert mechanism.describe() == "hats, widths 335/18, weights 256/256/256; noise of scale 768"


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "hdmm"), [(256, 65.4), (1024, 124.7), (4096, 205.9)])
def test_ranges_under_add_remove_are_answered_better_than_by_hdmm(n, hdmm):
    """HDMM's figures come from running its published code, up to ten minutes of optimisation for 4096 cells."""
    plan = sf.plan(sf.unbounded(sf.Line(0, 1, cells=n)), sf.ranges(), SMALL)
    assert plan.mechanism.name == "hats"
    assert plan.expected_error * float(SMALL) ** 2 < hdmm


@pytest.mark.parametrize(("n", "nested"), [(256, 196.9), (1024, 420.0), (4096, 700.0)])
def test_ranges_under_replace_one(n, nested):
    plan = sf.plan(sf.bounded(sf.Line(0, 1, cells=n)), sf.ranges(), SMALL)
    assert plan.mechanism.name == "hats"
    assert plan.expected_error * float(SMALL) ** 2 < nested


@pytest.mark.parametrize("workload", [sf.ranges(), sf.prefixes(), sf.histogram()])
@pytest.mark.parametrize("policy", [sf.bounded, sf.unbounded])
def test_expected_error_equals_the_dense_formula(policy, workload):
    domain = box((23,))
    mechanism = build("hats", policy(domain), ONE, widths=[7, 3], weights=[30, 40, 50])
    dense = mechanism.strategy.dense().astype(float)
    precision = dense.T @ dense
    if policy is sf.bounded:  # the total as one more measurement, next to exact
        precision += 1e9
    asked = all_queries(workload, domain)
    sigma = np.linalg.inv(precision)
    want = np.einsum("qi,ij,qj->q", asked, sigma, asked).mean() * mechanism.model.blocks[0].noise.variance
    assert mechanism.model.expected_error(workload, domain) == pytest.approx(want, rel=1e-5)
    listed = mechanism.model.expected_error(queries(asked), domain)
    assert isinstance(queries(asked), MatrixQueries)
    assert listed == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("n", [1500, 20_000])
def test_the_mean_over_all_ranges_is_that_of_sampled_ones(n):
    """Beyond any dense formula: 4,000 random ranges, with a standard error below 0.4 %, so that 2 % is 5 of them."""
    hats = Hats(n, *best_hats(n, False))
    rng = np.random.default_rng(n)
    ends = np.sort(rng.integers(0, n + 1, (4_000, 2)), axis=1).astype(float)
    ends = ends[ends[:, 0] < ends[:, 1]]
    sampled = hats.inverse_range_moments(ends[:, 0], ends[:, 1])[0]
    assert sampled.std() / np.sqrt(len(ends)) < 0.004 * sampled.mean()
    assert RANGES.mean_variance(PseudoInverse(hats)) == pytest.approx(sampled.mean(), rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [sf.bounded, sf.unbounded])
def test_measured_errors_on_a_grid_are_the_expected_ones(policy):
    """8,000 runs on 16 × 16 cells; the mean square over all boxes has a relative standard error below 0.6 %, and 3 %
    is 5 of them: a false alarm in less than a million runs. 10 % more or less noise would be seen.
    """
    runs, domain = 8_000, box((16, 16))
    mechanism = build("hats", policy(domain), ONE, widths=[5], weights=[9, 10])
    source = SeededSource(7)
    noise, rows = mechanism.noises(None)[0]
    drawn = noise.sample((runs, rows), source)
    total = 0 if policy is sf.bounded else None
    counts = np.zeros(256, dtype=np.int64)
    errors = np.array([mechanism.estimate(mechanism.measure(counts, [eta]), total) for eta in drawn])
    cell = np.arange(16)
    gram = RANGES.together(16, cell[:, None], cell[None, :])
    found = np.einsum(
        "rij,ik,jl,rkl->r", errors.reshape(runs, 16, 16), gram, gram, errors.reshape(runs, 16, 16), optimize=True
    )
    expected = mechanism.model.expected_error(sf.ranges(), domain)
    assert found.std(ddof=1) / np.sqrt(runs) < 0.006 * expected
    assert found.mean() == pytest.approx(expected, rel=0.03)


# --- the closed form --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("n", [64, 256, 700, 2000, 4096])
def test_no_nearby_widths_or_weights_are_much_better(n, known):
    """Widths a third narrower or wider, one level tilted against the rest, a level more or less: at most 3 % better."""
    widths, weights = best_hats(n, known)
    tuned = mean(n, widths, weights, RANGES, known)
    others = []
    for scale in (0.67, 0.8, 0.9, 1.1, 1.25, 1.5):
        scaled = [tuple(round(b * (scale if i == j else 1)) for i, b in enumerate(widths)) for j in range(len(widths))]
        others += [(b, weights) for b in scaled if 5 * b[0] <= 2 * n and b[-1] >= 2]
    for level in range(len(weights)):
        for k in (200, 230, 285, 320):
            others.append((widths, tuple(k if i == level else w for i, w in enumerate(weights))))
    for levels in {1, len(widths) + 1} - {len(widths)}:
        q = (n * (0.7 if known else 1.5)) ** (1 / (levels + 1))
        other = tuple(round(q**i) for i in range(levels, 0, -1))
        others += [(other, (256,) * (levels + 1))] if 5 * other[0] <= 2 * n else []
    assert tuned <= 1.03 * min(mean(n, *other, RANGES, known) for other in others)


def test_widths_follow_from_the_length_alone():
    assert best_hats(4, False) == ((), (1,))
    assert best_hats(256, False) == ((20,), (256, 256))
    assert best_hats(256, True) == ((13,), (256, 256))
    assert best_hats(1_000_000, False) == ((87272, 5078, 295, 17), (256,) * 5)


# --- choice -----------------------------------------------------------------------------------------------------------


def test_a_plan_takes_hats_for_ranges_on_grids_under_the_standard_policies():
    grid = box((256, 256))
    for policy in (sf.unbounded(grid), sf.bounded(grid)):
        plan = sf.plan(policy, sf.ranges(), 1)
        assert plan.mechanism.name == "hats"
        best = min(other.error for other in plan.alternatives if other.name == "hierarchy")
        assert plan.expected_error < 0.82 * best


def test_a_plan_does_not_try_hats_where_they_cannot_win():
    line = sf.Line(0, 1, cells=256)
    assert "hats" not in dict(variants(sf.unbounded(line), sf.histogram()))
    assert "hats" in dict(variants(sf.threshold(line, 4), sf.ranges()))  # good under replace-one is good here
    assert "hats" in dict(variants(sf.threshold(line, 100), sf.ranges()))
    assert "hats" in dict(variants(sf.unbounded(sf.Line(0, 1, cells=2**17)), sf.ranges()))
    assert "hats" not in dict(variants(sf.unbounded(sf.Line(0, 1, cells=2**17 + 1)), sf.ranges()))  # too long to weigh
    assert sf.plan(sf.threshold(line, 100), sf.ranges(), 1).mechanism.name == "hats"


def test_where_the_total_is_public_the_counts_sum_to_it():
    counts = np.random.default_rng(1).integers(0, 9, 300)
    plan = sf.plan(sf.bounded(sf.Line(0, 1, cells=300)), sf.ranges(), 1, mechanism="hats")
    release = plan.publish(counts, source=sf.SeededSource(2))
    assert release.counts.sum() == counts.sum()
    assert release.answer((0, 1)).stderr == 0


def test_a_release_survives_its_file(tmp_path):
    counts = np.random.default_rng(1).integers(0, 9, 40)
    plan = sf.plan(sf.unbounded(sf.Line(0, 1, cells=40)), sf.ranges(), 1, mechanism="hats", widths=[10, 3])
    release = plan.publish(counts, source=sf.SeededSource(2))
    release.save(tmp_path / "line.sfumato")
    again = sf.load(tmp_path / "line.sfumato")
    assert again.mechanism.options == {"widths": [[10, 3]], "weights": [[256, 256, 256]]}
    assert np.array_equal(again.counts, release.counts)
    ours, theirs = release.answer((0.1, 0.7)), again.answer((0.1, 0.7))
    assert (ours.value, ours.stderr, ours.low, ours.high) == (theirs.value, theirs.stderr, theirs.low, theirs.high)


@pytest.mark.parametrize(("shape", "options"), CASES)
def test_a_mechanism_survives_its_description(shape, options):
    policy = sf.unbounded(box(shape))
    mechanism = build("hats", policy, ONE, **options)
    again = mechanism_from_spec(json.loads(json.dumps(mechanism.spec())), policy)
    assert [factor.key for factor in again.factors] == [factor.key for factor in mechanism.factors]


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        (
            sf.unbounded(box((2**20 + 1,))),
            {},
            "mechanism='hats' is for axes of at most 1048576 cells, here 1048577: its variances take a kilobyte a "
            "cell. Nothing was drawn or recorded. Use mechanism='hierarchy'.",
        ),
        (
            sf.unbounded(box((20,))),
            {"widths": [9, 3]},
            "widths=(9, 3) must fall, and lie between 2 and 2/5 of the line: here 8 cells. "
            "Nothing was drawn or recorded.",
        ),
        (
            sf.unbounded(box((20,))),
            {"widths": [8, 3], "weights": [1, 2]},
            "weights=(1, 2) must be whole numbers from 1 to 65536, one for each of (8, 3) and one for the cells. "
            "Nothing was drawn or recorded.",
        ),
        (
            sf.unbounded(box((20,))),
            {"widths": "8, 3"},
            "widths='8, 3' must be a list of whole numbers, or one such list for each axis.",
        ),
        (sf.unbounded(box((20,))), {"blocks": [2, 1]}, "mechanism='hats' takes no option blocks."),
    ],
)
def test_what_hats_cannot_do_is_refused(policy, options, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build("hats", policy, ONE, **options)
    assert str(refusal.value) == message
