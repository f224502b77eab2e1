"""Smooth sensitivity of order statistics, against the definition over every dataset of small lattices."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quantile_oracle import datasets, pairs, smooth_sensitivities

from sfumato.errors import InvalidInput
from sfumato.noise import SeededSource
from sfumato.quantiles import OrderLaplace, SmoothSensitivity
from sfumato.quantiles.smooth_bound import FLOOR, MARGIN, smooth_sensitivity


def naive(data, rank, beta, theta, cells):
    """max over k of exp(-βk)·min(θ, A(k)), by its formula."""
    n = len(data)
    padded = [0, *sorted(data), cells - 1]
    found = 0.0
    for i in range(rank + 1):
        for j in range(rank, n + 2):
            if j > i:
                found = max(found, math.exp(-beta * (j - i - 1)) * min(theta, padded[j] - padded[i]))
    return found


def test_by_hand():
    """0 4 5 9 on ten cells, rank 2, steps of 3: A(0) = 4 is cut to 3 and nothing farther can be worth more."""
    assert smooth_sensitivity(np.array([0, 4, 5, 9]), 2, beta=0.5, theta=3, cells=10) == (4, pytest.approx(3))
    value, bound = smooth_sensitivity(np.array([4, 4, 4, 5]), 2, beta=0.5, theta=9, cells=10)
    assert (value, bound) == (4, pytest.approx(max(math.exp(-0.5) * 4, math.exp(-1) * 5, math.exp(-1.5) * 9)))


@pytest.mark.parametrize(("n", "cells"), [(1, 6), (2, 6), (3, 5), (4, 5)])
@pytest.mark.parametrize("beta", [0.05, 0.4, 2.0])
def test_the_bound_is_the_definition_over_all_datasets(n, cells, beta):
    """Even and odd n, ties and borders: local sensitivities k steps away are min(θ, A(k)), neither more nor less."""
    for theta in (1, 2, cells - 1):
        for rank in range(1, n + 1):
            for data, expected in smooth_sensitivities(n, cells, theta, rank, beta).items():
                value, bound = smooth_sensitivity(np.array(data), rank, beta=beta, theta=theta, cells=cells)
                assert value == data[rank - 1]
                assert expected <= bound <= expected * (1 + 1e-10)


@pytest.mark.parametrize("theta", [1, 2, 4])
def test_the_bound_is_smooth_with_its_margin(theta):
    beta = 0.3
    for rank in (1, 2, 3):
        bound = {
            data: smooth_sensitivity(np.array(data), rank, beta=beta, theta=theta, cells=5)[1]
            for data in datasets(3, 5)
        }
        for one, other in pairs(3, 5, theta):
            assert bound[one] <= math.exp(beta + MARGIN) * bound[other]
            assert abs(one[rank - 1] - other[rank - 1]) <= bound[one]


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=300),
    st.floats(1e-4, 3),
    st.sampled_from([1, 50, 20_000, 10**6]),
    st.floats(0, 1),
)
def test_divide_and_conquer_finds_the_largest_pair(data, beta, theta, share):
    """Also where the first look at the nearest points is not enough."""
    rank = 1 + int(share * (len(data) - 1))
    expected = naive(data, rank, beta, theta, 10**6 + 1)
    _, bound = smooth_sensitivity(np.array(data), rank, beta=beta, theta=theta, cells=10**6 + 1)
    assert max(expected, FLOOR * theta) <= bound <= expected * (1 + 1e-10) + 2 * FLOOR * theta


def test_ten_thousand_equal_points_are_no_trouble():
    assert smooth_sensitivity(np.full(10_000, 7), 5000, beta=0.1, theta=9, cells=10) == (7, pytest.approx(9 * FLOOR))
    _, bound = smooth_sensitivity(np.full(10_000, 7), 5000, beta=0.001, theta=9, cells=10)
    assert bound == pytest.approx(7 * math.exp(-0.001 * 4999))  # all points of lower rank moved to the lower border


# --- calibration ------------------------------------------------------------------------------------------------------


def smooth(epsilon=1, slack=0, theta=5, cells=100):
    return SmoothSensitivity(epsilon=Fraction(epsilon), theta=theta, cells=cells, slack=Fraction(slack))


def test_the_two_promises_have_the_two_rates():
    assert smooth(2).beta == pytest.approx(1 - MARGIN)
    assert smooth(2, "1e-9").beta == pytest.approx(math.log1p(1 / math.log(1e9)) - MARGIN)
    assert (smooth().name, smooth(slack="1e-9").name) == ("smooth-pure", "smooth")
    assert smooth(3).alpha == Fraction(3, 2)


@pytest.mark.parametrize("slack", ["1e-2", "1e-9", "1e-400"])
@pytest.mark.parametrize("epsilon", ["1/100", "1", "20"])
def test_a_change_of_scale_and_place_is_hidden(epsilon, slack):
    """The densities of neighbours, at the extremes of scale and place that smoothness allows, over a fine net.

    Laplace: the part of the probability where the ratio exceeds e^ε is at most the slack. Cauchy: there is none."""
    made, pure = smooth(epsilon, slack), smooth(epsilon)
    e = float(Fraction(epsilon))
    for sign in (-1, 1):
        grow = math.exp(sign * (pure.beta + MARGIN))
        z = np.tan(np.linspace(-1.57, 1.57, 20_001))
        for shift in (-1, 0, 1):
            other = (z - shift * float(pure.alpha) * grow) / grow  # local sensitivity over the neighbour's scale is α
            loss = np.log(grow * (1 + other**2) / (1 + z**2))
            assert loss.max() <= e + 1e-9
        grow = math.exp(sign * (made.beta + MARGIN))
        limit = math.log(Fraction(slack).denominator) - math.log(Fraction(slack).numerator)
        z = np.linspace(-limit, limit, 20_001)
        for shift in (-1, 0, 1):
            other = (z - shift * float(made.alpha) * grow) / grow
            assert (np.abs(other) - np.abs(z) + math.log(grow)).max() <= e + 1e-9  # within ±limit: all but the slack


def test_plain_noise_moves_by_one_step_at_most():
    """Every pair of neighbours, every output of the clamped mechanism, by the exact cumulative distribution."""
    n, cells, epsilon = 3, 6, Fraction(1, 2)
    for theta in (1, 2, 5):
        noise = OrderLaplace(epsilon=epsilon, theta=theta, cells=cells).noise
        assert noise.rate == epsilon / theta
        law = np.array([noise.pmf(np.arange(cells) - x) for x in range(cells)])
        law[:, 0] = noise.cdf(-np.arange(cells))  # clamped: all that falls below
        law[:, -1] = noise.cdf(-(cells - 1 - np.arange(cells)))  # and above, by symmetry
        assert np.allclose(law.sum(axis=1), 1)
        for one, other in pairs(n, cells, theta):
            for rank in (1, 2, 3):
                assert (law[one[rank - 1]] / law[other[rank - 1]]).max() <= math.exp(epsilon) * (1 + 1e-12)


def test_a_tenth_less_noise_would_be_seen():
    noise = OrderLaplace(epsilon=Fraction(9, 10), theta=3, cells=100).noise
    assert noise.pmf(0) / noise.pmf(3) == pytest.approx(math.exp(0.9))


# --- refusals and totality --------------------------------------------------------------------------------------------


def test_too_small_an_epsilon_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        smooth("1e-9")
    assert str(refusal.value) == (
        "epsilon=0.000000001 is too small for method='smooth-pure', whose arithmetic has a margin of 1e-09. Nothing "
        "was drawn or recorded. Use method='inverse' or 'laplace'."
    )


def test_a_slack_that_is_no_small_probability_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        smooth(slack="1/2")
    assert str(refusal.value) == (
        "slack=0.5 must be at most 0.01: it is the probability with which the promise may fail. Nothing was drawn or "
        "recorded. The default is 1e-9."
    )


@settings(deadline=None)
@given(st.lists(st.integers(0, 49), min_size=1, max_size=40), st.sampled_from(["1e-6", "1/10", "1", "1e9"]), st.data())
def test_every_dataset_yields_a_cell(values, epsilon, choose):
    rank = choose.draw(st.integers(1, len(values)))
    slack = choose.draw(st.sampled_from(["0", "1e-9"]))
    made = smooth(epsilon, slack, choose.draw(st.integers(1, 49)), 50)
    assert 0 <= made.run(np.array(values), rank, SeededSource(1)) < 50
    assert made.run(np.array(values), rank, SeededSource(1)) == made.run(np.array(values), rank, SeededSource(1))
