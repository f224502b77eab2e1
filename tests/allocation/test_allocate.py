"""The offline optimum: by hand, against a general solver, by its own certificate, and exact in every window."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from allocation_oracle import binary, decimal, general_optimum, keeps_to
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.allocation import allocate, total_error
from sfumato.allocation.bands import spread, window_sums
from sfumato.allocation.solver import solve
from sfumato.errors import InvalidInput

EPSILONS = st.sampled_from(["1", "0.1", "0.3", "1/3", "1e-7", "5", "8", "0.7", "12345.678"])
WEIGHTS = st.lists(st.sampled_from([0.0, 0.0, 1.0, 1.0, 0.3, 7.0, 1e-4, 1e5]), max_size=24)

# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_lone_step_gets_everything():
    assert allocate([0, 0, 1, 0, 0], window=3, epsilon=0.5).tolist() == [0, 0, 0.5, 0, 0]
    assert allocate([0, 0, 1, 0, 0], window=3, epsilon=0.3) == pytest.approx([0, 0, 0.3, 0, 0], rel=1e-15)


def test_equal_weights_that_fill_one_window_share_it_evenly():
    assert allocate([1, 1, 1, 1], window=4, epsilon=1) == pytest.approx([0.25] * 4, rel=1e-4)


def test_fewer_steps_than_the_window_are_one_window():
    assert allocate([1, 1], window=7, epsilon=1) == pytest.approx([0.5, 0.5], rel=1e-4)


def test_a_window_of_one_step_gives_every_step_everything():
    assert allocate([1, 2, 0, 3], window=1, epsilon=0.25).tolist() == [0.25, 0.25, 0, 0.25]


def test_within_one_window_budgets_go_with_the_cube_root_of_the_weight():
    budgets = allocate([1, 8], window=2, epsilon=3)
    assert budgets == pytest.approx([1, 2], rel=1e-4)


def test_the_first_window_counts():
    """The paper's sum starts at k = 1 and would leave the first step free."""
    budgets = allocate([1, 1, 1], window=2, epsilon=1)
    assert budgets[0] + budgets[1] <= 1


def test_committed_steps_stay_and_the_rest_takes_what_they_leave():
    budgets = allocate([1, 0, 1, 1, 0, 0, 1], window=4, epsilon=1, committed=[0.5, 0, 0.25])
    assert budgets[:3].tolist() == [0.5, 0, 0.25]
    assert budgets[3] == pytest.approx(0.25, rel=1e-4)
    assert budgets[6] == pytest.approx(0.75, rel=1e-4)


def test_a_step_that_finds_its_window_full_gets_nothing_and_the_others_go_on():
    budgets = allocate([1, 1, 1, 1], window=3, epsilon=1, committed=[0.5, 0.5])
    assert budgets[2] == 0
    assert budgets[3] == pytest.approx(0.5, rel=1e-6)


def test_nothing_to_publish_spends_nothing():
    assert allocate([0, 0, 0], window=2, epsilon=1).tolist() == [0, 0, 0]
    assert allocate([], window=2, epsilon=1).tolist() == []


def test_total_error_is_infinite_without_budget():
    assert total_error([1, 0], [0.5, 0]) == 4
    assert total_error([1, 1], [0.5, 0]) == np.inf


# --- optimality -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("window", [2, 3, 5])
def test_it_matches_a_general_solver(window, power):
    weights = np.random.default_rng([window, int(10 * power)]).random(9) * [1, 1, 0, 1, 1, 1, 0, 1, 1]
    found = total_error(weights, allocate(weights, window=window, epsilon=1, power=power), power=power)
    general = general_optimum(weights, window, 1.0, power)
    assert general * (1 - 1e-5) < found < general * (1 + 1e-6)  # the general solver stops a little short


@given(
    st.integers(1, 40),
    st.integers(1, 10),
    st.integers(1, 4),
    st.sampled_from([0.1, 0.5, 1.0, 2.0, 4.0]),
    st.integers(0),
)
@settings(deadline=None, max_examples=80)
def test_the_certificate_holds_and_is_tight(steps, window, batch, power, seed):
    """The bound is recomputed here from the prices' definition: any prices bound the optimum from below."""
    rng = np.random.default_rng(seed)
    weights = 10 ** rng.uniform(-4, 4, (steps, batch)) * (rng.random((steps, batch)) < 0.7)
    solution = solve(weights, np.ones((steps, batch)), window, power)
    assert (window_sums(solution.budgets, window, steps) < 1).all()
    assert (solution.error - solution.bound <= 1e-8 * solution.error).all()
    recomputed = total_error(weights.T, solution.budgets.T, power=power)
    assert recomputed == pytest.approx(solution.error, rel=1e-6)


def test_the_conditions_of_karush_kuhn_and_tucker_hold():
    """Every step pays the same price per window it sits in: prices from least squares reproduce the slopes."""
    rng = np.random.default_rng(4)
    weights, window = rng.random((60, 1)) + 0.1, 5
    budgets = solve(weights, np.ones((60, 1)), window, 2.0, tolerance=1e-12).budgets
    slope = 2 * weights * budgets**-3
    slack = 1 - window_sums(budgets, window, 60)[:, 0]
    tight = np.flatnonzero(slack < 1e-6)
    windows = np.array([spread(np.eye(60)[:, [j]], window, 60)[:, 0] for j in tight]).T
    from scipy.optimize import nnls

    _, residual = nnls(windows, slope[:, 0])
    assert residual < 1e-3 * np.linalg.norm(slope)


def test_no_small_exchange_between_steps_improves_the_optimum():
    weights = (np.random.default_rng(5).random(40) < 0.6).astype(float)
    budgets = allocate(weights, window=6, epsilon=1)
    best = total_error(weights, budgets)
    rng = np.random.default_rng(6)
    for _ in range(200):
        moved = np.where(weights > 0, budgets * np.exp(0.05 * rng.standard_normal(40)), 0)
        moved /= max(np.convolve(moved, np.ones(6), "valid").max(), 1e-9)
        assert total_error(weights, moved) >= best * (1 - 1e-7)


def test_a_batch_is_its_rows():
    weights = np.random.default_rng(7).random((6, 30)).round(1)
    together = allocate(weights, window=4, epsilon=1)
    for row, budgets in zip(weights, together, strict=True):
        alone = allocate(row, window=4, epsilon=1)
        assert total_error(row, alone) == pytest.approx(total_error(row, budgets), rel=1e-7)


def test_scaling_epsilon_scales_the_budgets_and_scaling_weights_changes_nothing():
    weights = np.array([1, 0, 2, 1, 1, 0, 3, 1.0])
    base = allocate(weights, window=3, epsilon=1)
    assert allocate(weights, window=3, epsilon=5) == pytest.approx(5 * base, rel=1e-4)
    assert allocate(1e9 * weights, window=3, epsilon=1) == pytest.approx(base, rel=1e-4)


# The values of the reference implementation for ε = 1, n = 50: (window, p, error a query, its standard error).
REFERENCE = [(4, 0.5, 9.55, 0.09), (4, 0.75, 13.37, 0.07), (7, 0.5, 22.6, 0.3), (7, 0.75, 37.2, 0.2)]


@pytest.mark.parametrize(("window", "p", "error", "spread_of_it"), REFERENCE)
def test_the_error_a_query_is_that_of_the_reference(window, p, error, spread_of_it):
    """300 sequences here and there: six standard errors of the difference, a false alarm in 10⁹ runs."""
    weights = (np.random.default_rng([window, int(100 * p)]).random((300, 50)) < p).astype(float)
    found = total_error(weights, allocate(weights, window=window, epsilon=1)) / weights.sum(axis=1)
    own = found.std() / np.sqrt(300)
    assert abs(found.mean() - error) < 6 * np.hypot(own, spread_of_it)


# --- exact windows ----------------------------------------------------------------------------------------------------


@given(WEIGHTS, st.integers(1, 9), EPSILONS)
@settings(deadline=None, max_examples=150)
def test_no_window_exceeds_epsilon_by_any_fraction(weights, window, epsilon):
    budgets = allocate(weights, window=window, epsilon=epsilon)
    assert keeps_to(budgets, window, Fraction(epsilon))
    assert ((budgets > 0) == (np.asarray(weights) > 0)).all()


@given(WEIGHTS, st.integers(1, 9), EPSILONS, st.lists(st.floats(0, 1), max_size=24))
@settings(deadline=None, max_examples=150)
def test_no_window_exceeds_epsilon_after_any_commitment(weights, window, epsilon, parts):
    """Commitments are arbitrary doubles that fit, a few of them to the brim."""
    total, committed = Fraction(epsilon), []
    for part in parts[: len(weights)]:
        room = total - sum(max(binary(c), decimal(c)) for c in committed[max(len(committed) - window + 1, 0) :])
        committed.append(max(0.0, float(room) * part * (1 - 1e-12)))
    budgets = allocate(weights, window=window, epsilon=epsilon, committed=committed)
    assert keeps_to(budgets, window, total)
    assert budgets[: len(committed)].tolist() == committed


def test_ten_tenths_are_one_when_committed_and_leave_nothing():
    budgets = allocate([1] * 11, window=10, epsilon=1, committed=[0.1] * 10)
    assert budgets[10] == pytest.approx(0.1, rel=1e-9)
    assert budgets[10] <= 0.1


def test_long_sequences_stay_exact():
    weights = (np.random.default_rng(8).random(3000) < 0.5).astype(float)
    assert keeps_to(allocate(weights, window=7, epsilon="0.7"), 7, Fraction(7, 10))


def test_a_window_far_longer_than_the_sequence_costs_nothing_more():
    assert allocate([1, 1], window=10**9, epsilon=1) == pytest.approx([0.5, 0.5], rel=1e-4)


# --- refusals ---------------------------------------------------------------------------------------------------------

NOTHING = "Nothing was drawn or recorded."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": 0}, "window=0 must be a whole number of at least 1."),
        ({"window": 2.5}, "window=2.5 must be a whole number of at least 1."),
        ({"epsilon": 0}, f"epsilon=0 must be greater than zero. {NOTHING}"),
        ({"epsilon": -1.0}, f"epsilon=-1.0 must be greater than zero. {NOTHING}"),
        ({"epsilon": float("nan")}, "epsilon=nan is not a finite number."),
        (
            {"epsilon": "1e200"},
            f"epsilon={10**200} is outside 1e-100 to 1e100, where doubles are exact enough to divide it. {NOTHING}",
        ),
        (
            {"power": 0},
            "power=0 must be greater than 0 and at most 10: the error is weight / budget**power. "
            f"{NOTHING} Use 2 for the variance of Laplace noise.",
        ),
        (
            {"weights": [1, -1, 1]},
            f"weights[1]=-1.0 must be finite and at least 0. {NOTHING} Use 0 for a step at which nothing is published.",
        ),
        (
            {"weights": [[1, 2], [1, float("nan")]]},
            f"weights[1, 1]=nan must be finite and at least 0. {NOTHING} "
            "Use 0 for a step at which nothing is published.",
        ),
        (
            {"weights": [float("inf")]},
            f"weights[0]=inf must be finite and at least 0. {NOTHING} Use 0 for a step at which nothing is published.",
        ),
        ({"weights": ["many"]}, f"weights are not numbers. {NOTHING}"),
        (
            {"weights": 3.0},
            "weights of shape () are neither one sequence nor a table with one sequence a row. " + NOTHING,
        ),
        (
            {"committed": [0.5, 0.5, 0.1]},
            "committed[0:3] sums to 1.1, which exceeds epsilon=1 for a window of 3 steps. "
            f"{NOTHING} Correct committed, or use a larger epsilon.",
        ),
        ({"committed": [-0.5]}, f"committed[0]=-0.5 must be at least 0. {NOTHING}"),
        ({"committed": [float("nan")]}, "committed[0]=nan is not a finite number."),
        (
            {"committed": [0.1] * 5},
            f"committed has 5 budgets for 3 weights. {NOTHING} "
            "Give a weight for every step, the committed ones included.",
        ),
    ],
)
def test_it_refuses(arguments, message):
    with pytest.raises(InvalidInput) as refusal:
        allocate(**{"weights": [1, 1, 1], "window": 3, "epsilon": 1, **arguments})
    assert str(refusal.value) == message


def test_weights_no_double_can_balance_are_refused():
    weights = 10.0 ** np.tile([-150.0, 150.0, 0.0, 100.0], 10)
    try:
        budgets = allocate(weights, window=3, epsilon=1, power=10)
    except InvalidInput as refusal:
        assert str(refusal) == (
            "The weights, or what is left in the windows, lie too many powers of ten apart to be balanced in double "
            "precision. Nothing was drawn or recorded. Use weights within twelve powers of ten of each other."
        )
    else:
        assert keeps_to(budgets, 3, 1)
