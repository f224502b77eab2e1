"""What a stream promises is set when it is opened, and every release charged to it must keep that promise."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sfumato.domain import Line
from sfumato.errors import InvalidInput, PolicyMismatch
from sfumato.ledger import Ledger, StreamAccount
from sfumato.policies import bounded, threshold, unbounded
from sfumato.promise import Window

LINE = Line(0, 1, cells=5)
POLICY = threshold(LINE, theta=1)


@pytest.fixture
def ledger(place: str) -> Ledger:
    return Ledger.create(place, epsilon=1)


@pytest.fixture
def stream(ledger: Ledger) -> StreamAccount:
    """ε = 1 in every 7 steps."""
    return ledger.stream("visits", epsilon=1, window=7, policy=POLICY)


# ------------------------------------------------------------------ opening


def test_a_stream_goes_on_when_it_is_opened_again(ledger: Ledger, stream: StreamAccount) -> None:
    stream.charge(1, 0.6, label="visits", release_id="r1")
    again = Ledger(ledger.place).stream("visits")
    assert (again.name, again.epsilon, again.window, again.policy) == ("visits", 1, Window.of(7), POLICY)
    assert (again.unit, again.max_per_entity) == ("record", None)
    assert again.remaining(2).epsilon == 0.4
    ledger.stream("visits", epsilon="1", window=Window.of(7), policy=POLICY, unit="record")


def test_a_bound_on_persons_makes_a_stream_about_persons(ledger: Ledger) -> None:
    ledger.stream("visits", epsilon=1, window=7, policy=POLICY, max_per_entity=3)
    again = ledger.stream("visits", unit="person", max_per_entity=3)
    assert (again.unit, again.max_per_entity) == ("person", 3)


@pytest.mark.parametrize(
    ("given_arguments", "missing"),
    [
        ({}, "epsilon, window and policy are"),
        ({"epsilon": 1}, "window and policy are"),
        ({"epsilon": 1, "policy": POLICY}, "window is"),
    ],
)
def test_a_new_stream_needs_its_promise(ledger: Ledger, given_arguments: dict[str, object], missing: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ledger.stream("visits", **given_arguments)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"{missing} missing: there is no stream 'visits' in account 'default' of '{ledger.place}' yet, and a new one "
        "needs its promise. Nothing was created. Open it as in ledger.stream('visits', epsilon=1.0, window=7, "
        "policy=policy)."
    )
    with pytest.raises(InvalidInput):
        ledger.stream("visits")


STAYS = "Nothing was changed. A promise once made stays: leave"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 2}, f"epsilon=2 differs from the 1 that every window of stream 'visits' holds. {STAYS} epsilon"),
        ({"window": 8}, f"window: stream 'visits' has windows of 7 steps, not of 8 steps. {STAYS} window"),
        (
            {"window": timedelta(days=7)},
            f"window: stream 'visits' has windows of 7 steps, not of 7 days. {STAYS} window",
        ),
        (
            {"max_per_entity": 3},
            "unit: stream 'visits' has the unit record, not person, at most 3 counted of each person. "
            f"{STAYS} unit and max_per_entity",
        ),
    ],
)
def test_a_stream_keeps_the_promise_it_was_opened_with(
    ledger: Ledger, stream: StreamAccount, change: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        ledger.stream("visits", **change)  # type: ignore[arg-type]
    assert str(caught.value) == f"{message} out to go on with it."
    assert ledger.stream("visits").epsilon == 1


def test_a_stream_keeps_its_policy(ledger: Ledger, stream: StreamAccount) -> None:
    with pytest.raises(PolicyMismatch) as caught:
        ledger.stream("visits", policy=bounded(LINE))
    assert str(caught.value) == (
        "policy: stream 'visits' was opened under another policy than the one given "
        f"({bounded(LINE).describe()}). {STAYS} policy out to go on with it."
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "name='' must be a non-empty string. Nothing was drawn or recorded."),
        ({"epsilon": -1}, "epsilon=-1 must be greater than zero. Nothing was drawn or recorded."),
        (
            {"policy": 1},
            "policy=int is not a policy. Nothing was drawn or recorded. Build one, such as "
            "sf.within(grid, delta=0.01).",
        ),
        (
            {"unit": "record", "max_per_entity": 2},
            "max_per_entity=2 belongs to an account of unit 'person'. Nothing was created. Leave it out, or use "
            "unit='person'.",
        ),
    ],
)
def test_what_makes_no_stream_is_refused(ledger: Ledger, change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"name": "visits", "epsilon": 1, "window": 7, "policy": POLICY}
    with pytest.raises(InvalidInput) as caught:
        ledger.stream(**(arguments | change))  # type: ignore[arg-type]
    assert str(caught.value) == message


# ------------------------------------------------------------------ what a release is


def test_a_release_that_hides_more_than_the_stream_promises_is_taken(stream: StreamAccount) -> None:
    receipt = stream.charge(1, 0.5, label="visits", release_id="r1", policy=threshold(LINE, theta=2))
    assert receipt.epsilon == 0.5


def test_a_release_that_hides_less_is_refused(ledger: Ledger) -> None:
    stream = ledger.stream("visits", epsilon=1, window=7, policy=bounded(LINE))
    with pytest.raises(InvalidInput) as caught:
        stream.charge(1, 0.1, label="visits", release_id="r1", policy=POLICY)
    assert str(caught.value) == (
        "policy, unit: a release under these costs 4 times its epsilon in stream 'visits', whose unit is record: one "
        "of its changes takes up to 4 steps of the release's. Nothing was drawn or recorded. Release under the policy "
        "and unit of the stream."
    )
    assert stream.entries() == ()


def test_a_stream_about_persons_takes_only_counts_that_bound_them(ledger: Ledger) -> None:
    stream = ledger.stream("visits", epsilon=1, window=7, policy=unbounded(LINE), max_per_entity=3)
    with pytest.raises(InvalidInput, match=r"^unit='record' without max_per_entity does not fit this account"):
        stream.charge(1, 0.1, label="visits", release_id="r1", unit="record")
    with pytest.raises(InvalidInput, match=r"^max_per_entity=2 does not fit this account"):
        stream.charge(1, 0.1, label="visits", release_id="r1", unit="person", max_per_entity=2)
    with pytest.raises(InvalidInput, match=r"^policy, unit: a release under these costs 3 times its epsilon"):
        stream.charge(1, 0.1, label="visits", release_id="r1", unit="record", max_per_entity=3)
    stream.charge(1, 0.1, label="visits", release_id="r1", max_per_entity=3)
    stream.charge(2, 0.1, label="visits", release_id="r2")


def test_a_stream_about_records_takes_an_epsilon_that_pays_for_a_record_in_the_place_of_another(ledger: Ledger) -> None:
    stream = ledger.stream("visits", epsilon=1, window=7, policy=unbounded(LINE))
    stream.charge(1, 0.1, label="visits", release_id="r1", max_per_entity=3)  # the guarantee's ε carries the factor
    with pytest.raises(InvalidInput, match=r"^policy, unit: a release under these costs 2 times its epsilon"):
        stream.charge(2, 0.1, label="visits", release_id="r2", unit="person", max_per_entity=3)
