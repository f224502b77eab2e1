"""Stage one of DAWA: deviations by brute force, the exact law of the partition, its privacy loss, its noise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.signal import fftconvolve

from sfumato.errors import InvalidInput
from sfumato.mechanism.partitions.partition import Buckets, bounded, deviations, longest_run, partition, prices, shifts
from sfumato.noise import SeededSource, SystemSource

Law = dict[tuple[int, ...], NDArray[np.float64]]

REACH = 3000  # values of costs considered on either side of zero
VALUES = np.arange(-REACH, REACH + 1)


def brute_deviation(run: NDArray[np.int64]) -> int:
    return min(int(np.abs(run - m).sum()) for m in run)


@lru_cache(maxsize=4096)
def exact_law(x: tuple[int, ...], penalty: int, rates: tuple[float, ...]) -> dict[tuple[int, ...], float]:
    """The probability of every partition of 2^k cells, by the lengths of its runs, without any sampling.

    Siblings are independent: the joint law of (partition, cost) of a run follows from those of its halves.
    """
    law = {key: float(mass.sum()) for key, mass in _law(x, penalty, rates).items()}
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    return law


@lru_cache(maxsize=512)
def _law(x: tuple[int, ...], penalty: int, rates: tuple[float, ...]) -> Law:
    level = len(x).bit_length() - 1
    cost = _cost(prices(len(rates) - 1)[level] * brute_deviation(np.array(x)) + penalty, rates[level])
    if not level:
        return {(1,): cost}
    half = len(x) // 2
    left, right = (_law(part, penalty, rates) for part in (x[:half], x[half:]))
    pairs = product(left.items(), right.items())
    apart = {a + b: fftconvolve(p, q)[REACH:-REACH] for (a, p), (b, q) in pairs}
    at_least = np.cumsum(sum(apart.values())[::-1])[::-1]
    above = np.append(np.cumsum(cost[::-1])[::-1][1:], 0.0)
    return {(len(x),): cost * at_least} | {key: mass * above for key, mass in apart.items()}


def _cost(base: int, rate: float) -> NDArray[np.float64]:
    """The law of base - G; a rate of infinity means no noise."""
    drop = base - VALUES
    if math.isinf(rate):
        return (drop == 0).astype(float)
    return np.where(drop >= 0, -math.expm1(-rate) * np.exp(-rate * np.maximum(drop, 0)), 0.0)


def calibrated(epsilon: float, levels: int, factor: float = 1.0) -> tuple[float, ...]:
    return tuple(factor * epsilon / shift for shift in shifts(levels))


def worst_loss(x: tuple[int, ...], penalty: int, rates: tuple[float, ...]) -> float:
    """The largest |log ratio| of the probability of a partition over all neighbours of x."""
    law = exact_law(x, penalty, rates)
    worst = 0.0
    for cell, step in product(range(len(x)), (-1, 1)):
        changed = exact_law((*x[:cell], x[cell] + step, *x[cell + 1 :]), penalty, rates)
        # Below that the rounding of the transform is no longer small against the probability.
        worst = max(worst, *(abs(math.log(law[key] / changed[key])) for key in law if law[key] > 1e-7))
    return worst


def runs(buckets: Buckets) -> tuple[int, ...]:
    return tuple(buckets.lengths.tolist())


# by hand


def test_prices_rise_with_the_length_and_single_cells_are_free() -> None:
    assert prices(2) == (0, 13, 16)
    assert shifts(2) == (16, 13 + 16, 16 + 13)
    assert prices(0) == (0,)
    assert shifts(0) == (0,)


def test_default_longest_run_is_a_quarter_of_the_line() -> None:
    assert [longest_run(n) for n in (1, 3, 4, 7, 8, 100, 4096)] == [1, 1, 1, 1, 2, 16, 1024]


def test_buckets_share_totals_out_equally() -> None:
    buckets = Buckets(np.array([0, 3]), 5)
    assert runs(buckets) == (3, 2)
    assert buckets.totals(np.array([1, 2, 6, 4, 0])).tolist() == [9, 4]
    assert buckets.spread(np.array([9.0, 4.0])).tolist() == [3, 3, 3, 2, 2]


# oracle


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=40), st.integers(0, 4))
def test_deviations_are_those_from_the_best_centre(x: list[int], level: int) -> None:
    values, length = np.array(x), 1 << level
    count = -(-len(x) // length)
    expected = [brute_deviation(values[i * length : (i + 1) * length]) for i in range(count)]
    assert deviations(values, length, count).tolist() == expected


def test_a_change_by_one_moves_a_deviation_by_at_most_one() -> None:
    moved = set()
    for length in (2, 3, 4):
        for x in product(range(4), repeat=length):
            for cell in range(length):
                other = np.array(x)
                other[cell] += 1
                rows = np.array([x, other])
                before, after = (int(deviations(row, 4, 1)[0]) for row in rows)
                moved.add(after - before)
    assert moved == {-1, 0, 1}


def test_clamping_never_enlarges_a_change() -> None:
    top = np.iinfo(np.int64).max
    x = np.array([top, top - 1, -top - 1, -top, 3, 4])
    gaps = np.abs(np.diff(bounded(x).astype(object))[::2])
    assert (gaps <= 1).all()
    assert bounded(x)[4:].tolist() == [3, 4]


# privacy


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_no_partition_of_four_cells_loses_more_than_epsilon(epsilon: float) -> None:
    rates = calibrated(epsilon, 2)
    losses = [worst_loss(x, penalty, rates) for x in product(range(3), repeat=4) for penalty in (0, 20)]
    assert max(losses) <= epsilon + 1e-6
    assert max(losses) >= 0.3 * epsilon  # the bound is not idle


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.tuples(*[st.integers(-6, 6)] * 8), st.integers(0, 60), st.sampled_from([2.0, 5.0]))
def test_no_partition_of_eight_cells_loses_more_than_epsilon(x: tuple[int, ...], penalty: int, epsilon: float) -> None:
    assert worst_loss(x, penalty, calibrated(epsilon, 3)) <= epsilon + 1e-6


def test_single_cells_without_noise_would_not_be_private() -> None:
    rates = calibrated(2.0, 1)
    assert worst_loss((0, 1), 0, rates) == pytest.approx(2.0)  # two cells use the budget to the full
    assert worst_loss((0, 1), 0, (math.inf, *rates[1:])) > 10.0  # nothing ever parts (0, 0), noise may part (0, 1)


# noise


def test_partition_follows_its_exact_law_and_no_other_noise() -> None:
    """2¹⁷ independent blocks of four cells. False alarm below 10⁻⁶: Pearson's statistic with 4 degrees of freedom
    exceeds 35 with probability 5·10⁻⁷. Noise of 10 % more or less exceeds five times that.
    """
    blocks, epsilon, penalty, pattern = 1 << 17, Fraction(3), 30, (0, 2, 3, 3)
    x = np.tile(np.array(pattern), blocks)
    buckets = partition(x, epsilon=epsilon, penalty=penalty, source=SystemSource(), longest=4)
    inside = np.isin(np.arange(4 * blocks), buckets.starts).reshape(blocks, 4) @ np.array([8, 4, 2, 1])
    observed = {
        runs(Buckets(np.flatnonzero([c == "1" for c in f"{k:04b}"]), 4)): int((inside == k).sum()) for k in set(inside)
    }

    def statistic(factor: float) -> float:
        law = exact_law(pattern, penalty, calibrated(float(epsilon), 2, factor))
        return sum((observed.get(key, 0) - blocks * p) ** 2 / (blocks * p) for key, p in law.items())

    assert statistic(1.0) < 35
    assert statistic(0.9) > 175
    assert statistic(1.1) > 175


# behaviour


def test_a_spike_is_isolated_and_the_rest_is_merged_when_noise_is_small() -> None:
    x = np.zeros(64, dtype=np.int64)
    x[13] = 1000
    buckets = partition(x, epsilon=Fraction(200), penalty=16, source=SeededSource(1))
    assert runs(buckets) == (8, 4, 1, 1, 2, 16, 16, 16)


def test_equal_costs_go_to_the_longer_run() -> None:
    buckets = partition(np.full(16, 5), epsilon=Fraction(10**6), penalty=0, source=SeededSource(1))
    assert runs(buckets) == (4, 4, 4, 4)


@given(st.integers(1, 70), st.integers(0, 7), st.integers(0, 100))
def test_runs_are_aligned_and_cover_every_length_of_line(n: int, level: int, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-3, 4, n)
    buckets = partition(x, epsilon=Fraction(1), penalty=64, source=SeededSource(seed), longest=1 << level)
    lengths = buckets.lengths
    assert lengths.sum() == n
    whole = buckets.starts + lengths < n
    assert (lengths[whole] & (lengths[whole] - 1) == 0).all()
    assert (buckets.starts[whole] % lengths[whole] == 0).all()
    assert lengths.max() <= 1 << level


# refusals


def test_longest_that_is_no_power_of_two_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        partition(np.zeros(9, dtype=np.int64), epsilon=Fraction(1), penalty=1, source=SeededSource(1), longest=6)
    assert str(caught.value) == "longest=6 must be a power of two. Nothing was drawn or recorded."


def test_budget_so_small_that_costs_overflow_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        partition(np.zeros(64, dtype=np.int64), epsilon=Fraction(1, 10**14), penalty=7, source=SeededSource(1))
    assert str(caught.value) == (
        "epsilon=1e-14 for the partition, with penalty=7, is too small: noisy costs of runs of 16 cells "
        "might not fit 64-bit integers. Nothing was drawn or recorded. Use a larger epsilon or shorter runs."
    )


@pytest.mark.parametrize("starts", [[], [1], [0, 0], [0, 2, 1], [0, 4]])
def test_starts_that_are_no_partition_are_refused(starts: list[int]) -> None:
    with pytest.raises(InvalidInput) as caught:
        Buckets(np.array(starts, dtype=np.int64), 4)
    assert str(caught.value) == "starts must begin with 0 and rise strictly, below size=4."
