"""A factor of a domain: axes that belong together because one change moves them together.

A place is one factor with two axes; an hour, an attribute, a line are factors of one axis. What a relation hides is
said factor by factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.domain.axis import Axis, axis_name
from sfumato.errors import InvalidInput

PLACE = "place"


@dataclass(frozen=True)
class Factor:
    """The name of a factor, and the positions of its axes in the domain, rising."""

    name: str
    positions: tuple[int, ...]


def usual_factors(axes: Sequence[Axis]) -> tuple[Factor, ...]:
    """How axes belong together where nobody says otherwise: all intervals to one place, every other axis to itself."""
    intervals = tuple(i for i, axis in enumerate(axes) if axis.reads == "numbers")
    found = [Factor(axis.name, (i,)) for i, axis in enumerate(axes) if i not in intervals]
    if intervals:
        name = PLACE if len(intervals) > 1 else axes[intervals[0]].name
        found.append(Factor(name, intervals))
    return tuple(sorted(found, key=lambda factor: factor.positions))


def checked_factors(axes: Sequence[Axis], factors: Sequence[Factor]) -> tuple[Factor, ...]:
    """Factors that hold every axis once, under names that mean one thing each."""
    ordered = tuple(sorted(factors, key=lambda factor: factor.positions))
    held = [i for factor in ordered for i in factor.positions]
    if sorted(held) != list(range(len(axes))) or any(
        not factor.positions or list(factor.positions) != sorted(factor.positions) for factor in ordered
    ):
        raise InvalidInput("factors must hold every axis once, each in rising order.")
    names = [axis_name(factor.name) for factor in ordered]
    for factor in ordered:
        own = [axes[i].name for i in factor.positions]
        if names.count(factor.name) > 1 or (own != [factor.name] and factor.name in {axis.name for axis in axes}):
            raise InvalidInput(
                f"the name {factor.name!r} stands for two things among the axes "
                f"{', '.join(repr(axis.name) for axis in axes)} and the factors {', '.join(map(repr, names))}. "
                "Give each a name of its own with name=…."
            )
    return ordered


def default_names(d: int, name: str = PLACE) -> tuple[str, ...]:
    """x, y, z, axis3, axis4, …; of a grid with a name of its own origin_x, origin_y, …"""
    before = "" if name == PLACE else f"{name}_"
    return tuple(before + ("xyz"[i] if i < 3 else f"axis{i}") for i in range(d))
