"""An amount of privacy budget: an exact fraction that reads and prints the way people write it.

`Fraction(3, 10) <= 0.3` is false, because the double 0.3 lies a little below three tenths; a user who
compares what is left with what they typed must not meet that. An `Epsilon` therefore treats a float it is
compared with as `sfumato.exact` treats a float it is given: as the decimal number that prints it.
Arithmetic is that of `Fraction`, exact, and gives plain fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.exact import MOST_BITS, fraction, text

_SIX_DIGITS_DOWN = Context(prec=6, rounding=ROUND_FLOOR)


class Epsilon(Fraction):
    """An exact amount of budget that prints as a decimal and compares with floats as decimals."""

    __slots__ = ()

    # `Fraction` routes <, <=, > and >= through this one method.
    def _richcmp(self, other: object, operation: Callable[[Any, Any], bool]) -> bool:
        if isinstance(other, float):
            other = _as_typed(other)
        return bool(super()._richcmp(other, operation))  # type: ignore[misc]  # private in typeshed, stable since 2.7

    def __eq__(self, other: object) -> bool:
        if isinstance(other, float):
            other = _as_typed(other)
        same = Fraction.__eq__(self, other)
        return same if same is NotImplemented else bool(same)

    # Equal fractions and integers hash alike, as for `Fraction`; a float key finds nothing unless it is
    # exact in binary.
    __hash__ = Fraction.__hash__

    def __str__(self) -> str:
        return text(self)

    def __repr__(self) -> str:
        return text(self)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __reduce__(self) -> tuple[type[Epsilon], tuple[int, int]]:
        return (Epsilon, (self.numerator, self.denominator))


def _as_typed(value: float) -> Fraction | float:
    """A finite float as the decimal that prints it; infinities and NaN stay what they are."""
    return Fraction(repr(float(value))) if abs(value) < float("inf") else value


def at_most(value: Fraction) -> str:
    """A number in a few characters that is never above the value: what a message may tell someone to use."""
    written = text(value)
    if fraction(written, "value") == value:
        return written
    decimal = _SIX_DIGITS_DOWN.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{decimal:f}" if decimal.adjusted() >= -6 else f"{decimal:.5E}"


def stored(value: Fraction, name: str) -> str:
    """The exact text 'p/q' that the ledger keeps."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
        raise InvalidInput(
            f"{name} would need a fraction of more than {MOST_BITS} bits, which the ledger does not "
            "store. Nothing was drawn or recorded. Use a rounder epsilon, such as a decimal with a few "
            "digits."
        )
    return f"{value.numerator}/{value.denominator}"
