"""Exact numbers: what a user types becomes a fraction once, and stays one.

Budgets are added, split and compared for years; in binary floating point ten times 0.1 is not 1. A float is therefore
read as the decimal number that prints it (0.1 is 1/10), never as its binary expansion.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real

from sfumato.errors import InvalidInput

_SIX_DIGITS_UP = Context(prec=6, rounding=ROUND_CEILING)

MOST_BITS = 1 << 13  # of a numerator or denominator: no honest number comes near, and Python still turns it into text

LARGEST = (1 << 63) - 1  # whole number, of whatever is counted

Number = int | float | str | Fraction | Decimal


def fraction(value: Number, name: str) -> Fraction:
    """The exact value of a finite number, or a clear refusal that names the parameter."""
    if isinstance(value, bool):
        raise InvalidInput(f"{name}={value!r} is not a number.")
    try:
        exact = _exact(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        exact = None
    if exact is None:
        raise InvalidInput(f"{name}={value!r} is not a finite number.")
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > MOST_BITS:  # too long even to be quoted
        raise InvalidInput(f"{name} has more than {MOST_BITS} bits. Use a rounder number, of a few digits.")
    return exact


def _exact(value: Number) -> Fraction | None:
    if isinstance(value, Rational):  # int, Fraction and NumPy integers
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Decimal):
        return Fraction(value)
    if isinstance(value, str):
        return Fraction(value.strip())
    return Fraction(repr(float(value))) if isinstance(value, Real) else None


def positive_fraction(value: Number, name: str) -> Fraction:
    """The exact value of a finite number above zero."""
    result = fraction(value, name)
    if result <= 0:
        raise InvalidInput(f"{name}={value!r} must be greater than zero. Nothing was drawn or recorded.")
    return result


def positive_int(value: object, name: str) -> int:
    """A whole number of at least one, which every database can keep."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise InvalidInput(f"{name}={value!r} must be a whole number of at least 1.")
    if int(value) > LARGEST:
        raise InvalidInput(f"{name} is larger than {LARGEST}. Use a smaller whole number.")
    return int(value)


def finite_float(value: object, name: str) -> float:
    """A finite double."""
    if not isinstance(value, (Real, Decimal)) or isinstance(value, bool) or not math.isfinite(value):
        raise InvalidInput(f"{name}={value!r} is not a finite number.")
    return float(value)


def text(value: Fraction) -> str:
    """A fraction as people write it: 0.3 where the decimal is short, 1/3 where it is not, else rounded up.

    Up, since most of what is printed here is a budget: a promise must not look better than it is.
    """
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    if denominator == 1:
        decimal = f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
        if len(decimal) <= 12:
            return decimal
    if value.denominator == 1:
        return f"{value.numerator}"
    if value.denominator <= 1000:
        return f"{value.numerator}/{value.denominator}"
    rounded = _SIX_DIGITS_UP.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{rounded.normalize():f}" if -5 <= rounded.adjusted() <= 12 else f"{rounded.normalize():e}"
