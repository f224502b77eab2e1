"""Axes of times: what counting asks of them, wherever the times are held.

Counting sees a time as one whole number of microseconds, made by the rule of `sfumato.domain.moments` on every engine:
an instant where the column tells a zone, the reading of a clock where it tells none. An axis that takes both (a cycle
with a zone) tells them apart by a mark: ``READING`` is added to readings, and is far beyond all times.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.domain.ordered import Ordered
from sfumato.domain.zones import Zone, zone

READING = 1 << 60
"""Added to the reading of a clock, on an axis that takes instants too."""
NO_TIME = -(1 << 63)
"""In the place of a time that is missing."""


class Timed(Ordered):
    """An axis of times, with a zone or without."""

    reads = "times"
    tz: str | None

    @property
    def zone(self) -> Zone | None:
        """The zone, or None."""
        return None if self.tz is None else zone(self.tz)

    @abstractmethod
    def takes(self, *, zoned: bool) -> bool:
        """Whether it takes instants, where ``zoned``, or readings of a clock."""

    @abstractmethod
    def place_ticks(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell of each time in microseconds, marked where the axis takes both kinds."""

    @property
    def marks(self) -> bool:
        """Whether readings are marked, since instants are taken too."""
        return self.takes(zoned=True) and self.takes(zoned=False)

    def ticks_outside(self, ticks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of them lie before the first cell or after the last."""
        return np.zeros(len(ticks), np.bool_)

    def take(self, held: NDArray[Any], cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Counting holds times as microseconds."""
        np.multiply(cells, self.cells, out=cells)
        np.add(cells, self.place_ticks(held), out=cells)
        return self.ticks_outside(held)

    def misfit(self, *, zoned: bool) -> str:
        """What is said of times that the axis does not take, and what to do."""
        return f"{unfit(zoned=zoned)}. Nothing was counted. {remedy(zoned=zoned, tz=self.tz)}"


def unfit(*, zoned: bool) -> str:
    """What does not fit, in words."""
    if zoned:
        return "its values have a time zone, and the axis has none"
    return "its values have no time zone, and the axis has one"


def remedy(*, zoned: bool, tz: str | None) -> str:
    """What to do where values and axis do not fit."""
    if zoned:
        return "Give the axis a zone with tz=…, such as tz='UTC', or convert the values to times without one."
    return f"Say in which zone the values are (tz_localize, replace_time_zone), or leave tz={tz!r} out of the axis."


def marked(ticks: Any, axis: Timed, *, zoned: bool) -> Any:
    """Microseconds of one kind as the axis takes them; whatever holds them knows how to add."""
    return ticks + READING if axis.marks and not zoned else ticks
