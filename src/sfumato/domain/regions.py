"""`Regions`: a place cut into polygons that people know by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.domain.factor import PLACE, Factor
from sfumato.domain.product import Domain


class Regions(Domain):
    """Tracts, boroughs, countries: one cell for each polygon, then one for elsewhere, which is all that lies in none.

    ``areas`` is a GeoDataFrame, or the path of a GeoJSON or GeoParquet file, with one row a region, and a CRS: degrees
    on an ellipsoid of the earth. ``id`` is the column of the names, ``levels`` those of coarser names, such as the
    county and the state of a tract.

    Regions are public by declaration: take them from whoever draws the borders, and never from the records. Polygons
    that are invalid and polygons that overlap are refused by name; ``repair=True`` mends the former and gives what two
    of the latter share to the first of them. Gaps between regions are elsewhere, and narrow ones are warned of.

    *Location.* Every point belongs to one cell, on a border too, on every engine and machine the same. Longitudes are
    taken modulo 360. Elsewhere is a cell like the others: the last in ``shape``, and counted. Needs ``sfumato[geo]``.

    >>> import geopandas, shapely
    >>> halves = geopandas.GeoDataFrame(
    ...     {"half": ["west", "east"]}, geometry=[shapely.box(0, 0, 1, 2), shapely.box(1, 0, 2, 2)], crs="EPSG:4326"
    ... )
    >>> regions = sf.Regions(halves, id="half")
    >>> regions.shape, regions.locate([(0.5, 1), (1, 1), (7, 1)]).tolist()
    ((3,), [0, 1, 2])
    """

    def __init__(
        self, areas: Any, *, id: str, levels: Sequence[str] = (), name: str = PLACE, repair: bool = False
    ) -> None:
        from sfumato.domain.polygons import read_areas  # needs packages of the geo extra

        super().__init__((read_areas(areas, id, levels, name, repair),), (Factor(name, (0,)),))
