"""Time cut into steps: instants where the axis has a zone, readings of a clock where it has none.

**The edges are whole microseconds and part of the definition.** They are kept as runs of steps of one length, so that
a day of 23 hours is written down as one: whoever reads a description has the same edges, whatever his machine knows of
zones. A time's cell is settled by comparison with the edges, in whole numbers. The span is [start, stop): what lies
before or after is clamped to the first or last cell, which never lengthens a move.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timezone
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain.axis import axis_name
from sfumato.domain.durations import DAY, SECOND, duration, in_words
from sfumato.domain.moments import EARLIEST, LATEST, microseconds, parsed, times, written
from sfumato.domain.timed import Timed
from sfumato.domain.zones import Zone, zone
from sfumato.errors import InvalidInput
from sfumato.exact import shown

MOST_RUNS = 1 << 16


@dataclass(frozen=True, repr=False)
class Instants(Timed):
    """Steps from a start on: runs of (length, how many), in microseconds since 1970."""

    name: str
    start: int
    runs: tuple[tuple[int, int], ...]
    tz: str | None = None
    """The zone whose clocks write the times; None for clocks of no zone."""

    closed = False

    def __post_init__(self) -> None:
        name = axis_name(self.name)
        if (
            not all(type(number) is int and number > 0 for run in self.runs for number in run)
            or type(self.start) is not int
        ):
            raise InvalidInput(f"Axis {name!r}: its steps are not whole microseconds, more than none.")
        if not 1 <= len(self.runs) <= MOST_RUNS:
            raise InvalidInput(f"Axis {name!r}: its steps come in {len(self.runs):,} runs; from 1 to {MOST_RUNS:,} do.")
        merged: list[tuple[int, int]] = []
        for length, count in self.runs:
            if merged and merged[-1][0] == length:
                merged[-1] = (length, merged[-1][1] + count)
            else:
                merged.append((length, count))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "runs", tuple(merged))
        if self.start < EARLIEST or self.stop > LATEST + 1:
            raise InvalidInput(f"Axis {name!r}: its span reaches beyond the years 1 to 9999.")
        if self.tz is not None:
            object.__setattr__(self, "tz", zone(self.tz).key)

    def __repr__(self) -> str:
        return f"Instants({self.name!r}, {self.face()})"

    @property
    def comparisons(self) -> int:
        """One for each run of steps."""
        return len(self.runs)

    @property
    def cells(self) -> int:  # type: ignore[override]  # read, never set
        """The number of steps."""
        return sum(count for _, count in self.runs)

    @property
    def stop(self) -> int:
        """The first microsecond after the last step."""
        return self.start + sum(length * count for length, count in self.runs)

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """The ``cells + 1`` edges in microseconds, read-only."""
        lengths, counts = (np.array(part, dtype=np.int64) for part in zip(*self.runs, strict=True))
        edges = self.start + np.append(0, np.cumsum(np.repeat(lengths, counts)))
        edges.flags.writeable = False
        return edges

    @property
    def ends(self) -> tuple[int, int]:
        """The start and the stop."""
        return self.start, self.stop

    def scale(self, values: ArrayLike) -> NDArray[np.int64]:
        """Times as microseconds, with a zone where the axis has one and only there."""
        ticks, zoned = times(values, self.name)
        if ticks.size and not self.takes(zoned=zoned):
            raise InvalidInput(f"Axis {self.name!r}: {self.misfit(zoned=zoned)}")
        return ticks

    def takes(self, *, zoned: bool) -> bool:
        """Instants where it has a zone, and readings of a clock where it has none."""
        return zoned == (self.tz is not None)

    def place_ticks(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The step of each time."""
        return self.cells_at(ticks)

    def ticks_outside(self, ticks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which times lie before the start, or at the stop or after it."""
        return self.beyond(ticks)

    def written(self, value: Any) -> str:
        """A time in ISO 8601, as the clocks of the zone show it, with its offset where there is a zone."""
        found = self.zone
        ticks = int(value)
        if found is None:
            return written(ticks)
        clock = int(found.local(np.array([ticks]))[0])
        text = written(min(max(clock, EARLIEST), LATEST))
        minutes, seconds = divmod(abs(clock - ticks) // SECOND, 60)
        offset = f"{'-' if clock < ticks else '+'}{minutes // 60:02}:{minutes % 60:02}"
        offset += f":{seconds:02}" if seconds else ""  # as before zones were thought of
        return f"{text if 'T' in text else f'{text}T00:00'}{offset}"

    def cells_at(self, scaled: NDArray[Any]) -> NDArray[np.int64]:
        """The step of each time, in whole numbers: the run that holds it, then the step within the run."""
        inside = np.clip(scaled, self.start, self.stop - 1) - self.start
        if len(self.runs) == 1:
            return np.asarray(inside // self.runs[0][0])
        lengths, begins, first = self._table
        run = np.searchsorted(begins, inside, side="right") - 1
        return np.asarray(first[run] + (inside - begins[run]) // lengths[run])

    @cached_property
    def _table(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of every run the length of a step, when it begins after the start, and the number of its first step."""
        lengths, counts = (np.array(part, dtype=np.int64) for part in zip(*self.runs, strict=True))
        return lengths, np.cumsum(lengths * counts) - lengths * counts, np.cumsum(counts) - counts

    def length(self, delta: Any) -> Fraction:
        """A length of time in microseconds."""
        return Fraction(duration(delta, "delta"))

    def face(self) -> str:
        """Times, as one writes them."""
        ends = [self._end(self.start), self._end(self.stop)]
        name = "" if self.name == "t" else f", name={self.name!r}"
        tz = "" if self.tz is None else f", tz={self.tz!r}"
        return f"Times({ends[0]!r}, {ends[1]!r}, every={in_words(self.every)!r}{name}{tz})"

    def _end(self, ticks: int) -> str:
        """An end without its offset, where the zone's clocks show it once."""
        found = self.zone
        if found is None:
            return written(ticks) if ticks <= LATEST else "9999-12-31T23:59:59.999999"
        clock = found.local(np.array([ticks]))
        again = int(found.instants(clock)[0]) == ticks and EARLIEST <= int(clock[0]) <= LATEST
        return written(int(clock[0])) if again else self.written(ticks)

    @property
    def every(self) -> int:
        """The usual length of a step: the commonest, whole days before others, the first of several."""
        counts: dict[int, int] = {}
        for length, count in self.runs:
            counts[length] = counts.get(length, 0) + count
        return max(counts, key=lambda length: (counts[length], length % DAY == 0))

    def size(self, cells: int) -> str:
        """How long so many steps usually are, in words."""
        return in_words(self.every * cells)

    def entry(self) -> dict[str, Any]:
        """From when to when, by which step, where that says it all; else every step in microseconds."""
        tz = {} if self.tz is None else {"tz": self.tz}
        ends = {"start": self._end(self.start), "stop": self._end(self.stop), "every": in_words(self.every)}
        with suppress(InvalidInput):  # steps of whole days that begin at no midnight
            if steps(ends["start"], ends["stop"], ends["every"], self.name, self.tz) == self:
                return ends | tz
        return {"start": self.start, "steps": [list(run) for run in self.runs]} | tz

    def spec(self) -> dict[str, Any]:
        """The axis as plain data."""
        return {
            "kind": "times",
            "name": self.name,
            "start": self.start,
            "steps": [list(run) for run in self.runs],
            "tz": self.tz,
        }


def steps(start: object, stop: object, every: object, name: str, tz: object) -> Instants:
    """The axis of what a user says; see `sfumato.Times`."""
    begin, end = parsed(start, "start"), parsed(stop, "stop")
    step = duration(every, "every")
    where = zone(tz) if tz is not None else _implied(begin, end)
    low, high = _ticks(begin, where), _ticks(end, where)
    if not low < high:
        raise InvalidInput(f"Axis {name!r}: start={shown(start)} is not before stop={shown(stop)}.")
    if where is not None and step % DAY == 0:
        return Instants(name, low, _local_days(low, high, step, where, start), where.key)
    count, rest = divmod(high - low, step)
    runs = [(step, count)] * (count > 0) + [(rest, 1)] * (rest > 0)
    return Instants(name, low, tuple(runs), None if where is None else where.key)


def _implied(begin: date, end: date) -> Zone | None:
    """The zone that both ends tell by themselves, if they tell any."""
    given = [moment.tzinfo if isinstance(moment, datetime) else None for moment in (begin, end)]
    if given == [None, None]:
        return None
    names = {getattr(each, "key", None) for each in given}
    offsets = {moment.utcoffset() if isinstance(moment, datetime) else None for moment in (begin, end)}
    if len(names) == 1 and None not in names:
        return zone(given[0])
    if len(offsets) > 1:
        raise InvalidInput(
            f"start={begin.isoformat()!r} and stop={end.isoformat()!r} do not tell the same zone. Say it with tz=…, "
            "such as tz='UTC' or tz='America/New_York', or give both the same offset."
        )
    (offset,) = offsets
    return None if offset is None else zone(timezone(offset))


def _ticks(moment: date, where: Zone | None) -> int:
    ticks = microseconds(moment)
    if where is None or (isinstance(moment, datetime) and moment.tzinfo is not None):
        return ticks
    return int(where.instants(np.array([ticks]))[0])


def _local_days(low: int, high: int, step: int, where: Zone, start: object) -> tuple[tuple[int, int], ...]:
    """Steps of whole days, from one local midnight to another: the first instant of each day, where clocks skip its
    midnight or show it twice.
    """
    first, last = (int(clock) for clock in where.local(np.array([low, high])))
    midnights = where.instants(np.arange(first - first % DAY, last + 2 * DAY + step, step))
    if midnights[0] != low:
        raise InvalidInput(
            f"start={shown(start)} is no midnight in the zone {where.key!r}, where steps of whole days begin. Give a "
            "date, or steps of less than a day."
        )
    edges = np.unique(np.append(midnights[midnights < high], high))  # a day that the zone left out is none
    lengths = np.diff(edges)
    begins = np.flatnonzero(np.append(True, lengths[1:] != lengths[:-1]))
    counts = np.diff(np.append(begins, len(lengths)))
    return tuple((int(lengths[at]), int(count)) for at, count in zip(begins, counts, strict=True))
