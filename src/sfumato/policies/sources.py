"""Sources: where records may appear and vanish. Cells whose closed box is nearer than δ to one are joined to ⊥.

A source is a polyline, or a point, which is a polyline of one point. Its distance to a box is exact: along a segment
the gap to the box on each axis is convex and piecewise linear, so its norm has one minimum, found between the (at most
2d) places where a gap begins or ends. For great circles it is a lower bound on the distance, see `_sphere_scale`: then
a few cells more are joined, never one less. A straight line between two places of degrees is straight in longitude and
latitude, as in GeoJSON (RFC 7946, 3.1.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.policies import sphere

ALLOWED = "None, 'boundary', a list of points, or a list of lines, each a list of points"
# Pieces of a segment about this many cells long have a box around them that is hardly larger than what they can reach.
PIECE = 32


@dataclass(frozen=True, eq=False)
class Sources:
    """Polylines inside a domain, each an array of points; a point is one of length 1."""

    lines: tuple[Floats, ...]

    @classmethod
    def of(cls, domain: Domain, given: Any) -> Sources:
        """Points, lines or geometries (anything with `__geo_interface__`), checked to lie inside the domain."""
        lines = tuple(_geometries(given, domain.ndim) or _nested(given, domain.ndim))
        low, high = np.array(domain.bounds).reshape(2, -1)
        if not all(((line >= low) & (line <= high)).all() for line in lines):
            raise InvalidInput("sources holds a point outside the domain's bounds. Sources must lie inside.")
        return cls(lines)

    def spec(self) -> list[Any]:
        """Plain data from which `of` builds them again: a list of points where there is no line."""
        if all(len(line) == 1 for line in self.lines):
            return [line[0].tolist() for line in self.lines]
        return [line.tolist() for line in self.lines]

    def words(self) -> str:
        """The sources in the words of a policy: 'the line', 'one of 3 sources'."""
        noun = "line" if all(len(line) > 1 for line in self.lines) else "source"
        return f"the {noun}" if len(self.lines) == 1 else f"one of {len(self.lines)} {noun}s"

    def near(self, domain: Domain, limit: float, metric: str) -> NDArray[np.bool_]:
        """Which cells have a closed box nearer than the limit to a source."""
        near = np.zeros(domain.shape, dtype=bool)
        widths = np.array([(axis.high - axis.low) / axis.cells for axis in domain.intervals])
        if metric == "great-circle":
            reach = np.full(2, math.degrees(limit / sphere.RADIUS))
        else:
            reach = np.full(domain.ndim, limit)
        for start, stop in self._pieces(np.maximum(PIECE * widths, reach)):
            if metric == "great-circle":
                window, weights, threshold = _sphere_scale(domain, start, stop, limit)
            else:
                window, weights, threshold = _window(domain, start, stop, reach), [1.0] * domain.ndim, limit
            near[window] |= _near_segment(domain, window, start, stop, weights, threshold, metric)
        return near

    def _pieces(self, longest: Floats) -> Iterator[tuple[Floats, Floats]]:
        """The segments, cut where the box around one would be long in two directions at once."""
        for line in self.lines:
            for start, stop in zip(line[: max(len(line) - 1, 1)], line[1:] if len(line) > 1 else line, strict=True):
                sides = np.sort(np.abs(stop - start) / longest)
                count = max(1, math.ceil(sides[-2])) if len(sides) > 1 else 1
                share = np.arange(count + 1)[:, None] / count
                ends = np.where(share == 1, stop, start + share * (stop - start))
                yield from pairwise(ends)


def boundary(domain: Domain, limit: float, metric: str) -> NDArray[np.bool_]:
    """Which cells are nearer than the limit to the boundary of the domain."""
    if metric == "great-circle":
        columns, rows = sphere.ring(domain, limit)
        return columns[:, None] | rows[None, :]
    near = np.zeros(domain.shape, dtype=bool)
    for i, axis in enumerate(domain.intervals):
        near |= np.expand_dims(axis.depths < limit, [j for j in range(domain.ndim) if j != i])
    return near


def _near_segment(
    domain: Domain,
    window: tuple[slice, ...],
    start: Floats,
    stop: Floats,
    weights: Sequence[Any],
    limit: float,
    metric: str,
) -> NDArray[np.bool_]:
    """Which boxes of a window are nearer than the limit to a segment, in a norm that weighs the axes."""
    d = domain.ndim
    lows, highs = [], []
    for i, axis in enumerate(domain.intervals):
        shape = [-1 if j == i else 1 for j in range(d)]
        lows.append(axis.edges[:-1][window[i]].reshape(shape))
        highs.append(axis.edges[1:][window[i]].reshape(shape))
    sides = np.array([axis.high - axis.low for axis in domain.intervals])
    if metric != "great-circle":
        # In units of about the limit, a power of two: squares of very small or large numbers would be lost.
        scale = -int(np.frexp(limit)[1])
        lows, highs = ([np.ldexp(ends, scale) for ends in part] for part in (lows, highs))
        start, stop, sides = (np.ldexp(given, scale) for given in (start, stop, sides))
        limit = float(np.ldexp(limit, scale))
    step = np.where(np.abs(stop - start) < sides * 2.0**-52, 0.0, stop - start)  # below rounding: no division by it
    if metric == "chebyshev":  # a box is near when some moment lies within the limit on every axis at once
        enter: Any = 0.0
        leave: Any = 1.0
        for p, v, low, high in zip(start, step, lows, highs, strict=True):
            if v == 0:
                leave = np.where((low - p < limit) & (p - high < limit), leave, -1.0)
                continue
            first, last = (low - limit - p) / v, (high + limit - p) / v
            enter = np.maximum(enter, np.minimum(first, last))
            leave = np.minimum(leave, np.maximum(first, last))
        return np.asarray(enter < leave)

    def gaps(time: Any) -> list[Any]:
        places = [p + time * v for p, v in zip(start, step, strict=True)]
        return [np.maximum(np.maximum(a - x, x - b), 0) for x, a, b in zip(places, lows, highs, strict=True)]

    moments = [np.zeros(1), np.ones(1)]  # when a gap begins or ends, in order
    for p, v, low, high in zip(start, step, lows, highs, strict=True):
        if v != 0:
            moments += [np.clip((low - p) / v, 0, 1), np.clip((high - p) / v, 0, 1)]
    times = np.sort(np.stack(np.broadcast_arrays(*moments)), axis=0)
    if metric == "manhattan":  # linear between the moments: least at one of them
        return np.asarray(np.min([sum(gaps(time)) for time in times], axis=0) < limit)
    best: Any = np.inf
    for early, late in pairwise(times):  # a parabola between two moments
        middle = (early + late) / 2
        curve: Any = 0.0
        slope: Any = 0.0
        for p, v, low, high, weight in zip(start, step, lows, highs, weights, strict=True):
            place = p + middle * v
            wall = np.where(place < low, low, high)
            pull = np.where((place < low) | (place > high), weight**2 * v, 0.0)
            curve, slope = curve + pull * v, slope + pull * (wall - p)
        turn = np.divide(slope, curve, out=np.array(middle + 0.0 * curve), where=curve > 0)
        squares = [(weight * gap) ** 2 for weight, gap in zip(weights, gaps(np.clip(turn, early, late)), strict=True)]
        best = np.minimum(best, sum(squares))
    return np.asarray(np.sqrt(best) < limit)


def _window(domain: Domain, start: Floats, stop: Floats, reach: Floats) -> tuple[slice, ...]:
    """The cells whose gap to the box around a segment is below the reach along every axis, or a little above it."""
    slices = []
    for axis, a, b, far in zip(domain.intervals, np.minimum(start, stop), np.maximum(start, stop), reach, strict=True):
        first = int(np.searchsorted(axis.edges, a - far)) - 2
        last = int(np.searchsorted(axis.edges, b + far)) + 2
        slices.append(slice(max(first, 0), min(last, axis.cells)))
    return tuple(slices)


def _sphere_scale(
    domain: Domain, start: Floats, stop: Floats, limit: float
) -> tuple[tuple[slice, ...], list[Any], float]:
    """(the window, weights of the two axes, a limit) in which degrees are no farther apart than on the sphere.

    Let L be the limit as an angle. Points nearer than L have latitudes at most L apart, and with x, y the gaps in
    longitude and latitude, sin²(L/2) > hav d = sin²(y/2) + cos φ cos φ' sin²(x/2). In a row of cells cos φ ≥ c, its
    cosine at the end nearest to a pole, and cos φ' ≥ c', the same for the part of the segment within L of the row; so
    sin(x/2) < sin(L/2)/√(cc'), which bounds x by some X. As sin(z)/z falls, sin(y/2) ≥ y·sin(L/2)/L and sin(x/2) ≥
    x·sin(X/2)/X: the weighted Euclidean distance of the gaps, with these slopes and √(cc') as weights, is below
    sin(L/2) wherever the true distance is below the limit.
    """
    angle = min(limit / sphere.RADIUS, math.pi)
    sine = math.sin(angle / 2)
    rows = _window(domain, start, stop, np.full(2, math.degrees(angle)))[1]
    edges = np.radians(domain.intervals[1].edges)
    top = np.maximum(np.abs(edges[:-1]), np.abs(edges[1:]))[rows]
    highest = math.radians(max(abs(float(start[1])), abs(float(stop[1]))))
    cosine = np.sqrt(np.maximum(np.cos(top) * np.cos(np.minimum(np.minimum(top + angle, highest), math.pi / 2)), 0.0))
    widest = 2 * np.arcsin(np.minimum(np.divide(sine, cosine, out=np.ones_like(top), where=cosine > sine), 1.0))
    reach = np.array([math.degrees(float(widest.max())), math.degrees(angle)])
    columns = _window(domain, start, stop, reach)[0]
    across = cosine * np.sin(widest / 2) / widest
    weights = [(math.pi / 180 * across)[None, :], math.pi / 180 * sine / angle]
    return (columns, rows), weights, sine * (1 + 1e-12)  # a hair for the rounding of all this


def _geometries(given: Any, d: int) -> list[Floats]:
    """The lines of geometries that can say what they are; none where something else was given."""
    items = [given] if hasattr(given, "__geo_interface__") else given
    if not isinstance(items, (list, tuple)) or not any(hasattr(item, "__geo_interface__") for item in items):
        return []
    lines: list[Floats] = []
    for item in items:
        shape = getattr(item, "__geo_interface__", {})
        kind, at = shape.get("type"), shape.get("coordinates", ())
        if kind == "Point":
            parts = [[at]]
        elif kind == "MultiPoint":
            parts = [[point] for point in at]
        elif kind in ("LineString", "MultiLineString"):
            parts = [at] if kind == "LineString" else list(at)
        else:
            raise InvalidInput(
                f"sources holds a geometry of type {kind!r}, not 'Point', 'MultiPoint', 'LineString' or "
                "'MultiLineString'. Give those, or the outline of an area as its lines."
            )
        lines += _nested(parts, d)
    return lines


def _nested(given: Any, d: int) -> list[Floats]:
    """Lines from lists in lists in lists, points from shallower ones. In one dimension a plain number is a point."""
    try:
        if _depth(given) >= 3:
            lines = [np.asarray(line, dtype=np.float64) for line in given]
        else:
            points = np.asarray(given, dtype=np.float64)
            points = points.reshape(-1, 1) if d == 1 and points.ndim <= 1 else np.atleast_2d(points)
            lines = [point[None] for point in points]
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"sources must be {ALLOWED}.") from error
    if not lines or any(line.ndim != 2 or line.shape[1] != d or len(line) == 0 for line in lines):
        raise InvalidInput(f"sources must be one or more points, or lines of points, of {d} coordinates each.")
    return lines


def _depth(given: Any) -> int:
    """How many lists lie in each other."""
    if isinstance(given, np.ndarray):
        return given.ndim
    return (1 + _depth(given[0]) if len(given) else 1) if isinstance(given, (list, tuple)) else 0
