"""Exact numbers: what a user types becomes a fraction once, and stays one.

Budgets are added, split and compared for years; in binary floating point ten times 0.1 is not 1. A float is therefore
read as the decimal number that prints it (0.1 is 1/10), never as its binary expansion.

An exponent makes a short text a long number: `Fraction("1e30000000")` takes a minute and twelve megabytes. What is
typed may have one, within bounds that are looked at before anything is computed; what is read from a file (`written`)
has none, and no version of sfumato ever wrote one.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TypeGuard

from sfumato.errors import InvalidInput

_SIX_DIGITS_UP = Context(prec=6, rounding=ROUND_CEILING)

MOST_BITS = 1 << 13  # of a numerator or denominator: no honest number comes near, and Python still turns it into text

MOST_CHARACTERS = 8001  # of a number as text: p/q, each of at most 4,000 digits

MOST_EXPONENT = 9_999  # beyond it every number but zero is longer than MOST_BITS

_WRITTEN = re.compile(r"-?[0-9]{1,4000}(?:[/.][0-9]{1,4000})?")
_EXPONENT = re.compile(r"[eE][-+]?([0-9_]+)$")

LARGEST = (1 << 63) - 1  # whole number, of whatever is counted
LEAST_EPSILON = Fraction(1, 10**50)  # that is planned for, and one over the largest

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
        raise InvalidInput(f"{name}={shown(value)} is not a finite number.")
    if exact is _TOO_LONG or max(exact.numerator.bit_length(), exact.denominator.bit_length()) > MOST_BITS:
        raise InvalidInput(f"{name} has more than {MOST_BITS} bits. Use a rounder number, of a few digits.")
    return exact


# What stands for a number that was not computed, because it would be too long.
_TOO_LONG = Fraction(0)


def _exact(value: Number) -> Fraction | None:
    if isinstance(value, Rational):  # int, Fraction and NumPy integers
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        return _TOO_LONG if isinstance(exponent, int) and abs(exponent) > MOST_EXPONENT else Fraction(value)
    if isinstance(value, str):
        return _typed(value.strip())
    return Fraction(repr(float(value))) if isinstance(value, Real) else None


def _typed(text: str) -> Fraction | None:
    """A number as people type it, also 1e-3; its length and its exponent are looked at first."""
    if len(text) > MOST_CHARACTERS:
        return _TOO_LONG
    if not text.isascii():  # digits of other scripts, which `Fraction` reads as well, in an exponent too
        return None
    exponent = _EXPONENT.search(text)
    if exponent and len(digits := exponent[1].replace("_", "").lstrip("0")) > 0 and int(digits[:6]) > MOST_EXPONENT:
        return _TOO_LONG
    return Fraction(text)


def written(text: object, name: str) -> Fraction:
    """A number as it stands in a file: whole, p/q or a plain decimal, with bounded digits and no exponent."""
    if not isinstance(text, str) or not _WRITTEN.fullmatch(text):
        raise InvalidInput(f"{name}={shown(text)} is not written as a whole number, as p/q or as a plain decimal.")
    try:
        exact = Fraction(text)
    except ZeroDivisionError:
        raise InvalidInput(f"{name}={shown(text)} is not a number: nothing can be divided by zero.") from None
    return fraction(exact, name)


def shown(value: object) -> str:
    """A value that is to be quoted in a message, cut short and without anything that a terminal would obey."""
    try:
        text = ascii(value) if isinstance(value, (str, bytes)) and not str(value).isprintable() else repr(value)
    except ValueError:  # a whole number too long to be turned into text
        return "(a number of thousands of digits)"
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text):,} characters)"


def positive_fraction(value: Number, name: str) -> Fraction:
    """The exact value of a finite number above zero."""
    result = fraction(value, name)
    if result <= 0:
        raise InvalidInput(f"{name}={shown(value)} must be greater than zero. Nothing was drawn or recorded.")
    return result


def plannable(value: Number, name: str) -> Fraction:
    """The exact value of an ε that noise can be planned for: its squares and theirs are doubles."""
    result = positive_fraction(value, name)
    if not LEAST_EPSILON <= result <= 1 / LEAST_EPSILON:
        raise InvalidInput(
            f"{name}={shown(value)} is outside 1e-50 to 1e50, and no error can be told of it. Nothing was drawn or "
            "recorded. Use one that means something, mostly from 0.01 to 10."
        )
    return result


def is_whole(value: object) -> TypeGuard[int]:
    """A whole number of any type but a truth value, which Python counts among them."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """A plain number, and no truth value, which Python counts among them."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def positive_int(value: object, name: str) -> int:
    """A whole number of at least one, which every database can keep."""
    if not is_whole(value) or int(value) < 1:
        raise InvalidInput(f"{name}={shown(value)} must be a whole number of at least 1.")
    if int(value) > LARGEST:
        raise InvalidInput(f"{name} is larger than {LARGEST}. Use a smaller whole number.")
    return int(value)


def finite_float(value: object, name: str) -> float:
    """A finite double."""
    try:
        finite = isinstance(value, (Real, Decimal)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number or a fraction beyond the largest double
        finite = False
    if not finite:
        raise InvalidInput(f"{name}={shown(value)} is not a finite number.")
    return float(value)  # type: ignore[arg-type]  # a number, as was just seen


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
