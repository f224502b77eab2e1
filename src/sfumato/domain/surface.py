"""How large outlines are on the ground: square metres on the WGS84 ellipsoid, with sides that are straight in degrees.

The area between a side and the equator is the integral over its longitudes of the area of the ellipsoid up to a
latitude, for each radian of longitude. Nothing is projected, and a hole, which runs the other way, is taken off.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato._types import Floats
from sfumato.domain.near_regions import MAJOR
from sfumato.domain.outlines import Outlines

_FLAT = 1 / 298.257223563
_E2 = _FLAT * (2 - _FLAT)
# Gauss-Legendre on a side: exact to the last digits for sides of some degrees.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


def square_metres(outlines: Outlines) -> Floats:
    """The area of every region of outlines in degrees."""
    points = np.radians(outlines.oriented.points)
    ends = np.concatenate([points[1:], points[-1:]])
    last = outlines.rings[1:] - 1
    middle, half = (points + ends)[:, 1] / 2, (ends - points)[:, 1] / 2
    up_to = sum(w * _below(middle + half * node) for node, w in zip(_NODES, _WEIGHTS, strict=True)) / 2
    # The lower ends of small cells stand far from the equator: what they share is taken off before it is added up.
    begins = np.repeat(outlines.rings[:-1], np.diff(outlines.rings))
    level = _below(points[begins, 1])
    share = -(up_to - level) * (ends - points)[:, 0]
    share[last] = 0.0
    return np.asarray(np.add.reduceat(share, outlines.rings[outlines.parts[outlines.regions[:-1]]]))


def _below(latitude: Floats) -> Floats:
    """The area from the equator to a latitude, for each radian of longitude."""
    e, s = math.sqrt(_E2), np.sin(latitude)
    found: Floats = MAJOR**2 * (1 - _E2) / 2 * (s / (1 - _E2 * s**2) + np.arctanh(e * s) / e)
    return found
