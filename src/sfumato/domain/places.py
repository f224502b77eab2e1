"""What axes of places have in common: cells that people know by names, and a last one, *elsewhere*, for all the rest.

A place is two numbers, x and y or longitude and latitude; every place has a cell, and distances are on the ground.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._types import Floats, Integers
from sfumato.domain.axis import METRES, Axis
from sfumato.domain.cutting import Cut, needed
from sfumato.domain.outlines import Outlines
from sfumato.domain.paths import Paths
from sfumato.errors import InvalidInput

ELSEWHERE = "elsewhere"


class Places(Axis):
    """Cells by their names, in order, then elsewhere."""

    ids: tuple[str, ...]
    """The names of the cells without elsewhere."""
    digest: str
    """That of the map: of the outlines, the cells or the roads."""
    crs: str
    """The CRS of the two numbers of a place."""
    indexed: ClassVar[bool] = False
    """Whether a record may name its cell, or a finer one, by an index of H3."""

    reads = "places"
    named = True

    @abstractmethod
    def cells_at(self, points: Floats) -> Integers:
        """The cell of every point (x, y) that is no NaN."""

    @property
    @abstractmethod
    def outlined(self) -> Outlines | Paths:
        """The outlines of the cells without elsewhere, in the CRS, of roads their lines; cut at the date line."""

    @abstractmethod
    def cuts(self, polygons: Any, *, moved: bool) -> list[Cut]:
        """What each of some polygons in the CRS holds and cuts, elsewhere too; `moved` says that they were transformed
        into it.
        """

    def reaches_elsewhere(self, polygon: Any) -> bool:
        """Whether one point of a part of a polygon is elsewhere: of each part, one."""
        shapely = needed()
        parts = shapely.get_parts(polygon)
        points = shapely.get_coordinates(shapely.point_on_surface(parts))
        return bool((self.cells_at(points) == self.cells - 1).any())

    @property
    def map_digest(self) -> str | None:
        """The digest of the map."""
        return self.digest

    @property
    def arity(self) -> int:
        """Two numbers: x and y, or longitude and latitude."""
        return 2

    @property
    def unit(self) -> str | None:
        """Distances are on the ground."""
        return METRES

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the cells, and elsewhere."""
        return (*self.ids, ELSEWHERE)

    @property
    def kind(self) -> type[str]:
        """What the names are."""
        return str

    def locate(self, values: ArrayLike) -> NDArray[np.int64]:
        """The cell of each point, of an array with two columns; elsewhere where it is in none."""
        points = np.asarray(values)
        if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "fiu":
            raise InvalidInput(f"Axis {self.name!r}: places are an array of numbers with two columns, x and y.")
        points = points.astype(np.float64, copy=False)
        if np.isnan(points).any():
            raise InvalidInput(
                f"Axis {self.name!r}: some places are NaN, which is nowhere. Nothing was counted. Remove them first; "
                "sf.count leaves them out by itself."
            )
        return self.cells_at(points)

    def take(self, held: NDArray[Any], cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Turn each number in ``cells`` into ``number * self.cells + cell of the place``; and which are elsewhere."""
        found = self.cells_at(held)
        np.multiply(cells, self.cells, out=cells)
        np.add(cells, found, out=cells)
        return found == self.cells - 1

    def outside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which places are elsewhere."""
        return self.locate(values) == self.cells - 1

    def cell_names(self) -> list[str]:
        """The names of the cells, and elsewhere."""
        return list(self.labels)

    def size(self, cells: int) -> str:
        """So many of them."""
        return f"1 {self.what[:-1]}" if cells == 1 else f"{cells} {self.what}"


def turned(points: Floats, west: float) -> Floats:
    """Longitudes from ``west`` on, less than one turn; what lies there already stays as it is."""
    beyond = ~((points[:, 0] >= west) & (points[:, 0] < west + 360))
    if not beyond.any():
        return points
    found = np.array(points)
    with np.errstate(invalid="ignore"):
        found[beyond, 0] = west + np.mod(found[beyond, 0] - west, 360.0)
    return found
