"""Online budgets: feasible, reproducible, and as good as the paper's algorithm at a thousandth of its work."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from allocation_oracle import keeps_to
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_baselines import even, even_where_it_matters, paper_online, sample

from sfumato.allocation import Bernoulli, Empirical, Markov, OnlineAllocator, Periodic, allocate, draw, total_error
from sfumato.allocation.solver import Present, solve
from sfumato.errors import InvalidInput

HALF = Bernoulli(0.5)


def allocator(**options):
    return OnlineAllocator(**{"distribution": HALF, "window": 4, "epsilon": 1, "samples": 32, **options})


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_the_last_step_takes_all_that_is_left():
    assert allocator(length=3).step([0.25, 0.25], 1.0) == 0.5


def test_a_window_of_one_step_always_gives_everything():
    assert allocator(window=1).run([1, 0, 2]).tolist() == [1, 0, 1]


def test_when_nothing_will_come_the_step_takes_everything():
    assert allocator(distribution=Bernoulli(0)).step([], 1.0) == 1
    assert allocator(distribution=Periodic([1, 0, 0, 0, 0])).step([], 1.0) == 1


def test_a_step_without_weight_or_without_room_gets_nothing():
    assert allocator().step([], 0.0) == 0
    assert allocator().step([0.5, 0.5], 1.0) == 0


def test_with_a_known_future_online_is_offline():
    """One future, certain: the present gets what the optimum gives it."""
    pattern = [1.0, 0, 1, 1, 2, 0, 1, 1]
    found = allocator(distribution=Periodic(pattern), length=8, samples=1, horizon=8).run(pattern)
    assert total_error(pattern, found) == pytest.approx(
        total_error(pattern, allocate(pattern, window=4, epsilon=1)), rel=2e-3
    )


def test_the_present_is_optimal_against_its_futures():
    """The cost of the present and its futures together, searched on a fine grid, is smallest at the solution."""
    futures = HALF.sample(40, 8, step=0, weight=1.0, seed=5).T
    futures = futures[:, futures.any(axis=0)]
    best = solve(futures, np.ones(futures.shape), 4, 2.0, present=Present(weight=1.0, room=1.0)).present

    def cost(share):
        rooms = np.ones(futures.shape)
        rooms[:3] -= share
        return share**-2 + solve(futures, rooms, 4, 2.0).error.mean()

    around = [cost(best + shift) for shift in (-0.02, 0, 0.02)]
    assert around[1] < min(around[0], around[2])


def test_the_same_history_gives_the_same_budget_in_any_object():
    history = [0.3, 0.0, 0.2]
    assert allocator().step(history, 1.0) == allocator().step(history, 1.0)


def test_only_the_last_window_of_the_history_matters_apart_from_its_length():
    assert allocator().step([0.9, 0.1, 0.2, 0.0], 1.0) == allocator().step([0.0, 0.1, 0.2, 0.0], 1.0)


# --- exact windows ----------------------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([0.0, 1.0, 1.0, 0.2, 30.0]), max_size=14),
    st.integers(1, 6),
    st.sampled_from(["1", "0.3", "1/3", "7"]),
    st.sampled_from([HALF, Markov([0, 1], [[0.9, 0.1], [0.3, 0.7]]), Empirical([0, 3, 1, 1]), Periodic([0, 1])]),
)
@settings(deadline=None, max_examples=25)
def test_no_window_exceeds_epsilon(weights, window, epsilon, distribution):
    budgets = allocator(distribution=distribution, window=window, epsilon=epsilon, samples=8).run(weights)
    assert keeps_to(budgets, window, Fraction(epsilon))
    assert (budgets[np.asarray(weights) == 0] == 0).all()


@pytest.mark.parametrize("baseline", [even, even_where_it_matters, sample])
@pytest.mark.parametrize("epsilon", ["1", "0.3", "1/3"])
def test_baselines_keep_to_epsilon(baseline, epsilon):
    for row in baseline(draw(HALF, count=5, length=30), window=7, epsilon=epsilon):
        assert keeps_to(row, 7, Fraction(epsilon))


# --- quality ----------------------------------------------------------------------------------------------------------


def test_it_lies_between_the_optimum_and_even_division():
    weights = draw(HALF, count=12, length=24, seed=1)
    online = total_error(weights, np.array([allocator(length=24).run(w) for w in weights])).mean()
    best = total_error(weights, allocate(weights, window=4, epsilon=1)).mean()
    assert best < online < 16 * weights.sum(axis=1).mean()


@pytest.mark.slow
def test_it_is_within_two_percent_of_the_papers_algorithm():
    """Paired: the same six sequences of sixteen steps. Everything is seeded, so there is no false alarm."""
    weights = draw(HALF, count=6, length=16, seed=11)
    ours = np.array([allocator(length=16, samples=256).run(w) for w in weights])
    theirs = np.array([paper_online(w, HALF, window=4, epsilon=1, samples=60, candidates=40) for w in weights])
    assert total_error(weights, ours).mean() < 1.02 * total_error(weights, theirs).mean()


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "window=0 must be a whole number of at least 1."),
        ({"epsilon": -1}, "epsilon=-1 must be greater than zero. Nothing was drawn or recorded."),
        ({"samples": 0}, "samples=0 must be a whole number of at least 1."),
        ({"horizon": 0}, "horizon=0 must be a whole number of at least 1."),
        ({"length": 1.5}, "length=1.5 must be a whole number of at least 1."),
    ],
)
def test_it_refuses_to_be_built(options, message):
    with pytest.raises(InvalidInput) as refusal:
        allocator(**options)
    assert str(refusal.value) == message


def test_a_history_over_epsilon_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        allocator().step([0.6, 0.6], 1.0)
    assert str(refusal.value) == (
        "history[0:2] sums to 1.2, which exceeds epsilon=1 for a window of 4 steps. Nothing was drawn or recorded. "
        "Correct history, or use a larger epsilon."
    )


def test_the_refusal_counts_steps_from_the_beginning():
    with pytest.raises(InvalidInput, match=r"^history\[8:11\] sums to 1\.2, "):
        allocator().step([0.0] * 9 + [0.6, 0.6], 1.0)


def test_a_negative_weight_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        allocator().step([], -1.0)
    assert str(refusal.value) == "weight=-1.0 must be at least 0. Nothing was drawn or recorded."
