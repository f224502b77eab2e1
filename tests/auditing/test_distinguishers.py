"""Bounds hold as often as they say, and guesses find what tells two samples apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.auditing.statistical.distinguishers import learn, odds_bound, ratio_bound


def test_the_bound_on_a_ratio_holds_as_often_as_it_says():
    """20,000 pairs of binomials at confidence 0.9: wrong at most once in ten, which 6 σ above 10 % would exceed."""
    rng = np.random.default_rng(2)
    first, second = rng.binomial(300, 0.5, 20_000), rng.binomial(300, 0.2, 20_000)
    wrong = sum(ratio_bound(int(a), 300, int(b), 300, 0.9) > math.log(2.5) for a, b in zip(first, second, strict=True))
    assert wrong / 20_000 < 0.1 + 6 * math.sqrt(0.1 * 0.9 / 20_000)
    assert ratio_bound(0, 10, 5, 10, 0.9) == -math.inf
    assert ratio_bound(10, 10, 10, 10, 0.9) < 0


@pytest.mark.parametrize("share", [0.55, 0.75, 0.99])
def test_the_bound_on_guesses_holds_as_often_as_it_says(share):
    """20,000 binomials at confidence 0.9: wrong at most once in ten, which 6 σ above 10 % would exceed."""
    right = np.random.default_rng(2).binomial(300, share, 20_000)
    wrong = sum(odds_bound(int(one), 300, 0.9) > math.log(share / (1 - share)) for one in right)
    assert wrong / 20_000 < 0.1 + 6 * math.sqrt(0.1 * 0.9 / 20_000)
    assert odds_bound(0, 300, 0.9) == -math.inf
    assert math.log(100) < odds_bound(1000, 1000, 0.999) < math.log(1000)


def test_an_event_that_only_one_side_shows_is_learned():
    rng = np.random.default_rng(3)
    before, after = rng.normal(size=(2, 4000, 5))
    before[:, 3] = np.where(rng.random(4000) < 0.2, 7.0, before[:, 3])
    promise, guess = learn(before[:2000], after[:2000], 2000, 0.999)
    assert promise > 2
    assert odds_bound(*guess.count(before[2000:], after[2000:]), 0.999) > 2
    assert "“the first” where e" in guess.describe(list("abcdefgh")[1:])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_guess_reads_both_tails(sign):
    """Laplace noise at rate 1 around ∓1/2: guesses on both sides of 0 are right with odds of e, the whole loss."""
    rng = np.random.default_rng(4)
    tables = [sign * (rng.geometric(1 - math.exp(-1), (2, 20_000)) * [[1], [-1]]).sum(0)[:, None] for _ in range(2)]
    before, after = tables[0] + 0.0, tables[1] + float(sign)
    _, guess = learn(before[:10_000], after[:10_000], 20_000, 0.999)
    right, guesses = guess.count(before[10_000:], after[10_000:])
    assert guesses == 20_000
    assert 0.9 < odds_bound(right, guesses, 0.999) < 1
    relation = ("≤ 0", "≥ 1") if sign > 0 else ("≥ 0", "≤ -1")
    assert guess.describe(["it"]) == f"“the first” where it {relation[0]} and “the second” where it {relation[1]}"
