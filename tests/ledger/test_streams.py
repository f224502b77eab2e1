"""The account of a stream: no window holds more than ε, past steps stay past, and every refusal says what to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.domain import Line
from sfumato.errors import BudgetExceeded, InvalidInput
from sfumato.ledger import Ledger, Remaining, Step, StreamAccount
from sfumato.ledger.steps import tightest
from sfumato.policies import threshold
from sfumato.promise import Epsilon, Window

LINE = Line(0, 1, cells=5)
POLICY = threshold(LINE, theta=1)
NOON = datetime(2026, 3, 1, 12)


@pytest.fixture
def ledger(place: str) -> Ledger:
    return Ledger.create(place, epsilon=1)


@pytest.fixture
def stream(ledger: Ledger) -> StreamAccount:
    """ε = 1 in every 7 steps."""
    return ledger.stream("visits", epsilon=1, window=7, policy=POLICY)


@pytest.fixture
def hours(ledger: Ledger) -> StreamAccount:
    """ε = 1 in every 24 hours."""
    return ledger.stream("hours", epsilon=1, window=timedelta(hours=24), policy=POLICY)


def _charge(stream: StreamAccount, time: int | datetime, epsilon: object) -> Epsilon:
    """Charge and give what is left."""
    return stream.charge(time, epsilon, label="visits", release_id=f"r{time}").remaining  # type: ignore[arg-type]


def _refusal(kind: type[Exception], stream: StreamAccount, time: int | datetime, epsilon: object = 0.1) -> str:
    """The message with which a charge is refused; nothing is recorded."""
    before = stream.entries()
    with pytest.raises(kind) as caught:
        _charge(stream, time, epsilon)
    assert stream.entries() == before
    return str(caught.value)


# ------------------------------------------------------------------ windows by hand


def test_budget_comes_back_when_its_step_leaves_the_window(stream: StreamAccount) -> None:
    assert _charge(stream, 1, 0.6) == 0.4
    assert _charge(stream, 3, 0.28) == 0.12
    assert stream.remaining(7) == Remaining(epsilon=Epsilon("0.12"), next_time=8, next_epsilon=Epsilon("0.72"))
    assert stream.remaining(8) == Remaining(epsilon=Epsilon("0.72"), next_time=10, next_epsilon=Epsilon(1))
    assert stream.remaining(10) == Remaining(epsilon=Epsilon(1), next_time=None, next_epsilon=None)
    assert _charge(stream, 7, 0.12) == 0
    assert _charge(stream, 8, 0.6) == 0


def test_the_first_window_counts_from_the_first_step_on(stream: StreamAccount) -> None:
    """The papers' programme leaves it out; a stream shorter than its window is one window."""
    for step in range(1, 7):
        _charge(stream, step, "1/7")
    assert stream.remaining().epsilon == Fraction(1, 7)
    assert "exceeds the 1/7 left" in _refusal(BudgetExceeded, stream, 7, "0.142858")
    assert _charge(stream, 7, "1/7") == 0


def test_thirds_add_up_to_one_exactly(ledger: Ledger) -> None:
    stream = ledger.stream("thirds", epsilon=1, window=3, policy=POLICY)
    for step in range(30):
        _charge(stream, step, Fraction(1, 3))
    assert stream.entries()[-1].epsilon == Fraction(1, 3)
    assert _refusal(BudgetExceeded, stream, 30, "0.33334") == (
        "epsilon=0.33334 exceeds the 1/3 left in the window of 3 steps of stream 'thirds'. Nothing was drawn or "
        "recorded. Use at most 1/3, or wait until step 31."
    )


def test_a_window_of_one_step_gives_every_step_all(ledger: Ledger) -> None:
    stream = ledger.stream("events", epsilon=1, window=1, policy=POLICY)
    assert [_charge(stream, step, 1) for step in (1, 2, 3, 10)] == [0, 0, 0, 0]


def test_a_gap_and_a_step_skipped_count_the_same(ledger: Ledger) -> None:
    gap, skipped = (ledger.stream(name, epsilon=1, window=3, policy=POLICY) for name in ("gap", "skipped"))
    for stream in (gap, skipped):
        _charge(stream, 1, 1)
    receipt = skipped.skip(2)
    assert (receipt.epsilon, receipt.remaining) == (0, 0)
    skipped.skip(3)
    for stream in (gap, skipped):
        assert stream.remaining(4).epsilon == 1
        _charge(stream, 4, 1)
    assert [step.epsilon for step in gap.entries()] == [1, 1]
    assert [(step.epsilon, step.release_id) for step in skipped.entries()] == [
        (1, "r1"),
        (0, None),
        (0, None),
        (1, "r4"),
    ]


def test_windows_of_clock_time_are_half_open(hours: StreamAccount) -> None:
    day, tick = timedelta(hours=24), timedelta(microseconds=1)
    _charge(hours, NOON, 1)
    assert _refusal(BudgetExceeded, hours, NOON + day - tick) == (
        "epsilon=0.1 exceeds the 0 left in the window of 24 hours of stream 'hours'. Nothing was drawn or recorded. "
        "Wait until 2026-03-02 12:00:00."
    )
    assert _charge(hours, NOON + day, 1) == 0


def test_a_day_of_hourly_releases_has_twenty_four(hours: StreamAccount) -> None:
    for hour in range(72):
        _charge(hours, NOON + timedelta(hours=hour), "1/24")
    assert len(hours) == 72


def test_clock_time_with_a_zone_goes_on_when_the_clock_is_put_back(hours: StreamAccount) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    first = datetime(2026, 10, 25, 2, 30, tzinfo=berlin)
    _charge(hours, first, 0.5)
    assert _charge(hours, first.replace(fold=1), 0.5) == 0  # an hour later, by the same name
    assert hours.entries()[1].time == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    remaining = hours.remaining(datetime(2026, 10, 25, 3, tzinfo=berlin))
    assert remaining.next_time == datetime(2026, 10, 26, 0, 30, tzinfo=UTC)  # 24 hours, not a day


def test_wall_time_that_jumps_back_is_a_time_past(hours: StreamAccount) -> None:
    _charge(hours, NOON, 0.1)
    assert _refusal(InvalidInput, hours, NOON - timedelta(minutes=30)) == (
        "time=datetime.datetime(2026, 3, 1, 11, 30) is not later than 2026-03-01 12:00:00, the last one of stream "
        "'hours'. Nothing was drawn or recorded. Every step is released once and in order: use a time after "
        "2026-03-01 12:00:00, or raise a past release with raise_step; one that was never mentioned may be charged "
        "with late=True, where its windows have room."
    )


def test_a_window_longer_than_the_calendar_never_frees_anything(ledger: Ledger) -> None:
    stream = ledger.stream("ever", epsilon=1, window=timedelta(days=365 * 9000), policy=POLICY)
    _charge(stream, NOON, 0.75)
    assert stream.remaining() == Remaining(epsilon=Epsilon("0.25"), next_time=None, next_epsilon=None)
    assert _refusal(BudgetExceeded, stream, NOON + timedelta(days=1), 0.5).endswith(
        "Nothing was drawn or recorded. Use at most 0.25."
    )
    _charge(stream, NOON + timedelta(days=1), 0.25)
    assert _refusal(BudgetExceeded, stream, NOON + timedelta(days=2)).endswith(
        "Nothing was drawn or recorded. End the stream here: no more comes free."
    )


# ------------------------------------------------------------------ refusals of a step


def test_what_does_not_fit_is_refused_with_what_is_left_and_when_it_fits(stream: StreamAccount) -> None:
    _charge(stream, 3, 0.5)
    _charge(stream, 5, 0.38)
    assert _refusal(BudgetExceeded, stream, 6, "0.30") == (
        "epsilon=0.3 exceeds the 0.12 left in the window of 7 steps of stream 'visits'. Nothing was drawn or "
        "recorded. Use at most 0.12, or wait until step 10."
    )
    assert _refusal(BudgetExceeded, stream, 6, 0.9).endswith("Use at most 0.12, or wait until step 12.")
    assert _refusal(BudgetExceeded, stream, 6, 1.5).endswith("Nothing was drawn or recorded. Use at most 0.12.")
    _charge(stream, 6, 0.12)
    assert _refusal(BudgetExceeded, stream, 7, 1.5) == (
        "epsilon=1.5 exceeds the 0 left in the window of 7 steps of stream 'visits'. Nothing was drawn or recorded. "
        "Use at most 1 when the window is empty again."
    )


@pytest.mark.parametrize("time", [4, 5, -3])
def test_a_past_step_is_not_released_again(stream: StreamAccount, time: int) -> None:
    _charge(stream, 5, 0.1)
    message = (
        f"time={time} is not later than step 5, the last one of stream 'visits'. Nothing was drawn or recorded. Every "
        "step is released once and in order: use a time after step 5, or raise a past release with raise_step; one "
        "that was never mentioned may be charged with late=True, where its windows have room."
    )
    assert _refusal(InvalidInput, stream, time) == message
    for refused in (stream.skip, stream.remaining):
        with pytest.raises(InvalidInput) as caught:
            refused(time)
        assert str(caught.value) == message


def test_a_step_that_was_skipped_is_past(stream: StreamAccount) -> None:
    stream.skip(5)
    assert "is not later than step 5" in _refusal(InvalidInput, stream, 5)


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [(NOON, NOON.replace(tzinfo=UTC), "without a time zone"), (NOON.replace(tzinfo=UTC), NOON, "with a time zone")],
)
def test_times_with_and_without_a_zone_are_not_mixed(
    hours: StreamAccount, first: datetime, then: datetime, said: str
) -> None:
    _charge(hours, first, 0.1)
    then += timedelta(days=3)
    message = (
        f"time={then!r} cannot be compared with the times of stream 'hours', which are {said}. Nothing was drawn or "
        f"recorded. Give all times of a stream {said}."
    )
    assert _refusal(InvalidInput, hours, then) == message
    for reading in (hours.remaining, hours.entries, hours.at, hours.level):
        with pytest.raises(InvalidInput) as caught:
            reading(then)
        assert str(caught.value) == message


def test_a_seeded_release_is_refused(stream: StreamAccount) -> None:
    with pytest.raises(InvalidInput) as caught:
        stream.charge(1, 0.1, label="visits", release_id="r1", private=False)
    assert str(caught.value) == (
        "A release made with seeded randomness is not private and cannot be charged to a ledger. Nothing was drawn or "
        "recorded. Publish it without a ledger, or use the default randomness."
    )
    assert stream.entries() == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guarantee": 0}, "epsilon=0 must be greater than zero. Nothing was drawn or recorded."),
        ({"label": " "}, "label=' ' must be a non-empty string. Nothing was drawn or recorded."),
        ({"release_id": None}, "release_id=None must be a non-empty string. Nothing was drawn or recorded."),
        (
            {"time": 1.5},
            "time=1.5 must be a whole number: the window is counted in steps. Nothing was drawn or recorded.",
        ),
        (
            {"policy": "within"},
            "policy=str is not a policy. Nothing was drawn or recorded. Build one, such as "
            "sf.within(grid, delta=0.01).",
        ),
    ],
)
def test_arguments_that_say_nothing_are_refused(stream: StreamAccount, change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"time": 1, "guarantee": 0.1, "label": "visits", "release_id": "r1"}
    with pytest.raises(InvalidInput) as caught:
        stream.charge(**(arguments | change))  # type: ignore[arg-type]
    assert str(caught.value) == message
    assert stream.entries() == ()


# ------------------------------------------------------------------ raising a past step


def test_a_raise_is_charged_to_the_time_of_the_data(stream: StreamAccount) -> None:
    _charge(stream, 1, 0.2)
    _charge(stream, 8, 0.9)  # shares no window with step 1
    receipt = stream.raise_step(1, 0.7, level=1, label="finer")
    assert (receipt.epsilon, receipt.remaining, receipt.step.epsilon) == (0.5, 0.3, 0.7)
    assert stream.level(1) == (1, 0.7)
    assert stream.entries()[0] == Step(time=1, epsilon=Epsilon("0.7"), label="finer", release_id="r1", level=1)
    assert len(stream) == 2
    stream.raise_step(1, 1, level=2, label="finest")
    assert (stream.level(1), stream.remaining(9).epsilon) == ((2, 1), 0.1)


def test_a_raise_must_fit_into_every_window_that_holds_the_step(stream: StreamAccount) -> None:
    """Step 8 shares a window with 2 … 7 and one with 9 … 14; each of them sets its own limit."""
    for step, epsilon in ((2, 0.3), (8, 0.2), (14, 0.6)):
        _charge(stream, step, epsilon)
    message = (
        "epsilon=0.5 is too much: raising step 8 of stream 'visits' from 0.2 costs 0.3, which exceeds the 0.2 left in "
        "the window of 7 steps that ends at step 14. Nothing was drawn or recorded. Use at most 0.4: what a past "
        "window has spent never comes free."
    )
    with pytest.raises(BudgetExceeded) as caught:
        stream.raise_step(8, 0.5, level=1, label="finer")
    assert str(caught.value) == message
    with pytest.raises(BudgetExceeded) as caught:
        stream.quote_step(8, epsilon=0.5)
    assert str(caught.value) == message
    assert stream.quote_step(8, epsilon=0.4) == 0.2
    assert stream.level(8) == (0, 0.2)
    assert stream.raise_step(8, 0.4, level=1, label="finer").remaining == 0
    with pytest.raises(BudgetExceeded) as caught:
        stream.raise_step(14, 0.7, level=1, label="finer")
    assert str(caught.value).endswith("Leave the release as it is: what a past window has spent never comes free.")
    assert stream.quote_step(2, epsilon=0.6) == 0.3  # its window with step 8 has 0.3 left
    with pytest.raises(BudgetExceeded, match=r"exceeds the 0\.3 left in the window of 7 steps that ends at step 8\."):
        stream.quote_step(2, epsilon=0.61)


def test_a_raise_leaves_less_for_the_next_step(stream: StreamAccount) -> None:
    _charge(stream, 1, 0.2)
    stream.raise_step(1, 0.9, level=1, label="finer")
    assert _refusal(BudgetExceeded, stream, 2, 0.2) == (
        "epsilon=0.2 exceeds the 0.1 left in the window of 7 steps of stream 'visits'. Nothing was drawn or recorded. "
        "Use at most 0.1, or wait until step 8."
    )


@pytest.mark.parametrize("level", [0, 1, 3, True, "2"])
def test_only_the_next_level_is_counted(stream: StreamAccount, level: object) -> None:
    _charge(stream, 1, 0.1)
    stream.raise_step(1, 0.2, level=1, label="finer")
    with pytest.raises(InvalidInput) as caught:
        stream.raise_step(1, 0.3, level=level, label="finer")  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"level={level!r} is not the next level of step 1 of stream 'visits', which is at level 1 with epsilon=0.2. "
        "Nothing was drawn or recorded. Only level 2 can follow: what was made from an older state would be a second "
        "noise."
    )
    assert stream.level(1) == (1, 0.2)


@pytest.mark.parametrize("epsilon", [0.2, 0.1])
def test_a_raise_must_raise(stream: StreamAccount, epsilon: float) -> None:
    _charge(stream, 1, 0.2)
    with pytest.raises(InvalidInput) as caught:
        stream.raise_step(1, epsilon, level=1, label="finer")
    assert str(caught.value) == (
        f"epsilon={epsilon} does not raise step 1 of stream 'visits', which is at level 0 with epsilon=0.2. Nothing "
        "was drawn or recorded. Use more than 0.2; for a coarser level, use the release that was made at it."
    )


@pytest.mark.parametrize(("time", "why"), [(2, "that step was skipped"), (3, "there is no such step")])
def test_a_step_without_a_release_cannot_be_raised(stream: StreamAccount, time: int, why: str) -> None:
    _charge(stream, 1, 0.2)
    stream.skip(2)
    with pytest.raises(InvalidInput) as caught:
        stream.raise_step(time, 0.5, level=1, label="finer")
    assert str(caught.value) == (
        f"time={time} has no release in stream 'visits' that could be raised: {why}. Nothing was drawn or recorded. "
        "A past step is not released afterwards; raise one that was."
    )
    assert stream.level(time) is None


amounts = st.fractions(min_value=0, max_value=1, max_denominator=12)


@given(st.dictionaries(st.integers(0, 30), amounts, min_size=1), st.integers(1, 9), st.data())
def test_the_tightest_window_is_that_of_brute_force(spent: dict[int, Fraction], size: int, data: st.DataObject) -> None:
    tick = data.draw(st.sampled_from(sorted(spent)))
    near = [(t, Epsilon(spent[t])) for t in sorted(spent) if abs(t - tick) < size]
    rooms = [
        Fraction(5) - sum(spent.get(t, Fraction(0)) for t in range(end - size + 1, end + 1))
        for end in range(tick, tick + size)
    ]
    end, room = tightest(near, tick, Window.of(size), Fraction(5))
    assert room == min(rooms) == rooms[end - tick]


# ------------------------------------------------------------------ reading


def test_steps_are_read_back_in_order(stream: StreamAccount) -> None:
    assert (stream.entries(), stream.last(), len(stream), bool(stream)) == ((), None, 0, True)
    assert stream.remaining() == Remaining(epsilon=Epsilon(1), next_time=None, next_epsilon=None)
    for step in (-2, 1, 4):
        _charge(stream, step, 0.1)
    stream.skip(6)
    assert [step.time for step in stream.entries()] == [-2, 1, 4, 6]
    assert [step.time for step in stream.entries(1, 6)] == [1, 4]
    assert [step.time for step in stream.entries(stop=1)] == [-2]
    assert stream.at(4) == Step(time=4, epsilon=Epsilon("0.1"), label="visits", release_id="r4", level=0)
    assert (stream.at(5), len(stream)) == (None, 4)
    assert stream.last() == Step(time=6, epsilon=Epsilon(0), label="skipped", release_id=None, level=0)
    assert stream.remaining() == stream.remaining(7)
    assert repr(stream) == "StreamAccount('visits', epsilon=1, window='7 steps')"


def test_a_stream_does_not_touch_the_total_of_its_ledger(ledger: Ledger, stream: StreamAccount) -> None:
    for step in range(100):
        _charge(stream, step, "1/7")
    assert (ledger.spent, len(ledger.history())) == (0, 1)


def test_streams_are_counted_apart(ledger: Ledger, stream: StreamAccount) -> None:
    other = ledger.stream("trips", epsilon=2, window=3, policy=POLICY)
    ferries = Ledger.create(ledger.place, epsilon=1, dataset="ferries")
    elsewhere = ferries.stream("visits", epsilon=3, window=2, policy=POLICY)
    for account, epsilon in ((stream, 1), (other, 2), (elsewhere, 3)):
        assert _charge(account, 1, epsilon) == 0
    assert [len(account) for account in (stream, other, elsewhere)] == [1, 1, 1]


def test_a_ledger_knows_its_streams_and_not_those_of_others(ledger: Ledger) -> None:
    assert ledger.streams() == ()
    for name in ("visits", "arrivals"):
        ledger.stream(name, epsilon=1, window=2, policy=POLICY)
    assert ledger.streams() == ("visits", "arrivals")
    assert Ledger.create(ledger.place, epsilon=1, dataset="ferries").streams() == ()


def test_a_stream_has_a_first_and_a_last_step(stream: StreamAccount) -> None:
    assert (stream.first(), stream.last()) == (None, None)
    _charge(stream, 3, 0.1)
    stream.skip(5)
    assert [step.time for step in (stream.first(), stream.last()) if step is not None] == [3, 5]
