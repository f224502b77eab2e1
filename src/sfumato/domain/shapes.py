"""The domains that people write:
a line, a grid, a list of categories, times, cycles. Each is a product of axes with a friendlier face.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, tzinfo
from typing import Any, TypeAlias, overload

import numpy as np

from sfumato.domain import order
from sfumato.domain.axis import Axis, axis_name
from sfumato.domain.bins import Bins
from sfumato.domain.coarser import Level
from sfumato.domain.cycle import Round
from sfumato.domain.durations import Duration
from sfumato.domain.factor import PLACE, Factor, default_names
from sfumato.domain.ground import ground_axes
from sfumato.domain.instants import steps
from sfumato.domain.interval import Interval
from sfumato.domain.labels import Label, Labels
from sfumato.domain.product import Domain
from sfumato.domain.zones import zone
from sfumato.errors import DeclarationWarning, InvalidInput, warn_caller
from sfumato.exact import finite_float

Moment: TypeAlias = str | date | np.datetime64
"""A time as people write it: ISO 8601, a date, a datetime (which is a date to Python), or NumPy's."""


class Line(Domain):
    """``[low, high]`` cut into ``cells`` equal cells, or cut at given ``edges``.

    >>> Line(0, 24, cells=48, name="hour")
    Line(0, 24, cells=48, name='hour')
    >>> Line(edges=[0, 5, 10, 20, 50, 200], name="fare").shape
    (5,)
    """

    @overload
    def __init__(self, low: float, high: float, *, cells: int, name: str = "x") -> None: ...

    @overload
    def __init__(self, *, edges: Sequence[float], name: str = "x") -> None: ...

    def __init__(
        self,
        low: float | None = None,
        high: float | None = None,
        *,
        cells: int | None = None,
        edges: Sequence[float] | None = None,
        name: str = "x",
    ) -> None:
        equal = {"low": low, "high": high, "cells": cells}
        if edges is not None:
            given = [f"{key}={value!r}" for key, value in equal.items() if value is not None]
            if given:
                raise InvalidInput(f"edges goes without {', '.join(given)}: they say the same. Leave one of them out.")
            super().__init__((Bins(name, edges),))  # type: ignore[arg-type]  # Bins makes the tuple
            return
        absent = [key for key, value in equal.items() if value is None]
        if absent or low is None or high is None or cells is None:
            raise InvalidInput(
                f"{' and '.join(absent)} must be given as well: sf.Line(low, high, cells=…), or sf.Line(edges=[…])."
            )
        super().__init__((Interval(name, low, high, cells),))


class Grid(Domain):
    """A box in two or more dimensions cut into equal cells; axis 0 is x.

    With ``crs`` its numbers are places on the ground, in degrees or in metres, and ``cell="100 m"`` stands for the
    shape of cells about so large (of degrees in the middle of the box; crs="EPSG:4326" unless another is said). Then
    what lies beyond the bounds is elsewhere, in no cell, and left out; longitudes are taken modulo 360; and
    ``sf.move("500 m")`` hides moves on the ellipsoid.

    >>> Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(256, 256))
    Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(256, 256))
    >>> Grid(bounds=(0, 0, 1, 1), shape=(4, 4), name="origin").names
    ('origin_x', 'origin_y')
    >>> Grid(bounds=(-74.3, 40.5, -73.7, 40.95), cell="1 km")
    Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(51, 50), crs='EPSG:4326')
    """

    @overload
    def __init__(
        self,
        bounds: Sequence[float],
        shape: Sequence[int],
        *,
        names: Sequence[str] | None = None,
        name: str = PLACE,
        crs: Any = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        bounds: Sequence[float],
        *,
        cell: str,
        names: Sequence[str] | None = None,
        name: str = PLACE,
        crs: Any = None,
    ) -> None: ...

    @overload
    def __init__(
        self, *, edges: Sequence[Sequence[float]], names: Sequence[str] | None = None, name: str = PLACE
    ) -> None: ...

    def __init__(
        self,
        bounds: Sequence[float] | None = None,
        shape: Sequence[int] | None = None,
        *,
        edges: Sequence[Sequence[float]] | None = None,
        names: Sequence[str] | None = None,
        name: str = PLACE,
        cell: str | None = None,
        crs: Any = None,
    ) -> None:
        if crs is not None or cell is not None:
            axes = _on_the_ground(bounds, shape, edges, names, name, cell, crs)
        elif edges is None:
            axes = _equal_axes(bounds, shape, names, name)
        else:
            axes = _cut_axes(edges, bounds, shape, names, name)
        super().__init__(axes, (Factor(name, tuple(range(len(axes)))),))

    @classmethod
    def of(cls, axes: Iterable[Interval | Bins], factors: tuple[Factor, ...] = ()) -> Grid:
        """The grid of given axes, as a file describes it: nothing is asked or warned of."""
        grid = cls.__new__(cls)
        Domain.__init__(grid, tuple(axes), factors)
        return grid


def _equal_axes(bounds: Any, shape: Any, names: Any, name: str) -> tuple[Axis, ...]:
    """The axes of a grid of equal cells."""
    if bounds is None or shape is None:
        raise InvalidInput(
            f"{'bounds' if bounds is None else 'shape'} must be given as well: sf.Grid(bounds, shape), or "
            "sf.Grid(edges=([…], […]))."
        )
    bounds, shape = _sequence(bounds, "bounds"), _sequence(shape, "shape")
    d = len(shape)
    if d < 2:
        raise InvalidInput(f"shape={shape!r} has {d} sides, and a grid has at least two. Use sf.Line for one.")
    if len(bounds) != 2 * d:
        raise InvalidInput(f"bounds={bounds!r} has {len(bounds)} numbers; a grid of {d} sides has {2 * d}: (lo…, hi…).")
    names = _names(names, d, name)
    values = [finite_float(bound, "bounds") for bound in bounds]
    if any(values[i] >= values[d + i] for i in range(d)):
        raise InvalidInput(
            f"bounds={bounds!r} end before they begin on some axis; they are (lo…, hi…): {d} lower ends, then {d} "
            f"upper ends. Nothing was built.{order.hint(values)}"
        )
    doubt = order.suspicion(values)
    if doubt:
        warn_caller(doubt, DeclarationWarning)
    return tuple(Interval(names[i], bounds[i], bounds[d + i], shape[i]) for i in range(d))


def _on_the_ground(bounds: Any, shape: Any, edges: Any, names: Any, name: str, cell: Any, crs: Any) -> tuple[Axis, ...]:
    """The axes of a grid with a CRS."""
    if edges is not None or bounds is None or (shape is None) == (cell is None):
        raise InvalidInput(
            "a grid with a CRS has bounds, and shape or cell, one of the two: sf.Grid(bounds, cell='100 m'), or "
            "sf.Grid(bounds, shape, crs='EPSG:4326'). Nothing was built."
        )
    sides = (2, 2) if shape is None else shape
    plain = _equal_axes(bounds, sides, names, name)  # refuses what is no box
    if len(plain) != 2:
        raise InvalidInput(f"shape={shape!r} has {len(plain)} sides, and a grid with a CRS has two. Nothing was built.")
    given = None if shape is None else tuple(axis.cells for axis in plain)
    return ground_axes(_sequence(bounds, "bounds"), given, cell, [axis.name for axis in plain], crs)


def _cut_axes(edges: Any, bounds: Any, shape: Any, names: Any, name: str) -> tuple[Axis, ...]:
    """The axes of a grid with given edges."""
    if bounds is not None or shape is not None:
        raise InvalidInput("edges goes without bounds and shape: they say the same. Leave one of them out.")
    cuts = _sequence(edges, "edges")
    if len(cuts) < 2:
        raise InvalidInput(
            f"edges has the edges of {len(cuts)} axes, and a grid has at least two. Use sf.Line for one."
        )
    names = _names(names, len(cuts), name)
    return tuple(Bins(names[i], cut) for i, cut in enumerate(cuts))


def _names(names: Any, d: int, name: str) -> tuple[str, ...]:
    names = default_names(d, name) if names is None else _sequence(names, "names")
    if len(names) != d:
        raise InvalidInput(f"names={names!r} has {len(names)} names for {d} axes. Give one for each.")
    return tuple(names)


class Categories(Domain):
    """One cell for each label; a value that is not among them is refused, or counted under ``other``.

    ``levels`` gives coarser names of the labels, from the coarsest level on: the chapter and the group of a diagnosis,
    the state and the county of a tract. Like the labels they are declared, and never collected from the data.

    >>> Categories(["bus", "tram", "rest"], other="rest")
    Categories(['bus', 'tram', 'rest'], other='rest')
    >>> Categories(["J10", "J18", "K35"], levels={"chapter": ["lung", "lung", "gut"]}).axes[0].coarser[0].names
    ('lung', 'gut')
    """

    def __init__(
        self,
        labels: Iterable[Label],
        *,
        name: str = "category",
        other: Label | None = None,
        levels: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        if levels is not None and not isinstance(levels, Mapping):
            raise InvalidInput(
                f"levels={type(levels).__name__} must map the name of every level, the coarsest first, to the coarser "
                "names of the labels, such as levels={'county': ['A', 'A', 'B']}."
            )
        coarser = tuple(Level(level, tuple(map(str, of))) for level, of in (levels or {}).items())
        super().__init__((Labels(name, labels, other, coarser),))  # type: ignore[arg-type]  # Labels makes the tuple


class Times(Domain):
    """Time from ``start`` on and before ``stop``, cut into steps of ``every``: "15 min", "1 h", "1 day", "1 week", or a
    timedelta. The last step ends at ``stop``, even where it is cut short.

    *Zones.* Without ``tz`` and without offsets in ``start`` and ``stop`` times are readings of a clock of no zone. With
    ``tz`` they are instants; ``start`` and ``stop`` without an offset are read on the zone's clocks, and steps of whole
    days and weeks begin at local midnight: a day has 23 to 25 hours where clocks are changed. A column with a zone
    against an axis without one, or the other way round, is refused.

    *Exactness.* Times are whole microseconds. Finer ones are rounded down, which takes none of them over an edge. Times
    outside of the span are counted in the first or last step, as numbers outside of the bounds are, which never
    lengthens a move; the report says how many there were.

    >>> Times("2026-01-01", "2027-01-01", every="1 week").shape
    (53,)
    >>> Times("2026-03-07", "2026-03-10", every="1 day", tz="America/New_York").axes[0].cell_names()[1]
    '[2026-03-08T00:00-05:00, 2026-03-09T00:00-04:00)'
    """

    def __init__(
        self, start: Moment, stop: Moment, *, every: Duration, name: str = "t", tz: str | tzinfo | None = None
    ) -> None:
        super().__init__((steps(start, stop, every, axis_name(name), tz),))


class Cycle(Domain):
    """What comes round: ``"hour of day"`` (24 cells), ``"weekday"`` (7, Monday first), ``"hour of week"`` (168) or
    ``"month"`` (12). After the last cell comes the first one again.

    With ``tz`` instants are counted by what the zone's clocks show, and a move across a change of the clocks is known
    for what it is; times without a zone are taken as readings of these clocks. Without ``tz`` only those are taken.
    The name is that of the cycle with underscores, unless another is given.

    >>> Cycle("weekday").axes[0].cell_names()[:2]
    ['Monday', 'Tuesday']
    >>> Cycle("hour of day", name="t", tz="America/New_York")
    Cycle('hour of day', name='t', tz='America/New_York')
    """

    def __init__(self, of: str, *, name: str | None = None, tz: str | tzinfo | None = None) -> None:
        named = str(of).replace(" ", "_") if name is None else name
        super().__init__((Round(named, of, None if tz is None else zone(tz).key),))


def _sequence(value: Any, name: str) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput(f"{name}={value!r} is not a sequence.")
    return tuple(value)
