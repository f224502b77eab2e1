"""The digits of the bit probabilities, against an independent multiple-precision library."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidInput
from sfumato.noise import expansion as module
from sfumato.noise.expansion import DIGIT_BYTES, MAX_BITS, SMALLEST_RATE, TAIL, bits, distance, expansion

RATES = [
    Fraction(1),
    Fraction(1, 10),
    Fraction(1, 1000),
    Fraction(1, 3),
    Fraction(7, 5),
    Fraction(1, 10**9),
    Fraction(1, 10**12),
    SMALLEST_RATE,
    Fraction(99),
    Fraction(1, 2**40),
    Fraction(123456789, 1000003),
]


def numbers(table):
    return [int.from_bytes(row.tobytes(), "big") for row in table]


def oracle(rate, bit):
    """⌊p·2^D⌋ from 300 decimal digits."""
    with mpmath.workdps(300):
        exponent = mpmath.mpf(rate.numerator) / rate.denominator * mpmath.mpf(2) ** bit
        return int(mpmath.floor(mpmath.mpf(2) ** (8 * DIGIT_BYTES) / (1 + mpmath.exp(exponent))))


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_digits_are_those_of_the_oracle(rate):
    table = expansion(rate)
    assert table.shape == (bits(rate), DIGIT_BYTES)
    assert numbers(table) == [oracle(rate, bit) for bit in range(bits(rate))]


@given(st.fractions(min_value=Fraction(1, 10**15), max_value=120, max_denominator=10**18))
@settings(max_examples=60, deadline=None)
def test_digits_are_those_of_the_oracle_at_any_rate(rate):
    assert numbers(expansion(rate)) == [oracle(rate, bit) for bit in range(bits(rate))]


@pytest.mark.parametrize("argument", [Fraction(0), Fraction(1, 10**30), Fraction(1, 3), Fraction(1, 2)])
@pytest.mark.parametrize("precision", [8, 64, 300])
def test_the_exponential_is_enclosed(argument, precision):
    low, high = module._exponential(argument, precision)
    with mpmath.workdps(400):
        exact = mpmath.exp(mpmath.mpf(argument.numerator) / argument.denominator) * mpmath.mpf(2) ** precision
        assert low <= exact <= high
    assert high - low < 4 * precision


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(3), Fraction(17, 2)], ids=str)
@pytest.mark.parametrize("precision", [16, 64, 500])
def test_the_powers_are_enclosed(rate, precision):
    with mpmath.workdps(3000):
        for bit, (low, high) in enumerate(module._powers(rate, 6, precision)):
            exact = mpmath.exp(mpmath.mpf(rate.numerator) / rate.denominator * 2**bit) * mpmath.mpf(2) ** precision
            assert low <= exact <= high


def test_squarings_round_outwards(monkeypatch):
    """By hand: (17/16)² lies between 18/16 and 19/16, whose squares are 20.25/16 and 22.56…/16."""
    monkeypatch.setattr(module, "_exponential", lambda argument, precision: (17, 17))
    assert module._powers(Fraction(1, 4), 3, 4) == [(17, 17), (18, 19), (20, 23)]


def test_precision_is_raised_until_the_digits_are_proven(monkeypatch):
    """With enclosures too wide to decide at first, the digits are still right."""
    tried = []
    honest = module._powers

    def coarse(rate, count, precision):
        tried.append(precision)
        widening = 1 << 7 * precision // 8
        return [(low - widening, high + widening) for low, high in honest(rate, count, precision)]

    monkeypatch.setattr(module, "_powers", coarse)
    rate = Fraction(1, 100)
    assert module._digits(rate, 5) == [oracle(rate, bit) for bit in range(5)]
    assert len(tried) > 1


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_the_cut_tail_is_below_its_bound_and_the_cut_is_not_wasteful(rate):
    with mpmath.workdps(100):
        exponent = mpmath.mpf(rate.numerator) / rate.denominator * mpmath.mpf(2) ** bits(rate)
        assert mpmath.exp(-exponent) <= mpmath.mpf(2) ** -TAIL
        if bits(rate):
            assert mpmath.exp(-exponent / 2) > mpmath.mpf(2) ** -(TAIL + 1)


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_the_distance_bound_covers_every_digit_error_and_the_tail(rate):
    with mpmath.workdps(200):
        exact = mpmath.mpf(rate.numerator) / rate.denominator
        error = mpmath.exp(-exact * mpmath.mpf(2) ** bits(rate))
        for bit, digits in enumerate(numbers(expansion(rate))):
            error += 1 / (1 + mpmath.exp(exact * mpmath.mpf(2) ** bit)) - mpmath.mpf(digits) / mpmath.mpf(2) ** 152
        bound = distance(rate)
        assert 0 < error <= mpmath.mpf(bound.numerator) / bound.denominator
        assert bound < Fraction(1, 2**142)


def test_the_lower_bound_on_the_logarithm_is_one():
    assert Fraction(14426, 10000) == module.LOG2_E
    with mpmath.workdps(30):
        assert mpmath.mpf("1.4426") < 1 / mpmath.log(2) < mpmath.mpf("1.4427")


def test_a_rate_beyond_the_bound_needs_no_bits():
    assert bits(Fraction(700)) == 0
    assert expansion(Fraction(700)).shape == (0, DIGIT_BYTES)
    assert bits(Fraction(10**400)) == 0


def test_the_smallest_rate_just_fits_and_the_next_is_refused():
    assert bits(SMALLEST_RATE) == MAX_BITS
    with pytest.raises(InvalidInput) as refusal:
        bits(SMALLEST_RATE - Fraction(1, 10**40))
    assert str(refusal.value) == (
        "rate=4.29894e-17 is too small: the noise could exceed 2^61 and no longer fit 64-bit integers. "
        "Nothing was drawn or recorded. Use a rate (epsilon / sensitivity) of at least 4.3e-17."
    )


def test_the_table_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        expansion(Fraction(1))[0, 0] = np.uint8(0)
