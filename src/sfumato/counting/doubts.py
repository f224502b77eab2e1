"""Columns that were probably meant the other way round. Judged by their names alone, before a record is read."""

from __future__ import annotations

import re

from sfumato.errors import DeclarationWarning, warn_caller

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
ACROSS = frozenset({"lon", "lng", "long", "longitude"})
UP = frozenset({"lat", "latitude"})


def warn_of_swapped(across: object, up: object) -> None:
    """Warn where a place on the ground is read with its latitude as x: its bounds are then swapped as well or hold
    nothing, and lengths in metres are taken at a latitude where nobody was.
    """
    if isinstance(across, str) and isinstance(up, str) and UP & {*words(across)} and ACROSS & {*words(up)}:
        warn_caller(
            f"the column {across!r} is read as x, the longitude, and {up!r} as y, the latitude: by their names they "
            "are swapped, and a promise in metres would be about other lengths than it says. They are counted as "
            f"named. Give lon={up!r}, lat={across!r}, and bounds=(lon0, lat0, lon1, lat1).",
            DeclarationWarning,
        )


def words(name: str) -> tuple[str, ...]:
    """The words of a column's name: pickupLon and pickup_lon have the same."""
    return tuple(word.lower() for word in _WORD.findall(name))
