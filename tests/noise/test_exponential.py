"""Uniform integers, exponential weights in fixed point, and noise to many digits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidInput
from sfumato.noise import SeededSource
from sfumato.noise.continuous import cauchy, laplace
from sfumato.noise.exponential import BITS, decay, decays, happens
from sfumato.noise.integers import random_below, random_bits

LIMIT = 5.5  # standard deviations: false alarm 4·10⁻⁸


class Scripted:
    """Words that were written down beforehand."""

    private = False

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


# --- uniform integers -------------------------------------------------------------------------------------------------


def test_bits_are_the_words_lowest_first():
    assert random_bits(64, Scripted(5)) == 5
    assert random_bits(70, Scripted(5, 0xFF)) == 5 + (0x3F << 64)
    assert random_bits(0, Scripted()) == 0


def test_below_draws_again_until_it_fits():
    source = Scripted(7, 6, 5, 1)
    assert random_below(6, source) == 5
    assert source.left == [1]
    assert random_below(1, Scripted()) == 0


@given(st.integers(1, 1 << 300), st.integers(0, 1000))
def test_below_is_below(limit, seed):
    assert 0 <= random_below(limit, SeededSource(seed)) < limit


@pytest.mark.slow
def test_below_is_uniform():
    """60,000 draws below 6: the worst of six frequencies within 5.5 standard deviations, false alarm 3·10⁻⁷."""
    source = SeededSource(5)
    counts = np.bincount([random_below(6, source) for _ in range(60_000)], minlength=6)
    assert np.abs((counts - 10_000) / math.sqrt(60_000 * 5 / 36)).max() < LIMIT


@pytest.mark.parametrize("wrong", [0, -3, 2.0, True, "8"])
def test_a_limit_that_is_no_positive_number_is_refused(wrong):
    with pytest.raises(InvalidInput) as refusal:
        random_below(wrong, SeededSource(1))
    assert str(refusal.value) == f"limit={wrong!r} must be a whole number of at least 1. Nothing was drawn."


@pytest.mark.parametrize("wrong", [-1, 2.0, True, "8"])
def test_a_count_of_bits_that_is_no_number_is_refused(wrong):
    with pytest.raises(InvalidInput) as refusal:
        random_bits(wrong, SeededSource(1))
    assert str(refusal.value) == f"count={wrong!r} must be a whole number of at least 0. Nothing was drawn."


# --- weights ----------------------------------------------------------------------------------------------------------


@given(st.fractions(0, 200, max_denominator=10**9))
def test_a_weight_is_the_exponential_rounded_down(exponent):
    with mpmath.workprec(2000):
        exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * mpmath.mpf(2) ** BITS
        assert int(mpmath.floor(exact)) - 1 <= decay(exponent) <= int(mpmath.floor(exact))


@pytest.mark.parametrize("exponent", [Fraction(1, 10**30), Fraction(10**300), Fraction(178), Fraction(0)], ids=str)
def test_extreme_weights(exponent):
    expected = {Fraction(0): 1 << BITS, Fraction(178): 0, Fraction(10**300): 0}
    if exponent in expected:
        assert decay(exponent) == expected[exponent]
    else:
        assert 0 < (1 << BITS) - decay(exponent) < 1 << (BITS - 99)


def test_weights_in_a_row():
    assert decays(Fraction(1, 3), 4) == tuple(decay(Fraction(k, 3)) for k in range(4))


@pytest.mark.slow
def test_an_event_has_its_probability():
    """20,000 draws at exp(-1): within 5.5 standard deviations; exp(-0.9) and exp(-1.1) are more than 9 away."""
    source = SeededSource(2)
    count = sum(happens(Fraction(1), source) for _ in range(20_000))

    def off(p):
        return abs(count - 20_000 * p) / math.sqrt(20_000 * p * (1 - p))

    assert off(math.exp(-1)) < LIMIT
    assert min(off(math.exp(-0.9)), off(math.exp(-1.1))) > LIMIT


# --- many digits ------------------------------------------------------------------------------------------------------


def kolmogorov(values, cdf):
    """√n times the largest distance of the empirical from the true distribution; above 2.96 once in 2·10⁷."""
    values = np.sort(values)
    n = len(values)
    true = cdf(values)
    gap = max(np.abs(true - np.arange(n) / n).max(), np.abs(true - np.arange(1, n + 1) / n).max())
    return math.sqrt(n) * gap


CDF = {
    laplace: lambda z: np.where(z < 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2),
    cauchy: lambda z: 0.5 + np.arctan(z) / math.pi,
}


@pytest.mark.slow
@pytest.mark.parametrize("draw", [laplace, cauchy], ids=["laplace", "cauchy"])
def test_draws_have_their_distribution_and_a_tenth_more_or_less_scale_is_seen(draw):
    """40,000 draws; Kolmogorov's statistic, false alarm 5·10⁻⁸. Half of them lie within the quartiles, to 5.5 standard
    deviations; at a scale off by a tenth the number is 13 deviations away or more."""
    source = SeededSource(11)
    values = np.array([float(draw(source)) for _ in range(40_000)])
    assert kolmogorov(values, CDF[draw]) < 2.96
    middle = 1.0 if draw is cauchy else math.log(2)

    def off(scale):
        inside = np.count_nonzero(np.abs(values) <= middle * scale)
        return abs(inside - 20_000) / 100

    assert off(1) < LIMIT
    assert min(off(0.9), off(1.1)) > LIMIT


def test_laplace_by_hand():
    """All digits zero: u = 2⁻²⁵⁷, the largest value there is. The lowest bit is the sign."""
    top = Fraction(laplace(Scripted(0, 0, 0, 0, 0)))
    assert float(top) == pytest.approx(257 * math.log(2), rel=1e-15)
    assert laplace(Scripted(1, 0, 0, 0, 0)) == -top  # to the last digit: the sign costs none
    ones = (1 << 64) - 1
    nearly_zero = laplace(Scripted(ones - 1, ones, ones, ones, 1))
    assert 0 <= nearly_zero < Fraction(1, 10**50)


def test_cauchy_by_hand():
    """A point outside the disc is drawn again; the lowest bit is the sign."""
    ones = (1 << 64) - 1
    outside = [ones] * 8 + [1]
    value = cauchy(Scripted(*outside, 1, 0, 0, 0, 0, 0, 0, 0, 0))
    assert value == -1  # across = up = 1
