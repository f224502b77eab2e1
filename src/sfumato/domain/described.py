"""A domain from its description: the kinds of axis are a closed list, and nothing in a file is trusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato.domain.areas import Areas, areas_from_spec
from sfumato.domain.axis import Axis, axis_name
from sfumato.domain.bins import Bins
from sfumato.domain.cycle import Round
from sfumato.domain.factor import Factor
from sfumato.domain.ground import ground_from_spec
from sfumato.domain.hexagons import H3, Hexagons, hexagons_from_spec
from sfumato.domain.instants import Instants
from sfumato.domain.interval import Interval
from sfumato.domain.labels import Labels, labels_from_spec
from sfumato.domain.network import Network
from sfumato.domain.product import Domain
from sfumato.domain.regions import Regions
from sfumato.domain.roads import Roads, roads_from_spec
from sfumato.domain.shapes import Categories, Cycle, Grid, Line, Times
from sfumato.errors import InvalidInput
from sfumato.exact import shown

MOST_AXES = 32  # of a domain in a file; arrays hardly have more


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
    if domain.is_spatial and len(axes) > 1:
        return Grid.of(domain.intervals, domain.factors)
    return _FACES.get(type(axes[0]), _plain)(domain) if len(axes) == 1 else domain


def _plain(domain: Domain) -> Domain:
    return domain


def _faced(face: type[Domain]) -> Callable[[Domain], Domain]:
    """The same domain under the class that people write."""

    def wear(domain: Domain) -> Domain:
        worn = face.__new__(face)
        Domain.__init__(worn, domain.axes, domain.factors)
        return worn

    return wear


_FACES: dict[type[Axis], Callable[[Domain], Domain]] = {
    Interval: _faced(Line),
    Bins: _faced(Line),
    Labels: _faced(Categories),
    Instants: _faced(Times),
    Round: _faced(Cycle),
    Areas: _faced(Regions),
    Hexagons: _faced(H3),
    Roads: _faced(Network),
}


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
    kind = spec["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        known = ", ".join(_KINDS)
        raise InvalidInput(f"The description of the domain has an axis of kind {shown(kind)}; known are {known}.")
    return _KINDS[kind](spec)


def _list(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise TypeError("list")
    return tuple(value)


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("tz")
    return value


def _steps(value: Any) -> tuple[tuple[int, int], ...]:
    runs = [_list(run) for run in _list(value)]
    if any(len(run) != 2 for run in runs):
        raise TypeError("steps")
    return tuple((_position(length), _position(count)) for length, count in runs)


_KINDS: dict[str, Callable[[Mapping[str, Any]], Axis]] = {
    "interval": lambda spec: Interval(spec["name"], spec["low"], spec["high"], spec["cells"]),
    "labels": labels_from_spec,
    "bins": lambda spec: Bins(spec["name"], _list(spec["edges"])),
    "times": lambda spec: Instants(spec["name"], _position(spec["start"]), _steps(spec["steps"]), _text(spec["tz"])),
    "cycle": lambda spec: Round(spec["name"], spec["of"], _text(spec["tz"])),
    "ground": ground_from_spec,
    "regions": areas_from_spec,
    "hexagons": hexagons_from_spec,
    "roads": roads_from_spec,
}
