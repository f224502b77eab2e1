"""Releases of disjoint parts: one count, one charge; what is charged, promised and refused."""

from __future__ import annotations

import numpy as np
import pytest
from publish_spies import SpyLedger, SpySource

import sfumato as sf
from sfumato.publishing import PartReleases

LINE = sf.Line(0, 4, cells=4, name="place")
STATE = sf.Categories(["NY", "NJ", "VT"], name="state")
COUNTS = np.array([[30, 0, 5, 1], [0, 7, 2, 0], [0, 0, 0, 0]])
MOVES = sf.plan(sf.within(LINE, 1), sf.histogram(), epsilon=1)


def made(tmp_path, **given):
    return sf.Ledger.create(tmp_path / "budget.db", epsilon=100, **given)


def test_every_part_has_a_release_in_the_declared_order():
    plan = sf.plan(sf.within(LINE, 1), sf.histogram(), epsilon=10**6)
    found = plan.publish_parts(COUNTS, by=STATE, public=["state"])
    assert isinstance(found, PartReleases)
    assert list(found) == ["NY", "NJ", "VT"]
    assert len(found) == 3
    assert repr(found) == "PartReleases(3 releases by 'state')"
    for i, (state, release) in enumerate(found.items()):
        assert release.counts == pytest.approx(COUNTS[i], abs=1e-3)
        assert release.total == COUNTS[i].sum()
        assert release.guarantee == plan.guarantee
        assert found[state] is release
    assert len({release.id for release in found.values()}) == 3
    with pytest.raises(KeyError):
        found["CT"]


def test_parts_of_several_axes_have_tuples_for_labels():
    by = sf.Categories([1, 2], name="wave") * sf.Line(0, 2, cells=2, name="hour")
    plan = sf.plan(sf.unbounded(LINE), sf.histogram(), epsilon=1)
    found = plan.publish_parts(np.ones((2, 2, 4), int), by=by)
    assert [label[0] for label in found] == [1, 1, 2, 2]
    assert len(set(found)) == 4
    assert plan.publish_parts(np.ones((2, 4), int), by=sf.Categories([1, 2], name="wave"))[2].counts.shape == (4,)


def test_parts_that_no_change_joins_are_charged_once(tmp_path):
    ledger = made(tmp_path, hide=sf.move(1), fixed=["state"])
    found = MOVES.publish_parts(COUNTS, by=STATE, public=["state"], ledger=ledger)
    (entry,) = ledger.history()[1:]
    assert (entry.cost, entry.label) == (1, f"{MOVES.mechanism.name} on 4 cells, for each of 3 parts by 'state'")
    assert entry.policy == found.guarantee.policy.describe()
    assert entry.policy.startswith("the exact number of records for every state is public, jointly; ")
    MOVES.publish_parts(COUNTS, by=STATE, public=["state"], ledger=ledger, label="a week", filtered=["state"])
    assert ledger.history()[-1].label == "a week, for each of 3 parts by 'state'"
    assert ledger.spent == 2


def test_a_part_that_changes_costs_vanishing_and_appearing_or_is_refused(tmp_path):
    ledger = made(tmp_path, hide=sf.move(1) | sf.change("state"))
    with pytest.raises(sf.PolicyMismatch, match="its state becomes any other; a release that hides only"):
        MOVES.publish_parts(COUNTS, by=STATE, public=["state"], ledger=ledger)
    plan = sf.plan(sf.policy(LINE, hide=sf.move(1) | sf.presence()), sf.histogram(), epsilon=1)
    plan.publish_parts(COUNTS, by=STATE, ledger=ledger)
    assert [(entry.rate, entry.cost) for entry in ledger.history()[1:]] == [(2, 2)]
    alone = sf.Categories(["NY"], name="state")  # whoever is of another state is in no part
    with pytest.raises(sf.PolicyMismatch):
        MOVES.publish_parts(COUNTS[:1], by=alone, public=["state"], ledger=ledger)
    plan.publish_parts(COUNTS[:1], by=alone, ledger=ledger)
    assert ledger.spent == 3


def test_an_open_account_takes_the_relation_with_its_parts_fixed(tmp_path):
    ledger = made(tmp_path)
    MOVES.publish_parts(COUNTS, by=STATE, public=["state"], ledger=ledger)
    assert (ledger.relation, ledger.fixed, ledger.spent) == (sf.move(1, of="place"), ("state",), 1)


def test_an_account_under_a_policy_pays_for_parts_at_their_exchange_rate(tmp_path):
    ledger = made(tmp_path, policy=sf.unbounded(STATE * LINE))
    with pytest.raises(sf.PolicyMismatch):
        MOVES.publish_parts(COUNTS, by=STATE, public=["state"], ledger=ledger)
    plan = sf.plan(sf.unbounded(LINE), sf.histogram(), epsilon=1)
    plan.publish_parts(COUNTS, by=STATE, ledger=ledger)
    assert ledger.spent == 1


def test_the_records_of_a_person_are_bounded_before_they_are_split(tmp_path):
    rng = np.random.default_rng(4)
    data = {
        "place": rng.uniform(0, 4, 400),
        "state": rng.choice(["NY", "NJ", "VT"], 400),
        "user": rng.integers(0, 60, 400),
    }
    counts = sf.count(data, STATE * LINE, entity="user", max_per_entity=2)
    assert counts.values.sum() <= 120
    plan = sf.plan(sf.within(LINE, 1), sf.histogram(), epsilon=1, max_per_entity=2)
    ledger = made(tmp_path, hide=sf.move(1), fixed=["state"], max_per_entity=2)
    found = plan.publish_parts(counts, by=STATE, public=["state"], ledger=ledger)
    assert ledger.spent == 1  # two records at ε/2 each, wherever they are
    assert found.guarantee.protects == ledger.unit
    assert all(2 * release.mechanism.epsilon == 1 for release in found.values())
    with pytest.raises(sf.InvalidInput, match="these counts were not bounded"):
        plan.publish_parts(COUNTS, by=STATE, public=["state"], ledger=ledger)


def test_a_promise_about_a_record_on_bounded_counts_carries_the_way_to_another_part():
    counts = sf.Counts(COUNTS, STATE * LINE, max_per_entity=1)
    plan = sf.plan(sf.policy(LINE, hide=sf.anything() | sf.presence()), sf.histogram(), epsilon=1)
    found = plan.publish_parts(counts, by=STATE)
    assert found.guarantee.replacement == found.guarantee.epsilon == 2  # another record of hers, in any part
    assert found["NY"].guarantee.replacement == 1


@pytest.fixture
def journal():
    return []


@pytest.fixture
def ledger(tmp_path, journal):
    return SpyLedger(tmp_path / "budget.db", journal, epsilon=2)


def test_one_charge_is_recorded_before_the_first_random_word(ledger, journal):
    MOVES.publish_parts(COUNTS, by=STATE, public=["state"], ledger=ledger, source=SpySource(journal))
    assert journal[0] == "record"
    assert journal.count("record") == 1
    assert journal.count("draw") >= 3


REFUSED = {
    "no list": ({"by": ["NY", "NJ"]}, "by=list is not a list of parts. Nothing was drawn or recorded."),
    "totals that nobody named": ({"public": []}, "hide changes nothing of 'state'"),
    "each for itself": (
        {"counts": {"NY": COUNTS[0]}},
        "counts of every part by itself would count a person in each of them.",
    ),
    "another shape": ({"counts": COUNTS[:2]}, "counts of shape (2, 4) do not fit the domain's shape (3, 4)."),
    "no counts": ({"counts": COUNTS / 2}, "counts of type float64 are not whole numbers."),
    "counts of one part": ({"counts": sf.Counts(COUNTS[0], LINE)}, "counts were made on Line("),
    "the name of an axis": ({"by": sf.Categories(["a"], name="place"), "counts": COUNTS[:1]}, "place"),
    "too much": ({"plan": sf.plan(sf.within(LINE, 1), sf.histogram(), epsilon=3)}, "exceeds the 2 left of 2"),
    "cells": (
        {"plan": sf.plan(sf.threshold(LINE, 1), sf.histogram(), epsilon=1)},
        "parts are published under a relation between records",
    ),
    "too many": ({"by": sf.Grid(bounds=(0, 0, 1, 1), shape=(200, 200), name="at")}, "by has 40,000 parts"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_leave_no_trace(case, ledger, journal):
    given, message = REFUSED[case]
    call = {"counts": COUNTS, "by": STATE, "public": ["state"], "plan": MOVES, **given}
    plan, counts = call.pop("plan"), call.pop("counts")
    with pytest.raises(sf.SfumatoError) as refusal:
        plan.publish_parts(counts, **call, ledger=ledger, source=SpySource(journal))
    assert message in str(refusal.value)
    assert journal == []
    assert ledger.spent == 0


def test_seeded_parts_say_so_and_are_charged_to_nobody(tmp_path):
    found = MOVES.publish_parts(COUNTS, by=STATE, public=["state"], source=sf.SeededSource(1))
    assert not found.guarantee.private
    assert repr(found).endswith(", NOT PRIVATE)")
    with pytest.raises(sf.InvalidInput, match="seeded randomness is not private"):
        MOVES.publish_parts(COUNTS, by=STATE, public=["state"], source=sf.SeededSource(1), ledger=made(tmp_path))
