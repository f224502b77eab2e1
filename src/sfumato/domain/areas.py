"""The axis of a place that is cut into regions: one cell a region, and a last one, *elsewhere*, for all the rest.

Regions have names, never two of them one point, and need not leave nothing between them. A point's region comes from
the outlines by the rule of `sfumato.domain.crossings`, with longitudes taken modulo 360. An axis that was read from a
file without its outlines knows its cells by their names and can locate nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain.adjacent_regions import adjacent_regions
from sfumato.domain.axis import axis_name
from sfumato.domain.coarser import Coarse, Level, checked_levels, nested
from sfumato.domain.crossings import RULE, Lookup
from sfumato.domain.cut_regions import Mosaic
from sfumato.domain.cutting import Cut
from sfumato.domain.labels import shorten
from sfumato.domain.near_regions import near_regions
from sfumato.domain.outlines import Outlines, outlines_from_spec
from sfumato.domain.places import ELSEWHERE, Places, turned
from sfumato.errors import InvalidInput
from sfumato.exact import positive_fraction


@dataclass(frozen=True, repr=False)
class Areas(Places):
    """Regions by their names, in order, then elsewhere.

    Two are equal when names, CRS, outlines (by their digest), rule and levels are; `made` says with which versions of
    which packages the outlines were read.
    """

    name: str
    ids: tuple[str, ...]
    crs: str
    degrees: bool
    digest: str
    levels: tuple[Level, ...] = ()
    rule: str = RULE
    outlines: Outlines | None = field(default=None, compare=False)
    made: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    what = "regions"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", axis_name(self.name))
        if not self.ids or len(set(self.ids)) < len(self.ids) or ELSEWHERE in self.ids:
            raise InvalidInput(f"Axis {self.name!r}: regions need names, each once and none of them {ELSEWHERE!r}.")
        checked_levels(self.name, self.levels, len(self.ids))
        if any(ELSEWHERE in level.of for level in self.levels):
            raise InvalidInput(
                f"Axis {self.name!r}: a level names some regions {ELSEWHERE!r}, which lies in nothing. Rename it."
            )
        if self.outlines is not None and len(self.outlines.regions) != len(self.ids) + 1:
            raise InvalidInput(f"Axis {self.name!r}: there are as many outlines as regions.")

    def __repr__(self) -> str:
        return f"Areas({self.name!r}, {shorten(self.ids)}, crs={self.crs!r})"

    @property
    def cells(self) -> int:  # type: ignore[override]  # read, never set
        """The regions and elsewhere."""
        return len(self.ids) + 1

    @property
    def known(self) -> Outlines:
        """The outlines, or a refusal where there are none."""
        if self.outlines is None:
            raise InvalidInput(
                f"Axis {self.name!r} was read without the outlines of its regions: their names are known, where they "
                "lie is not. Build it with sf.Regions from the same outlines."
            )
        return self.outlines

    @property
    def outlined(self) -> Outlines:
        """The outlines of the regions, or a refusal where there are none."""
        return self.known

    @cached_property
    def lookup(self) -> Lookup:
        """How points are located, made when it is first needed."""
        return Lookup.of(self.known)

    @cached_property
    def west(self) -> float:
        """Where longitudes begin: at -180, or at the regions' own west end where they reach beyond 180."""
        low, _, high, _ = self.known.bounds
        return -180.0 if low >= -180.0 and high <= 180.0 else low

    @cached_property
    def coarser(self) -> tuple[Coarse, ...]:
        """The levels, with elsewhere by itself on each."""
        return nested(Level(level.name, (*level.of, ELSEWHERE)) for level in self.levels)

    def cells_at(self, points: Floats) -> Integers:
        """The cell of every point (x, y) that is no NaN."""
        found = self.lookup(turned(points, self.west) if self.degrees else points)
        return np.where(found < 0, self.cells - 1, found)

    @cached_property
    def mosaic(self) -> Mosaic:
        """How polygons are compared with the regions, made when it is first needed."""
        return Mosaic.of(self.known)

    def cuts(self, polygons: Any, *, moved: bool) -> list[Cut]:
        """The regions that each polygon holds and cuts, elsewhere too. Corners that a transformation has moved off
        those of regions, by less than a tenth of a millimetre, are put back.
        """
        found = []
        for given in polygons:
            polygon = self.mosaic.snapped(given) if moved else given
            held = self.mosaic.cut_by(polygon, turns=self.degrees)
            beyond = self.mosaic.crosses_rim(polygon, turns=self.degrees) or self.reaches_elsewhere(polygon)
            found.append(held.with_cut(self.cells - 1) if beyond else held)
        return found

    def near(self, delta: Any) -> NDArray[np.int64]:
        """Every pair of cells u < v that hold places less than delta metres apart on the ellipsoid."""
        return near_regions(self.known, positive_fraction(delta, "delta"))

    def adjacent(self, *, corners: bool) -> NDArray[np.int64]:
        """Every pair of cells u < v with a border in common, or with ``corners`` a border or a corner."""
        return adjacent_regions(self.known, corners=corners)

    def face(self) -> str:
        """Regions."""
        name = "" if self.name == "place" else f", name={self.name!r}"
        return f"Regions({shorten(self.ids)}, crs={self.crs!r}{name})"

    def identity(self) -> dict[str, Any]:
        """All but the outlines themselves, which their digest stands for, and the versions that read them."""
        return {
            "kind": "regions",
            "name": self.name,
            "ids": list(self.ids),
            "crs": self.crs,
            "degrees": self.degrees,
            "rule": self.rule,
            "digest": self.digest,
            "levels": [{"name": level.name, "of": list(level.of)} for level in self.levels],
        }

    def spec(self) -> dict[str, Any]:
        """The same with both."""
        outlines = None if self.outlines is None else self.outlines.spec()
        return self.identity() | {"outlines": outlines, "made": dict(self.made)}


def areas_from_spec(spec: Mapping[str, Any]) -> Areas:
    """What `Areas.spec()` described; outlines that are not those of the digest are refused."""
    outlines = None if spec["outlines"] is None else outlines_from_spec(spec["outlines"])
    if outlines is not None and outlines.digest != spec["digest"]:
        raise InvalidInput("The outlines in the description of the domain are not those that it names.")
    if outlines is not None and spec["degrees"] and not outlines.on_earth:
        raise InvalidInput("The outlines in the description of the domain lie beyond the earth.")
    if not isinstance(spec["made"], Mapping) or not isinstance(spec["degrees"], bool):
        raise TypeError("made")
    return Areas(
        name=spec["name"],
        ids=texts_of(spec["ids"]),
        crs=text_of(spec["crs"]),
        degrees=spec["degrees"],
        digest=text_of(spec["digest"]),
        levels=tuple(map(level_from_spec, spec["levels"])),
        rule=text_of(spec["rule"]),
        outlines=outlines if spec["rule"] == RULE else None,
        made=tuple((text_of(name), text_of(version)) for name, version in spec["made"].items()),
    )


def level_from_spec(spec: Mapping[str, Any]) -> Level:
    """A level as a file has it."""
    return Level(text_of(spec["name"]), texts_of(spec["of"]))


def text_of(value: Any) -> str:
    """Text, or an error."""
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def texts_of(values: Any) -> tuple[str, ...]:
    """A list of text, or an error."""
    if not isinstance(values, list):
        raise TypeError("list")
    return tuple(map(text_of, values))
