"""The geometric distribution: bits, bound, limits, refusals."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.noise import Geometric, SeededSource, SystemSource, geometric
from sfumato.noise.expansion import SMALLEST_RATE, bits, expansion

TENTH = Fraction(1, 10)
LIMIT = 6.5  # standard deviations


@pytest.mark.parametrize("rate", [SMALLEST_RATE, Fraction(1, 10**9), TENTH, Fraction(1), Fraction(700)], ids=str)
def test_a_release_of_any_promised_size_is_within_its_distance(rate):
    assert 0 < Geometric(rate).distance_bound(1 << 40) < Fraction(1, 1 << 102)
    assert Geometric(rate).distance_bound(10) == 10 * Geometric(rate).distance_bound(1)
    assert Geometric(rate).distance_bound(0) == 0


def probabilities(rate, count):
    """Of the bits that are one at least 2,000 times among `count` values, on average."""
    every = [1 / (1 + np.exp(float(rate) * 2.0**bit)) for bit in range(bits(rate))]
    return np.array([probability for probability in every if probability * count > 2000])


def standardised(values, rate):
    """The bits of the values, one row each, less their mean and over their standard deviation if the rate is true."""
    expected = probabilities(rate, values.size)
    rows = np.array([(values >> bit) & 1 for bit in range(expected.size)], dtype=np.float32)
    rows -= expected[:, None].astype(np.float32)
    rows /= np.sqrt(expected * (1 - expected))[:, None].astype(np.float32)
    return rows


def frequencies_off(values, rate):
    """By how many standard deviations the frequency of the worst bit is off."""
    expected = probabilities(rate, values.size)
    ones = np.array([np.count_nonzero(values & (1 << bit)) for bit in range(expected.size)])
    return np.abs((ones - values.size * expected) / np.sqrt(values.size * expected * (1 - expected))).max()


@pytest.mark.parametrize("rate", [Fraction(1), TENTH, Fraction(1, 10**6)], ids=str)
def test_each_bit_has_its_probability_and_no_two_are_correlated(rate):
    """2·10⁶ values, 6.5 standard deviations: false alarm 10⁻¹⁰ for each of fewer than a thousand figures.

    The product of two rare bits is far from normal: only pairs that are one together a thousand times on average count.
    """
    count = 2_000_000
    values = Geometric(rate).sample(count, SystemSource())
    assert frequencies_off(values, rate) < LIMIT
    rows = standardised(values, rate)
    joint = np.outer(probabilities(rate, count), probabilities(rate, count)) * count
    pairs = np.triu(joint > 1000, k=1)
    assert pairs.any()
    assert np.abs((rows @ rows.T)[pairs]).max() < LIMIT * np.sqrt(count)


@pytest.mark.parametrize("rate", [TENTH, Fraction(1, 10**6)], ids=str)
def test_bits_of_a_rate_ten_percent_off_are_rejected(rate):
    """2·10⁶ values: the bit of weight near the scale moves by more than 0.015, over forty standard deviations."""
    values = Geometric(rate).sample(2_000_000, SystemSource())
    assert frequencies_off(values, rate * Fraction(9, 10)) > LIMIT
    assert frequencies_off(values, rate * Fraction(11, 10)) > LIMIT


@pytest.mark.parametrize("row", range(7))
def test_one_wrong_bit_probability_is_caught(monkeypatch, row):
    """2·10⁶ values at scale 10. One bit is one more often by 2/256, at least twenty standard deviations."""
    broken = expansion(TENTH).copy()
    broken[row, 0] += 2
    monkeypatch.setattr(geometric, "expansion", lambda rate: broken)
    assert frequencies_off(Geometric(TENTH).sample(2_000_000, SystemSource()), TENTH) > LIMIT


def test_a_wrong_second_digit_is_caught(monkeypatch):
    """10⁷ values at scale 10. One bit is one more often by 128/65536, at least twelve standard deviations."""
    broken = expansion(TENTH).copy()
    assert broken[3, 1] < 128
    broken[3, 1] += 128
    monkeypatch.setattr(geometric, "expansion", lambda rate: broken)
    assert frequencies_off(Geometric(TENTH).sample(10_000_000, SystemSource()), TENTH) > LIMIT


@pytest.mark.parametrize("size", [5, 500_000])
def test_values_are_never_negative(size):
    values = Geometric(Fraction(1, 10**12)).sample(size, SystemSource())
    assert values.min() >= 0


def test_tails_beyond_32_bits_do_not_wrap():
    """Scale 10¹², 10⁵ values. None above 10¹²: 0.64 to the power of 10⁵; one above 2⁴⁷: 10⁵·exp(-140)."""
    values = Geometric(Fraction(1, 10**12)).sample(100_000, SystemSource())
    assert 10**12 < values.max() < 2**47
    assert (values > 2**32).mean() > 0.99
    assert abs(values.mean() / 1e12 - 1) < 6 / np.sqrt(100_000)


def test_the_largest_scale_fits_64_bits():
    values = Geometric(SMALLEST_RATE).sample(100_000, SystemSource())
    assert values.min() >= 0
    assert values.max() < 2**61
    assert abs(values.mean() * float(SMALLEST_RATE) - 1) < 6 / np.sqrt(100_000)


def test_a_rate_beyond_the_bound_gives_zeros():
    assert not Geometric(Fraction(700)).sample(5000, SystemSource()).any()


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 1000)], ids=str)
def test_memory_is_the_result_and_a_constant_buffer(rate):
    noise = Geometric(rate)
    noise.sample(10, SystemSource())
    peaks = []
    for count in (1_000_000, 3_000_000):
        tracemalloc.start()
        noise.sample(count, SystemSource())
        peaks.append(tracemalloc.get_traced_memory()[1] - 8 * count)
        tracemalloc.stop()
    assert max(peaks) < 4 << 20
    assert abs(peaks[1] - peaks[0]) < 1 << 18


def test_sizes_of_all_kinds():
    noise = Geometric(TENTH)
    for size in (0, 1, 63, 64, 65, 1024, 1025, 60_000):
        values = noise.sample(size, SystemSource())
        assert values.shape == (size,)
        assert values.dtype == np.int64
    assert noise.sample(np.int64(3), SystemSource()).shape == (3,)


def test_seeded_values_are_repeatable():
    assert np.array_equal(
        Geometric(TENTH).sample(100_000, SeededSource(3)), Geometric(TENTH).sample(100_000, SeededSource(3))
    )


def test_a_rate_is_read_exactly():
    assert Geometric(0.1) == Geometric(Fraction(1, 10)) == Geometric("1/10")
    assert hash(Geometric(0.1)) == hash(Geometric(Fraction(1, 10)))


@pytest.mark.parametrize("size", [-1, 2.0, True, None, 2**40 + 1, (3,)])
def test_a_size_out_of_range_is_refused(size):
    for refused in (
        lambda: Geometric(TENTH).sample(size, SystemSource()),
        lambda: Geometric(TENTH).distance_bound(size),
    ):
        with pytest.raises(InvalidInput) as refusal:
            refused()
        assert str(refusal.value) == (
            f"size={size!r} must be a whole number from 0 to 2^40. Nothing was drawn or recorded."
        )


@pytest.mark.parametrize("rate", [0, -1, Fraction(-1, 3)])
def test_a_rate_that_is_not_positive_is_refused(rate):
    with pytest.raises(InvalidInput) as refusal:
        Geometric(rate)
    assert str(refusal.value) == f"rate={rate!r} must be greater than zero. Nothing was drawn or recorded."


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), "x", None, True])
def test_a_rate_that_is_not_a_number_is_refused(rate):
    with pytest.raises(InvalidInput, match=r"^rate=.* is not a (finite )?number\."):
        Geometric(rate)


def test_a_rate_too_small_for_64_bits_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        Geometric(Fraction(1, 10**17))
    assert str(refusal.value) == (
        "rate=1e-17 is too small: the noise could exceed 2^61 and no longer fit 64-bit integers. "
        "Nothing was drawn or recorded. Use a rate (epsilon / sensitivity) of at least 4.3e-17."
    )


def test_a_generator_that_is_not_a_source_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        Geometric(TENTH).sample(3, np.random.default_rng(1))
    assert str(refusal.value) == (
        "source=Generator is not a source of random words. Nothing was drawn or recorded. "
        "Use SystemSource(), or SeededSource(seed) in tests."
    )
