"""What roads look like on a map: for every segment, or group of segments, the lines that it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.lines import Lines
from sfumato.domain.outlines import starts_of


@dataclass(frozen=True, eq=False)
class Paths:
    """Points (n, 2); where each line's points and each group's lines begin, and one end more."""

    points: Floats
    lines: Integers
    groups: Integers

    closed: ClassVar[bool] = False
    """Whether these are outlines of something."""

    @classmethod
    def of(cls, lines: Lines) -> Paths:
        """Each line by itself."""
        return cls(lines.points, lines.starts, np.arange(len(lines) + 1, dtype=np.int64))

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """(x0, y0, x1, y1) of all points."""
        (x0, y0), (x1, y1) = self.points.min(axis=0), self.points.max(axis=0)
        return float(x0), float(y0), float(x1), float(y1)

    @property
    def oriented(self) -> Paths:
        """Lines have no inside to go round."""
        return self

    def taken(self, chosen: Integers) -> Paths:
        """Some of the groups, in this order."""
        many = np.diff(self.groups)[chosen]
        kept = np.arange(many.sum()) + np.repeat(self.groups[chosen] - starts_of(many)[:-1], many)
        lines = Lines(self.points, self.lines).taken(kept)
        return Paths(lines.points, lines.starts, starts_of(many))

    def joined(self, of: Integers, groups: Integers) -> Paths:
        """Larger groups: `of` is the one of every group here, and each of `groups` has some."""
        order = np.argsort(of, kind="stable")
        many = np.searchsorted(of[order], groups, "right") - np.searchsorted(of[order], groups, "left")
        first = np.searchsorted(of[order], groups, "left")
        chosen = order[np.arange(many.sum()) + np.repeat(first - starts_of(many)[:-1], many)]
        found = self.taken(chosen)
        return Paths(found.points, found.lines, found.groups[starts_of(many)])

    def coordinates(self) -> Iterator[list[list[list[float]]]]:
        """For every group its lines, each a list of points."""
        lines = self.lines.tolist()
        for first, last in pairwise(self.groups.tolist()):
            yield [self.points[lines[line] : lines[line + 1]].tolist() for line in range(first, last)]
