"""Which column feeds which axis, by what a user says: keywords, `columns=`, or the names of the axes themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.counting.columns import Columns
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.naming import nearest

_BY_ORDER = "xyz"


def choose_columns(
    domain: Domain,
    by_order: tuple[str | None, str | None, str | None],
    by_name: Mapping[str, str] | None,
    entity: str | None,
    keywords: Mapping[str, Any] | None = None,
) -> Columns:
    """The column of every axis: by a keyword of its name, by ``columns``, or the one of its own name.

    ``x``, ``y`` and ``z`` name the columns of the axes of these names; where there is none of the name, those of the
    first, the second and the third axis.
    """
    chosen: dict[str, str] = {}
    for axis, column in (*_lettered(domain, by_order), *(keywords or {}).items(), *_listed(domain, by_name)):
        if chosen.setdefault(axis, column) != column:
            raise InvalidInput(f"The column of axis {axis!r} is given twice. Name it once.")
    return Columns(tuple(chosen.get(name, name) for name in domain.names), entity)


def check_keywords(domain: Domain, keywords: Mapping[str, Any], own: Mapping[str, bool], listed: Any) -> None:
    """Refuse keywords that name no axis, and the call's own ones (given or not) that an axis is named after.

    An axis that bears the name of a keyword has its column in ``columns=``, and the keyword then is what it always is.
    """
    for name in keywords:
        if name not in domain.names:
            raise InvalidInput(
                f"{name}= is no keyword of sf.count and no axis of the domain, whose axes are {_names(domain)}."
                f"{nearest(name, [*domain.names, *own])} Nothing was counted."
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


def _listed(domain: Domain, by_name: Mapping[str, str] | None) -> list[tuple[str, str]]:
    for axis in by_name or {}:
        if axis not in domain.names:
            raise InvalidInput(
                f"columns={dict(by_name or {})!r} names the axis {axis!r}; the axes are {_names(domain)}."
                f"{nearest(str(axis), domain.names)}"
            )
    return list((by_name or {}).items())


def _names(domain: Domain) -> str:
    return ", ".join(map(repr, domain.names))
