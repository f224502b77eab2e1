"""A plan chooses by expected error, from public figures alone, and says what it promises and what it beat."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanism import build
from sfumato.planning import planner

LINE = sf.Line(0, 1, cells=16)
GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(32, 32))
TRAMS = sf.Categories(["bus", "tram", "rest"])
POLICIES = [
    sf.threshold(LINE, 1),
    sf.threshold(LINE, 3),
    sf.bounded(LINE),
    sf.unbounded(LINE),
    sf.within(LINE, 0.2, sources=[0.0]),
    sf.within(LINE, 0.2, sources="boundary"),
    sf.threshold(GRID, 1),
    sf.within(GRID, 0.05),
    sf.unbounded(GRID),
    sf.graph(LINE, [(i, i + 1) for i in range(15)] + [(0, 15)]),
]


def planned(policy, workload=None, epsilon=1, **given):
    return sf.plan(policy, sf.ranges() if workload is None else workload, epsilon, **given)


# --- acceptance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 1000, 4096, 10_000])
def test_all_ranges_on_a_line_cost_at_most_four_over_epsilon_squared(n, epsilon):
    """Two noisy prefix sums a range, however long the line: Blowfish, Theorem 5.2."""
    plan = planned(sf.threshold(sf.Line(0, 1, cells=n), 1), epsilon=epsilon)
    assert plan.expected_error <= 4 / epsilon**2
    assert plan.mechanism.privacy_loss <= plan.epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_all_ranges_on_a_grid_cost_at_most_what_plain_edge_noise_costs(epsilon):
    policy = sf.threshold(GRID, 1)
    plain = build("edges", policy, Fraction(str(epsilon))).model.expected_error(sf.ranges(), GRID)
    assert planned(policy, epsilon=epsilon).expected_error <= plain


@pytest.mark.parametrize("workload", [sf.ranges(), sf.histogram(), sf.prefixes(), sf.ranges([(0, 0.5)])], ids=repr)
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_choice_is_never_worse_than_any_mechanism_that_is_forced(policy, workload):
    if policy.domain.ndim == 2 and workload.spec()["kind"] == "given ranges":
        workload = sf.ranges([(0, 0, 0.5, 0.3)])
    plan = planned(policy, workload)
    for name in sf.mechanisms():
        try:
            forced = planned(policy, workload, mechanism=name)
        except sf.InvalidInput:
            continue
        assert forced.mechanism.name == name
        if forced.mechanism.model is None:
            continue  # its error depends on the data
        assert plan.expected_error <= forced.expected_error * (1 + 1e-9), name


def test_categories_and_graphs_have_plans_too():
    policy = sf.graph(TRAMS, [("bus", "tram"), ("tram", "rest"), ("rest", sf.ABSENT)])
    assert planned(policy, sf.histogram()).expected_error > 0
    assert planned(sf.unbounded(TRAMS), sf.queries(np.eye(3))).mechanism.name == "identity"


# --- choosing ε from an error -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [0.5, 10, 10_000])
@pytest.mark.parametrize("given", [{}, {"mechanism": "identity"}, {"max_per_entity": 3}], ids=str)
@pytest.mark.parametrize("policy", POLICIES[:7], ids=repr)
def test_epsilon_for_is_the_smallest_that_meets_the_error(policy, given, error):
    epsilon = sf.epsilon_for(policy, sf.ranges(), error, **given)
    assert planned(policy, epsilon=epsilon, **given).expected_error <= error
    assert planned(policy, epsilon=0.99 * epsilon, **given).expected_error > error


# --- options, units ---------------------------------------------------------------------------------------------------


def test_a_forced_mechanism_takes_options():
    plan = planned(sf.unbounded(LINE), mechanism="hierarchy", branching=4, root=False)
    assert plan.mechanism.options == {"branching": 4, "root": False}
    assert plan.alternatives[0].options == "branching 4, root False"
    assert len(plan.alternatives) == 1


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_promise_about_a_person_has_noise_for_all_her_records(count):
    record, person = (
        planned(sf.threshold(LINE, 1), mechanism="edges"),
        planned(sf.threshold(LINE, 1), mechanism="edges", max_per_entity=count),
    )
    rates = [plan.mechanism.model.blocks[0].noise.rate for plan in (record, person)]
    assert rates[0] == count * rates[1]
    assert person.mechanism.privacy_loss * count == person.epsilon == 1
    assert (person.guarantee.unit, person.guarantee.max_per_entity) == ("person", count)
    assert (record.guarantee.unit, record.guarantee.max_per_entity) == ("record", None)


def test_a_plan_is_frozen_and_its_budget_exact():
    plan = planned(sf.threshold(LINE, 1), epsilon=0.1)
    assert plan.epsilon == Fraction(1, 10)
    with pytest.raises(FrozenInstanceError):
        plan.epsilon = Fraction(1)


# --- explanations -----------------------------------------------------------------------------------------------------


def test_a_plan_says_at_which_resolution_it_speaks():
    grid = sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(64, 64))
    words = "answers speak of whole cells of 0.00937 × 0.00703; a range that cuts cells gets a wider interval"
    plan = planned(sf.within(grid, delta=0.007))
    assert plan.resolution == words
    assert f"Resolution {words}" in str(plan)
    assert words in plan._repr_html_()
    assert plan.to_dict()["resolution"] == pytest.approx([0.6 / 64, 0.45 / 64])
    labelled = sf.plan(sf.bounded(sf.Categories(["a", "b"])), sf.histogram(), 1)
    assert labelled.resolution == ""  # a label is never cut
    assert "Resolution" not in str(labelled) + labelled._repr_html_()


def test_a_plan_explains_itself():
    plan = planned(sf.threshold(LINE, 1))
    words = str(plan)
    assert words == plan.describe()
    assert words.startswith("Plan for 16 cells at ε = 1\n")
    assert f"Promise    {plan.guarantee}" in words
    assert "one record moves by at most 1 cell" in words
    assert f"Mechanism  {plan.mechanism.describe()}" in words
    assert "Accuracy   all ranges: expected squared error" in words
    assert "±" in words
    assert "→" in words
    for other in plan.alternatives:
        assert other.name in words
        assert other.error is not None or other.reason in words
    errors = [other.error for other in plan.alternatives if other.error is not None]
    assert errors == sorted(errors)
    assert errors[0] == plan.expected_error
    assert repr(plan).startswith(f"Plan({plan.mechanism.name}, epsilon=1, expected_error=")
    assert plan.typical_error == pytest.approx(1.96 * plan.expected_error**0.5)


def test_a_plan_as_data_is_plain():
    data = json.loads(json.dumps(planned(sf.threshold(LINE, 1)).to_dict()))
    assert data["epsilon"] == "1"
    assert data["workload"] == {"kind": "ranges"}
    assert data["guarantee"]["unit"] == "record"
    assert data["alternatives"]


def test_a_plan_in_a_notebook_escapes_what_it_shows():
    policy = sf.bounded(sf.Categories(["<script>alert(1)</script>", "b"]))
    html = planned(policy, sf.histogram())._repr_html_()
    assert "<script>" not in html
    page = planned(sf.threshold(LINE, 1))._repr_html_()
    assert "<table>" in page
    assert "mechanism=&#x27;" in page  # reasons quote names, and quotes are escaped
    assert page.count("<td") == page.count("</td>")


# --- refusals ---------------------------------------------------------------------------------------------------------

POLICY = sf.threshold(LINE, 1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: sf.plan(LINE, sf.ranges(), 1),
            "policy=Line is not a policy. Build one, such as sf.policy(grid, hide=sf.move(0.01)).",
        ),
        (lambda: sf.plan(POLICY, "ranges", 1), "workload=str is not a workload. Use sf.ranges(), sf.histogram(), …"),
        (lambda: planned(POLICY, epsilon=0), "epsilon=0 must be greater than zero. Nothing was drawn or recorded."),
        (
            lambda: planned(POLICY, epsilon=-1.5),
            "epsilon=-1.5 must be greater than zero. Nothing was drawn or recorded.",
        ),
        (lambda: planned(POLICY, epsilon=float("inf")), "epsilon=inf is not a finite number."),
        (lambda: planned(POLICY, epsilon=True), "epsilon=True is not a number."),
        (lambda: planned(POLICY, branching=2), "branching: options belong to a mechanism; name it with mechanism=…."),
        (
            lambda: planned(POLICY, max_entity=3),
            "max_entity: options belong to a mechanism; name it with mechanism=…. Did you mean 'max_per_entity'?",
        ),
        (lambda: planned(POLICY, max_per_entity=0), "max_per_entity=0 must be a whole number of at least 1."),
        (lambda: planned(POLICY, max_per_entity=1.5), "max_per_entity=1.5 must be a whole number of at least 1."),
        (
            lambda: planned(POLICY, mechanism="gauss"),
            f"mechanism='gauss' is not one of {', '.join(map(repr, sf.mechanisms()))}.",
        ),
        (lambda: planned(POLICY, mechanism="identity", width=3), "mechanism='identity' takes no option width."),
        (
            lambda: sf.plan(sf.bounded(TRAMS), sf.ranges(), 1),
            "all ranges need an order, and the labels of axis 'category' have none. Nothing was computed. "
            "Use sf.histogram() or sf.queries(matrix).",
        ),
        (
            lambda: sf.plan(POLICY, sf.queries(np.eye(3)), 1),
            "matrix has 3 columns, but the domain has 16 cells: one column a cell.",
        ),
        (
            lambda: sf.epsilon_for(POLICY, sf.ranges(), 0),
            "error=0 must be greater than zero. Nothing was drawn or recorded.",
        ),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(build, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build()
    assert str(refusal.value) == message


def test_where_no_mechanism_fits_each_reason_is_given_once():
    with pytest.raises(sf.InvalidInput) as refusal:
        planned(POLICY, epsilon="1e-50")
    assert str(refusal.value).startswith("no mechanism fits this policy and workload: ")
    assert str(refusal.value).count("is for grids; on a line use mechanism='edges'") == len(
        [name for name in ("edge-haar", "edge-hierarchy") if name in sf.mechanisms()]
    )


def test_a_domain_beyond_memory_is_refused_before_anything_is_built(monkeypatch):
    monkeypatch.setattr(planner, "_memory", lambda: 2**30)

    def refuse(*given, **options):
        raise AssertionError("something was built")

    monkeypatch.setattr(planner, "build", refuse)
    huge = sf.Grid(bounds=(0, 0, 1, 1), shape=(100_000, 100_000))
    for call in (lambda: planned(sf.threshold(huge, 1)), lambda: sf.epsilon_for(sf.threshold(huge, 1), sf.ranges(), 1)):
        with pytest.raises(sf.TooLarge) as refusal:
            call()
        assert str(refusal.value) == (
            "10,000,000,000 cells need about 894.1 GiB, this machine has 1.0. Use fewer cells."
        )


def test_a_plan_without_public_counts_looks_for_no_spanning_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be weighed is not built: on a product of 600,000 cells that was nearly all of the time."""

    def looked_for(self: sf.Policy, **options: object) -> None:
        raise AssertionError("a spanning tree was looked for")

    monkeypatch.setattr(sf.Policy, "spanner", looked_for)
    space = sf.Grid(bounds=(0, 0, 4, 4), shape=(4, 4)) * sf.Categories(["a", "b", "c"], name="mode")
    policy = sf.policy(space, hide=sf.move(0.5) | sf.change("mode"))
    plan = sf.plan(policy, sf.ask(place=sf.ranges(), mode=sf.histogram()), epsilon=1)
    told = {other.name: other.reason for other in plan.alternatives}
    for name in ("consistent", "dawa"):
        assert told[name] == "its error depends on the data: give like=public counts to weigh it"
    sf.epsilon_for(policy, sf.histogram(), error=100)


@pytest.mark.parametrize("epsilon", ["1e-400", "1e-51", "1e51", 10**400])
def test_an_epsilon_of_which_no_error_can_be_told_is_refused(epsilon):
    """It ended in an error of Python's, in default plans too."""
    policy = sf.bounded(sf.Line(0, 1, cells=8))
    for mechanism in (None, "quadtree", "edges"):
        with pytest.raises(sf.InvalidInput, match="outside 1e-50 to 1e50, and no error can be told of it"):
            sf.plan(policy, sf.ranges(), epsilon, mechanism=mechanism)


@pytest.mark.parametrize("epsilon", ["1e-50", "1e50"])
def test_the_ends_of_what_can_be_planned_are_refused_or_planned_without_an_error_of_python(epsilon):
    policy = sf.bounded(sf.Line(0, 1, cells=8))
    for mechanism in sf.mechanisms():
        try:
            assert sf.plan(policy, sf.ranges(), epsilon, mechanism=mechanism).epsilon == Fraction(epsilon)
        except sf.InvalidInput as refusal:
            assert str(refusal)
