"""Answers at a level: what the cells of every group add up to, with the error of that sum."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf

N = 24
CELL = np.arange(N)
STATE = [f"s{i % 2}" for i in CELL]  # groups of cells that do not follow one another
COUNTY = [f"c{i % 6}" for i in CELL]
TRACTS = sf.Categories([f"t{i}" for i in CELL], name="tract", levels={"state": STATE, "county": COUNTY})
HOURS = sf.Line(0, 24, cells=4, name="hour")
COUNTS = (CELL * 7) % 50
PATH = [(i, i + 1) for i in range(N - 1)]


def release(policy=None, mechanism="tree", counts=COUNTS, seed=0):
    policy = sf.bounded(TRACTS) if policy is None else policy
    asked = sf.levels() if len(policy.domain.factors) == 1 else sf.ask(tract=sf.levels(), hour=sf.histogram())
    plan = sf.plan(policy, asked, epsilon=1, mechanism=mechanism)
    return plan.publish(counts, source=sf.SeededSource(seed))


def groups(level):
    """The groups of a level over the cells, one row each."""
    of = next(known.of for known in TRACTS.axes[0].coarser if known.name == level)
    return (of == np.arange(of.max() + 1)[:, None]).astype(float)


POLICIES = {
    "replace-one": sf.bounded(TRACTS),
    "add/remove": sf.unbounded(TRACTS),
    "path": sf.graph(TRACTS, PATH),
    "path and ⊥": sf.graph(TRACTS, [*PATH, (5, sf.ABSENT)]),
}


@pytest.mark.parametrize("mechanism", ["identity", "hierarchy", "edges", "tree"])
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_answers_at_a_level_are_sums_of_cells_with_their_error(policy, mechanism):
    found = release(policy, mechanism)
    for level in ("state", "county"):
        table = found.answer(by=level)
        oracle = found.query(groups(level))
        assert np.allclose(table.value, oracle.value)
        assert np.allclose(table.stderr, oracle.stderr)
        assert table.by == (level,)
    assert found.answer(by="county").keys[0].names == [f"c{i}" for i in (0, 2, 4, 1, 3, 5)]


def test_answers_add_up_from_level_to_level():
    found = release()
    state, county = found.answer(by="state").value, found.answer(by="county").value
    assert np.allclose(county.reshape(2, 3).sum(axis=1), state)
    assert state.sum() == pytest.approx(COUNTS.sum())


def test_answers_at_a_level_of_a_product():
    counts = np.arange(N * 4).reshape(N, 4)
    for mechanism in ("identity", "tree"):
        found = release(sf.unbounded(TRACTS * HOURS), mechanism, counts)
        table = found.answer(by=("county", "hour"), hour=(0, 12))
        queries = np.stack([np.outer(g, CELL[:4] == h).ravel() for g in groups("county") for h in (0, 1)])
        oracle = found.query(queries)
        assert np.allclose(table.value.ravel(), oracle.value)
        assert np.allclose(table.stderr.ravel(), oracle.stderr)
        one = found.answer(county="c3", hour=(0, 6))
        assert one.value == pytest.approx(table.value[4, 0])
        assert one.stderr == pytest.approx(table.stderr[4, 0])


def test_several_groups_are_taken_together():
    found = release()
    both = found.answer(county=["c0", "c2"])
    oracle = found.query(groups("county")[:2].sum(axis=0))
    assert (both.value, both.stderr) == (pytest.approx(oracle.value), pytest.approx(oracle.stderr))


def test_exact_totals_stay_exact_at_a_level():
    space = TRACTS * sf.Categories(["ill", "well"], name="case")
    policy = sf.policy(space, hide=sf.change("case"), public=["tract"])
    counts = np.stack([COUNTS, COUNTS + 1], axis=-1)
    found = sf.plan(policy, sf.histogram(), epsilon=1).publish(counts).answer(by="county")
    assert found.stderr.tolist() == [0.0] * 6
    assert np.array_equal(found.value, groups("county") @ counts.sum(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("policy", [POLICIES["replace-one"], POLICIES["path and ⊥"]], ids=["replace-one", "path and ⊥"])
def test_intervals_at_a_level_hold(policy):
    """600 releases, 8 groups: fewer than 540 of 600 in a 95 % interval once in 10⁶ runs (Binomial, 8 groups)."""
    plan = sf.plan(policy, sf.levels(), epsilon=1, mechanism="tree")
    held = np.zeros(8)
    for seed in range(600):
        found = plan.publish(COUNTS, source=sf.SeededSource(seed))
        for part, level in ((slice(0, 2), "state"), (slice(2, 8), "county")):
            table, truth = found.answer(by=level), groups(level) @ COUNTS
            held[part] += (table.low <= truth) & (truth <= table.high)
    assert (held >= 540).all()


def test_what_smooths_is_bracketed_group_by_group():
    found = release(sf.unbounded(TRACTS), "dawa").answer(by="state")
    assert found.value.sum() == pytest.approx(release(sf.unbounded(TRACTS), "dawa").counts.sum())
    assert (found.low <= found.value).all() and (found.value <= found.high).all()


def test_levels_of_two_places_are_told_apart_by_the_place():
    first = sf.Categories(["a", "b"], name="origin", levels={"half": ["x", "y"]})
    second = sf.Categories(["a", "b"], name="goal", levels={"half": ["x", "x"]})
    counts = np.array([[1, 2], [3, 4]])
    found = sf.plan(sf.bounded(first * second), sf.histogram(), epsilon=1).publish(counts)
    assert found.answer(by="origin.half").value.shape == (2,)
    assert found.answer(by=("goal.half", "origin.half")).value.shape == (1, 2)
    with pytest.raises(sf.InvalidInput):
        found.answer(by="half")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"by": "countty"},
            "'countty' is no factor and no axis of this release, which has 'tract', 'state', 'county'. Did you mean "
            "'county'? Nothing was answered.",
        ),
        (
            {"by": "county", "tract": "t1"},
            "by groups 'tract' by a level, and a part of it is asked as well. Nothing was answered. Leave one of them "
            "out.",
        ),
        (
            {"county": "c1", "tract": "t1"},
            "'county' and 'tract' both stand for axis 'tract'. Nothing was answered. Give one of them.",
        ),
        (
            {"county": "c11"},
            "county names 'c11', which is no group of that level. Did you mean 'c1'? Nothing was answered.",
        ),
        ({"county": 3}, "county=3 must be a group of the level 'county', or a list of them."),
    ],
)
def test_what_is_no_level_is_refused(asked, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        release().answer(**asked)
    assert str(refusal.value) == message
