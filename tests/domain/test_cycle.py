"""Cycles: what clocks show, where zones change them, and which cells hold times that are near each other."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.domain import Cycle, Domain, Round
from sfumato.domain.cycle import CYCLES
from sfumato.domain.moments import microseconds
from sfumato.domain.near_cycle import near_pairs
from sfumato.domain.zones import Zone, zone
from sfumato.errors import InvalidInput

MINUTE = 60_000_000
HOURS = 60 * MINUTE


def cell(of: str, at: datetime) -> int:
    """What a calendar says."""
    hour, day = at.hour, at.weekday()
    return {"hour of day": hour, "weekday": day, "hour of week": 24 * day + hour, "month": at.month - 1}[of]


def axis(of: str, tz: str | None = None) -> Round:
    return Round("t", of, tz)


@pytest.mark.parametrize("of", CYCLES)
@given(st.datetimes())
def test_a_reading_of_a_clock_lies_where_the_calendar_says(of: str, at: datetime) -> None:
    assert axis(of).locate([at]).tolist() == [cell(of, at)]
    assert axis(of).locate(np.array([at], "M8[us]")).tolist() == [cell(of, at)]


@pytest.mark.parametrize("tz", ["America/New_York", "Australia/Lord_Howe", "UTC", "+05:45"])
@pytest.mark.parametrize("of", CYCLES)
@given(at=st.datetimes(datetime(1901, 1, 1), datetime(2099, 1, 1)))
def test_an_instant_lies_where_the_zones_clocks_say(of: str, tz: str, at: datetime) -> None:
    instant = at.replace(tzinfo=UTC)
    here = timedelta(hours=5, minutes=45)
    local = (at + here) if tz == "+05:45" else instant.astimezone(ZoneInfo(tz)).replace(tzinfo=None)
    assert axis(of, tz).locate([instant]).tolist() == [cell(of, local)]
    assert axis(of, tz).locate([instant.astimezone(ZoneInfo("Asia/Tokyo"))]).tolist() == [cell(of, local)]
    assert axis(of, tz).locate([at]).tolist() == [cell(of, at)]  # a reading is one already


def test_the_night_of_the_change() -> None:
    """A quarter to two and 29 minutes make fourteen past three."""
    hours = axis("hour of day", "America/New_York")
    begin = datetime(2026, 3, 8, 6, 45, tzinfo=UTC)
    assert hours.locate([begin, begin + timedelta(minutes=29)]).tolist() == [1, 3]
    assert [1, 3] in hours.near("29 min").tolist()
    assert [1, 3] not in axis("hour of day").near("29 min").tolist()


def brute(of: str, table: Zone | None, delta: int, begin: int, minutes: int) -> set[tuple[int, int]]:
    """All pairs of cells of whole minutes at most delta minutes apart.

    Cells and changes begin at whole minutes, so instants less than delta apart lie in two cells exactly when some
    whole minutes at most delta apart do: the first instant may lie as near to the end of its minute as it likes.
    """
    instants = begin + np.arange(minutes) * MINUTE
    clock = instants if table is None else table.local(instants)
    turn = CYCLES[of][0]
    cells = turn.number(clock) % turn.cells
    near = np.zeros((turn.cells, turn.cells), bool)
    for apart in range(1, delta + 1):
        here, there = cells[:-apart], cells[apart:]
        other = here != there
        near[here[other], there[other]] = True
    return listed(np.argwhere(np.triu(near | near.T)))


def listed(pairs: np.ndarray) -> set[tuple[int, int]]:
    return {tuple(pair) for pair in pairs.tolist()}


@pytest.mark.parametrize("of", CYCLES)
@pytest.mark.parametrize("delta", [1, 29, 60, 61, 150])
def test_near_without_a_change_is_what_minutes_say(of: str, delta: int) -> None:
    begin = microseconds(datetime(2025, 12, 29))
    minutes = 60 * 24 * (400 if of == "month" else 15)
    assert listed(near_pairs(CYCLES[of][0], None, delta * MINUTE)) == brute(of, None, delta, begin, minutes)


@pytest.mark.parametrize("of", ["hour of day", "hour of week", "weekday"])
@settings(max_examples=15, deadline=None)
@given(
    first=st.integers(-600, 600),
    apart=st.integers(30, 2000),
    shifts=st.tuples(st.integers(-150, 150), st.integers(-1500, 1500)),
    delta=st.integers(1, 200),
)
def test_near_across_made_up_changes_is_what_minutes_say(
    of: str, first: int, apart: int, shifts: tuple[int, int], delta: int
) -> None:
    """Two changes of the clocks, forward or back by up to a day, half an hour to a day apart."""
    noon = microseconds(datetime(2026, 3, 8, 12))
    changes = np.array([noon + first * MINUTE, noon + (first + apart) * MINUTE])
    offsets = np.cumsum([0, *shifts]) * MINUTE
    table = Zone("made up", changes, offsets)
    found = brute(of, table, delta, noon - 12 * 1440 * MINUTE, 24 * 1440)
    assert listed(near_pairs(CYCLES[of][0], table, delta * MINUTE)) == found


@pytest.mark.parametrize("of", CYCLES)
@pytest.mark.parametrize("tz", ["America/New_York", "Australia/Lord_Howe", "Pacific/Apia"])
def test_near_misses_nothing_around_real_changes(of: str, tz: str) -> None:
    table = zone(tz)
    late = table.changes[table.changes > microseconds(datetime(2009, 1, 1))][:12]
    near = listed(axis(of, tz).near("45 min"))
    for change in late:
        assert brute(of, table, 45, int(change) - 200 * MINUTE, 400) <= near


def test_months_and_weekdays_reach_further_when_delta_is_longer_than_a_cell() -> None:
    """From January to March it is February: 28 days, if it is short."""
    month, touching = axis("month"), [[i, i + 1] for i in range(11)]
    assert sorted(month.near("1 h").tolist()) == sorted([*touching, [0, 11]])
    assert month.near("28 days").tolist() == month.near("1 min").tolist()
    assert [0, 2] in month.near(timedelta(days=28, microseconds=1)).tolist()
    assert [2, 4] not in month.near("30 days").tolist()  # April has 30
    assert [2, 4] in month.near("30.5 days").tolist()
    assert len(month.near("400 days")) == 66
    assert [0, 2] not in axis("weekday").near("24 h").tolist()
    assert [0, 2] in axis("weekday").near("25 h").tolist()
    assert [5, 0] not in axis("weekday").near("24 h").tolist()


def test_a_weekday_in_the_night_of_the_change_is_an_hour_shorter() -> None:
    """Sundays of 23 hours: from Saturday to Monday it is less than 24 hours then, and only then."""
    assert [0, 5] in axis("weekday", "America/New_York").near("23.5 h").tolist()
    assert [0, 5] not in axis("weekday", "UTC").near("23.5 h").tolist()


def test_after_the_last_cell_comes_the_first() -> None:
    assert [0, 23] in axis("hour of day").near("1 min").tolist()
    assert [0, 6] in axis("weekday").near("1 min").tolist()
    assert [0, 167] in axis("hour of week").near("1 min").tolist()


def test_names_are_for_people() -> None:
    assert axis("weekday").cell_names()[0] == "Monday"
    assert axis("month").cell_names()[11] == "December"
    assert axis("hour of day").cell_names()[7] == "07:00"
    assert axis("hour of week").cell_names()[24] == "Tuesday 00:00"
    assert [len(axis(of).cell_names()) for of in CYCLES] == [24, 7, 168, 12]


def test_ranges_on_a_cycle_are_numbers_or_names_and_do_not_go_round() -> None:
    hours = axis("hour of day")
    assert hours.coordinate([0, 6.5, 24]).tolist() == [0, 6.5, 24]
    assert hours.coordinate(["06:00", "18:00"]).tolist() == [6, 18]
    inside, touched = hours.covered(6.5, 9)
    assert (inside.tolist(), touched.tolist()) == ([7, 9], [6, 9])
    low, high = Cycle("weekday").fractional(("Monday", "Saturday"))
    assert (low.tolist(), high.tolist()) == ([0.0], [5.0])
    with pytest.raises(InvalidInput, match="ranges must not be NaN nor end before they begin"):
        Cycle("hour of day").fractional((22, 2))
    with pytest.raises(InvalidInput) as refusal:
        hours.coordinate(["noon"])
    assert str(refusal.value) == (
        "Axis 't': 'noon' is none of its cells, '00:00' to '23:00'. Give one of these, or a number from 0 to 24."
    )


def test_dates_begin_at_midnight() -> None:
    assert axis("weekday").locate([date(2026, 3, 8)]).tolist() == [6]


def test_a_cycle_is_ordered_and_no_interval() -> None:
    cycle = Cycle("hour of day", tz="America/New_York")
    assert (cycle.names, cycle.shape, cycle.is_ordered, cycle.is_spatial) == (("hour_of_day",), (24,), True, False)
    assert repr(cycle) == "Cycle('hour of day', tz='America/New_York')"
    assert repr(Cycle("weekday", name="day") * Cycle("month")) == "Cycle('weekday', name='day') * Cycle('month')"


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (
            lambda: Cycle("fortnight"),
            "Axis 'fortnight': of='fortnight' is none of 'hour of day', 'weekday', 'hour of week', 'month'. Use one of "
            "these.",
        ),
        (
            lambda: Cycle(7),  # type: ignore[arg-type]
            "Axis '7': of=7 is none of 'hour of day', 'weekday', 'hour of week', 'month'. Use one of these.",
        ),
        (
            lambda: Cycle("weekday").locate([datetime(2026, 1, 1, tzinfo=UTC)]),
            "Axis 'weekday': its values have a time zone, and the axis has none. Nothing was counted. Give the axis a "
            "zone with tz=…, such as tz='UTC', or convert the values to times without one.",
        ),
        (
            lambda: Cycle("weekday").locate([1.5]),
            "Axis 'weekday': values of type float64 are no times. Nothing was counted. Give datetimes, or text such as "
            "'2026-03-01T14:30'.",
        ),
        (
            lambda: axis("weekday").reach("1 h"),
            "Axis 't' comes round, and no cell is the last. Use near(delta='1 h').",
        ),
        (
            lambda: axis("weekday").near(500),
            "delta=500 is not a length of time. Write '15 min', '1 h', '1 day' or '1 week', or give a timedelta.",
        ),
        (
            lambda: axis("weekday").near("500 m"),
            "delta='500 m' is not a length of time. Write '15 min', '1 h', '1 day' or '1 week', or give a timedelta.",
        ),
        (
            lambda: axis("weekday").near("0 h"),
            "delta='0 h' must be a whole number of microseconds, more than none and at most 10,000 years.",
        ),
    ],
)
def test_what_makes_no_cycle_is_refused(work: object, message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        work()  # type: ignore[operator]
    assert str(refusal.value) == message


def test_cycles_multiply() -> None:
    domain = Cycle("weekday", tz="UTC") * Cycle("hour of day", name="hour", tz="UTC")
    assert isinstance(domain, Domain)
    instants = [datetime(2026, 3, 8, 5, tzinfo=UTC)]
    assert domain.locate((np.array(instants), np.array(instants))).tolist() == [6 * 24 + 5]
