"""Hats over the edges of grid lines: an estimator that is exact in integers, and less error than nested blocks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_oracle import box

import sfumato as sf
from sfumato.linear import Hats
from sfumato.mechanism import build
from sfumato.mechanism.cells.hat_tuning import best_hats

SMALL = Fraction(1, 1000)


@settings(deadline=None)
@given(
    n=st.integers(10, 60),
    weights=st.lists(st.integers(1, 200), min_size=2, max_size=3),
    seed=st.integers(0, 999),
    size=st.sampled_from([3, 10**3, 10**6]),
    bits=st.sampled_from([0, 5, 20]),
)
def test_least_squares_on_hats_is_equivariant_in_integers(n, weights, seed, size, bits):
    """A·z added to the noise adds z, to the last bit: whether the numbers have bits behind the point yet or not."""
    hats = Hats(n, (4, 2)[: len(weights) - 1], weights)
    rng = np.random.default_rng(seed)
    noise, z = rng.integers(-size, size, (2, hats.rows)), rng.integers(-size, size, (2, n))
    found, behind = hats.solved(noise, bits)
    moved, same = hats.solved(noise + hats.forward(z), bits)
    assert behind == same == (bits or hats.fraction_bits)
    assert np.array_equal(moved - found, z if bits else z << behind)


def test_the_estimate_of_three_edges_is_least_squares_but_for_its_rounding():
    hats = Hats(20, (5,), (9, 7))
    noise = np.random.default_rng(2).integers(-(10**4), 10**4, hats.rows)
    found, bits = hats.solved(noise, 0)
    assert np.abs(np.ldexp(found.astype(float), -bits) - hats.pinv(noise.astype(float))).max() < 2.0 ** (-bits)


@pytest.mark.parametrize(("n", "most"), [(64, 122.5), (128, 180), (256, 260)])
def test_ranges_under_moves_of_one_cell(n, most):
    """The mean over all ranges is 4·e·(n - 1)/(n + 1), e being that of the hats on a line."""
    grid = box((n, n))
    plan = sf.plan(sf.threshold(grid, 1), sf.ranges(), 1)
    assert plan.mechanism.name == "edge-hats"
    assert plan.expected_error <= most
    small = build("edge-hats", sf.threshold(grid, 1), SMALL)
    widths, weights = (tuple(small.options[name][0]) for name in ("widths", "weights"))
    line = build("hats", sf.unbounded(box((n,))), SMALL, widths=widths, weights=weights)
    e = line.model.expected_error(sf.ranges(), line.policy.domain)
    assert small.model.expected_error(sf.ranges(), grid) == pytest.approx(4 * e * (n - 1) / (n + 1), rel=1e-6)
    assert widths == best_hats(n, False)[0]


def test_noise_that_would_not_fit_is_refused():
    grid = box((64, 64))
    with pytest.raises(sf.InvalidInput, match="needs noise beyond what 64-bit fixed point holds"):
        build("edge-hats", sf.threshold(grid, 1), Fraction(1, 2**40))


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        (sf.threshold(box((9,)), 1), {}, "mechanism='edge-hats' is for grids; on a line use mechanism='edges'."),
        (sf.threshold(box((9, 9)), 1), {"blocks": [2, 1]}, "mechanism='edge-hats' takes no option blocks."),
        (
            sf.graph(box((2, 2)), [(0, 3), (1, 3), (2, 3)]),
            {},
            "mechanism='edge-hats' on grid lines needs a policy made of moves on a grid.",
        ),
    ],
)
def test_refusals(policy, options, message):
    with pytest.raises(sf.InvalidInput) as refused:
        build("edge-hats", policy, Fraction(1), **options)
    assert str(refused.value) == message
