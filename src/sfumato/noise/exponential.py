"""Weights exp(-x) in rigorous fixed point: what the exponential mechanism chooses by, without a single float.

**Promise.** `decay(x)` is an integer D with exp(-x)·2^BITS - 1 - 2⁻¹⁰⁰ < D ≤ exp(-x)·2^BITS, for every exact fraction
x ≥ 0. *Proof.* `expansion` encloses exp(x) between two integers over 2^F, by a Taylor series and squarings that are
rounded outwards; D is the reciprocal of the upper end, rounded down. With F = BITS + 128 the two ends agree to more
than BITS + 100 digits wherever exp(-x)·2^BITS ≥ 1 (x < BITS·ln 2: a hundred terms and at most nine squarings, each of
which doubles the relative error), and below that zero is a right answer. ∎

So probabilities made of n such weights, one of which is 2^BITS, are at total variation distance at most 2n·2^-BITS from
the exact ones.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from sfumato.noise.expansion import _powers
from sfumato.noise.integers import random_bits
from sfumato.noise.source import Source

BITS = 256
_PRECISION = BITS + 128
_NEGLIGIBLE = 178  # exp(-178) < 2^-256: such a weight is zero in fixed point


def decay(exponent: Fraction) -> int:
    """⌊2^BITS·exp(-exponent)⌋, or one less where that cannot be told apart, for an exponent of at least zero."""
    if exponent == 0:
        return 1 << BITS
    if exponent >= _NEGLIGIBLE:
        return 0
    ((_, high),) = _powers(exponent, 1, _PRECISION)
    return (1 << _PRECISION + BITS) // high


@lru_cache(maxsize=64)
def decays(step: Fraction, count: int) -> tuple[int, ...]:
    """decay(0), decay(step), …, decay((count - 1)·step)."""
    return tuple(decay(step * index) for index in range(count))


def happens(exponent: Fraction, source: Source) -> bool:
    """An event of probability exp(-exponent), to within 2^(1-BITS)."""
    return random_bits(BITS, source) < decay(exponent)
