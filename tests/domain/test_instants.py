"""Time in steps: edges in whole microseconds, local days where there is a zone, and a cell for every time."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.domain import Instants, Times, domain_from_spec
from sfumato.domain.durations import DAY, HOUR, duration, in_words
from sfumato.domain.moments import LATEST, from_ticks, microseconds
from sfumato.errors import InvalidInput

EVERY = {
    "hours": Times("2026-01-01", "2026-01-03", every="1 h"),
    "cut short": Times("2026-01-01", "2026-01-02T00:07", every="15 min"),
    "new york": Times("2026-01-01", "2027-01-01", every="1 day", tz="America/New_York"),
    "lord howe": Times("2026-03-01", "2026-11-01", every="1 day", tz="Australia/Lord_Howe"),
    "weeks": Times("2026-01-05", "2027-01-04", every="1 week", name="w", tz="Europe/Berlin"),
    "sao paulo": Times("2018-11-01", "2018-11-08", every="1 day", tz="America/Sao_Paulo"),
    "offset": Times("2026-01-01T00:00+01:00", "2026-01-05T00:00+01:00", every="1 day"),
    "long ago": Times("0001-01-01", "9999-12-31", every="1 week"),
    "microseconds": Times("1969-12-31T23:59:59.999990", "1970-01-01T00:00:00.000010", every="3 us"),
}


def axis_of(domain: Times) -> Instants:
    (axis,) = domain.axes
    assert isinstance(axis, Instants)
    return axis


@pytest.mark.parametrize("domain", EVERY.values(), ids=EVERY)
def test_a_time_lies_where_the_edges_say(domain: Times) -> None:
    axis = axis_of(domain)
    rng = np.random.default_rng(0)
    near = (axis.edges[:, None] + np.array([-2, -1, 0, 1])).ravel()
    ticks = np.concatenate([near, rng.integers(axis.start - DAY, axis.stop + DAY, 500)])
    wanted = np.clip(np.searchsorted(axis.edges, ticks, side="right") - 1, 0, axis.cells - 1)
    assert (axis.cells_at(ticks) == wanted).all()
    assert (axis.beyond(ticks) == ((ticks < axis.start) | (ticks >= axis.stop))).all()
    assert (np.diff(axis.edges) > 0).all()


@pytest.mark.parametrize("domain", EVERY.values(), ids=EVERY)
def test_descriptions_need_no_zones_to_be_read(domain: Times) -> None:
    """The edges are in the description: what a machine knows of zones does not move them."""
    written = json.dumps(domain.spec())
    again = domain_from_spec(json.loads(written))
    assert again == domain and type(again) is Times
    assert (repr(again), again.fingerprint) == (repr(domain), domain.fingerprint)
    assert (axis_of(again).edges == axis_of(domain).edges).all()
    assert len(written) < 600


@pytest.mark.parametrize("domain", [EVERY[name] for name in EVERY if name != "sao paulo"], ids=lambda d: d.names[0])
def test_printing_says_how_to_build_it_again(domain: Times) -> None:
    assert eval(repr(domain), {"Times": Times}) == domain


def test_days_in_new_york_have_23_to_25_hours() -> None:
    axis = axis_of(EVERY["new york"])
    real = ZoneInfo("America/New_York")
    midnights = [datetime(2026, 1, 1) + timedelta(days=i) for i in range(366)]
    assert axis.edges.tolist() == [microseconds(day.replace(tzinfo=real).astimezone(UTC)) for day in midnights]
    lengths = dict(zip([day.date() for day in midnights], np.diff(axis.edges) / HOUR, strict=False))
    assert lengths.pop(date(2026, 3, 8)) == 23
    assert lengths.pop(date(2026, 11, 1)) == 25
    assert set(lengths.values()) == {24}
    assert axis.runs == ((DAY, 66), (23 * HOUR, 1), (DAY, 237), (25 * HOUR, 1), (DAY, 60))


def test_days_on_lord_howe_differ_by_half_an_hour() -> None:
    lengths = np.diff(axis_of(EVERY["lord howe"]).edges) / HOUR
    assert sorted(set(lengths.tolist())) == [23.5, 24, 24.5]


def test_a_day_whose_midnight_is_skipped_begins_when_the_clocks_go_on() -> None:
    names = axis_of(EVERY["sao paulo"]).cell_names()
    assert names[3] == "[2018-11-04T01:00-02:00, 2018-11-05T00:00-02:00)"


def test_a_day_that_was_left_out_is_no_cell() -> None:
    apia = Times("2011-12-28", "2012-01-02", every="1 day", tz="Pacific/Apia")
    assert [name[1:11] for name in axis_of(apia).cell_names()] == [
        "2011-12-28",
        "2011-12-29",
        "2011-12-31",
        "2012-01-01",
    ]


def test_steps_below_a_day_are_elapsed_time() -> None:
    axis = axis_of(Times("2026-03-08", "2026-03-09", every="1 h", tz="America/New_York"))
    assert axis.cells == 23
    assert axis.cell_names()[2] == "[2026-03-08T03:00-04:00, 2026-03-08T04:00-04:00)"


def test_the_last_step_ends_with_the_span() -> None:
    year = axis_of(Times("2026-01-01", "2027-01-01", every="1 week"))
    assert (year.cells, year.runs) == (53, ((7 * DAY, 52), (DAY, 1)))
    assert axis_of(Times("2026-01-01", "2026-01-02", every="1 week")).runs == ((DAY, 1),)


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        (["2026-01-01T00:59:59.999999", "2026-01-01T01:00", "2026-01-01"], [0, 1, 0]),
        ([datetime(2026, 1, 2, 5), date(2026, 1, 2)], [29, 24]),
        (np.array(["2026-01-01T01", "2026-01-02"], "M8[s]"), [1, 24]),
        (np.array(["2026-01-01T00:59:59.999999999", "2026-01-01T01"], "M8[ns]"), [0, 1]),
        (np.array(["1066-10-14", "2026-01-02", "3026-01-01"], "M8[D]"), [0, 24, 47]),
        (np.array(["2026-01", "2026-02"], "M8[M]"), [0, 47]),
        (np.array([2**62, -(2**62)], "M8[s]"), [47, 0]),
        (pd.Series(["2026-01-01T05:00"]).astype("datetime64[ns]"), [5]),
        ([], []),
    ],
)
def test_times_of_every_kind_are_placed(values: object, cells: list[int]) -> None:
    assert EVERY["hours"].locate(values).tolist() == cells  # type: ignore[arg-type]


def test_instants_are_placed_wherever_they_are_told() -> None:
    midnight = datetime(2026, 3, 9, 4, tzinfo=UTC)  # in New York, the day after the change
    before = midnight - timedelta(microseconds=1)
    domain = EVERY["new york"]
    assert domain.locate([before, midnight]).tolist() == [66, 67]
    tokyo = [each.astimezone(ZoneInfo("Asia/Tokyo")) for each in (before, midnight)]
    assert domain.locate(tokyo).tolist() == [66, 67]
    assert domain.locate(pd.Series(tokyo)).tolist() == [66, 67]
    assert domain.locate(["2026-03-08T23:59:59.999999-04:00", "2026-03-09T04:00Z"]).tolist() == [66, 67]


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_finer_times_are_rounded_down_and_never_over_an_edge(nanoseconds: int) -> None:
    ticks = int(from_ticks(np.array([nanoseconds]), "ns")[0])
    assert ticks == nanoseconds // 1000
    axis = axis_of(EVERY["microseconds"])
    exact = np.searchsorted(axis.edges * 1000, nanoseconds, side="right") - 1
    assert axis.cells_at(np.array([ticks]))[0] == np.clip(exact, 0, axis.cells - 1)


@pytest.mark.parametrize("name", ["hours", "cut short", "new york", "lord howe", "microseconds"])
@pytest.mark.parametrize("delta", ["1 us", "3 us", "1 h", "61 min", "1 day", "25 h", "49 h", "10000 days"])
def test_near_is_a_gap_below_delta(name: str, delta: str) -> None:
    axis, limit = axis_of(EVERY[name]), duration(delta, "delta")
    edges = axis.edges.tolist()
    wanted = [
        (i, j)
        for i in range(axis.cells)
        for j in range(i + 1, axis.cells)
        if j == i + 1 or edges[j] - edges[i + 1] < limit
    ]
    assert [tuple(pair) for pair in axis.near(delta).tolist()] == wanted


def test_near_in_the_night_of_the_change() -> None:
    """23 hours are all that lies between Saturday and Monday then."""
    near = axis_of(EVERY["new york"]).near("23.5 h").tolist()
    assert [65, 67] in near
    assert [64, 66] not in near


def test_ranges_take_times_and_text() -> None:
    days = Times("2026-01-01", "2026-01-11", every="1 day")
    low, high = days.fractional(("2026-01-02", datetime(2026, 1, 4, 12)))
    assert (low.tolist(), high.tolist()) == ([1.0], [3.5])
    inside, touched = days.covered(("2026-01-01T01:00", "2026-01-04"))
    assert (inside.tolist(), touched.tolist()) == ([[1], [3]], [[0], [3]])
    low, _ = days.fractional(np.array([["2026-01-02", "2026-01-03"], ["2026-01-05", "2027-01-03"]], "M8[D]"))
    assert low.tolist() == [[1.0], [4.0]]
    (axis,) = days.axes
    assert axis.coordinate([date(2026, 1, 3)]).tolist() == [2.0]  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput) as refusal:
        days.fractional(("2027-01-02", "2027-01-03"))
    assert str(refusal.value) == (
        "ranges holds (2027-01-02, 2027-01-03), which lies outside the bounds (2026-01-01, 2026-01-11): what is there "
        "was not counted there. Nothing was answered. Ask inside the bounds, as (lo…, hi…), or leave the range out."
    )


def test_lengths_in_words() -> None:
    assert [in_words(duration(text, "every")) for text in ("15 min", "90 min", "24h", "14 days", "1.5 s", "7 us")] == [
        "15 min",
        "90 min",
        "1 day",
        "2 weeks",
        "1500 ms",
        "7 us",
    ]
    assert duration(timedelta(hours=2), "every") == duration(np.timedelta64(120, "m"), "every") == 2 * HOUR


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"every": "15 minutos"},
            "every='15 minutos' is not a length of time. Write '15 min', '1 h', '1 day' or '1 week', or give a "
            "timedelta.",
        ),
        (
            {"every": 5},
            "every=5 is not a length of time. Write '15 min', '1 h', '1 day' or '1 week', or give a timedelta.",
        ),
        (
            {"every": timedelta(0)},
            "every=datetime.timedelta(0) must be a whole number of microseconds, more than none and at most 10,000 "
            "years.",
        ),
        (
            {"start": "1st of May"},
            "start='1st of May' is not a time. Write it as '2026-03-01' or '2026-03-01T14:30', with an offset such as "
            "'+01:00' where it has one, or give a datetime.",
        ),
        (
            {"stop": None},
            "stop=None is not a time. Write it as '2026-03-01' or '2026-03-01T14:30', with an offset such as '+01:00' "
            "where it has one, or give a datetime.",
        ),
        ({"stop": "2025-01-01"}, "Axis 't': start='2026-01-01' is not before stop='2025-01-01'."),
        (
            {"start": "2026-01-01T06:00", "every": "1 day", "tz": "America/New_York"},
            "start='2026-01-01T06:00' is no midnight in the zone 'America/New_York', where steps of whole days begin. "
            "Give a date, or steps of less than a day.",
        ),
        (
            {"start": "2026-01-01T06:00+01:00"},
            "start='2026-01-01T06:00:00+01:00' and stop='2026-01-03T00:00:00' do not tell the same zone. Say it with "
            "tz=…, such as tz='UTC' or tz='America/New_York', or give both the same offset.",
        ),
        ({"name": ""}, "name='' is not the name of an axis. Give a string that is not empty."),
        (
            {"tz": "Mars/Olympus"},
            "tz='Mars/Olympus' is not a time zone that this machine knows. Give a name such as 'America/New_York' or "
            "'UTC', or a fixed offset such as '+01:00'. On Windows zones come with the package tzdata.",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_spans_that_cannot_be_are_refused(arguments: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"start": "2026-01-01", "stop": "2026-01-03T00:00", "every": "1 h", **arguments}
    with pytest.raises(InvalidInput) as refusal:
        Times(given.pop("start"), given.pop("stop"), **given)  # type: ignore[arg-type]
    assert str(refusal.value) == message


def test_a_zone_may_be_told_by_the_ends_themselves() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    told = Times(datetime(2026, 1, 1, tzinfo=berlin), datetime(2026, 7, 1, tzinfo=berlin), every="1 day")
    assert told == Times("2026-01-01", "2026-07-01", every="1 day", tz="Europe/Berlin")
    fixed = timezone(timedelta(hours=1))
    assert axis_of(EVERY["offset"]).tz == "+01:00"
    assert EVERY["offset"] == Times(
        datetime(2026, 1, 1, tzinfo=fixed), datetime(2026, 1, 5, tzinfo=fixed), every="1 day"
    )


@pytest.mark.parametrize(
    ("domain", "values", "message"),
    [
        (
            "hours",
            [datetime(2026, 1, 1, tzinfo=UTC)],
            "Axis 't': its values have a time zone, and the axis has none. Nothing was counted. Give the axis a zone "
            "with tz=…, such as tz='UTC', or convert the values to times without one.",
        ),
        (
            "new york",
            [datetime(2026, 1, 1)],
            "Axis 't': its values have no time zone, and the axis has one. Nothing was counted. Say in which zone the "
            "values are (tz_localize, replace_time_zone), or leave tz='America/New_York' out of the axis.",
        ),
        (
            "hours",
            [datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)],
            "Axis 't': some values have a time zone and some have none. Nothing was counted. Convert them to one kind "
            "first.",
        ),
        (
            "hours",
            ["secret"],
            "Axis 't': some values are no times. Nothing was counted. Give datetimes, or text such as "
            "'2026-03-01T14:30'.",
        ),
        (
            "hours",
            np.array([1_767_225_600_000_000]),
            "Axis 't': values of type int64 are no times. Nothing was counted. Give datetimes, or text such as "
            "'2026-03-01T14:30'.",
        ),
        *[
            (
                "hours",
                missing,
                "Axis 't': some values are missing, and nothing has no place on the axis. Nothing was counted. Remove "
                "them first; sf.count leaves them out by itself.",
            )
            for missing in (np.array(["NaT"], "M8[us]"), [None], [pd.NaT])
        ],
    ],
)
def test_values_that_are_no_times_are_refused_without_being_shown(domain: str, values: object, message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        EVERY[domain].locate(values)  # type: ignore[arg-type]
    assert str(refusal.value) == message


GOOD = {"kind": "times", "name": "t", "start": 0, "steps": [[5, 2]], "tz": None}


@pytest.mark.parametrize(
    "spec",
    [
        {**GOOD, "steps": []},
        {**GOOD, "steps": [[0, 2]]},
        {**GOOD, "steps": [[-5, 2]]},
        {**GOOD, "steps": [[5, 1.5]]},
        {**GOOD, "steps": [[5]]},
        {**GOOD, "steps": [[5, True]]},
        {**GOOD, "steps": "55"},
        {**GOOD, "steps": [[10**30, 10**30]]},
        {**GOOD, "steps": [[i + 1, 1] for i in range(70_000)]},
        {**GOOD, "start": LATEST},
        {**GOOD, "start": 0.5},
        {**GOOD, "start": "0"},
        {**GOOD, "tz": "Mars/Olympus"},
        {**GOOD, "tz": "../../../etc/passwd"},
        {**GOOD, "tz": 5},
        {**GOOD, "name": ""},
        {"kind": "times"},
        {"kind": ["times"]},
        {"kind": "cycle", "name": "t", "of": "fortnight", "tz": None},
        {"kind": "cycle", "name": "t", "of": ["weekday"], "tz": None},
        {"kind": "bins", "name": "t", "edges": [1, 0]},
        {"kind": "bins", "name": "t", "edges": "01"},
        {"kind": "bins", "name": "t", "edges": [float("nan"), 1]},
        {"kind": "bins", "name": "t", "edges": list(range(1_100_000))},
    ],
    ids=lambda spec: str(spec)[:70],
)
def test_hostile_descriptions_are_refused(spec: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        domain_from_spec({"axes": [spec]})


def test_very_many_steps_cost_nothing_until_they_are_asked_for() -> None:
    domain = Times("2000-01-01", "2100-01-01", every="1 us")
    assert domain.size == 3_155_760_000_000_000
    assert domain.locate(["2000-01-01T00:00:00.000007"]).tolist() == [7]
    assert domain_from_spec(domain.spec()) == domain
