"""Rings of longitudes and latitudes that cross the date line, cut there, so that no part is drawn across the map.

A ring whose longitudes are more than half a turn apart is meant to cross. One that goes all round a pole is closed over
the pole, which on a map is a line along its upper or lower side.
"""

from __future__ import annotations

import numpy as np

from sfumato._types import Floats


def cut_at_date_line(ring: Floats) -> list[Floats]:
    """The ring itself where it does not cross; else its parts, each within -180 and 180. All are closed.

    >>> ring = np.array([[179, 0], [-179, 0], [-179, 1], [179, 1], [179, 0]], float)
    >>> [part[:, 0].tolist() for part in cut_at_date_line(ring)]
    [[-179.0, -180.0, -180.0, -179.0, -179.0], [180.0, 179.0, 179.0, 180.0, 180.0]]
    """
    if np.ptp(ring[:, 0]) <= 180:
        return [ring]
    steps = np.diff(ring[:, 0])
    along = ring[0, 0] + np.concatenate([[0.0], np.cumsum(steps - 360 * np.round(steps / 360))])
    path = np.stack([along, ring[:, 1]], axis=1)
    if abs(along[-1] - along[0]) > 180:
        return [_round_the_pole(ring[:-1])]
    path = np.stack([along, ring[:, 1]], axis=1)
    parts = [_between(path - [turn, 0.0]) for turn in (360.0, 0.0, -360.0)]
    return [part for part in parts if len(part) > 3 and np.ptp(part[:, 0]) > 0]


def _round_the_pole(points: Floats) -> Floats:
    """All between the pole and points that go once round it, one longitude after the other."""
    x, y = points[np.argsort(points[:, 0])].T
    east, west = 180 - x[-1], x[0] + 180
    crossing = (y[-1] * west + y[0] * east) / (east + west) if east + west else y[0]
    pole = 90.0 if y.sum() > 0 else -90.0
    longitudes = [-180.0, *x.tolist(), 180.0, 180.0, -180.0, -180.0]
    return np.array([longitudes, [crossing, *y.tolist(), crossing, pole, pole, crossing]]).T


def _between(path: Floats) -> Floats:
    """What of a ring is between -180 and 180."""
    for sign in (1.0, -1.0):
        found: list[tuple[float, float]] = []
        for (x0, y0), (x1, y1) in zip(path[:-1].tolist(), path[1:].tolist(), strict=True):
            if (sign * x0 <= 180) != (sign * x1 <= 180):
                crossing = (sign * 180.0, y0 + (y1 - y0) * (sign * 180 - x0) / (x1 - x0))
                found += [crossing] if sign * x1 > 180 else [crossing, (x1, y1)]
            elif sign * x1 <= 180:
                found.append((x1, y1))
        path = np.array([*found, *found[:1]]).reshape(-1, 2)
    return path
