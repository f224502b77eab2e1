"""The factors and axes of a domain by the names that a user types."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.exact import shown


def known(domain: Domain, name: str) -> tuple[int, ...] | None:
    """The axes of the factor of a name, or the one axis of this name; None where there is neither."""
    for factor in domain.factors:
        if factor.name == name:
            return factor.positions
    return (domain.names.index(name),) if name in domain.names else None


def positions(domain: Domain, name: str) -> tuple[int, ...]:
    """The same, and an unknown name is refused with the nearest."""
    found = known(domain, name)
    if found is not None:
        return found
    near = get_close_matches(name, [*(factor.name for factor in domain.factors), *domain.names], n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise InvalidInput(
        f"{shown(name)} is no factor and no axis of this domain, which has {_known(domain)}. {hint}"
        "Nothing was computed."
    )


def apart(domain: Domain, names: Sequence[str], role: str) -> list[tuple[int, ...]]:
    """The axes behind each name, or a refusal where two names stand for the same axis."""
    claimed(domain, names, role=f" {role}")
    return [positions(domain, name) for name in names]


def claimed(domain: Domain, names: Sequence[str], *, role: str = "", nothing: str = "computed") -> dict[int, str]:
    """Which name stands for each axis, in the order of the names, or the same refusal."""
    found: dict[int, str] = {}
    for name in names:
        for axis in positions(domain, name):
            if axis in found:
                raise InvalidInput(
                    f"{shown(found[axis])} and {shown(name)} both stand for axis {domain.names[axis]!r}{role}. "
                    f"Nothing was {nothing}. Give one of them."
                )
            found[axis] = name
    return found


def _known(domain: Domain) -> str:
    faces = []
    for factor in domain.factors:
        axes = ", ".join(domain.names[i] for i in factor.positions)
        faces.append(repr(factor.name) if axes == factor.name else f"{factor.name!r} ({axes})")
    return ", ".join(faces)
