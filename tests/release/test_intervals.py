"""Intervals: the exact law where it can be had, simulation elsewhere, and a break that simulation must notice."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from coverage_oracle import boxes, moved_by_noise

import sfumato as sf
from sfumato.mechanism import build
from sfumato.noise import DiscreteLaplace
from sfumato.release.intervals import cell_margins, query_margins, range_margins
from sfumato.release.laws import SMOOTH, lattice_quantiles, smooth_quantile

CONFIDENCES = (0.5, 0.8, 0.95, 0.99, 0.9999)

# ---------------------------------------------------------------------------------------------- exact laws


def coverage(noises: list[tuple[int, DiscreteLaplace]], width: float) -> float:
    """P[|Σ k·η| ≤ width] for whole multiples k, by plain convolution of the probabilities."""
    reach = sum(k * noise.quantile(1 - 1e-14) for k, noise in noises)
    law = np.ones(1)
    for k, noise in noises:
        n = noise.quantile(1 - 1e-14)
        one = np.zeros(2 * k * n + 1)
        one[::k] = noise.pmf(np.arange(-n, n + 1))
        law = np.convolve(law, one)
    at = np.arange(-reach, reach + 1)
    return float(law[np.abs(at) <= width + 1e-9].sum())


@pytest.mark.parametrize("epsilon", ["0.01", "0.05", "0.2", "1", "3", "10"])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_a_single_count_has_the_smallest_interval_that_holds(epsilon: str, confidence: float) -> None:
    line = sf.Line(0, 1, cells=4)
    model = sf.plan(sf.unbounded(line), sf.histogram(), epsilon, mechanism="identity").mechanism.model
    noise = model.blocks[0].noise
    _, margin = cell_margins(model, confidence)
    assert (margin == noise.quantile(confidence)).all()


@pytest.mark.parametrize("epsilon", ["0.2", "1", "3"])
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("shape", ["line", "line range", "grid", "grid range", "boundary"])
def test_sums_of_edge_noise_have_the_smallest_interval_that_holds(epsilon: str, confidence: float, shape: str) -> None:
    """Written out: which noises a range feels. At deviation 10 and more, to a thousandth of coverage."""
    line, grid = sf.Line(0, 1, cells=9), sf.Grid(bounds=(0, 0, 1, 1), shape=(6, 6))
    policy = {
        "line": sf.threshold(line, 1),
        "line range": sf.threshold(line, 1),
        "grid": sf.threshold(grid, 1),
        "grid range": sf.threshold(grid, 1),
        "boundary": sf.within(grid, delta=0.1, sources="boundary"),
    }[shape]
    model = build("edges", policy, sf.Guarantee(policy=policy, epsilon=epsilon).epsilon).model  # type: ignore[arg-type]
    low, high, edges = {
        "line": ([3], [4], 2),
        "line range": ([0], [5], 1),  # one end is the border, which has no edge
        "grid": ([2, 2], [3, 3], 4),
        "grid range": ([1, 0], [3, 2], 6),  # sides of 2 and 2 inside, one side on the border
        "boundary": ([0, 2], [1, 3], 3),
    }[shape]
    noises = [(1, model.blocks[0].noise)] * edges
    if shape == "boundary":
        noises.append((1, model.blocks[-1].noise))
    deviation, margin = range_margins(model, np.array([low], float), np.array([high], float), confidence)
    assert deviation[0] == pytest.approx(math.sqrt(sum(noise.variance for _, noise in noises)))
    slack = 1e-9 if deviation[0] < SMOOTH else 1e-3
    assert margin[0] == round(margin[0])
    assert coverage(noises, margin[0]) >= confidence - slack
    assert margin[0] == 0 or coverage(noises, margin[0] - 1) < confidence + slack


@pytest.mark.parametrize("cells", [2, 7, 50])
@pytest.mark.parametrize("epsilon", ["1", "3"])
def test_ranges_of_counts_have_the_smallest_interval_that_holds(cells: int, epsilon: str) -> None:
    line = sf.Line(0, 64, cells=64)
    model = sf.plan(sf.unbounded(line), sf.histogram(), epsilon, mechanism="identity").mechanism.model
    noises = [(1, model.blocks[0].noise)] * cells
    deviation, margin = range_margins(model, np.array([[5.0]]), np.array([[5.0 + cells]]), 0.95)
    slack = 1e-9 if deviation[0] < SMOOTH else 1e-3
    assert coverage(noises, margin[0]) >= 0.95 - slack
    assert coverage(noises, margin[0] - 1) < 0.95 + slack


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("weights", [(1, 2), (3, 5, 7), (1, 1, 1, 10)])
def test_queries_with_whole_weights_have_the_smallest_interval_that_holds(
    weights: tuple[int, ...], confidence: float
) -> None:
    line = sf.Line(0, 1, cells=len(weights))
    model = sf.plan(sf.unbounded(line), sf.histogram(), 1, mechanism="identity").mechanism.model
    noises = [(k, model.blocks[0].noise) for k in weights]
    _, margin = query_margins(model, np.array([weights], float), confidence)
    assert coverage(noises, margin[0]) >= confidence - 1e-9
    assert coverage(noises, margin[0] - reduce(math.gcd, weights)) < confidence + 1e-9


def test_the_interval_of_a_scaled_query_scales() -> None:
    line = sf.Line(0, 1, cells=3)
    model = sf.plan(sf.unbounded(line), sf.histogram(), 1, mechanism="identity").mechanism.model
    q = np.array([[1.0, 2.0, 0.0], [0.25, 0.5, 0.0], [4000.0, 8000.0, 0.0]])
    deviation, margin = query_margins(model, q, 0.95)
    assert np.allclose(deviation / deviation[0], [1, 0.25, 4000])
    assert np.allclose(margin / margin[0], [1, 0.25, 4000], rtol=1e-3)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
def test_the_smooth_family_is_exact_at_both_ends(confidence: float) -> None:
    from scipy.stats import laplace, norm

    one = np.ones(2)
    both = smooth_quantile(one, np.array([0.0, 3.0]), confidence)
    assert both[0] == pytest.approx(norm.ppf(0.5 + confidence / 2), rel=1e-7)
    assert both[1] == pytest.approx(laplace.ppf(0.5 + confidence / 2) / math.sqrt(2), rel=1e-7)


def test_rounded_coefficients_agree_with_a_finer_lattice() -> None:
    """Coefficients without a common step: against convolution on a lattice a hundred times finer than the noise's."""
    noise = DiscreteLaplace(1)  # type: ignore[arg-type]
    weights = (100, 37)
    margin = lattice_quantiles([(np.array([weights]) / 100, np.ones((1, 2)), noise)], np.ones(1), 0.95)
    exact = next(t for t in range(1000) if coverage([(k, noise) for k in weights], t) >= 0.95) / 100
    assert exact - 1 / 32 <= margin[0] <= exact + 3 / 32


# ---------------------------------------------------------------------------------------------- structure


@pytest.mark.parametrize(
    "name",
    ["identity", "haar", "hierarchy", "hat-products", "levels", "edges", "edge-haar", "edge-hierarchy", "edge-hats"],
)
@pytest.mark.parametrize("policy", [sf.bounded, sf.unbounded, lambda d: sf.within(d, delta=0.3, sources=[[0.1, 0.1]])])
def test_cells_are_answered_like_ranges_of_one_cell_and_like_queries(name: str, policy) -> None:  # type: ignore[no-untyped-def]
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(7, 6))
    model = sf.plan(policy(grid), sf.histogram(), 2, mechanism=name).mechanism.model
    deviation, margin = cell_margins(model, 0.9)
    low = np.argwhere(np.ones(grid.shape)).astype(float)
    for other_deviation, other_margin in (
        range_margins(model, low, low + 1, 0.9),
        query_margins(model, np.eye(42), 0.9),
    ):
        assert np.allclose(deviation.ravel(), other_deviation, rtol=1e-6)
        # From deviation 10 on a range may be rounded to a whole number, and hierarchies only bound their kurtosis.
        rough = other_deviation < SMOOTH
        assert np.allclose(
            margin.ravel()[rough], other_margin[rough], rtol=1e-6 if name in ("identity", "edges") else 0.08
        )
        assert np.allclose(margin.ravel(), other_margin, rtol=0.08, atol=0.5)


def test_noise_in_fine_steps_needs_no_law_written_out() -> None:
    """A single level of weight 128 on either axis: large noise, divided by 16,384. Steps too fine to see."""
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(6, 5))
    fine = {"blocks": [(1,), (1,)], "weights": [(128,), (128,)]}
    # A new plan would divide the weights by their common divisor; a file of an earlier version may have them.
    model = build("hierarchy", sf.unbounded(grid), Fraction(1), **fine).model
    _, margin = cell_margins(model, 0.95)
    assert margin == pytest.approx(math.log(20), rel=1e-3)  # the continuous Laplace distribution of scale 1


def test_an_interval_does_not_depend_on_what_else_is_asked() -> None:
    line = sf.Line(0, 1, cells=512)
    release = sf.plan(sf.threshold(line, 1), sf.ranges(), 1).publish(np.zeros(512, int), source=sf.SeededSource(1))
    ends = np.sort(np.random.default_rng(2).uniform(0, 1, (3000, 2)), axis=1)
    together = release.answer(ends)
    for i in (0, 17, 2999):
        alone = release.answer(ends[i])
        assert (alone.low, alone.high, alone.stderr) == (together.low[i], together.high[i], together.stderr[i])


@pytest.mark.parametrize("name", ["identity", "haar", "hierarchy", "hats", "edges"])
@pytest.mark.parametrize("epsilon", [0.01, 1, 20])
def test_what_is_public_has_no_error(name: str, epsilon: float) -> None:
    line = sf.Line(0, 1, cells=100)
    release = sf.plan(sf.bounded(line), sf.histogram(), epsilon, mechanism=name).publish(
        np.full(100, 3), source=sf.SeededSource(1)
    )
    total = release.answer((0, 1))
    assert total.value == pytest.approx(300, abs=1e-6)
    assert (total.stderr, total.high - total.low) == (0, 0)
    assert release.query(np.ones(100)).stderr == 0


def test_a_wider_confidence_never_gives_a_narrower_interval() -> None:
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(8, 8))
    for name in ("identity", "haar", "hierarchy", "edges", "edge-haar"):
        model = sf.plan(sf.within(grid, delta=0.2), sf.histogram(), 1, mechanism=name).mechanism.model
        widths = [cell_margins(model, c)[1] for c in (0.1, *CONFIDENCES, 1 - 1e-9)]
        assert all((a <= b).all() for a, b in pairwise(widths))


# ---------------------------------------------------------------------------------------------- simulation

# Errors of queries that share (almost) no noise, pooled over releases with one seeded stream. A false alarm is 4.9
# standard errors of a binomial proportion: less than one in a million.
Z = 4.9


PUBLISHED = 40  # of each, one by one
ROUNDED = 1e-3  # of the deviation: what estimators in fixed point round away


def errors(plan: sf.Plan, low: np.ndarray, high: np.ndarray, samples: int) -> np.ndarray:
    """The errors of ranges in cell coordinates, over as many releases as needed. A few are published; the noise of the
    others is carried to the ranges all at once, by what the mechanism makes of a unit of each noise.
    """
    shape = plan.policy.domain.shape
    counts, source, cell = np.full(shape, 5), sf.SeededSource(11), 1 / np.array(shape)
    ranges = np.concatenate([low * cell, high * cell], axis=1)
    found = []
    for _ in range(PUBLISHED):
        release = plan.publish(counts, source=source)
        value = release._view.table.fractional_sums(low, high)
        found.append(value - 5 * (high - low).prod(axis=1))
    assert np.allclose(release.answer(ranges).value, value)  # the ranges mean what they should

    mechanism, asked = plan.mechanism, boxes(shape, low, high)
    felt = [(asked @ moves, law) for moves, law in moved_by_noise(mechanism)]
    runs = -(-samples // len(low)) - PUBLISHED
    noise = [law.sample((runs, moves.shape[1]), source) for moves, law in felt]
    others = sum(eta @ moves.T for eta, (moves, _) in zip(noise, felt, strict=True))
    total = 0 if plan.policy.total_is_public else None
    for run in range(5):
        measured = mechanism.measure(np.zeros(math.prod(shape), dtype=np.int64), [eta[run] for eta in noise])
        exact = asked @ mechanism.estimate(measured, total)
        assert np.allclose(others[run], exact, atol=ROUNDED * np.std(others))
    return np.concatenate([found, others])


CELLS_1D = np.arange(3, 128, 8, dtype=float)[:, None]
CELLS_2D = np.stack(np.meshgrid(*[np.arange(1, 16, 4.0)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)


LINE, GRID = sf.Line(0, 1, cells=128), sf.Grid(bounds=(0, 0, 1, 1), shape=(16, 16))
POLICIES = {
    "bounded": sf.bounded(LINE),
    "unbounded": sf.unbounded(LINE),
    "threshold": sf.threshold(LINE, 2),
    "within": sf.within(GRID, delta=0.1),
}
SIMULATED = [(p, m) for p in POLICIES for m in ("identity", "hierarchy", "haar", "edges")]
SIMULATED += [
    ("bounded", "hats"),
    ("unbounded", "hats"),
    ("within", "levels"),
    ("within", "hat-products"),
    ("within", "edge-haar"),
    ("within", "edge-hierarchy"),
    ("within", "edge-hats"),
    ("within", "diagonal-hats"),
    ("threshold", "blocks"),
    ("threshold", "policy-edges"),
]


@pytest.mark.slow  # 20,000 errors of each; between these ε the exact laws of test_release_coverage hold alone
@pytest.mark.parametrize("epsilon", [0.2, 3])
@pytest.mark.parametrize(("policy", "name"), SIMULATED)
def test_cells_lie_in_their_intervals_as_often_as_promised(policy: str, name: str, epsilon: float) -> None:
    """20,000 errors each: coverage at least 95 % - 0.76 %, deviation as stated within 4.9 of its standard errors."""
    samples = 20_000
    options = {"branching": 4} if name == "hierarchy" else {}
    plan = sf.plan(POLICIES[policy], sf.histogram(), epsilon, mechanism=name, **options)
    low = CELLS_2D if policy == "within" else CELLS_1D
    deviation, margin = range_margins(plan.mechanism.model, low, low + 1, 0.95)
    found = errors(plan, low, low + 1, samples)
    held = (np.abs(found) <= margin + 1e-9).mean()
    assert held >= 0.95 - Z * math.sqrt(0.05 * 0.95 / samples)
    excess = max(b.noise.fourth_cumulant / b.noise.variance**2 for b in plan.mechanism.model.blocks)
    ratio = math.sqrt(((found / deviation) ** 2).mean())
    assert abs(ratio - 1) < Z * math.sqrt((2 + excess) / (4 * samples)) + 0.002  # the cells share a little noise
    if deviation.min() > SMOOTH:  # no steps to speak of: neither too wide, and 12 % too narrow is noticed
        assert held <= 0.965
        assert (np.abs(found) <= 0.88 * margin).mean() < 0.95 - Z * math.sqrt(0.05 * 0.95 / samples)


LENGTHS = [
    ("bounded", "identity", 40),
    ("bounded", "haar", 40),
    ("bounded", "hats", 40),
    ("unbounded", "identity", 3),
    ("unbounded", "hierarchy", 40),
    ("unbounded", "haar", 40),
    ("unbounded", "hats", 3),
    ("unbounded", "hats", 40),
    ("threshold", "edges", 3),
    ("threshold", "edges", 40),
    ("threshold", "blocks", 40),
    ("threshold", "policy-edges", 40),
]


@pytest.mark.slow  # 60,000 errors of each
@pytest.mark.parametrize(("policy", "name", "length"), LENGTHS)
def test_ranges_hold_between_94_and_a_half_and_96_and_a_half_per_cent(policy: str, name: str, length: int) -> None:
    """60,000 errors each at ε = 0.15: 0.5 % below and above what is due is 5.6 standard errors. 10 % less is seen."""
    samples = 60_000
    line = sf.Line(0, 1, cells=1024)
    given = {"bounded": sf.bounded(line), "unbounded": sf.unbounded(line), "threshold": sf.threshold(line, 3)}[policy]
    plan = sf.plan(given, sf.ranges(), 0.15, mechanism=name)
    low = np.arange(7, 970, 48, dtype=float)[:, None]
    _, margin = range_margins(plan.mechanism.model, low, low + length, 0.95)
    found = np.abs(errors(plan, low, low + length, samples))
    assert 0.945 <= (found <= margin).mean() <= 0.965
    assert (found <= 0.9 * margin).mean() < 0.945


# ---------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -0.1, float("nan"), "0.95", True, None])
def test_a_confidence_outside_zero_and_one_is_refused(confidence: object) -> None:
    release = sf.plan(sf.unbounded(sf.Line(0, 1, cells=2)), sf.histogram(), 1).publish(np.zeros(2, int))
    for ask in (
        lambda: release.answer((0, 1), confidence=confidence),  # type: ignore[arg-type]
        lambda: release.cells(confidence=confidence),  # type: ignore[arg-type]
        lambda: release.query([1, 1], confidence=confidence),  # type: ignore[arg-type]
    ):
        with pytest.raises(sf.InvalidInput) as refusal:
            ask()
        assert str(refusal.value) == f"confidence={confidence!r} must lie between 0 and 1, both excluded."
