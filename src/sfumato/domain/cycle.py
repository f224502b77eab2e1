"""What comes round: the hour of the day, the weekday, the hour of the week, the month, as clocks and calendars show it.

A time becomes a cell by arithmetic on the reading of a clock, in whole microseconds. An instant is first read on the
clocks of the axis's zone; a time without a zone is a reading already. After the last cell comes the first one again.

As a list the cells have an order, in which they may be asked for in ranges: a range does not go round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain.axis import axis_name
from sfumato.domain.durations import DAY, HOUR, duration
from sfumato.domain.interval import numbers, plain
from sfumato.domain.moments import times
from sfumato.domain.near_cycle import Turn, near_pairs
from sfumato.domain.timed import READING, Timed
from sfumato.domain.zones import zone
from sfumato.errors import InvalidInput
from sfumato.exact import shown

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_HOURS = tuple(f"{hour:02}:00" for hour in range(24))
_MONDAY = -3 * DAY  # 29 December 1969


def _by(length: int, origin: int, count: int) -> Turn:
    """Cells of one length."""

    def number(clock: NDArray[np.int64]) -> NDArray[np.int64]:
        return (clock - origin) // length

    def start(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return numbers * length + origin

    return Turn(count, number, start, (length, origin))


def _months() -> Turn:
    def number(clock: NDArray[np.int64]) -> NDArray[np.int64]:
        return (clock // DAY).astype("M8[D]").astype("M8[M]").astype(np.int64)

    def start(months: NDArray[np.int64]) -> NDArray[np.int64]:
        return months.astype("M8[M]").astype("M8[D]").astype(np.int64) * DAY

    return Turn(12, number, start)


CYCLES: dict[str, tuple[Turn, tuple[str, ...]]] = {
    "hour of day": (_by(HOUR, 0, 24), _HOURS),
    "weekday": (_by(DAY, _MONDAY, 7), _DAYS),
    "hour of week": (_by(HOUR, _MONDAY, 168), tuple(f"{day} {hour}" for day in _DAYS for hour in _HOURS)),
    "month": (_months(), _MONTHS),
}


@dataclass(frozen=True, repr=False)
class Round(Timed):
    """One cell for each hour, weekday, hour of the week or month."""

    name: str
    of: str
    tz: str | None = None
    """The zone on whose clocks instants are read; None where times have no zone."""

    closed = True
    winds = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", axis_name(self.name))
        if not isinstance(self.of, str) or self.of not in CYCLES:
            raise InvalidInput(
                f"Axis {self.name!r}: of={shown(self.of)} is none of {', '.join(map(repr, CYCLES))}. Use one of these."
            )
        if self.tz is not None:
            object.__setattr__(self, "tz", zone(self.tz).key)

    def __repr__(self) -> str:
        return f"Round({self.name!r}, {self.of!r}, tz={self.tz!r})"

    @property
    def cells(self) -> int:  # type: ignore[override]  # read, never set
        """24, 7, 168 or 12."""
        return self.turn.cells

    @property
    def turn(self) -> Turn:
        """How readings of a clock become cells."""
        return CYCLES[self.of][0]

    @property
    def comparisons(self) -> int:
        """The changes of the clocks in its zone."""
        return 1 if self.zone is None else len(self.zone.changes)

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """The numbers of the cells, and one more: as a list, a cycle is cut at them."""
        edges = np.arange(self.cells + 1)
        edges.flags.writeable = False
        return edges

    def locate(self, values: ArrayLike) -> NDArray[np.int64]:
        """The cell of each time: instants are read on the clocks of the zone, other times are readings already."""
        ticks, zoned = times(values, self.name)
        if not self.takes(zoned=zoned):
            raise InvalidInput(f"Axis {self.name!r}: {self.misfit(zoned=zoned)}")
        return self.cells_shown(ticks, zoned=zoned)

    def takes(self, *, zoned: bool) -> bool:
        """Readings of a clock always, and instants where there is a zone on whose clocks they are read."""
        return not zoned or self.tz is not None

    def place_ticks(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells of instants and of marked readings."""
        if not self.marks:
            return self.cells_shown(ticks, zoned=False)
        reading = ticks >= READING // 2
        return self.cells_shown(np.where(reading, ticks - READING, ticks), zoned=~reading)

    def cells_shown(self, ticks: NDArray[np.int64], *, zoned: bool | NDArray[np.bool_]) -> NDArray[np.int64]:
        """The cells of microseconds, which are instants where `zoned` says so, and readings of a clock elsewhere."""
        where = self.zone
        if where is not None and np.any(zoned):
            ticks = np.where(zoned, where.local(ticks), ticks)
        return np.asarray(self.turn.number(ticks) % self.cells)

    def accumulate(self, values: NDArray[Any], cells: NDArray[np.int64]) -> None:
        """Turn each number in ``cells`` into ``number * self.cells + cell of the time``, in place."""
        np.multiply(cells, self.cells, out=cells)
        np.add(cells, self.locate(values), out=cells)

    def outside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Nothing lies outside of what comes round."""
        return np.zeros(len(values), np.bool_)

    def scale(self, values: ArrayLike) -> NDArray[np.float64]:
        """Numbers from 0 to the number of cells, and names of cells, which stand for where they begin."""
        array = np.asarray(values)
        if array.dtype.kind not in "OUT":
            return numbers(array, self.name)
        place = {name: number for number, name in enumerate(CYCLES[self.of][1])}
        found = [place.get(value, value) if isinstance(value, str) else value for value in array.ravel().tolist()]
        for value in found:
            if isinstance(value, str):
                first, *_, last = CYCLES[self.of][1]
                raise InvalidInput(
                    f"Axis {self.name!r}: {shown(value)} is none of its cells, {first!r} to {last!r}. Give one of "
                    f"these, or a number from 0 to {self.cells}."
                )
        return numbers(np.array(found, dtype=object), self.name).reshape(array.shape)

    def written(self, value: Any) -> str:
        """A place on the cycle as a number."""
        return plain(float(value))

    def cells_at(self, scaled: NDArray[Any]) -> NDArray[np.int64]:
        """The cell of a number from 0 to the number of cells."""
        if np.isnan(scaled).any():
            raise InvalidInput(f"Axis {self.name!r}: NaN is no place on a cycle.")
        return np.clip(np.floor(scaled), 0, self.cells - 1).astype(np.int64)

    def cell_names(self) -> list[str]:
        """Monday, January, 00:00."""
        return list(CYCLES[self.of][1])

    def reach(self, delta: Any) -> NDArray[np.int64]:
        """A cycle has no last cell: `near` lists the pairs."""
        raise InvalidInput(f"Axis {self.name!r} comes round, and no cell is the last. Use near(delta={delta!r}).")

    def near(self, delta: Any) -> NDArray[np.int64]:
        """Every pair of cells u < v in which two times less than delta apart may lie, also across a change of clocks.

        Both what instants and what readings of a clock can do is in it, since either may be counted.
        """
        return near_pairs(self.turn, self.zone, duration(delta, "delta"))

    def face(self) -> str:
        """A cycle, as one writes it."""
        name = "" if self.name == self.of.replace(" ", "_") else f", name={self.name!r}"
        tz = "" if self.tz is None else f", tz={self.tz!r}"
        return f"Cycle({self.of!r}{name}{tz})"

    def size(self, cells: int) -> str:
        """How long so many cells are, in words."""
        unit = {"weekday": "day", "month": "month"}.get(self.of, "hour")
        return f"{cells} {unit}{'s' if cells > 1 else ''}"

    def entry(self) -> dict[str, Any]:
        """What comes round, and its zone."""
        return {"cycle": self.of} | ({} if self.tz is None else {"tz": self.tz})

    def spec(self) -> dict[str, Any]:
        """The axis as plain data."""
        return {"kind": "cycle", "name": self.name, "of": self.of, "tz": self.tz}
