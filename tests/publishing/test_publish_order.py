"""Check, then record, then draw: what is refused leaves no trace, and what is drawn was recorded before."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from publish_spies import SpyLedger, SpySource

import sfumato as sf

LINE = sf.Line(0, 1, cells=4)
POLICY = sf.threshold(LINE, 1)
COUNTS = np.array([3, 1, 4, 1])
SECRET = 987_654_321


@pytest.fixture
def journal():
    return []


@pytest.fixture
def ledger(tmp_path, journal):
    return SpyLedger(tmp_path / "budget.db", journal, epsilon=1)


def plan_for(policy=POLICY, **given):
    return sf.plan(policy, sf.ranges() if policy.domain.is_spatial else sf.histogram(), 0.5, **given)


# --- the order --------------------------------------------------------------------------------------------------------


def test_the_charge_is_recorded_before_the_first_random_word(ledger, journal):
    release = plan_for().publish(COUNTS, ledger=ledger, source=SpySource(journal))
    assert journal[0] == "record"
    assert "draw" in journal[1:]
    assert journal.count("record") == 1
    assert ledger.spent == Fraction(1, 2)
    entry = ledger.history()[-1]
    assert entry.release_id == release.id
    assert entry.label == f"{release.mechanism.name} on 4 cells"


def test_overspending_is_refused_without_drawing(ledger, journal):
    for _ in range(2):
        plan_for().publish(COUNTS, ledger=ledger, source=SpySource(journal))
    before, spent = list(journal), ledger.spent
    with pytest.raises(sf.BudgetExceeded):
        plan_for().publish(COUNTS, ledger=ledger, source=SpySource(journal))
    assert journal == before
    assert ledger.spent == spent


BAD = {
    "neither": ({}, "give either counts or points=…, one of the two. Nothing was drawn or recorded."),
    "both": (
        {"counts": COUNTS, "points": [0.5]},
        "give either counts or points=…, one of the two. Nothing was drawn or recorded.",
    ),
    "fractions": (
        {"counts": COUNTS + 0.5},
        "counts of type float64 are not whole numbers. Nothing was drawn or recorded. "
        "Pass an integer array, such as counts.astype(int).",
    ),
    "booleans": (
        {"counts": COUNTS > 2},
        "counts of type bool are not whole numbers. Nothing was drawn or recorded. "
        "Pass an integer array, such as counts.astype(int).",
    ),
    "a path": (
        {"counts": "visits.csv"},
        "counts of type <U10 are not whole numbers. Nothing was drawn or recorded. "
        "Data are counted first: plan.publish(sf.count(data, domain, …), ledger=…).",
    ),
    "records": (
        {"counts": {"x": [0.5]}},
        "counts of type object are not whole numbers. Nothing was drawn or recorded. "
        "Data are counted first: plan.publish(sf.count(data, domain, …), ledger=…).",
    ),
    "shape": (
        {"counts": COUNTS[:3]},
        "counts of shape (3,) do not fit the domain's shape (4,). Nothing was drawn or recorded.",
    ),
    "ragged": ({"counts": [[1, 2], [3]]}, "counts are not an array of numbers. Nothing was drawn or recorded."),
    "negative": (
        {"counts": COUNTS - 2},
        "counts must be at least 0 and at most 2⁵³ together: these are not counts. Nothing was drawn or recorded.",
    ),
    "negative, counted": (
        {"counts": sf.Counts(COUNTS - 2, LINE)},
        "counts must be at least 0 and at most 2⁵³ together: these are not counts. Nothing was drawn or recorded.",
    ),
    "beyond exact": (
        {"counts": np.full(4, 2**52)},
        "counts must be at least 0 and at most 2⁵³ together: these are not counts. Nothing was drawn or recorded.",
    ),
    "another domain": (
        {"counts": sf.Counts(COUNTS, sf.Line(0, 2, cells=4))},
        "counts were made on Line(0, 2, cells=4), the plan is for Line(0, 1, cells=4). Nothing was drawn or recorded. "
        "Count on the plan's domain.",
    ),
    "NaN": (
        {"points": [0.5, float("nan")]},
        "Axis 'x': some values are NaN, which has no place on the axis. Nothing was counted. "
        "Remove them first; sf.count leaves them out by itself.",
    ),
    "points of two coordinates": (
        {"points": [[0.1, 0.2]]},
        "points has 2 dimensions of the wrong sizes. Expected an array of shape (n, 1) or a tuple of 1 arrays of equal "
        "length.",
    ),
    "points of text": (
        {"points": ["a"]},
        "Axis 'x': values of type <U1 are not numbers. Nothing was counted. Convert them to float64 first.",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_could_not_be_counts_is_refused_without_a_trace(case, ledger, journal):
    given, message = BAD[case]
    with pytest.raises(sf.InvalidInput) as refusal:
        plan_for().publish(**given, ledger=ledger, source=SpySource(journal))
    assert str(refusal.value) == message
    assert isinstance(refusal.value, ValueError)
    assert journal == []
    assert ledger.spent == 0


def test_a_generator_of_numpy_is_no_source(ledger, journal):
    with pytest.raises(sf.InvalidInput) as refusal:
        plan_for().publish(COUNTS, ledger=ledger, source=np.random.default_rng(1))
    assert str(refusal.value) == (
        "source=Generator is not a source of random words. Nothing was drawn or recorded. "
        "Use SystemSource(), or SeededSource(seed) in tests."
    )
    assert journal == []


def test_what_is_no_ledger_is_refused(journal):
    with pytest.raises(sf.InvalidInput) as refusal:
        plan_for().publish(COUNTS, ledger="budget.db", source=SpySource(journal))
    assert str(refusal.value) == "ledger=str is not a ledger. Open one with sf.Ledger(path)."
    assert journal == []


@pytest.mark.parametrize(
    "given",
    [
        {"counts": np.full(4, float(SECRET))},
        {"counts": np.full((2, 2), SECRET)},
        {"counts": np.full(4, -SECRET)},
        {"counts": [str(SECRET)] * 4},
        {"points": [[SECRET, SECRET]]},
        {"points": [SECRET, float("nan")]},
        {"points": [str(SECRET)]},
    ],
    ids=str,
)
def test_no_refusal_shows_a_private_value(given):
    with pytest.raises(sf.InvalidInput) as refusal:
        plan_for().publish(**given)
    chain = refusal.value
    while chain is not None:
        assert str(SECRET) not in str(chain)
        chain = chain.__cause__ or chain.__context__


# --- seeded randomness ------------------------------------------------------------------------------------------------


def test_a_seeded_release_says_that_it_is_not_private_and_no_ledger_takes_it(ledger, journal):
    plan = plan_for()
    release = plan.publish(COUNTS, source=sf.SeededSource(7))
    assert not release.private
    assert not release.guarantee.private
    assert "NOT PRIVATE" in repr(release)
    assert str(release.guarantee).startswith("NOT PRIVATE")
    assert np.array_equal(release.counts, plan.publish(COUNTS, source=sf.SeededSource(7)).counts)
    with pytest.raises(sf.InvalidInput) as refusal:
        plan.publish(COUNTS, ledger=ledger, source=sf.SeededSource(7))
    assert str(refusal.value) == (
        "A release made with seeded randomness is not private and cannot be charged to a ledger. Nothing was drawn or "
        "recorded. Publish it without a ledger, or use the default randomness."
    )
    assert journal == []
    assert ledger.spent == 0


def test_the_default_randomness_is_private_and_never_the_same():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(16, 16))
    plan = sf.plan(sf.threshold(grid, 1), sf.ranges(), 0.1)
    first, second = (plan.publish(np.zeros(grid.shape, dtype=int)) for _ in range(2))
    assert first.private
    assert first.id != second.id
    assert not np.array_equal(first.counts, second.counts)


# --- persons ----------------------------------------------------------------------------------------------------------


def counted(bound):
    return sf.Counts(COUNTS, LINE, bound)


def test_a_promise_about_a_person_needs_counts_that_were_bounded(ledger, journal):
    plan = plan_for(max_per_entity=3)
    for counts, how in [(COUNTS, "not bounded"), (counted(None), "not bounded"), (counted(5), "bounded by 5")]:
        with pytest.raises(sf.InvalidInput) as refusal:
            plan.publish(counts, ledger=ledger, source=SpySource(journal))
        assert str(refusal.value) == (
            f"the plan promises something about a person with at most 3 records, but these counts were {how}. Nothing "
            "was drawn or recorded. Count with sf.count(…, entity=…, max_per_entity=3)."
        )
    assert journal == []
    release = plan.publish(counted(3), ledger=ledger)
    assert (release.guarantee.unit, release.guarantee.max_per_entity) == ("person", 3)


def test_the_promise_is_about_what_was_counted():
    """Counts with fewer records of each person than planned for are fine; the promise then speaks of those."""
    release = plan_for(max_per_entity=3).publish(counted(2))
    assert (release.guarantee.unit, release.guarantee.max_per_entity) == ("person", 2)
    release = plan_for().publish(counted(2))
    assert (release.guarantee.unit, release.guarantee.max_per_entity) == ("record", 2)


def test_the_ledger_learns_how_many_records_of_a_person_were_counted(ledger):
    plan_for(max_per_entity=3).publish(counted(2), ledger=ledger, label="two each")
    entry = ledger.history()[-1]
    assert (entry.label, entry.unit.name, entry.unit.max_per_entity) == ("two each", "person", 2)
