"""The theorem of `shifts` by finite sums, and cheapest changes against a search."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.auditing.exact.shifts import Solver

ONE = Fraction(1)


def true_loss(matrix, rates, change, reach, support):
    """The largest log-ratio of P[D·η = y] and P[D·η = y + d] over |y| ≤ reach, by summing over |η_j| ≤ support."""
    etas = np.array(list(itertools.product(range(-support, support + 1), repeat=matrix.shape[1])))
    weights = np.exp(-np.abs(etas) @ np.array([float(rate) for rate in rates]))
    sums = {}
    for y, weight in zip(map(tuple, (etas @ matrix.T).tolist()), weights.tolist(), strict=True):
        sums[y] = sums.get(y, 0.0) + weight
    worst = 0.0
    for y in itertools.product(range(-reach, reach + 1), repeat=matrix.shape[0]):
        other = tuple(int(a + b) for a, b in zip(y, change, strict=True))
        if y in sums and other in sums:
            worst = max(worst, abs(math.log(sums[y] / sums[other])))
    return worst


@pytest.mark.parametrize(
    ("rates", "change"),
    [((1, 1, 1), (1, -1, 0)), ((1, Fraction(3, 4), Fraction(3, 4)), (1, -1, 0)), ((2, 1, 1), (1, 0, -1))],
    ids=str,
)
def test_the_loss_on_a_cycle_is_the_cheapest_flow(rates, change):
    """Three cells in a ring, the noise of three edges, two-dimensional reports: sums over η within ±16, what is cut off
    is below e⁻⁸. The largest ratio in reach lies at or below the cheapest flow, and within 2 % of it.
    """
    ring = np.array([[1, 0, -1], [-1, 1, 0], [0, -1, 1]])
    shift = Solver(ring, tuple(map(Fraction, rates))).cheapest(np.array(change))
    assert shift.tight
    found = true_loss(ring, rates, change, reach=6, support=16)
    assert found <= float(shift.cost) + 1e-3
    assert found >= 0.98 * float(shift.cost)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(0, 10**6))
def test_the_cheapest_integer_change_is_that_of_a_search(rows, cols, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-1, 2, (rows, cols))
    rates = tuple(Fraction(int(rate)) for rate in rng.integers(1, 4, cols))
    change = matrix @ rng.integers(-1, 2, cols)
    best = min(
        (
            sum(abs(part) * rate for part, rate in zip(c, rates, strict=True))
            for c in itertools.product(range(-3, 4), repeat=cols)
            if np.array_equal(matrix @ np.array(c), change)
        ),
    )
    assert Solver(matrix, rates).cheapest(change).cost == best


def test_what_no_integer_noise_makes_up_for_is_infinite():
    twice = Solver(np.array([[2, 0], [0, 2]]), (ONE, ONE))
    assert twice.injective
    assert twice.cheapest(np.array([2, 0])).cost == 1
    assert twice.cheapest(np.array([1, 0])).cost == math.inf
    either = Solver(np.array([[2, 4]]), (ONE, ONE))  # not injective, and even all the same
    assert not either.injective
    assert (either.cheapest(np.array([4])).cost, either.cheapest(np.array([3])).cost) == (1, math.inf)
