"""Data-dependent mechanisms are weighed on public data only."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput

LINE = sf.Line(0, 1, cells=256)
POLICY = sf.threshold(LINE, 1)


def sparse() -> np.ndarray:
    x = np.zeros(256, dtype=np.int64)
    x[[10, 90, 200]] = 500
    return x


def test_without_public_data_they_are_named_but_not_chosen() -> None:
    plan = sf.plan(POLICY, sf.ranges(), 0.1)
    assert plan.mechanism.name == "edges"
    told = {a.name: a.reason for a in plan.alternatives if a.error is None}
    assert told["consistent"] == "its error depends on the data: give like=public counts to weigh it"


def test_with_public_data_the_better_one_is_chosen_and_its_error_rehearsed() -> None:
    plan = sf.plan(POLICY, sf.ranges(), 0.1, like=sparse())
    assert plan.mechanism.name in ("consistent", "dawa")
    assert plan.expected_error < sf.plan(POLICY, sf.ranges(), 0.1).expected_error / 3
    assert plan.lower_bound is None  # the bound is for matrix mechanisms


def test_an_earlier_release_may_stand_for_public_data() -> None:
    earlier = sf.plan(POLICY, sf.ranges(), 1).publish(sparse())
    assert sf.plan(POLICY, sf.ranges(), 0.1, like=earlier).mechanism.name in ("consistent", "dawa")


@pytest.mark.parametrize(
    "workload", [sf.histogram(), sf.prefixes(), sf.ranges([(0.1, 0.4), (0, 1)]), sf.queries(np.eye(256))]
)
def test_every_workload_can_be_rehearsed(workload: sf.Workload) -> None:
    assert np.isfinite(sf.plan(POLICY, workload, 0.1, mechanism="dawa", like=sparse()).expected_error)


def test_a_forced_one_without_public_data_says_that_its_error_is_unknown() -> None:
    plan = sf.plan(POLICY, sf.ranges(), 0.1, mechanism="consistent")
    assert np.isnan(plan.expected_error)
    assert "the error depends on the data and is not known" in str(plan)
    assert plan.to_dict()["expected_error"] is None


def test_grids_are_rehearsed_on_sampled_boxes() -> None:
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(16, 16))
    x = np.zeros((16, 16), dtype=np.int64)
    x[3, 4] = 10_000
    plan = sf.plan(sf.unbounded(grid), sf.ranges(), 0.01, mechanism="dawa", like=x)
    assert np.isfinite(plan.expected_error)


@pytest.mark.parametrize("like", [np.zeros(3), np.full(256, np.nan), "counts"])
def test_public_data_of_the_wrong_kind_is_refused(like: object) -> None:
    with pytest.raises(InvalidInput, match=r"like must be public counts in the shape \(256,\), or an earlier release"):
        sf.plan(POLICY, sf.ranges(), 0.1, like=like)


def test_a_release_on_another_domain_is_refused() -> None:
    other = sf.plan(sf.threshold(sf.Line(0, 1, cells=8), 1), sf.ranges(), 1).publish(np.arange(8))
    with pytest.raises(InvalidInput, match="like is a release on"):
        sf.plan(POLICY, sf.ranges(), 0.1, like=other)


def test_no_epsilon_is_named_for_an_error_that_depends_on_the_data() -> None:
    with pytest.raises(InvalidInput, match="its error depends on the data, so no ε can be named for it"):
        sf.epsilon_for(POLICY, sf.ranges(), error=10, mechanism="consistent")
