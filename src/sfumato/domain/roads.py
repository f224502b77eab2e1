"""The axis of a road network: one cell for every segment, and a last one, *elsewhere*, for all that is on no road.

A place is on the nearest segment, if that is near enough. Distances are those along the roads, from segment to segment
where they end at one point; roads that cross without such a point pass over each other. What a way off the roads is
follows from `exits`: with "ends" roads go on beyond the map where they end, and a record leaves the map or comes in
there alone (of roads that end nowhere: anywhere); with "anywhere" every segment is beside elsewhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain.areas import level_from_spec, text_of, texts_of
from sfumato.domain.axis import axis_name
from sfumato.domain.coarser import Coarse, Level, checked_levels, nested
from sfumato.domain.cutting import Cut
from sfumato.domain.interval import plain
from sfumato.domain.labels import shorten
from sfumato.domain.lines import Lines, lines_from_spec
from sfumato.domain.near_roads import near_roads, touching_roads
from sfumato.domain.nearest_lines import NearestLines
from sfumato.domain.paths import Paths
from sfumato.domain.places import ELSEWHERE, Places, turned
from sfumato.domain.road_cuts import road_cuts
from sfumato.errors import InvalidInput
from sfumato.exact import is_number, positive_fraction, shown

RULE = "nearest-1"
ENDS, ANYWHERE = EXITS = ("ends", "anywhere")
FARTHEST = 10_000.0
"""Metres from a road beyond which nobody is on it."""


@dataclass(frozen=True, repr=False)
class Roads(Places):
    """Segments by their names, in order, then elsewhere.

    Two are equal when names, CRS, levels and the digest are: that of the lines, of how near to one a place on it is,
    and of where roads are left.
    """

    name: str
    ids: tuple[str, ...]
    crs: str
    snap: float
    exits: str
    levels: tuple[Level, ...] = ()
    rule: str = RULE
    lines: Lines = field(default_factory=lambda: Lines(np.zeros((0, 2)), np.zeros(1, np.int64)), compare=False)
    made: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    digest: str = field(init=False)

    what = "segments"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", axis_name(self.name))
        if not self.ids or len(set(self.ids)) < len(self.ids) or ELSEWHERE in self.ids:
            raise InvalidInput(f"Axis {self.name!r}: segments need names, each once and none of them {ELSEWHERE!r}.")
        if len(self.ids) != len(self.lines):
            raise InvalidInput(f"Axis {self.name!r}: there are as many lines as segments.")
        if not is_number(self.snap) or not 0 < self.snap <= FARTHEST:
            raise InvalidInput(
                f"snap={shown(self.snap)} must be metres above zero, at most {plain(FARTHEST)}, such as '30 m'."
            )
        if self.exits not in EXITS:
            raise InvalidInput(
                f"exits={shown(self.exits)} must be 'ends' (roads are left where they end) or 'anywhere'. Nothing was "
                "built."
            )
        checked_levels(self.name, self.levels, len(self.ids))
        if any(ELSEWHERE in level.of for level in self.levels):
            raise InvalidInput(
                f"Axis {self.name!r}: a level names some segments {ELSEWHERE!r}, which is on no road. Rename it."
            )
        said = f"{self.lines.digest} {float(self.snap)!r} {self.exits} {self.rule}"
        object.__setattr__(self, "snap", float(self.snap))
        object.__setattr__(self, "digest", hashlib.sha256(said.encode("ascii")).hexdigest())

    def __repr__(self) -> str:
        return f"Roads({self.name!r}, {shorten(self.ids)}, crs={self.crs!r})"

    @property
    def cells(self) -> int:  # type: ignore[override]  # read, never set
        """The segments and elsewhere."""
        return len(self.ids) + 1

    @property
    def has_roads(self) -> bool:
        """It is made of them."""
        return True

    @property
    def off_roads(self) -> str:
        """Where a record comes from elsewhere or goes there."""
        return (
            "the roads are left and entered where they end" if self.exits == ENDS else "the roads may be left anywhere"
        )

    @property
    def outlined(self) -> Paths:
        """The lines."""
        return Paths.of(self.lines)

    @cached_property
    def lengths(self) -> Floats:
        """Metres of every segment."""
        return self.lines.lengths

    @cached_property
    def nearest(self) -> NearestLines:
        """How points are located, made when it is first needed."""
        return NearestLines(self.lines, self.snap)

    @cached_property
    def coarser(self) -> tuple[Coarse, ...]:
        """The levels, with elsewhere by itself on each."""
        return nested(Level(level.name, (*level.of, ELSEWHERE)) for level in self.levels)

    def cells_at(self, points: Floats) -> Integers:
        """The cell of every point (lon, lat) that is no NaN."""
        found = self.nearest(turned(points, -180.0))
        return np.where(found < 0, self.cells - 1, found)

    def cuts(self, polygons: Any, *, moved: bool) -> list[Cut]:
        """The segments that each polygon holds and cuts; elsewhere, which is all around, is always cut."""
        del moved
        return road_cuts(self.lines, self.snap, polygons)

    def near(self, delta: Any) -> NDArray[np.int64]:
        """Every pair of cells u < v that hold places less than delta metres apart along the roads."""
        return self._left(near_roads(self.lines, positive_fraction(delta, "delta")))

    def adjacent(self, *, corners: bool) -> NDArray[np.int64]:
        """Every pair of cells u < v of segments with an end in common."""
        del corners
        return self._left(touching_roads(self.lines))

    def _left(self, pairs: Integers) -> Integers:
        """With the pairs of a segment and elsewhere that `exits` adds."""
        if self.exits == ENDS:
            return pairs
        roads = np.arange(self.cells - 1)
        out = np.stack([roads, np.full_like(roads, self.cells - 1)], axis=1)
        return np.concatenate([pairs[pairs[:, 1] < self.cells - 1], out])

    def face(self) -> str:
        """A network."""
        name = "" if self.name == "place" else f", name={self.name!r}"
        return f"network({shorten(self.ids)}, snap='{plain(self.snap)} m', exits={self.exits!r}{name})"

    def identity(self) -> dict[str, Any]:
        """All but the lines themselves, which the digest stands for, and the versions that read them."""
        return {
            "kind": "roads",
            "name": self.name,
            "ids": list(self.ids),
            "crs": self.crs,
            "snap": self.snap,
            "exits": self.exits,
            "rule": self.rule,
            "digest": self.digest,
            "levels": [{"name": level.name, "of": list(level.of)} for level in self.levels],
        }

    def spec(self) -> dict[str, Any]:
        """The same with both."""
        return self.identity() | {"roads": self.lines.spec(), "made": dict(self.made)}


def roads_from_spec(spec: Mapping[str, Any]) -> Roads:
    """What `Roads.spec()` described, or a refusal: nothing in a file is trusted."""
    if not isinstance(spec["made"], Mapping) or not isinstance(spec["roads"], Mapping) or spec["rule"] != RULE:
        raise TypeError("made")
    if not isinstance(spec["snap"], (int, float)) or not math.isfinite(spec["snap"]):
        raise TypeError("snap")
    found = Roads(
        name=spec["name"],
        ids=texts_of(spec["ids"]),
        crs=text_of(spec["crs"]),
        snap=spec["snap"],
        exits=text_of(spec["exits"]),
        levels=tuple(map(level_from_spec, spec["levels"])),
        lines=lines_from_spec(spec["roads"]),
        made=tuple((text_of(name), text_of(version)) for name, version in spec["made"].items()),
    )
    if found.digest != spec["digest"]:
        raise InvalidInput("The roads in the description of the domain are not those that it names.")
    return found
