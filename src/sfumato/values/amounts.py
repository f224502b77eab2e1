"""A value of each record that is added up: cut to declared bounds and put on a lattice, so that sums are whole numbers.

A record's value x becomes the whole number v of steps for which v·step is nearest to x, after x was cut to the bounds.
Nearest is settled by comparison with the edges half way between, as the cell of a coordinate is
(`sfumato.domain.interval`): what lies on an edge goes up, on every engine alike, and infinite values are cut like any
other. A value that is null or NaN is none: its row is no record. Both bounds are multiples of the step, because a
record that is not there adds 0, which has to be on the lattice.

Two values at most δ(1 - 10⁻⁹) apart become whole numbers at most ⌈δ/step⌉ apart: the edges half way between are
doubles, and the margin pays for their rounding, as it does for places. Where it would not, the policy is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from sfumato.calls import quoted
from sfumato.domain import Domain, Line
from sfumato.domain.axis import axis_name
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import MOST_BITS, Number, fraction, shown
from sfumato.values.lattice import Lattice

# Steps in the largest value. The noise of one record has the size of the largest value anyhow, so that finer steps
# tell nothing; and so 2³¹ records, whatever they hold, stay within the sums that arithmetic is laid out for.
MOST_STEPS = 1 << 22
_NOTHING = "Nothing was counted, drawn or recorded."


@dataclass(frozen=True)
class Amounts:
    """Sums of a value: `clip` are the bounds it is cut to, `step` the lattice it is rounded to. Made by `sf.amounts`.

    >>> fares = sf.amounts("fare", clip=(0, 100), step=0.01)
    >>> fares.largest, fares.steps
    (10000, 10000)
    """

    column: str
    clip: tuple[Fraction, Fraction]
    step: Fraction
    less: Fraction = Fraction(0)
    """What is taken off every value before it is added up: sums around the middle need less noise."""

    def __post_init__(self) -> None:
        axis_name(self.column)
        (low, high), step = self.clip, self.step
        if not low < high:
            raise InvalidInput(
                f"clip=({number(low)}, {number(high)}) does not rise: the lower bound comes first, and below the "
                f"other. {_NOTHING} Give clip=(low, high)."
            )
        if step <= 0:
            raise InvalidInput(f"step={number(step)} must be greater than zero. {_NOTHING}")
        for bound in (low, high):
            if (bound / step).denominator != 1:
                below, above = bound // step * step, -(-bound // step) * step
                raise InvalidInput(
                    f"step={number(step)} does not divide the bound {number(bound)} of clip: sums are multiples of the "
                    f"step, and a record that is not there adds 0. {_NOTHING} Use {number(below)} or {number(above)} "
                    "for the bound, or another step."
                )
        if (self.less / step).denominator != 1:
            raise InvalidInput(
                f"less={number(self.less)} is no multiple of step={number(step)}: what is added up lies on the "
                f"lattice. {_NOTHING} Use {number(round(self.less / step) * step)}."
            )
        if self.largest > MOST_STEPS:
            raise TooLarge(
                f"step={number(step)} cuts values of up to {number(max(abs(low), abs(high)))} into {self.largest:,} "
                f"steps, and at most {MOST_STEPS:,} are added up. {_NOTHING} Use a coarser step: the noise is as large "
                "as the largest value, and finer steps tell nothing."
            )
        try:
            _ = self.line  # which doubles have to tell apart
        except OverflowError:
            raise InvalidInput(f"clip reaches beyond the largest double. {_NOTHING} Use nearer bounds.") from None

    @property
    def name(self) -> str:
        """The attribute of a record that is added up."""
        return self.column

    @property
    def least(self) -> int:
        """The least that a record adds, in steps."""
        return int((self.clip[0] - self.less) / self.step)

    @property
    def most(self) -> int:
        """The most that a record adds, in steps."""
        return int((self.clip[1] - self.less) / self.step)

    @property
    def largest(self) -> int:
        """M: how many steps one record adds or takes away at most."""
        return max(abs(self.least), abs(self.most))

    @property
    def steps(self) -> int:
        """How many steps lie between the bounds."""
        return self.most - self.least

    @property
    def signed(self) -> bool:
        """Whether a record may take something away, so that nothing bounds a sum from below."""
        return self.least < 0

    @property
    def unit(self) -> Fraction:
        """What one step is worth."""
        return self.step

    @property
    def entities(self) -> None:
        """Nobody is told apart."""
        return

    @property
    def what(self) -> str:
        """What is published, in words: 'the sum of its …'."""
        return f"sum of {self._summed}"

    @property
    def _summed(self) -> str:
        return f"{self.column!r} less {number(self.less)}" if self.less else repr(self.column)

    @cached_property
    def line(self) -> Domain:
        """The values as cells: number i is the value of `least` + i steps."""
        half = self.step / 2
        low, high = float(self.clip[0] - half), float(self.clip[1] + half)
        return Line(low, high, cells=self.steps + 1, name=self.column)

    @property
    def axis(self) -> Lattice:
        """The same as counting reads it."""
        low, high = map(float, self.line.intervals[0].ends)
        return Lattice(self.column, low, high, self.steps + 1)

    def describe(self) -> str:
        """The value in words.

        >>> sf.amounts("fare", clip=(0, 100), step=0.01).describe()
        "sums of 'fare', each cut to [0, 100] and rounded to multiples of 0.01"
        """
        low, high = map(number, self.clip)
        return f"sums of {self._summed}, each cut to [{low}, {high}] and rounded to multiples of {number(self.step)}"

    def __str__(self) -> str:
        return self.describe()

    def to_text(self) -> str:
        """The value in one line as one writes it, for files and command lines; `sf.values_from_text` reads it.

        >>> sf.amounts("fare", clip=(0, 100), step=0.01).to_text()
        'amounts("fare", clip=[0, 100], step=0.01)'
        """
        low, high = (_typed(bound) for bound in self.clip)
        less = f", less={_typed(self.less)}" if self.less else ""
        return f"amounts({quoted(self.column)}, clip=[{low}, {high}], step={_typed(self.step)}{less})"

    def spec(self) -> dict[str, Any]:
        """Plain data that JSON can hold; `values_from_spec` reads it back."""
        return {
            "kind": "amounts",
            "column": self.column,
            "clip": [str(bound) for bound in self.clip],
            "step": str(self.step),
            **({"less": str(self.less)} if self.less else {}),
        }

    def centred(self) -> Amounts:
        """The same around the middle of the bounds, or next to it.

        >>> sf.amounts("fare", clip=(0, 100), step=0.25).centred()
        Amounts(column='fare', clip=(Fraction(0, 1), Fraction(100, 1)), step=Fraction(1, 4), less=Fraction(50, 1))
        """
        middle = (self.clip[0] + self.clip[1]) / 2
        return replace(self, less=middle // self.step * self.step)


def amounts(column: str, *, clip: tuple[Number, Number], step: Number, less: Number = 0) -> Amounts:
    """What is added up in the place of counting records: the values of a column, cut to `clip` and rounded to `step`.

    Both bounds are declared, never read off the data, and multiples of the step. What lies beyond is cut to the nearer
    bound, infinite values too; what is null or NaN is no record. The noise is as large as the largest value that one
    record may have, so that bounds which are seldom reached may cost more than they tell: `docs/sums.md` weighs that.
    With `less` that much is taken off every value, after it was cut. Given to `sf.plan` and `sf.count`, or to
    `sf.policy` where a relation speaks of the value.

    >>> fares = sf.amounts("fare", clip=(0, 100), step=0.5)
    >>> line = sf.Line(0, 4, cells=4)
    >>> data = {"x": [0.5, 0.6, 3.5], "fare": [12.0, 300.0, 7.3]}
    >>> sf.count(data, line, values=fares).values.tolist()  # private, in steps
    [224, 0, 0, 15]
    """
    try:
        low, high = clip
    except (TypeError, ValueError):
        raise InvalidInput(f"clip={shown(clip)} must be two numbers, such as clip=(0, 100). {_NOTHING}") from None
    bounds = (fraction(low, "clip"), fraction(high, "clip"))
    return Amounts(column, bounds, fraction(step, "step"), fraction(less, "less"))


def number(value: Fraction) -> str:
    """A fraction without rounding: as a decimal where that is short."""
    decimal = _decimal(value)
    return str(value) if decimal is None else decimal


def _typed(value: Fraction) -> str:
    decimal = _decimal(value)
    return quoted(str(value)) if decimal is None else decimal


def _decimal(value: Fraction) -> str | None:
    """The digits of a decimal that is exact; None where there are none, or very many."""
    if value.denominator == 1:
        return str(value.numerator)
    for places in range(1, 16):
        scaled = value * 10**places
        if scaled.denominator == 1:
            digits = f"{abs(scaled.numerator):0{places + 1}d}"
            return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
        if scaled.denominator.bit_length() > MOST_BITS:
            break
    return None
