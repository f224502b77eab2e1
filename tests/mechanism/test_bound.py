"""The singular value bound: for integer noise at every ε, and never above what a linear mechanism reaches."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanism import singular_value_bound
from sfumato.noise import DiscreteLaplace

EPSILONS = ["1/20", "1", "3", "8", "20"]
POLICIES: dict[str, Callable[[sf.Domain], sf.Policy]] = {
    "bounded": sf.bounded,
    "unbounded": sf.unbounded,
    "neighbours": lambda domain: sf.threshold(domain, 1),
    "near": lambda domain: sf.threshold(domain, 3),
    "sources": lambda domain: sf.within(domain, delta=0.3, sources=[[0.1] * domain.ndim]),
    "boundary": lambda domain: sf.within(domain, delta=0.25, sources="boundary"),
}
WORKLOADS = [sf.ranges(), sf.histogram(), sf.prefixes()]


def reached(plan: sf.Plan) -> float:
    """What the description says: how many times the bound."""
    (times,) = re.findall(r"Limit      (\S+) times the singular value bound", plan.describe())
    return float(times)


@pytest.mark.slow  # a plan by every mechanism, and dense singular values
@pytest.mark.parametrize("epsilon", ["1/20", "1", "8"])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_plan_is_below_the_bound(policy: str, epsilon: str) -> None:
    """Every mechanism that knows its error, under every workload: the best of them is what the plan has chosen."""
    line, grid = sf.Line(0, 1, cells=12), sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 3))
    others = (sf.Line(0, 1, cells=2), grid, sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(2, 2, 2)))
    for domain in (line, *(others if epsilon == "1" else ())):
        for workload in (*WORKLOADS, sf.queries(np.eye(domain.size)[::2])):
            given = POLICIES[policy](domain)
            plan = sf.plan(given, workload, epsilon)
            assert plan.lower_bound is not None
            assert plan.expected_error >= plan.lower_bound * (1 - 1e-9)
            assert reached(plan) >= 1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_on_a_line_of_neighbours_the_bound_is_met(epsilon: str) -> None:
    """Noise on the edges has the least error there is, 1.84 and not 2 a noise at ε = 1: never "0.921 times"."""
    plan = sf.plan(sf.threshold(sf.Line(0, 1, cells=1000), 1), sf.ranges(), epsilon)
    assert 1 <= reached(plan) <= 1.01


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_unit_of_the_bound_is_the_variance_of_integer_noise(epsilon: str) -> None:
    """One cell under add/remove: nothing but one noise can be had."""
    rate = Fraction(epsilon)
    bound = singular_value_bound(sf.unbounded(sf.Line(0, 1, cells=1)), sf.histogram(), rate)
    assert bound == pytest.approx(DiscreteLaplace(rate).variance, rel=1e-12)


def test_the_share_of_a_person_counts() -> None:
    line = sf.Line(0, 1, cells=30)
    person = sf.plan(sf.unbounded(line), sf.ranges(), 4, max_per_entity=2)
    record = sf.plan(sf.unbounded(line), sf.ranges(), 2)
    assert person.lower_bound == record.lower_bound


def test_at_an_epsilon_beyond_all_noise_no_bound_is_printed() -> None:
    plan = sf.plan(sf.unbounded(sf.Line(0, 1, cells=3)), sf.histogram(), 5000)
    assert plan.lower_bound == 0
    assert "Limit" not in plan.describe()


@pytest.mark.parametrize("mechanism", ["consistent", "dawa", "shifted"])
def test_mechanisms_that_look_at_the_data_or_smooth_it_are_not_compared(mechanism: str) -> None:
    plan = sf.plan(sf.threshold(sf.Line(0, 1, cells=30), 2), sf.ranges(), 1, mechanism=mechanism)
    assert plan.lower_bound is None
    assert "bound" not in plan.describe().split("Accuracy")[1]
