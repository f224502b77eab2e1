"""Releases on products: what nothing hides is exact and says so; the rest carries the noise that its policy needs."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.noise import DiscreteLaplace

PLACE = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 2))
HOUR = sf.Line(0, 3, cells=3, name="hour")
MODE = sf.Categories(["bus", "bike"], name="mode")
SPACE = PLACE * HOUR * MODE
COUNTS = np.random.default_rng(5).integers(0, 40, SPACE.shape)
APART = sf.policy(SPACE, hide=sf.move(0.2) | sf.change("mode"), public=["hour"])


@pytest.mark.parametrize(
    "mechanism", ["identity", "haar", "hierarchy", "levels", "edges", "edge-haar", "edge-hierarchy", "edge-hats"]
)
def test_the_joint_table_of_what_nothing_changes_is_exact(mechanism: str) -> None:
    release = sf.plan(APART, sf.histogram(), epsilon=1, mechanism=mechanism).publish(COUNTS)
    assert (release.counts.sum(axis=(0, 1, 3)) == COUNTS.sum(axis=(0, 1, 3))).all()
    assert release.total == COUNTS.sum()


@pytest.mark.parametrize("mechanism", ["identity", "hierarchy", "edges", "edge-haar"])
@pytest.mark.parametrize("axes", [(1, 2), (0, 3), (2,), (0, 1, 3)])
def test_the_law_of_the_noise_is_that_of_the_operators_written_out(mechanism: str, axes: tuple[int, ...]) -> None:
    plan = sf.plan(APART, sf.histogram(), epsilon=1, mechanism=mechanism)
    model, q = plan.mechanism.model, np.zeros(SPACE.shape)
    q[tuple(slice(0, 2) if i in axes else slice(None) for i in range(4))] = 1
    variance, _ = model.query_cumulants(q.reshape(1, -1))
    low = np.zeros((1, 4))
    high = np.array([[2 if i in axes else n for i, n in enumerate(SPACE.shape)]], dtype=float)
    assert np.allclose(model.range_cumulants(low, high)[0], variance, rtol=1e-9, atol=1e-12)
    expected = 0.0
    for block in model.blocks:
        written = block.estimator.dense()
        if model.centred:  # each hour's noise less its least-squares share of that hour's total
            hours = np.zeros((3, *SPACE.shape))
            for hour in range(3):
                hours[hour, :, :, hour] = 1
            parts = hours.reshape(3, -1)
            spread = written @ written.T @ parts.T
            written = written - spread @ np.linalg.solve(parts @ spread, parts @ written)
        expected += block.noise.variance * float(((q.ravel() @ written) ** 2).sum())
    assert np.isclose(variance[0], expected, rtol=1e-9, atol=1e-9)


def test_what_is_exact_has_no_noise_and_stands_first_in_the_words() -> None:
    plan = sf.plan(APART, sf.histogram(), epsilon=1, mechanism="identity")
    low, high = np.array([[0.0, 0, 1, 0]]), np.array([[4.0, 2, 2, 2]])
    assert plan.mechanism.model.range_cumulants(low, high)[0][0] == 0
    said = plan.guarantee.describe()
    assert said.startswith("Neighbours ('relation'): the exact number of records for every hour is public, jointly")
    assert "The exact number of records for every hour, jointly, is public" in said


def test_metres_on_a_sphere_hold_inside_the_bounds_and_say_so() -> None:
    map_ = sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(4, 4))
    policy = sf.policy(map_ * MODE, hide=sf.move("5 km", metric="great-circle") | sf.change("mode"))
    assert "Distances are promised inside the bounds" in sf.plan(policy, sf.histogram(), epsilon=1).guarantee.describe()
    assert "Distances are promised" not in sf.plan(APART, sf.histogram(), epsilon=1).guarantee.describe()


def test_identity_pays_for_a_move_alone() -> None:
    plan = sf.plan(APART, sf.histogram(), epsilon=1, mechanism="identity")
    assert plan.mechanism.model.blocks[0].noise == DiscreteLaplace(plan.epsilon / 2)


def test_edges_of_one_factor_do_not_pay_for_the_others() -> None:
    """A change of the mode crosses one edge, a move at most one along each side of a cell: they never come together."""
    alone = sf.plan(APART, sf.histogram(), epsilon=1, mechanism="edges").mechanism
    assert [float(block.noise.scale) for block in alone.model.blocks] == [2.0, 2.0, 1.0]
    together = sf.policy(SPACE, hide=sf.move(0.2) & sf.change("mode"), public=["hour"])
    paid = sf.plan(together, sf.histogram(), epsilon=1, mechanism="edges").mechanism
    assert [float(block.noise.scale) for block in paid.model.blocks] == [3.0, 3.0, 3.0]
    assert alone.privacy_loss == paid.privacy_loss == 1


def test_a_release_of_a_product_is_saved_loaded_and_refined(tmp_path) -> None:
    vault = sf.Vault(tmp_path / "vault", key=tmp_path / "key")
    plan = sf.plan(APART, sf.histogram(), epsilon=1, mechanism="identity")
    release = plan.publish(COUNTS, vault=vault)
    finer = release.refine(epsilon=3, vault=vault)
    release.save(tmp_path / "visits.sfumato")
    loaded = sf.load(tmp_path / "visits.sfumato")
    assert loaded.guarantee == release.guarantee
    assert (loaded.counts == release.counts).all()
    for one in (loaded, finer):
        assert (one.counts.sum(axis=(0, 1, 3)) == COUNTS.sum(axis=(0, 1, 3))).all()


@pytest.mark.parametrize("mechanism", ["identity", "haar", "edges"])
def test_an_audit_of_a_product_finds_what_is_promised(mechanism: str) -> None:
    plan = sf.plan(APART, sf.histogram(), epsilon=1, mechanism=mechanism)
    result = sf.audit(plan, method="exact")
    assert result.passed
    assert result.epsilon <= 1


def test_a_policy_in_parts_is_not_for_strategies_on_cells() -> None:
    islands = sf.graph(sf.Line(0, 4, cells=4), edges=[(0, 1), (2, 3)], publish_component_totals=True)
    with pytest.raises(sf.InvalidInput, match="needs a connected policy"):
        sf.plan(islands, sf.histogram(), epsilon=1, mechanism="identity")


@pytest.mark.parametrize("mechanism", ["identity", "hierarchy", "greedy", "edges"])
def test_a_public_factor_of_one_cell_is_published_like_the_total(mechanism):
    space = sf.Categories(["bus"], name="mode") * sf.Line(0, 1, cells=3, name="place")
    policy = sf.policy(space, hide=sf.move(0.1), public=["mode"])
    release = sf.plan(policy, sf.histogram(), epsilon=1, mechanism=mechanism).publish(np.array([[3, 0, 5]]))
    assert release.counts.sum() == release.total == 8
