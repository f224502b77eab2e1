"""Noise that is centred along an axis where a change leads from any value to any other: sums over it pay nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.linear import Centred, without_mean
from sfumato.mechanism import build, mechanism_from_spec, variants

PLACE = sf.Grid(bounds=(0, 0, 2, 2), shape=(2, 2))
MODE = sf.Categories(["a", "b", "c"], name="mode")
SPACE = PLACE * MODE
ONE = Fraction(1)
RELATIONS = [
    sf.move(0.5) | sf.change("mode"),
    sf.move(0.5) & sf.change("mode"),
    (sf.move(1.5) & sf.change("mode")) | sf.move(0.5),
    sf.move(0.5) | sf.change("mode") | sf.presence(),
    sf.change("place") | sf.change("mode"),
]
NAMES = ["edges", "edge-hierarchy", "edge-hats"]


def test_three_values_by_hand() -> None:
    """Two places, three values: a change of the value moves two noises, whatever the values, and the place none."""
    space = sf.Line(0, 2, cells=2, name="place") * sf.Categories(["a", "b", "c"], name="mode")
    policy = sf.policy(space, hide=sf.move(0.5) | sf.change("mode"))
    mechanism = build("edges", policy, ONE, centred=["mode"])
    assert [block.noise.rate for block in mechanism.model.blocks] == [1, Fraction(1, 2)]
    assert mechanism.privacy_loss == 1 and mechanism.options == {"centred": ["mode"]}
    noise = [np.zeros(3, dtype=np.int64), np.array([3, 0, 0, 0, 0, 6])]
    measured = mechanism.measure(np.zeros(6, dtype=np.int64), noise)
    found = mechanism.estimate(measured, 0).reshape(2, 3)
    assert np.allclose(found, [[2, -1, -1], [-2, -2, 4]], atol=1e-5)
    assert (found.sum(axis=1) == 0).all()
    walk = build("edges", policy, ONE)  # as old files have it: two steps from a to c
    assert walk.options == {} and [block.noise.rate for block in walk.model.blocks] == [1, Fraction(1, 2)]
    assert mechanism.model.expected_error(sf.histogram(), space) < walk.model.expected_error(sf.histogram(), space)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hide", RELATIONS, ids=str)
def test_every_change_is_hidden_and_errors_are_as_said(name: str, hide: sf.Relation) -> None:
    """The audit finds a change of the noise for every edge, checks it to the last bit, and adds up what it costs."""
    policy = sf.policy(SPACE, hide=hide)
    plan = sf.plan(policy, sf.histogram(), epsilon=1, mechanism=name)
    mechanism = plan.mechanism
    assert mechanism.options["centred"] == ["mode"] and mechanism.privacy_loss <= 1
    audit = sf.audit(plan, method="exact")
    assert audit.passed and audit.epsilon <= 1 and audit.method in ("exact", "argument")
    linear = [np.eye(block.estimator.cols) for block in mechanism.model.blocks]
    drawn = [
        np.asarray(block.estimator.forward(eye)) for block, eye in zip(mechanism.model.blocks, linear, strict=True)
    ]
    dense = sum(((d**2).sum(axis=0) * b.noise.variance for d, b in zip(drawn, mechanism.model.blocks, strict=True)))
    assert np.allclose(np.mean(dense), plan.expected_error)
    sizes = [block.estimator.cols for block in mechanism.model.blocks]
    rng = np.random.default_rng(3)
    noise = [rng.integers(-9, 10, size) for size in sizes]
    counts = rng.integers(0, 9, SPACE.size)
    total = int(counts.sum()) if policy.total_is_public else None
    found = mechanism.estimate(mechanism.measure(counts, noise), total) - counts
    said = sum(block.estimator.forward(eta) for block, eta in zip(mechanism.model.blocks, noise, strict=True))
    assert np.allclose(found, said, atol=1e-3)
    again = mechanism_from_spec(mechanism.spec(), policy)
    assert again.spec() == mechanism.spec() and again.model.blocks[-1].noise == mechanism.model.blocks[-1].noise


def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a change costs is counted on what is built: noise for one step where a change moves two is no promise."""
    plan = sf.plan(sf.policy(SPACE, hide=RELATIONS[0]), sf.histogram(), epsilon=1, mechanism="edges")
    rates = {axis: plan.mechanism._rate(axis) for axis in range(3)}
    monkeypatch.setattr(type(plan.mechanism), "_rate", lambda self, axis: rates[axis] * (2 if axis == 2 else 1))
    assert build("edges", plan.policy, ONE, centred=["mode"]).privacy_loss == 2


def test_the_mean_is_taken_off_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    for size in (3, 1_000, 1 << 40):
        flow = rng.integers(-size, size + 1, (5, 7, 4))
        change = rng.integers(-size, size + 1, (5, 7, 4))
        change[:, 0] -= change.sum(axis=1)
        assert not without_mean(flow, 1).sum(axis=1).any()
        assert np.array_equal(without_mean(flow + change, 1), without_mean(flow, 1) + change)
        assert np.abs(without_mean(flow, 1) - (flow - flow.mean(axis=1, keepdims=True))).max() <= 1 + size * 1e-12
    assert np.allclose(Centred(4).dense(), np.eye(4) - 0.25)


def test_a_plan_centres_where_it_pays() -> None:
    """Maps of every mode and of all together, under short moves: no other mechanism has both."""
    space = sf.Grid(bounds=(0, 0, 64, 64), shape=(64, 64)) * sf.Categories(list("abcdef"), name="mode")
    policy = sf.policy(space, hide=sf.move(0.9) | sf.change("mode"))
    asked = sf.ask(place=sf.ranges(), mode=sf.histogram()) + sf.ask(place=sf.ranges())
    plan = sf.plan(policy, asked, epsilon=1)
    assert plan.mechanism.name == "edge-hats" and plan.mechanism.options["centred"] == ["mode"]
    rivals = {other.name: other.error for other in plan.alternatives if other.error}
    assert plan.expected_error < 0.8 * min(error for name, error in rivals.items() if "edge" not in name)


def test_where_nothing_is_centred() -> None:
    two = PLACE * sf.Categories(["a", "b"], name="mode")
    for policy in (
        sf.policy(two, hide=sf.move(0.5) | sf.change("mode")),  # between two values one edge is less
        sf.policy(SPACE, hide=sf.move(0.5), public=["mode"]),
        sf.bounded(SPACE),
        sf.threshold(PLACE, 1),
    ):
        for name, chosen in variants(policy, sf.histogram()):
            assert "centred" not in chosen, name


def test_what_is_not_an_axis_is_refused() -> None:
    policy = sf.policy(SPACE, hide=RELATIONS[0])
    for name in NAMES:
        with pytest.raises(sf.InvalidInput, match="centred names 'mod', which is no axis among several"):
            sf.plan(policy, sf.histogram(), epsilon=1, mechanism=name, centred=["mod"])
        with pytest.raises(sf.InvalidInput, match="centred='mode' must be a list of axes"):
            sf.plan(policy, sf.histogram(), epsilon=1, mechanism=name, centred="mode")
    listed = sf.graph(SPACE, edges=[(i, i + 1) for i in range(SPACE.size - 1)])
    with pytest.raises(sf.InvalidInput, match="centred is for products of moves"):
        sf.plan(listed, sf.histogram(), epsilon=1, mechanism="edges", centred=["mode"])
