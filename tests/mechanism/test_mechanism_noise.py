"""Measured errors are those that were promised: what is drawn, carried to the counts and averaged over all ranges.

RUNS releases of an empty dataset; the mean squared error over *all* ranges of each is one number, from the Gram matrix.
Their mean must lie within five of its own standard errors of the expected error: a false alarm in 1.7 million for a
normal mean. The seed is fixed, so a run that passes passes always. The sample is large enough when five standard
errors are less than 3 % of the expected error, which is asserted, so noise 10 % too small or too large (a variance
some 20 % off) is rejected, which is asserted too.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from mechanism_oracle import box

import sfumato as sf
from sfumato.mechanism import build
from sfumato.noise import SeededSource
from sfumato.workload import RANGES, ranges

SIGMAS = 5
TOLERANCE = 0.03
ONE_BY_ONE = 200
ROUNDED = {
    "edge-hierarchy",
    "edge-hats",
    "diagonal-hats",
}  # integers throughout: near what the model carries, and not the same
CASES = [
    ("edges", (32, 32), 1_000),
    ("edge-haar", (32, 32), 1_000),
    ("edge-hierarchy", (32, 32), 1_000),
    ("edge-hats", (32, 32), 1_000),
    ("diagonal-hats", (32, 32), 1_000),
    ("identity", (32, 32), 6_000),
    ("hierarchy", (32, 32), 6_000),
    ("hat-products", (32, 32), 6_000),
    ("edges", (128,), 12_000),
    ("prefix", (128,), 12_000),
    ("identity", (128,), 40_000),
    ("haar", (128,), 40_000),
    ("hierarchy", (128,), 40_000),
    ("hats", (128,), 40_000),
]


def mean_squares(errors, shape):
    """The mean over all ranges of the squared error of every run (a row each)."""
    grams = []
    for n in shape:
        u, v = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
        grams.append(RANGES.together(n, u, v))
    pushed = errors.reshape(-1, *shape)
    for axis, gram in enumerate(grams):
        pushed = np.moveaxis(np.tensordot(pushed, gram, axes=(1 + axis, 0)), -1, 1 + axis)
    return (pushed.reshape(len(errors), -1) * errors).sum(axis=1)


def carried(mechanism, noise):
    """What the noise of many runs (a row each) adds to the counts: all of them at once, by the model's operators."""
    moved = sum(b.estimator.forward(eta.astype(float)) for b, eta in zip(mechanism.model.blocks, noise, strict=True))
    if not mechanism.model.centred:
        return moved
    shares = reduce(np.multiply.outer, mechanism.model.total_shares[0]).ravel()
    return moved - np.multiply.outer(moved.sum(axis=1), shares / shares.sum())


def measured(mechanism, runs, seed):
    """(mean, its standard error) of the error over all ranges. Runs are made one by one, as a release is, measured and
    then estimated; where all of them can be had at once, as the first ones show, the others are.
    """
    source = SeededSource(seed)
    blocks, counts = mechanism.model.blocks, np.zeros(mechanism.policy.domain.size, dtype=np.int64)
    noise = [block.noise.sample((runs, block.estimator.cols), source) for block in blocks]
    total = 0 if mechanism.policy.total_is_public else None
    alone = runs if mechanism.name in ROUNDED else ONE_BY_ONE
    made = zip(*(eta[:alone] for eta in noise), strict=True)
    errors = np.array([mechanism.estimate(mechanism.measure(counts, list(eta)), total) for eta in made])
    if mechanism.name not in ROUNDED:
        first, errors = errors, carried(mechanism, noise)
        assert np.allclose(first, errors[:ONE_BY_ONE], rtol=1e-9, atol=1e-9)
    found = mean_squares(errors, mechanism.policy.domain.shape)
    return found.mean(), found.std(ddof=1) / np.sqrt(runs)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape", "runs"), CASES, ids=lambda value: str(value))
def test_measured_errors_are_the_expected_ones(name, shape, runs):
    policy = sf.threshold(box(shape), 1)
    mechanism = build(name, policy, Fraction(1))
    expected = mechanism.model.expected_error(ranges(), policy.domain)
    mean, error = measured(mechanism, runs, seed=1)
    assert SIGMAS * error <= TOLERANCE * expected, error / expected
    assert abs(mean - expected) <= SIGMAS * error


@pytest.mark.slow
@pytest.mark.parametrize("factor", ["10/11", "10/9"], ids=["10 % more noise", "10 % less noise"])
@pytest.mark.parametrize(("name", "shape", "runs"), CASES[:6], ids=lambda value: str(value))
def test_noise_that_is_a_tenth_off_is_rejected(name, shape, runs, factor):
    policy = sf.threshold(box(shape), 1)
    expected = build(name, policy, Fraction(1)).model.expected_error(ranges(), policy.domain)
    mean, error = measured(build(name, policy, Fraction(factor)), runs // 2, seed=2)
    assert abs(mean - expected) > SIGMAS * error
