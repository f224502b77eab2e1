"""Windows of time: for how long a change may last and still be hidden at ε.

A stream publishes again and again, so no sum over all of it stays finite. What it promises is about a window: a change
confined to `window` consecutive steps, or to less than so much clock time, is hidden at ε, and one that lasts k windows
at k·ε (Theorem 2 of P000). It holds when the budgets of every window add up to at most ε, the first ones, which begin
before the stream does, included.

Inside, time is counted in whole **ticks**: a step, or a microsecond. A window that ends at tick t holds the ticks
t - size + 1 … t. Of clock time that is the half-open span (t - w, t]: two releases exactly w apart share no window, and
a day of hourly releases has 24 of them, not 25.

Datetimes with a time zone are instants. Datetimes without one are wall time, taken as they are: where the clock is put
back, the same time comes twice, and the second one is a time past.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sfumato.errors import InvalidInput
from sfumato.exact import is_whole, positive_int

Time = int | datetime
WindowKind = Literal["steps", "time"]
Clock = Literal["steps", "wall", "utc"]

# Ticks stay so far inside 64 bits that a tick and a window can be added.
MOST_TICKS = 1 << 62

_TICK = timedelta(microseconds=1)
_EPOCH = {"wall": datetime(1970, 1, 1), "utc": datetime(1970, 1, 1, tzinfo=UTC)}
# Two days and more are said in days. 24 hours are not called a day: where the clock changes, a day has 23 or 25.
_SCALES = (
    ("day", timedelta(days=1), timedelta(days=2)),
    ("hour", timedelta(hours=1), timedelta(hours=1)),
    ("minute", timedelta(minutes=1), timedelta(minutes=1)),
    ("second", timedelta(seconds=1), timedelta(seconds=1)),
    ("microsecond", _TICK, _TICK),
)


@dataclass(frozen=True, slots=True)
class Window:
    """So many steps, or so much clock time: `Window.of(7)`, `Window.of(timedelta(hours=24))`. `size` is in ticks."""

    kind: WindowKind
    size: int

    def __post_init__(self) -> None:
        if self.kind not in ("steps", "time"):
            raise InvalidInput(f"kind={self.kind!r} is not a kind of window. Use 'steps' or 'time'.")
        object.__setattr__(self, "size", positive_int(self.size, "window"))
        if self.size > MOST_TICKS:
            raise InvalidInput(f"window={self.size} is too long: at most 2^62 steps or microseconds are counted.")

    @classmethod
    def of(cls, span: int | timedelta | Window) -> Window:
        """A window of so many steps (a whole number) or so much clock time (a timedelta)."""
        if isinstance(span, Window):
            return span
        if isinstance(span, timedelta):
            try:
                size, rest = divmod(span, _TICK)
                if not rest and size >= 1:
                    return cls("time", int(size))
            except (TypeError, ValueError):  # pandas' NaT calls itself a timedelta
                pass
        elif is_whole(span) and span >= 1:
            return cls("steps", int(span))
        raise InvalidInput(
            f"window={span!r} is not a window. Use a whole number of steps of at least 1, such as 7, or a timedelta of "
            "at least a microsecond, such as timedelta(hours=24)."
        )

    def first(self, tick: int) -> int:
        """The first tick of the window that ends at a tick."""
        return tick - self.size + 1

    def said(self, windows: int = 1) -> str:
        """How long so many windows are: '7 steps', '24 hours', '90 minutes'."""
        if self.kind == "steps":
            return _plural(self.size * windows, "step")
        span = self.size * windows
        return next(
            _plural(span // (unit // _TICK), name)
            for name, unit, least in _SCALES
            if span % (unit // _TICK) == 0 and span >= least // _TICK
        )

    def span(self, windows: int = 1) -> str:
        """The stretches of time that so many windows cover: '7 consecutive time steps', 'less than 24 hours'."""
        if self.kind == "time":
            return f"less than {self.said(windows)}"
        number = self.size * windows
        return "a single time step" if number == 1 else f"{number} consecutive time steps"

    def __str__(self) -> str:
        return self.said()

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the kind, and the size in steps or microseconds."""
        return {"kind": self.kind, "size": self.size}

    @classmethod
    def from_dict(cls, data: object) -> Window:
        """The window that `to_dict` wrote."""
        if not isinstance(data, Mapping) or set(data) != {"kind", "size"}:
            raise InvalidInput("window: it does not have exactly the fields kind, size.")
        return cls(data["kind"], data["size"])


def ticks_of(time: object, window: Window) -> tuple[int, Clock]:
    """(tick, clock) of a time in a stream with this window; what cannot be told exactly is refused."""
    if window.kind == "steps":
        if is_whole(time) and abs(int(time)) <= MOST_TICKS:
            return int(time), "steps"
        allowed = "a whole number: the window is counted in steps"
    else:
        if isinstance(time, datetime):
            try:
                clock: Clock = "wall" if time.utcoffset() is None else "utc"
                tick, rest = divmod(time - _EPOCH[clock], _TICK)
                if not rest:
                    time_at(int(tick), clock)
                    return int(tick), clock
            except (TypeError, ValueError, OverflowError):  # NaT, or an instant outside the calendar
                pass
        allowed = "a datetime to the microsecond: the window is counted in clock time"
    raise InvalidInput(f"time={time!r} must be {allowed}. Nothing was drawn or recorded.")


def time_at(tick: int, clock: Clock) -> Time:
    """The time that has this tick; instants come back in UTC. Raises OverflowError outside the calendar."""
    return tick if clock == "steps" else _EPOCH[clock] + tick * _TICK


def time_said(tick: int, clock: Clock) -> str:
    """A time for people: 'step 12', '2026-03-02 00:00:00'."""
    time = time_at(tick, clock)
    return f"step {time}" if isinstance(time, int) else time.isoformat(sep=" ")


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
