"""A distance in another unit than was meant: metres on degrees, or degrees on metres. Judged without any data."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sfumato.domain import Domain
from sfumato.errors import DeclarationWarning, warn_caller

SHORTEST = 1
"""Metres: a δ below this hides no move of anybody."""

LARGE_PART = 4
"""A δ of more than one in so many of the longer side hides where anything is."""


def hint(domain: Domain, delta: Fraction, metric: str) -> str:
    """What to try where δ exceeds everything in a domain that may be degrees, as a sentence; else nothing."""
    if metric == "great-circle" or delta < 1 or not may_be_degrees(domain):
        return ""
    return " If the bounds are degrees and delta is in metres, say metric='great-circle'."


def warn(domain: Domain, delta: Fraction, given: Any, metric: str) -> None:
    """Warn of a δ that was probably meant in another unit. It is kept as it was given."""
    if metric == "great-circle":
        if delta < SHORTEST:
            warn_caller(
                f"delta={given!r} with metric='great-circle' is in metres: {_short(delta)}, which hides no move of "
                "anybody. Give metres, or leave the metric out where delta is in degrees.",
                DeclarationWarning,
            )
        return
    if delta < 1 or not may_be_degrees(domain):
        return
    sides = [Fraction(axis.high) - Fraction(axis.low) for axis in domain.intervals]
    origin = all(axis.low == 0 for axis in domain.intervals)  # a plan drawn from its corner, hardly a map of the earth
    if not origin and delta * LARGE_PART > max(sides):
        warn_caller(
            f"delta={given!r} is in the units of the axes, more than a quarter of the longer side: hardly any move is "
            "not hidden. If the bounds are degrees and delta is in metres, say metric='great-circle'.",
            DeclarationWarning,
        )


def may_be_degrees(domain: Domain) -> bool:
    """Whether two axes could be longitudes and latitudes."""
    if domain.ndim != 2 or not domain.is_spatial:
        return False
    across, along = domain.intervals
    return across.low >= -180 and across.high <= 360 and along.low >= -90 and along.high <= 90


def _short(metres: Fraction) -> str:
    for unit, times in (("cm", 100), ("mm", 1000), ("µm", 10**6)):
        if metres * times >= 1:
            return f"{float(metres * times):.3g} {unit}"
    return f"{float(metres):.3g} m"
