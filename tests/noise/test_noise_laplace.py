"""The discrete Laplace distribution: its formulas against exact sums, its draws against its formulas."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from sfumato.errors import InvalidInput
from sfumato.noise import DiscreteLaplace, Geometric, SeededSource, SystemSource, laplace
from sfumato.noise.expansion import SMALLEST_RATE, expansion

FALSE_ALARM = 1e-9  # of one chi-square test; the module runs fewer than a hundred
RATES = [1e-9, 1e-6, 1e-3, 0.1, 1, 5, 40, 700]


def exact(rate):
    return mpmath.mpf(rate.numerator) / rate.denominator


def close(value, oracle, tolerance=1e-12):
    return abs(mpmath.mpf(float(value)) - oracle) <= tolerance * abs(oracle)


# --- by hand and against exact sums ---------------------------------------------------------------------------------


def test_probabilities_by_hand():
    """α = ½: the weights are 1, ½, ¼, … on either side, their sum 3."""
    noise = DiscreteLaplace(Fraction(math.log(2)))
    assert noise.pmf([0, 1, -1, 2, 0.5]) == pytest.approx([1 / 3, 1 / 6, 1 / 6, 1 / 12, 0])
    assert noise.cdf([-1, 0, 0.7, 1]) == pytest.approx([1 / 3, 2 / 3, 2 / 3, 5 / 6])
    assert noise.variance == pytest.approx(4)
    assert noise.std == pytest.approx(2)
    assert noise.characteristic(math.pi) == pytest.approx(1 / 9)


@pytest.mark.parametrize("rate", RATES)
def test_formulas_have_twelve_digits_at_every_rate(rate):
    noise = DiscreteLaplace(rate)
    with mpmath.workdps(60):
        alpha = mpmath.exp(-exact(noise.rate))
        assert close(noise.scale, 1 / exact(noise.rate))
        assert close(noise.variance, 2 * alpha / (1 - alpha) ** 2)
        assert close(noise.std, mpmath.sqrt(2 * alpha) / (1 - alpha))
        assert close(noise.fourth_cumulant, 2 * alpha * (1 + 4 * alpha + alpha**2) / (1 - alpha) ** 4)
        largest = min(600 / rate, 3.0 / rate + 3)
        for k in {0, 1, 2, round(noise.scale), round(largest)}:
            if k * rate > 700:
                continue  # below the smallest normal double
            assert close(noise.pmf(k), (1 - alpha) / (1 + alpha) * alpha**k)
            assert noise.pmf(-k) == noise.pmf(k)
            assert close(noise.cdf(k), 1 - alpha ** (k + 1) / (1 + alpha))
            if k:
                assert close(noise.cdf(-k), alpha**k / (1 + alpha))
        for t in (1e-9, 1e-3, 1.0, math.pi, 100.0):
            cosine = mpmath.cos(mpmath.mpf(t))
            assert close(noise.characteristic(t), (1 - alpha) ** 2 / (1 - 2 * alpha * cosine + alpha**2))
    assert noise.characteristic(0.0) == 1


@pytest.mark.parametrize("rate", [0.1, 1, 5])
def test_moments_are_those_of_the_probabilities(rate):
    noise = DiscreteLaplace(rate)
    k = np.arange(-int(60 / rate), int(60 / rate) + 1)
    mass = noise.pmf(k)
    assert math.fsum(mass) == pytest.approx(1, rel=1e-12)
    assert np.cumsum(mass) == pytest.approx(noise.cdf(k), rel=1e-9)
    variance, fourth = math.fsum(mass * k**2), math.fsum(mass * k.astype(float) ** 4)
    assert noise.variance == pytest.approx(variance, rel=1e-12)
    assert noise.fourth_cumulant == pytest.approx(fourth - 3 * variance**2, rel=1e-9)
    for t in (0.1, 1.0, 3.0):
        assert noise.characteristic(t) == pytest.approx(math.fsum(mass * np.cos(t * k)), rel=1e-9)


def test_formulas_keep_the_shape_of_their_argument():
    noise = DiscreteLaplace(1)
    for function in (noise.pmf, noise.cdf, noise.characteristic):
        assert function(np.zeros((2, 3))).shape == (2, 3)
        assert function(0).shape == ()


def test_a_rate_beyond_floating_point_is_a_point_mass():
    noise = DiscreteLaplace(Fraction(10**400))
    assert noise.variance == noise.fourth_cumulant == noise.scale == 0
    assert noise.pmf([0, 1]).tolist() == [1, 0]
    assert noise.cdf([-1, 0]).tolist() == [0, 1]
    assert noise.characteristic(2.0) == 1
    assert noise.quantile(0.99) == 0


def test_discrete_noise_has_attainable_coverages_only():
    """At scale 1 the interval ±2 holds 92.7 % and ±3 holds 97.3 %: 95 % takes the latter."""
    noise = DiscreteLaplace(1)
    assert noise.pmf(np.arange(-2, 3)).sum() == pytest.approx(0.927, abs=5e-4)
    assert noise.pmf(np.arange(-3, 4)).sum() == pytest.approx(0.973, abs=5e-4)
    assert noise.quantile(0.92) == 2
    assert noise.quantile(0.95) == 3


@given(
    st.fractions(min_value=Fraction(1, 10**16), max_value=50, max_denominator=10**16),
    st.floats(min_value=1e-300, max_value=1 - 1e-16),
)
@settings(max_examples=200, deadline=None)
def test_the_quantile_is_the_smallest_that_covers(rate, coverage):
    noise = DiscreteLaplace(rate)
    t = noise.quantile(coverage)
    with mpmath.workdps(360):
        alpha = mpmath.exp(-exact(rate))
        wanted = 1 - mpmath.mpf(repr(coverage))
        assert 2 * alpha ** (t + 1) / (1 + alpha) <= wanted
        assert t == 0 or 2 * alpha**t / (1 + alpha) > wanted


# --- draws ----------------------------------------------------------------------------------------------------------


def p_value(values, noise):
    """Chi-square of the values against the distribution, in cells of at least twenty expected values each.

    Rarer cells are taken together with the next: four values where a fifth of one is expected would be an alarm. With
    twenty the tail of the statistic is at most twice that of its limit, at all rates of this module.
    """
    count = values.size
    reach = noise.quantile(1 - 20 / count)
    edges = np.unique(np.linspace(-reach, reach, 301).round().astype(np.int64))  # a cell ends with its edge
    cumulative = np.concatenate([[0], noise.cdf(edges), [1]])
    expected = np.diff(cumulative) * count
    observed = np.bincount(np.searchsorted(edges, values.reshape(-1)), minlength=expected.size)
    rare = np.argsort(expected)[: 1 + np.count_nonzero(expected < 20)]
    observed, expected = (np.append(np.delete(cells, rare), cells[rare].sum()) for cells in (observed, expected))
    assert expected.size > 2
    return chi2.sf(((observed - expected) ** 2 / expected).sum(), expected.size - 1)


@pytest.mark.parametrize(
    "rate", [Fraction(8), Fraction(1), Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10**12)], ids=str
)
def test_draws_fit_their_scale_and_no_scale_ten_percent_off(rate):
    """2·10⁶ values in up to 301 cells. The noncentrality of a scale off by a tenth is above 300 at all these rates."""
    noise = DiscreteLaplace(rate)
    values = noise.sample(2_000_000, SystemSource())
    assert p_value(values, noise) > FALSE_ALARM
    assert p_value(values, DiscreteLaplace(rate * Fraction(10, 9))) < FALSE_ALARM
    assert p_value(values, DiscreteLaplace(rate * Fraction(10, 11))) < FALSE_ALARM


@pytest.mark.parametrize("rate", [SMALLEST_RATE, Fraction(2, 7)], ids=["smallest", "2/7"])
def test_draws_fit_at_odd_rates(rate):
    """5·10⁵ values; at the smallest rate nothing wraps."""
    noise = DiscreteLaplace(rate)
    values = noise.sample(500_000, SystemSource())
    assert p_value(values, noise) > FALSE_ALARM
    assert np.abs(values).max() < 2**61


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 100)], ids=str)
def test_small_draws_fit_their_scale_and_no_scale_ten_percent_off(rate):
    """500 draws of 1,000 values each, which take another path than large draws do."""
    noise = DiscreteLaplace(rate)
    source = SystemSource()
    values = np.concatenate([noise.sample(1000, source) for _ in range(500)])
    assert p_value(values, noise) > FALSE_ALARM
    assert p_value(values, DiscreteLaplace(rate * Fraction(10, 9))) < FALSE_ALARM
    assert p_value(values, DiscreteLaplace(rate * Fraction(10, 11))) < FALSE_ALARM


@pytest.mark.parametrize("row", range(2, 7))
def test_one_wrong_bit_probability_is_caught(monkeypatch, row):
    """2·10⁶ values at scale 10; one bit of both halves is one more often by 8/256.

    The lowest two bits are tested in the halves themselves: in the difference the same error of both nearly cancels.
    """
    noise = DiscreteLaplace(Fraction(1, 10))
    broken = expansion(noise.rate).copy()
    broken[row, 0] += 8
    monkeypatch.setattr(laplace, "expansion", lambda rate: broken)
    assert p_value(noise.sample(2_000_000, SystemSource()), noise) < FALSE_ALARM


@pytest.mark.parametrize("lag", [1, 2, 8, 63, 64, 65, 1024, 52428])
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 10)], ids=str)
def test_values_at_a_distance_are_independent(rate, lag):
    """10⁶ values, each with the one `lag` places on, in a 5 × 5 table of equally likely cells as far as can be."""
    noise = DiscreteLaplace(rate)
    values = noise.sample(1_000_000, SystemSource())
    cell = np.searchsorted(
        np.unique([-noise.quantile(0.6), -noise.quantile(0.2), noise.quantile(0.2), noise.quantile(0.6)]), values
    )
    assert contingency(cell[:-lag], cell[lag:]) > FALSE_ALARM


def contingency(first, second):
    """The chi-square p-value of independence."""
    _, first = np.unique(first, return_inverse=True)
    _, second = np.unique(second, return_inverse=True)
    rows, columns = first.max() + 1, second.max() + 1
    observed = np.bincount(first * columns + second, minlength=rows * columns).reshape(rows, columns)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / observed.sum()
    assert expected.min() > 20
    return chi2.sf(((observed - expected) ** 2 / expected).sum(), (rows - 1) * (columns - 1))


def test_the_two_halves_are_independent_and_geometric():
    """10⁶ pairs at scale 10, in a table of 8 × 8 cells; each half against the geometric weights."""
    noise = DiscreteLaplace(Fraction(1, 10))
    plus, minus = noise.sample_pair(1_000_000, SystemSource())
    edges = [1, 2, 4, 7, 10, 14, 21]
    assert contingency(np.searchsorted(edges, plus), np.searchsorted(edges, minus)) > FALSE_ALARM
    weights = -np.expm1(-0.1) * np.exp(-0.1 * np.arange(80))
    for half in (plus, minus):
        observed = np.bincount(np.minimum(half, 80), minlength=81)
        expected = np.append(weights, np.exp(-8)) * 1_000_000
        assert chi2.sf(((observed - expected) ** 2 / expected).sum(), 80) > FALSE_ALARM


@pytest.mark.parametrize("size", [10, (3, 50), 200_000])
def test_the_pair_subtracts_to_the_sample(size):
    noise = DiscreteLaplace(Fraction(1, 10))
    plus, minus = noise.sample_pair(size, SeededSource(4))
    assert plus.min() >= 0
    assert minus.min() >= 0
    assert np.array_equal(plus - minus, noise.sample(size, SeededSource(4)))


@pytest.mark.parametrize(("size", "shape"), [(0, (0,)), (5, (5,)), ((), ()), ((2, 3), (2, 3)), ((4, 0), (4, 0))])
def test_shapes(size, shape):
    noise = DiscreteLaplace(1)
    values = noise.sample(size, SystemSource())
    assert values.shape == shape
    assert values.dtype == np.int64
    assert [half.shape for half in noise.sample_pair(size, SystemSource())] == [shape, shape]


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 1000)], ids=str)
def test_memory_is_the_result_and_a_constant_buffer(rate):
    noise = DiscreteLaplace(rate)
    noise.sample(10, SystemSource())
    peaks = []
    for count in (1_000_000, 3_000_000):
        tracemalloc.start()
        noise.sample(count, SystemSource())
        peaks.append(tracemalloc.get_traced_memory()[1] - 8 * count)
        tracemalloc.stop()
    assert max(peaks) < 4 << 20
    assert abs(peaks[1] - peaks[0]) < 1 << 18


# --- calibration and refusals ---------------------------------------------------------------------------------------


def test_calibration_is_exact():
    assert DiscreteLaplace.calibrated(epsilon=0.3, sensitivity=4).rate == Fraction(3, 40)
    assert DiscreteLaplace.calibrated(epsilon="1/3", sensitivity=np.int64(2)).rate == Fraction(1, 6)
    assert DiscreteLaplace.calibrated(epsilon=1, sensitivity=2).scale == 2.0


def test_a_shift_by_the_sensitivity_costs_epsilon_and_no_more():
    noise = DiscreteLaplace.calibrated(epsilon=1, sensitivity=3)
    k = np.arange(-200, 201)
    loss = np.log(noise.pmf(k)) - np.log(noise.pmf(k + 3))
    assert np.abs(loss).max() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("rate", [SMALLEST_RATE, Fraction(1, 10), Fraction(1)], ids=str)
def test_a_release_is_within_two_to_the_minus_hundred(rate):
    noise = DiscreteLaplace(rate)
    assert noise.distance_bound(1 << 40) < Fraction(1, 1 << 100)
    assert noise.distance_bound(7) == 2 * Geometric(rate).distance_bound(7)


@pytest.mark.parametrize("sensitivity", [0, -1, 1.5, True])
def test_a_sensitivity_that_is_not_a_positive_integer_is_refused(sensitivity):
    with pytest.raises(InvalidInput, match=rf"^sensitivity={sensitivity!r} must be a whole number of at least 1\."):
        DiscreteLaplace.calibrated(epsilon=1, sensitivity=sensitivity)


def test_an_epsilon_that_is_not_positive_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        DiscreteLaplace.calibrated(epsilon=0, sensitivity=1)
    assert str(refusal.value) == "epsilon=0 must be greater than zero. Nothing was drawn or recorded."


def test_a_rate_too_small_for_64_bits_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        DiscreteLaplace(Fraction(1, 10**18))
    assert str(refusal.value) == (
        "rate=1e-18 is too small: the noise could exceed 2^61 and no longer fit 64-bit integers. "
        "Nothing was drawn or recorded. Use a rate (epsilon / sensitivity) of at least 4.3e-17."
    )


@pytest.mark.parametrize(
    ("size", "named"), [(-1, -1), ((2, -3), -3), ((2.0,), 2.0), ((1 << 21, 1 << 20), 1 << 41), ([3], [3])]
)
def test_a_size_out_of_range_is_refused_before_anything_is_drawn(size, named):
    class Untouched:
        private = False

        def words(self, count):
            raise AssertionError("drawn")

    for method in (DiscreteLaplace(1).sample, DiscreteLaplace(1).sample_pair):
        with pytest.raises(InvalidInput) as refusal:
            method(size, Untouched())
        assert str(refusal.value) == (
            f"size={named!r} must be a whole number from 0 to 2^40. Nothing was drawn or recorded."
        )


def test_a_generator_that_is_not_a_source_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        DiscreteLaplace(1).sample(3, np.random.default_rng(1))
    assert str(refusal.value) == (
        "source=Generator is not a source of random words. Nothing was drawn or recorded. "
        "Use SystemSource(), or SeededSource(seed) in tests."
    )


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5])
def test_a_coverage_out_of_range_is_refused(coverage):
    with pytest.raises(InvalidInput) as refusal:
        DiscreteLaplace(1).quantile(coverage)
    assert str(refusal.value) == f"coverage={coverage!r} must lie between 0 and 1, both excluded."
