"""Records for a cluster, as tables of Arrow: places, times and products, beside what `test_same_cell.py` has.

A case is a table, a domain and the keywords of `sf.count`; the column of the entity is ``SPACED``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf

DOTTED, TWIN, OTHER_TWIN, SPACED = "geo.lon", "Lat", "lat", "who is it"


@dataclass(frozen=True)
class Case:
    """Records, and how they are counted."""

    table: pa.Table
    domain: sf.Domain
    keywords: dict[str, Any] = field(default_factory=dict)


def persons(rows: int, seed: int = 0) -> Any:
    """Whose the records are: some have one, some have hundreds, some belong to nobody."""
    rng = np.random.default_rng(seed)
    who = rng.zipf(1.4, rows) % 97
    return pa.array([None if i % 50 == 7 else f"person {w}" for i, w in enumerate(who.tolist())])


def doubles() -> Case:
    """Edges, their neighbours, rounded coordinates, infinities, -0.0, NaN and null."""
    grid = sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(60, 45))
    rng, columns = np.random.default_rng(5), []
    for axis in grid.intervals:
        near = [np.nextafter(axis.edges, way) for way in (-np.inf, np.inf)]
        rounded = [np.round(rng.uniform(axis.low, axis.high, 1000), places) for places in (1, 2, 3)]
        odd = np.array([np.inf, -np.inf, 0.0, -0.0, 1e300, -1e300, np.nan])
        columns.append(rng.choice(np.concatenate([axis.edges, *near, *rounded, odd]), 3000))
    lon = pa.array(columns[0], mask=rng.random(3000) < 0.01)
    table = pa.table(
        [lon, pa.array(columns[1]), pa.array(columns[0]), persons(3000)], [DOTTED, TWIN, OTHER_TWIN, SPACED]
    )
    return Case(table, grid, {"x": DOTTED, "y": TWIN})


def labels() -> Case:
    """Text that SQL might take for something else, whole numbers of 64 bits, truth values."""
    names = ("plain", "", " padded ", "it's", 'say "so"', "back`tick", "ä", "A\u0308", "%_\\", "NULL", "rest")
    rng = np.random.default_rng(7)
    numbers = (-(1 << 63), -1, 0, 7, (1 << 63) - 1, 3)
    at, other, flag = (rng.integers(0, n, 900) for n in (len(names) + 2, len(numbers) + 1, 3))
    table = pa.table(
        {
            "Kind": pa.array([[*names, "PLAIN", None][i] for i in at.tolist()]),
            "number": pa.array([[*numbers, None][i] for i in other.tolist()], pa.int64()),
            "flag": pa.array([[True, False, None][i] for i in flag.tolist()]),
            SPACED: persons(900),
        }
    )
    kinds = sf.Domain((sf.Labels("kind", names, other="rest"), sf.Labels("number", numbers)))
    return Case(table, kinds * sf.Categories([False, True], name="flag"), {"kind": "Kind"})


def instants() -> Case:
    """Times that tell a zone, about the nights when clocks are changed, and far away."""
    night = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
    times = [night + timedelta(minutes=7 * i) for i in range(2000)]
    times += [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), None]
    column = pa.array(times, pa.timestamp("us", "UTC"))
    domain = sf.Times("2026-03-28", "2026-04-05", every="1h", name="t", tz="Europe/Berlin")
    domain = domain * sf.Cycle("hour of day", name="h", tz="America/New_York")
    return Case(pa.table([column, persons(len(times))], ["when", SPACED]), domain, {"t": "when", "h": "when"})


def clocks() -> Case:
    """Times that tell none, within an hour that some zone does not have, and before 1900."""
    night = datetime(2026, 3, 29, 1, 59, 59, 999_999)
    times = [night + timedelta(seconds=417 * i) for i in range(900)]
    times += [datetime(1, 1, 1), datetime(1883, 11, 18, 12, 3, 58), datetime(9999, 12, 31), None]
    days = [date(2026, 1, 31) + timedelta(days=i % 400) for i in range(len(times) - 1)] + [None]
    table = pa.table(
        [pa.array(times, pa.timestamp("us")), pa.array(days), persons(len(times))], ["when", "day", SPACED]
    )
    domain = sf.Times("2026-03-28", "2026-04-05", every="15min", name="t") * sf.Cycle("month", name="m")
    return Case(table, domain, {"t": "when", "m": "day"})


def ground() -> Case:
    """Longitudes and latitudes of a grid on the ground: elsewhere is no cell."""
    rng = np.random.default_rng(11)
    lon, lat = rng.normal(-74, 0.5, 3000), rng.normal(40.7, 0.3, 3000)
    lon[:9], lat[9:12] = [np.nan, np.inf, 286.0, -434.0, 180, -180, -74.3, -73.7, 0], [np.nan, np.inf, 90]
    grid = sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(40, 30), crs="EPSG:4326")
    return Case(pa.table([lon, lat, persons(3000)], ["lon", "lat", SPACED]), grid, {"lon": "lon", "lat": "lat"})


def hexagons() -> Case:
    """Places on hexagons, and hours: a product."""
    rng = np.random.default_rng(13)
    lon, lat = rng.normal(-73.97, 0.08, 2000), rng.normal(40.78, 0.08, 2000)
    lon[:3] = [np.nan, np.inf, 300]
    domain = sf.H3(7, cover=(-74.05, 40.68, -73.9, 40.88)) * sf.Line(0, 24, cells=6, name="hour")
    return Case(pa.table([lon, lat, rng.random(2000) * 24, persons(2000)], ["lon", "lat", "hour", SPACED]), domain)


def regions() -> Case:
    """Places on regions with holes, parts and gaps, corners among them."""
    from maps import frame, hard, shapely

    shapes = hard()
    rng = np.random.default_rng(17)
    corners = np.concatenate([shapely.get_coordinates(shape) for shape in shapes])
    places = np.concatenate([rng.random((2000, 2)) * [1.6, 1.1], corners, [[np.nan, 0.5], [360.5, 0.5]]])
    domain = sf.Regions(frame(shapes), id="id")
    return Case(pa.table([*places.T, persons(len(places))], ["lon", "lat", SPACED]), domain)


CASES: dict[str, Callable[[], Case]] = {
    make.__name__: make for make in (doubles, labels, instants, clocks, ground, hexagons, regions)
}
