"""How a column of times is cut into steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sfumato.counting.inputs import hushed
from sfumato.errors import InvalidInput
from sfumato.promise.window import Time

Named = Callable[[str], str]
"""How a key is named in messages: by its option, or by its place in a file."""


def as_option(key: str) -> str:
    """A key as an option."""
    return f"--{key.replace('_', '-')}"


_STEP = re.compile("([0-9]{1,9})([smhdw]?)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class StepGrid:
    """Steps of clock time, named by when they begin; or of whole numbers, the n-th from n × step on, named by n."""

    column: str
    step: timedelta | int
    zoned: bool
    named: Named = as_option

    @classmethod
    def of(cls, frame: Any, column: str, step: str, named: Named) -> StepGrid:
        """The grid for a column, from its type and the length of a step; `named` says how a key was said."""
        import narwhals as nw

        schema = hushed("The columns of the data could not be read", frame.collect_schema)
        if column not in schema:
            raise InvalidInput(f"{named('time')} {column!r} is not a column of the data. Nothing was counted.")
        kind, match = schema[column], _STEP.fullmatch(step.strip())
        if match is None or not int(match[1]):
            raise InvalidInput(
                f"{named('step')} {step!r} is not a length such as 15m, 1h or 1d, or a whole number. "
                "Nothing was counted."
            )
        if kind.is_integer() and not match[2]:
            return cls(column, int(match[1]), zoned=False, named=named)
        if isinstance(kind, (nw.Datetime, nw.Date)) and match[2]:
            zoned = isinstance(kind, nw.Datetime) and kind.time_zone is not None
            return cls(column, timedelta(**{_UNITS[match[2]]: int(match[1])}), zoned=zoned, named=named)
        raise InvalidInput(
            f"{named('step')} {step!r} does not go with column {column!r} of type {kind}. Nothing was counted. "
            "Use 1h and the like for dates and times, a whole number for whole numbers."
        )

    def time(self, given: str, key: str) -> Time:
        """The step that begins at a time as people write it, with a zone where the column has one and only there."""
        option = self.named(key)
        try:
            if isinstance(self.step, int):
                number, rest = divmod(int(given), self.step)
                if rest:
                    raise ValueError
                return number
            moment = datetime.fromisoformat(given)
        except ValueError:
            wanted = f"a multiple of {self.step}" if isinstance(self.step, int) else "a date or time"
            raise InvalidInput(f"{option} {given!r} is not {wanted}. Nothing was counted, drawn or recorded.") from None
        if not self.zoned and moment.tzinfo is not None:
            raise InvalidInput(
                f"{option} {given!r} has a time zone, and column {self.column!r} has none. Nothing was counted, drawn "
                "or recorded."
            )
        if self.zoned and moment.tzinfo is None:
            raise InvalidInput(
                f"{option} {given!r} has no time zone, and column {self.column!r} has one. Nothing was counted, drawn "
                f"or recorded. Say which, as in {given}{'' if 'T' in given or ' ' in given else 'T00:00'}+00:00."
            )
        return moment

    def now(self) -> Time:
        """The present, as the column tells the time."""
        if isinstance(self.step, int):
            raise InvalidInput(
                f"{self.named('stop')} is needed: column {self.column!r} has numbers, and the present is none. "
                "Nothing was counted, drawn or recorded."
            )
        return datetime.now(UTC) if self.zoned else datetime.now()

    def steps(self, begin: Time, end: Time) -> Iterator[Time]:
        """The steps from one on that are over by the end."""
        moment, last = begin, self.number(end, begin)
        for _ in range(last):
            yield moment
            moment = self.after(moment)

    def after(self, moment: Time) -> Time:
        """The step after a step."""
        if isinstance(moment, datetime) and isinstance(self.step, timedelta):
            return moment + self.step
        return moment + 1  # type: ignore[operator]

    def number(self, moment: Any, begin: Any) -> int:
        """How many whole steps lie between two times."""
        apart = moment - begin
        return int(apart // self.step if isinstance(self.step, timedelta) else apart)

    def place(self, moment: Any) -> Any:
        """A step's beginning as the column tells it."""
        return moment if isinstance(self.step, timedelta) else moment * self.step

    def records(self, frame: Any, moment: Any) -> Any:
        """The records of a step, from its beginning up to and without its end."""
        return self.between(frame, moment, self.after(moment))

    def between(self, frame: Any, begin: Any, end: Any) -> Any:
        """The records from the beginning of one step up to and without that of another."""
        import narwhals as nw

        return frame.filter((nw.col(self.column) >= self.place(begin)) & (nw.col(self.column) < self.place(end)))


def has_unit(step: str) -> bool:
    """Whether a step is a length of time, and no whole number; what is neither is refused later."""
    match = _STEP.fullmatch(step.strip())
    return match is None or bool(match[2])
