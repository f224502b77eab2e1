"""Means hold as often as they say, whatever the budget, from nobody to very many, and lie between their bounds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.noise import DiscreteLaplace, SeededSource
from sfumato.release.laws import cautious, smooth_quantile
from sfumato.release.means import agreeing

LINE = sf.Line(0, 8, cells=8, name="place")
FARES = sf.amounts("fare", clip=(0, 100), step=0.25)
HIDE = sf.move(2, of="place") | sf.change("fare")
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.NoLedgerWarning")
DRAWS = 20_000


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def trips(records: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "place": rng.uniform(0, 8, records),
            "fare": rng.gamma(2, 10, records),
            "user": rng.integers(0, 300, records),
        }
    )


def counted(**more) -> sf.Counts:
    return sf.count(trips(), LINE, values=FARES, **more)


def planned(epsilon=1, hide=HIDE, public=(), **more) -> sf.MeansPlan:
    return sf.plan_means(sf.policy(LINE, hide=hide, public=public, values=FARES), sf.ranges(), epsilon, **more)


def truth(low: float, high: float) -> float:
    frame = trips()
    steps = np.floor(frame["fare"].clip(0, 100) / 0.25 + 0.5) * 0.25
    return float(steps[(frame["place"] >= low) & (frame["place"] < high)].mean())


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("epsilon", [0.1, 1, 4, 12])
@pytest.mark.parametrize("people", [1, 60, 5000])
@pytest.mark.parametrize("mean", [-200, -3, 150])
def test_the_interval_holds_the_mean_as_often_as_it_says(confidence, epsilon, people, mean):
    """Sums of values from -200 to 200 and their numbers, each with half of ε; 20,000 draws from one seed. By chance a
    share that is right falls five deviations short once in three million runs.
    """
    draws = SeededSource(int(1000 * epsilon) + people + mean + 1000)
    rates = [epsilon / 2 / 200, epsilon / 2]
    laws = [DiscreteLaplace(rate) for rate in rates]
    s, n = (law.sample(DRAWS, draws) + true for law, true in zip(laws, (mean * people, people), strict=True))
    deviations = [np.full(DRAWS, np.sqrt(2) / rate) for rate in rates]
    widest = float(smooth_quantile(np.ones(1), np.full(1, 3.0), cautious(confidence), at_most=True)[0])
    low, high = agreeing(
        (s.astype(float), deviations[0], 0.5), (n.astype(float), deviations[1], 0.5), (-200.0, 200.0), widest
    )
    assert (low <= high).all()
    assert low.min() >= -200
    assert high.max() <= 200
    held = np.mean((low <= mean + 1e-9) & (mean - 1e-9 <= high))
    assert held >= confidence - 5 * np.sqrt(confidence * (1 - confidence) / DRAWS)


def test_the_ends_are_where_the_noise_would_be_too_large():
    """By hand: S = 300 ± 10 and N = 100, exactly; widths of two deviations and half a step."""
    low, high = agreeing(
        (np.array([300.0]), np.array([10.0]), 0.5), (np.array([100.0]), np.array([0.0]), 0.5), (-50.0, 50.0), 2.0
    )
    assert (low[0], high[0]) == (pytest.approx(3 - 0.205), pytest.approx(3 + 0.205))


def test_where_nobody_is_the_interval_is_all_between_the_bounds():
    release = planned().publish(sf.count({"place": [0.5], "fare": [10.0]}, LINE, values=FARES))
    answer = release.answer((4, 8))
    assert (answer.low, answer.high) == (0, 100)


@pytest.mark.parametrize(
    ("hide", "public"), [(HIDE, []), (sf.anything(), []), (sf.presence(), []), (sf.move(2, of="place"), ["fare"])]
)
def test_means_are_published_under_every_relation(hide, public):
    plan = planned(hide=hide, public=public)
    assert plan.sums.epsilon + plan.numbers.epsilon == plan.epsilon == 1
    means = plan.publish(counted(), source=SeededSource(5))
    whole = means.answer((0, 8), confidence=0.999)
    assert whole.low <= truth(0, 8) <= whole.high
    assert whole.high - whole.low < 4
    table = means.marginal("place", confidence=0.999)
    assert table.value.shape == (8,)
    assert all(a <= truth(i, i + 1) <= b for i, (a, b) in enumerate(zip(table.low, table.high, strict=True)))
    assert np.isnan(table.stderr).all()


def test_a_mean_that_is_public_has_no_width():
    means = planned(hide=sf.move(2, of="place"), public=["fare"]).publish(counted())
    answer = means.answer((0, 8))
    assert answer.value == pytest.approx(truth(0, 8), abs=1e-6)
    assert answer.high - answer.low < 1e-6


def test_the_budget_is_divided_so_that_means_err_least():
    """No other share of sixteen tried has a smaller error."""
    plan = planned(hide=sf.presence())
    spread = 100**2 / 12

    def error(share):
        return sum(
            weight * sf.plan(one.policy, sf.ranges(), part).expected_error
            for weight, one, part in ((1, plan.sums, share), (spread, plan.numbers, 1 - share))
        )

    best = error(plan.sums.epsilon)
    assert best == pytest.approx((plan.typical_error(1000) * 1000 / 1.96) ** 2)
    assert all(best <= error(i / 17) * 1.001 for i in range(1, 17))


def test_both_parts_are_charged_at_once_and_before_anything_is_drawn():
    ledger = sf.Ledger.create("budget.db", epsilon=1.5, hide=HIDE)
    means = planned().publish(counted(), ledger=ledger)
    assert ledger.spent == 1
    assert means.guarantee.epsilon == 1
    assert means.sums.guarantee.epsilon + means.numbers.guarantee.epsilon == 1
    with pytest.raises(sf.BudgetExceeded, match=r"exceeds the 0\.5 left"):
        planned().publish(counted(), ledger=ledger)
    assert ledger.spent == 1


def test_a_plan_that_was_tampered_with_publishes_nothing():
    from dataclasses import replace

    plan, ledger = planned(), sf.Ledger.create("budget.db", epsilon=5, hide=HIDE)
    for wrong in (
        replace(plan, epsilon=plan.epsilon / 2),
        replace(plan, sums=sf.plan(plan.sums.policy, sf.ranges(), 3)),
    ):
        with pytest.raises(sf.InvalidInput, match="spend more together than the plan promises"):
            wrong.publish(counted(), ledger=ledger)
    assert ledger.spent == 0


def test_a_person_has_the_same_records_in_sums_and_numbers():
    plan = planned(max_per_entity=2)
    assert plan.guarantee.unit == "person"
    counts = counted(entity="user", max_per_entity=2)
    assert counts.numbers.sum() == sum(min(n, 2) for n in trips()["user"].value_counts())
    means = plan.publish(counts)
    assert means.guarantee.max_per_entity == 2
    with pytest.raises(sf.InvalidInput, match="bounded"):
        plan.publish(counted())


def test_means_are_of_the_records_that_have_a_value():
    frame = trips()
    frame.loc[::2, "fare"] = np.nan
    counts = sf.count(frame, LINE, values=FARES)
    assert counts.numbers.sum() == 2000
    means = planned(epsilon=100).publish(counts, source=SeededSource(2))
    assert means.answer((0, 8)).value == pytest.approx(frame["fare"].clip(0, 100).mean(), abs=0.5)


def test_sums_around_the_middle_serve_as_well():
    plan = planned()
    centred = sf.count(trips(), LINE, values=FARES.centred())
    same = [plan.publish(counts, source=SeededSource(9)).answer((0, 3)) for counts in (counted(), centred)]
    assert (same[0].low, same[0].high) == (same[1].low, same[1].high)


def test_means_are_saved_and_read_again():
    means = planned().publish(counted())
    again = sf.load_means(means.save("fares"))
    assert repr(again.answer((0, 3))) == repr(means.answer((0, 3)))
    assert repr(sf.Means(again.sums, again.numbers).answer((0, 3))) == repr(means.answer((0, 3)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sf.plan_means(sf.bounded(LINE), sf.ranges(), 1), "means are of a value, and the plan is for records"),
        (
            lambda: sf.plan_means(sf.bounded(LINE), sf.ranges(), 1, values=sf.people("user", cells=2)),
            "the plan is for distinct people",
        ),
        (lambda: sf.plan_means("policy", sf.ranges(), 1, values=FARES), "policy=str is not a policy"),
        (
            lambda: sf.plan_means(
                sf.policy(LINE, hide=sf.change("fare"), public=["place"], values=FARES), sf.ranges(), 1
            ),
            "the numbers of records are public, and need no noise",
        ),
        (lambda: planned().publish(np.zeros(8, dtype=int)), "means need sums and the numbers of the same records"),
        (lambda: planned().publish(sf.count(trips(), LINE)), "means need sums and the numbers of the same records"),
        (
            lambda: planned().publish(sf.count(trips(), LINE, values=sf.amounts("fare", clip=(0, 50), step=0.25))),
            "Count with the value that the plan was made for",
        ),
        (lambda: planned().publish(counted()).answer((0, 3.5)), "cuts cells.*cut='snap'"),
        (lambda: sf.Means(1, 2), "sums=int is not a release"),
        (
            lambda: sf.Means(*[sf.plan(sf.bounded(LINE), sf.ranges(), 1).publish(np.ones(8, dtype=int))] * 2),
            "means are of a release of sums and one of records",
        ),
    ],
)
def test_what_has_no_mean_is_refused(call, message):
    with pytest.raises(sf.SfumatoError, match=message):
        call()
