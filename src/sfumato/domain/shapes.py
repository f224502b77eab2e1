"""The domains that people write:
a line, a grid, a list of categories. Each is a product of axes with a friendlier face.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.domain import order
from sfumato.domain.axis import Axis, axis_name
from sfumato.domain.factor import PLACE, Factor, default_names
from sfumato.domain.interval import Interval
from sfumato.domain.labels import Label, Labels
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


class Grid(Domain):
    """A box in two or more dimensions cut into equal cells; axis 0 is x.

    >>> Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(256, 256))
    Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(256, 256))
    >>> Grid(bounds=(0, 0, 1, 1), shape=(4, 4), name="origin").names
    ('origin_x', 'origin_y')
    """

    def __init__(
        self,
        bounds: Sequence[float],
        shape: Sequence[int],
        *,
        names: Sequence[str] | None = None,
        name: str = PLACE,
    ) -> None:
        bounds, shape = _sequence(bounds, "bounds"), _sequence(shape, "shape")
        d = len(shape)
        if d < 2:
            raise InvalidInput(f"shape={shape!r} has {d} sides, and a grid has at least two. Use sf.Line for one.")
        if len(bounds) != 2 * d:
            raise InvalidInput(
                f"bounds={bounds!r} has {len(bounds)} numbers; a grid of {d} sides has {2 * d}: (lo…, hi…)."
            )
        names = default_names(d, name) if names is None else _sequence(names, "names")
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
        axes = tuple(Interval(names[i], bounds[i], bounds[d + i], shape[i]) for i in range(d))
        super().__init__(axes, (Factor(name, tuple(range(d))),))

    @classmethod
    def of(cls, axes: Iterable[Interval], factors: tuple[Factor, ...] = ()) -> Grid:
        """The grid of given axes, as a file describes it: nothing is asked or warned of."""
        grid = cls.__new__(cls)
        Domain.__init__(grid, tuple(axes), factors)
        return grid


class Categories(Domain):
    """One cell for each label; a value that is not among them is refused, or counted under ``other``.

    >>> Categories(["bus", "tram", "rest"], other="rest")
    Categories(['bus', 'tram', 'rest'], other='rest')
    """

    def __init__(self, labels: Iterable[Label], *, name: str = "category", other: Label | None = None) -> None:
        super().__init__((Labels(name, labels, other),))  # type: ignore[arg-type]  # Labels makes the tuple


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
    return shaped(axes, _factors(spec.get("factors", [])))


def shaped(axes: tuple[Axis, ...], factors: tuple[Factor, ...] = ()) -> Domain:
    """The domain of given axes, with the friendlier face where it has one."""
    domain = Domain(axes, factors)
    if len(domain.factors) > 1:
        return domain
    intervals = [axis for axis in axes if isinstance(axis, Interval)]
    if len(intervals) == len(axes) == 1:
        (line,) = intervals
        return Line(line.low, line.high, cells=line.cells, name=line.name)
    if intervals and len(intervals) == len(axes):
        return Grid.of(intervals, domain.factors)
    if len(axes) == 1 and isinstance(axes[0], Labels):
        return Categories(axes[0].labels, name=axes[0].name, other=axes[0].other)
    return domain


def _factors(listed: Any) -> tuple[Factor, ...]:
    try:
        if not isinstance(listed, list) or len(listed) > MOST_AXES:
            raise TypeError("factors")
        return tuple(Factor(axis_name(entry["name"]), tuple(map(_position, entry["axes"]))) for entry in listed)
    except (LookupError, TypeError) as error:
        raise InvalidInput("The description of the domain is incomplete or not of this format.") from error


def _position(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("axes")
    return value


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


def _sequence(value: Any, name: str) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput(f"{name}={value!r} is not a sequence.")
    return tuple(value)
