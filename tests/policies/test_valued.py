"""What is hidden of sums and of people: graphs, units and totals, against what the words of a relation allow."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from valued_oracle import ANYTHING, Change, Words, differences

import sfumato as sf
from sfumato.auditing.databases import Pair
from sfumato.auditing.exact.additive import Case
from sfumato.policies import policy_from_spec

CELLS = 4
CLIPS = [((0, 3), Fraction(1)), ((-2, 3), Fraction(1)), ((2, 4), Fraction(1, 2)), ((-3, -1), Fraction(1))]
RELATIONS = {
    "moves": (sf.move(2), Words((Change(place=2),)), ["fare"]),
    "short moves": (sf.move("0.5"), Words((Change(place=0.5),)), ["fare"]),
    "presence": (sf.presence(), Words(presence=True), []),
    "anything": (sf.anything(), Words(anything=True), []),
    "standard": (sf.presence() | sf.anything(), Words(presence=True, anything=True), []),
    "the value": (sf.change("fare"), Words((Change(value=ANYTHING),)), ["place"]),
    "the value by less": (sf.move("1.5", of="fare"), Words((Change(value=1.5),)), ["place"]),
    "one of them": (
        sf.move(1, of="place") | sf.change("fare"),
        Words((Change(place=1), Change(value=ANYTHING))),
        [],
    ),
    "one of them by less": (
        sf.move(2, of="place") | sf.move(1, of="fare"),
        Words((Change(place=2), Change(value=1))),
        [],
    ),
    "both at once": (sf.move(1, of="place") & sf.change("fare"), Words((Change(place=1, value=ANYTHING),)), []),
    "both at once by less": (sf.move(2, of="place") & sf.move(1, of="fare"), Words((Change(place=2, value=1),)), []),
    "presence or moves": (sf.presence() | sf.move(1), Words((Change(place=1),), presence=True), []),
    "all by less": (
        sf.presence() | sf.move(2, of="place") & sf.move("0.5", of="fare"),
        Words((Change(place=2, value=0.5),), presence=True),
        [],
    ),
}
MECHANISMS = ["identity", "prefix", "haar", "hierarchy", "levels", "edges", "hats", "greedy", "policy-edges", "blocks"]


def line() -> sf.Domain:
    return sf.Line(0, CELLS, cells=CELLS, name="place")


@pytest.fixture(params=CLIPS, ids=lambda case: f"{case[0]} by {case[1]}")
def fares(request) -> sf.Amounts:
    clip, step = request.param
    return sf.amounts("fare", clip=clip, step=step)


@pytest.fixture(params=RELATIONS.values(), ids=RELATIONS)
def case(request, fares):
    hide, words, public = request.param
    policy = sf.policy(line(), hide=hide, public=public, values=fares)
    return policy, differences(CELLS, tuple(map(int, fares.clip)), fares.step, words)


def test_no_change_of_a_record_takes_more_steps_than_are_paid_for(case):
    """For every pair of records that the words let change into each other, by a flow along the edges of one unit."""
    policy, found = case
    graph = policy.on_cells
    most = 0.0
    for d in found:
        most = max(most, _steps(graph, np.array(d)))
    assert most <= policy.units
    assert most >= policy.units / 2  # and they are not far fewer


def _steps(graph: sf.Policy, d: np.ndarray) -> float:
    """The fewest steps of one unit along edges that make up a difference: a smallest flow, ⊥ being the last vertex."""
    from scipy.optimize import linprog

    if not d.any():
        return 0.0
    edges = graph.edges()
    ends = np.where(edges < 0, CELLS, edges)
    incidence = np.zeros((CELLS + 1, len(ends)))
    incidence[ends[:, 0], np.arange(len(ends))] = 1
    incidence[ends[:, 1], np.arange(len(ends))] = -1
    wanted = np.append(d, -d.sum())
    both = np.concatenate([incidence, -incidence], axis=1)
    solved = linprog(np.ones(both.shape[1]), A_eq=both, b_eq=wanted, bounds=(0, None))
    return float(solved.fun) if solved.success else np.inf


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_keeps_its_promise_for_every_change_of_a_record(case, name):
    """The loss of what is built, exactly, over all differences of sums that one change of a record makes."""
    policy, found = case
    try:
        plan = sf.plan(policy, sf.ranges(), epsilon=1, mechanism=name)
    except sf.InvalidInput as refusal:
        assert "mechanism=" in str(refusal) or "is for" in str(refusal)
        return
    mechanism = plan.mechanism if not policy.total_is_public else plan.mechanism.for_total(20)
    estimators = tuple(block.estimator for block in mechanism.model.blocks)
    built = Case(mechanism, estimators, 20 if policy.total_is_public else None)
    before = np.full(CELLS, 50)
    costs = []
    for d in found:
        if any(d):
            neighbours = Pair(before=before, after=before + np.array(d), edge="")
            costs.append(built.shift(neighbours, built.moved(neighbours)).cost)
    assert max(costs) <= 1


@pytest.mark.parametrize(
    ("hide", "clip", "sensitivity"),
    [
        (sf.move(2), (-50, 100), 2 * 100),  # a move takes the value away here and brings it there
        (sf.presence(), (-50, 100), 100),
        (sf.change("fare"), (-50, 100), 150),
        (sf.move(5, of="fare"), (-50, 100), 5),
        (sf.move("4.5", of="fare"), (-50, 100), 5),
        (sf.move(500, of="fare"), (-50, 100), 150),
        (sf.anything(), (0, 100), 200),
        (sf.anything(), (-50, 50), 100),
        (sf.move(2, of="place") | sf.change("fare"), (-50, 50), 100),
        (sf.move(2, of="place") & sf.change("fare"), (0, 100), 200),
    ],
)
def test_the_noise_of_single_cells_is_that_of_the_rules(hide, clip, sensitivity):
    fares = sf.amounts("fare", clip=clip, step=1)
    public = [] if hide.changes_all or hide.hides_presence else sorted({"fare", "place"} - {*hide.named("place").names})
    policy = sf.policy(line(), hide=hide, public=public, values=fares)
    assert policy.sensitivity(np.eye(CELLS, dtype=int)) == sensitivity


def test_the_exact_sum_is_public_only_where_nothing_changes_it_and_then_it_is_named():
    fares = sf.amounts("fare", clip=(0, 10), step=1)
    with pytest.raises(sf.InvalidInput, match=r"the exact sum of it would be published.*public=\['fare'\]"):
        sf.policy(line(), hide=sf.move(2), values=fares)
    with pytest.raises(sf.InvalidInput, match="the exact sum of it would be published"):
        sf.plan(sf.within(line(), 2), sf.ranges(), epsilon=1, values=fares)
    named = sf.policy(line(), hide=sf.move(2), public=["fare"], values=fares)
    assert named.total_is_public
    assert "the exact sum of 'fare' is public" in named.describe()
    for hide in (sf.move(2) | sf.change("fare"), sf.anything(), sf.presence(), sf.move(2) & sf.move(1, of="fare")):
        assert not sf.policy(line(), hide=hide, values=fares).total_is_public
    with pytest.raises(sf.InvalidInput, match="public names 'fare', which is not published exactly"):
        sf.policy(line(), hide=sf.anything(), public=["fare"], values=fares)


def test_groups_that_nothing_changes_have_exact_sums_and_are_named():
    space = line() * sf.Categories(["bus", "bike"], name="mode")
    fares = sf.amounts("fare", clip=(0, 10), step=1)
    with pytest.raises(sf.InvalidInput, match="'mode'"):
        sf.policy(space, hide=sf.move(2), public=["fare"], values=fares)
    policy = sf.policy(space, hide=sf.move(2), public=["fare", "mode"], values=fares)
    assert policy.on_cells.public == ("mode",)
    assert "the exact sum of 'fare' for every mode is public, jointly" in policy.describe()
    release = sf.plan(policy, sf.histogram(), epsilon=1).publish(np.arange(8).reshape(4, 2))
    assert release.marginal("mode").value.tolist() == [12.0, 16.0]
    assert release.marginal("mode").stderr.tolist() == [0.0, 0.0]


def test_people_are_under_presence_and_replacement_whatever_the_relation():
    users = sf.people("user", cells=3)
    same = [sf.policy(line(), hide=hide, values=users) for hide in (sf.move(2), sf.presence(), sf.anything())]
    assert len(set(same)) == 1
    policy = same[0]
    assert not policy.total_is_public
    assert policy.sensitivity(np.eye(CELLS, dtype=int)) == 2
    assert policy.diameter == policy.eccentricity == 1
    with pytest.raises(sf.InvalidInput, match="nothing is exact of distinct people"):
        sf.policy(line(), hide=sf.move(2), public=["place"], values=users)


def test_a_policy_for_values_is_described_and_built_again():
    for values in (sf.amounts("fare", clip=(0, 10), step="1/3"), sf.people("user", cells=3)):
        policy = (
            sf.policy(line(), hide=sf.move(2) | sf.change("fare"), values=values)
            if values.entities is None
            else (sf.policy(line(), hide=sf.move(2), values=values))
        )
        again = policy_from_spec(policy.spec())
        assert again == policy
        assert again.values == values
        assert again.units == policy.units


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sf.policy(line(), hide=sf.change("fair"), values=FARES), "'fair'.*did you mean 'fare'|'fair'"),
        (lambda: sf.policy(line(), hide=sf.move(1, of="fare", sources=[0.5]), values=FARES), "sources or keep"),
        (lambda: sf.policy(line(), hide=sf.move(1), values="fare"), "values=str are no values"),
        (lambda: sf.plan(sf.threshold(line(), 1), sf.ranges(), 1, values=FARES), "need a relation between records"),
        (
            lambda: sf.policy(sf.Line(0, 4, cells=4, name="fare"), hide=sf.anything(), values=FARES),
            "the domain has an axis of that name",
        ),
        (
            lambda: sf.plan(
                sf.policy(line(), hide=sf.anything(), values=FARES), sf.ranges(), 1, values=sf.people("user", cells=1)
            ),
            "the policy was made for amounts",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(sf.InvalidInput, match=message):
        make()


FARES = sf.amounts("fare", clip=(0, 10), step=1)


def test_a_move_in_metres_and_a_value_by_less_is_seen_on_a_large_grid_in_no_time():
    place = sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), cell="500 m")
    fares = sf.amounts("fare", clip=(0, 100), step="0.01")
    policy = sf.policy(place, hide=sf.move("800 m") | sf.move(5, of="fare"), values=fares)
    assert policy.units == 10_000
    assert not policy.total_is_public
