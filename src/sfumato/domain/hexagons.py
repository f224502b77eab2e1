"""`H3`: a place cut into the hexagons of H3, and its axis: one cell for each, and a last one, *elsewhere*.

A place is in the hexagon that the library of H3 puts it in; no second implementation is used, since they differ at
corners. A record that names a finer cell is in the hexagon of which that is a part by its index, which now and then is
the neighbour of the one that holds its middle. An axis that was read from a file knows its cells by their names; to
locate places it needs the library.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain.axis import axis_name
from sfumato.domain.coarser import Coarse, Level, nested
from sfumato.domain.covers import covering, finer_than, h3
from sfumato.domain.cut_hexagons import Comb, around_bounds
from sfumato.domain.cutting import Cut
from sfumato.domain.date_line import cut_at_date_line
from sfumato.domain.factor import PLACE, Factor
from sfumato.domain.h3_index import FINEST, Indices, are_cells, parents_at, resolutions, written
from sfumato.domain.labels import shorten
from sfumato.domain.near_hexagons import near_hexagons
from sfumato.domain.outlines import Outlines, of_rings, packed, unpacked
from sfumato.domain.places import ELSEWHERE, Places
from sfumato.domain.product import Domain
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import is_whole, positive_fraction, shown
from sfumato.linear import distinct

RULE = "h3-4"
"""The name of the rule of location: the library of H3, of version 4."""
MOST_LISTED = 1 << 23
"""Hexagons that a file may list, twice as many as a cover has: their numbers pack to almost nothing."""


@dataclass(frozen=True, repr=False)
class Hexagons(Places):
    """Cells of H3 of one resolution, in the order of their numbers, then elsewhere.

    Two are equal when their names, resolutions, levels and cells (by their digest) are; `made` says with which version
    of the library they were found.
    """

    name: str
    resolution: int
    digest: str
    levels: tuple[int, ...] = ()
    """Coarser resolutions whose cells are levels of these, from the coarsest on."""
    rule: str = RULE
    indices: Indices = field(default_factory=lambda: np.zeros(0, np.uint64), compare=False)
    made: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    what = "hexagons"
    indexed = True
    crs = "EPSG:4326"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", axis_name(self.name))
        cells = self.indices
        if not is_whole(self.resolution) or not 0 <= self.resolution <= FINEST:
            raise InvalidInput(f"Axis {self.name!r}: a resolution is a whole number from 0 to {FINEST}.")
        if not len(cells) or (cells[1:] <= cells[:-1]).any():
            raise InvalidInput(f"Axis {self.name!r}: hexagons are listed once each, rising.")
        if len(cells) > MOST_LISTED:
            raise TooLarge(
                f"Axis {self.name!r}: {len(cells):,} hexagons are more than the {MOST_LISTED:,} of any file."
            )
        if not are_cells(cells).all() or (resolutions(cells) != self.resolution).any():
            raise InvalidInput(f"Axis {self.name!r}: its cells are not all hexagons of resolution {self.resolution}.")
        if digest_of(cells) != self.digest:
            raise InvalidInput(f"Axis {self.name!r}: its cells are not those that it names.")
        cells.flags.writeable = False
        given = tuple(self.levels)
        if not all(map(is_whole, given)) or list(given) != sorted({r for r in given if 0 <= r < self.resolution}):
            raise InvalidInput(
                f"Axis {self.name!r}: levels={list(given)!r} must be whole numbers below the resolution "
                f"{self.resolution}, rising, such as levels=[{max(self.resolution - 2, 0)}]. Nothing was built."
            )
        object.__setattr__(self, "levels", given)

    @classmethod
    def of(cls, name: str, resolution: int, cells: Indices, levels: tuple[int, ...] = ()) -> Hexagons:
        """The axis of cells that the library, as it is here, has found."""
        import h3 as library

        versions = library.versions()
        made = (("h3", versions["python"]), ("h3 (C)", versions["c"]))
        return cls(name=name, resolution=resolution, digest=digest_of(cells), levels=levels, indices=cells, made=made)

    def __repr__(self) -> str:
        return f"Hexagons({self.name!r}, {self.resolution}, {shorten(self.ids)})"

    @property
    def cells(self) -> int:  # type: ignore[override]  # read, never set
        """The hexagons and elsewhere."""
        return len(self.indices) + 1

    @cached_property
    def ids(self) -> tuple[str, ...]:  # type: ignore[override]  # read, never set
        """The hexagons as H3 writes them."""
        return tuple(written(self.indices))

    def parents(self, resolution: int) -> Level:
        """The coarser cell of every hexagon, by the hierarchy of H3."""
        if not is_whole(resolution) or not 0 <= resolution < self.resolution:
            raise InvalidInput(
                f"resolution={shown(resolution)} must be one coarser than {self.resolution}, from 0 to "
                f"{self.resolution - 1}. Nothing was built."
            )
        return Level(f"resolution {resolution}", tuple(written(parents_at(self.indices, resolution))))

    @cached_property
    def coarser(self) -> tuple[Coarse, ...]:
        """The parents at every level, with elsewhere by itself on each."""
        parents = map(self.parents, self.levels)
        return nested(Level(level.name, (*level.of, ELSEWHERE)) for level in parents)

    def cells_at(self, points: Floats) -> Integers:
        """The cell of every point (lon, lat) that is no NaN; those beyond the poles are elsewhere."""
        find, lon, lat = h3().latlng_to_cell, points[:, 0], points[:, 1]
        there = np.isfinite(lon) & (np.abs(lat) <= 90)
        if not there.all():
            lon, lat = lon[there], lat[there]
        if np.abs(lon).max(initial=0.0) > 180:
            lon = np.where(np.abs(lon) > 180, np.mod(lon + 180, 360.0) - 180, lon)
        level = [self.resolution] * len(lon)
        found = np.full(len(points), self.cells - 1, np.int64)
        found[there] = self.numbers_of(np.fromiter(map(find, lat.tolist(), lon.tolist(), level), np.uint64, len(lon)))
        return found

    def numbers_of(self, cells: Indices) -> Integers:
        """The number of each cell of H3 in the domain; elsewhere for those that are not in it."""
        at = np.minimum(np.searchsorted(self.indices, cells), len(self.indices) - 1)
        return np.where(self.indices[at] == cells, at, self.cells - 1)

    def places_of(self, indices: Indices) -> Floats:
        """A place (lon, lat) in the cell of each index of the domain's resolution or a finer one: infinite where that
        is elsewhere, NaN where there is none, or a coarser one.
        """
        found = finer_than(indices, self.resolution)
        places = np.concatenate([self.centres, np.full((1, 2), np.inf)])[self.numbers_of(found)]
        places[found == 0] = np.nan
        return places

    @cached_property
    def outlined(self) -> Outlines:
        """The hexagons with straight sides between the corners that the library says."""
        package = h3()
        corners = [np.array(package.cell_to_boundary(cell))[:, ::-1] for cell in self.indices.tolist()]
        return of_rings([cut_at_date_line(np.concatenate([ring, ring[:1]])) for ring in corners])

    @cached_property
    def centres(self) -> Floats:
        """(lon, lat) of the middles of the hexagons."""
        return _centres(self.indices.tolist())

    def cuts(self, polygons: Any, *, moved: bool) -> list[Cut]:
        """The hexagons that each polygon holds and cuts, elsewhere too."""
        del moved
        at = around_bounds(self.centres, polygons, self.resolution)
        own = self.indices[at].tolist()
        known = set(own)
        around = np.array(sorted({near for cell in own for near in h3().grid_disk(cell, 1)} - known), np.uint64)
        around = around[self.numbers_of(around) == self.cells - 1]
        comb = Comb.of(outlines([*own, *around.tolist()]), len(own)) if own else None
        found = []
        for polygon in polygons:
            held, beyond = comb.cut_by(polygon) if comb else (Cut.joined([]), True)
            held = Cut(at[held.inside], at[held.cut], held.share)
            found.append(held.with_cut(self.cells - 1) if beyond or self.reaches_elsewhere(polygon) else held)
        return found

    def near(self, delta: Any) -> NDArray[np.int64]:
        """Every pair of cells u < v that hold places less than delta metres apart on the ellipsoid."""
        package = h3()
        own = set(self.indices.tolist())
        around = sorted({near for cell in own for near in package.grid_disk(cell, 1)} - own)
        cells = [*self.indices.tolist(), *around]
        return near_hexagons(outlines(cells), _centres(cells), len(own), positive_fraction(delta, "delta"))

    def adjacent(self, *, corners: bool) -> NDArray[np.int64]:
        """Every pair of cells u < v with a side in common: whatever meets at a corner has one."""
        del corners
        package = h3()
        around = [package.grid_disk(cell, 1) for cell in self.indices.tolist()]
        one = np.repeat(np.arange(len(around)), [len(cells) for cells in around])
        other = self.numbers_of(np.fromiter((near for cells in around for near in cells), np.uint64, len(one)))
        found = distinct((one * self.cells + other)[one < other])
        if not (found % self.cells == self.cells - 1).any():  # a cover of the earth: whoever is nowhere may be anywhere
            found = np.append(found, np.arange(self.cells - 1) * self.cells + self.cells - 1)
        return np.stack([found // self.cells, found % self.cells], axis=-1)

    def face(self) -> str:
        """Hexagons."""
        name = "" if self.name == PLACE else f", name={self.name!r}"
        levels = f", levels={list(self.levels)!r}" if self.levels else ""
        return f"H3({self.resolution}, cover={shorten(self.ids)}{levels}{name})"

    def entry(self) -> dict[str, Any]:
        """The resolution and the cells."""
        levels = {"levels": list(self.levels)} if self.levels else {}
        return {"h3": self.resolution, "cover": list(self.ids), **levels}

    def identity(self) -> dict[str, Any]:
        """All but the list of the cells, which the digest stands for, and the version that found them."""
        return {
            "kind": "hexagons",
            "name": self.name,
            "resolution": self.resolution,
            "rule": self.rule,
            "digest": self.digest,
            "levels": list(self.levels),
        }

    def spec(self) -> dict[str, Any]:
        """The same with both; cells as the differences of their numbers."""
        steps = np.diff(self.indices, prepend=np.uint64(0)).astype("<u8")
        return self.identity() | {"cells": packed(steps), "made": dict(self.made)}


def hexagons_from_spec(spec: Mapping[str, Any]) -> Hexagons:
    """What `Hexagons.spec()` described, or a refusal: nothing in a file is trusted."""
    try:
        steps = np.frombuffer(unpacked(spec["cells"], 8 * MOST_LISTED), "<u8").astype(np.uint64)
    except (ValueError, zlib.error, base64.binascii.Error) as error:  # type: ignore[attr-defined]
        raise InvalidInput("The hexagons in the description of the domain are damaged.") from error
    if spec["rule"] != RULE or not isinstance(spec["made"], Mapping):
        raise TypeError("rule")
    return Hexagons(
        name=spec["name"],
        resolution=spec["resolution"],
        digest=spec["digest"],
        levels=_levels(spec["levels"]),
        indices=np.cumsum(steps, dtype=np.uint64),
        made=tuple((str(name), str(version)) for name, version in spec["made"].items()),
    )


def _levels(value: Any) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        raise TypeError("levels")
    return tuple(value)


def digest_of(cells: Indices) -> str:
    """SHA-256 of the numbers of cells as little-endian ones of 64 bits."""
    return hashlib.sha256(np.ascontiguousarray(cells, "<u8").tobytes()).hexdigest()


def outlines(cells: list[int]) -> Floats:
    """The corners (lon, lat) of cells, the last one repeated where a cell has fewer than another."""
    package = h3()
    corners = [package.cell_to_boundary(cell) for cell in cells]
    most = max(map(len, corners))
    return np.array([[*found, *[found[-1]] * (most - len(found))] for found in corners])[..., ::-1]


def _centres(cells: list[int]) -> Floats:
    package = h3()
    return np.array([package.cell_to_latlng(cell) for cell in cells]).reshape(-1, 2)[:, ::-1]


class H3(Domain):
    """The hexagons of H3 at a resolution that cover a public area: one cell for each, then one for elsewhere, which is
    all that lies in none of them.

    ``cover`` is a GeoDataFrame, a polygon, the path of a GeoJSON or GeoParquet file, bounds ``(lon0, lat0, lon1,
    lat1)``, or a list of cells of this resolution, as text or as numbers. Of an area every hexagon is taken that has a
    part of it. Cells stand in the order of their numbers. ``levels`` are coarser resolutions whose cells are asked for
    as well (`sf.levels`): a hexagon belongs to its parent in the hierarchy of H3.

    The cover is public by declaration: an area that somebody else has drawn, never the cells that were visited.

    *Location* is what the library of H3 says, on every engine; records may also name their cell, or a finer one, with
    ``h3=`` of `sf.count`. Elsewhere is a cell like the others: the last in ``shape``, and counted. Needs
    ``sfumato[h3]``; polygons in frames and files also ``sfumato[geo]``.

    >>> hexagons = sf.H3(7, cover=(-74.05, 40.68, -73.9, 40.88))
    >>> hexagons.shape, hexagons.locate([(-73.97, 40.78), (2.35, 48.85)]).tolist()
    ((77,), [9, 76])
    """

    def __init__(self, resolution: int, *, cover: Any, levels: Sequence[int] = (), name: str = PLACE) -> None:
        if isinstance(levels, str) or not isinstance(levels, Sequence):
            raise InvalidInput(f"levels={shown(levels)} must be a list of resolutions. Nothing was built.")
        axis = Hexagons.of(name, resolution, covering(cover, resolution), tuple(levels))
        super().__init__((axis,), (Factor(name, (0,)),))
