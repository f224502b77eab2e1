"""Whole accounts: what a ledger takes for a release is never below what some change of some record takes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from record_oracle import release_graph, true_price
from test_price import random_relation, random_release

import sfumato as sf
from sfumato.relations import Record

ATTRIBUTES = ["place", "hour", "mode", "t"]


@pytest.mark.parametrize("seed", range(3))
def test_no_account_is_charged_less_than_the_truth(tmp_path: Path, seed: int) -> None:
    """Over random relations, what they fix, and releases; also where the first release says what is hidden."""
    dice = random.Random(2000 + seed)
    sf.Ledger.create(tmp_path / "budget.db", epsilon=1, dataset="none")
    charged = taken = number = 0
    while charged < 30 or taken < 4:
        number += 1
        dataset = f"account {number}"
        hide = random_relation(dice, dice.sample(ATTRIBUTES, dice.randint(1, 3)))
        if dice.random() < 0.5:
            known = hide.named("place").names
            whole = hide.changes_all or not hide.rules
            fixed = [] if whole else [n for n in ATTRIBUTES if n not in known and dice.random() < 0.8]
            ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=10**6, dataset=dataset, hide=hide, fixed=fixed)
        else:
            ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=10**6, dataset=dataset)
        for _ in range(3):
            release = random_release(dice)
            if release is None:
                continue
            filtered = dice.sample(ATTRIBUTES, 1) if dice.random() < 0.2 else []
            spent = ledger.spent
            try:
                receipt = ledger.charge(1, release, label="a map", release_id="r", filtered=filtered)
            except (sf.PolicyMismatch, sf.InvalidInput):
                assert ledger.spent == spent
                continue
            if ledger.relation is None:  # a threshold or a list: the account is one of cells
                break
            taken += spent == 0
            record = Record.of(ledger.relation, ledger.fixed)
            truth = max(true_price(record, release, release_graph(release), filtered), 1.0)
            assert receipt.entry.cost >= truth, (record, release, filtered)
            charged += 1
    assert sf.Ledger(tmp_path / "budget.db", dataset="none").accounts()
