"""Published medians and quantiles: what is promised, in which order things happen, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from publish_spies import SpyLedger, SpySource

import sfumato as sf
from sfumato.publishing.lattice import FEWEST_CELLS, MOST_CELLS, lattice_policy
from sfumato.publishing.quantile import median, quantile
from sfumato.quantiles import METHODS, rank_of
from sfumato.quantiles.choice import better

VALUES = np.random.default_rng(0).normal(0.4, 0.1, 2001)
SECRET = 987_654_321
UNIT = {"bounds": (0, 1), "epsilon": 1}


@pytest.fixture
def journal():
    return []


@pytest.fixture
def ledger(tmp_path, journal):
    return SpyLedger(tmp_path / "budget.db", journal, epsilon=2)


# --- what comes out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*METHODS, None])
@pytest.mark.parametrize("delta", [None, 0.01])
def test_with_a_generous_epsilon_the_answer_is_the_order_statistic_to_a_cell(method, delta):
    """The heaviest tail is the Cauchy noise of "smooth-pure", at most 10⁻¹⁰ cells here: a false alarm of 10⁻¹¹."""
    for q in (0.5, 0.9, "1/4"):
        answer = quantile(VALUES, q=q, bounds=(0, 1), epsilon=10**14, delta=delta, method=method)
        truth = np.sort(VALUES)[rank_of(Fraction(str(q)), 2001) - 1]
        assert answer.value == pytest.approx(truth, abs=2e-6)
        assert answer.q == Fraction(str(q))
        assert isinstance(answer, sf.Answer)


def test_the_rank_of_a_quantile_is_exact():
    half = Fraction(1, 2)
    assert [rank_of(half, n) for n in (1, 2, 3, 4, 5)] == [1, 1, 2, 2, 3]
    assert rank_of(Fraction(1, 10**9), 5) == 1
    assert rank_of(Fraction("0.3"), 10) == 3  # 0.3·10 is above 3 in binary
    assert rank_of(Fraction("0.9"), 1000) == 900


def test_the_median_of_an_even_number_is_the_lower_middle_one():
    assert median([0.1, 0.2, 0.8, 0.9], bounds=(0, 1), epsilon=1e9).value == pytest.approx(0.2, abs=1e-6)


@pytest.mark.filterwarnings("ignore::sfumato.DataWarning")
def test_values_outside_count_as_the_nearest_bound():
    assert median([-5, 7, 9], bounds=(0, 1), epsilon=1e9).value == pytest.approx(1, abs=1e-6)
    assert median([-5, -7, 9], bounds=(0, 1), epsilon=1e9).value == pytest.approx(0, abs=1e-6)


def test_the_guarantee_names_the_policy_and_the_promise():
    answer = median(VALUES, **UNIT, delta=0.01)
    assert answer.guarantee.policy == lattice_policy((0, 1), delta=0.01)
    assert answer.guarantee.policy.describe() == (
        "one record moves by less than 0.01 (euclidean); the number of records is public"
    )
    assert (answer.guarantee.epsilon, answer.guarantee.slack) == (1, Fraction(1, 2**100))
    assert answer.guarantee.private
    assert median(VALUES, **UNIT).guarantee.policy.name == "bounded"
    slack = median(VALUES, **UNIT, method="smooth", slack="1e-6").guarantee.slack
    assert slack == Fraction(1, 10**6) + Fraction(1, 2**100)
    assert median(VALUES, **UNIT, method="smooth").guarantee.slack == Fraction(1, 10**9) + Fraction(1, 2**100)
    assert median(VALUES, **UNIT, method="smooth-pure").guarantee.slack == Fraction(1, 2**100)


def test_plain_noise_has_an_error_bar_and_the_others_have_none():
    plain = median(VALUES, **UNIT, delta=0.01, method="laplace")
    assert plain.stderr == pytest.approx(math.sqrt(2) * 0.01, rel=1e-3)
    assert 0 <= plain.low < plain.value < plain.high <= 1
    assert repr(plain).startswith(f"QuantileAnswer({plain.value:.6g}, q=0.5 by 'laplace', 95% within [")
    for method in ("inverse", "smooth", "smooth-pure"):
        answer = median(VALUES, **UNIT, delta=0.01, method=method)
        assert math.isnan(answer.stderr)
        assert math.isnan(answer.low)
        assert math.isnan(answer.high)
        assert repr(answer).endswith(f"by {method!r}, error unknown: it depends on the data)")


@pytest.mark.slow
@pytest.mark.parametrize("values", [[0.5], [0.999, 0.9995, 1.0]], ids=["middle", "border"])
def test_the_interval_covers_what_it_says(values):
    """2,000 answers at 95 %: fewer than 1,846 covered, 5.5 standard deviations, is a false alarm of 10⁻⁷."""
    answers = [median(values, bounds=(0, 1), epsilon=1, delta=0.05, method="laplace") for _ in range(2000)]
    covered = sum(a.low <= values[len(values) // 2] <= a.high for a in answers)
    assert covered >= 1846
    if len(values) == 1:
        assert covered <= 1954  # and not by being too wide


def test_no_values_give_an_answer_around_the_middle():
    """The heaviest tail is the Cauchy noise of "smooth-pure", 2·10⁻¹⁰ cells wide here: a false alarm of 2·10⁻¹¹."""
    for method in set(METHODS) - {"ranks"}:  # which hides their number: any cell is as good
        answer = median([], bounds=(0, 1), epsilon=10**14, delta=0.01, method=method)
        assert answer.value == pytest.approx(0.5, abs=1e-5)


@pytest.mark.filterwarnings("ignore::sfumato.DataWarning")
@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-10, 10), max_size=30),
    st.floats(0.001, 0.999),
    st.sampled_from([None, 0.5, 0.002]),
    st.sampled_from([*METHODS, None]),
    st.sampled_from([0.01, 1, 50]),
)
def test_every_dataset_yields_an_answer_within_the_bounds(values, q, delta, method, epsilon):
    answer = quantile(values, q, bounds=(-1, 1), epsilon=epsilon, delta=delta, method=method)
    assert -1 < answer.value < 1
    assert answer.method in METHODS


# --- the lattice ------------------------------------------------------------------------------------------------------


def step_in_cells(policy):
    """θ: how many cells one step of the policy on a lattice spans at most."""
    stencil = policy.moves.stencil
    return max(policy.domain.size - 1 if stencil is None else int(stencil.reach[0]), 1)


@pytest.mark.parametrize("bounds", [(0, 1), (-5, 1e6), (1e-3, 2e-3), (100, 101)], ids=str)
@pytest.mark.parametrize("share", [None, 1, 0.3, 1e-3, 1e-4])
def test_the_lattice_follows_from_bounds_and_delta_alone(bounds, share):
    width = bounds[1] - bounds[0]
    policy = lattice_policy(bounds, delta=None if share is None else width * share)
    cells, theta = policy.domain.size, step_in_cells(policy)
    assert cells <= MOST_CELLS
    assert cells & (cells - 1) == 0
    if share is None:
        assert theta == cells - 1
    else:
        assert cells >= FEWEST_CELLS
        assert theta >= min(1024, cells - 1)
        assert theta <= math.ceil(cells * share * (1 + 1e-6)) + 1


def test_far_from_the_origin_the_lattice_is_as_fine_as_doubles_allow():
    assert lattice_policy((1e9, 1e9 + 1)).domain.size == 8192
    assert median([1e9 + 0.3], bounds=(1e9, 1e9 + 1), epsilon=1e5).value == pytest.approx(1e9 + 0.3, abs=2e-4)


def test_quantiles_of_one_dataset_share_one_account(ledger):
    for q in (0.25, 0.5, 0.75):
        quantile(VALUES, q, bounds=(0, 1), epsilon="0.2", delta=0.01, ledger=ledger)
    median(VALUES, bounds=(0, 1), epsilon="0.2", delta=0.01, ledger=ledger, method="smooth-pure")
    assert ledger.spent == Fraction(4, 5)


def test_the_method_follows_from_public_figures():
    def chosen(n, delta, epsilon=1):
        policy = lattice_policy((0, 1), delta=delta)
        return better(count=n, epsilon=Fraction(epsilon), theta=step_in_cells(policy), cells=policy.domain.size)

    assert chosen(10_001, None) == chosen(10_001, 0.01) == "inverse"
    assert chosen(11, 0.001) == chosen(0, None) == "laplace"
    assert chosen(1001, 0.01) == "inverse"
    assert chosen(1001, 0.01, epsilon=30) == "laplace"


# --- check, record, draw ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["inverse", "laplace", "smooth-pure"])
def test_the_charge_is_recorded_before_the_first_random_word(method, ledger, journal):
    median(VALUES, **UNIT, delta=0.1, method=method, ledger=ledger, source=SpySource(journal))
    assert journal[0] == "record"
    assert "draw" in journal[1:]
    assert journal.count("record") == 1
    assert ledger.spent == 1
    assert ledger.history()[-1].label == f"quantile 0.5 ({method}) on {FEWEST_CELLS} cells"


def test_overspending_is_refused_without_drawing(ledger, journal):
    for _ in range(2):
        median(VALUES, **UNIT, ledger=ledger, label="wages")
    assert ledger.history()[-1].label == "wages"
    journal.clear()
    with pytest.raises(sf.BudgetExceeded):
        median(VALUES, **UNIT, ledger=ledger, source=SpySource(journal))
    assert journal == []
    assert ledger.spent == 2


def test_a_seeded_answer_says_that_it_is_not_private_and_no_ledger_takes_it(ledger, journal):
    for method in METHODS:
        one, other = (median(VALUES, **UNIT, method=method, source=sf.SeededSource(7)) for _ in range(2))
        assert one.value == other.value
        assert not one.guarantee.private
        assert "NOT PRIVATE" in repr(one)
    with pytest.raises(sf.InvalidInput) as refusal:
        median(VALUES, **UNIT, ledger=ledger, source=sf.SeededSource(7))
    assert str(refusal.value) == (
        "A release made with seeded randomness is not private and cannot be charged to a ledger. Nothing was drawn or "
        "recorded. Publish it without a ledger, or use the default randomness."
    )
    assert journal == []
    assert ledger.spent == 0


REFUSED = {
    "epsilon": ({"epsilon": 0}, "epsilon=0 must be greater than zero. Nothing was drawn or recorded."),
    "delta": ({"delta": -1}, "delta=-1 must be greater than zero. Nothing was drawn or recorded."),
    "delta too large": (
        {"delta": 2},
        "delta=2 exceeds the width of the bounds, 1: every move is hidden, which is replace-one. Nothing was drawn or "
        "recorded. Leave delta out for that, or use a smaller one.",
    ),
    "delta too small for doubles": (
        {"delta": 1e-7},
        "delta=1e-07 is too small for coordinates of this size: cell edges are only known to 1.1e-15 in double "
        "precision. Use at least 2.2e-06, or a nearer origin.",
    ),
    "q low": ({"q": 0}, "q=0 must lie between 0 and 1, both excluded. Nothing was drawn or recorded."),
    "q high": ({"q": 1.5}, "q=1.5 must lie between 0 and 1, both excluded. Nothing was drawn or recorded."),
    "bounds inverted": (
        {"bounds": (1, 0)},
        "bounds=(1.0, 0.0) must be a lower and a higher number. Nothing was drawn or recorded.",
    ),
    "bounds empty": (
        {"bounds": (1, 1)},
        "bounds=(1.0, 1.0) must be a lower and a higher number. Nothing was drawn or recorded.",
    ),
    "bounds of three": (
        {"bounds": (0, 1, 2)},
        "bounds must be two numbers, (low, high). Nothing was drawn or recorded.",
    ),
    "bounds infinite": ({"bounds": (0, math.inf)}, "bounds=inf is not a finite number."),
    "cells": ({"cells": 0}, "cells=0 must be a whole number of at least 1."),
    "method": (
        {"method": "magic"},
        "method='magic' is not known. Nothing was drawn or recorded. Use one of 'inverse', 'laplace', 'smooth', "
        "'smooth-pure', 'ranks', or leave it out.",
    ),
    "slack for another method": (
        {"method": "inverse", "slack": 1e-6},
        "slack=1e-06 belongs to method='smooth': method='inverse' has none. Nothing was drawn or recorded. "
        "Leave slack out.",
    ),
    "no slack": (
        {"method": "smooth", "slack": 0},
        "slack=0 must be greater than zero for method='smooth'. Nothing was drawn or recorded. Use "
        "method='smooth-pure' for a promise without slack.",
    ),
    "smooth in a ledger": (
        {"method": "smooth"},
        "method='smooth' promises ε only up to slack=0.000000001, and a ledger adds up ε alone: the slack would be "
        "forgotten. Nothing was drawn or recorded. Use 'inverse', 'laplace' or 'smooth-pure'.",
    ),
    "NaN": (
        {"values": [0.5, math.nan]},
        "values holds NaN or infinite numbers, which have no place between the bounds. Nothing was drawn or recorded. "
        "Remove missing values first: they are no records.",
    ),
    "infinite": (
        {"values": [0.5, -math.inf]},
        "values holds NaN or infinite numbers, which have no place between the bounds. Nothing was drawn or recorded. "
        "Remove missing values first: they are no records.",
    ),
    "two dimensions": (
        {"values": [[0.1, 0.2]]},
        "values of type float64 in 2 dimensions are not a list of numbers. Nothing was drawn or recorded. Pass one "
        "number for each record.",
    ),
    "text": (
        {"values": [str(SECRET)]},
        "values of type <U9 in 1 dimensions are not a list of numbers. Nothing was drawn or recorded. Pass one "
        "number for each record.",
    ),
    "ragged": ({"values": [[1, 2], [3]]}, "values are not a list of numbers. Nothing was drawn or recorded."),
    "noise beyond 64 bits": (
        {"epsilon": "1e-12", "method": "laplace"},
        "rate=5.96047e-20 is too small: the noise could exceed 2^61 and no longer fit 64-bit integers. Nothing was "
        "drawn or recorded. Use a rate (epsilon / sensitivity) of at least 4.3e-17.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_leave_no_trace(case, ledger, journal):
    given_, message = REFUSED[case]
    with pytest.raises(sf.InvalidInput) as refusal:
        quantile(**{"values": VALUES, "q": 0.5, **UNIT, **given_}, ledger=ledger, source=SpySource(journal))
    assert str(refusal.value) == message
    assert journal == []
    assert ledger.spent == 0


def test_what_is_no_ledger_or_source_is_refused(journal):
    with pytest.raises(sf.InvalidInput) as refusal:
        median(VALUES, **UNIT, ledger="budget.db", source=SpySource(journal))
    assert str(refusal.value) == "ledger=str is not a ledger. Open one with sf.Ledger(path)."
    with pytest.raises(sf.InvalidInput) as refusal:
        median(VALUES, **UNIT, source=np.random.default_rng(1))
    assert str(refusal.value).startswith("source=Generator is not a source of random words.")
    assert journal == []


@pytest.mark.parametrize(
    "values", [[SECRET, math.nan], [[SECRET]], [str(SECRET)], [[SECRET], [1, 2]]], ids=["NaN", "2D", "text", "ragged"]
)
def test_no_refusal_shows_a_private_value(values):
    with pytest.raises(sf.InvalidInput) as refusal:
        median(values, **UNIT)
    chain = refusal.value
    while chain is not None:
        assert str(SECRET) not in str(chain)
        chain = chain.__cause__ or chain.__context__


def test_masked_values_are_no_records():
    """Nine values at 0.1, and ten masked ones at 0.9 that would make a median of their own."""
    values = np.ma.MaskedArray(np.r_[np.full(9, 0.1), np.full(10, 0.9)], mask=np.r_[np.zeros(9), np.ones(10)])
    answer = sf.median(values, bounds=(0, 1), epsilon=10**6, delta=0.1, method="laplace")
    assert answer.value == pytest.approx(0.1, abs=1e-4)


def test_a_huge_epsilon_is_quick_and_exact():
    answer = sf.median([0.2, 0.5, 0.7], bounds=(0, 1), epsilon=1e300, delta=0.1, method="laplace")
    assert answer.value == pytest.approx(0.5, abs=1e-5)
