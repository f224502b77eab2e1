"""Lengths of time as people write them, in whole microseconds: the smallest step in which times are told apart."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.exact import shown

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
WEEK = 7 * DAY
_UNITS = {
    ("us", "µs", "microsecond", "microseconds"): 1,
    ("ms", "millisecond", "milliseconds"): 1000,
    ("s", "sec", "second", "seconds"): SECOND,
    ("min", "minute", "minutes"): MINUTE,
    ("h", "hour", "hours"): HOUR,
    ("d", "day", "days"): DAY,
    ("week", "weeks"): WEEK,
}
BY_NAME = {name: length for names, length in _UNITS.items() for name in names}
_TEXT = re.compile(r"([0-9]{1,15}(?:[.][0-9]{1,9})?) ?([a-zµ]{1,12})")
LONGEST = 10_000 * 366 * DAY

Duration = str | timedelta | np.timedelta64


def duration(given: object, name: str) -> int:
    """A length of time as microseconds, or a refusal: "15 min", "1 h", "1 day", "1 week", or a timedelta."""
    exact: Fraction | None = None
    if isinstance(given, np.timedelta64) and not np.isnat(given) and np.datetime_data(given)[0] not in ("Y", "M"):
        exact = Fraction(int(given.astype("m8[ns]").astype(np.int64)), 1000)
    elif isinstance(given, timedelta):
        exact = Fraction(given // timedelta(microseconds=1))
    elif isinstance(given, str) and (match := _TEXT.fullmatch(given.strip())) and match[2] in BY_NAME:
        exact = Fraction(match[1]) * BY_NAME[match[2]]
    if exact is None:
        raise InvalidInput(
            f"{name}={shown(given)} is not a length of time. Write '15 min', '1 h', '1 day' or '1 week', or give a "
            "timedelta."
        )
    if exact.denominator != 1 or not 0 < exact <= LONGEST:
        raise InvalidInput(
            f"{name}={shown(given)} must be a whole number of microseconds, more than none and at most 10,000 years."
        )
    return int(exact)


def in_words(length: int) -> str:
    """A length as `duration` reads it, in the largest unit that it is a whole number of."""
    for unit, one in (("week", WEEK), ("day", DAY), ("h", HOUR), ("min", MINUTE), ("s", SECOND), ("ms", 1000)):
        if length % one == 0:
            count = length // one
            return f"{count} {unit}{'s' if count > 1 and unit in ('week', 'day') else ''}"
    return f"{length} us"
