"""DAWA end to end: budgets, noise, limits, edge sizes, refusals."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidInput
from sfumato.mechanism.partitions.bucket_tree import UNITS, best_tree, flat_tree, read_tree
from sfumato.mechanism.partitions.dawa import _noise, budgets, estimate, measure, penalty
from sfumato.mechanism.partitions.partition import Buckets
from sfumato.noise import DiscreteLaplace, SeededSource, SystemSource


def dawa(x: Any, **given: Any) -> SimpleNamespace:
    """Estimated counts, and the runs over which they are equal."""
    tree, measured = measure(x, **given)
    return SimpleNamespace(counts=tree.spread(measured), buckets=tree.buckets)


# by hand


def test_the_two_stages_spend_epsilon_exactly() -> None:
    assert budgets("0.3", "1/4", "add/remove") == (Fraction(3, 40), Fraction(9, 40))
    assert budgets("0.3", "1/4", "edge") == budgets("0.3", "1/4", "add/remove")


def test_a_replaced_record_changes_two_entries_and_halves_the_budget() -> None:
    assert sum(budgets(1, "1/2", "replace")) == Fraction(1, 2)


def test_penalty_vanishes_with_the_noise() -> None:
    assert penalty(Fraction(1, 4), Fraction(3, 4)) == 277
    assert penalty(Fraction(10**6), Fraction(10**6)) == 0


# noise


def test_noise_has_the_rate_of_its_units_and_no_other() -> None:
    """400,000 values for each share. False alarm below 10⁻⁶: the variance of Laplace-like noise (excess kurtosis at
    most 3.5) is estimated to 0.37 % (one standard error), and 6 of them are 2.2 %. Noise of 10 % more or less is off by
    17 % at least.
    """
    epsilon, size = Fraction(1, 2), 400_000
    units = np.repeat([0, 5, UNITS], size)
    noise = _noise(units, epsilon, SystemSource()).reshape(3, size)
    assert not noise[0].any()  # such nodes are not measured: their weight in the estimate is zero
    for row, share in ((1, Fraction(5, UNITS)), (2, Fraction(1))):
        found = float(np.mean(noise[row].astype(float) ** 2))
        assert found == pytest.approx(DiscreteLaplace(epsilon * share).variance, rel=0.022)
        for factor in (Fraction(9, 10), Fraction(11, 10)):
            assert found != pytest.approx(DiscreteLaplace(epsilon * share * factor).variance, rel=0.1)


@pytest.mark.slow
def test_the_estimate_spends_its_epsilon_and_no_other() -> None:
    """10,000 releases of one run, from one seed: no false alarm. One standard error of the variance is 2.3 %, five are
    11.5 %; noise of 10 % more or less is off by 17 % at least.
    """
    buckets, x, epsilon = Buckets(np.array([0]), 4), np.array([3, 9, 1, 7]), Fraction(1, 4)
    source = SeededSource(11)
    totals = [estimate(x, buckets, epsilon=epsilon, source=source).sum() for _ in range(10_000)]
    found = float(np.mean((np.array(totals) - 20) ** 2))
    assert found == pytest.approx(DiscreteLaplace(epsilon).variance, rel=0.115)


# behaviour


def test_without_noise_the_counts_come_back() -> None:
    x = np.array([5, 5, 5, 5, -3, 8, 8, 8, 8, 0, 0, 0, 0, 1, 2, 2, 2])
    result = dawa(x, epsilon=10**6, source=SeededSource(1))
    assert result.counts == pytest.approx(x, abs=1e-9)
    assert result.buckets.starts.tolist() == [0, 4, 5, 6, 8, 9, 10, 12, 13, 14, 16]


def test_uniform_data_is_merged_into_few_runs() -> None:
    """Seeded: noise alone leaves about twenty runs of 4096 cells; without the guard it would be hundreds."""
    result = dawa(np.full(4096, 40), epsilon="0.1", source=SeededSource(3))
    assert len(result.buckets) < 60
    assert result.counts.sum() == pytest.approx(40 * 4096, abs=3000)


def test_rough_data_is_kept_apart() -> None:
    x = np.random.default_rng(1).integers(0, 10**6, 512)
    result = dawa(x, epsilon=1, source=SeededSource(3))
    assert len(result.buckets) > 500
    assert result.counts == pytest.approx(x, abs=200)


def test_same_seed_same_release() -> None:
    x = np.arange(100) // 10
    first, again, other = (dawa(x, epsilon=1, source=SeededSource(seed)) for seed in (5, 5, 6))
    assert np.array_equal(first.counts, again.counts)
    assert np.array_equal(first.buckets.starts, again.buckets.starts)
    assert not np.array_equal(first.counts, other.counts)


@given(st.integers(1, 40), st.integers(0, 3), st.sampled_from(["add/remove", "edge", "replace"]))
def test_every_integer_array_has_an_output(n: int, kind: int, neighbours: str) -> None:
    edge = np.iinfo(np.int64)
    x = [
        np.zeros(n, dtype=np.int8),
        -np.arange(n),
        np.resize([edge.min, edge.max, 0], n),
        np.full(n, np.iinfo(np.uint64).max, dtype=np.uint64),
    ][kind]
    result = dawa(x, epsilon="0.01", source=SeededSource(n), neighbours=neighbours)
    assert result.counts.shape == (n,)
    assert result.counts.dtype == np.float64
    assert np.isfinite(result.counts).all()
    assert result.buckets.size == n


def test_counts_are_equal_within_a_run() -> None:
    result = dawa(np.arange(256) // 30, epsilon=1, source=SeededSource(2))
    assert np.array_equal(result.counts, np.repeat(result.counts[result.buckets.starts], result.buckets.lengths))


# refusals


@pytest.mark.parametrize(
    ("x", "shape", "kind"),
    [
        (np.zeros((2, 2), dtype=np.int64), "(2, 2)", "int64"),
        (np.zeros(0, dtype=np.int64), "(0,)", "int64"),
        (np.zeros(3), "(3,)", "float64"),
        (np.zeros(3, dtype=bool), "(3,)", "bool"),
    ],
)
def test_what_is_no_line_of_integers_is_refused(x: np.ndarray, shape: str, kind: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        dawa(x, epsilon=1, source=SystemSource())
    assert str(caught.value) == (
        f"x with shape {shape} and type {kind} must be a line of whole numbers, one at least. "
        "Nothing was drawn or recorded."
    )


@pytest.mark.parametrize("ratio", [0, 1, -0.5])
def test_a_ratio_outside_the_unit_interval_is_refused(ratio: float) -> None:
    with pytest.raises(InvalidInput) as caught:
        dawa([1, 2], epsilon=1, source=SystemSource(), ratio=ratio)
    assert str(caught.value) == (
        f"ratio={ratio!r} must lie between 0 and 1, both excluded: the share of epsilon for the partition. "
        "Nothing was drawn or recorded."
    )


def test_an_unknown_neighbour_relation_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        dawa([1, 2], epsilon=1, source=SystemSource(), neighbours="swap")
    assert str(caught.value) == (
        "neighbours='swap' must be one of 'add/remove', 'edge', 'replace'. Nothing was drawn or recorded."
    )


def test_no_budget_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        dawa([1, 2], epsilon=0, source=SystemSource())
    assert str(caught.value) == "epsilon=0 must be greater than zero. Nothing was drawn or recorded."


def test_a_generator_that_is_no_source_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        dawa([1, 2], epsilon=1, source=np.random.default_rng())  # type: ignore[arg-type]
    assert str(caught.value) == (
        "source=Generator is not a source of random words. Nothing was drawn or recorded. "
        "Use SystemSource(), or SeededSource(seed) in tests."
    )


# ---------------------------------------------------------------------------------------------- what a release keeps


@pytest.mark.parametrize("n", [1, 2, 5, 40, 300])
def test_a_tree_comes_back_from_its_integers_and_estimates_by_its_coefficients(n):
    rng = np.random.default_rng(n)
    buckets = Buckets(np.unique(np.concatenate([[0], rng.integers(0, n, n // 2)])), n)
    for tree in (best_tree(buckets), flat_tree(buckets)):
        measured = [rng.integers(-9, 9, len(units)) * (units > 0) for units in tree.units]
        queries = rng.normal(size=(3, len(buckets)))
        terms = zip(tree.coefficients(queries), measured, strict=True)
        assert np.allclose(queries @ tree.estimate(measured), sum(c @ y for c, y in terms))
        again, levels = read_tree(tree.integers(measured), n)
        assert np.array_equal(again.estimate(levels), tree.estimate(measured))
        assert again.weights == tree.weights


def test_integers_that_describe_no_tree_are_refused():
    tree = best_tree(Buckets(np.arange(0, 300, 3), 300))
    row = tree.integers([np.zeros(len(units), dtype=np.int64) for units in tree.units])
    assert len(read_tree(row, 300)[0].buckets) == 100
    rng = np.random.default_rng(1)
    for bad in (row[:-1], row[:1], row[:0], np.append(row, 0), row[None], np.zeros_like(row)):
        with pytest.raises(InvalidInput):
            read_tree(bad, 300)
    with pytest.raises(InvalidInput):
        read_tree(row, 99)
    for _ in range(300):  # anything else is refused with the same error, or is a tree
        forged = row.copy()
        at = rng.integers(0, len(row) - len(tree.units[-1]))
        forged[at] = rng.choice([-1, 0, 1, 2, 7, 10**6, 2**62, forged[at] + 1])
        try:
            found, levels = read_tree(forged, 300)
        except InvalidInput:
            continue
        assert np.isfinite(found.estimate(levels)).all()
