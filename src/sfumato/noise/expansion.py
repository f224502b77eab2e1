"""The binary digits of the probabilities that the bits of a geometric variable are one, without error.

**Lemma (the bits are independent).** Let G be geometric, P[G = g] = (1 - α)·α^g. With g = Σ g_j·2^j,
α^g = Π α^(2^j·g_j) and 1 - α = Π 1/(1 + α^(2^j)), so the bits g_j are independent, and bit j is one with probability
p_j = α^(2^j) / (1 + α^(2^j)) = 1 / (1 + exp(2^j·rate)), where α = exp(-rate).

**Theorem (the table).** `expansion(rate)` has in row j the first D = 8·DIGIT_BYTES binary digits of p_j, that is
⌊p_j·2^D⌋, exactly. *Proof.* exp(2^j·rate) is enclosed between two integers over 2^F: a Taylor series with non-negative
terms, each rounded down in the lower sum and up in the upper one, the rest of the series bounded by its last term; then
squarings, rounded outwards. 1/(1 + E) falls as E grows, so the digits lie between those of the two ends. Where the ends
agree they are the digits; where they do not, F is doubled. That ends, because exp of a rational number other than zero
is irrational (indeed transcendental), so p_j is never a binary fraction. ∎

**Corollary (the distance).** Bits from `bits(rate)` on are left out: G ≥ 2^n has probability exp(-rate·2^n) ≤ 2^-TAIL.
A bit drawn with probability ⌊p_j·2^D⌋/2^D instead of p_j is wrong with probability below 2^-D under the best coupling.
So a value drawn from the table is at total variation distance at most n·2^-D + 2^-TAIL < 2⁻¹⁴² from a geometric one.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.exact import text

DIGIT_BYTES = 19  # D = 152 digits
TAIL = 143  # bits that are one with probability below 2⁻¹⁴³ in all are left out
MAX_BITS = 61  # so that sums and differences of a few values fit 64 bits with a sign
LOG2_E = Fraction(14426, 10000)  # a lower bound: log₂ e = 1.442695…
SMALLEST_RATE = TAIL / (LOG2_E * 2**MAX_BITS)  # about 4.3e-17: a scale of 2.3e16


def bits(rate: Fraction) -> int:
    """How many low bits matter: the smallest n with exp(-rate·2^n) ≤ 2^-TAIL, by a lower bound on log₂ e."""
    if rate < SMALLEST_RATE:
        raise InvalidInput(
            f"rate={text(rate)} is too small: the noise could exceed 2^{MAX_BITS} and no longer fit 64-bit integers. "
            f"Nothing was drawn or recorded. Use a rate (epsilon / sensitivity) of at least {float(SMALLEST_RATE):.2g}."
        )
    least = TAIL / (LOG2_E * rate)  # 2^n must reach this
    return max(0, (-(-least.numerator // least.denominator) - 1).bit_length())


def distance(rate: Fraction) -> Fraction:
    """A bound on the total variation distance between one value drawn from the table and a geometric variable."""
    return Fraction(bits(rate), 1 << 8 * DIGIT_BYTES) + Fraction(1, 1 << TAIL)


@lru_cache(maxsize=256)
def expansion(rate: Fraction) -> NDArray[np.uint8]:
    """Row j: the digits of p_j, as DIGIT_BYTES bytes, most significant first. Read-only, shape (bits, DIGIT_BYTES)."""
    rows = b"".join(digits.to_bytes(DIGIT_BYTES, "big") for digits in _digits(rate, bits(rate)))
    return np.frombuffer(rows, dtype=np.uint8).reshape(-1, DIGIT_BYTES)


def _digits(rate: Fraction, count: int) -> list[int]:
    """⌊p_j·2^D⌋ for j = 0 … count - 1, with as much precision as that takes."""
    if count == 0:
        return []  # the exponential of a huge rate has more digits than there is room for
    one = 1 << 8 * DIGIT_BYTES
    precision = 4 * 8 * DIGIT_BYTES
    while True:
        enclosures = _powers(rate, count, precision)
        unit = 1 << precision
        ends = [(one * unit // (unit + high), one * unit // (unit + low)) for low, high in enclosures]
        if all(first == last for first, last in ends):
            return [first for first, _ in ends]
        precision *= 2


def _powers(rate: Fraction, count: int, precision: int) -> list[tuple[int, int]]:
    """Integers low ≤ exp(2^j·rate)·2^precision ≤ high for j = 0 … count - 1."""
    halvings = max(0, (2 * rate.numerator // rate.denominator).bit_length())  # brings the argument below one half
    low, high = _exponential(rate / 2**halvings, precision)
    enclosures = []
    for step in range(halvings + count):
        if step >= halvings:
            enclosures.append((low, high))
        low, high = low * low >> precision, -(-high * high >> precision)
    return enclosures


def _exponential(argument: Fraction, precision: int) -> tuple[int, int]:
    """Integers low ≤ exp(argument)·2^precision ≤ high, for an argument between 0 and ½."""
    scaled = argument * 2**precision
    argument_low = scaled.numerator // scaled.denominator
    argument_high = -(-scaled.numerator // scaled.denominator)
    term_low = term_high = low = high = 1 << precision
    order = 0
    while term_high > 1:
        order += 1
        term_low = (term_low * argument_low >> precision) // order
        term_high = -(-term_high * argument_high // (order << precision))
        low, high = low + term_low, high + term_high
    return low, high + term_high  # each term is at most half of the one before: the rest adds up to less than the last
