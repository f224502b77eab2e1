"""The worked examples of the papers, to the digit, and the corrections that were needed where the papers are wrong.

Fang and Chang: Differential privacy with δ-neighbourhood for spatial and dynamic datasets (ASIA CCS 2014), called FC.
Haney, Machanavajjhala, Ding: Design of policy-aware differentially private algorithms (VLDB 2015), called HMD.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import sfumato as sf
from sfumato.linear import Prefix
from sfumato.mechanism import build
from sfumato.noise import DiscreteLaplace
from sfumato.workload import RANGES as ALL_RANGES

CELLS = 4
LINE = sf.Line(0, 1, cells=CELLS)
STANDARD = sf.bounded(LINE)
NEAR = sf.within(LINE, 0.25)
WITH_SOURCE = sf.within(LINE, 0.25, sources=[0.0])
TRIANGULAR = np.triu(np.ones((CELLS, CELLS), dtype=int))  # FC equation (6)
RANGES = np.array([[i <= cell < j for cell in range(CELLS)] for i, j in combinations(range(CELLS + 1), 2)], dtype=int)
LAPLACE = 2  # the variance of Lap(Δ/ε) is 2Δ²/ε²; FC equation (5) leaves the factor out


def variances(strategy, sensitivity):
    """The variance of every range under the strategy at ε = 1, by least squares."""
    inverse = np.linalg.pinv(strategy.astype(float))
    return LAPLACE * sensitivity**2 * ((RANGES @ inverse) ** 2).sum(axis=1)


# --- FC section 5.1: four values, δ = 1/4, a source at 0 --------------------------------------------------------------


def test_the_neighbours_are_adjacent_bins_and_the_source_is_next_to_the_first():
    """N = {(1, 2), (2, 3), (3, 4)}: bins whose points are *nearer* than δ; exactly δ does not count."""
    assert NEAR.edges().tolist() == [[0, 1], [1, 2], [2, 3]]
    assert WITH_SOURCE.edges().tolist() == [[0, 1], [1, 2], [2, 3], [0, sf.ABSENT]]


def test_the_triangular_strategy_has_sensitivity_one_and_three_under_the_standard_neighbourhood():
    assert WITH_SOURCE.sensitivity(TRIANGULAR) == 1
    assert NEAR.sensitivity(TRIANGULAR) == 1
    assert STANDARD.sensitivity(TRIANGULAR) == 3
    assert STANDARD.sensitivity(np.eye(CELLS)) == 2


def test_counts_with_lap_2_have_the_variances_of_table_3():
    """8 for every bin covered: 4 × 8 + 3 × 16 + 2 × 24 + 1 × 32 = 160."""
    found = variances(np.eye(CELLS), STANDARD.sensitivity(np.eye(CELLS)))
    assert found == pytest.approx(8 * RANGES.sum(axis=1))
    assert found.sum() == pytest.approx(160)


def test_the_triangular_strategy_has_variance_4_and_2_where_a_range_ends_at_the_last_bin():
    """Table 3 gives 4 by length alone. A range that ends at the last bin is one published value, with variance 2."""
    found = variances(TRIANGULAR, WITH_SOURCE.sensitivity(TRIANGULAR))
    assert found == pytest.approx(np.where(RANGES[:, -1] == 1, 2, 4))
    assert found.sum() == pytest.approx(32)


def test_the_library_builds_that_strategy():
    """Prefix sums from the upper end: the same coefficients, at noise of scale 1 that is discrete and no worse."""
    mechanism = build("prefix", WITH_SOURCE, Fraction(1), reverse=True)
    (block,) = mechanism.model.blocks
    assert mechanism.privacy_loss == block.noise.rate == 1
    (coefficients,) = mechanism.model.coefficients(RANGES.astype(float))
    assert LAPLACE * (coefficients**2).sum(axis=1) == pytest.approx(np.where(RANGES[:, -1] == 1, 2, 4))
    assert block.noise.variance <= LAPLACE
    plan = sf.plan(WITH_SOURCE, sf.ranges(), 1)
    assert plan.mechanism.name == "prefix"
    assert plan.mechanism.options == {"reverse": True}
    assert plan.expected_error * len(RANGES) <= 32


@pytest.mark.parametrize("source", [True, False], ids=["with the source", "without"])
def test_no_set_of_binary_rows_is_better(source):
    """All 2¹⁵ sets of rows from {0, 1}⁴: the least total variance is 32."""
    rows = np.array([[number >> bit & 1 for bit in range(CELLS)] for number in range(1, 2**CELLS)])
    chosen = np.arange(2 ** len(rows))[:, None] >> np.arange(len(rows)) & 1
    cuts = [chosen @ (rows[:, i] != rows[:, i + 1]) for i in range(CELLS - 1)]
    if source:
        cuts.append(chosen @ rows[:, 0])
    sensitivity = np.max(cuts, axis=0)
    gram = np.einsum("sr,ri,rj->sij", chosen, rows, rows, optimize=True)
    full = np.abs(np.linalg.det(gram)) > 0.5  # whole numbers: singular or at least one
    spread = np.linalg.inv(gram[full].astype(float))
    total = LAPLACE * sensitivity[full] ** 2 * np.einsum("qi,sij,qj->s", RANGES, spread, RANGES, optimize=True)
    assert full.sum() > 20_000
    assert total.min() == pytest.approx(32)
    policy = WITH_SOURCE if source else NEAR
    best = rows[chosen[full][np.argmin(total)].astype(bool)]
    assert variances(best, policy.sensitivity(best)).sum() == pytest.approx(32)


# --- FC section 5.3, Table 4: longer lines ----------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [1, 3, 8])
def test_prefix_sums_have_the_sensitivity_delta_and_four_delta_squared_a_range(theta):
    """Table 4 says Θ(δ/ε²); plain prefix sums have δ² (in bins)."""
    line = sf.Line(0, 1, cells=64)
    policy = sf.threshold(line, theta)
    assert policy.sensitivity(Prefix(64)) == theta
    mechanism = build("edges", policy, Fraction(1))
    second, _ = mechanism.model.range_cumulants(np.array([[10.0]]), np.array([[30.0]]))
    assert second == pytest.approx([2 * DiscreteLaplace(Fraction(1, theta)).variance])
    assert second[0] <= 4 * theta**2


def test_laplace_noise_has_the_variance_two_delta_squared_over_epsilon_squared():
    for sensitivity, epsilon in [(100, 1), (4, Fraction(1, 100))]:
        noise = DiscreteLaplace.calibrated(epsilon=epsilon, sensitivity=sensitivity)
        assert noise.variance == pytest.approx(2 * sensitivity**2 / float(epsilon) ** 2, rel=1e-4)


# --- FC Lemma 1, HMD section 5 and 6 ----------------------------------------------------------------------------------


def test_lemma_1_is_the_diameter_for_replace_one_and_the_eccentricity_of_nothing_for_add_remove():
    assert NEAR.diameter == 3
    assert NEAR.eccentricity == math.inf
    assert WITH_SOURCE.diameter == 3
    assert WITH_SOURCE.eccentricity == 4
    assert sf.policies.exchange_rate(STANDARD, NEAR) == 3
    assert sf.policies.exchange_rate(sf.unbounded(LINE), WITH_SOURCE) == 4


def test_a_line_has_k_times_k_plus_one_over_two_ranges():
    assert ALL_RANGES.count(CELLS) == len(RANGES) == 10


def test_add_remove_at_half_the_budget_is_replace_one():
    """HMD section 6: the counts have sensitivity 1 under add/remove and 2 under replace-one."""
    assert sf.policies.exchange_rate(STANDARD, sf.unbounded(LINE)) == 2
    assert STANDARD.sensitivity(np.eye(CELLS)) == 2 * sf.unbounded(LINE).sensitivity(np.eye(CELLS))


def test_on_a_cycle_the_counts_may_be_published_and_the_edge_values_may_not():
    """HMD Theorem 4.1: a fixed rule for choosing flows moves them by a whole path where the policy moves one edge."""
    cycle = sf.graph(LINE, [(0, 1), (1, 2), (2, 3), (3, 0)])
    mechanism = build("edges", cycle, Fraction(1))
    counts, noise = np.array([3, 1, 4, 1]), np.array([5, -2, 0, 7])
    for j, (u, v) in enumerate(cycle.edges()):
        moved = counts.copy()
        moved[u] += 1
        moved[v] -= 1
        shifted = noise.copy()
        shifted[j] += 1
        assert np.array_equal(mechanism.measure(moved, [noise]), mechanism.measure(counts, [shifted]))
    tree = np.linalg.inv(np.tril(np.ones((4, 4))))[:, :3]  # the flow along the path 0-1-2-3 alone
    flows = [np.linalg.lstsq(tree, row, rcond=None)[0] for row in ([1, 0, 0, -1], [0, 0, 0, 0])]
    assert np.abs(flows[0] - flows[1]).sum() == pytest.approx(3)
