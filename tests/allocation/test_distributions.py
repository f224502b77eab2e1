"""Distributions of weights: reproducible, of the right frequencies, and following on from the present."""

from __future__ import annotations

import pytest

from sfumato.allocation import Bernoulli, Empirical, Markov, Periodic, draw
from sfumato.errors import InvalidInput

BURSTS = Markov([0, 1], [[0.9, 0.1], [0.3, 0.7]])
ALL = [Bernoulli(0.5), Periodic([1, 0, 2]), BURSTS, Empirical([0, 0, 1, 1, 3])]


@pytest.mark.parametrize("distribution", ALL, ids=lambda d: type(d).__name__)
def test_the_same_public_numbers_give_the_same_futures(distribution):
    first = distribution.sample(20, 9, step=4, weight=1.0, seed=1)
    assert first.shape == (20, 9)
    assert (first == distribution.sample(20, 9, step=4, weight=1.0, seed=1)).all()
    assert draw(distribution, count=3, length=7).shape == (3, 7)
    assert distribution.sample(5, 0, step=4, weight=1.0, seed=1).shape == (5, 0)


def test_other_steps_and_seeds_give_other_futures():
    base = Bernoulli(0.5).sample(20, 9, step=4, weight=1.0, seed=1)
    assert (base != Bernoulli(0.5).sample(20, 9, step=5, weight=1.0, seed=1)).any()
    assert (base != Bernoulli(0.5).sample(20, 9, step=4, weight=1.0, seed=2)).any()


def test_bernoulli_publishes_at_its_rate():
    """200,000 coins: five and a half standard deviations of the mean are 0.0054."""
    assert abs(draw(Bernoulli(0.25), count=200, length=1000).mean() - 0.25) < 0.0054


def test_periodic_goes_on_where_the_pattern_is():
    assert Periodic([1, 0, 2]).sample(1, 5, step=3, weight=1.0, seed=0).tolist() == [[0, 2, 1, 0, 2]]
    assert draw(Periodic([1, 0, 2]), count=1, length=4).tolist() == [[1, 0, 2, 1]]


def test_markov_follows_its_transitions():
    """20,000 first steps from each level: six standard deviations are at most 0.02."""
    for weight, chance in ((0.0, 0.1), (1.0, 0.7), (0.8, 0.7)):
        after = BURSTS.sample(20_000, 2, step=0, weight=weight, seed=3)
        assert abs(after[:, 0].mean() - chance) < 0.02
    assert BURSTS.frequencies() == pytest.approx([0.75, 0.25])
    assert abs(draw(BURSTS, count=20_000, length=2).mean(axis=0) - 0.25).max() < 0.02


def test_empirical_keeps_the_runs_of_the_record():
    futures = Empirical([0, 0, 0, 5, 5]).sample(50, 5, step=0, weight=5.0, seed=0)
    assert {tuple(row) for row in futures.tolist()} == {(5, 0, 0, 0, 5), (0, 0, 0, 5, 5)}
    assert Empirical([2.0]).sample(1, 3, step=0, weight=0.0, seed=0).tolist() == [[2, 2, 2]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Bernoulli(1.5), "p=1.5 must be a probability from 0 to 1. Nothing was drawn or recorded."),
        (lambda: Bernoulli(float("nan")), "p=nan is not a finite number."),
        (lambda: Periodic([]), "pattern is empty. Nothing was drawn or recorded. Give at least one weight."),
        (
            lambda: Empirical([1, -1]),
            "record=[1.0, -1.0] must not hold negative weights. Nothing was drawn or recorded.",
        ),
        (lambda: Markov([0, 1], [[1, 0]]), "transition must have 2 rows of 2, one for each level."),
        (
            lambda: Markov([0, 1], [[1, 0], [0.5, 0.6]]),
            "transition[1]=[0.5, 0.6] must be probabilities that sum to 1.",
        ),
        (lambda: draw(Bernoulli(0.5), count=0, length=1), "count=0 must be a whole number of at least 1."),
    ],
)
def test_they_refuse(build, message):
    with pytest.raises(InvalidInput) as refusal:
        build()
    assert str(refusal.value) == message
