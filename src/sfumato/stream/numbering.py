"""Which step of a stream a time is: whole numbers as they are, clock time by a regular step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.promise.window import Clock, Time, Window, ticks_of


@dataclass(frozen=True)
class StepNumbering:
    """The window of a stream and the steps that it is divided into, all of them equally long.

    Budgets are divided over steps, so a window of clock time needs a `step` of clock time, and must be a whole number
    of them. A stream numbers its steps from the first one that it published or skipped.
    """

    window: Window
    step: int  # in ticks of the window
    steps: int  # in a window

    @classmethod
    def of(cls, window: Any, step: Any) -> StepNumbering:
        """From what the caller says: `window` in steps, or in clock time with `step` in clock time."""
        if step is None:
            span = Window.of(window)
            if span.kind == "time":
                raise InvalidInput(
                    f"window={window!r} is clock time, and the budget is divided over steps. Nothing was drawn or "
                    "recorded. Say how long a step is, such as step=timedelta(hours=1)."
                )
            return cls(span, 1, span.size)
        if not isinstance(step, timedelta):
            raise InvalidInput(
                f"step={step!r} is not a timedelta. Nothing was drawn or recorded. Use one such as timedelta(hours=1), "
                "or leave step out and number the steps."
            )
        one = Window.of(step)
        if not isinstance(window, timedelta):
            count = Window.of(window)
            span = count if count.kind == "time" else Window("time", count.size * one.size)
        else:
            span = Window.of(window)
        if span.size % one.size:
            raise InvalidInput(
                f"window={window!r} is not a whole number of steps of {one}. Nothing was drawn or recorded. Use a "
                "window that is a multiple of the step."
            )
        return cls(span, one.size, span.size // one.size)

    def number(self, time: Any, first: Time | None) -> int:
        """The number of a time's step, the first one of the stream being 0."""
        tick, kind = ticks_of(time, self.window)
        if first is None:
            return 0
        number, rest = divmod(self._since(time, tick, kind, first), self.step)
        if rest:
            raise InvalidInput(
                f"time={time!r} lies between two steps of {timedelta(microseconds=self.step)} from {first}. Nothing "
                "was drawn or recorded. Give the time at which its step begins."
            )
        return number

    def over(self, until: Any, first: Time) -> int:
        """How many steps from the first one on are over by a time, which need not be the beginning of one."""
        return max(self._since(until, *ticks_of(until, self.window), first) // self.step, 0)

    def _since(self, time: Any, tick: int, kind: Clock, first: Time) -> int:
        """Ticks from the first step to a time of the same clock."""
        begin, clock = ticks_of(first, self.window)
        if kind != clock:
            raise InvalidInput(
                f"time={time!r}: this stream counts {'wall time without' if clock == 'wall' else 'instants with'} a "
                "time zone. Nothing was drawn or recorded. Keep to one kind of time."
            )
        return tick - begin

    def time(self, number: int, first: Time) -> Time:
        """The time of a step, given that of the first one."""
        if isinstance(first, datetime):
            return first + timedelta(microseconds=self.step * number)
        return first + number
