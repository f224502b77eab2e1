"""Answers for polygons: each sees the place as three sums, of the cells inside of it, of those it cuts, of the others.

**What is promised** is what `sfumato.release.brackets` promises of ranges: the number of records in a polygon, as they
were counted, is at least that of the cells wholly inside and at most that of all cells touched. Which cells these are
is told exactly (`sfumato.domain.cutting`). A polygon that reaches beyond regions or hexagons touches elsewhere, which
is one cell like the others; what lies beyond a grid is in no cell, and in no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy

from sfumato._types import Floats, Integers
from sfumato.domain import Domain
from sfumato.domain.cutting import Cut, cut_grid, read_polygons
from sfumato.domain.factor import PLACE
from sfumato.domain.on_maps import crs_of, places
from sfumato.domain.ordered import Ordered
from sfumato.domain.places import Places
from sfumato.errors import InvalidInput
from sfumato.release.combined import Sums

INSIDE, TOUCHED, REST = range(3)


@dataclass(frozen=True, eq=False)
class Pieces:
    """What some polygons hold and cut of the place with these axes; `single` where there was but one polygon."""

    axes: tuple[int, ...]
    size: int
    cuts: Sequence[Cut]
    single: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the answers."""
        return () if self.single else (len(self.cuts),)

    def along(self, place: dict[int, int]) -> Pieces:
        """The same where axes have other positions."""
        return replace(self, axes=tuple(place[i] for i in self.axes))


@dataclass(frozen=True, eq=False)
class Seen:
    """One polygon as rows of sums: which of them are wholly inside, and which are touched; and the sums with shares."""

    sums: Sums
    inner: int
    outer: int
    shares: Sums | None

    @classmethod
    def of(cls, pieces: Pieces, cut: Cut) -> Seen:
        """Rows that would be empty are left out, so that all of a place is known for all of it."""
        kind = np.full(pieces.size, REST, np.int64)
        kind[cut.inside], kind[cut.cut] = INSIDE, TOUCHED
        there = np.unique(kind)
        of = np.searchsorted(there, kind)
        inner = int(np.searchsorted(there, TOUCHED))
        outer = int(np.searchsorted(there, REST))
        ones = np.ones(pieces.size, np.int64)
        matrix = scipy.sparse.csr_matrix((ones, (of, np.arange(pieces.size))), shape=(len(there), pieces.size))
        sums = Sums(pieces.axes, matrix, of)
        if outer == inner:
            return cls(sums, inner, outer, None)
        weight = np.zeros(pieces.size)
        weight[cut.inside], weight[cut.cut] = 1.0, cut.share
        return cls(sums, inner, outer, Sums(pieces.axes, scipy.sparse.csr_matrix(np.stack([weight, 1.0 - weight]))))


def pieces_of(domain: Domain, axes: tuple[int, ...], value: Any, cut: str, name: str) -> tuple[Pieces, Any]:
    """What polygons hold and cut, and what the answer shall call them: themselves, or the cells nearest to them."""
    along = [domain.axes[i] for i in axes]
    polygons, single, moved = read_polygons(value, crs_of(along), name)
    size = int(np.prod([axis.cells for axis in along], dtype=np.int64))
    if len(along) == 1:
        found = cast(Places, along[0]).cuts(polygons, moved=moved)
    else:
        x, y = (np.asarray(cast(Ordered, axis).edges, dtype=np.float64) for axis in along)
        turns = along[0].apart and bool(along[0].spec().get("turns"))
        found = [cut_grid(x, y, polygon, turns=turns) for polygon in polygons]
        _refuse_outside(found, name)
    if cut != "snap":
        return Pieces(axes, size, found, single), value
    nearest = [Cut(one.snapped, one.snapped[:0], np.zeros(0)) for one in found]
    told = [_named(domain, axes, one.inside) for one in nearest]
    return Pieces(axes, size, nearest, single), told[0] if single else told


def place_of(domain: Domain, taken: set[int], name: str | None) -> tuple[int, ...]:
    """The axes of the place that a polygon is asked of: that of the name, else the one called so, else the only one
    that nothing else speaks of.
    """
    known = {factor.name: factor.positions for factor in domain.factors if factor.positions in places(domain)}
    if name is not None and name not in known:
        listed = ", ".join(map(repr, known)) or "none"
        raise InvalidInput(
            f"{name} is asked for a polygon, and is no place of this release, whose places are: {listed}. Nothing was "
            "answered."
        )
    free = {one: axes for one, axes in known.items() if not set(axes) & taken}
    chosen = name if name is not None else PLACE if PLACE in free else next(iter(free)) if len(free) == 1 else None
    if chosen is None:
        listed = ", ".join(map(repr, free)) or "none that nothing else speaks of"
        raise InvalidInput(
            f"a polygon without a name is that of a place, and this release has {listed}. Nothing was answered. Name "
            "it in where=, or leave out what else is asked of the place."
        )
    if chosen not in free:
        raise InvalidInput(
            f"{chosen} is asked for a polygon, and by= groups by it as well. Nothing was answered. Leave one of them "
            "out."
        )
    return free[chosen]


def _refuse_outside(found: Sequence[Cut], name: str) -> None:
    """Polygons that hold no point within the bounds of a grid are no question about it."""
    beyond = [str(i) for i, cut in enumerate(found) if cut.is_empty]
    if beyond:
        listed = ", ".join(beyond[:5]) + (" and others" if len(beyond) > 5 else "")
        raise InvalidInput(
            f"{name} holds polygons that lie outside the bounds of the grid (number {listed}): what is there was not "
            "counted there. Nothing was answered. Leave them out."
        )


def _named(domain: Domain, axes: tuple[int, ...], cells: Integers) -> Any:
    """Cells by their names, those of grids by their numbers along the axes."""
    if len(axes) == 1:
        labels = cast(Places, domain.axes[axes[0]]).labels
        return tuple(labels[cell] for cell in cells.tolist())
    return np.stack(np.unravel_index(cells, [domain.shape[i] for i in axes]), axis=-1)


def shares_of(value: Floats, inner: Floats, cut: bool) -> Floats:
    """Which share of the values lies in cut cells, as `Cover.share` has it."""
    if not cut:
        return np.zeros(len(value))
    parts, inside = np.abs(value - inner), np.abs(inner)
    return np.divide(parts, parts + inside, out=np.ones(len(value)), where=parts + inside > 0)
