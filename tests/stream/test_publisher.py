"""Streams: what a publisher promises over time, however it divides its budget."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from publisher_case import COUNTS, HOUR, LINE, POLICY, budgets, fullest, hourly, stream

import sfumato as sf
from sfumato.allocation import Periodic, allocate
from sfumato.errors import InvalidInput
from sfumato.promise.window import Window
from sfumato.stream import choices, publisher
from sfumato.stream.past import Later, Past

# ------------------------------------------------------------------ by hand


def test_even_gives_every_step_the_same(tmp_path):
    series = stream(tmp_path)
    for time in range(5):
        series.publish(time, COUNTS)
    assert budgets(series) == dict.fromkeys(range(5), Fraction(1, 3))


def test_sample_gives_one_step_of_each_window_all(tmp_path):
    series = stream(tmp_path, "sample")
    given = [series.publish(time, COUNTS) for time in range(7)]
    assert [release is not None for release in given] == [True, False, False, True, False, False, True]
    assert budgets(series) == {t: Fraction(t % 3 == 0) for t in range(7)}


def test_sample_moves_on_when_its_step_weighs_nothing(tmp_path):
    series = stream(tmp_path, "sample")
    for time, weight in enumerate([0, 1, 1, 1, 0, 1]):
        series.publish(time, COUNTS, weight)
    assert budgets(series) == {0: 0, 1: 1, 2: 0, 3: 0, 4: 0, 5: 1}


def test_offline_gives_the_optimum_for_weights_known_in_advance(tmp_path):
    weights = [1, 0, 4, 1, 1, 0, 2, 1]
    series = stream(tmp_path, "offline", weights=weights)
    for time in range(8):
        series.publish(time, COUNTS)
    assert [float(e) for e in budgets(series).values()] == allocate(weights, window=3, epsilon=1).tolist()


def test_offline_divides_anew_what_a_skipped_step_leaves(tmp_path):
    series = stream(tmp_path, "offline", weights=[1, 1, 1, 1])
    series.publish(0, COUNTS)
    series.skip(1)
    series.publish(2, COUNTS)
    series.publish(3, COUNTS)
    spent = [float(e) for e in budgets(series).values()]
    assert spent == allocate([1, 1, 1, 1], window=3, epsilon=1, committed=[spent[0], 0]).tolist()
    assert spent[3] > 1 / 3


def test_online_knows_the_steps_before_and_their_number(tmp_path):
    """A periodic future is known: the budgets are those of the allocator on the whole history."""
    series = stream(tmp_path, "online", distribution=Periodic([1, 1, 0, 0]))
    weights = [1, 1, 0, 0, 1, 1, 0, 0, 1]
    for time, weight in enumerate(weights):
        series.publish(time, COUNTS, weight)
    assert [float(e) for e in budgets(series).values()] == series._allocation.allocator.run(weights).tolist()


def test_top_up_ends_where_its_allocator_does_but_for_raises_not_worth_a_release(tmp_path):
    series = stream(tmp_path, "top-up")
    weights = [1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1]
    for time, weight in enumerate(weights):
        series.publish(time, COUNTS, weight)
    series.top_up(ended=True)
    wanted = series._allocation.allocator.run(weights)
    assert [float(e) for e in budgets(series).values()] == pytest.approx(wanted.tolist(), rel=5e-3)
    assert fullest(budgets(series), 3) <= 1


def test_top_up_gives_finer_levels_of_the_same_releases(tmp_path):
    series = stream(tmp_path, "top-up")
    first = series.publish(0, COUNTS)
    for time in range(1, 9):
        series.publish(time, COUNTS, weight=0)
    finer = series.release(0)
    assert (finer.id, series.history()[0].level) == (first.id, 1)
    assert finer.guarantee.epsilon == series.history()[0].epsilon == 1  # nobody else needed its windows
    assert finer.guarantee.window_epsilon == 1
    assert finer.total == first.total == COUNTS.sum()


def test_a_release_says_what_its_step_spent_and_what_the_stream_promises(tmp_path):
    release = stream(tmp_path, epsilon="1/2").publish(0, COUNTS)
    assert release.guarantee.epsilon == Fraction(1, 6)
    assert (release.guarantee.window, release.guarantee.window_epsilon) == (Window.of(3), Fraction(1, 2))
    again = sf.load(release.save(tmp_path / "step.sfumato"))
    assert again.guarantee == release.guarantee
    assert again.guarantee.to_dict() == release.guarantee.to_dict()


def test_the_noise_of_a_step_is_that_of_its_budget(tmp_path):
    release = stream(tmp_path).publish(0, COUNTS)
    alone = sf.plan(POLICY, sf.histogram(), Fraction(1, 3), mechanism="identity")
    assert release.mechanism.privacy_loss == Fraction(1, 3)
    assert release.cells().stderr == pytest.approx(np.sqrt(alone.expected_error), rel=1e-9)


def test_a_promise_about_persons_divides_the_budget_of_a_step_by_their_records(tmp_path):
    series = stream(tmp_path, max_per_entity=2)
    release = series.publish(0, sf.Counts(COUNTS, LINE, max_per_entity=2))
    assert (release.guarantee.unit, release.mechanism.epsilon) == ("person", Fraction(1, 6))
    with pytest.raises(InvalidInput, match="counts were not bounded"):
        series.publish(1, COUNTS)
    assert len(series.history()) == 1


def test_points_are_taken_in_the_place_of_counts(tmp_path):
    assert stream(tmp_path).publish(0, points=np.array([0.5, 2.5, 2.6])).total == 3


def test_history_names_the_file_of_every_release(tmp_path):
    series = stream(tmp_path, outbox=tmp_path / "out")
    release = series.publish(0, COUNTS, weight=2.5)
    series.skip(1)
    published, skipped = series.history()
    assert (published.time, published.weight, published.epsilon, published.level) == (0, 2.5, Fraction(1, 3), 0)
    assert published.release_id == release.id
    assert published.path == tmp_path / "out" / "0.sfumato"
    assert sf.load(published.path).counts.tolist() == release.counts.tolist()
    assert (skipped.time, skipped.weight, skipped.epsilon, skipped.release_id, skipped.path) == (1, 0, 0, None, None)


def test_remaining_says_when_more_comes_free(tmp_path):
    series = stream(tmp_path)
    assert series.remaining().epsilon == 1
    series.publish(0, COUNTS)
    left = series.remaining(2)
    assert (left.epsilon, left.next_time, left.next_epsilon) == (Fraction(2, 3), 3, 1)
    assert repr(series) == "Stream('visits', epsilon=1, window='3 steps')"


# ------------------------------------------------------------------ never too much


NAMES = ["even", "sample", "offline", "online", "top-up"]


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_window_is_ever_above_epsilon(tmp_path_factory, data):
    """Random gaps, weights, skips, changes of allocation and reopenings: no window spends more than ε, exactly, and
    the ledger never has to refuse what an allocation gives.
    """
    folder = tmp_path_factory.mktemp("stream")
    window = data.draw(st.integers(1, 5))
    epsilon = data.draw(st.sampled_from(["1", "0.1", "2/3", "0.7"]))
    names = data.draw(
        st.lists(st.sampled_from(["even", "sample", "offline", "online", "top-up"]), min_size=1, max_size=2)
    )
    time = -1
    for name in names:
        known = {"weights": [1, 2, 0.5, 0, 3] * 20} if name == "offline" else {}
        for _ in range(data.draw(st.integers(1, 2))):
            series = stream(folder, name, window=window, epsilon=epsilon, **known)
            for _ in range(data.draw(st.integers(1, 6))):
                time += data.draw(st.sampled_from([1, 1, 1, 2, 7]))
                weight = None if name == "offline" else data.draw(st.sampled_from([0, 1, 1, 0.25, 3]))
                if data.draw(st.integers(0, 5)) == 0:
                    series.skip(time)
                else:
                    series.publish(time, COUNTS, weight)
        if name == "top-up":
            series.top_up(ended=data.draw(st.booleans()))
    spent = budgets(series)
    assert fullest(spent, window) <= Fraction(epsilon)
    for record in series.history():
        if record.release_id is not None and record.path is not None:
            assert sf.load(record.path).guarantee.epsilon <= record.epsilon


def test_a_new_allocation_gives_no_more_than_the_old_one_has_left(tmp_path):
    stream(tmp_path, "sample").publish(0, COUNTS)
    series = stream(tmp_path, "even")
    assert [series.publish(time, COUNTS) is not None for time in (1, 2, 3)] == [False, False, True]
    assert budgets(series) == {0: 1, 1: 0, 2: 0, 3: Fraction(1, 3)}


def test_a_gap_does_not_hide_what_shares_a_window_with_a_raised_step(tmp_path):
    series = stream(tmp_path, "top-up")
    for time in range(3):
        series.publish(time, COUNTS)
    for time in (*range(3, 6), 12, 30, 10**12):
        series.skip(time)
    series.top_up(ended=True)
    assert fullest({t: e for t, e in budgets(series).items() if t < 100}, 3) <= 1


def test_a_gap_frees_what_was_spent_before_it(tmp_path):
    series = stream(tmp_path, "sample")
    series.publish(0, COUNTS)
    series.publish(10, COUNTS)
    assert budgets(series) == {0: 1, 10: 1}


@pytest.mark.parametrize("allocation", ["even", "sample", "online", "top-up"])
def test_a_window_longer_than_the_sequence_is_one_window(tmp_path, allocation):
    series = stream(tmp_path, allocation, window=12)
    for time in range(4):
        series.publish(time, COUNTS)
    assert 0 < sum(budgets(series).values()) <= 1


def test_a_window_of_one_step_has_all_of_epsilon_each_time(tmp_path):
    for allocation in ("even", "sample", "online"):
        folder = tmp_path / allocation
        folder.mkdir()
        series = stream(folder, allocation, window=1)
        for time in range(3):
            series.publish(time, COUNTS)
        assert [float(e) for e in budgets(series).values()] == pytest.approx([1, 1, 1])


def test_allocations_see_public_figures_alone():
    """Structure: what an allocation is given has no place for counts, and its module knows none."""
    assert set(Past.__dataclass_fields__) == {"step", "budgets", "weights", "floors"}
    assert set(Later.__dataclass_fields__) == {"budgets", "floors"}
    for kind in (choices.Even, choices.Sample, choices.Offline, choices.Online, choices.TopUp):
        assert list(inspect.signature(kind.commit).parameters) == ["self", "past", "weight"]
        assert list(inspect.signature(kind.late).parameters) == ["self", "past", "later", "weight"]
    for module in ("count", "release", "publish", "noise"):
        assert f"sfumato.{module}" not in inspect.getsource(choices)
    source = inspect.getsource(publisher.Stream._publish)
    assert source.index("_committed(standing, weight)") < source.index("counts.")
    assert list(inspect.signature(publisher.Stream._committed).parameters) == ["self", "standing", "weight"]
    assert inspect.getsource(publisher.Stream.publish).count("counts") == 4  # signature, docstring twice, handed on


def test_the_same_public_past_gives_the_same_budgets_whatever_the_data(tmp_path):
    spent = []
    for i, counts in enumerate([COUNTS, COUNTS * 1000, np.zeros(6, dtype=int)]):
        folder = tmp_path / str(i)
        folder.mkdir()
        series = stream(folder, "online")
        for time, weight in enumerate([1, 0, 2, 1, 1]):
            series.publish(time, counts, weight)
        spent.append(budgets(series))
    assert spent[0] == spent[1] == spent[2]


# ------------------------------------------------------------------ clock time


def test_clock_windows_are_divided_over_their_steps(tmp_path):
    series = hourly(tmp_path)
    begin = datetime(2026, 3, 1, 22)
    for i in (0, 1, 2, 3, 7):
        series.publish(begin + i * HOUR, COUNTS)
    assert list(budgets(series).values()) == [Fraction(1, 3)] * 5
    assert series.history()[0].path.name == "2026-03-01T22-00-00.sfumato"
    assert str(series.window) == "3 hours"


def test_a_window_in_steps_with_a_step_in_hours_is_clock_time(tmp_path):
    series = hourly(tmp_path, window=3)
    series.publish(datetime(2026, 3, 1), COUNTS)
    assert str(series.window) == "3 hours"


def test_instants_are_the_same_in_every_time_zone(tmp_path):
    series = hourly(tmp_path)
    first = series.publish(datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2))), COUNTS)
    again = series.publish(datetime(2026, 3, 1, 10, tzinfo=UTC), COUNTS)
    assert (first.id, len(series.history())) == (again.id, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"window": timedelta(hours=24), "step": None},
            "window=datetime.timedelta(days=1) is clock time, and the budget is divided over steps. Nothing was drawn "
            "or recorded. Say how long a step is, such as step=timedelta(hours=1).",
        ),
        (
            {"window": timedelta(hours=3), "step": timedelta(hours=2)},
            "window=datetime.timedelta(seconds=10800) is not a whole number of steps of 2 hours. Nothing was drawn or "
            "recorded. Use a window that is a multiple of the step.",
        ),
        (
            {"window": 3, "step": 2},
            "step=2 is not a timedelta. Nothing was drawn or recorded. Use one such as timedelta(hours=1), or leave "
            "step out and number the steps.",
        ),
        (
            {"window": 0, "step": None},
            "window=0 is not a window. Use a whole number of steps of at least 1, such as 7, or a timedelta of at "
            "least a microsecond, such as timedelta(hours=24).",
        ),
        (
            {"window": -2, "step": HOUR},
            "window=-2 is not a window. Use a whole number of steps of at least 1, such as 7, or a timedelta of at "
            "least a microsecond, such as timedelta(hours=24).",
        ),
    ],
)
def test_windows_that_make_no_sense_are_refused(tmp_path, given, message):
    with pytest.raises(InvalidInput) as refused:
        hourly(tmp_path, **given)
    assert str(refused.value) == message


def test_times_between_steps_and_of_another_kind_are_refused(tmp_path):
    series = hourly(tmp_path)
    series.publish(datetime(2026, 3, 1), COUNTS)
    with pytest.raises(InvalidInput) as refused:
        series.publish(datetime(2026, 3, 1, 1, 30), COUNTS)
    assert str(refused.value) == (
        "time=datetime.datetime(2026, 3, 1, 1, 30) lies between two steps of 1:00:00 from 2026-03-01 00:00:00. Nothing "
        "was drawn or recorded. Give the time at which its step begins."
    )
    with pytest.raises(InvalidInput) as refused:
        series.publish(datetime(2026, 3, 1, 1, tzinfo=UTC), COUNTS)
    assert str(refused.value) == (
        "time=datetime.datetime(2026, 3, 1, 1, 0, tzinfo=datetime.timezone.utc): this stream counts wall time without "
        "a time zone. Nothing was drawn or recorded. Keep to one kind of time."
    )
    assert len(series.history()) == 1


def test_a_clock_that_jumps_backwards_meets_times_past(tmp_path):
    """Wall time put back by an hour: the hour that was published comes back as it was, one before it is refused."""
    series = hourly(tmp_path)
    first = series.publish(datetime(2026, 10, 25, 2), COUNTS)
    assert series.publish(datetime(2026, 10, 25, 2), COUNTS).id == first.id
    with pytest.raises(InvalidInput) as refused:
        series.publish(datetime(2026, 10, 25, 1), COUNTS)
    assert "2026-10-25" in str(refused.value)
    assert "Nothing was drawn or recorded." in str(refused.value)
    assert len(series.history()) == 1
