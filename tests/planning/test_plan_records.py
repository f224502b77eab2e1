"""A public number of records is enough to weigh sorted points."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf

LINE = sf.Line(0, 1, cells=4096)


def test_few_records_and_little_budget_call_for_sorted_points() -> None:
    plan = sf.plan(sf.bounded(LINE), sf.ranges(), 0.01, records=1_000)
    assert plan.mechanism.name == "sorted"
    assert plan.basis == "by a model, for the number of records given"
    assert plan.basis in str(plan)


def test_many_records_do_not() -> None:
    assert sf.plan(sf.bounded(LINE), sf.ranges(), 1, records=1_000_000).mechanism.name != "sorted"


def test_without_a_number_they_are_not_weighed() -> None:
    plan = sf.plan(sf.bounded(LINE), sf.ranges(), 0.01)
    assert plan.mechanism.name != "sorted"
    assert {a.name: a.error for a in plan.alternatives}["sorted"] is None


def test_the_model_is_near_what_is_measured() -> None:
    """Five releases of 20,000 evenly spread records, than which none are kinder: at most twelve times too high."""
    plan = sf.plan(sf.within(LINE, 0.01), sf.ranges(), 0.1, mechanism="sorted", records=20_000)
    counts = np.random.default_rng(0).multinomial(20_000, np.full(4096, 1 / 4096))
    rehearsed = sf.plan(sf.within(LINE, 0.01), sf.ranges(), 0.1, mechanism="sorted", like=counts)
    assert 1 / 6 < plan.expected_error / rehearsed.expected_error < 12


def test_a_number_of_records_is_a_number() -> None:
    with pytest.raises(sf.InvalidInput, match="records=0"):
        sf.plan(sf.bounded(LINE), sf.ranges(), 1, records=0)
