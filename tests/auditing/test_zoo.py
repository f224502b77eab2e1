"""Every planted bug is caught: by the auditor, or by a test of this project that is named and run.

Statistical audits here take so many runs that a miss is rarer than one in a million; a false alarm is not possible,
since the bug is there.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from zoo import (
    LINE,
    CeilFamily,
    CycleValues,
    FamilyWithSources,
    FloatNoise,
    NarrowConsistent,
    NarrowNoise,
    NearlyUnbiased,
    OnlyOccupied,
    PrintedShifts,
    TwiceTheNoise,
    catches,
    disguised,
    existing,
    planned,
)

import sfumato as sf
from sfumato.auditing import audit, audit_chain, audit_stream
from sfumato.errors import AuditFailed
from sfumato.mechanism import build
from sfumato.mechanism.edges.spanner import SpanningTreeMechanism
from sfumato.mechanism.grids.family import Family

ONE = Fraction(1)
LONG = 1000.0  # seconds of computing: the number of runs decides, not the machine


# --- noise ------------------------------------------------------------------------------------------------------------


def test_a_scale_twenty_percent_too_small():
    honest = build("identity", sf.bounded(LINE), ONE)
    assert audit(honest, seed=1).passed
    narrow = planned(replace(honest, epsilon=Fraction(5, 4)), epsilon=ONE)
    found = audit(narrow, seed=1)
    assert (found.method, found.epsilon, found.promised, found.passed) == ("exact", Fraction(5, 4), 1, False)


def test_a_scale_twenty_percent_too_small_in_the_sampler_alone():
    """400,000 draws: the rate that they prove at least is within 4 % of the true one, 25 % above the promised."""
    found = audit(disguised(build("identity", sf.bounded(LINE), ONE), NarrowNoise), seed=1)
    assert not found.passed
    assert found.method == "statistical"
    assert found.epsilon == pytest.approx(1.25, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "seed"), [(2, 1), (2, 2), (5, 3), (5, 4), (8, 5)])
def test_a_scale_twenty_percent_too_small_behind_a_projection(cells, seed):
    """Nothing here says which noise is added, so it is run: 30,000 times in all, some six seconds of computing, 13,500
    of them counted. A guess on a pair that the projection leaves alone is right with a probability of 0.777, and 0.731
    are allowed: 12 standard deviations, 4.75 of which are the bound's. The runs follow from the seed alone.
    """
    honest = build("consistent", sf.threshold(sf.Line(0, 1, cells=cells), 1), ONE)
    assert audit(honest, seed=seed).method == "exact"
    found = audit(disguised(honest, NarrowConsistent), seed=seed, samples=15_000, seconds=LONG)
    assert found.method == "statistical"
    assert 1 < found.epsilon <= 1.25


@pytest.mark.slow
def test_floating_point_noise():
    """Mironov 2012: 1 + noise is a multiple of 2⁻⁵³, and noise alone need not be: an event that only one can show."""
    found = audit(disguised(build("identity", sf.unbounded(LINE), ONE), FloatNoise), seed=1, samples=4000, seconds=LONG)
    assert found.method == "statistical"
    assert found.epsilon > 3
    assert "last binary digit" in found.witness.event


def test_noise_times_two():
    found = audit(disguised(build("identity", sf.bounded(LINE), ONE), TwiceTheNoise), seed=1)
    assert (found.method, found.epsilon) == ("exact", math.inf)
    assert "no noise can lead from one to the other" in found.witness.event


def test_an_unbiased_estimator_that_is_not_equivariant():
    honest = build("edges", sf.threshold(LINE, 1), ONE)
    found = audit(disguised(honest, NearlyUnbiased), seed=1)
    assert (found.method, found.epsilon) == ("exact", math.inf)


# --- policies ---------------------------------------------------------------------------------------------------------


def test_edges_to_absence_forgotten():
    """Noise that moves records between cells only: the total, which the promise hides, is published."""
    promised = sf.within(LINE, 0.3, sources="boundary")
    found = audit(planned(build("edges", sf.within(LINE, 0.3), ONE), promised), seed=1)
    assert (found.method, found.epsilon) == ("exact", math.inf)
    assert found.witness.edge[1] == -1


def test_diagonal_moves_forgotten(monkeypatch):
    """The policy itself is wrong, and the mechanism believes it. Points near a corner say otherwise."""
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(3, 3))
    honest = sf.within(grid, 0.01)
    straight = replace(honest.moves, lengths=honest.moves.lengths[honest.moves.lengths.sum(axis=1) == 1])
    wrong = replace(honest, moves=straight)
    found = audit(build("edges", wrong, ONE), seed=1)
    assert (found.method, found.epsilon) == ("exact", 2)
    u, v = (np.array(np.unravel_index(cell, (3, 3))) for cell in found.witness.edge)
    assert np.abs(u - v).tolist() == [1, 1]
    assert audit(build("edges", honest, ONE), seed=1).epsilon == 1


def test_cells_located_by_floor(monkeypatch):
    """Division in single precision puts points at a border into either cell: a move of less than δ = 2 cells then
    skips three. In double precision the error is within the margin of 10⁻⁹·δ that `within` states, and a test of the
    edges themselves sees it.
    """
    line = sf.Line(0, 1, cells=20)
    plan = sf.plan(sf.within(line, 0.1), sf.histogram(), 1, mechanism="edges")
    assert audit(plan, seed=1).passed

    def by_division(precision):
        def add(self, scaled, cells):
            inside = np.clip(scaled, self.low, self.high).astype(precision)
            quotient = (inside - precision(self.low)) / precision(self.step)
            cells *= self.cells
            cells += np.clip(np.floor(quotient), 0, self.cells - 1).astype(np.int64)

        return add

    monkeypatch.setattr(sf.Interval, "add", by_division(np.float32))
    found = audit(plan, seed=1)
    assert found.epsilon == Fraction(3, 2)
    assert abs(found.witness.edge[0] - found.witness.edge[1]) == 3
    monkeypatch.setattr(sf.Interval, "add", by_division(np.float64))
    adversarial, oracle = (existing("domain/test_interval.py", name) for name in ("adversarial", "oracle"))
    axis = sf.Interval("x", -74.3, -73.7, 1000)
    values = adversarial(axis)
    assert (axis.locate(values) != oracle(axis, values)).any()


def test_epsilon_not_divided_by_the_stretch():
    cycle = sf.graph(LINE, [(i, (i + 1) % 5) for i in range(5)])

    class Hurried(SpanningTreeMechanism):
        _stretch = 1

    honest = build("spanner", cycle, ONE)
    assert audit(honest, seed=1).epsilon == 1
    found = audit(disguised(honest, Hurried), seed=1)
    assert (found.method, found.epsilon) == ("exact", honest.spanner.stretch)


def test_noisy_edge_values_of_a_cycle_published():
    cycle = sf.graph(LINE, [(i, (i + 1) % 5) for i in range(5)])
    honest = build("edges", cycle, ONE)
    assert audit(honest, seed=1).epsilon == 1
    found = audit(disguised(honest, CycleValues), seed=1)
    assert (found.method, found.epsilon) == ("exact", 4)
    assert sorted(found.witness.edge) == [0, 4]


def test_two_policies_added_up_in_one_account(monkeypatch, tmp_path):
    """A release under a line policy costs a replace-one account more than its ε."""
    test = existing("ledger/test_ledger.py", "test_overspending_at_an_exchange_rate_names_the_rate")
    test(tmp_path / "sound.db")
    monkeypatch.setattr("sfumato.ledger.terms.cost_rate", lambda *policies, **left_out: 1)
    assert catches(test, tmp_path / "broken.db")


# --- families ---------------------------------------------------------------------------------------------------------


def printed(policy, width, step):
    shape = policy.domain.shape
    return PrintedShifts(shape, (width,) * len(shape), -(-width // step), step)


@pytest.mark.slow
def test_ceil_in_the_number_of_shifts():
    """Bins of 10 cells, steps of 4: three shifts as printed, 0, 4 and 8; and 8 is two cells from the next period."""
    line = sf.threshold(sf.Line(0, 1, cells=40), 4)
    honest = build("shifted", line, ONE, width=10)
    assert honest.family.shifts == 2
    assert audit(honest, seed=1).epsilon == 1
    claimed = disguised(honest, CeilFamily, family=printed(line, 10, 4))
    found = audit(claimed, seed=1)
    assert (found.method, found.epsilon) == ("exact", 2)
    # The mechanism itself counts what it built, and stays private with too many shifts.
    counted = replace(honest, family=printed(line, 10, 4))
    assert audit(counted, seed=1).epsilon == 1
    test = existing("mechanism/test_shifted.py", "test_the_number_of_shifts_is_rounded_down")
    test()
    with pytest.MonkeyPatch.context() as patch:
        ceil = classmethod(lambda cls, shape, width, reach: cls(shape, width, -(-width[0] // int(reach[0]))))
        patch.setattr(Family, "for_steps", ceil)
        assert catches(test)


def test_a_family_of_shifted_grids_with_sources():
    moves, sources = (sf.within(LINE, 0.1, sources=given) for given in (None, "boundary"))
    honest = build("shifted", moves, ONE, width=4)
    assert honest.family.shifts == 4
    claimed = disguised(honest, FamilyWithSources, policy=sources)
    found = audit(claimed, seed=1)
    assert (found.method, found.epsilon) == ("exact", 2)
    assert found.witness.edge[1] == -1
    with pytest.raises(sf.InvalidInput, match="is for policies without ⊥"):
        build("shifted", sources, ONE, width=4)


# --- what is counted and said -----------------------------------------------------------------------------------------


def test_a_histogram_that_drops_empty_cells():
    """2,000 runs: a cell that was empty stays zero, one with a record nearly never is."""
    found = audit(
        disguised(build("identity", sf.unbounded(LINE), ONE), OnlyOccupied), seed=1, samples=2000, seconds=LONG
    )
    assert found.method == "statistical"
    assert not found.passed
    assert "what it publishes is not computed from its values" in found.describe()


@pytest.mark.slow
def test_contribution_bounding_that_looks_at_the_records(monkeypatch):
    """Keeping each person's westernmost records is not a choice by chance: where one record lies decides which others
    are kept.
    """
    from sfumato.counting import keyed

    test = existing("counting/test_keyed.py", "test_every_set_of_records_is_equally_likely")
    test()
    monkeypatch.setattr(keyed, "priorities", lambda key, persons, numbers: numbers)  # the first ones stay
    assert catches(test)


def test_an_error_message_with_a_count_in_it(monkeypatch):
    module = sys.modules["sfumato.publishing.publish"]
    test = existing("publishing/test_publish_order.py", "test_no_refusal_shows_a_private_value")
    given = {"counts": np.full(4, -987_654_321)}
    test(given)
    honest = module.private_counts

    def chatty(policy, most, counts, *others):
        try:
            return honest(policy, most, counts, *others)
        except sf.InvalidInput as refusal:
            raise sf.InvalidInput(f"{refusal} The smallest count is {np.min(counts)}.") from None

    monkeypatch.setattr(module, "private_counts", chatty)
    assert catches(test, given)


# --- time and levels --------------------------------------------------------------------------------------------------


def test_the_first_window_forgotten():
    """Windows that start at step 1, as printed: the first three steps spend twice ε together."""
    budgets = ["0.7", "0.2", "0.2", "0.3", "0.5", "0.2"]
    exact = [Fraction(b) for b in budgets]
    assert all(sum(exact[k : k + 3]) <= 1 for k in range(1, 4))  # what the printed programme looks at
    found = audit_stream(budgets, window=3, epsilon=1)
    assert (found.epsilon, found.passed) == (Fraction("1.1"), False)
    with pytest.raises(AuditFailed, match=r"the steps 0 to 2 spend 1\.1 together"):
        found.require()


def test_refinement_with_fresh_noise():
    """Noise drawn anew at the finer level: the two releases together cost the sum of both."""

    def fresh(half, rate, finer, last):
        del half, rate
        alpha = math.exp(-finer)
        return (1 - alpha) * alpha ** np.arange(last + 1)

    assert audit_chain([1, 2]).epsilon == 2
    found = audit_chain([1, 2], fresh)
    assert not found.passed
    assert found.epsilon == pytest.approx(3, abs=1e-5)


def test_a_replayed_vault_state(monkeypatch, tmp_path):
    existing("noise/test_gradual.py", "test_refining_one_pair_twice_would_tell_more")()
    test = existing("publishing/test_refine.py", "test_an_older_vault_is_noticed")

    def held(folder):
        folder.mkdir()
        return (
            sf.Vault(folder / "secrets", key=folder / "vault.key"),
            sf.Ledger.create(folder / "budget.db", epsilon=10),
            folder,
        )

    test(*held(tmp_path / "sound"))
    read = sf.Vault.read
    monkeypatch.setattr(sf.Vault, "read", lambda self, release_id, *, at_least=0: read(self, release_id))
    assert catches(test, *held(tmp_path / "broken"))
