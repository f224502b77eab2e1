"""Topping up: budgets only grow, windows hold after every raise, and no sequence ends worse than online."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from allocation_oracle import keeps_to
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.allocation import Bernoulli, OnlineAllocator, TopUpAllocator, allocate, draw, total_error
from sfumato.errors import InvalidInput

HALF = Bernoulli(0.5)


def topup(*, first=0.75, patience=2, **options):
    online = OnlineAllocator(**{"distribution": HALF, "window": 4, "epsilon": 1, "samples": 16, **options})
    return TopUpAllocator(online=online, first=first, patience=patience)


def states(allocator, weights):
    """The budgets after every step and its raises, and the online floor."""
    floor = allocator.online.run(weights).tolist()
    budgets, seen = [], []
    for i in range(1, len(weights) + 1):
        budgets = [*budgets, allocator.step(budgets, weights[:i], floor=floor[:i])]
        seen.append(np.array(budgets))
        budgets = allocator.raises(budgets, weights[:i], floor=floor[:i], ended=i == len(weights)).tolist()
        seen.append(np.array(budgets))
    return seen, np.array(floor)


@given(
    st.lists(st.sampled_from([0.0, 1.0, 1.0, 0.1, 20.0]), min_size=1, max_size=16),
    st.integers(1, 5),
    st.sampled_from(["1", "0.3", "1/3"]),
    st.sampled_from([0.2, 0.75, 1.0]),
    st.integers(1, 2),
)
@settings(deadline=None, max_examples=30)
def test_every_sequence_ends_at_or_below_online_and_every_window_holds_all_along(
    weights, window, epsilon, first, patience
):
    """To 10⁻⁶, the solver's tolerance added up over the steps."""
    seen, floor = states(topup(window=window, epsilon=epsilon, first=first, patience=patience), weights)
    for earlier, later in pairwise(seen):
        assert (later[: len(earlier)] >= earlier).all()
    for budgets in seen:
        assert keeps_to(budgets, window, Fraction(epsilon))
    online, ended = total_error(weights, floor), total_error(weights, seen[-1])
    assert ended <= online * (1 + 1e-6)


def test_room_is_kept_for_what_online_will_commit():
    """A sequence on which plans that use open windows freely end one percent above online."""
    allocator, weights = topup(first=0.2, patience=1, distribution=Bernoulli(0.9)), [1.0] * 9
    ended = total_error(weights, allocator.run(weights))
    assert ended <= total_error(weights, allocator.online.run(weights)) * (1 + 1e-6)


def test_a_step_starts_with_its_part_of_the_online_budget():
    allocator = topup(first=0.5)
    assert allocator.step([], [1.0]) == pytest.approx(allocator.online.step([], 1.0) / 2)


def test_a_step_is_raised_when_it_has_waited():
    allocator = topup(patience=1)
    history, weights = [allocator.step([], [1.0])], [1.0]
    for _ in range(3):
        assert allocator.raises(history, weights)[0] == history[0]
        history, weights = [*history, 0.0], [*weights, 0.0]
    assert allocator.raises(history, weights)[0] > history[0]


def test_at_the_end_everything_is_raised():
    assert topup().raises([0.1, 0.0, 0.1], [1.0, 0.0, 1.0], ended=True) == pytest.approx([0.5, 0, 0.5], rel=1e-3)


def test_full_windows_raise_nothing():
    assert topup().raises([0.5, 0.5], [1.0, 1.0], ended=True).tolist() == [0.5, 0.5]
    assert topup().raises([], [], ended=True).tolist() == []


def test_the_floor_is_recomputed_when_it_is_not_given():
    allocator, weights = topup(), [1.0, 0.0, 1.0]
    floor = allocator.online.run(weights).tolist()
    assert allocator.step([0.1, 0.0], weights) == allocator.step([0.1, 0.0], weights, floor=floor)


@pytest.mark.slow
@pytest.mark.parametrize(("patience", "closed"), [(1, 0.45), (2, 0.9)])
def test_it_closes_the_gap_to_the_optimum(patience, closed):
    """Twelve seeded sequences of 24 steps, window 4, p = ½: half of the gap after one window, nearly all after two."""
    weights = draw(HALF, count=12, length=24, seed=2)
    allocator = topup(patience=patience, samples=64, length=24)
    best = total_error(weights, allocate(weights, window=4, epsilon=1)).mean()
    online = total_error(weights, np.array([allocator.online.run(w) for w in weights])).mean()
    ended = total_error(weights, np.array([allocator.run(w) for w in weights])).mean()
    assert (online - ended) / (online - best) > closed


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (
            lambda: topup(first=0),
            "first=0 must be greater than 0 and at most 1: the part of the online budget that a step gets at once. "
            "Nothing was drawn or recorded.",
        ),
        (lambda: topup(patience=0), "patience=0 must be a whole number of at least 1."),
        (
            lambda: topup().step([0.1], [1.0]),
            "weights of shape (1,) do not go with the history: 2 were expected. Nothing was drawn or recorded. "
            "Give one weight for every step so far.",
        ),
        (
            lambda: topup().raises([0.1], [1.0], floor=[0.1, 0.2]),
            "floor has 2 budgets for 1 steps. Nothing was drawn or recorded. "
            "Give the online budget of every step so far, or leave floor out.",
        ),
        (
            lambda: topup().raises([0.6, 0.6], [1.0, 1.0], floor=[0.1, 0.1]),
            "history[0:2] sums to 1.2, which exceeds epsilon=1 for a window of 4 steps. "
            "Nothing was drawn or recorded. Correct history, or use a larger epsilon.",
        ),
    ],
)
def test_it_refuses(attempt, message):
    with pytest.raises(InvalidInput) as refusal:
        attempt()
    assert str(refusal.value) == message
