"""Times of every kind as whole microseconds since 1970: instants where they tell a zone, readings of a clock where not.

Microseconds are what every engine can tell apart; finer times are rounded down, which never takes one over an edge,
since edges are whole microseconds. Years go from 1 to 9999, as people write them: what lies beyond is moved to their
ends, on every engine alike.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain.durations import DAY, HOUR, MINUTE, SECOND, WEEK
from sfumato.errors import InvalidInput
from sfumato.exact import shown

EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
EARLIEST = (datetime.min - EPOCH) // _MICROSECOND
LATEST = (datetime.max - EPOCH) // _MICROSECOND
COARSER = {"us": 1, "ms": 1000, "s": SECOND, "m": MINUTE, "h": HOUR, "D": DAY, "W": WEEK}
FINER = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}


def microseconds(moment: date) -> int:
    """A datetime, with a zone or without, or a date, which begins at midnight."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    epoch = EPOCH if moment.tzinfo is None else EPOCH.replace(tzinfo=UTC)
    return int((moment - epoch) // _MICROSECOND)


def moment(ticks: int) -> datetime:
    """The naive datetime of microseconds."""
    return EPOCH + ticks * _MICROSECOND


def parsed(given: object, name: str) -> date:
    """A time as people write it: ISO 8601, a date, a datetime, or a NumPy datetime."""
    found: Any = None
    try:
        if isinstance(given, str):
            found = datetime.fromisoformat(_iso(given))
        elif isinstance(given, np.datetime64) and not np.isnat(given):
            found = moment(int(_of_array(np.array([given]))[0]))
        elif isinstance(given, date):
            found = given
        if isinstance(found, datetime):
            microseconds(found)  # a datetime may be beyond the first or last year when its offset is taken off
    except (ValueError, OverflowError):
        found = None
    if found is None or found != found:  # pandas has a time that is none
        raise InvalidInput(
            f"{name}={shown(given)} is not a time. Write it as '2026-03-01' or '2026-03-01T14:30', with an offset such "
            "as '+01:00' where it has one, or give a datetime."
        )
    checked: date = found
    return checked


def _iso(text: str) -> str:
    """Text as Python reads it: also 2026/03/01, and UTC by its name, as databases write it."""
    text = text.strip().replace("/", "-")
    return f"{text[:-3].rstrip()}Z" if text.endswith("UTC") else text


def times(values: ArrayLike, name: str) -> tuple[NDArray[np.int64], bool]:
    """Times as microseconds, and whether they tell a zone; refused where they are none, without being shown.

    An array of NumPy's datetimes tells no zone. Lists hold datetimes, dates, or text in ISO 8601, all with a zone or
    all without.
    """
    array = np.asarray(values)
    if array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] != "generic":
        if np.isnat(array).any():
            raise InvalidInput(_missing(name))
        return _of_array(array), False
    if array.dtype.kind not in "OUT" and array.size:
        raise InvalidInput(
            f"Axis {name!r}: values of type {array.dtype} are no times. Nothing was counted. Give datetimes, or text "
            "such as '2026-03-01T14:30'."
        )
    found = [_moment(value, name) for value in array.ravel().tolist()]
    zoned = {isinstance(value, datetime) and value.tzinfo is not None for value in found}
    if len(zoned) > 1:
        raise InvalidInput(
            f"Axis {name!r}: some values have a time zone and some have none. Nothing was counted. Convert them to one "
            "kind first."
        )
    ticks = np.array([microseconds(value) for value in found], dtype=np.int64).reshape(array.shape)
    return ticks, zoned == {True}


def _moment(value: Any, name: str) -> date:
    """A single value, which is private and never shown."""
    try:
        found = datetime.fromisoformat(_iso(value)) if isinstance(value, str) else value
        if isinstance(found, date) and found == found:
            microseconds(found)
            return found
    except (ValueError, OverflowError):
        pass
    if value is None or (isinstance(value, date) and value != value):
        raise InvalidInput(_missing(name))
    raise InvalidInput(
        f"Axis {name!r}: some values are no times. Nothing was counted. Give datetimes, or text such as "
        "'2026-03-01T14:30'."
    )


def _missing(name: str) -> str:
    return (
        f"Axis {name!r}: some values are missing, and nothing has no place on the axis. Nothing was counted. Remove "
        "them first; sf.count leaves them out by itself."
    )


def _of_array(array: NDArray[Any]) -> NDArray[np.int64]:
    unit, count = np.datetime_data(array.dtype)
    if unit in ("Y", "M"):
        array = np.clip(array, np.datetime64("0001"), np.datetime64("9999-12")).astype("M8[D]")
        unit, count = "D", 1
    if count != 1:  # NumPy can count in quarters of an hour
        array = array.astype(f"M8[{unit}]")
    return from_ticks(np.ascontiguousarray(array).view(np.int64), unit)


def from_ticks(ticks: NDArray[np.int64], unit: str) -> NDArray[np.int64]:
    """Whole numbers of a unit since 1970 as microseconds, rounded down, those beyond the years moved to their ends."""
    if unit in FINER:
        return np.clip(ticks // FINER[unit], EARLIEST, LATEST)
    factor = COARSER[unit]
    return np.clip(np.clip(ticks, EARLIEST // factor, LATEST // factor + 1) * factor, EARLIEST, LATEST)


def written(ticks: int) -> str:
    """A reading of a clock as people write it: the date alone at midnight."""
    at = moment(ticks)
    if at.time() == datetime.min.time():
        return at.date().isoformat()
    return at.isoformat(timespec="auto" if at.microsecond else "seconds" if at.second else "minutes")
