"""Time zones as tables: when the clocks of a zone change, and what they show.

The table is found by asking the zone for its distance from UTC once a day of the years 1900 to 2100 and halving the
time between two answers that differ. (Clocks that were changed there and back within a day would be missed; the
shortest time between two changes in all zones is four days.) Before and after, a zone keeps what it shows at the ends
of the table. Every time is turned by this table, on whatever engine it is held, so that every engine gives the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from sfumato.domain.durations import MINUTE, SECOND
from sfumato.domain.moments import EPOCH
from sfumato.errors import InvalidInput
from sfumato.exact import shown

FIRST_YEAR, LAST_YEAR = 1900, 2100
_STEP = 86_400
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,40}(/[A-Za-z0-9_+-]{1,40}){0,2}")
_FIXED = re.compile(r"([+-])([0-9]{2}):([0-9]{2})")
_OF_THE_MACHINE = {"localtime", "posixrules", "Factory"}  # what these mean depends on where they are read


@dataclass(frozen=True, eq=False)
class Zone:
    """A zone by its name, such as "America/New_York", "UTC" or "+01:00"."""

    key: str
    changes: NDArray[np.int64] = field(repr=False)
    """The instants at which its clocks are changed, in microseconds."""
    offsets: NDArray[np.int64] = field(repr=False)
    """What its clocks show beyond UTC: before the first change, and after each."""

    def local(self, instants: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the zone's clocks show at each instant."""
        if not len(self.changes):
            return instants + self.offsets[0]
        return instants + self.offsets[np.searchsorted(self.changes, instants, side="right")]

    def instants(self, clock: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first instant at which the zone's clocks show a time; where they skip it, the instant of the change."""
        found = np.full(clock.shape, np.iinfo(np.int64).max)
        starts = np.append(np.iinfo(np.int64).min, self.changes)
        ends = np.append(self.changes, np.iinfo(np.int64).max)
        near = np.searchsorted(self.changes, clock - self.offsets.max(), side="right")
        far = np.searchsorted(self.changes, clock - self.offsets.min(), side="right")
        for step in range(int((far - near).max(initial=0)) + 1):
            piece = np.minimum(near + step, far)
            at = np.maximum(clock - self.offsets[piece], starts[piece])  # shown in this piece, or skipped before it
            found = np.where(at < ends[piece], np.minimum(found, at), found)
        return found


def zone(given: object) -> Zone:
    """A zone that the machine knows, or a refusal."""
    key = _key(given)
    fixed = _FIXED.fullmatch(key or "")
    if fixed and int(fixed[2]) < 24 and int(fixed[3]) < 60:
        minutes = int(fixed[2]) * 60 + int(fixed[3])
        if not minutes:
            return zone("UTC")
        return Zone(str(key), np.empty(0, np.int64), np.array([(minutes if fixed[1] == "+" else -minutes) * MINUTE]))
    if key == "UTC":
        return Zone(key, np.empty(0, np.int64), np.zeros(1, np.int64))
    if key is None or not _KEY.fullmatch(key) or key in _OF_THE_MACHINE:
        raise InvalidInput(_unknown(given))
    try:
        return _table(key)
    except (LookupError, OSError, ValueError):
        raise InvalidInput(_unknown(given)) from None


def _key(given: object) -> str | None:
    if isinstance(given, str):
        return given
    if isinstance(given, timezone):
        offset = given.utcoffset(None)
        minutes = offset // timedelta(minutes=1)
        sign, size = ("-" if minutes < 0 else "+"), abs(minutes)
        return f"{sign}{size // 60:02}:{size % 60:02}" if not offset % timedelta(minutes=1) else None
    key = getattr(given, "key", None)  # what zoneinfo calls its name
    return key if isinstance(given, tzinfo) and isinstance(key, str) else None


def _unknown(given: object) -> str:
    return (
        f"tz={shown(given)} is not a time zone that this machine knows. Give a name such as 'America/New_York' or "
        "'UTC', or a fixed offset such as '+01:00'. On Windows zones come with the package tzdata."
    )


@lru_cache(maxsize=64)
def _table(key: str) -> Zone:
    found = ZoneInfo(key)
    epoch = EPOCH.replace(tzinfo=UTC)

    def offset(second: int) -> timedelta:
        at = (epoch + timedelta(seconds=second)).astimezone(found).utcoffset()
        return at if at is not None else timedelta(0)

    begin, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (FIRST_YEAR, LAST_YEAR + 1))
    changes, offsets, before = [], [offset(begin)], begin
    for second in range(begin + _STEP, end + 1, _STEP):
        here = offset(second)
        if here != offsets[-1]:
            low, high = before, second  # the offset changes after low and not after high
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == offsets[-1] else (low, middle)
            changes.append(high * SECOND)
            offsets.append(here)
        before = second
    micro = timedelta(microseconds=1)
    return Zone(key, np.array(changes, np.int64), np.array([each // micro for each in offsets], np.int64))
