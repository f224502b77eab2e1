"""The domains that people write:
a line, a grid, a list of categories. Each is a product of axes with a friendlier face.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.domain import order
from sfumato.domain.axis import Axis
from sfumato.domain.interval import Interval, plain
from sfumato.domain.labels import Label, Labels, shorten
from sfumato.domain.product import Domain
from sfumato.errors import DeclarationWarning, InvalidInput, warn_caller
from sfumato.exact import finite_float, shown

MOST_AXES = 32  # of a domain in a file; arrays hardly have more


class Line(Domain):
    """``[low, high]`` cut into ``cells`` cells.

    >>> Line(0, 24, cells=48, name="hour")
    Line(0, 24, cells=48, name='hour')
    """

    def __init__(self, low: float, high: float, *, cells: int, name: str = "x") -> None:
        super().__init__((Interval(name, low, high, cells),))

    def __repr__(self) -> str:
        (axis,) = self.intervals
        name = "" if axis.name == "x" else f", name={axis.name!r}"
        return f"Line({plain(axis.low)}, {plain(axis.high)}, cells={axis.cells}{name})"


class Grid(Domain):
    """A box in two or more dimensions cut into equal cells; axis 0 is x.

    >>> Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(256, 256))
    Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(256, 256))
    """

    def __init__(self, bounds: Sequence[float], shape: Sequence[int], *, names: Sequence[str] | None = None) -> None:
        bounds, shape = _sequence(bounds, "bounds"), _sequence(shape, "shape")
        d = len(shape)
        if d < 2:
            raise InvalidInput(f"shape={shape!r} has {d} sides, and a grid has at least two. Use sf.Line for one.")
        if len(bounds) != 2 * d:
            raise InvalidInput(
                f"bounds={bounds!r} has {len(bounds)} numbers; a grid of {d} sides has {2 * d}: (lo…, hi…)."
            )
        names = default_names(d) if names is None else _sequence(names, "names")
        if len(names) != d:
            raise InvalidInput(f"names={names!r} has {len(names)} names for {d} axes. Give one for each.")
        values = [finite_float(bound, "bounds") for bound in bounds]
        if any(values[i] >= values[d + i] for i in range(d)):
            raise InvalidInput(
                f"bounds={bounds!r} end before they begin on some axis; they are (lo…, hi…): {d} lower ends, then {d} "
                f"upper ends. Nothing was built.{order.hint(values)}"
            )
        doubt = order.suspicion(values)
        if doubt:
            warn_caller(doubt, DeclarationWarning)
        super().__init__(tuple(Interval(names[i], bounds[i], bounds[d + i], shape[i]) for i in range(d)))

    @classmethod
    def of(cls, axes: Iterable[Interval]) -> Grid:
        """The grid of given axes, as a file describes it: nothing is asked or warned of."""
        grid = cls.__new__(cls)
        Domain.__init__(grid, tuple(axes))
        return grid

    def __repr__(self) -> str:
        bounds = ", ".join(map(plain, self.bounds))
        names = "" if self.names == default_names(self.ndim) else f", names={self.names!r}"
        return f"Grid(bounds=({bounds}), shape={self.shape!r}{names})"


class Categories(Domain):
    """One cell for each label; a value that is not among them is refused, or counted under ``other``.

    >>> Categories(["bus", "tram", "rest"], other="rest")
    Categories(['bus', 'tram', 'rest'], other='rest')
    """

    def __init__(self, labels: Iterable[Label], *, name: str = "category", other: Label | None = None) -> None:
        super().__init__((Labels(name, labels, other),))  # type: ignore[arg-type]  # Labels makes the tuple

    def __repr__(self) -> str:
        (axis,) = self.axes
        if not isinstance(axis, Labels):  # __init__ makes no other axis
            return super().__repr__()
        name = "" if axis.name == "category" else f", name={axis.name!r}"
        other = "" if axis.other is None else f", other={axis.other!r}"
        return f"Categories({shorten(axis.labels)}{name}{other})"


def domain_from_spec(spec: Mapping[str, Any]) -> Domain:
    """The domain that :meth:`Domain.spec` described.

    The kinds of axis are a closed list; anything else is refused.
    """
    try:
        listed = spec["axes"]
        if not isinstance(listed, list) or len(listed) > MOST_AXES:
            raise TypeError("axes")
        axes = tuple(_axis(axis) for axis in listed)
    except (LookupError, TypeError) as error:
        raise InvalidInput("The description of the domain is incomplete or not of this format.") from error
    intervals = [axis for axis in axes if isinstance(axis, Interval)]
    if len(intervals) == len(axes) == 1:
        (line,) = intervals
        return Line(line.low, line.high, cells=line.cells, name=line.name)
    if intervals and len(intervals) == len(axes):
        return Grid.of(intervals)
    if len(axes) == 1 and isinstance(axes[0], Labels):
        return Categories(axes[0].labels, name=axes[0].name, other=axes[0].other)
    return Domain(axes)


def _axis(spec: Mapping[str, Any]) -> Axis:
    if spec["kind"] == "interval":
        return Interval(spec["name"], spec["low"], spec["high"], spec["cells"])
    if spec["kind"] == "labels":
        if not isinstance(spec["labels"], list):
            raise TypeError("labels")
        return Labels(spec["name"], tuple(spec["labels"]), spec["other"])
    raise InvalidInput(
        f"The description of the domain has an axis of kind {shown(spec['kind'])}; known are interval and labels."
    )


def default_names(d: int) -> tuple[str, ...]:
    """x, y, z, axis3, axis4, …"""
    return tuple("xyz"[i] if i < 3 else f"axis{i}" for i in range(d))


def _sequence(value: Any, name: str) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput(f"{name}={value!r} is not a sequence.")
    return tuple(value)
