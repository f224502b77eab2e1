"""Products of hats and cells: whole numbers, least squares, variances and sensitivities without the matrix."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear import HatAxis, HatProductEstimator, HatProducts, least_shared
from sfumato.linear.estimator import box_weights
from sfumato.linear.hat_axis import shared_hats
from sfumato.linear.queries import joint_gram
from sfumato.workload import CELLS, PREFIXES, RANGES, TOTAL

CASES = [
    ((20,), (5,), 9, (3, 1)),
    ((12, 9), (4, 3), 7, (5, 2, 1)),
    ((12, 9), (4, 3), 7, (5, 0, 1)),
    ((12, 9), (4, 3), 7, (5, 3, 0)),
    ((7, 4), (3, 0), 5, (4, 3)),
    ((4, 3), (0, 0), 1, (2,)),
    ((6, 7, 8), (3, 3, 4), 4, (9, 2, 1, 1)),
]
SOME = CASES[:3] + CASES[4:]


def unit_cells(shape):
    bounds = (0,) * len(shape) + shape
    return sf.Line(0, shape[0], cells=shape[0]) if len(shape) == 1 else sf.Grid(bounds=bounds, shape=shape)


def some_boxes(shape, count=30):
    rng = np.random.default_rng(2)
    ends = np.sort(rng.uniform(0, 1, (count, 2, len(shape))), axis=1) * shape
    ends[0] = [np.zeros(len(shape)), shape]
    ends[1] = [np.zeros(len(shape)), np.ones(len(shape))]
    ends[2] = np.sort(rng.integers(0, 1 + np.array(shape), (2, len(shape))), axis=0)
    return ends[:, 0], ends[:, 1]


def test_hats_of_an_axis_by_hand():
    """Eight cells, knots at 0, 8/3, 16/3 and 8; the middle of cell 1 lies 9/16 of the way to the second knot."""
    axis = HatAxis(8, 3, 16)
    assert axis.matrix.toarray().tolist() == [
        [13, 7, 1, 0, 0, 0, 0, 0],
        [3, 9, 15, 11, 5, 0, 0, 0],
        [0, 0, 0, 5, 11, 15, 9, 3],
        [0, 0, 0, 0, 0, 1, 7, 13],
    ]
    vectors, values = axis.spectrum
    assert np.allclose(vectors @ vectors.T, np.eye(4))
    assert np.allclose(vectors.T * values @ vectors, axis.matrix.toarray().T @ axis.matrix.toarray())
    same, shared = shared_hats(axis.pair_types(0))
    assert same
    assert len(shared) == 0
    # (0, 1) share 7 + 3 as (1, 2) do 1 + 9 and (3, 4) do 5 + 5
    assert least_shared([[axis.pair_types(1)]]) == {(0,): 10}
    assert least_shared([[axis.pair_types(None)]]) == {(0,): 0}


@pytest.mark.parametrize(("shape", "hats", "height", "weights"), CASES)
def test_rows_are_products_of_hats_and_cells(shape, hats, height, weights):
    products = HatProducts(shape, hats, height, weights)
    dense = products.dense()
    assert np.array_equal(products.forward(np.eye(products.cols, dtype=np.int64)).T, dense)
    assert np.array_equal(products.transpose(np.eye(products.rows, dtype=np.int64)), dense)
    assert (dense.sum(axis=0) == products.largest_norm).all()
    assert dense.min() >= 0
    assert dense.max() <= products.largest_entry
    y = np.random.default_rng(0).normal(size=(3, products.rows))
    assert np.allclose(products.pinv(y), y @ np.linalg.pinv(dense).T)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("shape", "hats", "height", "weights"), SOME)
def test_variances_are_those_of_the_matrix(shape, hats, height, weights, known):
    estimator = HatProductEstimator(HatProducts(shape, hats, height, weights), total_known=known)
    written = estimator.forward(np.eye(estimator.cols)).T
    assert np.allclose(estimator.transpose(np.eye(estimator.rows)), written)
    low, high = some_boxes(shape)
    expected = ((box_weights(shape, low, high) @ written) ** 2).sum(axis=1)
    assert np.allclose(estimator.box_moments(shape, low, high)[0], expected, atol=1e-12)
    if known:
        assert estimator.box_moments(shape, low, high)[0][0] == 0
    for kinds in product([RANGES, CELLS, PREFIXES, TOTAL], repeat=len(shape)):
        mean = np.einsum("ij,ij", written, joint_gram(kinds, shape) @ written)
        assert estimator.mean_square(kinds, shape) == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("shape", "hats", "height", "weights"), SOME)
def test_no_noise_counts_more_in_a_range_than_is_said(shape, hats, height, weights, known):
    estimator = HatProductEstimator(HatProducts(shape, hats, height, weights), total_known=known)
    spans = [[(i, j) for i in range(n) for j in range(i + 1, n + 1)] for n in shape]
    boxes = np.array([list(zip(*box, strict=True)) for box in product(*spans)], dtype=float)
    boxes = boxes[np.random.default_rng(0).permutation(len(boxes))[:4000]]
    felt = np.abs(estimator.transpose(box_weights(shape, boxes[:, 0], boxes[:, 1])))
    assert felt.max() <= estimator.largest_coefficient


@pytest.mark.parametrize(("shape", "hats", "height", "weights"), SOME)
def test_the_sensitivity_is_the_largest_over_every_edge(shape, hats, height, weights):
    products = HatProducts(shape, hats, height, weights)
    columns = np.concatenate([products.dense(), np.zeros((products.rows, 1), dtype=np.int64)], axis=1)
    domain = unit_cells(shape)
    policies = [sf.bounded(domain), sf.unbounded(domain), sf.within(domain, 1.5, sources="boundary")]
    policies += [sf.threshold(domain, theta) for theta in (1, 2, 3, 5)]
    policies += [sf.within(domain, delta) for delta in (0.5, 1.5, 2.5)]
    if len(shape) > 2:
        policies = [sf.threshold(domain, 2), sf.within(domain, 0.5)]  # every edge is compared
    for policy in policies:
        edges = policy.edges()
        largest = np.abs(columns[:, edges[:, 0]] - columns[:, edges[:, 1]]).sum(axis=0).max()
        assert policy.sensitivity(products) == largest, policy.name


def test_the_sensitivity_under_relations_and_lists_of_edges():
    place, hour = sf.Grid(bounds=(0, 0, 7, 6), shape=(7, 6)), sf.Line(0, 8, cells=8, name="hour")
    space = place * hour
    products = HatProducts(space.shape, (3, 3, 4), 5, (7, 3, 2, 1))
    columns = np.concatenate([products.dense(), np.zeros((products.rows, 1), dtype=np.int64)], axis=1)
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, space.size, (300, 2))
    chords = [(int(u), int(v)) for u, v in pairs[pairs[:, 0] != pairs[:, 1]]]
    listed = sf.graph(space, [*chords, *((i, i + 1) for i in range(space.size - 1)), (0, sf.ABSENT)])
    relations = [
        sf.move(1.5) | sf.move(2, of="hour"),
        sf.move(1.5) & sf.move(2, of="hour"),
        sf.change("place") | sf.move(2, of="hour"),
        sf.move(0.5, sources=((0.1, 0.1),)) | sf.change("hour"),
    ]
    for policy in (listed, *(sf.policy(space, hide=relation) for relation in relations)):
        edges = policy.edges()
        largest = np.abs(columns[:, edges[:, 0]] - columns[:, edges[:, 1]]).sum(axis=0).max()
        assert policy.sensitivity(products) == largest


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: HatAxis(8, 5, 3), InvalidInput, "hats=5 along an axis of 8 cells must be 0 for none, or from 3"),
        (lambda: HatAxis(8, 2, 3), InvalidInput, "hats=2 along an axis of 8 cells must be 0 for none, or from 3"),
        (lambda: HatAxis(8, 3, 0), InvalidInput, "height=0 must lie between 1 and"),
        (lambda: HatProducts((8, 8), (3, 3), 4, (1, 1)), InvalidInput, r"weights=\[1, 1\] must be whole numbers"),
        (lambda: HatProducts((8, 8), (3, 3), 4, (0, 1, 1)), InvalidInput, r"weights=\[0, 1, 1\] must be whole"),
        (lambda: HatProducts((4096,) * 2, (2048,) * 2, 4, (1, 1, 1)), TooLarge, "products of hats and entries of"),
        (lambda: HatProducts((8, 8), (3, 3), 1 << 19, (1, 1, 8)), TooLarge, "products of hats and entries of"),
    ],
)
def test_refusals(made, error, message):
    with pytest.raises(error, match=message):
        made()
