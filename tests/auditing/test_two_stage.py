"""DAWA by its two stages: what is summed up is what runs; losses by hand; bugs in either stage."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from zoo import disguised, planned

import sfumato as sf
from sfumato.auditing import audit
from sfumato.auditing.databases import bases
from sfumato.auditing.exact.question import Question
from sfumato.auditing.exact.two_stage import TwoStageAudit
from sfumato.auditing.statistical.audit_source import AuditSource
from sfumato.mechanism import build
from sfumato.mechanism.partitions import dawa, partition
from sfumato.noise import DiscreteLaplace

ONE = Fraction(1)


def line(cells):
    return sf.Line(0, 1, cells=cells)


def asked(mechanism, policy=None, edges=((0, 1),)):
    policy = policy or mechanism.policy
    return TwoStageAudit(
        mechanism.form,
        Question(
            mechanism=mechanism,
            promised=mechanism.epsilon,
            total_is_public=policy.total_is_public,
            edges=np.array(edges),
            databases=bases(policy, np.random.default_rng(1)),
            tiny=(),
            deadline=math.inf,
        ),
    )


def honest(cells=8, **options):
    return build("dawa", sf.unbounded(line(cells)), ONE, **options)


# --- what runs --------------------------------------------------------------------------------------------------------


@pytest.mark.slow  # sums over all partitions
@pytest.mark.parametrize("cells", [2, 8, 9, 16, 19])
def test_what_is_summed_up_is_what_runs(cells):
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(2, 4))
    for policy in (
        sf.unbounded(line(cells)),
        sf.bounded(line(cells)),
        sf.threshold(line(cells), 1),
        sf.unbounded(grid),
    ):
        for options in ({}, {"queries": "cells"}) if policy.name != "threshold" else ({}, {"consistent": False}):
            assert asked(build("dawa", policy, ONE, **options)).faithful()


# --- losses -----------------------------------------------------------------------------------------------------------


def test_both_stages_together_cost_the_whole_of_epsilon():
    """By hand: where a gap is wide already, one more makes it e^(1/4) less likely that the pair is kept together, and
    its total tells 3/4.
    """
    found = audit(honest(), seed=1)
    assert (found.method, found.epsilon, found.passed, found.complete) == ("argument", 1, True, True)
    assert found.describe().splitlines()[0] == "dawa keeps its promise of ε = 1: its loss is at most 1."
    assert found.witness.event.endswith("their choice tells 0.25, their totals 0.75")


def test_with_nothing_to_choose_the_totals_are_all():
    found = audit(honest(7), seed=1)
    assert (found.method, found.epsilon) == ("argument", 0.75)


def test_large_lines_are_left_to_runs():
    assert asked(honest(20)).small is False
    found = audit(honest(20), seed=1, samples=60, seconds=0.5)
    assert found.method == "statistical"
    assert "its runs can be chosen in too many ways to look at each" in found.describe()


# --- bugs -------------------------------------------------------------------------------------------------------------


def test_both_stages_of_dawa_spend_the_whole_budget(monkeypatch):
    monkeypatch.setattr(dawa, "budgets", lambda epsilon, ratio, neighbours: (epsilon, epsilon))
    found = audit(honest(), seed=1)
    assert (found.method, found.passed) == ("argument", False)
    assert found.epsilon == pytest.approx(2, abs=1e-6)


def test_half_the_noise_that_chooses_the_runs_of_dawa(monkeypatch):
    """As in the published program, whose deviations move by nearly two and are taken to move by one."""
    shifts = partition.shifts
    monkeypatch.setattr(partition, "shifts", lambda levels: tuple(Fraction(shift, 2) for shift in shifts(levels)))
    found = audit(honest(), seed=1)
    assert (found.method, found.passed) == ("argument", False)
    assert found.epsilon == pytest.approx(1.25, abs=1e-6)


@pytest.mark.slow
def test_half_the_noise_on_the_totals_of_dawa(monkeypatch):
    """The rates are not what they should be, so it is run: 6,000 times, 2,700 of them counted. A guess on one total is
    right with a probability of 0.817, 0.731 are allowed: 11 standard deviations, 4.75 of which are the bound's.
    """

    def narrow(units, epsilon, source):
        noise = np.zeros(len(units), dtype=np.int64)
        noise[units > 0] = DiscreteLaplace(2 * epsilon).sample(int((units > 0).sum()), source)
        return noise

    monkeypatch.setattr(dawa, "_noise", narrow)
    found = audit(honest(queries="cells"), seed=1, samples=3_000, seconds=1000.0)
    assert found.method == "statistical"
    assert "it does not choose runs and then add noise to their totals as it says" in found.describe()
    assert 1 < found.epsilon <= 1.75


class LeakyDawa(type(honest())):
    """Writes the exact total into the node of all runs, which is not measured: no estimate looks at it there."""

    def draw(self, counts, total, source):
        drawn = super().draw(counts, total, source)
        levels, runs = drawn[:2]
        groups = int(drawn[2 : 2 + levels].sum())
        drawn[2 + 2 * levels + runs + groups] = counts.sum()
        return drawn


@pytest.mark.slow
def test_a_total_beside_the_runs_that_no_estimate_shows():
    """The counts are those of DAWA, bit for bit. What a release keeps tells the number of records: 300 runs, and every
    guess on it is right.
    """
    mechanism = disguised(honest(), LeakyDawa)
    counts = np.arange(8)
    runs = [made.run(counts, None, AuditSource(3)) for made in (honest(), mechanism)]
    assert np.array_equal(*runs)
    found = audit(mechanism, seed=1, samples=300, seconds=1000.0)
    assert (found.method, found.passed) == ("statistical", False)
    assert "it does not choose runs and then add noise to their totals as it says" in found.describe()
    assert "measured number" in found.witness.event


class DoubledDawa(type(honest())):
    """Runs on twice the counts, and says so: a change of a record moves an entry by two."""

    @property
    def form(self):
        form = super().form
        return replace(form, entries=lambda counts: 2 * form.entries(counts))

    def draw(self, counts, total, source):
        return super().draw(2 * counts, total, source)


def test_a_line_that_moves_by_more_than_it_should():
    found = audit(disguised(honest(), DoubledDawa), seed=1)
    assert (found.method, found.passed) == ("argument", False)
    assert found.epsilon == pytest.approx(2, abs=1e-6)


def test_dawa_for_replace_one_under_the_promise_of_add_remove():
    """Half of ε is kept for the second count that a replacement changes; a record that appears changes one."""
    found = audit(planned(build("dawa", sf.bounded(line(8)), ONE), sf.unbounded(line(8))), seed=1)
    assert (found.method, found.passed) == ("argument", True)
    assert found.epsilon == pytest.approx(0.5, abs=1e-6)
