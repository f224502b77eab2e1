"""Windows: what they are made of, how they read, and how times are counted exactly."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidInput
from sfumato.promise import Window
from sfumato.promise.window import ticks_of, time_at, time_said

WEEK = Window.of(7)
DAY = Window.of(timedelta(hours=24))
HOUR = 3600 * 10**6


def test_a_window_is_so_many_steps_or_so_much_clock_time() -> None:
    assert (WEEK.kind, WEEK.size) == ("steps", 7)
    assert (DAY.kind, DAY.size) == ("time", 24 * HOUR)
    assert Window.of(DAY) is DAY
    assert Window.of(np.int64(7)) == WEEK
    assert Window.of(pd.Timedelta(hours=24)) == DAY
    with pytest.raises(FrozenInstanceError):
        WEEK.size = 8  # type: ignore[misc]


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (1, "1 step"),
        (7, "7 steps"),
        (timedelta(days=1), "24 hours"),
        (timedelta(hours=25), "25 hours"),
        (timedelta(days=2), "2 days"),
        (timedelta(days=7), "7 days"),
        (timedelta(hours=1), "1 hour"),
        (timedelta(minutes=90), "90 minutes"),
        (timedelta(minutes=1), "1 minute"),
        (timedelta(seconds=90), "90 seconds"),
        (timedelta(milliseconds=1500), "1500000 microseconds"),
        (timedelta(microseconds=1), "1 microsecond"),
    ],
)
def test_a_window_says_how_long_it_is(span: int | timedelta, words: str) -> None:
    assert str(Window.of(span)) == words


def test_several_windows_are_said_in_the_best_unit_of_their_length() -> None:
    assert (WEEK.said(2), DAY.said(2)) == ("14 steps", "2 days")
    assert (WEEK.span(2), DAY.span(2)) == ("14 consecutive time steps", "less than 2 days")
    assert Window.of(1).span() == "a single time step"


@pytest.mark.parametrize("window", [WEEK, DAY])
def test_a_window_survives_plain_data(window: Window) -> None:
    assert Window.from_dict(window.to_dict()) == window


def test_a_window_ends_with_its_tick_and_holds_size_ticks() -> None:
    assert list(range(WEEK.first(10), 10 + 1)) == [4, 5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    "span", [0, -1, True, 7.0, "7", None, timedelta(0), timedelta(-1), pd.Timedelta("1ns"), pd.NaT]
)
def test_what_is_no_window_is_refused(span: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Window.of(span)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"window={span!r} is not a window. Use a whole number of steps of at least 1, such as 7, or a timedelta of at "
        "least a microsecond, such as timedelta(hours=24)."
    )


def test_a_window_that_cannot_be_counted_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        Window.of(2**62 + 1)
    assert str(caught.value) == (f"window={2**62 + 1} is too long: at most 2^62 steps or microseconds are counted.")
    assert Window.of(2**62).size == 2**62


# ------------------------------------------------------------------ times


def test_times_with_a_zone_are_instants() -> None:
    """Python subtracts two times of one zone as if the clock had never been changed; these are two hours apart."""
    berlin = ZoneInfo("Europe/Berlin")
    before, after = datetime(2026, 10, 25, 1, 30, tzinfo=berlin), datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=1)
    assert after - before == timedelta(hours=1)
    assert ticks_of(after, DAY)[0] - ticks_of(before, DAY)[0] == 2 * HOUR
    assert ticks_of(before, DAY) == ticks_of(before.astimezone(UTC), DAY)


def test_times_without_a_zone_are_wall_time() -> None:
    tick, clock = ticks_of(datetime(1970, 1, 2), DAY)
    assert (tick, clock) == (24 * HOUR, "wall")
    assert ticks_of(datetime(1970, 1, 2, tzinfo=UTC), DAY) == (24 * HOUR, "utc")


@given(st.datetimes(timezones=st.none() | st.just(UTC) | st.just(timezone(timedelta(hours=5, minutes=45)))))
def test_a_tick_is_the_time_to_the_microsecond(time: datetime) -> None:
    if time.tzinfo is not None and time.year in (1, 9999):
        return  # not every one of these is inside the calendar of UTC
    tick, clock = ticks_of(time, DAY)
    assert time_at(tick, clock) == time
    assert time_at(tick + 1, clock) - time == timedelta(microseconds=1) if time.year < 9999 else True


def test_times_for_people() -> None:
    assert time_said(12, "steps") == "step 12"
    assert time_said(24 * HOUR, "wall") == "1970-01-02 00:00:00"
    assert time_said(24 * HOUR + 1, "utc") == "1970-01-02 00:00:00.000001+00:00"


@pytest.mark.parametrize("time", [1.0, True, "1", None, datetime(2026, 1, 1), 2**62 + 1])
def test_a_stream_of_steps_takes_whole_numbers_alone(time: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        ticks_of(time, WEEK)
    assert str(caught.value) == (
        f"time={time!r} must be a whole number: the window is counted in steps. Nothing was drawn or recorded."
    )


@pytest.mark.parametrize(
    "time",
    [
        1,
        "2026-01-01",
        datetime(2026, 1, 1).date(),
        pd.NaT,
        pd.Timestamp("2026-01-01 00:00:00.000000001"),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12))),
    ],
)
def test_a_stream_of_clock_time_takes_exact_datetimes_alone(time: object) -> None:
    """A nanosecond lost could put two releases into no common window that have one."""
    with pytest.raises(InvalidInput) as caught:
        ticks_of(time, DAY)
    assert str(caught.value) == (
        f"time={time!r} must be a datetime to the microsecond: the window is counted in clock time. Nothing was drawn "
        "or recorded."
    )


def test_timestamps_of_pandas_are_datetimes() -> None:
    assert ticks_of(pd.Timestamp("2026-01-01 10:00"), DAY) == ticks_of(datetime(2026, 1, 1, 10), DAY)
