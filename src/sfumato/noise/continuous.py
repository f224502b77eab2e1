"""Laplace and Cauchy noise to so many digits that only what is rounded afterwards can tell it from the real thing.

Continuous noise must never be handed out: the digits of a float show what it was added to. Here a value is an exact
fraction that the caller scales, adds to an integer, *rounds to an integer* and only then hands out: a post-processing
of the real-valued mechanism.

**Lemma.** Let z be what is computed from random digits in place of the real Z. For N cells, the cell ⌊x + σ·Z + ½⌋
clamped to 0 … N - 1 and the same with z are at total variation distance at most N·2⁻¹⁷⁰, for every x and every σ > 0.
*Proof.* The cell changes at N - 1 thresholds, so it is enough that the probability to lie below each of them is right
to 2⁻¹⁷¹.
Laplace: z = ±ln(1/u) with u = (2k + 1)/2²⁵⁷ for a uniform 256-bit k, which is uniform to 2⁻²⁵⁶. Two logarithms below
179 are rounded to 60 digits, so z is right to 10⁻⁵⁶, and a threshold moved by that much changes its probability by less
than 10⁻⁵⁶ < 2⁻¹⁸⁶.
Cauchy: z = a/b for a uniform point (a, b) of the half disc b > 0, a² + b² ≤ 1 (the tangent of a uniform angle), taken
on a lattice of step 2⁻²⁵⁶. A sector of the disc is convex, so the number of lattice points in it is its area times
2⁵¹² to within its perimeter times 2²⁵⁸. ∎
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

from sfumato.noise.integers import random_bits
from sfumato.noise.source import Source

DIGITS = 256

_CONTEXT = Context(prec=60)
_WIDE = Context(prec=100)  # holds the numerator of u, 78 digits, without rounding


def laplace(source: Source) -> Fraction:
    """A draw from the density ½·exp(-|z|)."""
    digits = random_bits(DIGITS + 1, source)
    sign, odd = digits & 1, digits | 1
    size = _CONTEXT.subtract(_CONTEXT.multiply(DIGITS + 1, _LN2), _CONTEXT.ln(_WIDE.create_decimal(odd)))
    # The sign is put on the fraction: a decimal would be rounded to the digits of whatever context is set.
    return -Fraction(size) if sign else Fraction(size)


def cauchy(source: Source) -> Fraction:
    """A draw from the density 1/(π·(1 + z²))."""
    while True:
        digits = random_bits(2 * DIGITS + 1, source)
        # Odd numbers: the middles of the lattice's cells, so that no point lies on the line b = 0.
        across = 2 * (digits >> (DIGITS + 1)) + 1
        up = 2 * (digits >> 1 & ((1 << DIGITS) - 1)) + 1
        if across * across + up * up <= 1 << 2 * (DIGITS + 1):
            return Fraction(-across if digits & 1 else across, up)


_LN2 = _CONTEXT.ln(Decimal(2))
