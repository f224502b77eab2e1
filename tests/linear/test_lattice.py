"""Least squares over tables, against dense least squares: estimates, what queries feel, and what is known exactly."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear.estimator import box_weights
from sfumato.linear.lattice import Lattice
from sfumato.linear.table_noise import TableNoise

SHAPE = (3, 2, 4)
SETS, WEIGHTS = ((), (0,), (0, 1), (1, 2)), (1, 3, 2, 5)
TOLD = [(), (0,), (1,), (2,), (0, 1), (1, 2)]
KNOWN = {"nothing": None, "the total": frozenset(), "a table": frozenset({2})}
HEAVY = 1e6  # the weight of what is known, in the dense fit


def summing(axes):
    """The matrix of a table."""
    sides = [np.eye(n) if i in axes else np.ones((1, n)) for i, n in enumerate(SHAPE)]
    return reduce(np.kron, sides)


def dense(known, axes):
    """From the noise to a table, by the pseudo-inverse of everything written out."""
    measured = np.concatenate([w * summing(s) for s, w in zip(SETS, WEIGHTS, strict=True)])
    exact = np.zeros((0, 24)) if known is None else HEAVY * summing(tuple(sorted(known)))
    inverse = np.linalg.pinv(np.concatenate([measured, exact]), rcond=1e-13)
    return (summing(axes) @ inverse)[:, : len(measured)]


@pytest.mark.parametrize("axes", TOLD)
@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_the_estimate_is_that_of_dense_least_squares(known, axes):
    noise = TableNoise(Lattice(SHAPE, SETS, WEIGHTS, known), axes)
    matrix = noise.forward(np.eye(noise.cols)).T
    assert matrix == pytest.approx(dense(known, axes), abs=1e-6)
    q = np.random.default_rng(0).normal(size=(5, noise.rows))
    assert noise.transpose(q) == pytest.approx(q @ matrix)


@pytest.mark.parametrize("axes", TOLD[1:])
@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_boxes_feel_what_their_weights_say(known, axes):
    noise = TableNoise(Lattice(SHAPE, SETS, WEIGHTS, known), axes)
    matrix = noise.forward(np.eye(noise.cols)).T
    shape = tuple(SHAPE[i] for i in axes)
    rng = np.random.default_rng(1)
    low = rng.uniform(0, 1, (30, len(axes))) * shape
    high = low + rng.uniform(0, 1, (30, len(axes))) * (np.array(shape) - low)
    low[:10], high[:10] = np.floor(low[:10]), np.ceil(high[:10])
    low[10], high[10] = 0.3, 0.6  # within one cell
    felt = box_weights(shape, low, high) @ matrix
    second, fourth = noise.box_moments(shape, low, high)
    assert second == pytest.approx((felt**2).sum(axis=1), abs=1e-12)
    assert fourth == pytest.approx((felt**4).sum(axis=1), abs=1e-12)
    assert np.abs(felt).max() <= noise.largest_coefficient * (1 + 1e-12)
    terms, often = noise.box_terms(shape, low, high)
    for row, counted, coefficients in zip(terms, often, felt, strict=True):
        listed = np.repeat(row[counted > 0], counted[counted > 0].astype(int))
        assert np.sort(listed) == pytest.approx(np.sort(coefficients), abs=1e-12)


@pytest.mark.parametrize("axes", TOLD[1:])
def test_cells_taken_together_are_a_row(axes):
    noise = TableNoise(Lattice(SHAPE, SETS, WEIGHTS), axes)
    for at, axis in [(at, axis) for at, axis in enumerate(axes) if SHAPE[axis] > 2]:
        cells = np.array([0, SHAPE[axis] - 1])
        of = np.ones(SHAPE[axis], dtype=np.int64)
        of[cells] = 0
        both = noise.grouped(at, of)
        shape = tuple(2 if i == at else SHAPE[axes[i]] for i in range(len(axes)))
        low, high = np.zeros((1, len(axes))), np.array([[1.0 if i == at else n for i, n in enumerate(shape)]])
        matrix = both.forward(np.eye(both.cols)).T
        felt = box_weights(shape, low, high) @ matrix
        assert both.transpose(box_weights(shape, low, high)) == pytest.approx(felt)
        assert both.box_moments(shape, low, high)[0] == pytest.approx((felt**2).sum(axis=1))
        plain = noise.forward(np.eye(noise.cols)).reshape(-1, *(SHAPE[i] for i in axes))
        kept = np.take(plain, sorted(set(cells.tolist())), axis=1 + at).reshape(len(plain), -1).sum(axis=1)
        assert felt[0] == pytest.approx(kept)


def test_mean_variances_are_those_of_the_listed_queries():
    space = sf.Line(0, 3, cells=3, name="a") * sf.Line(0, 2, cells=2, name="b") * sf.Line(0, 4, cells=4, name="c")
    asked = sf.ask(a=sf.ranges(), b=sf.histogram()) + 2 * sf.marginals("c") + sf.ask(c=sf.prefixes()) + sf.ask()
    asked = asked + sf.ask(a=sf.ranges([(0.5, 2.5), (1, 2)])) + sf.ask(b=sf.levels(), c=sf.scales())
    for known in KNOWN.values():
        lattice = Lattice(SHAPE, SETS, WEIGHTS, known)
        whole = TableNoise(lattice, (0, 1, 2))
        full = {axes: dense(known, axes) for axes in TOLD}
        for _, part in asked.shares(space):
            axes = part.kept(SHAPE)
            gram = part.along(axes).gram(tuple(SHAPE[i] for i in axes)) if axes else np.ones((1, 1))
            want = float(np.einsum("ij,ik,kj->", full[axes], gram, full[axes]))
            assert whole.mean_square(part.kinds, SHAPE) == pytest.approx(want, abs=1e-6), part
    assert TableNoise(lattice, (0, 1, 2)).mean_square(sf.histogram().parts(space)[0].kinds, SHAPE) == np.inf


def test_what_no_table_tells_is_refused():
    noise = TableNoise(Lattice(SHAPE, SETS, WEIGHTS), (0, 2))
    for call in (lambda: noise.forward(np.zeros(noise.cols)), lambda: noise.transpose(np.zeros(noise.rows))):
        with pytest.raises(InvalidInput, match="no such table tells what is asked"):
            call()
    with pytest.raises(TooLarge, match="more than 65,536 parts"):
        Lattice((2,) * 17, (tuple(range(17)),), (1,))
