"""How many records of a person: noise against what is cut off, on public data alone."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.planning.person_bound import _StandIn

LINE = sf.Line(0, 4, cells=4)


def stand_in(records, policy, workload, people=None, expected=None):
    return _StandIn(records, policy, workload, "who", people, expected, None, {})


# ------------------------------------------------------------------ by hand


def test_what_a_bound_cuts_from_one_cell_is_the_square_of_it():
    """300 people with 5 records each in one cell of four: at 2 a person 900 are cut, in one query of four."""
    records = {"who": np.repeat(np.arange(300), 5), "x": np.full(1500, 0.5)}
    policy = sf.unbounded(LINE)
    assert stand_in(records, policy, sf.histogram()).cut(2) == 900**2 / 4
    assert stand_in(records, policy, sf.histogram(), people=600).cut(2) == 1800**2 / 4
    assert stand_in(records, policy, sf.histogram()).cut(5) == 0


def test_bias_grows_with_the_people_and_the_variance_of_the_choice_with_the_root_of_them():
    """Each of n people has two cells of their own, and keeps one of two: in every cell a half, and a variance of 1/4.

    The mean over 4,000 pairs of cells has a standard deviation of 2 % at most; 12 % are six of them.
    """
    n = 4000
    line = sf.Line(0, 2 * n, cells=2 * n)
    records = {"who": np.repeat(np.arange(n), 2), "x": np.arange(2 * n) + 0.5}
    policy = sf.unbounded(line)
    assert stand_in(records, policy, sf.histogram()).cut(1) == pytest.approx(1 / 4 + 1 / 4, rel=0.12)
    assert stand_in(records, policy, sf.histogram(), people=4 * n).cut(1) == pytest.approx(16 / 4 + 4 / 4, rel=0.12)


def test_people_who_are_half_as_busy_lose_what_twice_the_bound_cuts():
    """300 people with 8 records; where they will have 4, a bound of 3 cuts from each 1, half of what 6 cuts here."""
    records = {"who": np.repeat(np.arange(300), 8), "x": np.full(2400, 0.5)}
    policy = sf.unbounded(LINE)
    half = stand_in(records, policy, sf.histogram(), expected=1200)
    assert [half.cut(bound) for bound in (2, 3, 4)] == [(300 * cut) ** 2 / 4 for cut in (2, 1, 0)]
    twice = stand_in(records, policy, sf.histogram(), people=600, expected=2 * 2 * 2400)
    assert twice.cut(12) == (600 * 4) ** 2 / 4
    assert (600 * 4) ** 2 / 4 < twice.cut(11) < (600 * 6) ** 2 / 4  # between 5 and 6 here
    assert twice.cut(16) == 0


def test_a_large_budget_keeps_all_records_and_a_small_one_a_few():
    records = {"who": np.repeat(np.arange(500), 3), "x": np.tile([0.5, 1.5, 1.5], 500)}
    policy = sf.unbounded(LINE)
    chosen = [
        sf.tune_bound(records, policy, sf.histogram(), epsilon=epsilon, entity="who").max_per_entity
        for epsilon in (10, 0.0005)
    ]
    assert chosen == [3, 1]


def test_noise_is_that_of_the_plan():
    records = {"who": np.repeat(np.arange(500), 3), "x": np.tile([0.5, 1.5, 1.5], 500)}
    policy = sf.bounded(LINE)
    found = sf.tune_bound(records, policy, sf.ranges(), epsilon=1, entity="who")
    for one in found.tried:
        plan = sf.plan(policy, sf.ranges(), 1, max_per_entity=one.max_per_entity)
        assert one.noise == plan.expected_error
        assert one.error == one.noise + one.cut
    assert found.expected_error == min(one.error for one in found.tried)
    assert str(found).splitlines()[0].startswith(f"max_per_entity={found.max_per_entity}: expected squared error ")
    (marked,) = [line for line in str(found).splitlines() if line.endswith("<-")]
    assert marked.split()[0] == str(found.max_per_entity)


# ------------------------------------------------------------------ against hindsight


@pytest.mark.slow
def test_on_other_people_of_the_same_kind_it_is_near_the_best_in_hindsight():
    """Half of a made-up town tells of the other half. The town is the same in every run; the choice of records is not,
    and moves the errors by less than a hundredth: 10 % more than the best is far from what chance can do.
    """
    rng = np.random.default_rng(5)
    people = 1000
    records = np.ceil(rng.lognormal(2, 1, people)).astype(int)
    who = np.repeat(np.arange(people), records)
    home = rng.integers(0, 4, people)[who]
    x = np.where(rng.random(len(who)) < 0.6, home, rng.integers(0, 4, len(who))) + 0.5
    halves = [{"who": who[who % 2 == half], "x": x[who % 2 == half]} for half in (0, 1)]
    policy = sf.unbounded(LINE)
    chosen = sf.tune_bound(halves[0], policy, sf.histogram(), epsilon=0.5, entity="who").max_per_entity
    truth = stand_in(halves[1], policy, sf.histogram())

    def error(bound):
        return sf.plan(policy, sf.histogram(), 0.5, max_per_entity=bound).expected_error + truth.cut(bound)

    best = min(error(bound) for bound in {chosen * k // 20 for k in range(12, 33)})
    assert error(chosen) <= 1.1 * best
    assert 4 < chosen < records.max()


# ------------------------------------------------------------------ refusals


def test_what_nothing_can_be_weighed_on_is_refused():
    policy = sf.unbounded(LINE)
    records = {"who": np.array([1, 1, 2]), "x": np.array([0.5, 1.5, 2.5])}
    with pytest.raises(InvalidInput) as refused:
        sf.tune_bound({"who": records["who"][:0], "x": records["x"][:0]}, policy, sf.histogram(), 1, entity="who")
    assert str(refused.value) == (
        "like has no record with an entity: nothing can be weighed on it. Nothing was drawn or recorded. Give public "
        "records of the same kind."
    )
    with pytest.raises(InvalidInput, match="people=0"):
        sf.tune_bound(records, policy, sf.histogram(), 1, entity="who", people=0)
    with pytest.raises(InvalidInput, match="records=-1"):
        sf.tune_bound(records, policy, sf.histogram(), 1, entity="who", records=-1)
    with pytest.raises(InvalidInput, match="whose"):
        sf.tune_bound(records, policy, sf.histogram(), 1, entity="whose")
