"""Sorted points hide every edge of the policy: sensitivities by brute force, the witness, and the noise drawn."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanism.points import sorted_groups
from sfumato.mechanism.points.sorted import sorted_points
from sfumato.mechanism.points.sorted_groups import group_sizes, group_sums
from sfumato.noise import SystemSource

EPSILON = Fraction(1, 2)


def line(cells):
    return sf.Line(0, 1, cells=cells)


def grid(*shape):
    return sf.Grid(bounds=(0,) * len(shape) + (1,) * len(shape), shape=shape)


def all_policies(domain):
    yield sf.bounded(domain)
    yield sf.unbounded(domain)
    yield sf.threshold(domain, 1)
    yield sf.threshold(domain, 2)
    yield sf.within(domain, 0.3)
    yield sf.within(domain, 0.3, sources="boundary")
    yield sf.within(domain, 0.2, sources=[(0.1,) * domain.ndim])
    yield sf.within(domain, 0.2, sources=[(0.9,) * domain.ndim])
    if domain.size > 2:
        cycle = [(i, i + 1) for i in range(domain.size - 1)] + [(0, domain.size - 1)]
        yield sf.graph(domain, cycle)
        yield sf.graph(domain, [*cycle, (0, sf.ABSENT)])
        yield sf.graph(domain, [(0, 2)], publish_component_totals=True)


DOMAINS = [line(1), line(2), line(5), grid(2, 3), grid(1, 4), grid(2, 2, 2)]
POLICIES = [policy for domain in DOMAINS for policy in all_policies(domain)]
PUBLIC = [policy for policy in POLICIES if policy.total_is_public]
HIDDEN = [policy for policy in POLICIES if not policy.total_is_public]


def label(policy):
    return f"{policy.name}{policy.domain.shape}{'' if policy.absent is None else '⊥'}"


def datasets(size, most):
    """Every vector of counts of up to so many records."""
    for n in range(most + 1):
        for cells in itertools.combinations_with_replacement(range(size), n):
            yield np.bincount(np.array(cells, dtype=np.int64), minlength=size)


def sorted_list(counts, mechanism):
    along = counts if mechanism.order is None else counts[mechanism.order]
    return np.repeat(np.arange(len(along)), along)


def neighbours(counts, policy):
    """(the counts after one record changed along an edge, whether it came from or went to ⊥)."""
    for u, v in policy.edges():
        for a, b in ((u, v), (v, u)):
            changed = counts.copy()
            if a >= 0:
                changed[a] -= 1
            if b >= 0:
                changed[b] += 1
            if changed.min() >= 0:
                yield changed, v < 0


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_five_records_in_groups_of_two_by_hand():
    """Positions 0, 0, 2, 3, 3 in groups of 2, 2, 1: sums 0, 5, 3. One record moved from 0 to 3 adds three in all."""
    mechanism = sorted_points(sf.bounded(line(4)), Fraction(1), group=2)
    assert mechanism.sensitivity == 3
    assert mechanism.values(np.array([2, 0, 1, 2])).tolist() == [0, 5, 3]
    assert mechanism.values(np.array([1, 0, 1, 3])).tolist() == [2, 6, 3]
    assert mechanism.measure(np.array([2, 0, 1, 2]), [np.array([1, -1, 4])]).tolist() == [1, 4, 7]
    assert [(law.rate, size) for law, size in mechanism.noises(5)] == [(Fraction(1, 3), 3)]
    assert mechanism.privacy_loss == 1
    assert mechanism.describe() == "sorted, group 2; noise of scale 3"
    assert mechanism.spec() == {"name": "sorted", "epsilon": "1", "options": {"group": 2}}


def test_the_reach_of_a_line_policy_is_its_sensitivity():
    """δ = 0.02 on 100 cells joins cells up to two apart and one more for the seams, not δ times the length."""
    assert sorted_points(sf.threshold(line(100), 7), EPSILON).sensitivity == 7
    assert sorted_points(sf.within(line(100), 0.02), EPSILON).sensitivity == 2
    assert sorted_points(sf.within(line(100), 0.021), EPSILON).sensitivity == 3
    assert sorted_points(sf.bounded(line(100)), EPSILON).sensitivity == 99


def test_small_moves_on_a_grid_cost_most_of_the_curve():
    """Cells side by side may be five sixths of the curve apart: δ does not survive it."""
    assert sorted_points(sf.within(grid(64, 64), 0.01), EPSILON).sensitivity == 3413


def test_a_grid_with_too_many_pairs_takes_the_whole_curve(monkeypatch):
    monkeypatch.setattr(sorted_groups, "LARGEST_SEARCH", 10)
    assert sorted_points(sf.threshold(grid(8, 8), 1), EPSILON).sensitivity == 63


# --- the privacy argument, exhaustively -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", PUBLIC, ids=label)
def test_every_edge_moves_the_sums_by_no_more_than_the_sensitivity(policy):
    """Also: the distance of the whole lists is exactly that of the two positions, and groups never raise it."""
    found = 0
    mechanisms = [sorted_points(policy, EPSILON, group=k) for k in (1, 2, 3, 4)]
    for counts in datasets(policy.domain.size, most=3 if policy.domain.size < 6 else 2):
        for changed, _ in neighbours(counts, policy):
            lists = [sorted_list(x, mechanisms[0]) for x in (counts, changed)]
            apart = int(np.abs(lists[0] - lists[1]).sum())
            assert apart == abs(int(lists[0].sum() - lists[1].sum()))
            found = max(found, apart)
            for mechanism in mechanisms:
                c = mechanism.values(changed) - mechanism.values(counts)
                assert np.abs(c).sum() <= apart
                noise = np.arange(len(c)) * 7 - 3
                assert np.array_equal(mechanism.measure(changed, [noise]), mechanism.measure(counts, [noise + c]))
    for mechanism in mechanisms:
        assert mechanism.sensitivity == found
        assert mechanism.privacy_loss == (EPSILON if found else 0)


@pytest.mark.parametrize("policy", HIDDEN, ids=label)
def test_padded_and_cut_lists_hide_who_appears_whatever_the_guessed_number(policy):
    """For every n̂: the share for n̂ (which an edge to ⊥ moves by one) and the change of the sums cost ε at the most."""
    mechanism = sorted_points(policy, EPSILON, share="1/5")
    rate, pad_low = mechanism.rate or Fraction(0), mechanism.appearing[1]
    worst = Fraction(0)
    for counts in datasets(policy.domain.size, most=2 if policy.domain.size < 6 else 1):
        for changed, absent in neighbours(counts, policy):
            along = [x if mechanism.order is None else x[mechanism.order] for x in (counts, changed)]
            for guess, group in itertools.product(range(5), (1, 2, 3)):
                sizes = group_sizes(guess, group)
                sums = [group_sums(x, sizes, missing=guess - int(x.sum()), pad_low=pad_low) for x in along]
                cost = int(np.abs(sums[0] - sums[1]).sum()) * rate + (EPSILON / 5 if absent else 0)
                worst = max(worst, cost)
    assert worst == mechanism.privacy_loss <= EPSILON


def test_a_source_at_the_lower_end_is_cheap_since_the_list_is_padded_there():
    near, far = (sf.within(line(100), 0.03, sources=[place]) for place in (0.0, 1.0))
    for policy in (near, far):
        mechanism = sorted_points(policy, Fraction(1))
        assert (mechanism.appearing[0], mechanism.sensitivity) == (2, 3)
        assert mechanism.rate == Fraction(1, 3)  # a move of three cells has all of ε, an appearance nine tenths for two
        assert mechanism.privacy_loss == 1
    assert sorted_points(near, Fraction(1)).appearing[1]
    assert not sorted_points(far, Fraction(1)).appearing[1]
    assert sorted_points(sf.unbounded(line(100)), Fraction(1)).appearing == (99, False)


# --- noise ------------------------------------------------------------------------------------------------------------


def _scale_is(values, scale):
    """Mean absolute value of discrete Laplace noise, 2α/(1 - α²), within 5 %."""
    alpha = np.exp(-1 / scale)
    return abs(np.abs(values).mean() / (2 * alpha / (1 - alpha**2)) - 1) < 0.05


def test_the_noise_of_the_sums_has_its_scale_and_no_other():
    """400,000 values: the mean absolute value is known to 0.16 %, so a tolerance of 5 % fails with probability below
    10⁻²⁰⁰; 10 % more or less is caught as surely.
    """
    n = 400_000
    mechanism = sorted_points(sf.threshold(line(64), 9), EPSILON, group=1)
    counts = np.zeros(64, dtype=np.int64)
    counts[0] = n
    noise = mechanism.draw(counts, n, SystemSource())
    assert _scale_is(noise, 18)
    assert not _scale_is(noise, 18 * 0.9)
    assert not _scale_is(noise, 18 * 1.1)


def test_the_noise_of_a_private_number_and_its_sums_has_its_scales_and_no_others():
    """400,000 sums as above; the number itself is drawn once, from the law that is named."""
    mechanism = sorted_points(sf.unbounded(line(10)), EPSILON, share="1/4", group=1)
    assert (mechanism.number_law.rate, mechanism.law.rate) == (Fraction(1, 8), Fraction(1, 24))
    counts = np.zeros(10, dtype=np.int64)
    counts[-1] = 400_000
    noise = mechanism.draw(counts, None, SystemSource())[2:] - 9
    assert _scale_is(noise, 24)
    assert not _scale_is(noise, 24 * 0.9)
    assert not _scale_is(noise, 24 * 1.1)


@pytest.mark.slow
def test_the_number_of_records_is_hidden_by_noise_of_its_own():
    """2,000 draws of a law of scale 8: their mean absolute value is known to 2.2 %, and lies within 12 % of 8 but once
    in ten million; the draws themselves are the only place where n enters.
    """
    mechanism = sorted_points(sf.unbounded(line(2)), EPSILON, share="1/4", group=1000)
    counts, source = np.array([500, 500]), SystemSource()
    noise = np.array([mechanism.draw(counts, None, source)[0] for _ in range(2000)]) - 1000
    assert abs(np.abs(noise).mean() / 8 - 1) < 0.12
    assert len(set(noise.tolist())) > 20
