"""Sums over blocks of several lengths: whole numbers, least squares, and variances without the matrix."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear import BlockEstimator, BlockSums, Nests
from sfumato.linear.estimator import box_weights
from sfumato.linear.queries import joint_gram
from sfumato.workload import CELLS, PREFIXES, RANGES, TOTAL, Blocks
from sfumato.workload.listed import Given

CASES = [
    ((1,), [(1,)], (3,)),
    ((5,), [(1,), (3,), (6,)], (2, 3, 1)),  # rounded up to six cells
    ((6, 4), [(1, 1), (2, 2), (6, 4), (2, 1)], (3, 2, 5, 1)),
    ((7, 5), [(1, 1), (4, 2), (8, 6), (1, 6)], (3, 2, 5, 1)),
    ((3, 4, 2), [(1, 1, 1), (3, 4, 1), (3, 2, 2), (1, 4, 2)], (1, 2, 3, 4)),
    ((7, 1, 3), [(1, 1, 1), (8, 1, 1), (2, 1, 3)], (1, 7, 3)),
    ((36,), [(1,), (18,), (36,)], (1, 2, 1)),  # so many neighbours that they are added at once
]
EXACT = [
    (case, apart) for case in CASES for apart in (None, (), *((i,) for i in range(len(case[0]) * (len(case[0]) > 1))))
]


def some_boxes(shape, count=30):
    rng = np.random.default_rng(2)
    ends = np.sort(rng.uniform(0, 1, (count, 2, len(shape))), axis=1) * shape
    ends[0] = [np.zeros(len(shape)), shape]
    ends[1] = [np.zeros(len(shape)), np.ones(len(shape))]
    return ends[:, 0], ends[:, 1]


def centred(estimator, shape, apart):
    """Estimates less the part that moves an exact total, shared out evenly."""
    table = estimator.reshape(*shape, -1)
    others = tuple(i for i in range(len(shape)) if i not in apart)
    return (table - table.mean(axis=others, keepdims=True)).reshape(estimator.shape)


def test_two_tables_over_four_cells_by_hand():
    sums = BlockSums((4,), [(1,), (2,)], (3, 1))
    assert sums.dense().tolist() == [
        [3, 0, 0, 0],
        [0, 3, 0, 0],
        [0, 0, 3, 0],
        [0, 0, 0, 3],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
    ]
    assert sums.precisions.tolist() == [9, 11, 11]  # w² of cells; and of pairs, twice their own
    assert (sums.largest_norm, sums.largest_entry) == (4, 3)
    assert BlockEstimator(sums).mean_square([TOTAL], (4,)) == pytest.approx(4 / 11)


@pytest.mark.parametrize(("shape", "blocks", "weights"), CASES)
def test_rows_are_sums_of_blocks_and_columns_know_how_far_they_are_apart(shape, blocks, weights):
    sums = BlockSums(shape, blocks, weights)
    written, cells = [], np.indices(shape).reshape(len(shape), -1).T
    for lengths, weight in zip(blocks, weights, strict=True):
        place = cells // lengths
        counts = [-(-n // b) for n, b in zip(shape, lengths, strict=True)]
        if all(n % b == 0 for n, b in zip(shape, lengths, strict=True)):
            written.append([weight * (place == at).all(axis=1) for at in product(*map(range, counts))])
    dense = sums.dense()
    kept = np.concatenate(written)
    held = dense[(dense != 0).any(axis=1)]  # blocks of nothing but what is not there
    assert {row.tobytes() for row in kept.astype(np.int64)} <= {row.tobytes() for row in held.astype(np.int64)}
    assert np.array_equal(sums.forward(np.eye(sums.cols, dtype=np.int64)).T, dense)
    assert np.array_equal(sums.transpose(np.eye(sums.rows, dtype=np.int64)), dense)
    u, v = (index.ravel() for index in np.indices((sums.cols, sums.cols)))
    apart = np.abs(dense[:, u] - dense[:, v]).sum(axis=0)
    assert np.array_equal(sums.column_distances(u, v), apart)
    assert sums.between([chain.pair_types(None) for chain in sums.chains]) == apart.max()
    assert np.array_equal(sums.column_norms(), np.abs(dense).sum(axis=0))


@pytest.mark.parametrize(("shape", "blocks", "weights"), CASES)
def test_least_squares_over_all_blocks(shape, blocks, weights):
    sums = BlockSums(shape, blocks, weights)
    dense, written = sums.dense(), sums.pinv(np.eye(sums.rows)).T
    assert np.allclose(written @ dense, np.eye(sums.cols))
    assert np.allclose(sums.pinv_transpose(np.eye(sums.cols)), written)
    if not any(sums.nests.padded):
        assert np.allclose(written, np.linalg.pinv(dense))


@pytest.mark.parametrize(("case", "apart"), EXACT)
def test_variances_in_closed_form_are_those_of_the_matrix(case, apart):
    shape, blocks, weights = case
    sums = BlockSums(shape, blocks, weights)
    estimator = BlockEstimator(sums, apart)
    written = sums.pinv(np.eye(sums.rows)).T
    written = written if apart is None else centred(written, shape, apart)
    assert np.allclose(estimator.dense(), written)
    assert np.allclose(estimator.transpose(np.eye(sums.cols)), written)
    covariance = written @ written.T
    low, high = some_boxes(shape)
    q = box_weights(shape, low, high)
    each = np.einsum("ij,jk,ik->i", q, covariance, q)
    assert np.allclose(estimator.box_moments(shape, low, high)[0], each, atol=1e-9)
    assert apart is None or estimator.box_moments(shape, low, high)[0][0] == 0  # the whole is exact, not nearly so
    for kinds in product([CELLS, RANGES, PREFIXES, TOTAL, Blocks(2)], repeat=len(shape)):
        expected = float((joint_gram(kinds, shape) * covariance).sum())
        assert estimator.mean_square(kinds, shape) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    given = [Given(a, b) for a, b in zip(low.T, high.T, strict=True)]
    assert estimator.mean_square(given, shape) == pytest.approx(each.mean(), abs=1e-9)
    moved = np.maximum(written, 0).sum(axis=0).max(), np.maximum(-written, 0).sum(axis=0).max()
    assert estimator.largest_coefficient >= max(moved) - 1e-12
    kinds_of_cells, own = estimator.cell_kinds(shape, None).ravel(), np.diag(covariance)
    assert all(np.ptp(own[kinds_of_cells == kind]) < 1e-9 for kind in np.unique(kinds_of_cells))


@pytest.mark.parametrize(("case", "apart"), EXACT)
def test_cells_taken_together_along_an_axis(case, apart):
    shape, blocks, weights = case
    estimator = BlockEstimator(BlockSums(shape, blocks, weights), apart)
    written = estimator.dense()
    for axis, n in enumerate(shape):
        of = np.arange(n) * 5 % 3 % min(n, 3)
        few = tuple(int(of.max()) + 1 if i == axis else m for i, m in enumerate(shape))
        low, high = some_boxes(few, 12)
        q = box_weights(few, low, high).reshape(12, *few)
        asked = np.take(q, of, axis=1 + axis).reshape(12, -1)
        second, _ = estimator.grouped_moments(axis, of, low, high)
        assert np.allclose(second, ((asked @ written) ** 2).sum(axis=1), atol=1e-9)


def test_large_counts_do_not_drown_small_noise():
    sums = BlockSums((64, 16), [(1, 1), (64, 16), (1, 16)], (1, 900, 400))
    counts = np.full(sums.cols, 10**9, dtype=np.int64)
    assert np.abs(BlockEstimator(sums).forward(sums.forward(counts)) - counts).max() < 1e-5


@pytest.mark.parametrize(
    ("blocks", "weights", "message"),
    [
        ([(1, 1), (2, 1), (3, 1)], (1, 1, 1), "each length must divide the next one"),
        ([(1, 1), (4, 1), (7, 1)], (1, 1, 1), "here 8"),
        ([(1, 1), (16, 1)], (1, 1), "here 7"),
        ([(1, 1), (10**18, 1)], (1, 1), "here 7"),
        ([(7, 1)], (1,), "one of single cells, such as \\[1, 1\\]"),
        ([(1, 1), (1, 1)], (1, 2), "every table once"),
        ([(1, 1), (7, 1)], (1,), "one for each of the 2 rows"),
        ([(1, 1), (7, 1)], (1, 0), "whole numbers from 1 to 65536"),
    ],
)
def test_what_cannot_be_is_refused(blocks, weights, message):
    with pytest.raises(InvalidInput, match=message):
        BlockSums((7, 4), blocks, weights)


def test_more_blocks_than_memory_holds_are_refused_before_any_are_made():
    with pytest.raises(TooLarge, match="too much to hold in memory"):
        Nests((2,) * 30, [(1,)] * 30)
