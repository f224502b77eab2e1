"""Opening and creating are two things: a full budget never begins unnoticed."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, LedgerCreated, LedgerError
from sfumato.ledger import Ledger


def test_create_makes_an_account_and_says_nothing(place: str) -> None:
    ledger = Ledger.create(place, 2, policy=sf.threshold(sf.Line(0, 1, cells=5), 1), unit="person", max_per_entity=3)
    assert (ledger.total, ledger.spent, str(ledger.unit)) == (2, 0, str(Ledger(place).unit))
    assert ledger.policy == Ledger(place).policy
    assert Ledger.create(place, epsilon=1, dataset="trips").total == 1
    assert [account.dataset for account in ledger.accounts()] == ["default", "trips"]


@pytest.mark.parametrize("epsilon", [1, 2])
def test_create_refuses_an_account_that_is_there(place: str, epsilon: int) -> None:
    Ledger.create(place, epsilon=1)
    before = Ledger(place).history()
    name = place if "://" in place else Path(place).name
    with pytest.raises(InvalidInput) as caught:
        Ledger.create(place, epsilon=epsilon)
    assert str(caught.value) == (
        f"There is an account 'default' in '{place}' already. Nothing was created or changed. Open it with "
        f"sf.Ledger('{name}'), or create one for another dataset."
    )
    assert Ledger(place).history() == before


def test_create_needs_a_total(place: str) -> None:
    with pytest.raises(InvalidInput, match="epsilon is missing"):
        Ledger.create(place, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="There is no ledger"):
        Ledger(place)


def test_opening_with_a_total_says_loudly_that_it_created_a_ledger(place: str) -> None:
    with pytest.warns(LedgerCreated) as said:
        ledger = Ledger(place, epsilon=1)
    (one,) = said
    assert str(one.message) == (
        f"A ledger was created, '{place}': a new budget of 1 begins, and nothing counts as spent. If there was one "
        "before, this is not it. Ledger.create makes one without this warning; leave epsilon out to open one."
    )
    assert one.filename == __file__  # it points at whoever opened it
    assert ledger.total == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Ledger(place, epsilon=1).total == 1  # once


def test_the_warning_tells_the_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.warns(LedgerCreated, match=str(tmp_path / "budget.db")):
        Ledger("budget.db", epsilon=1)


def test_a_mistyped_dataset_is_told_as_well(place: str) -> None:
    Ledger.create(place, epsilon=1, dataset="visits")
    with pytest.warns(LedgerCreated, match=r"An account 'visit' was created in the ledger"):
        Ledger(place, epsilon=1, dataset="visit")
    with pytest.raises(InvalidInput, match=r"Its accounts are 'visits', 'visit'\. Name one that is there"):
        Ledger(place, dataset="trips")


def test_a_deleted_ledger_is_not_begun_anew_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    Ledger.create(path, epsilon=1)
    path.unlink()
    with pytest.raises(InvalidInput, match="There is no ledger"):
        Ledger(path)
    with pytest.warns(LedgerCreated):
        Ledger(path, epsilon=1)


def test_a_program_that_dies_of_warnings_creates_nothing_twice(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LedgerCreated):
            Ledger(tmp_path / "budget.db", epsilon=1)
        assert Ledger(tmp_path / "budget.db", epsilon=1).total == 1  # it is there, and that was said


def test_create_in_a_missing_folder_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="does not exist, so no ledger can be made there"):
        Ledger.create(tmp_path / "none" / "budget.db", epsilon=1)
    assert list(tmp_path.iterdir()) == []
