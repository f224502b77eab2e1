"""How far: a distance in metres, a time, or a number in the axis's own units, exact."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from sfumato.domain.axis import METRES, OWN, SECONDS
from sfumato.errors import InvalidInput
from sfumato.exact import Number, positive_fraction, shown, text

_UNITS = {
    "m": (METRES, 1),
    "km": (METRES, 1000),
    "s": (SECONDS, 1),
    "min": (SECONDS, 60),
    "h": (SECONDS, 3600),
    "day": (SECONDS, 86_400),
    "days": (SECONDS, 86_400),
    "week": (SECONDS, 604_800),
    "weeks": (SECONDS, 604_800),
}
_WRITTEN = re.compile(r"\s*([0-9][0-9_.]*(?:/[0-9]+)?)\s*([A-Za-zµ°]*)\s*")


@dataclass(frozen=True)
class Length:
    """An exact amount above zero, in metres, in seconds, or in the axis's own units."""

    amount: Fraction
    unit: str

    @classmethod
    def of(cls, given: Number | timedelta, name: str = "delta") -> Length:
        """A length as people give it: "500 m", "0.5 km", "30 min", "1 h", a timedelta, or a number in own units."""
        if isinstance(given, timedelta):
            return cls(positive_fraction(Fraction(given // timedelta(microseconds=1), 10**6), name), SECONDS)
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
