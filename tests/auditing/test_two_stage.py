"""DAWA by its stages: the law of its runs by hand, by brute force and by runs; losses by hand; bugs in either stage."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.auditing import audit
from sfumato.auditing.databases import bases
from sfumato.auditing.exact.partition_law import PartitionLaw
from sfumato.auditing.exact.question import Question
from sfumato.auditing.exact.two_stage import TwoStageAudit
from sfumato.auditing.statistical.audit_source import AuditSource
from sfumato.mechanism import build
from sfumato.mechanism.partitions import dawa, partition
from sfumato.noise import DiscreteLaplace

ONE = Fraction(1)


def line(cells):
    return sf.Line(0, 1, cells=cells)


def cuts(size, epsilon, penalty):
    """The law of a line of so many entries, by the prices and the noise of DAWA."""
    levels = partition.longest_run(size).bit_length() - 1
    return PartitionLaw(size, partition.prices(levels), partition.cost_noise(epsilon, levels), penalty)


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


# --- the law of the runs ----------------------------------------------------------------------------------------------


def test_a_pair_of_cells_is_kept_together_with_the_probability_of_a_sum():
    """Two cells, a gap of 1: 16 + penalty - G ≤ 2·penalty - G' - G'', summed over noise below 120: e⁻²⁴ is cut off."""
    law = cuts(8, Fraction(16, 5), 20)  # rate 1/5
    assert {noise.rate for noise in law.noise} == {Fraction(1, 5)}
    weights = -math.expm1(-0.2) * np.exp(-0.2 * np.arange(120))
    kept = sum(
        weights[a] * weights[b] * weights[max(a + b - 4, 0) :].sum() for a, b in itertools.product(range(120), repeat=2)
    )
    law = law.law(np.array([3, 4]))
    assert law[(0,)] == pytest.approx(kept, abs=1e-8)
    assert law[(0, 1)] == pytest.approx(1 - kept, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("x", [(3, 4, 0, 0), (0, 9, 9, 1), (5, 5, 5, 5), (0, 2, 4)], ids=str)
def test_the_law_is_that_of_runs(x):
    """6,000 runs: five partitions, each within 6 σ of its probability, which fails by chance once in 10⁸ times. Blocks
    have four entries; three are the last block of 19, with a run that is cut short.
    """
    line, source, runs = cuts(16 + len(x) % 4, ONE, 40), AuditSource(5), 6_000
    first = line.blocks[-1][0]
    entries = np.array([7] * first + list(x))
    law = line.law(np.array(x))
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    seen = Counter()
    for _ in range(runs):
        starts = partition.partition(entries, epsilon=ONE, penalty=40, source=source).starts
        seen[tuple((starts[starts >= first] - first).tolist())] += 1
    assert set(seen) <= set(law)
    for starts, p in law.items():
        assert abs(seen[starts] / runs - p) < 6 * math.sqrt(p * (1 - p) / runs) + 1e-3


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
