"""How far: a distance in metres, a time, or a number in the axis's own units, exact."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

import numpy as np

from sfumato.domain.axis import METRES, OWN, SECONDS
from sfumato.domain.durations import BY_NAME, SECOND, duration
from sfumato.errors import InvalidInput
from sfumato.exact import Number, positive_fraction, shown, text

_UNITS: dict[str, tuple[str, Fraction]] = {
    "m": (METRES, Fraction(1)),
    "km": (METRES, Fraction(1000)),
    **{name: (SECONDS, Fraction(length, SECOND)) for name, length in BY_NAME.items()},
}
_WRITTEN = re.compile(r"\s*([0-9][0-9_.]*(?:/[0-9]+)?)\s*([A-Za-zµ°]*)\s*")


@dataclass(frozen=True)
class Length:
    """An exact amount above zero, in metres, in seconds, or in the axis's own units."""

    amount: Fraction
    unit: str

    @classmethod
    def of(cls, given: Number | timedelta | np.timedelta64, name: str = "delta") -> Length:
        """A length as people give it: "500 m", "0.5 km", "30 min", "1 h", a timedelta, or a number in own units."""
        if isinstance(given, (timedelta, np.timedelta64)):
            return cls(Fraction(duration(given, name), SECOND), SECONDS)
        if not isinstance(given, str):
            return cls(positive_fraction(given, name), OWN)
        parts = _WRITTEN.fullmatch(given)
        if parts is None or parts[2] not in {"", *_UNITS}:
            raise InvalidInput(
                f"{name}={shown(given)} is no length. Give a number in the axis's own units, metres such as '500 m' or "
                "'0.5 km', or a time such as '30 min', '1 h' or '2 days'. Nothing was built."
            )
        if not parts[2]:
            return cls(positive_fraction(parts[1], name), OWN)
        unit, times = _UNITS[parts[2]]
        return cls(positive_fraction(parts[1], name) * times, unit)

    def written(self) -> str:
        """Itself as text that `of` reads back, exactly: as people say it, or with all of its digits."""
        with suppress(InvalidInput):  # where so many digits are rounded, and written with an exponent
            if Length.of(str(self)) == self:
                return str(self)
        return f"{self.amount} {'' if self.unit == OWN else self.unit}".rstrip()

    def __str__(self) -> str:
        if self.unit == OWN:
            return text(self.amount)
        if self.unit == METRES:
            return f"{text(self.amount)} m"
        for name, times in (("week", 604_800), ("day", 86_400), ("h", 3600), ("min", 60)):
            if self.amount % times == 0:
                count = self.amount / times
                return f"{text(count)} {name}{'s' if name in ('week', 'day') and count != 1 else ''}"
        return f"{text(self.amount)} s"
