"""Tables that are measured alone: what they cost, how they are weighed, what they estimate, and what is refused."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.linear.tables import Tables
from sfumato.mechanism.registry import build, mechanism_from_spec, tunings
from sfumato.mechanism.tables.marginals import MarginalsMechanism
from sfumato.mechanism.tables.weights import sensitivity, tuned
from sfumato.noise import SeededSource

A, B, C = (sf.Categories([f"{name}{i}" for i in range(n)], name=name) for name, n in (("a", 3), ("b", 2), ("c", 4)))
PLACE = sf.Grid(bounds=(0, 0, 3, 2), shape=(3, 2))
HOUR = sf.Line(0, 4, cells=4, name="t")
ONE = sf.Line(0, 1, cells=1, name="one")
SPACES = [A * B * C, PLACE * A, PLACE * HOUR * B, ONE * A * HOUR]


def policies(space):
    """Every kind of relation that `sf.policy` takes, on the factors of a space."""
    names = [factor.name for factor in space.factors]
    own = {"place": sf.move(1.2), "t": sf.move(1.5, of="t"), "one": sf.move(1, of="one")}
    rules = [own.get(name, sf.change(name)) for name in names]
    alone = rules[0]
    for rule in rules[1:]:
        alone = alone | rule
    together = rules[0]
    for rule in rules[1:]:
        together = together & rule
    yield sf.bounded(space)
    yield sf.unbounded(space)
    yield sf.policy(space, hide=alone)
    yield sf.policy(space, hide=together)
    yield sf.policy(space, hide=(rules[0] & rules[1]) | rules[-1])
    yield sf.policy(space, hide=sf.presence() | alone)
    yield sf.policy(space, hide=rules[-1], public=names[:-1])
    if "place" in names:
        yield sf.policy(space, hide=sf.move(1.2, sources="boundary") | alone)
    cells = space.size
    yield sf.graph(space, [(i, i + 1) for i in range(cells - 1)] + [(0, sf.ABSENT)])


def subsets(space):
    axes = [i for i, n in enumerate(space.shape) if n > 1]
    return [part for k in range(len(axes)) for part in itertools.combinations(axes, k)]


def brute_force(policy, sets, weights):
    """The largest change of all weighed tables over every edge that is listed."""
    tables = Tables(policy.domain.shape, tuple(sets))
    rows = []
    for cell in range(policy.domain.size):
        unit = np.zeros(policy.domain.size, dtype=np.int64)
        unit[cell] = 1
        rows.append(np.concatenate([w * tables.table(tables.of_cells(unit), axes).ravel() for axes, w in weights]))
    columns = np.array([*rows, np.zeros_like(rows[0])])  # the last is that of ⊥, which is written -1
    tail, head = policy.edges().T
    return int(np.abs(columns[tail] - columns[head]).sum(axis=1).max())


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_the_sensitivity_is_that_of_every_edge(space):
    dice = np.random.default_rng(3)
    for policy in policies(space):
        for _ in range(6):
            chosen = [axes for axes in subsets(space) if dice.random() < 0.6] or subsets(space)[:1]
            weights = [(axes, int(w)) for axes, w in zip(chosen, dice.integers(1, 9, len(chosen)), strict=True)]
            found = sensitivity(policy, chosen, [w for _, w in weights])
            want = brute_force(policy, chosen, weights)
            assert found == want, (policy, weights)


def test_by_hand_what_a_change_costs():
    sets, weights = [(), (0,), (0, 1)], [5, 3, 2]
    space = A * B
    change = sf.change("a") | sf.change("b")
    assert sensitivity(sf.unbounded(space), sets, weights) == 10
    assert sensitivity(sf.bounded(space), sets, weights) == 10  # 2·(3 + 2): the total does not move
    assert sensitivity(sf.policy(space, hide=change), sets, weights) == 10
    assert sensitivity(sf.policy(space, hide=sf.change("b"), public=["a"]), sets, weights) == 4
    huge = (1 << 62, 1 << 62)
    assert sensitivity(sf.unbounded(space), [(0,), (1,)], huge) == 1 << 63  # Python's integers


def test_an_exact_audit_finds_just_what_is_promised():
    for policy in policies(A * B):
        if policy.public:
            continue
        mechanism = build("marginals", policy, Fraction(3, 5), tables=[[0], [1]], weights=[3, 2])
        found = sf.audit(mechanism, seconds=1)
        assert (found.method, found.epsilon) == ("exact", Fraction(3, 5)) == ("exact", mechanism.privacy_loss)


def test_without_noise_every_table_is_exact():
    space = A * B * C
    counts = np.random.default_rng(4).integers(0, 100, space.shape)
    for policy in [sf.bounded(space), sf.unbounded(space), sf.policy(space, hide=sf.change("c"), public=["a", "b"])]:
        for options in tunings("marginals", policy, sf.marginals(2)):
            made = build("marginals", policy, Fraction(1), **options)
            seen = made.seen(counts.ravel())
            total = int(made.records(seen)) if policy.total_is_public else None
            found = made.estimate(made.values(seen), total)
            assert found == pytest.approx(seen, abs=1e-9)
            assert made.records(seen) == counts.sum()


def test_what_is_public_comes_out_to_the_last_digit():
    space = A * B * C
    policy = sf.policy(space, hide=sf.change("c"), public=["a", "b"])
    plan = sf.plan(policy, sf.marginals(2), epsilon="0.1", mechanism="marginals")
    assert plan.mechanism.exact == ((0, 1),)
    counts = np.random.default_rng(5).integers(0, 9, space.shape)
    release = plan.publish(counts, source=sf.SeededSource(1))
    assert np.array_equal(release.marginal("a", "b").value, counts.sum(axis=2))
    assert not release.marginal("a", "b").stderr.any()
    for one, axes in (("a", (1, 2)), ("b", (0, 2))):
        crossed = release.marginal(one, "c")
        assert np.array_equal(crossed.value.sum(axis=1), counts.sum(axis=axes))
        assert (crossed.stderr > 0).all()
        assert np.array_equal(release.marginal(one).low, counts.sum(axis=axes))
    assert release.total == counts.sum()


# --- weights ----------------------------------------------------------------------------------------------------------


def error(policy, ask, sets, weights):
    """The expected squared error from Laplace noise of the least squares of these tables, up to its constant."""
    space = policy.domain
    options = {"tables": [list(axes) for axes in sets], "weights": [int(w) for w in weights]}
    made = build("marginals", policy, Fraction(1), **options)
    return made.model.error_terms(ask, space)[0] * made.sensitivity**2


@pytest.mark.parametrize("hide", ["presence", "anything", "alone"])
def test_no_weights_nearby_are_better(hide):
    space = A * B * C
    alone = sf.change("a") | sf.change("b") | sf.change("c")
    policy = sf.policy(space, hide={"presence": sf.presence(), "anything": sf.anything(), "alone": alone}[hide])
    for ask in (sf.marginals(2), sf.marginals(1) + 3 * sf.marginals("a", ("b", "c"))):
        found = tuned(ask, policy)
        least = error(policy, ask, found, found.values())
        dice = np.random.default_rng(6)
        every = {axes for axes in subsets(space) if axes or hide == "presence"}
        for _ in range(60):
            near = {axes: found.get(axes, 0) + dice.integers(0, 60) for axes in every}
            near = {axes: min(int(w * dice.uniform(0.7, 1.0)), 1023) for axes, w in near.items()}
            chosen = {axes: w for axes, w in near.items() if w}
            if set(found) <= set(chosen):
                assert error(policy, ask, chosen, chosen.values()) >= least * (1 - 5e-3)


def test_no_table_that_is_asked_for_is_rounded_away():
    place = sf.Grid(bounds=(0, 0, 1, 1), shape=(40, 40))
    space = place * A * B
    ask = sf.ask(place=sf.ranges(), a=sf.histogram()) + sf.marginals("b")  # nearly all questions are of the first
    for policy in (sf.bounded(space), sf.unbounded(space)):
        found = tuned(ask, policy)
        assert found[3,] >= 1
        assert max(found.values()) <= 1023
        (options,) = tunings("marginals", policy, ask)
        made = build("marginals", policy, Fraction(1), **options)
        assert np.isfinite(made.model.expected_error(ask, space))
        assert made.lattice.tells((3,))


def test_tables_of_very_many_axes_are_no_candidates_and_stop_no_plan():
    space = sf.Categories(["no", "yes"], name="q0")
    for i in range(1, 18):
        space = space * sf.Categories(["no", "yes"], name=f"q{i}")
    policy = sf.unbounded(space)
    assert tunings("marginals", policy, sf.marginals(17)) == []
    (options,) = tunings("marginals", policy, sf.marginals(*[tuple(f"q{i}" for i in range(k, k + 11)) for k in (0, 7)]))
    assert [len(axes) for axes in options["tables"]] == [11, 11]  # their sums would be too many


def test_tables_of_one_factor_share_no_budget_where_one_factor_changes_at_a_time():
    space = A * B * C
    alone = sf.policy(space, hide=sf.change("a") | sf.change("b") | sf.change("c"))
    plan = sf.plan(alone, sf.marginals(1), epsilon=1)
    assert plan.mechanism.name == "marginals"
    assert plan.mechanism.lattice.sets == ((0,), (1,), (2,))
    assert plan.mechanism.sensitivity == 2 * max(plan.mechanism.lattice.weights)
    at_once = sf.plan(sf.bounded(space), sf.marginals(1), epsilon=1, mechanism="marginals")
    assert plan.expected_error < 0.2 * at_once.expected_error  # a budget of its own for each of three: a ninth


# --- as a mechanism ---------------------------------------------------------------------------------------------------


def test_it_is_a_candidate_where_tables_are_all_that_is_asked():
    space = A * B * C
    policy = sf.unbounded(space)
    for ask in (sf.histogram(), sf.marginals(3), sf.queries(np.eye(24)), sf.ask()):
        assert tunings("marginals", policy, ask) == []
    assert len(tunings("marginals", policy, sf.marginals(2))) == 1
    weighed = sf.plan(policy, sf.marginals(2), epsilon=1)
    names = [other.name for other in weighed.alternatives]
    assert {"marginals", "identity", "hierarchy"} <= set(names)
    errors = [other.error for other in weighed.alternatives if other.error is not None]
    assert weighed.expected_error == min(errors)


def test_a_description_builds_it_again():
    policy = sf.policy(A * B * C, hide=sf.change("c"), public=["a", "b"])
    made = sf.plan(policy, sf.marginals(2), epsilon="1/3", mechanism="marginals").mechanism
    again = mechanism_from_spec(made.spec(), policy)
    assert isinstance(again, MarginalsMechanism)
    assert (again.lattice, again.exact, again.spec()) == (made.lattice, made.exact, made.spec())


def test_the_noise_has_the_variance_that_is_expected():
    """400 runs of 26 cells each: the mean square is within 8 % of what is expected but once in 10⁷ (σ = 1.4 %)."""
    space = A * B * C
    plan = sf.plan(sf.bounded(space), sf.marginals(2), epsilon=1, mechanism="marginals")
    made, source = plan.mechanism, SeededSource(11)
    seen = made.seen(np.full(space.size, 7, dtype=np.int64))
    squares = [((made.run(seen, 7 * space.size, source) - seen) ** 2).mean() for _ in range(400)]
    assert np.mean(squares) == pytest.approx(plan.expected_error, rel=0.08)
    assert np.mean(squares) / 1.21 < plan.expected_error * 0.92  # noise 10 % larger would be seen, and 10 % smaller
    assert np.mean(squares) / 0.81 > plan.expected_error * 1.08


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs tables: lists of the positions of axes"),
        ({"tables": [[0], [0]], "weights": [1, 1]}, "no list twice"),
        ({"tables": [[1, 0]], "weights": [1]}, "rising"),
        ({"tables": [[3]], "weights": [1]}, "positions of axes"),
        ({"tables": [[0], [1]], "weights": [1]}, "for every one of its tables a whole number from 1 to 1023"),
        ({"tables": [[0]], "weights": [0]}, "whole number from 1 to 1023"),
        ({"tables": [[0]], "weights": [1024]}, "whole number from 1 to 1023"),
        ({"tables": [[0]], "weights": [1], "exact": [[1]]}, "exact names a table that is not public"),
        ({"tables": [[0]], "weights": [1], "width": 3}, "has no option 'width'"),
        ({"tables": [], "weights": []}, "no change of a record moves any table"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build("marginals", sf.unbounded(A * B * C), Fraction(1), **options)
    assert message in str(refusal.value)


def test_public_tables_are_named_as_such():
    policy = sf.policy(A * B, hide=sf.change("b"), public=["a"])
    for options, message in (
        ({"tables": [[0], [1]], "weights": [1, 1]}, "tables names one that is public"),
        ({"tables": [[0, 1]], "weights": [1]}, "exact must have the public part of every table"),
    ):
        with pytest.raises(sf.InvalidInput, match=message):
            build("marginals", policy, Fraction(1), **options)
    with pytest.raises(sf.InvalidInput, match="do not tell all that is asked"):
        sf.plan(sf.unbounded(A * B), sf.histogram(), 1, mechanism="marginals", tables=[[0]], weights=[1])
