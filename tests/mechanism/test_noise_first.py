"""DAWA for histograms, noise first: the runs by brute force, the loss of their choice summed exactly, what is kept."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.auditing import audit
from sfumato.errors import InvalidInput
from sfumato.mechanism import build, mechanism_from_spec
from sfumato.mechanism.forms import TwoStage
from sfumato.mechanism.partitions.noisy_runs import RUN, SPIKE_BEYOND, smoothed
from sfumato.noise import DiscreteLaplace, SeededSource

ONE = Fraction(1)
NOISE_FIRST = {"queries": "cells", "first": "noise"}


def line(cells):
    return sf.Line(0, cells, cells=cells)


def noise_first(policy, epsilon=ONE):
    return build("dawa", policy, epsilon, **NOISE_FIRST)


def brute_cost(y, rate, spike):
    """(least cost of a line, its cells), over all aligned partitions; the last run may be cut short."""

    def run(cells):
        middle = sorted(cells)[(len(cells) - 1) // 2]
        off = [rate * (y - middle) for y in cells]
        far = [o > spike or (o < -spike and rate * middle > spike) for o in off]
        mean = sum(y for y, f in zip(cells, far, strict=True) if not f) / far.count(False)
        cost = sum(spike if f else abs(o) for o, f in zip(off, far, strict=True)) + RUN
        return cost, [y if f else mean for y, f in zip(cells, far, strict=True)]

    def best(cells, length):
        if length == 1 or len(cells) == 1:
            return (RUN, list(cells))
        if len(cells) <= length // 2:
            return best(cells, length // 2)
        (left, one), (right, two) = best(cells[: length // 2], length // 2), best(cells[length // 2 :], length // 2)
        whole, together = run(cells)
        return (whole, together) if whole <= left + right else (left + right, one + two)

    return best(list(y), 1 << (len(y) - 1).bit_length())


# by hand


def test_an_empty_line_is_one_run_and_a_spike_stays_what_it_is():
    y = np.array([1.0, -2, 0, 3, 400, 0, -1, 2])
    found = smoothed(y, 0.5)
    assert found[4] == 400
    assert np.unique(np.delete(found, 4)).tolist() == [np.delete(y, 4).mean()]


def test_a_hole_in_a_crowd_stays_a_hole_and_nothing_lies_below_zero():
    crowd, empty = np.full(16, 300.0), np.zeros(16)
    crowd[5], empty[5] = 0, -14
    assert smoothed(crowd, 0.5)[5] == 0
    assert np.unique(smoothed(empty, 0.5)).tolist() == [-14 / 16]  # noise, whatever it is


def test_a_step_is_found():
    y = np.repeat([0.0, 50.0], 8)
    assert smoothed(y, 1.0).tolist() == y.tolist()


# oracle


@given(st.lists(st.integers(-9, 60), min_size=1, max_size=21), st.sampled_from([0.1, 0.5, 2.0]))
def test_the_runs_are_those_of_least_cost(y, rate):
    expected = brute_cost(y, rate, math.log(len(y)) + SPIKE_BEYOND)[1]
    found = smoothed(np.array(y, dtype=np.float64), rate)
    assert found == pytest.approx(np.array(expected), abs=1e-9)
    assert found.sum() == pytest.approx(sum(y), abs=1e-9)


# privacy


def law_of_choice(x, epsilon, reach):
    """The probability of every set of runs of three cells, by summing over the noise: of e⁻¹⁵ and more."""
    rate, found = float(epsilon), defaultdict(float)
    for noise in product(range(-reach, reach + 1), repeat=3):
        y = np.array(x) + noise
        cells = smoothed(y.astype(np.float64), rate)
        pattern = (*(cells == y).tolist(), cells[0] == cells[1], cells[1] == cells[2])
        found[pattern] += math.exp(-rate * sum(map(abs, noise)))
    norm = ((1 - math.exp(-rate)) / (1 + math.exp(-rate))) ** 3
    return {pattern: p * norm for pattern, p in found.items()}


def test_the_choice_of_runs_of_three_cells_loses_no_more_than_epsilon():
    """Noise beyond ±4 at rate 4 has a probability of 10⁻⁸, and only sets of runs above 10⁻⁴ are compared."""
    epsilon, worst = Fraction(4), 0.0
    for x, other in (((0, 0, 0), (0, 1, 0)), ((0, 3, 0), (0, 4, 0)), ((4, 0, 0), (5, 0, 0))):
        one, two = law_of_choice(x, epsilon, 4), law_of_choice(other, epsilon, 4)
        common = [key for key in one if min(one[key], two.get(key, 0.0)) > 1e-4]
        worst = max(worst, *(abs(math.log(one[key] / two[key])) for key in common))
    assert 0.5 * float(epsilon) < worst <= float(epsilon) + 1e-3


@pytest.mark.parametrize("policy", [sf.unbounded, sf.bounded, lambda cells: sf.threshold(cells, 2)])
def test_the_loss_of_a_release_is_epsilon_exactly(policy):
    found = audit(noise_first(policy(line(6))), seed=1)
    assert (found.method, found.epsilon, found.passed) == ("exact", 1, True)


def test_half_the_noise_is_caught():
    mechanism = noise_first(sf.bounded(line(6)))
    narrow = type(mechanism)(name="dawa", policy=sf.bounded(line(6)), epsilon=ONE, options=NOISE_FIRST)
    narrow.__dict__["plain"] = build("identity", sf.bounded(line(6)), 2 * ONE)
    found = audit(narrow, seed=1)
    assert (found.epsilon, found.passed) == (2, False)


# behaviour


def test_on_a_sparse_line_it_is_far_better_than_noise_and_on_a_rough_one_no_worse():
    """Seeded. 40 crowded cells of 4,096; and counts without any likeness."""
    sparse, rough = np.zeros(4096, dtype=np.int64), np.random.default_rng(1).integers(0, 10**6, 4096)
    sparse[::103] = 500
    mechanism, noise = noise_first(sf.unbounded(line(4096)), Fraction(1, 10)), DiscreteLaplace(Fraction(1, 10)).variance
    for x, share in ((sparse, 0.03), (rough, 1.05)):
        off = mechanism.run(x, None, SeededSource(4)) - x
        assert float((off**2).mean()) < share * noise


def test_a_grid_is_smoothed_along_its_curve_and_keeps_the_public_total():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(16, 16))
    x = np.zeros((16, 16), dtype=np.int64)
    x[:4, :4] = 90  # one aligned block of the curve
    found = noise_first(sf.bounded(grid)).run(x.ravel(), int(x.sum()), SeededSource(2)).reshape(16, 16)
    assert found.sum() == x.sum()
    assert len(np.unique(found)) <= 8
    assert found[:4, :4] == pytest.approx(90, abs=2)


def test_what_a_release_keeps_are_the_numbers_of_identity_with_its_intervals():
    policy, x = sf.bounded(line(40)), np.arange(40) // 4
    mechanism, plain = noise_first(policy), build("identity", policy, ONE)
    measured, estimates = mechanism.observe(x, int(x.sum()), SeededSource(7))
    (parts,) = mechanism.parts(measured, int(x.sum()))
    assert np.array_equal(parts.values, plain.run(x, int(x.sum()), SeededSource(7)))
    assert not np.array_equal(parts.values, estimates)
    assert parts.model.expected_error(sf.ranges(), policy.domain) == plain.model.expected_error(
        sf.ranges(), policy.domain
    )
    assert mechanism.parts(None, None) == mechanism.parts(measured[:-1], None) == ()


def test_a_plan_takes_noise_first_where_cells_are_asked_for():
    policy = sf.unbounded(line(64))
    for workload, options in ((sf.histogram(), NOISE_FIRST), (sf.ranges(), {"queries": "ranges"})):
        plan = sf.plan(policy, workload, epsilon=1, mechanism="dawa")
        assert plan.mechanism.options == options
    assert sf.plan(sf.threshold(line(9), 1), sf.histogram(), epsilon=1, mechanism="dawa").mechanism.options == {
        "consistent": True
    }


def test_what_was_published_with_runs_first_is_read_as_such():
    policy = sf.unbounded(line(64))
    spec = {"name": "dawa", "epsilon": "1", "options": {"queries": "cells"}}
    read = mechanism_from_spec(spec, policy)
    assert isinstance(read.form, TwoStage)
    assert read.spec() == spec
    assert mechanism_from_spec(noise_first(policy).spec(), policy).spec() == noise_first(policy).spec()


@pytest.mark.filterwarnings("ignore::sfumato.NoLedgerWarning")
def test_its_noise_can_be_lowered_later(tmp_path):
    policy, x = sf.unbounded(line(64)), np.arange(64) // 8 * 10
    vault = sf.Vault(tmp_path / "vault", key=tmp_path / "key")
    release = sf.plan(policy, sf.histogram(), epsilon=1, mechanism="dawa").publish(x, vault=vault)
    better = release.refine(epsilon=1000, vault=vault)
    assert better.counts == pytest.approx(x, abs=1)
    answer = better.answer((0, 16))
    assert answer.low <= x[:16].sum() <= answer.high


# refusals


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"first": "totals"}, "first='totals' must be 'runs' or 'noise'."),
        (
            {"first": "noise", "queries": "ranges"},
            "first='noise' is for queries='cells', not queries='ranges': ranges need runs first.",
        ),
        ({"first": "noise", "width": 3}, "mechanism='dawa' takes no option width."),
    ],
)
def test_options_that_do_not_fit_are_refused(options, said):
    with pytest.raises(InvalidInput) as caught:
        build("dawa", sf.unbounded(line(8)), ONE, **options)
    assert str(caught.value) == said


def test_a_policy_that_keeps_a_factor_public_is_refused():
    space = line(4) * sf.Categories(["a", "b"], name="kind")
    policy = sf.policy(space, hide=sf.move(2, of="x"), public=["kind"])
    with pytest.raises(InvalidInput, match="first='noise' needs a policy that keeps no factor public"):
        noise_first(policy)
