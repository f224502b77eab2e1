"""What the operator is told of gross errors: in shares, never in values, and without stopping anything."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.counting import CountReport, count_points

pytestmark = pytest.mark.filterwarnings("error::sfumato.DataWarning")  # here they are asserted, one by one
NEW_YORK = (-74.3, 40.5, -73.7, 40.95)
RNG = np.random.default_rng(11)
LON, LAT = RNG.normal(-74, 0.02, 400), RNG.normal(40.72, 0.02, 400)


def grid(bounds: tuple[float, ...] = NEW_YORK, cells: int = 64) -> sf.Grid:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.DeclarationWarning)
        return sf.Grid(bounds=bounds, shape=(cells,) * (len(bounds) // 2))


DISASTERS = {
    "swapped": (grid(), {"x": LAT, "y": LON}, "All (100 %) of the records lie outside the bounds"),
    "feet": (grid(), {"x": LON * 288_000, "y": LAT * 364_000}, "All (100 %) of the records lie outside the bounds"),
    "one axis in feet": (grid(), {"x": LON, "y": LAT * 364_000}, "All (100 %) of the records lie outside"),
    "bounds turned": (
        grid((-74.3, -73.7, 40.5, 40.95)),
        {"x": LON, "y": LAT},
        "All (100 %) of the records lie in the small box that the bounds describe when read as (xmin, ",
    ),
    "bounds turned, feet": (
        grid((583_000, 609_000, 4_484_000, 4_534_000)),
        {"x": RNG.uniform(583_000, 609_000, 400), "y": RNG.uniform(4_484_000, 4_534_000, 400)},
        "of the records lie in the small box",
    ),
    "wrong column": (
        grid(),
        {"x": np.where(LON > -74.005, np.nan, LON), "y": LAT},
        "have no coordinates (null or NaN)",
    ),
}
FRAMES = [pa.table, pd.DataFrame, pl.DataFrame, pl.LazyFrame]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda f: f"{f.__module__.split('.')[0]}.{f.__name__}")
@pytest.mark.parametrize("name", DISASTERS)
def test_a_disaster_is_told_on_every_engine_without_a_value_and_stops_nothing(name, frame):
    domain, data, words = DISASTERS[name]
    with pytest.warns(sf.DataWarning) as told:
        counts = sf.count(frame(data), domain)
    text = " ".join(str(one.message) for one in told)
    assert words in text and "Nothing was drawn or recorded." in text
    assert all(one.filename == __file__ for one in told)
    for column in data.values():
        assert not any(f"{value:.4f}" in text for value in column[:20])
    assert counts.values.sum() == counts.report.rows - counts.report.without_coordinates
    assert repr(counts) == f"Counts({domain!r})"  # the report stays out of what is printed


@pytest.mark.parametrize("frame", FRAMES, ids=lambda f: f"{f.__module__.split('.')[0]}.{f.__name__}")
def test_good_data_are_not_warned_of(frame):
    counts = sf.count(frame({"x": LON, "y": LAT}), grid())
    assert counts.report.gross() == ()
    assert set(counts.report.shares) == {"without coordinates", "outside"}


def test_nothing_is_said_of_no_records():
    empty = {"x": np.zeros(0), "y": np.zeros(0)}
    assert sf.count(pa.table(empty), grid()).report.gross() == ()
    assert count_points(np.zeros((0, 2)), grid((0, 1, 10, 20))).report.gross() == ()


def test_a_country_in_the_other_order_is_found_by_its_data():
    """Too large for a doubt about the bounds alone; 9 % of the cells hold all records."""
    domain = sf.Grid(bounds=(-125, -66, 24, 50), shape=(50, 50))
    with pytest.warns(sf.DataWarning, match="read as .xmin, xmax, ymin, ymax."):
        sf.count(pa.table({"x": RNG.uniform(-125, -66, 500), "y": RNG.uniform(24, 50, 500)}), domain)
    everywhere = pa.table({"x": RNG.uniform(-125, 24, 500), "y": RNG.uniform(-66, 50, 500)})
    assert sf.count(everywhere, domain).report.gross() == ()


def test_points_given_as_arrays_are_looked_at_too():
    plan = sf.plan(sf.bounded(grid(cells=4)), sf.histogram(), epsilon=1)
    with pytest.warns(sf.DataWarning, match="All .100 %. of the records lie outside the bounds"):
        plan.publish(points=np.stack([LAT, LON], axis=-1))
    plan.publish(points=np.stack([LON, LAT], axis=-1))
    assert count_points((["a", "b"],), sf.Categories(["a", "b"])).report == CountReport(rows=2)


def test_people_that_nobody_names_are_told():
    data = pa.table({"x": LON, "y": LAT, "who": [None] * 300 + list(range(100))})
    with pytest.warns(sf.DataWarning, match=r"75.0 % of the rows have no entity \(null\). Is it the right column\?"):
        sf.count(data, grid(), entity="who", max_per_entity=1)


def test_the_shares_are_exact_and_the_limit_is_the_callers():
    report = CountReport(rows=100, without_coordinates=20, outside=8, unreadable_time=10, in_no_step=30, without_time=0)
    assert report.records == 40
    assert report.shares == {
        "without time": 0,
        "unreadable time": Fraction(1, 10),
        "in no step": Fraction(3, 10),
        "without coordinates": Fraction(1, 5),
        "outside": Fraction(1, 5),
    }
    assert report.gross() == ()
    assert [line.split(" ", 2)[0] for line in report.gross(limit=0.2)] == ["30.0"]  # above, not at
    assert len(report.gross(limit=0)) == 4
    assert report.gross(limit=0.25) == (
        "30.0 % of the rows lie in no step. Are the first step, the zone and the format right?",
    )
    odd, far = CountReport(rows=9, unreadable=8, outside=1).gross()
    assert odd == "88.9 % of the rows have coordinates that cannot be read. Is it the right column?"
    assert far.startswith("All (100 %) of the records lie outside the bounds or are none of the labels. Are the")
    assert CountReport(rows=2, outside=1).gross() == ()  # half is not more than half
    assert CountReport(rows=10**6, outside=10**6 - 1).gross()[0].startswith("99.9 %")
    with pytest.raises(sf.InvalidInput, match="limit=50 must be a share from 0 to 1"):
        report.gross(limit=50)


def test_nothing_of_it_enters_a_release(tmp_path):
    good = sf.count(pa.table({"x": LON, "y": LAT}), grid(cells=4))
    with pytest.warns(sf.DataWarning):
        bad = sf.count(pa.table({"x": LAT, "y": LON}), grid(cells=4))
    plan = sf.plan(sf.bounded(grid(cells=4)), sf.histogram(), epsilon=1)
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=2)
    seen = []
    for name, counts in (("good", good), ("bad", bad)):
        path = plan.publish(counts, ledger=ledger).save(tmp_path / f"{name}.sfumato")
        described = pa.parquet.read_schema(path).metadata
        seen.append(sorted(described))
        assert not any(word in b" ".join(described.values()) for word in (b"outside", b"gross", b"share"))
    assert seen[0] == seen[1]
    assert ledger.spent == 2


SWAPPED = "'start_lat' is read as x, the longitude, and 'start_lng' as y, the latitude: by their names they are swapped"
ON_THE_GROUND = sf.Grid(bounds=(40.5, -74.3, 40.95, -73.7), cell="5 km")  # latitude first, as the columns


@pytest.mark.parametrize("how", [{"x": "start_lat", "y": "start_lng"}, {"lon": "start_lat", "lat": "start_lng"}])
def test_latitude_and_longitude_swapped_in_columns_and_bounds_alike_are_told_by_their_names(how):
    rows = {"start_lat": LAT, "start_lng": LON}
    with pytest.warns(sf.DeclarationWarning, match=SWAPPED) as told:
        counts = sf.count(rows, ON_THE_GROUND, **how)
    assert counts.values.sum() == 400 and told[0].filename == __file__
    assert "Give lon='start_lng', lat='start_lat', and bounds=(lon0, lat0, lon1, lat1)." in str(told[0].message)


@pytest.mark.filterwarnings("error::sfumato.DeclarationWarning")
@pytest.mark.parametrize("names", [("start_lng", "start_lat"), ("flat", "along"), ("plateau", "longest")])
def test_other_names_of_columns_are_nobodys_business(names):
    across, up = names
    domain = sf.Grid(bounds=NEW_YORK, cell="5 km")
    assert sf.count({across: LON, up: LAT}, domain, x=across, y=up).values.sum() == 400
