"""Tuned strategies reach the errors they are known for, and the bound is below all of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.linear import Hierarchy, PseudoInverse
from sfumato.mechanism import singular_value_bound
from sfumato.mechanism.cells.tuning import best_hierarchy, best_prefix_blocks
from sfumato.workload import CELLS, PREFIXES, RANGES, AxisQueries

KINDS = [CELLS, RANGES, PREFIXES]

SMALL = Fraction(1, 1000)  # discrete noise is as good as continuous here: errors times ε² are those of the papers


def error(policy: sf.Policy, workload: sf.Workload, **options: object) -> float:
    return sf.plan(policy, workload, SMALL, **options).expected_error * float(SMALL) ** 2


def square(k: int) -> sf.Grid:
    return sf.Grid(bounds=(0, 0, 1, 1), shape=(k, k))


@pytest.mark.parametrize(("n", "known"), [(256, 80.0), (1024, 160.0), (4096, 261.0)])
def test_plain_ranges_on_a_line_reach_the_best_nested_blocks(n: int, known: float) -> None:
    assert error(sf.unbounded(sf.Line(0, 1, cells=n)), sf.ranges()) <= known


@pytest.mark.parametrize(("k", "known"), [(32, 86), (64, 142), (128, 212), (256, 313), (1024, 617)])
def test_ranges_on_a_grid_under_unit_moves(k: int, known: float) -> None:
    assert error(sf.threshold(square(k), 1), sf.ranges()) <= known


@pytest.mark.parametrize(("theta", "known"), [(1, 4), (2, 12), (3, 24), (4, 41), (5, 49), (7, 62), (16, 109)])
@pytest.mark.parametrize("n", [512, 4096])
def test_ranges_on_a_line_do_not_grow_with_the_line(theta: int, known: float, n: int) -> None:
    assert error(sf.threshold(sf.Line(0, 1, cells=n), theta), sf.ranges()) <= min(known, 4 * theta**2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [5, 16, 37, 64])
def test_no_two_level_hierarchy_beats_the_tuned_one(kind: AxisQueries, n: int) -> None:
    def mean(blocks: tuple[int, ...], weights: tuple[int, ...]) -> float:
        return sum(weights) ** 2 * kind.mean_variance(PseudoInverse(Hierarchy(n, blocks, weights)))

    tuned = mean(*best_hierarchy(n, kind, False))
    others = [mean((b, 1), (k, 20 - k)) for b in range(2, n) for k in range(1, 20, 3)]
    assert tuned <= 1.04 * min([mean((1,), (1,)), *others])  # 4 %: blocks that do not divide n are idealised


def test_blocks_for_long_moves_are_about_as_long_as_a_move() -> None:
    for reach in (4, 7, 16, 64):
        blocks, weights = best_prefix_blocks(reach)
        assert reach / 4 <= blocks[0] <= 2 * reach
        assert len(blocks) == len(weights) and blocks[-1] == 1


@pytest.mark.parametrize("n", [2, 3, 7, 20])
@pytest.mark.parametrize("workload", [sf.ranges(), sf.histogram(), sf.prefixes()])
def test_singular_value_bound_equals_a_dense_one(n: int, workload: sf.Workload) -> None:
    line = sf.Line(0, 1, cells=n)
    kind = workload.kind  # type: ignore[attr-defined]
    queries = [(a, b) for a in range(n) for b in range(a + 1, n + 1)]
    wanted = {RANGES: queries, CELLS: [q for q in queries if q[1] == q[0] + 1]}
    rows = wanted.get(kind, [q for q in queries if q[0] == 0])
    matrix = np.array([[a <= c < b for c in range(n)] for a, b in rows], dtype=float)
    for policy in (sf.threshold(line, 1), sf.threshold(line, 3), sf.unbounded(line), sf.bounded(line)):
        edges = policy.edges()
        incidence = np.zeros((n, len(edges)))
        for j, (u, v) in enumerate(edges):
            incidence[u, j] = 1
            if v >= 0:
                incidence[v, j] = -1
        nuclear = np.linalg.svd(matrix @ incidence, compute_uv=False).sum()
        bound = singular_value_bound(policy, workload, SMALL)
        assert bound == pytest.approx(2 / float(SMALL) ** 2 * nuclear**2 / len(edges) / len(matrix), rel=1e-6)


def test_a_plan_prints_how_far_it_is_from_the_bound() -> None:
    plan = sf.plan(sf.threshold(sf.Line(0, 1, cells=4096), 1), sf.ranges(), SMALL)
    assert plan.expected_error == pytest.approx(plan.lower_bound, rel=1e-3)
    assert "Limit      1 times the singular value bound, for matrix mechanisms with integer noise" in str(plan)
