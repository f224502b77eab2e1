"""What counts carry with them: how they were made decides under which plan and ledger they may be published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf

LINE = sf.Line(0, 10, cells=20)
OUTSIDE = pd.DataFrame({"x": [1.0, 5.0, 10.05]})


def dropped(policy: sf.Policy) -> sf.Counts:
    return sf.count(OUTSIDE, LINE, outside="drop", policy=policy)


def test_dropped_records_are_refused_where_leaving_the_box_is_not_hidden() -> None:
    """A record at 9.95 or at 10.05 would change the exact public total."""
    plan = sf.plan(sf.within(LINE, 0.2), sf.ranges(), 0.01)
    with pytest.raises(sf.PolicyMismatch) as refusal:
        plan.publish(dropped(sf.unbounded(LINE)))
    assert str(refusal.value) == (
        "counts were made with outside='drop', but the plan's policy does not hide that a record leaves the box. "
        "Nothing was drawn or recorded. Count with outside='clamp'."
    )


@pytest.mark.parametrize("policy", [sf.unbounded(LINE), sf.within(LINE, 0.4, sources="boundary")])
def test_dropped_records_are_published_where_it_is_hidden(policy: sf.Policy) -> None:
    assert sf.plan(policy, sf.ranges(), 1).publish(dropped(policy)).counts.shape == (20,)


def test_dropped_records_cost_an_account_of_another_policy_the_way_out(tmp_path: Path) -> None:
    """A record that leaves the box vanishes here, while the account's own policy sees it move to the border."""
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=100, policy=sf.threshold(LINE, 5))
    policy = sf.within(LINE, 0.4, sources="boundary")
    assert ledger.quote(1, policy) == 5
    sf.plan(policy, sf.ranges(), 1).publish(dropped(policy), ledger=ledger)
    assert ledger.spent == policy.eccentricity == 10
    with pytest.raises(sf.PolicyMismatch, match="one that changes may leave this release, which does not hide that"):
        ledger.quote(1, sf.bounded(LINE), dropped=["x"])


def test_a_seeded_choice_of_records_makes_a_release_that_is_not_private(tmp_path: Path) -> None:
    people = pd.DataFrame({"x": np.arange(10.0), "user": np.arange(10) % 3})
    counts = sf.count(people, LINE, entity="user", max_per_entity=1, source=sf.SeededSource(1))
    plan = sf.plan(sf.within(LINE, 0.2), sf.ranges(), 1, max_per_entity=1)
    assert not plan.publish(counts).private
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=10)
    with pytest.raises(sf.InvalidInput, match="seeded randomness is not private"):
        plan.publish(counts, ledger=ledger)
    assert ledger.spent == 0


def test_a_seeded_release_is_no_public_data() -> None:
    seeded = sf.plan(sf.within(LINE, 0.6), sf.ranges(), 1).publish(np.arange(20), source=sf.SeededSource(2))
    with pytest.raises(sf.InvalidInput, match="like is a release made with seeded randomness, which is not private"):
        sf.plan(sf.within(LINE, 0.6), sf.ranges(), 1, like=seeded)


def test_a_mechanism_that_cannot_run_is_refused_when_planned(tmp_path: Path) -> None:
    cell = sf.Line(0, 1, cells=1)
    with pytest.raises(sf.InvalidInput, match="a single cell has nothing to hide; use mechanism='edges'"):
        sf.plan(sf.within(cell, 0.5), sf.ranges(), 1, mechanism="consistent")


def test_a_record_release_of_bounded_counts_says_what_another_record_may_cost() -> None:
    people = pd.DataFrame({"x": np.arange(10.0), "user": np.arange(10) % 3})
    counts = sf.count(people, LINE, entity="user", max_per_entity=1)
    words = sf.plan(sf.unbounded(LINE), sf.histogram(), 1).publish(counts).guarantee.describe()
    assert "where a person has more records than are counted, such a change is hidden at ε = 2 (2 steps × 1)" in words


@pytest.mark.parametrize("policy", [sf.bounded, sf.unbounded, lambda grid: sf.threshold(grid, 2)])
def test_a_sensitivity_beyond_64_bits_is_refused_and_never_wraps(policy: object) -> None:
    from sfumato.linear import Hierarchy, Kronecker

    grid = sf.Grid(bounds=(0, 0, 0, 0, 1, 1, 1, 1), shape=(4, 4, 4, 4))
    heavy = Kronecker([Hierarchy(4, (2, 1), (2**16, 2**16)) for _ in range(4)])
    with pytest.raises(sf.TooLarge, match="too large for an exact sensitivity in 64 bits"):
        policy(grid).sensitivity(heavy)  # type: ignore[operator]


def test_words_give_all_digits_of_delta_and_round_budgets_up() -> None:
    assert "less than 0.12345651 (" in sf.within(sf.Line(0, 1, cells=4), 0.12345651).describe()
    plan = sf.plan(sf.bounded(LINE), sf.ranges(), "123456789/1000003000")
    assert "ε = 0.123457 per record" in str(plan.guarantee)  # 0.12345641…
