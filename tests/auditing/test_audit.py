"""What an audit says: exact losses by hand, the theorem behind them by finite sums, refusals, and plain words."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import sfumato as sf
from sfumato.app.audit import audit as command
from sfumato.auditing import Audit, Witness, audit, audit_chain, audit_stream
from sfumato.auditing.exact.order_statistics import audit_order
from sfumato.auditing.exact.shifts import Solver
from sfumato.auditing.record_changes import changes, defined
from sfumato.auditing.statistical.audit_source import AuditSource
from sfumato.auditing.statistical.distinguishers import learn, odds_bound, ratio_bound
from sfumato.auditing.statistical.sampler import measured_rate
from sfumato.errors import AuditFailed
from sfumato.mechanism import build
from sfumato.noise import DiscreteLaplace
from sfumato.quantiles import InverseSensitivity, OrderLaplace, SmoothSensitivity

ONE = Fraction(1)
LINE = sf.Line(0, 1, cells=4)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_plan_is_audited_exactly_and_says_so():
    found = audit(sf.plan(sf.threshold(LINE, 2), sf.ranges(), "1/2", mechanism="edges"), seed=1)
    assert (found.method, found.epsilon, found.promised, found.passed) == (
        "exact",
        Fraction(1, 2),
        Fraction(1, 2),
        True,
    )
    assert found.require() is found
    assert bool(found)
    u, v = found.witness.edge
    assert abs(u - v) == 2  # two edges at rate 1/4 each
    before, after = (np.array(counts) for counts in found.witness.databases)
    assert np.abs(after - before).sum() == 2
    assert found.describe().splitlines()[:2] == [
        "edges keeps its promise of ε = 0.5: its loss is 0.5.",
        "Method     exact: the loss itself, in whole numbers and fractions.",
    ]
    assert "5 of 5 changes of a record" in found.describe()


def test_too_large_a_promise_is_not_kept_by_luck():
    """Twice the noise that is needed: the loss is half the promise, and the audit says half."""
    plan = sf.plan(sf.bounded(LINE), sf.histogram(), 1, mechanism="identity")
    found = audit(replace(plan, mechanism=replace(plan.mechanism, epsilon=Fraction(1, 2))), seed=1)
    assert (found.epsilon, found.passed) == (Fraction(1, 2), True)


def test_a_persons_records_change_at_once():
    plan = sf.plan(sf.unbounded(LINE), sf.histogram(), 1, mechanism="identity", max_per_entity=3)
    assert plan.mechanism.epsilon == Fraction(1, 3)
    assert audit(plan, seed=1).epsilon == 1


def test_a_single_cell_has_nothing_to_hide():
    found = audit(build("edges", sf.bounded(sf.Line(0, 1, cells=1)), ONE))
    assert (found.epsilon, found.looked_at) == (0, ("no change to hide",))


def test_public_counts_take_part():
    counts = np.array([5, 0, 2, 9])
    found = audit(build("sorted", sf.bounded(LINE), ONE), counts=counts, seed=1)
    assert found.epsilon == 1
    assert found.method == "exact"


def test_sorted_points_with_a_private_number_are_audited_exactly():
    found = audit(build("sorted", sf.unbounded(LINE), ONE), seed=1)
    assert (found.method, found.epsilon) == ("exact", 1)
    assert "the noisy number of records is" in found.witness.event


@pytest.mark.slow
@pytest.mark.parametrize(("name", "samples"), [("dawa", 400), ("consistent", 2_000), ("identity", 2_000)])
def test_runs_never_prove_more_than_the_promise_of_what_is_right(name, samples):
    """Four audits at 1 - 10⁻⁷ each: the bound stays at or below ε but once in 2·10⁶ runs of this test."""
    mechanism = build(name, sf.threshold(sf.Line(0, 1, cells=8), 1), Fraction(1, 2))
    for seed in range(4):
        found = audit(mechanism, seed=seed, samples=samples, seconds=100, confidence=1 - 1e-7, method="statistical")
        assert found.method == "statistical"
        assert found.passed, found


@pytest.mark.slow
def test_an_alarm_is_as_rare_as_the_confidence_says():
    """Noise that spends all of ε on two cells, 60 audits at confidence 0.9: at most one in ten may say that it breaks
    its promise, and more than 21 do once in ten million times.
    """
    mechanism = build("edges", sf.bounded(sf.Line(0, 1, cells=2)), ONE)
    audits = (
        audit(mechanism, seed=seed, samples=300, seconds=100, confidence=0.9, method="statistical")
        for seed in range(60)
    )
    assert sum(not found.passed for found in audits) <= 21


# --- the theorem of `shifts` ------------------------------------------------------------------------------------------


def true_loss(matrix, rates, change, reach, support):
    """The largest log-ratio of P[D·η = y] and P[D·η = y + d] over |y| ≤ reach, by summing over |η_j| ≤ support."""
    etas = np.array(list(itertools.product(range(-support, support + 1), repeat=matrix.shape[1])))
    weights = np.exp(-np.abs(etas) @ np.array([float(rate) for rate in rates]))
    sums = {}
    for y, weight in zip(map(tuple, (etas @ matrix.T).tolist()), weights.tolist(), strict=True):
        sums[y] = sums.get(y, 0.0) + weight
    worst = 0.0
    for y in itertools.product(range(-reach, reach + 1), repeat=matrix.shape[0]):
        other = tuple(int(a + b) for a, b in zip(y, change, strict=True))
        if y in sums and other in sums:
            worst = max(worst, abs(math.log(sums[y] / sums[other])))
    return worst


@pytest.mark.parametrize(
    ("rates", "change"),
    [((1, 1, 1), (1, -1, 0)), ((1, Fraction(3, 4), Fraction(3, 4)), (1, -1, 0)), ((2, 1, 1), (1, 0, -1))],
    ids=str,
)
def test_the_loss_on_a_cycle_is_the_cheapest_flow(rates, change):
    """Three cells in a ring, the noise of three edges, two-dimensional reports: sums over η within ±16, what is cut off
    is below e⁻⁸. The largest ratio in reach lies at or below the cheapest flow, and within 2 % of it.
    """
    ring = np.array([[1, 0, -1], [-1, 1, 0], [0, -1, 1]])
    shift = Solver(ring, tuple(map(Fraction, rates))).cheapest(np.array(change))
    assert shift.tight
    found = true_loss(ring, rates, change, reach=6, support=16)
    assert found <= float(shift.cost) + 1e-3
    assert found >= 0.98 * float(shift.cost)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(0, 10**6))
def test_the_cheapest_integer_change_is_that_of_a_search(rows, cols, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-1, 2, (rows, cols))
    rates = tuple(Fraction(int(rate)) for rate in rng.integers(1, 4, cols))
    change = matrix @ rng.integers(-1, 2, cols)
    best = min(
        (
            sum(abs(part) * rate for part, rate in zip(c, rates, strict=True))
            for c in itertools.product(range(-3, 4), repeat=cols)
            if np.array_equal(matrix @ np.array(c), change)
        ),
    )
    assert Solver(matrix, rates).cheapest(change).cost == best


def test_what_no_integer_noise_makes_up_for_is_infinite():
    twice = Solver(np.array([[2, 0], [0, 2]]), (ONE, ONE))
    assert twice.injective
    assert twice.cheapest(np.array([2, 0])).cost == 1
    assert twice.cheapest(np.array([1, 0])).cost == math.inf
    either = Solver(np.array([[2, 4]]), (ONE, ONE))  # not injective, and even all the same
    assert not either.injective
    assert (either.cheapest(np.array([4])).cost, either.cheapest(np.array([3])).cost) == (1, math.inf)


# --- changes of a record ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(5, 3)), 0.3),
        sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(5, 3)), 0.3, metric="manhattan"),
        sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(5, 3)), 0.05, metric="chebyshev", sources="boundary"),
        sf.within(sf.Line(0, 1, cells=20), 0.1, sources=[(0.31,), (0.7,)]),
        sf.within(sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(6, 5)), 9000, metric="great-circle"),
        sf.threshold(sf.Grid(bounds=(0, 0, 1, 1), shape=(5, 3)), 3),
        sf.bounded(LINE),
        sf.unbounded(LINE),
        sf.graph(LINE, [(0, 1), (1, 2), (2, 3), (3, sf.ABSENT)]),
    ],
    ids=repr,
)
def test_every_policy_contains_what_its_words_say(policy):
    """No made-up point finds an edge that is missing, and most of the edges that are there are found."""
    edges = {tuple(sorted(edge)) for edge in policy.edges().tolist()}
    made = defined(policy, np.random.default_rng(1))
    assert made <= edges
    assert len(made) > 0.5 * len(edges)
    listed, total = changes(policy, np.random.default_rng(1))
    assert len(listed) == total == len(edges)
    assert (listed[:, 0] >= 0).all()


# --- statistics -------------------------------------------------------------------------------------------------------


def test_the_bound_on_a_ratio_holds_as_often_as_it_says():
    """20,000 pairs of binomials at confidence 0.9: wrong at most once in ten, which 6 σ above 10 % would exceed."""
    rng = np.random.default_rng(2)
    first, second = rng.binomial(300, 0.5, 20_000), rng.binomial(300, 0.2, 20_000)
    wrong = sum(ratio_bound(int(a), 300, int(b), 300, 0.9) > math.log(2.5) for a, b in zip(first, second, strict=True))
    assert wrong / 20_000 < 0.1 + 6 * math.sqrt(0.1 * 0.9 / 20_000)
    assert ratio_bound(0, 10, 5, 10, 0.9) == -math.inf
    assert ratio_bound(10, 10, 10, 10, 0.9) < 0


@pytest.mark.parametrize("share", [0.55, 0.75, 0.99])
def test_the_bound_on_guesses_holds_as_often_as_it_says(share):
    """20,000 binomials at confidence 0.9: wrong at most once in ten, which 6 σ above 10 % would exceed."""
    right = np.random.default_rng(2).binomial(300, share, 20_000)
    wrong = sum(odds_bound(int(one), 300, 0.9) > math.log(share / (1 - share)) for one in right)
    assert wrong / 20_000 < 0.1 + 6 * math.sqrt(0.1 * 0.9 / 20_000)
    assert odds_bound(0, 300, 0.9) == -math.inf
    assert math.log(100) < odds_bound(1000, 1000, 0.999) < math.log(1000)


def test_an_event_that_only_one_side_shows_is_learned():
    rng = np.random.default_rng(3)
    before, after = rng.normal(size=(2, 4000, 5))
    before[:, 3] = np.where(rng.random(4000) < 0.2, 7.0, before[:, 3])
    promise, guess = learn(before[:2000], after[:2000], 2000, 0.999)
    assert promise > 2
    assert odds_bound(*guess.count(before[2000:], after[2000:]), 0.999) > 2
    assert "“the first” where e" in guess.describe(list("abcdefgh")[1:])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_guess_reads_both_tails(sign):
    """Laplace noise at rate 1 around ∓1/2: guesses on both sides of 0 are right with odds of e, the whole loss."""
    rng = np.random.default_rng(4)
    tables = [sign * (rng.geometric(1 - math.exp(-1), (2, 20_000)) * [[1], [-1]]).sum(0)[:, None] for _ in range(2)]
    before, after = tables[0] + 0.0, tables[1] + float(sign)
    _, guess = learn(before[:10_000], after[:10_000], 20_000, 0.999)
    right, guesses = guess.count(before[10_000:], after[10_000:])
    assert guesses == 20_000
    assert 0.9 < odds_bound(right, guesses, 0.999) < 1
    relation = ("≤ 0", "≥ 1") if sign > 0 else ("≥ 0", "≤ -1")
    assert guess.describe(["it"]) == f"“the first” where it {relation[0]} and “the second” where it {relation[1]}"


@pytest.mark.slow
@pytest.mark.parametrize("bare", [1, 3])
def test_the_pair_that_shows_most_is_found(bare):
    """One cell of four gets no noise: of seven pairs, those that touch it are told apart for certain."""

    class OneBareCell(type(build("identity", sf.unbounded(LINE), ONE))):
        def run(self, counts, total, source):
            noisy = super().run(counts, total, source)
            noisy[bare] = counts[bare]
            return noisy

    mechanism = build("identity", sf.unbounded(LINE), ONE)
    fields = {name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__}
    found = audit(OneBareCell(**fields), seed=1, samples=3_000, seconds=1000.0)
    assert (found.method, found.witness.edge) == ("statistical", (bare, -1))
    assert found.epsilon > 4


@pytest.mark.parametrize("rate", ["1/50", "1/3", "2"])
def test_draws_prove_a_rate_close_to_the_law_and_never_above(rate):
    """400,000 draws at confidence 1 - 10⁻⁶: within 5 % from below."""
    drawn = measured_rate(DiscreteLaplace(Fraction(rate)), AuditSource(4), 1 - 1e-6)
    assert 0.95 < drawn.excess <= 1


# --- order statistics -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1/2", "2"])
@pytest.mark.parametrize("kind", [InverseSensitivity, OrderLaplace])
def test_order_statistics_keep_their_promise(kind, epsilon):
    found = audit(kind(epsilon=Fraction(epsilon), theta=1000, cells=1 << 20))
    assert found.passed
    assert found.method == "exact"
    assert float(Fraction(epsilon)) * 0.6 < found.epsilon <= float(Fraction(epsilon))


@pytest.mark.parametrize("slack", [Fraction(0), Fraction(1, 1000)], ids=["smooth-pure", "smooth"])
def test_smooth_sensitivity_keeps_its_promise(slack):
    assert audit(SmoothSensitivity(epsilon=ONE, theta=1000, cells=1 << 20, slack=slack)).passed


def test_an_exponential_mechanism_at_the_full_rate_is_caught():
    class Eager(InverseSensitivity):
        @property
        def rate(self):
            return self.epsilon

    assert not audit(Eager(epsilon=ONE, theta=5, cells=6)).passed


def test_a_law_is_a_law():
    for mechanism in (
        InverseSensitivity(epsilon=ONE, theta=2, cells=6),
        OrderLaplace(epsilon=ONE, theta=2, cells=6),
        SmoothSensitivity(epsilon=ONE, theta=2, cells=6, slack=Fraction(0)),
    ):
        p = mechanism.law(np.array([0, 1, 4]), 2)
        assert p.shape == (6,)
        assert p.sum() == pytest.approx(1)
        assert (p > 0).all()


# --- time and levels --------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 8))
def test_the_worst_window_is_that_of_all_windows(tenths, window):
    budgets = [Fraction(t, 10) for t in tenths]
    expected = max((sum(budgets[max(0, i - window + 1) : i + 1]) for i in range(len(budgets))), default=Fraction(0))
    assert audit_stream(budgets, window=window, epsilon=2).epsilon == expected


def test_an_account_of_a_stream_is_audited_by_its_own_terms(tmp_path):
    ledger = sf.Ledger(tmp_path / "budget.db", epsilon=1)
    account = ledger.stream("visits", epsilon=1, window=3, policy=sf.threshold(LINE, 1))
    for step, spent in enumerate(["0.2", "0.5", "0.3", "0.2"]):
        account.charge(step, spent, label="visits", release_id=f"{step}")
    found = audit_stream(account)
    assert (found.subject, found.epsilon, found.promised) == ("stream 'visits'", 1, 1)


@pytest.mark.parametrize("rates", [(1, 2), ("1/2", "3/4"), (1, "3/2", "2")], ids=str)
def test_a_chain_costs_its_last_level(rates):
    found = audit_chain(rates)
    assert (found.method, found.epsilon, found.passed) == ("exact", Fraction(rates[-1]), True)


# --- words and refusals -----------------------------------------------------------------------------------------------


def test_a_broken_promise_is_loud():
    found = Audit(
        subject="edges",
        promised=ONE,
        epsilon=math.inf,
        method="exact",
        witness=Witness(edge=(2, -1), databases=((0,) * 14, (1,) * 14), event="it shows"),
    )
    assert not found
    with pytest.raises(AuditFailed) as failure:
        found.require()
    assert str(failure.value) == (
        "edges BREAKS its promise of ε = 1: its loss is infinite.\n"
        "Method     exact: the loss itself, in whole numbers and fractions.\n"
        "Witness    a record between cell 2 and ⊥; it shows; [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, …] and "
        "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, …]"
    )
    assert isinstance(failure.value, AssertionError)
    assert json.loads(json.dumps(found.to_dict()))["epsilon"] == "inf"


PLAN = sf.plan(sf.threshold(LINE, 1), sf.ranges(), 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"subject": "edges"},
            "subject=str cannot be audited. Nothing was run. Give a plan from sf.plan(…), a mechanism, or a mechanism "
            "for order statistics.",
        ),
        ({"samples": 0}, "samples=0 must be a whole number of at least 1."),
        ({"seconds": 0}, "seconds=0 must be greater than zero. Nothing was run."),
        ({"confidence": 1.0}, "confidence=1.0 must be at least 0.5 and below 1. Nothing was run."),
        ({"seed": -1}, "seed=-1 must be a whole number of at least 0, or left out. Nothing was run."),
        ({"method": "fast"}, "method='fast' must be 'exact', 'statistical', or left out. Nothing was run."),
        (
            {"counts": [1.5] * 4},
            "counts must be public whole numbers of at least 0 in the domain's shape (4,). Nothing was run.",
        ),
        (
            {"subject": build("dawa", sf.unbounded(sf.Line(0, 1, cells=40)), ONE), "method": "exact"},
            "method='exact' does not fit mechanism='dawa': its runs can be chosen in too many ways to look at each. "
            "Nothing was concluded. Leave method out for a statistical audit.",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_audited_is_refused(given, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        audit(given.pop("subject", PLAN), **given)
    assert str(refusal.value) == message


def test_large_domains_are_refused():
    plan = sf.plan(sf.threshold(sf.Line(0, 1, cells=5000), 1), sf.ranges(), 1)
    with pytest.raises(sf.TooLarge) as refusal:
        audit(plan)
    assert str(refusal.value) == (
        "an audit takes at most 4,096 cells, and this domain has 5,000. Nothing was run. Audit the same policy and "
        "mechanism on fewer cells: what is wrong shows there."
    )


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: audit_stream([1]), "window and epsilon are needed beside a list of budgets. Nothing was concluded."),
        (lambda: audit_stream([-1], window=1, epsilon=1), "budgets must be at least 0. Nothing was concluded."),
        (
            lambda: audit_chain([2, 1]),
            "rates must be two or three rising numbers of at least 0.5. Nothing was concluded.",
        ),
        (lambda: audit_order("median"), "mechanism=str does not publish an order statistic."),
    ],
)
def test_what_is_no_stream_chain_or_order_statistic_is_refused(run, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        run()
    assert str(refusal.value) == message


def test_the_command_line_audits_a_plan():
    app = typer.Typer()
    app.command()(command)
    arguments = ["--bounds", "0,1", "--shape", "12", "--delta", "0.2", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["passed"] is True
    told = CliRunner().invoke(app, arguments[:-1])
    assert "keeps its promise of ε = 1" in told.output
