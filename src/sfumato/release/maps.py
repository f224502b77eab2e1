"""A release as a map: what it says of every cell of a place, or of every group of one level, with the outlines.

Outlines are public like the domain that they come from, and drawing costs no privacy. Elsewhere lies nowhere on a map:
it is a row like the others, without an outline. What a grid on the ground leaves out is in no cell, and has no row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.domain import Domain
from sfumato.domain.factor import PLACE
from sfumato.domain.geometries import joined
from sfumato.domain.on_maps import crs_of, places
from sfumato.domain.ordered import Ordered
from sfumato.domain.outlines import Outlines, rectangles
from sfumato.domain.paths import Paths
from sfumato.domain.places import Places
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import shown
from sfumato.naming import nearest
from sfumato.release.answering import tabled
from sfumato.release.asking import asked, positions
from sfumato.release.by_level import level_names, level_of
from sfumato.release.intervals import check_confidence
from sfumato.release.keys import Key
from sfumato.release.table import Table

if TYPE_CHECKING:
    from sfumato.release.view import View


@dataclass(frozen=True, eq=False)
class Map:
    """Rows of a place in C order: the table, which of them lie somewhere, and the outlines of those."""

    place: tuple[Key, ...]
    rest: tuple[Key, ...]
    table: Table
    located: NDArray[np.bool_]
    outlines: Outlines | Paths
    crs: str | None

    @property
    def named(self) -> bool:
        """Whether its rows have names; those of grids have bounds."""
        return len(self.place) == 1

    def columns(self, figures: Mapping[str, Floats]) -> dict[str, Floats]:
        """One column a figure and group of the rest: value, or value_bike, stderr_bike, …, each name once."""
        found: dict[str, Floats] = {}
        groups = list(product(*(key.short_names for key in self.rest)))
        flat = {name: np.asarray(part).reshape(len(self.located), -1) for name, part in figures.items()}
        for i, cells in enumerate(groups):
            for figure, part in flat.items():
                name = "_".join([figure, *cells])
                while name in found:
                    name += "_"
                found[name] = part[:, i]
        return found


def mapped(
    domain: Domain,
    view: View,
    *,
    level: str | None,
    by: str | Iterable[str] | None,
    where: Mapping[str, Any] | None,
    confidence: float,
    most: int | None = None,
) -> Map:
    """The map of a place, or of one of its levels; `by` are the groups of all else, and `most` how many figures."""
    groups = (by,) if isinstance(by, str) else tuple(by or ())
    at = _place(domain, groups, where) if level is None else (_axis_of(domain, level),)
    names = [domain.names[i] for i in at] if level is None else [level]
    question = asked(domain, None, {}, where, (*names, *groups), "bracket")
    size = math.prod(question.shape)
    if most is not None and size > most:
        raise TooLarge(
            f"{size:,} cells are too many for GeoJSON (at most {most:,}). Nothing was written. Use to_parquet."
        )
    place, rest = question.keys[: len(at)], question.keys[len(at) :]
    axes = [domain.axes[i] for i in at]
    located, outlines = (
        boxes_of_rows(place) if len(at) == 2 else outlines_of_rows(cast(Places, axes[0]), place[0], level)
    )
    table = tabled(view, question, check_confidence(confidence), "bracket")
    return Map(place, rest, table, located, outlines, crs_of(axes))


def _place(domain: Domain, groups: Sequence[str], where: Any) -> tuple[int, ...]:
    """The place that is called so, else the only one, or the only one that nothing is asked of."""
    found = places(domain)
    if not found:
        raise InvalidInput(
            "A map needs regions, hexagons or a grid of two interval axes; this release has the axes "
            f"{', '.join(map(repr, domain.names))}. Nothing was written. Use to_frame, to_parquet or to_csv."
        )
    by_name = [factor.positions for factor in domain.factors if factor.name == PLACE and factor.positions in found]
    if len(found) == 1 or by_name:
        return (by_name or found)[0]
    said = {i for name in (*groups, *(where if isinstance(where, Mapping) else ())) for i in positions(domain, name)}
    free = [one for one in found if not said & set(one)]
    if len(free) != 1:
        names = ", ".join(repr(factor.name) for factor in domain.factors if factor.positions in found)
        raise InvalidInput(
            f"this release has several places: {names}. Nothing was written. Name all but the one that is to be drawn "
            "in where= or by=."
        )
    return free[0]


def _axis_of(domain: Domain, level: str) -> int:
    """The axis whose level has this name."""
    found = level_of(domain, level) if isinstance(level, str) else None
    known = [name for name in level_names(domain) if _of_a_place(domain, name)]
    if found is None or level not in known:
        near = nearest(level, known) if isinstance(level, str) else ""
        raise InvalidInput(
            f"level={shown(level)} is no level of a place of this release, whose levels are: "
            f"{', '.join(map(repr, known)) or 'none'}.{near} Nothing was written."
        )
    return found[0]


def _of_a_place(domain: Domain, level: str) -> bool:
    found = level_of(domain, level)
    return found is not None and domain.axes[found[0]].reads == "places"


def boxes_of_rows(keys: Sequence[Key]) -> tuple[NDArray[np.bool_], Outlines | Paths]:
    """The same of the cells of a grid, all of which lie somewhere."""
    edges = [np.asarray(cast(Ordered, key.axis).edges, dtype=np.float64) for key in keys]
    cells = np.meshgrid(*(key.cells for key in keys), indexing="ij")
    (x0, x1), (y0, y1) = (
        (along[cell.ravel()], along[cell.ravel() + 1]) for along, cell in zip(edges, cells, strict=True)
    )
    return np.ones(len(x0), np.bool_), rectangles(x0, y0, x1, y1)


def outlines_of_rows(axis: Places, key: Key, level: str | None) -> tuple[NDArray[np.bool_], Outlines | Paths]:
    """Which cells or groups lie somewhere, and their outlines."""
    if level is None:
        located = key.cells < axis.cells - 1
        return located, axis.outlined.taken(key.cells[located])
    of = next(coarse.of for coarse in axis.coarser if coarse.name == key.axis.name)
    located = key.cells != of[-1]
    return located, joined(axis.outlined, of[:-1], key.cells[located], "The outline of a level")
