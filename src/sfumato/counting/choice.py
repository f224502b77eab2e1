"""Which column feeds which axis, by what a user says: keywords, `columns=`, or the names of the axes themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from sfumato.counting.columns import Both, Columns, Index
from sfumato.counting.doubts import warn_of_swapped
from sfumato.domain import Axis, Domain, Ground, Places
from sfumato.domain.factor import PLACE
from sfumato.domain.ground import WGS84
from sfumato.errors import InvalidInput
from sfumato.naming import nearest

_BY_ORDER = "xyz"
PLACES = ("lon", "lat", "geometry", "h3")
"""Keywords of a place that is told by two columns, by points or by cells of H3, where no axis bears the name."""


def choose_columns(
    domain: Domain,
    by_order: tuple[str | None, str | None, str | None],
    by_name: Mapping[str, Any] | None,
    entity: str | None,
    keywords: Mapping[str, Any] | None = None,
) -> Columns:
    """The column of every axis: by a keyword of its name, by ``columns``, or the one of its own name.

    ``x``, ``y`` and ``z`` name the columns of the axes of these names; where there is none of the name, those of the
    first, the second and the third axis. Of a place of regions or hexagons ``x`` and ``y``, or ``lon`` and ``lat``, are
    the two columns, ``geometry`` is one of points, and ``h3`` one of cells of H3.
    """
    chosen: dict[str, Any] = {}
    place = place_of(domain)
    if place is not None:
        told, by_order, keywords = _placed(domain, place, by_order, dict(keywords or {}))
        if told is not None:
            chosen[place.name] = told
    ground = ground_of(domain)
    if place is None and ground is not None:
        told, keywords = _grounded(domain, ground, dict(keywords or {}))
        chosen |= told
    for axis, column in (*_lettered(domain, by_order), *(keywords or {}).items(), *_listed(domain, by_name)):
        if chosen.setdefault(axis, column) != column:
            raise InvalidInput(f"The column of axis {axis!r} is given twice. Name it once.")
    if place is not None and isinstance(chosen.get(place.name), tuple):
        warn_of_swapped(*chosen[place.name])
    elif place is None and ground is not None:
        warn_of_swapped(*(chosen.get(axis.name) for axis in ground))
    return Columns(tuple(chosen[axis.name] if axis.name in chosen else _usual(axis) for axis in domain.axes), entity)


def place_of(domain: Domain) -> Places | None:
    """The axis of places that `lon` and `lat` speak of: the one of that kind, or that named ``place``."""
    found = [cast(Places, axis) for axis in domain.axes if axis.reads == "places"]
    named = [axis for axis in found if axis.name == PLACE] or found
    return named[0] if len(named) == 1 else None


def ground_of(domain: Domain) -> tuple[Ground, Ground] | None:
    """The two axes of the grid on the ground that `lon` and `lat` speak of, where there is no other place."""
    found = [factor for factor in domain.factors if all(domain.axes[i].apart for i in factor.positions)]
    named = [factor for factor in found if factor.name == PLACE] or found
    if len(named) != 1 or len(named[0].positions) != 2:
        return None
    x, y = (cast(Ground, domain.axes[i]) for i in named[0].positions)
    return x, y


def _grounded(
    domain: Domain, ground: tuple[Ground, Ground], keywords: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What lon=, lat= and geometry= say of the axes of a grid; and what else was said."""
    x, y = ground
    said = {name: keywords.pop(name) for name in PLACES if name in keywords and name not in domain.names}
    if "h3" in said:
        raise InvalidInput(
            "h3= is for hexagons, and the place is a grid: a cell of H3 is no point. Nothing was counted."
        )
    if not said:
        return {}, keywords
    if ("geometry" in said) == bool({"lon", "lat"} & {*said}) or len({"lon", "lat"} & {*said}) == 1:
        raise InvalidInput(
            "the grid is told by two columns, lon= and lat= or those of its axes, or by one of points, geometry=. "
            "Nothing was counted. Give one of these."
        )
    if "geometry" in said:
        if domain.names.index(y.name) != domain.names.index(x.name) + 1:
            raise InvalidInput("geometry= needs a grid whose axes stand side by side. Nothing was counted.")
        return {x.name: Both(said["geometry"]), y.name: None}, keywords
    if x.crs not in WGS84:
        raise InvalidInput(
            f"lon= and lat= are those of WGS84, and the grid is in {x.crs[:60]}. Nothing was counted. Give coordinates "
            f"of that CRS with {x.name}= and {y.name}=, or points with geometry=."
        )
    return {x.name: said["lon"], y.name: said["lat"]}, keywords


def _usual(axis: Axis) -> str | tuple[str, str]:
    return axis.name if axis.arity == 1 else ("lon", "lat")


def _placed(
    domain: Domain, place: Places, by_order: tuple[str | None, ...], keywords: dict[str, Any]
) -> tuple[Any, tuple[str | None, str | None, str | None], dict[str, Any]]:
    """What is said of the columns of a place; and what else was said."""
    x, y, z = by_order
    said = {name: keywords.pop(name) for name in PLACES if name in keywords and name not in domain.names}
    own = {name: value for name, value in (("x", x), ("y", y)) if value is not None and name not in domain.names}
    if own:
        x, y = (None if name in own else value for name, value in (("x", x), ("y", y)))
    pairs = [tuple(part.get(name) for name in names) for part, names in ((own, "xy"), (said, ("lon", "lat")))]
    told: list[Any] = [pair for pair in pairs if any(pair)] + [
        kind(said[name]) for name, kind in _ALONE.items() if name in said
    ]
    if len(told) > 1 or any(isinstance(pair, tuple) and None in pair for pair in told):
        raise InvalidInput(
            f"the place {place.name!r} is told by two columns, x= and y= or lon= and lat=, or by one, of points with "
            "geometry= or of cells of H3 with h3=. Nothing was counted. Give one of these."
        )
    if any(pairs[1]) and place.crs not in WGS84:
        raise InvalidInput(
            f"lon= and lat= are those of WGS84, and the {place.what} are in {place.crs[:60]}. Nothing was counted. "
            "Give coordinates of that CRS with x= and y=, or points with geometry=."
        )
    if "h3" in said and not place.indexed:
        raise InvalidInput(
            f"h3= is for hexagons, and {place.name!r} is one of {place.what}: a cell of H3 is no point. Nothing was "
            "counted. Give lon= and lat=, x= and y=, or geometry=."
        )
    return (told[0] if told else None), (x, y, z), keywords


_ALONE: dict[str, Any] = {"geometry": str, "h3": Index}


def _has_place(domain: Domain) -> bool:
    return place_of(domain) is not None or ground_of(domain) is not None


def told_of_places(
    domain: Domain, columns: Mapping[str, Any] | None, keywords: dict[str, str]
) -> tuple[Mapping[str, Any] | None, dict[str, str]]:
    """What `columns` says under lon, lat, geometry or h3 as the keywords of these names, where the domain has a place.

    A file can say it so.
    """
    if not _has_place(domain):
        return columns, keywords
    said = {name: column for name, column in (columns or {}).items() if name in PLACES and name not in domain.names}
    rest = {name: column for name, column in (columns or {}).items() if name not in said}
    return rest, said | keywords


def check_keywords(domain: Domain, keywords: Mapping[str, Any], own: Mapping[str, bool], listed: Any) -> None:
    """Refuse keywords that name no axis, and the call's own ones (given or not) that an axis is named after.

    An axis that bears the name of a keyword has its column in ``columns=``, and the keyword then is what it always is.
    """
    places = PLACES if _has_place(domain) else ()
    for name in keywords:
        if name not in (*domain.names, *places):
            raise InvalidInput(
                f"{name}= is no keyword of sf.count and no axis of the domain, whose axes are {_names(domain)}."
                f"{nearest(name, [*domain.names, *places, *own])} Nothing was counted."
            )
    for name, given in own.items():
        if given and name in domain.names and name not in (listed or {}):
            raise InvalidInput(
                f"{name}= is a keyword of sf.count and the name of an axis, so that it could mean either. Nothing was "
                f"counted. Say with columns={{{name!r}: …}} which column feeds the axis; {name}= then is the keyword."
            )


def _lettered(domain: Domain, by_order: tuple[str | None, str | None, str | None]) -> list[tuple[str, str]]:
    """(axis, column) of x=, y= and z=: by name, else by order."""
    found = []
    for i, (letter, column) in enumerate(zip(_BY_ORDER, by_order, strict=True)):
        if column is None:
            continue
        if letter not in domain.names and i >= domain.ndim:
            raise InvalidInput(
                f"{letter}={column!r} names a column for axis {i + 1}, and the domain has {domain.ndim}. Leave it out."
            )
        axis = letter if letter in domain.names else domain.names[i]
        if axis != letter and axis in _BY_ORDER:
            raise InvalidInput(
                f"{letter}={column!r} names the column of no axis: the axes are {_names(domain)}. Nothing was counted. "
                f"Name axis {axis!r} by {axis}=."
            )
        found.append((axis, column))
    return found


def _listed(domain: Domain, by_name: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    for axis in by_name or {}:
        if axis not in domain.names:
            raise InvalidInput(
                f"columns={dict(by_name or {})!r} names the axis {axis!r}; the axes are {_names(domain)}."
                f"{nearest(str(axis), domain.names)}"
            )
    return [(axis, _index(told) if isinstance(told, Mapping) else told) for axis, told in (by_name or {}).items()]


def _index(told: Mapping[str, str]) -> Index:
    """A column of cells, said as {"h3": column}."""
    if list(told) != ["h3"]:
        raise InvalidInput(
            f"columns has a place told by {dict(told)!r}. Nothing was counted. Give two columns, such as "
            '("lon", "lat"), one of points, or {"h3": column}.'
        )
    return Index(told["h3"])


def _names(domain: Domain) -> str:
    return ", ".join(map(repr, domain.names))
