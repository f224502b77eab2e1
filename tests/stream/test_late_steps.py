"""Late steps: what was passed over is published where every window has room, whatever comes in which order."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from publisher_case import COUNTS, HOUR, budgets, fullest, hourly, stream

import sfumato as sf
from sfumato.allocation import allocate
from sfumato.errors import BudgetExceeded, InvalidInput

# ------------------------------------------------------------------ by hand


def test_even_gives_a_late_step_its_share_and_takes_it_from_nobody(tmp_path):
    series = stream(tmp_path)
    for time in (0, 1, 4, 5):
        series.publish(time, COUNTS)
    for time in (3, 2):
        assert series.publish(time, COUNTS, late=True).guarantee.epsilon == Fraction(1, 3)
    series.publish(6, COUNTS)
    assert budgets(series) == dict.fromkeys(range(7), Fraction(1, 3))


def test_sample_has_nothing_for_a_late_step_beside_one_that_was_published(tmp_path):
    series = stream(tmp_path, "sample")
    for time in (0, 5):
        series.publish(time, COUNTS)
    for time in (1, 3, 4):
        with pytest.raises(BudgetExceeded) as refused:
            series.publish(time, COUNTS, late=True)
        assert str(refused.value) == (
            f"time={time} of stream 'visits' is late, and the windows of 3 steps that hold it have nothing left for it "
            "beside the steps around it. Nothing was drawn or recorded. What a past window has spent never comes free: "
            "leave the step out, or close it with skip(time, late=True)."
        )
    assert budgets(series) == {0: 1, 5: 1}
    series.publish(9, COUNTS)
    with pytest.raises(BudgetExceeded):
        series.publish(7, COUNTS, late=True)  # shares 5–7 with one and 7–9 with the other
    series.publish(13, COUNTS)
    assert series.publish(10, COUNTS, 0.0, late=True) is None  # weighs nothing, and is closed
    assert series.history()[3].time == 10


def test_offline_gives_a_late_step_what_those_after_it_left_of_its_part(tmp_path):
    weights = [1, 1, 1, 1, 1, 1]
    series = stream(tmp_path, "offline", weights=weights)
    plan = [Fraction(value) for value in allocate(weights, window=3, epsilon=1).tolist()]
    series.publish(0, COUNTS)
    series.publish(2, COUNTS)  # has taken what step 1 freed
    spent = budgets(series)
    assert spent[0] == plan[0] and spent[2] > plan[2]
    room = 1 - spent[0] - spent[2]
    if room > Fraction(1, 10**6):
        assert series.publish(1, COUNTS, late=True).guarantee.epsilon == min(plan[1], room)
    else:
        with pytest.raises(BudgetExceeded):
            series.publish(1, COUNTS, late=True)
    for time in (3, 4, 5):
        series.publish(time, COUNTS)
    assert fullest(budgets(series), 3) <= 1


def test_online_gives_a_late_step_no_more_than_on_time(tmp_path):
    (tmp_path / "on time").mkdir()
    on_time = stream(tmp_path / "on time", "online")
    for time in range(3):
        on_time.publish(time, COUNTS)
    series = stream(tmp_path, "online")
    series.publish(0, COUNTS)
    series.publish(9, COUNTS)  # far away: nothing was taken
    assert series.publish(1, COUNTS, late=True).guarantee.epsilon == budgets(on_time)[1]
    series.publish(10, COUNTS)
    series.publish(12, COUNTS)
    left = 1 - budgets(series)[10] - budgets(series)[12]
    release = series.publish(11, COUNTS, late=True)
    assert release.guarantee.epsilon <= left
    assert fullest(budgets(series), 3) <= 1


def test_a_late_step_that_is_topped_up_gets_the_online_budget_at_once(tmp_path):
    (tmp_path / "online").mkdir()
    online = stream(tmp_path / "online", "online")
    series = stream(tmp_path, "top-up")
    for one in (online, series):
        one.publish(0, COUNTS)
        one.publish(9, COUNTS)
        one.publish(1, COUNTS, late=True)
    assert budgets(series)[1] == pytest.approx(budgets(online)[1], rel=1e-9)
    for time in range(10, 19):
        series.publish(time, COUNTS)
    series.top_up(ended=True)
    assert fullest(budgets(series), 3) <= 1


def test_late_steps_of_clock_time(tmp_path):
    begin = datetime(2026, 3, 1, 8)
    series = hourly(tmp_path)
    series.publish(begin, COUNTS)
    series.publish(begin + 5 * HOUR, COUNTS)
    assert series.due(until=begin + 7 * HOUR - HOUR / 2) == tuple(begin + k * HOUR for k in (1, 2, 3, 4))
    assert series.publish(begin + 2 * HOUR, COUNTS, late=True) is not None
    assert series.due(until=begin + 7 * HOUR) == tuple(begin + k * HOUR for k in (1, 3, 4, 6))


def test_the_noise_of_a_late_step_is_that_of_its_budget(tmp_path):
    series = stream(tmp_path)
    series.publish(0, COUNTS)
    series.publish(5, COUNTS)
    late = series.publish(3, COUNTS, late=True)
    assert late.guarantee == series.release(5).guarantee
    assert late.mechanism.epsilon == series.release(5).mechanism.epsilon


# ------------------------------------------------------------------ never too much

NAMES = ["even", "sample", "offline", "online", "top-up"]


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_window_is_ever_above_epsilon_in_whatever_order(tmp_path_factory, data):
    """Steps published, skipped, passed over, published late and raised in a random order, by two publishers in turn
    that may divide otherwise: no window spends more than ε, exactly, after any of it. And nothing is refused on time.
    """
    folder = tmp_path_factory.mktemp("stream")
    window = data.draw(st.integers(1, 5))
    epsilon = data.draw(st.sampled_from(["1", "0.1", "2/3", "0.7"]))
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2))
    known = {"weights": [1, 2, 0.5, 0, 3] * 20}
    made = [stream(folder, n, window=window, epsilon=epsilon, **(known if n == "offline" else {})) for n in names]
    last, done = -1, 0
    for _ in range(data.draw(st.integers(4, 14))):
        which = data.draw(st.integers(0, len(made) - 1))
        series, name = made[which], names[which]
        weight = None if name == "offline" else data.draw(st.sampled_from([0, 1, 1, 0.25, 3]))
        holes = [time for time in series.due(until=last + 1, start=0) if time < last]
        if holes and data.draw(st.integers(0, 2)):
            outcome = series.run(data.draw(st.sampled_from(holes)), lambda: COUNTS, weight, late=True)
            assert outcome.status in ("published", "skipped", "refused")
            done += outcome.status == "published"
        else:
            last += data.draw(st.sampled_from([1, 2, 3, 7]))
            if last > 99:
                break
            assert series.run(last, lambda: COUNTS, weight).status in ("published", "skipped")
        if name == "top-up" and data.draw(st.integers(0, 3)) == 0:
            series.top_up(ended=data.draw(st.booleans()))
        assert fullest(budgets(series), window) <= Fraction(epsilon)
    for record in made[0].history():
        if record.release_id is not None and record.path is not None:
            assert sf.load(record.path).guarantee.epsilon <= record.epsilon


# ------------------------------------------------------------------ refusals


def test_a_step_that_was_passed_over_is_published_late_or_not_at_all(tmp_path):
    series = stream(tmp_path)
    series.publish(0, COUNTS)
    series.publish(2, COUNTS)
    for refused_call in (lambda: series.publish(1, COUNTS), lambda: series.skip(1), lambda: series.run(1, list)):
        with pytest.raises(InvalidInput) as refused:
            refused_call()
        assert str(refused.value) == (
            "time=1 is not later than 2, the last step of stream 'visits', and was passed over. Nothing was drawn or "
            "recorded. Use a later one; or give late=True, which publishes it where every window that holds it has "
            "room."
        )
    assert len(series.history()) == 2


def test_nothing_is_published_before_the_first_step(tmp_path):
    series = stream(tmp_path)
    series.publish(3, COUNTS)
    with pytest.raises(InvalidInput) as refused:
        series.publish(2, COUNTS, late=True)
    assert str(refused.value) == (
        "time=2 lies before 3, the first step of stream 'visits', from which its steps are counted. Nothing was drawn "
        "or recorded. Use a later one."
    )


def test_a_late_step_may_be_closed(tmp_path):
    series = stream(tmp_path)
    series.publish(0, COUNTS)
    series.publish(2, COUNTS)
    assert series.due(until=3) == (1,)
    series.skip(1, late=True)
    assert series.due(until=3) == ()
    assert series.publish(1, COUNTS, late=True) is None


def test_a_new_stream_is_due_from_its_start_on(tmp_path):
    series = stream(tmp_path)
    with pytest.raises(InvalidInput) as refused:
        series.due(until=3)
    assert str(refused.value) == (
        "start is missing: stream 'visits' has no step yet, and when its first one begins is not read off the data. "
        "Nothing was drawn or recorded. Give start, a time that everybody may know."
    )
    assert series.due(until=3, start=1) == (1, 2)
    assert series.due(until=1, start=5) == ()


def test_a_late_step_that_the_ledger_forgot_is_not_published_again(tmp_path):
    """The last step stands in the older copy, too: the vault knows of more than that."""
    import shutil

    vault = sf.Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    series = stream(tmp_path, vault=vault)
    series.publish(0, COUNTS)
    series.publish(2, COUNTS)
    shutil.copy(tmp_path / "budget.db", tmp_path / "older.db")
    series.publish(1, COUNTS, late=True)
    for suffix in ("-wal", "-shm", "-journal"):
        (tmp_path / f"budget.db{suffix}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "older.db", tmp_path / "budget.db")
    with pytest.raises(sf.LedgerError, match="has forgotten steps that the vault knows of"):
        stream(tmp_path, vault=vault).publish(1, COUNTS, late=True)
