"""What a known total takes off a variance: against the same range centred cell by cell before anything is squared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np
import pytest

import sfumato as sf
from sfumato.linear import Coarse, Hats, Hierarchy, Identity, Kronecker, PseudoInverse
from sfumato.linear.operator import range_weights
from sfumato.mechanism import Block, NoiseModel
from sfumato.noise import DiscreteLaplace
from sfumato.release.intervals import cell_deviations, cell_margins, query_margins, range_margins

SHAPES = [(4096,), (64, 64), (256, 256), (512, 512), (1024, 1024), (16, 16, 16), (64, 64, 64), (8, 8, 8, 8), (16,) * 4]


def box(shape: tuple[int, ...]) -> sf.Domain:
    return sf.Domain(tuple(sf.Interval(f"x{i}", 0, 1, n) for i, n in enumerate(shape)))


def centred(model: NoiseModel, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The standard errors of boxes, from all coefficients: nothing is squared before it is centred."""
    found = []
    for a, b in zip(low, high, strict=True):
        along = [range_weights(n, x, y) for n, x, y in zip(model.shape, a, b, strict=True)]
        q = reduce(np.multiply.outer, along).ravel()[None]
        pairs = zip(model.coefficients(q), model.blocks, strict=True)
        found.append(sum(block.noise.variance * float((c**2).sum()) for c, block in pairs) ** 0.5)
    return np.array(found)


def boxes(shape: tuple[int, ...]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """From one cell to all but a ten-millionth of one, on every side."""
    whole, first = np.array(shape, dtype=float), np.eye(len(shape))[0]
    for side in (1, 2, 4, 7):
        yield np.floor(whole / 2), np.minimum(np.floor(whole / 2) + side, whole)
    yield np.floor(whole / 2) - 2, np.floor(3 * whole / 4)
    yield 0 * whole, np.where(first, 1, whole)
    yield first, whole
    for least in (1.0, 0.1, 1e-3, 1e-7):
        yield 0 * whole, whole - least * first
        yield 0 * whole + least, whole
        yield 0 * whole + least, whole - 0.5 * least


@pytest.mark.slow  # dense matrices
@pytest.mark.parametrize("name", ["hats", "hierarchy", "haar", "identity"])
@pytest.mark.parametrize("shape", SHAPES)
def test_standard_errors_under_a_public_total_are_those_of_the_dense_oracle(shape: tuple[int, ...], name: str) -> None:
    try:
        model = sf.plan(sf.bounded(box(shape)), sf.ranges(), 1, mechanism=name).mechanism.model
    except sf.InvalidInput:
        pytest.skip("lines this short have no hats")
    low, high = (np.array(ends) for ends in zip(*boxes(shape), strict=True))
    few = slice(None, None, 3 if np.prod(shape) > 1 << 17 else 1)
    deviation, margin = range_margins(model, low[few], high[few], 0.95)
    assert deviation == pytest.approx(centred(model, low[few], high[few]), rel=1e-6)
    assert (margin > 0.4 * deviation).all()
    nothing = range_margins(model, 0 * low[:1], 0 * low[:1] + shape, 0.95)
    assert [part.tolist() for part in nothing] == [[0.0], [0.0]]


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((64, 64), "hat-products"),
        ((64, 64), "hats"),
        ((256, 256), "hats"),
        ((512, 512), "hats"),
        ((1024, 1024), "hats"),
    ],
)
def test_no_cell_of_a_default_plan_has_an_interval_of_zero_width(shape: tuple[int, ...], name: str) -> None:
    """Once the standard error of every one with hats was zero."""
    plan = sf.plan(sf.bounded(box(shape)), sf.ranges(), 1)
    assert plan.mechanism.name == ("hat-products" if shape == (64, 64) else "hats")
    if plan.mechanism.name != name:
        plan = sf.plan(sf.bounded(box(shape)), sf.ranges(), 1, mechanism=name)
    deviation, margin = cell_margins(plan.mechanism.model, 0.95)
    assert deviation.min() > 2 and (margin > 1.9 * deviation).all()
    places = np.random.default_rng(1).integers(0, shape, (3, 2)).astype(float)
    oracle = centred(plan.mechanism.model, places, places + 1)
    assert deviation[tuple(places.astype(int).T)] == pytest.approx(oracle, rel=1e-9)


@pytest.mark.parametrize("name", ["hats", "hierarchy", "haar", "identity", "greedy"])
def test_what_lies_outside_a_range_is_known_as_well_as_what_lies_inside(name: str) -> None:
    """The complement under a public total, as a query and, where it is a range, as a range."""
    model = sf.plan(sf.bounded(box((12,))), sf.ranges(), 1, mechanism=name).mechanism.model
    low, high = np.array([[0.0], [0.0], [0.0], [0.0]]), np.array([[1.0], [5.0], [11.0], [11.875]])
    inside, outside = range_margins(model, low, high, 0.9), range_margins(model, high, low + 12, 0.9)
    assert inside[0] == pytest.approx(outside[0], rel=1e-9)
    assert inside[1] == pytest.approx(outside[1], rel=0.02)
    q = np.stack([range_weights(12, a, b)[0] for a, b in zip(low, high, strict=True)])
    for part, rest in zip(query_margins(model, q, 0.9), query_margins(model, 3 - q, 0.9), strict=True):
        assert part == pytest.approx(rest, rel=1e-6)


@pytest.mark.parametrize("constant", [1.0, 0.1, -7.0, 1e-9, 1e12])
def test_every_multiple_of_the_total_is_known_exactly_and_nothing_else_is(constant: float) -> None:
    model = sf.plan(sf.bounded(box((40, 40))), sf.ranges(), 1, mechanism="hats").mechanism.model
    q = np.full((2, 1600), constant)
    q[1, 3] *= 1.001
    deviation, margin = query_margins(model, q, 0.95)
    assert deviation[0] == margin[0] == 0
    assert deviation[1] == pytest.approx(abs(constant) * 1e-3 * cell_margins(model, 0.95)[0].ravel()[3], rel=1e-3)
    assert margin[1] > 1.9 * deviation[1]


@pytest.mark.parametrize("weight", [1, 50, 65536])
def test_heavy_strategies_tell_their_cells_apart(weight: int) -> None:
    """Moments of 10⁻¹⁰ and less are rounded beside the largest of them, not to so many places."""
    strategy = Hierarchy(30, (7, 1), (weight, weight))
    estimator = Kronecker([PseudoInverse(strategy), PseudoInverse(Hats(30, (5,), (weight, weight)))])
    for known in (True, False):
        model = NoiseModel((30, 30), (Block(estimator, DiscreteLaplace(1)),), centred=known)  # type: ignore[arg-type]
        deviation, _ = cell_margins(model, 0.95)
        assert deviation == pytest.approx(cell_deviations(model), rel=1e-6)


def test_errors_of_a_plan_are_the_means_of_its_standard_errors() -> None:
    """All ranges of a small grid, one by one."""
    shape = (7, 6)
    ends = [np.array([(a, b) for a in range(n) for b in range(a + 1, n + 1)], dtype=float) for n in shape]
    pairs = np.array([(x, y) for x in ends[0] for y in ends[1]])
    for name in ("hats", "hierarchy", "haar", "identity"):
        plan = sf.plan(sf.bounded(box(shape)), sf.ranges(), 1, mechanism=name)
        deviation, _ = range_margins(plan.mechanism.model, pairs[:, :, 0], pairs[:, :, 1], None)
        assert plan.expected_error == pytest.approx((deviation**2).mean(), rel=1e-9)


def test_one_bin_under_a_known_total_has_no_noise() -> None:
    """Not a little of it, from rounding: whatever the range."""
    bins = Coarse(Identity(1), np.array([0, 1000]), 0.1)
    model = NoiseModel((1000,), (Block(Kronecker([bins]), DiscreteLaplace(1)),), centred=True)  # type: ignore[arg-type]
    ends = np.sort(np.random.default_rng(3).uniform(0, 1000, (50, 2)), axis=1)
    assert (range_margins(model, ends[:, :1], ends[:, 1:], None)[0] == 0).all()
