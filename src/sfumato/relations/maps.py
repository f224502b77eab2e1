"""Maps that a relation names: the digest of the outlines, hexagons or roads that a domain of one place is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.relations.rules import checked_digest

if TYPE_CHECKING:
    from sfumato.domain import Domain


def map_of(given: Any, said: str, *, roads: bool = False) -> tuple[str | None, str]:
    """(the name of the place, the digest of its map) of a domain; of a digest as text no name is known."""
    if isinstance(given, str):
        return None, checked_digest(given)
    wanted = "a domain of roads, such as sf.network(…)" if roads else "a domain of one place, such as sf.Regions(…)"
    factors = getattr(given, "factors", None)
    if factors is None:
        raise InvalidInput(f"{said}={shown(given)} is not {wanted}. Nothing was built.")
    if len(factors) != 1:
        names = ", ".join(repr(factor.name) for factor in factors)
        raise InvalidInput(
            f"{said} has several factors, {names}. Nothing was built. Give one of them, as in "
            f"{said}=space.part({factors[0].name!r})."
        )
    digest = map_digest(given)
    if digest is None or (roads and not given.axes[0].has_roads):
        raise InvalidInput(f"{said}={given!r} is not {wanted}. Nothing was built.")
    return factors[0].name, digest


def map_digest(part: Domain) -> str | None:
    """The digest of the map that a factor is made of, given as a domain of it alone; None where it is no map."""
    return part.axes[0].map_digest if len(part.axes) == 1 else None
