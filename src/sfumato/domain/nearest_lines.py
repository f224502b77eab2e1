"""The nearest line to a point, if one is within some metres: by a grid of buckets, and exact distances in each.

The distance of a point from a straight piece is that in the plane of the metres a degree at the point's own latitude,
rounded to seven digits, so that nothing but sums, products and quotients of doubles decide, which are the same
everywhere. Of two lines equally near the first one is taken.
"""

from __future__ import annotations

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.lines import Lines, least_scales
from sfumato.domain.outlines import starts_of
from sfumato.linear import distinct

_PAIRS = 1 << 21
"""Points and pieces that are compared at once."""
_POINTS = 1 << 16
_FINEST = 4096
_ROOM = 8
"""Buckets that a piece is in on the average, at most."""


class NearestLines:
    """Made once, of all straight pieces; pieces near the date line are there a second time, beyond it."""

    def __init__(self, lines: Lines, within: float) -> None:
        ends, line = lines.steps
        self.within = within
        far = min(float(np.abs(ends[:, [1, 3]]).max()) + within / 100_000, 89.9)
        across, along = least_scales(np.array([-far]), np.array([far]))
        pad = within / np.array([float(across[0]), float(along[0])]) * 1.01
        beyond = [ends + np.array([turn, 0.0, turn, 0.0]) for turn in (360.0, -360.0)]
        kept = [
            (copy[:, [0, 2]].min(axis=1) < 180 + pad[0]) & (copy[:, [0, 2]].max(axis=1) > -180 - pad[0])
            for copy in beyond
        ]
        self.ends = np.concatenate([ends, *(copy[there] for copy, there in zip(beyond, kept, strict=True))])
        self.line = np.concatenate([line, *(line[there] for there in kept)])
        self.low = np.minimum(self.ends[:, :2], self.ends[:, 2:]).min(axis=0) - pad
        self.span = np.maximum(np.maximum(self.ends[:, :2], self.ends[:, 2:]).max(axis=0) + pad - self.low, 1e-9)
        self._fill(pad)

    def _fill(self, pad: Floats) -> None:
        """The pieces of every bucket; long ones are cut, so that they are in few."""
        side = int(min(_FINEST, max(1, np.sqrt(2.0 * len(self.ends)))))
        long = np.abs(self.ends[:, 2:] - self.ends[:, :2])
        while True:
            size = np.maximum(self.span / side, pad)
            many = np.ceil((long / size).max(axis=1)).astype(np.int64) + 1
            if side == 1 or int(many.sum()) <= _ROOM * len(many):
                break
            side //= 2
        self.size, self.shape = size, np.ceil(self.span / size).astype(np.int64) + 1
        of = np.repeat(np.arange(len(many)), many)
        share = (np.arange(len(of)) - np.repeat(starts_of(many)[:-1], many)) / np.repeat(many, many)
        step = (self.ends[:, 2:] - self.ends[:, :2])[of] / many[of, None]
        begin = self.ends[of, :2] + share[:, None] * many[of, None] * step
        first = self._bucket(np.minimum(begin, begin + step) - pad * 1.01)
        last = self._bucket(np.maximum(begin, begin + step) + pad * 1.01)
        wide = last - first + 1
        count = wide.prod(axis=1)
        each = np.repeat(np.arange(len(of)), count)
        at = np.arange(len(each)) - np.repeat(starts_of(count)[:-1], count)
        column, row = first[each, 0] + at // wide[each, 1], first[each, 1] + at % wide[each, 1]
        entries = distinct((column * self.shape[1] + row) * len(many) + of[each])
        bucket, self.held = entries // len(many), entries % len(many)
        self.starts = np.searchsorted(bucket, np.arange(int(self.shape.prod()) + 1))

    def _bucket(self, places: Floats) -> Integers:
        at = np.floor((places - self.low) / self.size).astype(np.int64)
        return np.asarray(np.clip(at, 0, self.shape - 1))

    def __call__(self, points: Floats) -> Integers:
        """The number of the nearest line of every point (lon, lat), -1 where none is near enough."""
        found = np.full(len(points), -1, np.int64)
        for start in range(0, len(points), _POINTS):
            block = points[start : start + _POINTS]
            with np.errstate(invalid="ignore"):
                near = np.flatnonzero(((block >= self.low) & (block <= self.low + self.span)).all(axis=1))
            bucket = self._bucket(block[near]) @ np.array([self.shape[1], 1])
            many = self.starts[bucket + 1] - self.starts[bucket]
            near, bucket, many = near[many > 0], bucket[many > 0], many[many > 0]
            ends = np.cumsum(many)
            at = 0
            while at < len(near):
                stop = max(at + 1, int(np.searchsorted(ends, (ends[at - 1] if at else 0) + _PAIRS, side="right")))
                part = slice(at, stop)
                found[start + near[part]] = self._nearest(block[near[part]], self.starts[bucket[part]], many[part])
                at = stop
        return found

    def _nearest(self, points: Floats, first: Integers, many: Integers) -> Integers:
        """Of points that each have some pieces in their bucket."""
        starts = starts_of(many)[:-1]
        piece = self.held[np.arange(many.sum()) + np.repeat(first - starts, many)]
        across, along = least_scales(points[:, 1], points[:, 1])
        scale = np.stack([np.round(across, 2), np.round(along, 2)], axis=1)
        of = np.repeat(np.arange(len(points)), many)
        scale = scale[of]
        ends = self.ends[piece]
        away = (points[of] - ends[:, :2]) * scale
        step = (ends[:, 2:] - ends[:, :2]) * scale
        square = step[:, 0] * step[:, 0] + step[:, 1] * step[:, 1]
        share = (away[:, 0] * step[:, 0] + away[:, 1] * step[:, 1]) / np.maximum(square, 1e-30)
        beyond = share[:, None] >= 1.0  # of lines that end at one point both are as near as that, to the last digit
        away = np.where(beyond, (points[of] - ends[:, 2:]) * scale, away - np.maximum(share, 0.0)[:, None] * step)
        apart = away[:, 0] * away[:, 0] + away[:, 1] * away[:, 1]
        least = np.minimum.reduceat(apart, starts)
        line = np.where(apart == least[of], self.line[piece], np.iinfo(np.int64).max)
        return np.where(least <= self.within * self.within, np.minimum.reduceat(line, starts), -1)
