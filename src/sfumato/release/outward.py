"""What a release can be turned into for others: tables, maps and pictures.

They are ways out: none of them is read back as a release. What they need is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.auditing import Audit
    from sfumato.ledger import Ledger
    from sfumato.release.release import Release
    from sfumato.statement import Statement


class Outward:
    """The ways out of a release."""

    @property
    def _release(self) -> Release:
        return cast("Release", self)

    def to_frame(self, kind: str = "arrow", *, confidence: float = 0.95) -> Any:
        """Every cell as a row: its bounds or labels along the axes, then value, stderr, low and high. An Arrow table,
        or with ``"pandas"`` or ``"polars"`` a frame of theirs.

        >>> plan = sf.plan(sf.unbounded(sf.Line(0, 4, cells=4)), sf.histogram(), epsilon=1)
        >>> plan.publish(np.array([3, 0, 5, 1])).to_frame().column_names
        ['x_low', 'x_high', 'value', 'stderr', 'low', 'high']
        """
        from sfumato.release.frames import framed, table_of_cells

        return framed(table_of_cells(self._release, self._release._clipped_cells(confidence)), kind)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table of `to_frame`, for whatever takes Arrow by its PyCapsule interface: `polars.DataFrame(release)`,
        `pyarrow.table(release)`, a query of DuckDB.
        """
        return self.to_frame().__arrow_c_stream__(requested_schema)

    def to_xarray(self, *, confidence: float = 0.95) -> Any:
        """The cells as an `xarray.Dataset` with the variables value, stderr, low and high, one dimension an axis.

        Hexagons have their numbers as the coordinate `cell_ids`, with grid and level as its attributes, which
        `xdggs.decode` reads; elsewhere has none, and stands beside them, in `value_elsewhere` and so on.
        """
        from sfumato.release.frames import dataset_of_cells

        return dataset_of_cells(self._release, self._release._clipped_cells(confidence))

    def to_parquet(self, path: str | Path, *, points: bool = False) -> Path:
        """Write a plain table: one row a cell with its bounds, estimate and standard error; with `points`, one row a
        synthetic point.
        """
        from sfumato.release.export import to_parquet

        return to_parquet(self._release, path, points=points)

    def to_csv(self, path: str | Path) -> Path:
        """Write the same table as text."""
        from sfumato.release.export import to_csv

        return to_csv(self._release, path)

    def to_geojson(
        self,
        path: str | Path,
        *,
        level: str | None = None,
        by: str | Iterable[str] | None = None,
        where: Mapping[str, Any] | None = None,
        density: bool = False,
        confidence: float = 0.95,
    ) -> Path:
        """Write regions, hexagons or the cells of a grid as outlines in WGS84 with their estimates; on a product
        everything else is summed over, and with `by` there is one property a group, such as count_bike.

        Elsewhere is a feature without geometry. `level` asks for the groups of a level, as `to_geopandas` does.

        >>> import json
        >>> hexagons = sf.H3(7, cover=(-74.05, 40.68, -73.9, 40.88))
        >>> release = sf.plan(sf.unbounded(hexagons), sf.histogram(), epsilon=1).publish(np.full(77, 100))
        >>> found = json.loads(release.to_geojson("visits.geojson").read_text())["features"]
        >>> len(found), list(found[0]["properties"]), found[-1]["geometry"]
        (77, ['place', 'count', 'stderr', 'low', 'high'], None)
        """
        from sfumato.release.geography import to_geojson

        view = self._release._on_a_map(level)
        return to_geojson(
            self._release, view, path, level=level, by=by, where=where, density=density, confidence=confidence
        )

    def to_geopandas(
        self,
        level: str | None = None,
        *,
        by: str | Iterable[str] | None = None,
        where: Mapping[str, Any] | None = None,
        density: bool = False,
        confidence: float = 0.95,
    ) -> Any:
        """A GeoDataFrame with one row a region, hexagon or cell of a grid: its name or bounds, value, stderr, low and
        high, and its outline in the CRS of the domain.

        With `level` one row a group, as `answer(by=level)` has them. On a product everything else is summed over; with
        `by` there is one column a group, such as value_bike, and `where` says which part is meant. With `density` two
        columns more: the area in square kilometres of the ellipsoid, and the value on each. Elsewhere is the last row,
        and has no geometry. Needs ``sfumato[geo]``.

        >>> import geopandas, shapely
        >>> boxes = [shapely.box(x, 0, x + 1, 2) for x in range(3)]
        >>> names = {"tract": ["a", "b", "c"], "county": ["west", "west", "east"]}
        >>> tracts = geopandas.GeoDataFrame(names, geometry=boxes, crs="EPSG:4326")
        >>> regions = sf.Regions(tracts, id="tract", levels=["county"])
        >>> release = sf.plan(sf.unbounded(regions), sf.levels(), epsilon=1).publish(np.array([30, 50, 20, 4]))
        >>> release.to_geopandas()["place"].tolist()
        ['a', 'b', 'c', 'elsewhere']
        >>> counties = release.to_geopandas("county")
        >>> counties["county"].tolist(), counties.total_bounds.tolist()
        (['west', 'east', 'elsewhere'], [0.0, 0.0, 3.0, 2.0])
        """
        from sfumato.release.geography import to_geopandas

        view = self._release._on_a_map(level)
        return to_geopandas(
            self._release, view, level=level, by=by, where=where, density=density, confidence=confidence
        )

    def to_geoparquet(
        self,
        path: str | Path,
        *,
        version: str = "1.1",
        level: str | None = None,
        by: str | Iterable[str] | None = None,
        where: Mapping[str, Any] | None = None,
        density: bool = False,
        confidence: float = 0.95,
    ) -> Path:
        """Write the same frame as GeoParquet 1.1, or 2.0 where the packages that are installed can.

        >>> import geopandas
        >>> hexagons = sf.H3(7, cover=(-74.05, 40.68, -73.9, 40.88))
        >>> release = sf.plan(sf.unbounded(hexagons), sf.histogram(), epsilon=1).publish(np.full(77, 100))
        >>> geopandas.read_parquet(release.to_geoparquet("visits.parquet")).columns.tolist()
        ['place', 'value', 'stderr', 'low', 'high', 'geometry']
        """
        from sfumato.release.geography import to_geoparquet

        frame = self.to_geopandas(level, by=by, where=where, density=density, confidence=confidence)
        return to_geoparquet(frame, path, version)

    def to_html(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        by: str | Iterable[str] | None = None,
        where: Mapping[str, Any] | None = None,
        outlines: Any = None,
        confidence: float = 0.95,
    ) -> Path:
        """Write one HTML file that opens from disk and asks no server for anything: a map, a curve or bars, with
        intervals, a slider or a choice for every other factor, a table, CSV to download, and before all that what is
        promised and what is not hidden.

        `by` and `where` choose what is shown, as for `answer`; `outlines` are drawn on maps, as for `plot`. A grid of
        more cells than a page holds is shown in blocks, and the page says so.

        >>> plan = sf.plan(sf.unbounded(sf.Line(0, 4, cells=4)), sf.histogram(), epsilon=1)
        >>> page = plan.publish(np.array([3, 0, 5, 1])).to_html("visits.html", title="Visits")
        >>> page.read_text(encoding="utf-8").count("<title>Visits</title>")
        1
        """
        from sfumato.report import to_html  # the door to pages

        return to_html(self._release, path, title=title, by=by, where=where, outlines=outlines, confidence=confidence)

    def _repr_html_(self) -> str:
        """What a notebook shows: a small picture, and what is promised."""
        from sfumato.report import small  # the door to pages

        return small(self._release)

    def statement(
        self,
        *,
        ledger: Ledger | None = None,
        audit: Audit | Sequence[Audit] | None = None,
        facts: Mapping[str, str] | None = None,
        title: str | None = None,
    ) -> Statement:
        """One page for an auditor, made from the release alone: what was published and promised, and first of all what
        is not hidden. With a `ledger`, the account's extract and what is left in it; `audit` is what `sf.audit` found.

        `facts` are what only the publisher knows, such as {"Publisher": "City of X", "Purpose": "…"}; they are marked
        as the publisher's words.

        >>> plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
        >>> print(plan.publish(np.array([3, 0, 5, 1])).statement(title="Visits by hour"))
        # Visits by hour
        <BLANKLINE>
        ## Not hidden
        ...
        """
        from sfumato.statement import statement_of_release  # the door to what is told to auditors

        return statement_of_release(self._release, ledger=ledger, audit=audit, facts=facts, title=title)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        title: str | None = None,
        confidence: float = 0.95,
        colormap: str = "magma_r",
        by: str | Iterable[str] | None = None,
        where: Mapping[str, Any] | None = None,
        outlines: Any = None,
        uncertainty: bool | None = None,
    ) -> Figure:
        """Draw a map or a curve with its uncertainty; with a path, write the picture there.

        On a product a map for each value of a factor with few values, or curves over time; `by` names what is drawn and
        what tells the panels apart, `where` what is asked, and everything else is summed over.

        Maps in degrees have their true proportions, and a scale bar where the CRS is known. `outlines` are borders or
        coasts to draw on them: a file of GeoJSON or GeoParquet, or a GeoDataFrame. Beside a single map is one of its
        standard errors, where they differ from cell to cell; `uncertainty` says whether. The scale of colours reaches
        to the largest value.
        """
        from sfumato.release.picture import plot

        return plot(
            self._release,
            path,
            title=title,
            confidence=confidence,
            colormap=colormap,
            by=by,
            where=where,
            outlines=outlines,
            uncertainty=uncertainty,
        )
