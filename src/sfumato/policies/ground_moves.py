"""Moves in metres on a grid on the ground, and who is so near to its border that a move leads elsewhere.

**Degrees.** A step of the ellipsoid is ds² = M² dφ² + (N cos φ)² dλ², on the sphere of great circles R² (dφ² + cos² φ
dλ²). M is at most N, and least at the equator: a way on the ellipsoid that begins inside the bounds is at most R/M
times as long on the sphere, with the least M of the latitudes that it can reach. What is near on the ellipsoid is
therefore near on the sphere within that much more, where cells are compared as `metric="great-circle"` does.

**Metres of a plane.** A way that begins inside the bounds stays within δ of them, and is at most the largest scale
there times as long in the plane.

A microsecond's way of rounding is added to both, and what ellipsoids of the earth differ by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain, Ground
from sfumato.domain.near_regions import scales
from sfumato.policies.moves import Complete, Moves
from sfumato.policies.policy import Policy
from sfumato.policies.sphere import RADIUS
from sfumato.policies.within import built_within, exceeds

_DATUM = 2e-5
_ROUNDED = 1e-6


def ground_moves(part: Domain, delta: Fraction) -> Moves:
    """The moves by less than δ metres between the cells of a grid on the ground."""
    seen = _seen(part, delta)
    return Complete() if seen is None else seen.moves


def near_border(part: Domain, delta: Fraction) -> Callable[[], NDArray[np.bool_]]:
    """Which cells a move by less than δ metres leads out of."""
    seen = _seen(part, delta)
    if seen is None:
        return lambda: np.ones(part.shape, dtype=np.bool_)
    return cache(lambda: cast(NDArray[np.bool_], seen.absent))


def _seen(part: Domain, delta: Fraction) -> Policy | None:
    """The same in the plane, or on the sphere; None where δ is more than the largest distance in the bounds."""
    across, along = (cast(Ground, axis) for axis in part.axes)
    plain = Domain((across.plain(), along.plain()), part.factors)
    if across.degrees:
        longer, metric = _on_sphere(along, delta), "great-circle"
    else:
        longer, metric = across.scale_within(delta), "euclidean"
    reach = Fraction(float(delta) * longer * (1 + _DATUM) * (1 + 1e-8) + _ROUNDED)
    if exceeds(plain, reach, metric):
        return None
    return built_within(plain, reach, sources="boundary", metric=metric)


def _on_sphere(along: Ground, delta: Fraction) -> float:
    """How much longer a way of the ellipsoid is on the sphere, at most."""
    reach = math.degrees(float(delta) / 6_300_000)
    close = 0.0 if along.low - reach <= 0 <= along.high + reach else min(abs(along.low), abs(along.high)) - reach
    _, metres = scales(close, close)
    return RADIUS / math.degrees(metres)
