"""The level counter of the ledger: a finer level costs the difference, and is charged and counted at once, once."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sfumato.domain import Line
from sfumato.errors import BudgetExceeded, InvalidInput
from sfumato.ledger import Ledger
from sfumato.policies import bounded, threshold
from sfumato.promise import Unit

LINE = Line(0, 1, cells=5)
POLICY = threshold(LINE, theta=1)


@pytest.fixture
def ledger(place: str) -> Ledger:
    """An account of 10 with one release at ε = 1."""
    ledger = Ledger.create(place, epsilon=10)
    ledger.charge(1, POLICY, label="visits", release_id="r1")
    return ledger


def _raise(ledger: Ledger, level: int, epsilon: object, name: str = "r1") -> None:
    ledger.raise_level(name, level=level, epsilon=epsilon, label="finer")  # type: ignore[arg-type]


# ------------------------------------------------------------------ what a level costs


def test_all_levels_together_cost_the_last_one(ledger: Ledger) -> None:
    assert ledger.level("r1") == (0, 1)
    receipt = ledger.raise_level("r1", level=1, epsilon=1.5, label="for the press")
    assert (receipt.entry.epsilon, receipt.entry.cost, receipt.remaining) == (0.5, 0.5, 8.5)
    ledger.raise_level("r1", level=2, epsilon="10/3", label="for the ministry")
    assert ledger.level("r1") == (2, Fraction(10, 3))
    assert ledger.spent == Fraction(10, 3)
    entries = ledger.history()[1:]
    assert [entry.label for entry in entries] == ["visits", "for the press", "for the ministry"]
    assert [entry.epsilon for entry in entries] == [1, 0.5, Fraction(11, 6)]
    assert {(e.kind, e.release_id, e.policy, e.unit, e.rate) for e in entries} == {
        ("release", "r1", POLICY.describe(), Unit("record"), 1)
    }


def test_a_level_is_charged_at_the_rate_of_the_release(place: str) -> None:
    ledger = Ledger.create(place, epsilon=10, policy=bounded(LINE))
    first = ledger.charge(0.5, POLICY, label="visits", release_id="r1")
    assert (first.entry.rate, first.entry.cost) == (4, 2)
    assert ledger.quote_level("r1", epsilon=0.75) == 1
    receipt = ledger.raise_level("r1", level=1, epsilon=0.75, label="finer")
    assert (receipt.entry.rate, receipt.entry.cost) == (4, 1)
    assert ledger.spent == 3 == 4 * 0.75


def test_a_quote_records_nothing(ledger: Ledger) -> None:
    before = ledger.history()
    assert ledger.quote_level("r1", epsilon=4) == 3
    assert (ledger.history(), ledger.level("r1")) == (before, (0, 1))


def test_releases_and_accounts_are_counted_apart(ledger: Ledger, place: str) -> None:
    ledger.charge(1, POLICY, label="visits", release_id="r2")
    other = Ledger.create(place, epsilon=5, dataset="trips")
    other.charge(2, POLICY, label="trips", release_id="r1")
    _raise(ledger, 1, 2)
    _raise(other, 1, 3)
    _raise(other, 2, 4)
    assert (ledger.level("r1"), ledger.level("r2"), other.level("r1")) == ((1, 2), (0, 1), (2, 4))
    assert (ledger.spent, other.spent) == (3, 4)


def test_a_release_that_was_never_charged_has_no_level(ledger: Ledger) -> None:
    assert ledger.level("unknown") is None


def test_a_level_outlives_the_program(ledger: Ledger, place: str) -> None:
    _raise(ledger, 1, 2)
    assert Ledger(place).level("r1") == (1, 2)


# ------------------------------------------------------------------ refusals


def _refusal(kind: type[Exception], ledger: Ledger, *arguments: object) -> str:
    """The message with which a level is refused; nothing is recorded."""
    before = ledger.history(), ledger.spent
    with pytest.raises(kind) as caught:
        _raise(ledger, *arguments)  # type: ignore[arg-type]
    assert (ledger.history(), ledger.spent) == before
    return str(caught.value)


@pytest.mark.parametrize("level", [0, 1, 3, -1, True, "2"])
def test_only_the_next_level_is_counted(ledger: Ledger, level: object) -> None:
    """Level 1 again is what an older state in the vault would ask for."""
    _raise(ledger, 1, 2)
    assert _refusal(InvalidInput, ledger, level, 3) == (
        f"level={level!r} is not the next level of release 'r1', which is at level 1 with epsilon=2. Nothing was drawn "
        "or recorded. Only level 2 can follow: what was made from an older state would be a second noise."
    )
    assert ledger.level("r1") == (1, 2)


@pytest.mark.parametrize("epsilon", [1, 0.5])
def test_a_level_must_raise_epsilon(ledger: Ledger, epsilon: float) -> None:
    message = (
        f"epsilon={epsilon} does not raise release 'r1', which is at level 0 with epsilon=1. Nothing was drawn or "
        "recorded. Use more than 1; for a coarser level, use the release that was made at it."
    )
    assert _refusal(InvalidInput, ledger, 1, epsilon) == message
    with pytest.raises(InvalidInput) as caught:
        ledger.quote_level("r1", epsilon=epsilon)
    assert str(caught.value) == message


def test_an_unknown_release_is_refused(ledger: Ledger, place: str) -> None:
    message = (
        f"release_id='r9' is not known to account 'default' of '{place}': no release was charged under it. Nothing was "
        "drawn or recorded. Use the ledger that the release was charged to."
    )
    assert _refusal(InvalidInput, ledger, 1, 2, "r9") == message
    with pytest.raises(InvalidInput) as caught:
        ledger.quote_level("r9", epsilon=2)
    assert str(caught.value) == message


def test_an_id_of_several_charges_is_refused(ledger: Ledger) -> None:
    ledger.charge(1, POLICY, label="again", release_id="r1")
    message = (
        "release_id='r1' names 2 charges of account 'default', so it is not clear which of them is meant. Nothing was "
        "drawn or recorded. Charge every release under an id of its own."
    )
    assert _refusal(InvalidInput, ledger, 1, 2) == message
    with pytest.raises(InvalidInput) as caught:
        ledger.level("r1")
    assert str(caught.value) == message


def test_a_level_that_does_not_fit_is_refused(ledger: Ledger, place: str) -> None:
    ledger.charge(8.5, POLICY, label="much", release_id="r2")
    message = (
        "epsilon=2 is too much: raising release 'r1' from 1 costs 1, which exceeds the 0.5 left of 10 in account "
        f"'default' of '{place}'. Nothing was drawn or recorded. Use at most 1.5, or raise the total with raise_cap, "
        "which weakens the promise."
    )
    assert _refusal(BudgetExceeded, ledger, 1, 2) == message
    with pytest.raises(BudgetExceeded) as caught:
        ledger.quote_level("r1", epsilon=2)
    assert str(caught.value) == message
    _raise(ledger, 1, 1.5)
    assert _refusal(BudgetExceeded, ledger, 2, 1.6) == (
        "epsilon=1.6 is too much: raising release 'r1' from 1.5 costs 0.1, which exceeds the 0 left of 10 in account "
        f"'default' of '{place}'. Nothing was drawn or recorded. Raise the total with raise_cap, which weakens the "
        "promise."
    )


def test_a_level_that_does_not_fit_at_an_exchange_rate_names_the_rate(place: str) -> None:
    ledger = Ledger.create(place, epsilon=3, policy=bounded(LINE))
    ledger.charge(0.5, POLICY, label="visits", release_id="r1")
    assert _refusal(BudgetExceeded, ledger, 1, 1) == (
        "epsilon=1 is too much: raising release 'r1' from 0.5 costs 2 (4 × 0.5), which exceeds the 1 left of 3 in "
        f"account 'default' of '{place}'. Nothing was drawn or recorded. Use at most 0.75, or raise the total "
        "with raise_cap, which weakens the promise."
    )


@pytest.mark.parametrize(("name", "value"), [("release_id", ""), ("label", " "), ("label", None)])
def test_words_are_needed(ledger: Ledger, name: str, value: object) -> None:
    arguments = {"release_id": "r1", "label": "finer"} | {name: value}
    with pytest.raises(InvalidInput) as caught:
        ledger.raise_level(level=1, epsilon=2, **arguments)  # type: ignore[arg-type]
    assert str(caught.value) == f"{name}={value!r} must be a non-empty string. Nothing was drawn or recorded."
    assert ledger.level("r1") == (0, 1)


def test_an_epsilon_that_is_not_positive_is_refused(ledger: Ledger) -> None:
    assert _refusal(InvalidInput, ledger, 1, 0) == (
        "epsilon=0 must be greater than zero. Nothing was drawn or recorded."
    )


def test_a_level_that_nobody_can_count_to_has_no_stamp(ledger: Ledger) -> None:
    assert ledger.stamp("r1", 2**70) is None
