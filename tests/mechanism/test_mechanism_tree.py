"""Mechanisms on trees: one change moves few edge values, and consistency is a projection."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.mechanism import build
from sfumato.mechanism.edges.tree import ConsistentMechanism
from sfumato.noise import SeededSource

LINE = sf.Line(0, 1, cells=12)
POLICIES = {
    "line": sf.threshold(LINE, 1),
    "θ = 4": sf.threshold(LINE, 4),
    "star": sf.graph(LINE, [(0, i) for i in range(1, 12)]),
    "binary tree": sf.graph(LINE, [(i, (i - 1) // 2) for i in range(1, 12)]),
    "binary tree with ⊥": sf.graph(LINE, [(i, (i - 1) // 2) for i in range(1, 12)] + [(3, sf.ABSENT)]),
    "replace-one": sf.bounded(LINE),
}


def consistent(name: str, epsilon: Fraction = Fraction(1)) -> ConsistentMechanism:
    mechanism = build("consistent", POLICIES[name], epsilon)
    assert isinstance(mechanism, ConsistentMechanism)
    return mechanism


@pytest.mark.parametrize("name", POLICIES)
def test_a_change_along_an_edge_changes_at_most_stretch_edge_values_by_one(name: str) -> None:
    mechanism, rng = consistent(name), np.random.default_rng(1)
    largest = 0
    for u, v in mechanism.policy.edges():
        x = rng.integers(1, 9, 12)
        other = x.copy()
        other[u] -= 1
        if v >= 0:
            other[v] += 1
        moved = np.abs(mechanism.edges.of(x) - mechanism.edges.of(other))
        assert moved.max() <= 1
        largest = max(largest, int(moved.sum()))
    assert largest == mechanism.edges.spanner.stretch
    assert mechanism.privacy_loss == mechanism.epsilon


@pytest.mark.parametrize("name", POLICIES)
def test_without_noise_the_counts_come_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = consistent(name)
    monkeypatch.setattr(
        "sfumato.noise.DiscreteLaplace.sample", lambda self, size, source: np.zeros(size, dtype=np.int64)
    )
    x = np.random.default_rng(2).integers(0, 9, 12)
    total = int(x.sum()) if mechanism.policy.total_is_public else None
    np.testing.assert_allclose(mechanism.run(x, total, SeededSource(0)), x, atol=1e-6)


@pytest.mark.parametrize("name", POLICIES)
def test_consistency_is_the_nearest_point_without_negative_counts(name: str) -> None:
    mechanism, rng = consistent(name), np.random.default_rng(3)
    total = 40 if mechanism.policy.total_is_public else None
    noisy = rng.normal(0, 6, len(mechanism.edges.order))
    incidence = mechanism.edges.incidence.sparse().toarray().astype(float)
    known = np.zeros(12)
    if total is not None:
        known[mechanism.edges.tree.root] = total
    oracle = minimize(
        lambda z: 0.5 * ((z - noisy) ** 2).sum(),
        np.zeros_like(noisy),
        jac=lambda z: z - noisy,
        constraints={"type": "ineq", "fun": lambda z: incidence @ z + known, "jac": lambda z: incidence},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    found = mechanism.edges.project(noisy, total)
    assert (incidence @ found + known).min() > -1e-6
    assert 0.5 * ((found - noisy) ** 2).sum() == pytest.approx(oracle.fun, rel=1e-6)


@pytest.mark.parametrize("name", ["consistent", "dawa"])
@pytest.mark.parametrize("policy", ["line", "θ = 4", "star", "binary tree"])
def test_estimates_sum_to_the_public_total_exactly(name: str, policy: str) -> None:
    plan = sf.plan(POLICIES[policy], sf.ranges(), 0.5, mechanism=name)
    release = plan.publish(np.arange(12), source=SeededSource(4))
    assert release.counts.sum() == 66
    assert release.counts.min() > -1e-6


def test_a_release_without_error_bars_says_so_with_nan(tmp_path: object) -> None:
    release = sf.plan(POLICIES["line"], sf.ranges(), 1, mechanism="consistent").publish(np.arange(12))
    answer = release.answer((0, 0.5))
    assert np.isnan([answer.stderr, answer.low, answer.high]).all()
    assert np.isfinite(answer.value)
    assert np.isnan(release.cells().stderr).all()
    assert np.isnan(release.query(np.ones(12)).stderr)
    path = tmp_path / "release.sfumato"  # type: ignore[operator]
    release.save(path)
    assert (sf.load(path).counts == release.counts).all()


def test_consistency_wins_on_sparse_data() -> None:
    """Hay et al.: the error falls with the number of distinct prefix sums. 40 runs: a factor of 5 is no chance."""
    line = sf.Line(0, 1, cells=512)
    x = np.zeros(512, dtype=np.int64)
    x[[3, 100, 400]] = 1000
    policy, source = sf.threshold(line, 1), SeededSource(5)
    errors = {}
    for name in ("edges", "consistent"):
        mechanism = build(name, policy, Fraction(1, 10))
        errors[name] = np.mean([((mechanism.run(x, 3000, source) - x) ** 2).mean() for _ in range(40)])
    assert errors["consistent"] < errors["edges"] / 5


@pytest.mark.parametrize("name", ["consistent", "dawa"])
def test_graphs_with_cycles_are_refused(name: str) -> None:
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4))
    message = (
        f"mechanism='{name}' needs a policy that a tree spans well; noisy edge values of a graph with cycles are not "
        "private. Use mechanism='edges'."
    )
    with pytest.raises(InvalidInput) as caught:
        build(name, sf.threshold(grid, 1), Fraction(1))
    assert str(caught.value) == message


def test_dawa_options_are_checked() -> None:
    with pytest.raises(InvalidInput, match="consistent=1 must be True or False"):
        build("dawa", POLICIES["line"], Fraction(1), consistent=1)
    with pytest.raises(InvalidInput, match="queries='means' must be 'ranges' or 'cells'"):
        build("dawa", sf.unbounded(LINE), Fraction(1), queries="means")
    with pytest.raises(InvalidInput, match="takes no option width"):
        build("dawa", sf.unbounded(LINE), Fraction(1), width=3)
