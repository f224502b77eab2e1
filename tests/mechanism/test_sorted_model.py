"""The error model of sorted points: its minimum, its scaling, and how near it is to what is measured."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.mechanism.points.sorted import sorted_points
from sfumato.mechanism.points.sorted_model import CAUTION, EXPONENT, best_group, range_error, rank_error
from sfumato.noise import SeededSource

EPSILON = Fraction(1, 2)


@given(
    records=st.integers(1, 10**9),
    epsilon=st.floats(1e-3, 10),
    share=st.floats(1e-6, 1),
    factor=st.sampled_from([0.5, 0.9, 1.1, 2.0]),
)
def test_the_best_group_is_the_minimum_of_the_model(records, epsilon, share, factor):
    group = best_group(records, epsilon, share)
    assert 1 <= group <= records
    other = max(1, min(round(group * factor), records))
    slack = (1 + 1 / group) ** 2  # whole numbers miss the minimum by half a record
    assert rank_error(records, group, epsilon, share) <= slack * rank_error(records, other, epsilon, share)


def test_no_records_and_no_sensitivity_are_one_group():
    assert best_group(0, 1.0, 1.0) == 1
    assert best_group(1000, 1.0, 0.0) == 1


def test_noise_of_groups_is_that_of_fewer_records_at_more_epsilon():
    """n records in groups of k at ε, as a share of the records, are n/k records at k·ε."""
    k, n, epsilon = 7, 7000, 0.3
    grouped = rank_error(n, k, epsilon, 0.5) / n**2
    assert math.isclose(grouped, rank_error(n // k, 1, epsilon * k, 0.5) / (n // k) ** 2)
    assert 4 / 3 <= EXPONENT <= 2  # what isotonic regression does at its best, and nothing at all


def test_a_small_delta_divides_the_error_as_a_larger_epsilon_does():
    """Figure 5 of the δ-neighbourhood paper: at a fixed group size noise falls with δᵖ, at the best one with δ."""
    wide = rank_error(10**6, best_group(10**6, 1.0, 1.0), 1.0, 1.0)
    narrow = rank_error(10**6, best_group(10**6, 1.0, 0.01), 1.0, 0.01)
    assert math.isclose(wide / narrow, 100, rel_tol=0.05)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_longer_ranges_have_more_error_and_no_records_have_none(dimensions):
    given = {"group": 30, "epsilon": 1.0, "relative_sensitivity": 1.0, "dimensions": dimensions}
    errors = range_error([0.001, 0.01, 0.1, 1.0], records=1000, **given)
    assert (np.diff(errors) > 0).all()
    assert range_error([0.5], records=0, **given).tolist() == [0.0]


def test_expected_errors_of_every_workload():
    mechanism = sorted_points(sf.bounded(sf.Line(0, 1, cells=256)), EPSILON)
    cells, ranges = (mechanism.modelled_error(w, 1000) for w in (sf.histogram(), sf.ranges()))
    assert 0 < cells < ranges
    given = mechanism.modelled_error(sf.ranges([(0.0, 0.5), (0.2, 0.7)]), 1000)
    expected = range_error(
        0.5, records=1000, group=mechanism.group_size(1000), epsilon=0.5, relative_sensitivity=255 / 256
    )
    assert math.isclose(given, CAUTION * float(expected))
    assert math.isnan(mechanism.modelled_error(sf.queries(np.eye(256)), 1000))


def test_a_private_number_of_records_adds_its_noise_where_the_list_is_padded():
    domain = sf.Line(0, 1, cells=256)
    mechanism = sorted_points(sf.within(domain, 0.01, sources=[0.0]), EPSILON)
    plain = super(type(mechanism), mechanism).modelled_error(sf.prefixes(), 1000)
    added = mechanism.modelled_error(sf.prefixes(), 1000) - plain
    assert math.isclose(added, 2 * 20**2, rel_tol=0.01)  # padded in the first cell, which every prefix holds


@pytest.mark.slow
def test_the_model_is_near_what_is_measured_on_points_it_was_not_fitted_to():
    """Twenty runs at each of six settings; the model promises no more than the right order of magnitude."""
    domain = sf.Line(0, 1, cells=1024)
    rng = np.random.default_rng(8)
    for n, epsilon in [(1000, Fraction(1, 10)), (10_000, Fraction(1)), (50_000, Fraction(1, 10))]:
        for policy in (sf.bounded(domain), sf.within(domain, 0.05)):
            x = np.bincount((rng.beta(2, 5, n) * 1024).astype(int), minlength=1024)
            mechanism = sorted_points(policy, epsilon)
            errors = []
            for seed in range(20):
                off = np.cumsum(mechanism.run(x, n, SeededSource(seed)) - x)
                errors.append(float(((off[None, ::16] - off[::16, None]) ** 2).mean()))
            assert 1 / 6 < np.mean(errors) / mechanism.modelled_error(sf.ranges(), n) < 6
