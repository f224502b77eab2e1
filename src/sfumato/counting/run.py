"""`count`: records of any size, on any engine, to counts on a domain."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, Literal, Protocol

import numpy as np

from sfumato.counting.batches import Batches, count_batches
from sfumato.counting.choice import check_keywords, choose_columns, ground_of, place_of, told_of_places
from sfumato.counting.counts import Counts
from sfumato.counting.frames import is_native
from sfumato.counting.inputs import Database, is_files, open_view
from sfumato.counting.keyed import Keyed
from sfumato.counting.native import count_native, is_dear, refuse_dear
from sfumato.counting.person_cells import PersonCells
from sfumato.counting.points import is_geographic, unfolded
from sfumato.counting.progress import Progress, advancing
from sfumato.counting.spark import is_spark
from sfumato.counting.spark_count import count_spark
from sfumato.counting.summed import person_of, summed_by
from sfumato.counting.tally import in_other_box
from sfumato.domain import Domain
from sfumato.errors import InvalidInput, PolicyMismatch
from sfumato.exact import positive_int
from sfumato.linear.tables import Tables
from sfumato.noise import Source, SystemSource
from sfumato.noise.source import require
from sfumato.values import People, Values

Engine = Literal["numpy", "native"]


class AllowsDropping(Protocol):
    """What counting asks of a policy: whether its border cells are all joined to ⊥."""

    @property
    def allows_dropping(self) -> bool:
        """Whether a record may vanish at the border without the policy noticing."""


class AsksTables(Protocol):
    """What counting asks of a workload: which axes it asks about, part by part."""

    def check(self, domain: Domain) -> None:
        """Refuse a domain on which it makes no sense."""

    def kept(self, domain: Domain) -> tuple[tuple[int, ...], ...] | None:
        """The positions of the axes that each part asks about; None where it asks for cells."""


def count(
    data: Any,
    domain: Domain,
    *,
    x: str | None = None,
    y: str | None = None,
    z: str | None = None,
    columns: Mapping[str, Any] | None = None,
    entity: str | None = None,
    max_per_entity: int | None = None,
    outside: Literal["clamp", "drop"] = "clamp",
    policy: AllowsDropping | None = None,
    tables: AsksTables | None = None,
    values: Values | None = None,
    engine: Engine | None = None,
    progress: Progress = None,
    source: Source | None = None,
    **axes: str,
) -> Counts:
    """Count the records of ``data`` in the cells of ``domain``. The result is private; give it to ``plan.publish``.

    ``data`` is a path to Parquet or CSV files (or a glob, a directory, a list), a pandas, Polars, Dask or PySpark frame
    (classic, Connect, ``pyspark.pandas``), an Arrow table, stream, dataset or scanner, a DuckDB relation, or an Ibis
    table. Columns are found by their names as they are written, in each file by itself; of CSV files the entity is the
    text that is written (``7``, ``007`` and ``7.0`` are three), and a coordinate that cannot be read is no record. A
    folder named ``column=value`` gives a column to the Parquet files in it that have none of that name, and never
    replaces one. A path that exists is that path; patterns and folders leave out what begins with a dot or an
    underscore. A dict of arrays will do as well.

    *Columns.* One keyword an axis, by the axis's name: ``x="lon", y="lat", t="pickup", mode="kind"``; by default a
    column has its axis's name. ``columns={"axis": "column"}`` takes any name, also those that are keywords here or no
    names of Python's. Where the domain has no axis of the name, ``x``, ``y`` and ``z`` stand for its first three axes.

    *Places* on regions, hexagons and grids with a CRS are two columns, ``lon=`` and ``lat=`` (WGS84) or ``x=`` and
    ``y=`` (of the domain's CRS), or points in one, ``geometry=``, whose CRS is known and transformed to the
    domain's where it is another: of a GeoDataFrame, GeoParquet, Arrow or DuckDB. ``columns={"place": ("lon", "lat")}``
    says the same of regions and hexagons. By default they are the points of a GeoDataFrame, and the columns ``lon`` and
    ``lat`` of anything else (of a grid those that its axes are called). On hexagons ``h3=`` names a column of cells, of
    the domain's resolution or finer ones, as text or whole numbers; a record of a coarser one, or of what is no cell,
    has no place (of several places, ``columns={"origin": {"h3": "from"}}``). What lies in no region or hexagon is
    counted elsewhere; what lies beyond the bounds of a grid with a CRS is left out, and ``counts.report.outside`` says
    how many that were.

    *Times* are dates and datetimes, of files of text also ISO 8601. A column that tells a zone goes with an axis that
    has one, and one that tells none with an axis that has none; anything else is refused, since it would be a guess. A
    cycle with a zone takes both: times without one are what its clocks show.

    *Missing coordinates.* A row with a null or NaN coordinate is no record. How many there were is in
    ``counts.report``, for the operator's eyes.

    *Gross errors.* When more than half of the rows have no coordinates, or more than half of the records lie outside,
    a `sf.DataWarning` says so to whoever runs this. It stops nothing: whether a release happens must not depend on
    the data, unless a person at the terminal decides it (``sfumato check``, ``counts.report.gross()``). Bounds that
    are chosen anew after such a look are a choice by private data.

    *Outside.* Records beyond the bounds are clamped to the box, infinite ones too: clamping never lengthens a
    move. ``outside="drop"`` leaves them out instead and needs a ``policy`` whose border cells are all joined
    to ⊥: elsewhere a move across the border would change the exact total, which such a policy makes public.

    *Entities.* With ``entity`` (a column) and ``max_per_entity=m``, each entity keeps at most m records, each
    set of m equally likely, whatever they say and whichever engine holds them; see `sfumato.counting.keyed`. Rows whose
    entity is null are no records, like those without coordinates: nobody knows whose share they would use up, and they
    could displace each other. Without an entity a release speaks of one record.

    *Tables.* Of a product with more cells than can be held, ``tables=sf.marginals(2)`` counts the tables that are asked
    for, everything else summed over, in one pass and without the product. Give the plan's own workload. A record has
    the same cell as ever, and the bound on what an entity contributes holds for all tables together.

    *Values.* With ``values=sf.amounts("fare", clip=(0, 100), step=0.01)`` the values of a column are added up in the
    place of records, as whole numbers of steps: cut to the bounds, rounded to the step. Which column it is may be said
    with ``columns={"fare": "total_amount"}``; a null or NaN there is no record. ``counts.values`` are in steps.
    With ``values=sf.people("user", cells=m)`` distinct people are counted, each once a cell and in at most m cells,
    chosen by lot (`sfumato.counting.person_cells`).

    ``engine="numpy"`` brings the needed columns here batch by batch, in memory that does not grow with the
    data; ``"native"`` runs one expression and a group-by in the engine of the frame. Both give the same
    counts. By default lazy frames (Polars, PySpark) stay where they are, and the rest is streamed; times of Dask
    and Ibis come here first. Records of Spark never do: ``"numpy"``, persons, places and tables run on its workers,
    which then need this package; a failing job is told in our words, and Spark's logs are silent meanwhile.
    ``progress`` is True for a bar on standard error, or a function of (rows done, rows in all). ``source`` replaces the
    operating system's randomness in the choice by entity, in tests only: whoever knows the seed knows the choice.

    >>> with open("visits.csv", "w") as file:
    ...     _ = file.write("x,y\\n0.5,0.5\\n0.6,0.4\\n3.5,1.0\\n")
    >>> sf.count("visits.csv", sf.Grid(bounds=(0, 0, 4, 4), shape=(2, 2))).values.tolist()  # private
    [[2, 0], [1, 0]]
    """
    own = {
        "x": False, "y": False, "z": False, "columns": columns, "entity": entity, "max_per_entity": max_per_entity,
        "outside": None if outside == "clamp" else outside, "policy": policy, "tables": tables, "values": values,
        "engine": engine, "progress": progress, "source": source,
    }  # fmt: skip
    summed = summed_by(domain, values)
    read = domain if summed is None else summed.read  # what records are placed in
    columns, axes = told_of_places(read, columns, axes)
    check_keywords(read, axes, {name: value not in (None, False) for name, value in own.items()}, columns)
    drop = _drops(outside, policy)
    entity, max_per_entity = person_of(values, entity, max_per_entity)
    limit = _limit(entity, max_per_entity)
    if engine not in (None, "numpy", "native"):
        raise InvalidInput(
            f"engine={engine!r} is unknown. Use 'numpy' or 'native', or leave it out. Nothing was counted."
        )
    if engine == "native" and entity is not None:
        raise InvalidInput(
            "engine='native' cannot choose records by entity: no expression for it is common to all engines. "
            "Nothing was counted. Use engine='numpy', or leave it out."
        )
    if engine == "native":
        refuse_dear(read)
    layout = None if tables is None else _layout(tables, domain, engine)
    randomness = SystemSource() if source is None else require(source)
    choosing = PersonCells if isinstance(values, People) else Keyed
    choice = None if limit is None else choosing.drawn(limit, randomness)
    data, columns, transformed = _unfolded(data, read, columns, axes, by_two=x is not None or y is not None)
    chosen = choose_columns(read, (x, y, z), columns, entity, axes)
    with closing(Database()) as database:
        view = open_view(data, chosen.fields(read), database)
        if engine == "native" and not is_native(view.frame):
            raise InvalidInput(
                "engine='native' on Ibis is for DuckDB and Polars: how other backends calculate is not tested. Nothing "
                "was counted. Leave engine= out: the needed columns are then brought here, batch by batch."
            )
        stays = layout is None and entity is None and _stays(view.frame, read)
        if is_spark(view.frame):
            with advancing(progress, None) as advance:
                tally, report = count_spark(
                    view, domain, drop=drop, choice=choice, tables=layout, summed=summed, engine=engine
                )
                advance(report.rows or 0)
        elif engine == "native" or (engine is None and stays):
            tally, report = count_native(view, read, drop=drop, summed=summed)
        else:
            stream = Batches(view, read, database, entity=entity)
            with advancing(progress, stream.rows if is_files(data) else None) as advance:
                tally, report = count_batches(
                    stream, drop=drop, choice=choice, advance=advance, tables=layout, summed=summed
                )
    report = replace(report, transformed=transformed or report.transformed)
    numbers = None
    if summed is not None:
        tally, numbers = np.split(tally, 2)
    if layout is None:
        report = replace(report, in_other_box=None if summed else in_other_box(tally, domain))
        tally = tally.reshape(domain.shape)
        numbers = None if numbers is None else numbers.reshape(domain.shape)
    report.warn()
    chance = limit is None or source is None or source.private
    return Counts(
        tally, domain, limit, report, dropped=drop, private=chance, tables=layout, counted=values, numbers=numbers
    )


def _layout(tables: AsksTables, domain: Domain, engine: Engine | None) -> Tables:
    """The tables that hold all that is asked."""
    if not hasattr(tables, "kept"):
        raise InvalidInput(
            f"tables={type(tables).__name__} is not a workload. Nothing was counted. Give what the plan is made for, "
            "such as sf.marginals(2)."
        )
    tables.check(domain)
    kept = tables.kept(domain)
    if kept is None:
        raise InvalidInput(
            "tables asks for queries on single cells, which are no tables of some factors. Nothing was counted. Leave "
            "tables= out, or give sf.marginals(…)."
        )
    if engine == "native":
        raise InvalidInput(
            "engine='native' counts cells, and tables=… are counted here, batch by batch. Nothing was counted. Leave "
            "engine= out."
        )
    return Tables.holding(domain.shape, kept)


def _unfolded(
    data: Any, domain: Domain, columns: Mapping[str, Any] | None, axes: dict[str, str], *, by_two: bool
) -> tuple[Any, Mapping[str, Any] | None, str | None]:
    """A GeoDataFrame with the places of its points as two columns, in the CRS of the domain; and how they were
    transformed, where they were.
    """
    place, ground = place_of(domain), ground_of(domain)
    if not is_geographic(data) or by_two or {"lon", "lat", "h3"} & {*axes}:
        return data, columns, None
    if place is not None and place.name not in (columns or {}):
        frame, pair, how = unfolded(data, axes.pop("geometry", None), place.crs)
        return frame, {**(columns or {}), place.name: pair}, how
    if place is None and ground is not None and not {axis.name for axis in ground} & {*axes, *(columns or {})}:
        frame, pair, how = unfolded(data, axes.pop("geometry", None), ground[0].crs)
        return frame, {**(columns or {}), ground[0].name: pair[0], ground[1].name: pair[1]}, how
    return data, columns, None


def _stays(frame: Any, domain: Domain) -> bool:
    """Whether the frame is lazy and of an engine that had better count by itself."""
    import narwhals as nw

    return (
        isinstance(frame, nw.LazyFrame)
        and not frame.implementation.is_duckdb()
        and is_native(frame)
        and not is_dear(domain)
    )


def _limit(entity: str | None, max_per_entity: int | None) -> int | None:
    if (entity is None) != (max_per_entity is None):
        given, absent = ("entity", "max_per_entity") if max_per_entity is None else ("max_per_entity", "entity")
        raise InvalidInput(
            f"{given} is given without {absent}. Nothing was counted. Give both to bound what one entity contributes, "
            "or neither to protect single records."
        )
    return None if max_per_entity is None else positive_int(max_per_entity, "max_per_entity")


def _drops(outside: str, policy: AllowsDropping | None) -> bool:
    if outside not in ("clamp", "drop"):
        raise InvalidInput(f"outside={outside!r} is unknown. Use 'clamp' or 'drop'. Nothing was counted.")
    if outside == "drop" and (policy is None or not policy.allows_dropping):
        received = "no policy was given" if policy is None else "the policy given has border cells that are not"
        raise PolicyMismatch(
            "outside='drop' is possible only under a policy whose border cells are all joined to ⊥, and "
            f"{received}: a record that moves across the border would change the exact total, which is public there. "
            "Nothing was counted. Use outside='clamp', or pass such a policy."
        )
    return outside == "drop"
