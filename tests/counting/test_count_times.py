"""Times, cycles and uneven bins: every engine puts every value in the cell that the axis puts it in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from counting_engines import dask, ibis_duckdb, in_duckdb
from numpy.typing import NDArray

from sfumato.counting import CountReport, count
from sfumato.domain import Cycle, Domain, Grid, Labels, Line, Round, Timed, Times
from sfumato.domain.durations import DAY, HOUR
from sfumato.domain.moments import EARLIEST, LATEST
from sfumato.errors import InvalidInput

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis.*"),
    pytest.mark.filterwarnings("ignore::sfumato.DataWarning"),  # most of these times are far away
]
NEW_YORK = "America/New_York"
Make = Callable[[pa.Table, Path], Any]


def parquet(table: pa.Table, folder: Path) -> str:
    pq.write_table(table, folder / "t.parquet", row_group_size=500)
    return str(folder / "t.parquet")


def csv(table: pa.Table, folder: Path) -> str:
    """Times as Python writes them, with an offset where they have a zone."""

    def written(value: Any) -> str:
        return "" if value is None else value.isoformat() if hasattr(value, "isoformat") else str(value)

    lines = [",".join(map(written, row.values())) for row in table.to_pylist()]
    (folder / "t.csv").write_text("\n".join([",".join(f'"{name}"' for name in table.column_names), *lines]) + "\n")
    return str(folder / "t.csv")


ENGINES: dict[str, Make] = {
    "pandas": lambda table, _: table.to_pandas(),
    "pandas-arrow": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, _: pl.from_arrow(table),
    "polars-lazy": lambda table, _: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "arrow": lambda table, _: table,
    "arrow-reader": lambda table, _: table.to_reader(max_chunksize=100),
    "arrow-dataset": lambda table, _: pyarrow.dataset.dataset(table),
    "duckdb": in_duckdb,
    "parquet": parquet,
    "csv": csv,
    "ibis-duckdb": ibis_duckdb,
    "ibis-polars": lambda table, _: pytest.importorskip("ibis").polars.connect().create_table("t", table),
    "dask": dask,
    "arrays": lambda table, _: {name: table.column(name) for name in table.column_names},
}
ONCE = ("arrow-reader",)

AXES: dict[str, Domain] = {
    "hours": Times("2026-01-01", "2026-01-03", every="1 h"),
    "cut short": Times("1969-12-31", "1970-01-01T00:07", every="15 min"),
    "days of new york": Times("2026-01-01", "2027-01-01", every="1 day", name="t", tz=NEW_YORK),
    "half hours on lord howe": Times("2026-03-28", "2026-04-10", every="1 day", tz="Australia/Lord_Howe"),
    "long ago": Times("0001-01-01", "9999-12-31", every="10000 days"),
    "microseconds": Times("1969-12-31T23:59:59.999990", "1970-01-01T00:00:00.000010", every="3 us"),
    **{of: Cycle(of, name="t") for of in ("hour of day", "weekday", "hour of week", "month")},
    **{f"{of} in new york": Cycle(of, name="t", tz=NEW_YORK) for of in ("hour of day", "month")},
    "hour of week on lord howe": Cycle("hour of week", name="t", tz="Australia/Lord_Howe"),
    "hour of day in fixed": Cycle("hour of day", name="t", tz="-03:30"),
}


def nights_of_change(axis: Timed) -> NDArray[np.int64]:
    """Around the hours that clocks skip, and those that they show twice."""
    zone = getattr(axis, "zone", None)
    if zone is None or not len(zone.changes):
        return np.array([], np.int64)
    near = zone.changes[np.searchsorted(zone.changes, [0, 1_700_000_000_000_000])]
    steps = np.array([-HOUR, -1, 0, 1, HOUR // 2, HOUR - 1, HOUR])
    return np.concatenate([(near[:, None] + steps).ravel(), zone.changes[:1] - 1, zone.changes[-1:]])


def ticks_for(axis: Timed) -> NDArray[np.int64]:
    """Edges and what is beside them, midnights, ends of months, nights of changed clocks, the first and last years."""
    rng = np.random.default_rng(3)
    edges = np.array([]) if isinstance(axis, Round) else axis.edges
    days = rng.integers(-30_000, 60_000, 150) * DAY
    months = np.array(
        [f"{y}-{m:02}-01" for y, m in product((1600, 1900, 1969, 2000, 2026, 2100), range(1, 13))], "M8[us]"
    )
    around = np.concatenate([edges, days, days + HOUR * 5, months.astype(np.int64)]).astype(np.int64)
    ends = np.array([EARLIEST, EARLIEST + 1, LATEST - 1, LATEST, 0, -1])
    ticks = np.concatenate([(around[:, None] + np.array([-1, 0, 1])).ravel(), ends, nights_of_change(axis)])
    return np.clip(ticks, EARLIEST + DAY, LATEST - DAY)  # text of the first and last day has no offset


def moments(ticks: NDArray[np.int64], zoned: bool) -> list[datetime]:
    epoch = datetime(1970, 1, 1, tzinfo=UTC if zoned else None)
    return [epoch + timedelta(microseconds=tick) for tick in ticks.tolist()]


KINDS = [(name, zoned) for name, domain in AXES.items() for zoned in (False, True) if domain.axes[0].takes(zoned=zoned)]  # type: ignore[attr-defined]


@pytest.mark.slow  # fourteen engines for every kind of time
@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize(("name", "zoned"), KINDS)
def test_every_engine_puts_every_time_in_the_cell_of_the_axis(
    name: str, zoned: bool, make: Make, tmp_path: Path
) -> None:
    domain = AXES[name]
    (axis,) = domain.axes
    assert isinstance(axis, Timed)
    ticks = ticks_for(axis)
    if make in (ENGINES["csv"], ENGINES["pandas"], ENGINES["ibis-duckdb"]):
        ticks = ticks[::7]
    wanted = np.bincount(axis.locate(moments(ticks, zoned)), minlength=axis.cells)
    table = pa.table({"pick up": pa.array(ticks, pa.timestamp("us", "Asia/Tokyo" if zoned else None))})
    unreadable = 0 if make is csv else None
    outside = int(axis.ticks_outside(ticks).sum())
    for engine in (None, "native"):
        counts = count(make(table, tmp_path), domain, t="pick up", engine=engine)  # type: ignore[arg-type]
        assert (counts.values == wanted).all()
        assert counts.report == CountReport(
            rows=len(ticks), without_coordinates=0, unreadable=unreadable, outside=outside
        )


FARES = Line(edges=[0, 5, 10, 20, 50, 200], name="fare")
PLACE = Grid(edges=([0, 1, 10], [-5, 0, 0.1, 7]), name="from")
CITY = PLACE * Times("2026-03-07", "2026-03-10", every="1 day", name="day", tz=NEW_YORK) * FARES
CITY = CITY * Domain((Labels("mode", ("bus", "bike", "rest"), other="rest"),))


def trips(rows: int = 700) -> pa.Table:
    """Columns with odd names; a tenth of all values are missing, and many lie on an edge or beside one."""
    rng = np.random.default_rng(11)

    def near(edges: NDArray[np.float64]) -> Any:
        beside = [np.nextafter(edges, end) for end in (-np.inf, np.inf)]
        values = rng.choice(np.concatenate([edges, *beside, [np.nan, np.inf, -np.inf, -0.0]]), rows)
        return pa.array(values, mask=rng.random(rows) < 0.1)

    day = CITY.axes[2]
    assert isinstance(day, Timed)
    ticks = rng.choice((day.edges[:, None] + np.array([-1, 0, 1])).ravel(), rows)
    times = pa.array(ticks, pa.timestamp("us", "UTC"), mask=rng.random(rows) < 0.1)
    modes = pa.array(rng.choice(["bus", "bike", "rest", "boat"], rows).tolist(), mask=rng.random(rows) < 0.1)
    columns = [near(CITY.axes[i].edges) for i in (0, 1, 3)]  # type: ignore[attr-defined]
    return pa.table([*columns[:2], times, columns[2], modes], ["lon.x", "entity", "Pick up", "by", "KIND"])


def located(table: pa.Table, domain: Domain, names: list[str]) -> NDArray[np.int64]:
    """The counts by the axes themselves, record by record."""
    rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
    tally = np.zeros(domain.shape, np.int64)
    for row in rows:
        if all(value is not None and value == value for value in row):
            tally[tuple(int(axis.locate([value])[0]) for axis, value in zip(domain.axes, row, strict=True))] += 1
    return tally


@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
def test_products_are_counted_alike_on_every_engine(make: Make, tmp_path: Path) -> None:
    table = trips()
    names = ["lon.x", "entity", "Pick up", "by", "KIND"]
    wanted = located(table, CITY, names)
    by_name = {"from_x": "lon.x", "from_y": "entity", "day": "Pick up", "fare": "by", "mode": "KIND"}
    for engine in (None, "native"):
        counts = count(make(table, tmp_path), CITY, engine=engine, **by_name)  # type: ignore[arg-type]
        assert (counts.values == wanted).all()
        assert counts.report.without_coordinates == len(table) - wanted.sum()
        again = count(make(table, tmp_path), CITY, engine=engine, columns=by_name)  # type: ignore[arg-type]
        assert (again.values == wanted).all()


def test_entities_are_bounded_on_products_as_well() -> None:
    table = trips().append_column("who", pa.array(np.arange(700) % 50))
    columns = {"from_x": "lon.x", "from_y": "entity", "day": "Pick up", "fare": "by", "mode": "KIND"}
    counts = count(table, CITY, entity="who", max_per_entity=1, **columns)
    assert counts.values.sum() == 50


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize(
    "make", [ENGINES[name] for name in ("pandas", "polars", "polars-lazy", "arrow", "duckdb", "parquet")]
)
def test_units_of_every_size_are_rounded_down(make: Make, unit: str, tmp_path: Path) -> None:
    domain = Times("1960-01-01", "1960-01-01T00:00:00.000010", every="1 us")
    if unit == "ns":
        start = -315_619_200_000_000_000
        values, wanted = start + np.array([-1, 0, 999, 1000, 1999, 9999, 10_000]), [3, 2, 0, 0, 0, 0, 0, 0, 0, 2]
    else:
        many = {"s": 1, "ms": 1000, "us": 1_000_000}[unit]
        values, wanted = -315_619_200 * many + np.array([-1, 0, 1]), [2] + [0] * 8 + [1]
        wanted = [2, 1, 0, 0, 0, 0, 0, 0, 0, 0] if unit == "us" else wanted
    table = pa.table({"t": pa.array(values, pa.timestamp(unit))})
    for engine in (None, "native"):
        assert count(make(table, tmp_path), domain, engine=engine).values.tolist() == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [ENGINES[name] for name in ENGINES if name not in ("pandas", "dask")])
def test_dates_are_times_at_midnight(make: Make, tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([-719_162, 20_453, 20_454, 20_454, None, 2_932_896], pa.date32())})
    domain = Times("2025-12-31", "2026-01-02", every="12 h")
    for engine in (None, "native"):
        counts = count(make(table, tmp_path), domain, engine=engine)  # type: ignore[arg-type]
        assert counts.values.tolist() == [2, 0, 2, 1]


def test_times_beyond_the_years_of_people_are_clamped() -> None:
    domain = Times("2026-01-01", "2026-01-03", every="1 day")
    far = pa.table({"t": pa.array([-(2**60), 2**60], pa.timestamp("s"))})
    infinite = duckdb.sql(
        "SELECT unnest(['infinity', '-infinity', '0044-03-15 (BC)', '5000000-01-01', NULL])::DATE AS t"
    )
    wide = duckdb.sql("SELECT unnest(['infinity', '-infinity', '290000-01-01', NULL])::TIMESTAMPTZ AS t")
    zoned = Times("2026-01-01", "2026-01-03", every="1 day", tz="UTC")
    for engine in (None, "native"):
        assert count(far, domain, engine=engine).values.tolist() == [1, 1]  # type: ignore[arg-type]
        assert count(infinite, domain, engine=engine).values.tolist() == [2, 2]  # type: ignore[arg-type]
        assert count(wide, zoned, engine=engine).values.tolist() == [1, 2]  # type: ignore[arg-type]


def test_arrays_are_columns() -> None:
    domain = Line(0, 2, cells=2) * Times("2026-01-01", "2026-01-03", every="1 day") * Domain((Labels("k", ("a", "b")),))
    for unit in ("D", "h", "m", "s", "ms", "us", "ns", "15m"):
        times = np.array(["2026-01-01", "2026-01-02", "NaT"], f"M8[{unit}]")
        data = {"x": np.array([0.5, 1.5, 0.5]), "t": times, "k": np.array(["a", "b", "a"]), "unused": object()}
        assert count(data, domain).values.tolist() == [[[1, 0], [0, 0]], [[0, 0], [0, 1]]]
    with pytest.raises(InvalidInput, match="Give one array a column, of one type and as long as the others"):
        count({"x": [0.5], "t": times, "k": ["a"]}, domain)
    with pytest.raises(InvalidInput, match="Column 'x' has 2 dimensions"):
        count({"x": np.zeros((1, 1)), "t": times, "k": ["a"]}, domain)
    with pytest.raises(InvalidInput, match="some values have a time zone and some have none"):
        count(
            {"t": [datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)]},
            Times("2026-01-01", "2026-01-02", every="1 h"),
        )


TEXT = """t
2026-01-01T00:00
2026-01-01 00:59:59.9999999
2026/01/01 01:00:00,5
2026-01-01T01:00Z
2026-01-01T01:00:00+01:00
2026-01-01 23:30 UTC
2026-02-30
01/02/2026
24:00

2026-01-01
"""


def test_text_is_read_as_iso_8601_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TEXT)
    path = tmp_path / "t.csv"
    rows = {"rows": 11, "without_coordinates": 1, "outside": 0}
    naive = count(path, Times("2026-01-01", "2026-01-02", every="1 h"))
    assert naive.values[:2].tolist() == [3, 1] and naive.values.sum() == 4
    assert naive.report == CountReport(unreadable=6, **rows)
    zoned = count(path, Times("2026-01-01", "2026-01-02", every="1 h", tz="UTC"))
    assert zoned.values[[0, 1, 23]].tolist() == [1, 1, 1] and zoned.values.sum() == 3
    both = count(path, Cycle("hour of day", name="t", tz="+01:00"))
    assert both.values[[0, 1, 2]].tolist() == [4, 2, 1] and both.values.sum() == 7
    for engine in ("native", "numpy"):
        assert (count(path, Cycle("hour of day", name="t", tz="+01:00"), engine=engine).values == both.values).all()


def test_files_with_times_in_several_units_are_one_table(tmp_path: Path) -> None:
    domain = Times("2026-01-01", "2026-01-03", every="1 day")
    for unit in ("ms", "ns"):
        pq.write_table(pa.table({"t": pa.array(["2026-01-02"]).cast(pa.timestamp(unit))}), tmp_path / f"{unit}.parquet")
    pq.write_table(pa.table({"t": pa.array([20_454], pa.date32())}), tmp_path / "d.parquet")
    assert count(tmp_path, domain).values.tolist() == [1, 2]
    pq.write_table(pa.table({"t": pa.array([0], pa.timestamp("us", "UTC"))}), tmp_path / "z.parquet")
    with pytest.raises(InvalidInput, match=r"axis 't' takes one type. Nothing was counted"):
        count(tmp_path, domain)


def test_too_many_edges_make_no_expression_and_are_counted_all_the_same() -> None:
    line = Line(edges=list(range(1000)))
    frame = pl.LazyFrame({"x": [0.5, 1.5, 997.5, 1e9]})
    assert count(frame, line).values[[0, 1, 997, 998]].tolist() == [1, 1, 1, 1]
    with pytest.raises(InvalidInput) as refusal:
        count(frame, line, engine="native")
    assert str(refusal.value) == (
        "engine='native' would compare every value with 999 edges of axis 'x', and an expression holds at most 512. "
        "Nothing was counted. Leave engine= out: the needed columns are then brought here, batch by batch."
    )


NO_ZONE = (
    "Column 't' does not fit axis 't': its values have no time zone, and the axis has one. Nothing was counted. Say in "
    "which zone the values are (tz_localize, replace_time_zone), or leave tz='America/New_York' out of the axis."
)
A_ZONE = (
    "Column 't' does not fit axis 't': its values have a time zone, and the axis has none. Nothing was counted. Give "
    "the axis a zone with tz=…, such as tz='UTC', or convert the values to times without one."
)


@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
def test_a_zone_that_does_not_fit_is_refused_on_every_engine(make: Make, tmp_path: Path) -> None:
    for zoned, name, message in (
        (False, "days of new york", NO_ZONE), (True, "hours", A_ZONE), (True, "weekday", A_ZONE),
    ):  # fmt: skip
        table = pa.table({"t": pa.array([0], pa.timestamp("us", "UTC" if zoned else None))})
        with pytest.raises(InvalidInput) as refusal:
            count(make(table, tmp_path), AXES[name])
        assert str(refusal.value) == message


@pytest.mark.parametrize("make", [make for name, make in ENGINES.items() if name != "csv"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_numbers_and_text_are_no_times(make: Make, kind: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"t": pa.array(["2026"]).cast(kind)})
    with pytest.raises(InvalidInput) as refusal:
        count(make(table, tmp_path), AXES["hours"])
    assert str(refusal.value).startswith("Column 't' is of type ")
    assert str(refusal.value).endswith(
        ", and axis 't' needs times. Nothing was counted. Convert the column to datetimes first (pandas.to_datetime, "
        "str.to_datetime, CAST … AS TIMESTAMP)."
    )


def test_text_without_a_time_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("t\n31/12/2026\n1/1/2027\n")
    with pytest.raises(InvalidInput, match="Column 't' has no value that is a time as axis 't' needs it"):
        count(tmp_path / "t.csv", AXES["hours"])
