"""The levels of a domain by the names that a user types: `by="county"`, `county="Kings"`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sfumato._types import Integers
from sfumato.domain import Domain
from sfumato.domain.coarser import Coarse
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.naming import nearest


def level_names(domain: Domain) -> list[str]:
    """What the levels of all axes are called; where two axes have one of the same name, by `axis.level`."""
    plain = [level.name for axis in domain.axes for level in axis.coarser]
    return [
        level.name if plain.count(level.name) == 1 else f"{axis.name}.{level.name}"
        for axis in domain.axes
        for level in axis.coarser
    ]


def level_of(domain: Domain, name: str) -> tuple[int, Coarse] | None:
    """The axis of the level of a name, and the level; None where there is none, or a factor or axis of this name."""
    if name in domain.names or any(factor.name == name for factor in domain.factors):
        return None
    every = [(i, level) for i, axis in enumerate(domain.axes) for level in axis.coarser]
    return next((found for found, known in zip(every, level_names(domain), strict=True) if known == name), None)


def cells_of(level: Coarse, value: Any, name: str) -> Integers:
    """The cells of a group, or of a list of them."""
    wanted = [value] if isinstance(value, str) else value
    if not isinstance(wanted, Iterable) or not all(isinstance(one, str) for one in wanted):
        raise InvalidInput(f"{name}={shown(value)} must be a group of the level {level.name!r}, or a list of them.")
    place = {group: i for i, group in enumerate(level.names)}
    for one in wanted:
        if one not in place:
            raise InvalidInput(
                f"{name} names {shown(one)}, which is no group of that level.{nearest(one, level.names)} Nothing was "
                "answered."
            )
    return np.flatnonzero(np.isin(level.of, [place[one] for one in wanted]))
