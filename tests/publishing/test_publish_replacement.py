"""A promise about one record, on counts that were bounded for each person: what the guarantee says is what is charged,
and what is charged covers the worst that can happen.
"""

from __future__ import annotations

import importlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.noise import DiscreteLaplace
from sfumato.policies import exchange_rate
from sfumato.promise import Guarantee, cost
from sfumato.promise.cost import cost_rate, replacement
from sfumato.promise.unit import Unit

LINE = sf.Line(0, 1, cells=3)
PATH = sf.graph(LINE, [(0, 1), (1, 2), (2, sf.ABSENT)])
POLICIES = {"unbounded": sf.unbounded(LINE), "path": PATH, "sources": sf.within(LINE, 0.3, sources=[0.1])}


def bounded_counts(bound=1, values=(3, 2, 4), domain=LINE):
    return sf.Counts(np.array(values), domain, max_per_entity=bound)


def worst_ratio(policy, epsilon, bound, most_records):
    """Over all sets of a person's records, all single changes along an edge, and all outputs: by brute force.

    The identity strategy; which records are counted is drawn uniformly, blind to what they hold.
    """
    law = DiscreteLaplace(Fraction(epsilon) / int(policy.sensitivity(np.eye(3))))
    span = range(-4, most_records + 5)
    outputs = np.array(list(itertools.product(span, repeat=3)))

    def output(records):
        chosen = list(itertools.combinations(records, min(bound, len(records))))
        total = np.zeros(len(outputs))
        for kept in chosen:
            counts = np.bincount(np.array(kept, dtype=int), minlength=3)
            total += law.pmf(outputs - counts).prod(axis=1)
        return total / len(chosen)

    worst = 1.0
    for size in range(1, most_records + 1):
        for records in itertools.combinations_with_replacement(range(3), size):
            before = output(records)
            for u, v in policy.edges().tolist():
                for at, cell in enumerate(records):
                    if cell not in (u, v):
                        continue
                    other = v if cell == u else u
                    rest = records[:at] + records[at + 1 :]
                    after = output(rest if other < 0 else (*rest, other))
                    worst = max(worst, float((before / after).max()), float((after / before).max()))
    return worst


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("bound", [1, 2])
def test_the_worst_ratio_of_a_record_that_makes_room_for_another_is_covered(name, bound):
    policy = POLICIES[name]
    release = sf.plan(policy, sf.histogram(), 1, mechanism="identity").publish(bounded_counts(bound))
    assert release.guarantee.epsilon == policy.diameter
    worst = worst_ratio(policy, 1, bound, 4)
    assert worst <= math.exp(release.guarantee.epsilon) * (1 + 1e-9)
    assert name != "unbounded" or worst > 1.5 * math.e


def test_the_worst_ratio_by_hand():
    """Two of three records are counted; one of them lies alone in its cell. It stays out in one case of three."""
    assert worst_ratio(POLICIES["unbounded"], 1, 2, 3) == pytest.approx((2 * math.e**2 + 1) / 3)  # 5.26


@pytest.mark.parametrize("name", POLICIES)
def test_what_the_guarantee_says_is_charged_once(name, tmp_path):
    policy = POLICIES[name]
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=100)
    release = sf.plan(policy, sf.histogram(), "0.5").publish(bounded_counts(), ledger=ledger)
    factor = int(policy.diameter)
    assert release.guarantee.epsilon == ledger.spent == Fraction(factor, 2)
    (_, entry) = ledger.history()
    assert (entry.epsilon, entry.rate, entry.cost) == (Fraction(factor, 2), 1, Fraction(factor, 2))
    assert release.guarantee.replacement == factor
    promise = release.guarantee.describe()
    assert f"Promise (ε = {release.guarantee.epsilon})" in promise
    assert str(release.guarantee).startswith(f"ε = {release.guarantee.epsilon} per record, at most 1 counted of each")
    steps = int(policy.eccentricity)
    assert f"add/remove (one record comes or goes): ε = {release.guarantee.at(steps)} ({steps} step" in promise
    assert f"such a change is hidden at ε = {release.guarantee.epsilon} ({factor} steps × 0.5)" in promise


def test_where_no_other_record_matters_nothing_is_added():
    plain = np.array([3, 2, 4])
    for policy, counts, more in [
        (sf.bounded(LINE), bounded_counts(), {}),  # nobody comes or goes
        (POLICIES["unbounded"], plain, {}),  # everything is counted
        (POLICIES["unbounded"], bounded_counts(), {"max_per_entity": 1}),  # a promise about persons
    ]:
        guarantee = sf.plan(policy, sf.histogram(), 1, **more).publish(counts).guarantee
        assert (guarantee.epsilon, guarantee.replacement) == (1, 1)
        assert "replacement" not in guarantee.to_dict()


def test_a_policy_without_a_bound_on_the_move_is_refused_before_anything_is_charged(tmp_path):
    policy = sf.graph(LINE, [(0, 1), (2, sf.ABSENT)], publish_component_totals=True)
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=10)
    for given in ({}, {"ledger": ledger}):
        with pytest.raises(sf.PolicyMismatch, match="another record of the same person may take the place"):
            sf.plan(policy, sf.histogram(), 1).publish(bounded_counts(), **given)
    assert ledger.spent == 0


def test_refine_and_files_speak_in_the_epsilon_of_the_guarantee(tmp_path):
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=10)
    vault = sf.Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    plan = sf.plan(POLICIES["unbounded"], sf.histogram(), 1, mechanism="identity")
    first = plan.publish(bounded_counts(), ledger=ledger, vault=vault)
    assert first.guarantee.epsilon == ledger.spent == 2
    with pytest.raises(sf.InvalidInput, match="epsilon=2 does not refine this release"):
        first.refine(epsilon=2, vault=vault, ledger=ledger)
    second = first.refine(epsilon=3, vault=vault, ledger=ledger)
    assert second.guarantee.epsilon == ledger.spent == 3
    assert second.mechanism.epsilon == Fraction(3, 2)  # between counts
    second.save(tmp_path / "second.sfumato")
    loaded = sf.load(tmp_path / "second.sfumato")
    assert loaded.guarantee == second.guarantee
    assert loaded.guarantee.replacement == 2
    good_enough = sf.refine_until(
        second, error=0.2, max_epsilon=20, vault=vault, ledger=ledger, workload=sf.histogram()
    )
    assert good_enough.guarantee.epsilon == 2 * good_enough.mechanism.epsilon == ledger.spent


def test_an_old_entry_is_refined_at_its_old_rate(tmp_path, monkeypatch):
    """Before, the guarantee said the plan's ε, and the ledger charged it twice: so it goes on."""
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=10)
    vault = sf.Vault(tmp_path / "secrets", key=tmp_path / "vault.key")
    with monkeypatch.context() as then:
        then.setattr(importlib.import_module("sfumato.promise.guarantee"), "replacement", lambda *_: 1)
        then.setattr(cost, "replacement", lambda *_: 1)
        plan = sf.plan(POLICIES["unbounded"], sf.histogram(), 1, mechanism="identity")
        old = plan.publish(bounded_counts(), ledger=ledger, vault=vault)
    assert (old.guarantee.epsilon, old.guarantee.replacement, ledger.spent) == (1, 1, 2)
    old.save(tmp_path / "old.sfumato")
    loaded = sf.load(tmp_path / "old.sfumato")
    assert loaded.guarantee == old.guarantee
    assert "such a change is hidden at ε = 2 (2 steps × 1)." in loaded.guarantee.describe()
    finer = loaded.refine(epsilon="1.5", vault=vault, ledger=ledger)
    assert (finer.guarantee.epsilon, finer.guarantee.replacement, ledger.spent) == (Fraction(3, 2), 1, 3)
    assert [entry.rate for entry in ledger.history()] == [1, 2, 2]
    fresh = sf.plan(POLICIES["unbounded"], sf.histogram(), 1).publish(bounded_counts(), ledger=ledger)
    assert (fresh.guarantee.epsilon, ledger.spent) == (2, 5)


def test_a_stream_spends_what_its_steps_promise(tmp_path):
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=10)
    for name, counts in (("bounded", bounded_counts()), ("plain", np.array([3, 2, 4]))):
        stream = sf.Stream(
            POLICIES["unbounded"], sf.histogram(), epsilon=1, window=2, ledger=ledger, name=name,
            allocation="even", mechanism="identity",
        )  # fmt: skip
        release = stream.publish(0, counts)
        assert release.guarantee.epsilon == Fraction(1, 2)
        assert release.guarantee.window_epsilon == 1
        factor = 2 if name == "bounded" else 1
        assert (release.guarantee.replacement, release.mechanism.epsilon) == (factor, Fraction(1, 2 * factor))
        assert [step.epsilon for step in ledger.stream(name).entries()] == [Fraction(1, 2)]
        stream.publish(1, counts)


def test_rates_never_fall_below_what_the_counts_may_show():
    """The cost in steps between counts, divided by the factor that ε carries, rounded up."""
    line = sf.Line(0, 1, cells=4)
    policies = [sf.unbounded(line), sf.within(line, 0.3, sources="boundary"), sf.within(line, 0.2, sources=[0.1])]
    units = [Unit("record"), Unit("record", 2), Unit("person", 2)]
    for account, release in itertools.product(policies, repeat=2):
        for unit in units:
            rate = cost_rate(account, Unit("record"), release, unit)
            steps = exchange_rate(account, release)
            needed = cost._steps(steps, Unit("record"), release, unit, not account.total_is_public)
            assert rate * replacement(release, unit) >= needed
            assert (rate - 1) * replacement(release, unit) < needed
    for policy in policies:
        assert cost_rate(policy, Unit("record"), policy, Unit("record", 2)) == 1


def test_a_factor_where_none_belongs_is_refused():
    for more in ({}, {"unit": "person", "max_per_entity": 2}):
        with pytest.raises(sf.InvalidInput, match="replacement=2 is for promises about one record"):
            Guarantee(policy=POLICIES["unbounded"], epsilon=1, replacement=2, **more)
    longer = sf.graph(sf.Line(0, 1, cells=4), [(0, 1), (1, 2), (2, 3), (3, sf.ABSENT)])
    edited = Guarantee(policy=longer, epsilon=6, max_per_entity=1, replacement=3).to_dict()
    with pytest.raises(sf.FileFormatError, match="its factor is smaller than the steps"):
        Guarantee.from_dict({**edited, "replacement": 2})
    with pytest.raises(sf.FileFormatError):
        Guarantee.from_dict({**edited, "replacement": "3"})
    with pytest.raises(sf.FileFormatError):
        Guarantee.from_dict({**edited, "replacement": 1})
