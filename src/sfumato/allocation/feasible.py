"""Rounding that never breaks a window: budgets on a dyadic lattice, checked with integers.

A solver works in floating point and ends within 10⁻⁸ of the optimum, on either side of a window's limit. What leaves
this module is exact: the budgets of any window that holds a new step sum to at most ε, as fractions. Both readings of
a double are covered, its binary value and the decimal number that prints it (the one that `sfumato.exact` takes), since
a budget may be handed on either way.

Budgets are multiples of 2^-q with ε between 2⁵¹ and 2⁵² such units. A double's two readings differ by at most 2⁻⁵³ of
it, hence by less than one unit for a whole window: only windows that are full to the last unit need a second look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.allocation.bands import Array, smallest, spread, window_sums
from sfumato.errors import InvalidInput
from sfumato.exact import Number, fraction, text

Units = NDArray[np.int64]

BITS = 52
# A millionth of ε: a smaller room is no room, what it could hold would drown in its noise.
UNITS_OF_EPSILON = 1 << 32
FLOAT_RANGE = Fraction(10) ** 100


@dataclass(frozen=True)
class Rooms:
    """What is left in each window, exactly: whole units of the lattice, and the part of a unit beyond them."""

    units: Units  # (windows, 1)
    beyond: Array  # (windows, 1), in [0, 1)


@dataclass(frozen=True)
class Lattice:
    """The multiples of 2^-exponent on which the budgets of one ε lie."""

    epsilon: Fraction
    exponent: int

    @classmethod
    def of(cls, epsilon: Fraction) -> Lattice:
        """The lattice of an ε, refused where doubles end."""
        if not 1 / FLOAT_RANGE <= epsilon <= FLOAT_RANGE:
            raise InvalidInput(
                f"epsilon={text(epsilon)} is outside 1e-100 to 1e100, where doubles are exact enough to divide it. "
                "Nothing was drawn or recorded."
            )
        exponent = BITS - epsilon.numerator.bit_length() + epsilon.denominator.bit_length()
        while epsilon * Fraction(2) ** exponent >= 1 << BITS:
            exponent -= 1
        return cls(epsilon, exponent)

    def rooms(self, values: Sequence[Fraction], count: int) -> Rooms:
        """Exact rooms on the lattice, the first ones given and ε after them; what is negative is zero."""
        if len(values) < count:
            given = self.rooms([*values, self.epsilon], len(values) + 1)
            padding = ((0, count - len(values) - 1), (0, 0))
            return Rooms(np.pad(given.units, padding, mode="edge"), np.pad(given.beyond, padding, mode="edge"))
        values = values[:count]
        scaled = [max(value, Fraction(0)) * Fraction(2) ** self.exponent for value in values]
        whole = [int(value) for value in scaled]  # towards zero, which is down
        beyond = [float(value - units) for value, units in zip(scaled, whole, strict=True)]
        return Rooms(np.array(whole, dtype=np.int64)[:, None], np.array(beyond)[:, None])

    def shares(self, units: Units | Array) -> Array:
        """Units as parts of ε, in floating point."""
        return np.asarray(units, dtype=np.float64) / float(self.epsilon * Fraction(2) ** self.exponent)

    def units_above(self, values: Sequence[Number]) -> Units:
        """The smallest numbers of units that are at least the values, as a column."""
        scale = Fraction(2) ** self.exponent
        return np.array([[math.ceil(binary_reading(value) * scale)] for value in values], dtype=np.int64)

    def budgets(self, units: Units) -> Array:
        """Units as doubles, exactly."""
        return np.ldexp(units.astype(np.float64), -self.exponent)

    def round_within_windows(
        self, shares: Array, rooms: Rooms, window: int, *, floor: Units | None = None, fill: bool = True
    ) -> Units:
        """Parts of ε as units of the lattice, none below its floor and no window over its room.

        With `fill`, what the solver left is handed out first: every step grows by what its scarcest window allows.
        """
        count = len(rooms.units)
        least = np.zeros(shares.shape, dtype=np.int64) if floor is None else floor
        scale = float(self.epsilon * Fraction(2) ** self.exponent)
        above = np.maximum(shares * scale - least, 0.0)
        free = rooms.units - _sums(least, window, count)
        held = window_sums(above, window, count)
        level = np.divide(free + rooms.beyond, held, out=np.full_like(held, np.inf), where=held > 0)
        limit = np.where(above > 0, smallest(level, window, len(shares)), 0.0)
        grown = above * (limit if fill else np.minimum(limit, 1.0))
        units = least + np.floor(grown).astype(np.int64)
        if fill:  # a step that is alone in all its windows takes the last unit, too
            crowd = -smallest(-window_sums((above > 0).astype(np.float64), window, count), window, len(units))
            alone = (crowd == 1) & (above > 0)
            units = np.where(
                alone, least + smallest(free.astype(np.float64), window, len(units)).astype(np.int64), units
            )
        while (over := self._over(units, rooms, window)).any():
            shrink = (spread(over.astype(np.float64), window, len(units)) > 0) & (units > least)
            if not shrink.any():
                break  # the floors themselves fill a window, as they were given
            units = units - shrink
        return units

    def _over(self, units: Units, rooms: Rooms, window: int) -> NDArray[np.bool_]:
        """The windows that exceed their room, read in binary or in decimal."""
        sums = _sums(units, window, len(rooms.units))
        over = sums > rooms.units
        brim = (sums == rooms.units) & (sums > 0)
        if brim.any():
            held = (spread(brim.astype(np.float64), window, len(units)) > 0) & (units > 0)
            excess = np.zeros(units.shape)
            values, place = np.unique(units[held], return_inverse=True)
            excess[held] = np.array([self._decimal_excess(int(value)) for value in values])[place]
            total, size = window_sums(excess, window, len(sums)), window_sums(np.abs(excess), window, len(sums))
            # Floating-point sums of these excesses are right to far better than a thousandth of their size.
            over |= brim & (size > 0) & (total + 1e-3 * size > rooms.beyond)
        return over

    def _decimal_excess(self, units: int) -> float:
        """By how many units the decimal that prints a budget exceeds the budget."""
        value = float(np.ldexp(float(units), -self.exponent))
        return float((fraction(value, "budget") - Fraction(value)) * Fraction(2) ** self.exponent)


def binary_reading(value: Number) -> Fraction:
    """The exact value of a double; other numbers are what they say."""
    return Fraction(value) if isinstance(value, float) else fraction(value, "budget")


def largest_reading(value: Number) -> Fraction:
    """The larger of a number's two readings: its binary value and the decimal that prints it."""
    return max(fraction(value, "budget"), binary_reading(value))


def _sums(units: Units, window: int, count: int) -> Units:
    """Window sums in integers: a window fits 64 bits, and where the running total wraps, differences wrap back."""
    total = np.cumsum(units, axis=0)
    ends = np.minimum(np.arange(count), len(units) - 1)
    sums = total[ends]
    sums[window:] -= total[: max(count - window, 0)]
    return sums
