"""Late charges: a time that was passed over is charged to its own windows, and nothing that was mentioned changes."""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction

import pytest

from sfumato.domain import Line
from sfumato.errors import BudgetExceeded, InvalidInput
from sfumato.ledger import Ledger, StreamAccount
from sfumato.ledger.steps import tightest
from sfumato.policies import threshold
from sfumato.promise import Epsilon, Window

POLICY = threshold(Line(0, 1, cells=5), theta=1)


@pytest.fixture
def stream(place: str) -> StreamAccount:
    """ε = 1 in every 3 steps; step 2 was passed over, step 4 skipped."""
    made = Ledger.create(place, epsilon=1).stream("visits", epsilon=1, window=3, policy=POLICY)
    for time, epsilon in ((0, "0.5"), (1, "0.25"), (3, "0.375")):
        made.charge(time, epsilon, label="visits", release_id=f"r{time}")
    made.skip(4)
    return made


def _late(stream: StreamAccount, time: object, epsilon: object) -> Epsilon:
    return stream.charge(time, epsilon, label="visits", release_id="late", late=True).remaining  # type: ignore[arg-type]


def test_a_late_charge_has_to_fit_into_every_window_that_holds_it(stream: StreamAccount) -> None:
    """By hand: 0–2 has 0.75 spent, 1–3 has 0.625, 2–4 has 0.375; the first of them decides."""
    before = stream.entries()
    with pytest.raises(BudgetExceeded) as refused:
        _late(stream, 2, "0.26")
    assert str(refused.value) == (
        "epsilon=0.26 for step 2 of stream 'visits', which is late, exceeds the 0.25 left in the window of 3 steps "
        "that ends at step 2. Nothing was drawn or recorded. Use at most 0.25: what a past window has spent never "
        "comes free."
    )
    assert stream.entries() == before
    assert _late(stream, 2, "0.25") == 0
    assert [(step.time, step.epsilon) for step in stream.entries()] == [
        (0, Fraction(1, 2)), (1, Fraction(1, 4)), (2, Fraction(1, 4)), (3, Fraction(3, 8)), (4, 0)
    ]  # fmt: skip


def test_what_comes_after_a_late_charge_has_what_is_left(stream: StreamAccount) -> None:
    _late(stream, 2, "0.25")
    assert stream.remaining(5).epsilon == Fraction(5, 8)
    stream.charge(5, "0.625", label="visits", release_id="r5")
    with pytest.raises(BudgetExceeded, match=r"exceeds the 0 left in the window of 3 steps that ends at step 5"):
        stream.raise_step(3, "0.5", level=1, label="finer")


@pytest.mark.parametrize("time", [0, 3, 4])
def test_what_was_mentioned_is_not_charged_late(stream: StreamAccount, time: int) -> None:
    before = stream.entries()
    for refused_call in (lambda: _late(stream, time, "0.1"), lambda: stream.skip(time, late=True)):
        with pytest.raises(InvalidInput) as refused:
            refused_call()
        assert str(refused.value) == (
            f"step {time} of stream 'visits' was published or skipped already, and late=True is for one that was never "
            "mentioned. Nothing was drawn or recorded. Raise a past release with raise_step."
        )
    assert stream.entries() == before


def test_without_being_called_late_it_is_refused(stream: StreamAccount) -> None:
    with pytest.raises(InvalidInput, match=r"may be charged with late=True, where its windows have room\."):
        stream.charge(2, "0.1", label="visits", release_id="r2")
    with pytest.raises(InvalidInput):
        stream.skip(2)
    assert len(stream) == 4


def test_a_new_step_that_is_called_late_is_an_ordinary_one(stream: StreamAccount) -> None:
    assert _late(stream, 6, "0.5") == Fraction(1, 2)
    assert stream.last().time == 6  # type: ignore[union-attr]


def test_a_late_skip_closes_a_time(stream: StreamAccount) -> None:
    stream.skip(2, late=True)
    with pytest.raises(InvalidInput, match="was published or skipped already"):
        _late(stream, 2, "0.1")


def test_a_full_window_says_that_nothing_comes_free(stream: StreamAccount) -> None:
    stream.raise_step(1, "0.5", level=1, label="finer")
    with pytest.raises(BudgetExceeded) as refused:
        _late(stream, 2, "0.1")
    assert str(refused.value).endswith(
        "exceeds the 0 left in the window of 3 steps that ends at step 2. Nothing was drawn or recorded. Leave the "
        "step out: what a past window has spent never comes free."
    )


def test_windows_of_clock_time_are_half_open_for_late_charges(place: str) -> None:
    noon, hour = datetime(2026, 3, 1, 12), timedelta(hours=1)
    stream = Ledger.create(place, epsilon=1).stream("hours", epsilon=1, window=24 * hour, policy=POLICY)
    for time in (noon, noon + 30 * hour):
        stream.charge(time, 1, label="visits", release_id="r")
    with pytest.raises(BudgetExceeded, match="that ends at 2026-03-02 11:00:00"):
        _late(stream, noon + 23 * hour, "0.1")
    with pytest.raises(BudgetExceeded, match="that ends at 2026-03-02 18:00:00"):
        _late(stream, noon + 24 * hour, "0.1")
    assert len(stream) == 2


def test_a_stream_that_is_opened_again_finds_its_late_charges(stream: StreamAccount, place: str) -> None:
    """Steps that come late are added up with the others, and one that is missing would be noticed."""
    known = stream.reached[1]
    _late(stream, 2, "0.25")
    assert known is not None and known < stream.reached[1] < 5  # type: ignore[operator]  # seen by a vault, too
    again = Ledger(place).stream("visits")
    assert again.entries() == stream.entries()
    assert again.remaining(5).epsilon == stream.remaining(5).epsilon


def test_the_fullest_window_is_looked_for_at_the_time_itself() -> None:
    spent = [(0, Epsilon("0.5")), (1, Epsilon("0.4"))]
    assert tightest(spent, 2, Window.of(3), Fraction(1)) == (2, Fraction(1, 10))
    assert tightest(spent, 3, Window.of(3), Fraction(1)) == (3, Fraction(3, 5))
    assert tightest([], 3, Window.of(3), Fraction(1)) == (3, Fraction(1))
