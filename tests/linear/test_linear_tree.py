"""Trees of any shape are their matrices: least squares, variances, and the columns that sensitivities need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear import Hierarchy, Tree


def random_tree(rng, cells, depth, *, one_weight=False, shuffled=True):
    """(levels, weights) of groups within groups, numbered parent after parent, over cells in any order."""
    levels = []
    of = np.zeros(cells, dtype=np.int64)
    for _ in range(depth):
        of = np.unique(of * 4 + rng.integers(0, 4, cells), return_inverse=True)[1].reshape(-1)
        levels.append(of)
    if not shuffled:
        order = np.argsort(of, kind="stable")
        levels = [level[order] for level in levels]
    sizes = [int(level.max()) + 1 for level in levels] + [cells]
    weights = [rng.integers(1, 6, 1 if one_weight else size) for size in sizes]
    return levels, weights


def written_out(levels, weights, cells):
    """One row a group, the cells last and in the order of the tree."""
    order = np.arange(cells) if not levels else np.argsort(levels[-1], kind="stable")
    rows = [w * (level == k) for level, ws in zip(levels, weights, strict=False) for k, w in each(ws, level.max() + 1)]
    leaves = np.broadcast_to(weights[-1], cells)
    return np.array([*rows, *(leaves[c] * (np.arange(cells) == c) for c in order)], dtype=np.int64)


def each(weights, size):
    return enumerate(np.broadcast_to(weights, size).tolist())


TREES = st.tuples(st.integers(0, 10**6), st.integers(1, 24), st.integers(0, 3), st.booleans(), st.booleans())


def made(drawn):
    seed, cells, depth, one_weight, shuffled = drawn
    rng = np.random.default_rng(seed)
    levels, weights = random_tree(rng, cells, depth, one_weight=one_weight, shuffled=shuffled)
    return rng, Tree(levels, weights, cells), written_out(levels, weights, cells)


def test_two_pairs_by_hand():
    """Cells 0 and 2 against 1 and 3: their sums, then the cells in the order of the tree."""
    tree = Tree([np.array([0, 1, 0, 1])], [3, 1], 4)
    assert tree.forward(np.array([1, 20, 300, 4000])).tolist() == [903, 12060, 1, 300, 20, 4000]
    assert tree.column_distances(np.array([0, 0]), np.array([2, 1])).tolist() == [2, 8]
    assert tree.pinv(tree.forward(np.array([1, 20, 300, 4000]))) == pytest.approx([1, 20, 300, 4000])


def test_a_tree_of_equal_blocks_is_a_hierarchy():
    cell = np.arange(12)
    tree = Tree([cell // 6, cell // 3], [2, 3, 5], 12)
    other = Hierarchy(12, (6, 3, 1), (2, 3, 5))
    assert np.array_equal(tree.dense(), other.dense())
    y = np.random.default_rng(0).normal(size=tree.rows)
    assert np.allclose(tree.pinv(y), other.pinv(y))


@settings(deadline=None, max_examples=60)
@given(TREES)
def test_trees_are_their_matrices(drawn):
    rng, tree, matrix = made(drawn)
    x, y = rng.integers(-9, 10, (2, 3, tree.cols)), rng.integers(-9, 10, (2, 3, tree.rows))
    assert np.array_equal(tree.forward(x), x @ matrix.T)
    assert np.array_equal(tree.transpose(y), y @ matrix)
    assert np.array_equal(tree.sparse().toarray(), matrix)
    assert np.array_equal(tree.column_norms(), matrix.sum(axis=0))
    assert tree.largest_entry == matrix.max()
    assert matrix.sum(axis=0).max() <= tree.largest_norm
    assert tree.forward(x).dtype == tree.transpose(y).dtype == np.int64


@settings(deadline=None, max_examples=60)
@given(TREES)
def test_least_squares_and_every_variance_are_exact(drawn):
    rng, tree, matrix = made(drawn)
    inverse = np.linalg.pinv(matrix.astype(float))
    y, q = rng.normal(size=(2, tree.rows)), rng.normal(size=(2, tree.cols))
    assert np.allclose(tree.pinv(y), y @ inverse.T)
    assert np.allclose(tree.pinv_transpose(q), q @ inverse)
    covariance = inverse @ inverse.T
    for level in tree.of:
        inside = level == np.arange(level.max() + 1)[:, None]
        assert np.allclose(tree.inverse_group_variances(level), np.einsum("ij,jk,ik->i", inside, covariance, inside))
    cell = np.arange(tree.cols, dtype=float)
    assert np.allclose(tree.inverse_range_moments(cell, cell + 1)[0], np.diag(covariance))
    low, high = np.sort(rng.uniform(0, tree.cols, (2, 5)), axis=0)
    shares = np.clip(np.minimum(high[:, None], cell + 1) - np.maximum(low[:, None], cell), 0, 1)
    expected = np.einsum("ij,jk,ik->i", shares, covariance, shares)
    assert np.allclose(tree.inverse_range_moments(low, high)[0], expected)
    assert np.allclose(tree.inverse_range_moments(np.zeros(1), np.full(1, cell.size))[0], covariance.sum())


@settings(deadline=None, max_examples=60)
@given(TREES)
def test_no_noise_moves_a_range_by_more_than_is_said(drawn):
    _, tree, matrix = made(drawn)
    inverse = np.linalg.pinv(matrix.astype(float))
    largest = max(np.maximum(inverse, 0).sum(axis=0).max(), np.maximum(-inverse, 0).sum(axis=0).max())
    assert largest <= tree.inverse_largest_coefficient * (1 + 1e-9)


def told(types):
    """The L1 distances that types of pairs stand for."""
    return (types.counts @ np.abs(types.values[:, 0] - types.values[:, 1])).tolist()


@settings(deadline=None, max_examples=60)
@given(TREES)
def test_pairs_of_columns_are_what_the_matrix_shows(drawn):
    rng, tree, matrix = made(drawn)
    u, v = rng.integers(0, tree.cols, (2, 30))
    distances = np.abs(matrix[:, u] - matrix[:, v]).sum(axis=0)
    assert np.array_equal(tree.column_distances(u, v), distances)
    assert set(told(tree.types_of_pairs(u, v))) == set(distances.tolist())
    every = np.abs(matrix[:, :, None] - matrix[:, None, :]).sum(axis=0)
    assert set(told(tree.pair_types(None))) <= set(every.ravel().tolist())
    assert max(told(tree.pair_types(None))) == every.max()


def test_several_weights_a_level_are_not_compared_pair_by_pair_on_large_trees():
    cells = 3000
    levels = [np.arange(cells) // 1500]
    assert max(told(Tree(levels, [2, 1], cells).pair_types(None))) == 6
    with pytest.raises(TooLarge) as refusal:
        Tree(levels, [np.array([1, 2]), 1], cells).pair_types(None)
    assert str(refusal.value) == (
        "a tree with several weights a level has too many pairs among 3,000 cells to compare; give every level one "
        "weight."
    )


@pytest.mark.parametrize(
    ("levels", "weights", "message"),
    [
        ([[0, 0, 1]], [1], "weights are for 1 levels, and with the cells there are 2."),
        ([[0, 1]], [1, 1], "levels must give a group for each of the 3 cells."),
        (
            [[0, 1, 0], [0, 0, 1]],
            [1, 1, 1],
            "levels must lie within each other, their groups numbered one parent after another.",
        ),
        (
            [[0, 1, 1], [0, 0, 1]],
            [1, 1, 1],
            "levels must lie within each other, their groups numbered one parent after another.",
        ),
        ([[0, 2, 2]], [1, 1], "levels must lie within each other, their groups numbered one parent after another."),
        ([[0, 0, 1]], [0, 1], "weights must be whole numbers from 1 to 65536, one for a level or a group."),
        ([[0, 0, 1]], [[1, 2, 3], 1], "weights must be whole numbers from 1 to 65536, one for a level or a group."),
    ],
)
def test_what_is_no_tree_is_refused(levels, weights, message):
    with pytest.raises(InvalidInput) as refusal:
        Tree([np.array(level) for level in levels], weights, 3)
    assert str(refusal.value) == message
