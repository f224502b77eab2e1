"""The hierarchy of DAWA's second stage against dense least squares."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.mechanism.partitions.bucket_tree import UNITS, BucketTree, _candidates, best_tree
from sfumato.mechanism.partitions.partition import Buckets


@st.composite
def partitions(draw: st.DrawFn) -> Buckets:
    size = draw(st.integers(1, 60))
    cuts = draw(st.sets(st.integers(1, size - 1))) if size > 1 else set()
    return Buckets(np.array([0, *sorted(cuts)]), size)


@st.composite
def trees(draw: st.DrawFn) -> BucketTree:
    tree = draw(st.sampled_from(list(_candidates(draw(partitions())))))
    weights = [draw(st.integers(1, 8)) for _ in tree.weights[1:]]
    return BucketTree(tree.buckets, tree.firsts, (*weights, UNITS - sum(weights)))


def strategy(tree: BucketTree) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(nodes × buckets, units of the nodes), the measured nodes alone."""
    cells = np.eye(tree.buckets.size, dtype=np.int64)[tree.buckets.starts]
    matrix = np.stack([np.concatenate(tree.measure(cell)) for cell in cells], axis=1)
    units = np.concatenate(tree.units)
    return matrix[units > 0].astype(float), units[units > 0].astype(float)


def test_three_buckets_by_hand() -> None:
    tree = BucketTree(Buckets(np.array([0, 1, 2]), 8), (np.array([0]), np.array([0, 2])), (12, 20))
    assert [units.tolist() for units in tree.units] == [[0], [12, 0], [20, 20, 32]]  # the last group has one child
    assert [totals.tolist() for totals in tree.measure(np.arange(8))] == [
        [0],
        [1, 0],
        [0, 1, 27],
    ]  # zero where unmeasured


@given(trees())
def test_a_cell_spends_the_whole_budget_and_no_more(tree: BucketTree) -> None:
    matrix, units = strategy(tree)
    assert set(np.unique(matrix)) <= {0.0, 1.0}
    assert (units @ matrix == UNITS).all()


@given(trees(), st.integers(0, 1000))
def test_estimates_are_dense_weighted_least_squares(tree: BucketTree, seed: int) -> None:
    matrix, units = strategy(tree)
    generator = np.random.default_rng(seed)
    measured = [generator.integers(-100, 100, len(level)) for level in tree.units]
    values = np.concatenate(measured)[np.concatenate(tree.units) > 0]
    expected = np.linalg.lstsq(units[:, None] * matrix, units * values, rcond=None)[0]
    assert tree.estimate(measured) == pytest.approx(expected, abs=1e-6)


@given(trees())
def test_without_noise_the_totals_come_back(tree: BucketTree) -> None:
    x = np.arange(tree.buckets.size) ** 2
    assert tree.estimate(tree.measure(x)) == pytest.approx(tree.buckets.totals(x), rel=1e-12)


@given(trees())
def test_mean_variance_is_that_of_all_ranges(tree: BucketTree) -> None:
    """Ends are drawn independently from the first n of n + 1 borders; equal ends are the empty range."""
    matrix, units = strategy(tree)
    covariance = np.linalg.inv((matrix.T * units**2) @ matrix)
    lengths, n = tree.buckets.lengths, tree.buckets.size
    share = np.repeat(np.eye(len(lengths)) / lengths, lengths, axis=1)  # buckets × cells
    prefix = np.concatenate([np.zeros((len(lengths), 1)), np.cumsum(share, axis=1)], axis=1)[:, :n]
    ranges = [prefix[:, b] - prefix[:, a] for a, b in combinations(range(n), 2)]
    expected = 2 * sum(r @ covariance @ r for r in ranges) / n**2
    assert tree.mean_variance == pytest.approx(expected, rel=1e-9, abs=1e-15)


@given(partitions())
def test_best_tree_is_no_worse_than_any_simple_one(buckets: Buckets) -> None:
    chosen = best_tree(buckets)
    assert sum(chosen.weights) == UNITS
    assert min(chosen.weights) >= 1
    assert chosen.mean_variance <= min(tree.mean_variance for tree in _candidates(buckets))


def test_single_cells_get_the_known_hierarchy() -> None:
    """Blocks of 256, 16 and 1 cells with the best weights have a mean squared error of 260.9/ε² on 4096 cells."""
    tree = best_tree(Buckets(np.arange(4096), 4096))
    assert 2 * UNITS**2 * tree.mean_variance == pytest.approx(261, rel=0.005)
