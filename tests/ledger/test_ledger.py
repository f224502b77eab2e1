"""The ledger's rules: exact sums, one account a dataset, every refusal with its whole message and nothing recorded."""

from __future__ import annotations

import json
import pickle
import sqlite3
from datetime import UTC, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.domain import Line
from sfumato.errors import BudgetExceeded, InvalidInput, LedgerError, PolicyMismatch
from sfumato.ledger import Ledger, Receipt
from sfumato.policies import bounded, threshold, unbounded
from sfumato.promise import Unit

LINE = Line(0, 1, cells=5)
POLICY = threshold(LINE, theta=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


def _charge(ledger: Ledger, epsilon: float | str | Fraction, **more: object) -> Receipt:
    arguments = {"policy": POLICY, "label": "visits", "release_id": "r1"} | more
    return ledger.charge(epsilon, **arguments)  # type: ignore[arg-type]


# ------------------------------------------------------------------ sums


def test_ten_tenths_fit_in_one_and_the_eleventh_is_refused(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1.0)
    for number in range(10):
        receipt = _charge(ledger, 0.1, release_id=f"r{number}")
        assert receipt.remaining == Fraction(9 - number, 10)
    before = ledger.history()
    with pytest.raises(BudgetExceeded) as caught:
        _charge(ledger, 0.1)
    assert str(caught.value) == (
        f"epsilon=0.1 exceeds the 0 left of 1 in account 'default' of '{place}'. Nothing was drawn or "
        "recorded. Raise the total with raise_cap, which weakens the promise."
    )
    assert ledger.history() == before
    assert (ledger.spent, ledger.remaining, ledger.total) == (1, 0, 1)


def test_overspending_says_what_is_left_and_records_nothing(place: str) -> None:
    ledger = Ledger.create(place, epsilon="1/3")
    _charge(ledger, "0.3")
    before = ledger.history()
    with pytest.raises(BudgetExceeded) as caught:
        _charge(ledger, 0.25)
    assert str(caught.value) == (
        f"epsilon=0.25 exceeds the 1/30 left of 1/3 in account 'default' of '{place}'. Nothing was drawn "
        "or recorded. Use at most 1/30, or raise the total with raise_cap, which weakens the promise."
    )
    assert ledger.history() == before
    assert ledger.remaining == Fraction(1, 30)


def test_overspending_at_an_exchange_rate_names_the_rate(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1, policy=bounded(LINE))
    before = ledger.history()
    with pytest.raises(BudgetExceeded) as caught:
        _charge(ledger, 0.3)
    assert str(caught.value) == (
        "epsilon=0.3 costs 1.2 here (4 × 0.3: one step of the account's policy and unit takes up to 4 "
        f"steps of the release's), which exceeds the 1 left of 1 in account 'default' of '{place}'. "
        "Nothing was drawn or recorded. Use at most 0.25, or raise the total with raise_cap, which "
        "weakens the promise."
    )
    assert ledger.history() == before
    assert _charge(ledger, 0.25).remaining == 0


def test_a_receipt_and_the_history_say_what_was_charged(place: str) -> None:
    ledger = Ledger.create(place, epsilon=2, policy=bounded(LINE))
    receipt = _charge(ledger, 0.25, label="first map", release_id="abc", unit="person", max_per_entity=2)
    opened, charged = ledger.history()
    assert (opened.kind, opened.label, opened.epsilon, opened.cost) == ("open", "account opened", 2, 0)
    assert charged == receipt.entry
    assert (charged.kind, charged.label, charged.release_id) == ("release", "first map", "abc")
    assert (charged.epsilon, charged.rate, charged.cost) == (0.25, 4, 1)
    assert charged.policy == POLICY.describe()
    assert charged.unit == Unit("person", 2)
    assert charged.time.tzinfo is UTC
    assert abs(charged.time - opened.time) < timedelta(minutes=5)
    assert (receipt.dataset, receipt.remaining) == ("default", 1)


def test_a_quote_is_what_a_charge_costs_and_records_nothing(place: str) -> None:
    ledger = Ledger.create(place, epsilon=2, policy=bounded(LINE))
    before = ledger.history()
    assert ledger.quote(0.25, POLICY) == 1
    assert ledger.history() == before
    assert ledger.unit is None


def test_a_ledger_prints_where_it_stands(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    _charge(ledger, 0.3)
    assert str(ledger) == f"Account 'default' of '{place}': 0.3 of 1 spent, 0.7 left"
    assert repr(ledger) == f"Ledger({place!r}, dataset='default')"


# ------------------------------------------------------------------ accounts


def test_an_account_takes_policy_and_unit_of_its_first_release(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    assert ledger.policy is None
    assert ledger.unit is None
    _charge(ledger, 0.1, unit="person", max_per_entity=2)
    assert ledger.policy == POLICY
    assert ledger.unit == Unit("person", 2)
    assert _charge(ledger, 0.1, unit="record", max_per_entity=2).entry.rate == 2


def test_a_record_account_forgets_the_bound_of_its_first_release(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    _charge(ledger, 0.1, max_per_entity=3)
    assert ledger.unit == Unit("record")


def test_reopening_continues_the_account(place: str) -> None:
    _charge(Ledger.create(place, epsilon=1), 0.3)
    for again in (Ledger(place), Ledger(place, 1.0), Ledger(place, epsilon="1", policy=POLICY, unit="record")):
        assert (again.total, again.spent, again.remaining) == (1, 0.3, 0.7)


def test_an_open_policy_can_be_set_when_reopening(place: str) -> None:
    Ledger.create(place, epsilon=1)
    assert Ledger(place, policy=POLICY, max_per_entity=2).policy == POLICY
    assert Ledger(place).unit == Unit("person", 2)


def test_datasets_have_budgets_of_their_own(place: str) -> None:
    visits, trips = Ledger.create(place, epsilon=1, dataset="visits"), Ledger.create(place, epsilon=2, dataset="trips")
    _charge(visits, 1)
    assert (visits.remaining, trips.remaining) == (0, 2)
    assert [(a.dataset, a.total, a.spent, a.remaining) for a in trips.accounts()] == [
        ("visits", 1, 1, 0),
        ("trips", 2, 0, 2),
    ]


def test_a_cap_is_raised_on_the_record(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    _charge(ledger, 1)
    ledger.raise_cap(1.5)
    assert (ledger.total, ledger.remaining) == (1.5, 0.5)
    last = ledger.history()[-1]
    assert (last.kind, last.label, last.epsilon, last.cost) == ("raise", "total raised", 1.5, 0)
    assert Ledger(place, epsilon=1.5).remaining == 0.5


def test_a_relative_path_keeps_its_meaning_when_the_directory_changes(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("budget.db", epsilon=1)
    monkeypatch.chdir("/")
    assert ledger.remaining == 1
    assert path.exists()


def test_a_pickled_ledger_is_the_same_account(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    _charge(pickle.loads(pickle.dumps(ledger)), 0.25)
    assert ledger.remaining == 0.75


@pytest.mark.parametrize("name", ["bud?get#1.db", "bud get%20.db", "büdget'.db"])
def test_paths_with_unusual_characters_work(tmp_path: Path, name: str) -> None:
    Ledger.create(tmp_path / name, epsilon=1)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert Ledger(tmp_path / name).remaining == 1


# ------------------------------------------------------------------ refusals


def test_a_new_ledger_needs_its_total(path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        Ledger(path)
    assert str(caught.value) == (
        f"There is no ledger '{path}'. Nothing was created, drawn or recorded. Check the path; a new ledger is made "
        "once, with its total: sf.Ledger.create('budget.db', epsilon=1.0), or sfumato ledger create."
    )
    assert not path.exists()


def test_a_new_account_in_an_old_ledger_needs_its_total(place: str) -> None:
    Ledger.create(place, epsilon=1)
    name = place if "://" in place else Path(place).name
    with pytest.raises(InvalidInput) as caught:
        Ledger(place, dataset="trips")
    assert str(caught.value) == (
        f"There is no account 'trips' in the ledger '{place}'. Nothing was created, drawn or recorded. Its accounts "
        "are 'default'. Name one that is there; a new account is made once, with its total: "
        f"sf.Ledger.create('{name}', dataset='trips', epsilon=1.0), or sfumato ledger create."
    )
    assert len(Ledger(place).accounts()) == 1


@pytest.mark.parametrize("epsilon", [2, 0.5])
def test_another_total_is_refused(place: str, epsilon: float) -> None:
    Ledger.create(place, epsilon=1)
    with pytest.raises(InvalidInput) as caught:
        Ledger(place, epsilon=epsilon)
    assert str(caught.value) == (
        f"epsilon={epsilon} differs from the total of 1 that account 'default' of '{place}' has. Nothing "
        "was changed. Leave epsilon out to go on with 1; to raise it, open the ledger and call "
        "raise_cap."
    )
    assert Ledger(place).total == 1


def test_a_cap_is_never_lowered(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    with pytest.raises(InvalidInput) as caught:
        ledger.raise_cap(1.0)
    assert str(caught.value) == (
        "epsilon=1 must be greater than the total of 1 that account 'default' has. Nothing was changed. "
        "A total can only be raised; to spend less, charge less."
    )
    assert len(ledger.history()) == 1


def test_another_policy_is_refused_when_opening(place: str) -> None:
    Ledger.create(place, epsilon=1, policy=POLICY)
    with pytest.raises(PolicyMismatch) as caught:
        Ledger(place, policy=bounded(LINE))
    assert str(caught.value) == (
        f"policy: account 'default' of '{place}' was opened under another policy than the one given "
        f"({bounded(LINE).describe()}). Nothing was changed. Leave policy out: releases under other "
        "policies are charged at their exchange rate."
    )
    assert Ledger(place).policy == POLICY


def test_another_unit_is_refused_when_opening(place: str) -> None:
    Ledger.create(place, epsilon=1, unit="person", max_per_entity=2)
    with pytest.raises(InvalidInput) as caught:
        Ledger(place, unit="record")
    assert str(caught.value) == (
        f"unit: account 'default' of '{place}' has the unit person, at most 2 counted of each person, not "
        "record. Nothing was changed. Leave unit and max_per_entity out to go on with it."
    )


def test_a_bound_is_refused_for_a_record_account(path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        Ledger.create(path, epsilon=1, unit="record", max_per_entity=2)
    assert str(caught.value) == (
        "max_per_entity=2 belongs to an account of unit 'person'. Nothing was created. Leave it out, or "
        "use unit='person'."
    )
    assert not path.exists()


def test_a_person_needs_a_bound(path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        Ledger.create(path, epsilon=1, unit="person")
    assert str(caught.value) == (
        "unit='person' needs max_per_entity, the largest number of records counted of one person. Pass "
        "max_per_entity=1 or more, or use unit='record'."
    )
    assert not path.exists()


def test_an_unknown_unit_is_refused(place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        _charge(Ledger.create(place, epsilon=1), 0.1, unit="household")
    assert str(caught.value) == "unit='household' is not known. Use 'record' or 'person'."


def test_releases_from_seeded_randomness_are_refused(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    with pytest.raises(InvalidInput) as caught:
        _charge(ledger, 0.1, private=False)
    assert str(caught.value) == (
        "A release made with seeded randomness is not private and cannot be charged to a ledger. "
        "Nothing was drawn or recorded. Publish it without a ledger, or use the default randomness."
    )
    assert len(ledger.history()) == 1


def test_a_release_that_cannot_cover_the_account_is_refused_and_changes_nothing(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1, policy=unbounded(LINE))
    before = ledger.history()
    with pytest.raises(PolicyMismatch):
        _charge(ledger, 0.1)
    assert ledger.history() == before
    assert ledger.unit is None


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "much", True])
def test_an_epsilon_that_is_no_positive_number_is_refused(path: Path, epsilon: float) -> None:
    ledger = Ledger.create(path, epsilon=1)
    with pytest.raises(InvalidInput, match=r"^epsilon="):
        _charge(ledger, epsilon)
    with pytest.raises(InvalidInput, match=r"^epsilon="):
        ledger.raise_cap(epsilon)
    with pytest.raises(InvalidInput, match=r"^epsilon="):
        Ledger.create(path.with_name("new.db"), epsilon=epsilon)
    assert len(ledger.history()) == 1
    assert not path.with_name("new.db").exists()


def test_what_is_no_policy_is_refused(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    for attempt in (
        lambda: _charge(ledger, 0.1, policy="within"),
        lambda: ledger.quote(0.1, "within"),
        lambda: Ledger(place, policy="within"),
    ):
        with pytest.raises(InvalidInput) as caught:
            attempt()
        assert str(caught.value) == (
            "policy=str is not a policy. Nothing was drawn or recorded. Build one, such as sf.within(grid, delta=0.01)."
        )
    assert len(ledger.history()) == 1


@pytest.mark.parametrize("name", ["label", "release_id"])
@pytest.mark.parametrize("value", ["", "  ", None, 7])
def test_names_must_be_words(place: str, name: str, value: object) -> None:
    ledger = Ledger.create(place, epsilon=1)
    with pytest.raises(InvalidInput) as caught:
        _charge(ledger, 0.1, **{name: value})
    assert str(caught.value) == f"{name}={value!r} must be a non-empty string. Nothing was drawn or recorded."
    assert len(ledger.history()) == 1


@pytest.mark.parametrize("epsilon", [10**5000, Fraction(1, 10**5000), "1e5000"], ids=["large", "small", "text"])
def test_numbers_too_long_to_be_kept_are_refused(place: str, epsilon: int | Fraction | str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    with pytest.raises(InvalidInput) as caught:
        _charge(ledger, epsilon)  # type: ignore[arg-type]
    assert str(caught.value) == "epsilon has more than 8192 bits. Use a rounder number, of a few digits."
    with pytest.raises(InvalidInput) as caught:
        _charge(ledger, 0.1, unit="person", max_per_entity=2**70)
    assert str(caught.value) == f"max_per_entity is larger than {2**63 - 1}. Use a smaller whole number."
    assert len(ledger.history()) == 1


@pytest.mark.parametrize("value", ["vis\0its", "vis\ud800its"])
def test_names_must_be_text_that_every_database_keeps(place: str, value: str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    with pytest.raises(InvalidInput) as caught:
        _charge(ledger, 0.1, label=value)
    assert str(caught.value) == (
        f"label={value!r} must be text without NUL characters and lone surrogates. Nothing was drawn or recorded."
    )
    assert len(ledger.history()) == 1


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_a_ledger_in_memory_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Ledger.create(path, epsilon=1)
    assert str(caught.value) == (
        f"path={path!r} is not a file. A ledger must outlive the program. Give the path of a file, such as 'budget.db'."
    )


def test_an_account_that_vanished_with_its_file_is_noticed(path: Path) -> None:
    ledger = Ledger.create(path, epsilon=1)
    path.unlink()
    Ledger.create(path, epsilon=1, dataset="other")
    with pytest.raises(LedgerError) as caught:
        _charge(ledger, 0.1)
    assert str(caught.value) == (
        f"'{path}' has no account 'default' any more: the file was replaced. Nothing was drawn or "
        "recorded. Restore the ledger."
    )


# ------------------------------------------------------------------ what is in the file


def test_the_file_holds_no_column_for_private_values(path: Path) -> None:
    _charge(Ledger.create(path, epsilon=1), 0.1)
    connection = sqlite3.connect(path)
    columns = {
        table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        for table in (
            "account",
            "entry",
            "level",
            "stream",
            "step",
            "stamp",
            "tally",
            "identity",
            "stream_sum",
            "stretch",
        )
    }
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    (spent,) = connection.execute("SELECT spent FROM account").fetchone()
    (spec,) = connection.execute("SELECT policy FROM account").fetchone()
    connection.close()
    assert tables == {*columns, "sqlite_sequence"}
    terms = ["policy", "fingerprint", "unit", "max_per_entity"]
    relation = ["relation", "relation_digest"]
    assert columns["account"] == ["id", "dataset", "total", "spent", *terms, "opened", *relation]
    assert columns["entry"] == [
        *("id", "account", "time", "kind", "label", "release_id"),
        *(*terms, "epsilon", "rate", "cost"),
    ]
    assert columns["level"] == ["account", "release_id", "level", "epsilon", "charge", "entry"]
    assert columns["stream"] == [
        *("id", "account", "name", "epsilon", "window_kind", "window_size"),
        *(*terms, "clock", "opened"),
    ]
    told = ["label", "release_id", "recorded", "weight", "floor"]  # public: what the caller said of the step
    assert columns["step"] == ["stream", "time", "level", "epsilon", *told]
    assert columns["tally"] == ["account", "mark", "entry", "entries", "levels", "spent", "total", "digest"]
    assert columns["stamp"] == ["release_id", "level", "token"]
    assert columns["identity"] == ["one", "name"]
    assert columns["stream_sum"] == ["stream", "steps", "last", "digest"]  # of the rows of `step`, not of data
    assert columns["stretch"] == ["stream", "number", "steps", "digest"]
    assert spent == "1/10"
    assert json.loads(spec) == POLICY.spec()


@pytest.mark.parametrize(
    "statement", ["UPDATE entry SET cost = '0/1'", "DELETE FROM entry", "DELETE FROM account WHERE dataset = 'default'"]
)
def test_the_history_is_append_only(path: Path, statement: str) -> None:
    ledger = Ledger.create(path, epsilon=1)
    _charge(ledger, 0.1)
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="of a ledger are never"):
        connection.execute(statement)
    connection.close()
    assert ledger.spent == 0.1
