"""Every scale alike: cells, blocks of a growing side, the whole. And every level of a factor's hierarchy alike.

Among all ranges the huge ones are nearly all: whoever tunes for them gives single cells away. Here every scale has the
same weight, however many queries it has.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.calls import quoted
from sfumato.domain import Domain
from sfumato.domain.coarser import level_named
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.workload.axis import CELLS, SAMPLED_QUERIES, AxisQueries
from sfumato.workload.grouped import Groups
from sfumato.workload.listed import TOTAL, Blocks
from sfumato.workload.part import Part
from sfumato.workload.simple import require_order
from sfumato.workload.workload import Workload

SCALE = 4  # from one scale to the next, along every axis
LEVEL = 2  # from one level of a grid's or line's own hierarchy to the next


def sides(shape: tuple[int, ...], ratio: int) -> list[int]:
    """1, ratio, ratio², … below the longest axis, and that axis: the sides of the blocks of every scale."""
    longest = max(shape)
    found = [1]
    while found[-1] * ratio < longest:
        found.append(found[-1] * ratio)
    return found + [longest] * (longest > 1)


def blocks_of(side: int, shape: tuple[int, ...], most: int = SAMPLED_QUERIES) -> tuple[AxisQueries, ...]:
    """Cells, blocks or the whole along every axis: an axis that is no longer than a side is summed over."""
    return tuple(TOTAL if side >= n else CELLS if side == 1 else Blocks(side, most) for n in shape)


@dataclass(frozen=True)
class EveryScale(Workload):
    """Blocks of several sizes of one factor; together they count as often as there are queries, each size alike."""

    def parts(self, domain: Domain) -> tuple[Part, ...]:
        """One for every size, with weights that make them count alike."""
        sizes = [Part(Fraction(1), kinds) for kinds in self._sizes(domain)]
        counts = [part.count(domain.shape) for part in sizes]
        return tuple(
            Part(Fraction(sum(counts), len(counts) * count), part.kinds)
            for part, count in zip(sizes, counts, strict=True)
        )

    @abstractmethod
    def _sizes(self, domain: Domain) -> list[tuple[AxisQueries, ...]]:
        """The kinds along every axis, for every size."""

    def _require_one_factor(self, domain: Domain, name: str) -> None:
        if len(domain.factors) > 1:
            names = ", ".join(repr(factor.name) for factor in domain.factors)
            raise InvalidInput(
                f"sf.{name}() is for one factor, and this domain has {names}. Nothing was computed. Say along which: "
                f"sf.ask({domain.factors[0].name}=sf.{name}(), …)."
            )


@dataclass(frozen=True)
class Scales(EveryScale):
    """Cells, blocks of side 4, 16, 64, … and the whole."""

    def check(self, domain: Domain) -> None:
        """One factor, in an order."""
        self._require_one_factor(domain, "scales")
        require_order(domain, "scales", "sf.levels(), which takes labels and their whole, or sf.histogram()")

    def describe(self) -> str:
        """In words."""
        return "every scale alike"

    def spec(self) -> dict[str, Any]:
        """The kind alone."""
        return {"kind": "scales"}

    def to_text(self) -> str:
        """The kind alone."""
        return "scales()"

    def _sizes(self, domain: Domain) -> list[tuple[AxisQueries, ...]]:
        return [blocks_of(side, domain.shape) for side in sides(domain.shape, SCALE)]


@dataclass(frozen=True)
class Levels(EveryScale):
    """Every level of a factor's own hierarchy, or those that are named.

    Grids and lines have blocks of side 1, 2, 4, 8, …; labels have themselves and the whole, and between them the levels
    that have names.
    """

    names: tuple[str, ...] = ()

    def check(self, domain: Domain) -> None:
        """One factor, with the levels that are named."""
        self._require_one_factor(domain, "levels")
        self._sizes(domain)

    def describe(self) -> str:
        """In words."""
        named = " and ".join([", ".join(self.names[:-1]), self.names[-1]] if len(self.names) > 1 else self.names)
        return f"every {named}" if self.names else "every level alike"

    def spec(self) -> dict[str, Any]:
        """The kind, and the names."""
        return {"kind": "levels"} | ({"names": list(self.names)} if self.names else {})

    def to_text(self) -> str:
        """The names."""
        return f"levels({', '.join(map(quoted, self.names))})"

    def _sizes(self, domain: Domain) -> list[tuple[AxisQueries, ...]]:
        levels = domain.axes[0].coarser if domain.ndim == 1 else ()
        if self.names:
            axis = domain.factors[0].name
            found = [level_named(levels, name, axis) for name in self.names]
            return [(Groups(level.name, level.of),) for level in found]
        if levels:
            return [(TOTAL,), *((Groups(level.name, level.of),) for level in levels), (CELLS,)]
        nested = all(axis.ordered for axis in domain.axes)
        steps = sides(domain.shape, LEVEL) if nested else sorted({1, max(domain.shape)})
        return [blocks_of(side, domain.shape) for side in steps]


def scales() -> Workload:
    """Every scale of a place, line or time, each counting alike: cells, blocks of side 4, 16, 64, … along each axis,
    and the whole.

    >>> sf.scales().count(sf.Grid(bounds=(0, 0, 1, 1), shape=(16, 16)))  # 256 cells, 16 blocks of 4 × 4, the whole
    273
    """
    return Scales()


def levels(*names: str) -> Workload:
    """Every level of a factor's hierarchy, each counting alike: blocks of side 1, 2, 4, 8, … of grids, lines and times;
    of regions, hexagons and categories the cells, their levels that have names, and all of them together. With names,
    those levels alone.

    >>> sf.levels().count(sf.Categories(["bus", "bike", "car"]))
    4
    >>> codes = sf.Categories(["J10", "J18", "K35"], levels={"chapter": ["lung", "lung", "gut"]})
    >>> sf.levels().count(codes), sf.levels("chapter").count(codes)
    (6, 2)
    """
    for name in names:
        if not isinstance(name, str):
            raise InvalidInput(
                f"sf.levels(…) takes names of levels, and {shown(name)} is none. Nothing was computed. Write "
                "sf.levels() for all of them, or sf.levels('county')."
            )
    if len(set(names)) < len(names):
        raise InvalidInput("sf.levels(…) names a level twice. Nothing was computed. Name each once.")
    return Levels(tuple(names))
