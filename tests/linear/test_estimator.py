"""What operators say of themselves as estimators, against what the written-out matrix says; also one nobody knows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sfumato.errors import TooLarge
from sfumato.linear import (
    Bins,
    Centred,
    Coarse,
    CubeIncidence,
    Difference,
    Embedded,
    Haar,
    Hats,
    Hierarchy,
    Identity,
    Incidence,
    Kronecker,
    Matrix,
    Operator,
    Prefix,
    PrefixBlocks,
    PseudoInverse,
    Selection,
)
from sfumato.linear.estimator import box_weights, largest_in_ranges
from sfumato.workload import CELLS, PREFIXES, RANGES

KINDS = [CELLS, RANGES, PREFIXES]

N = 12


class Stranger(Operator):
    """A strategy that says nothing but what it does."""

    def __init__(self, matrix):
        self._table = np.asarray(matrix, dtype=float)
        self.rows, self.cols = self._table.shape

    def forward(self, x):
        return x @ self._table.T

    def transpose(self, y):
        return y @ self._table

    def pinv(self, y):
        return y @ np.linalg.pinv(self._table).T

    def pinv_transpose(self, q):
        return q @ np.linalg.pinv(self._table)


STRANGE = np.random.default_rng(1).integers(-2, 3, (N + 3, N))
LINES = [
    Identity(N),
    Prefix(N),
    Difference(N, 3),
    Centred(N),
    PseudoInverse(Identity(N)),
    PseudoInverse(Prefix(N)),
    PseudoInverse(Prefix(N, reverse=True)),
    PseudoInverse(Haar(N)),
    PseudoInverse(Hierarchy(N, (4, 2, 1), (2, 1, 3))),
    PseudoInverse(PrefixBlocks(N, (4, 2, 1), (2, 3, 1))),
    PseudoInverse(Hats(N, (4, 2), (5, 4, 7))),
    Embedded(Identity(5), np.array([0, 2, 3, 7, 11]), N),
    Embedded(Difference(5), np.array([0, 2, 3, 7, 11]), N),
    Embedded(PseudoInverse(Haar(5)), np.array([0, 2, 3, 7, 11]), N),
    Coarse(Identity(4), np.array([0, 2, 5, 6, N]), 0.5),
    Coarse(Difference(4), np.array([0, 2, 5, 6, N]), 2.0),
    Coarse(Difference(4, 2), np.array([0, 2, 5, 6, N])),
    Coarse(PseudoInverse(Haar(4)), np.array([0, 2, 5, 6, N])),
    Selection(np.arange(N) % 3 == 0),
    Incidence(N, np.array([0, 1, 4, 7]), np.array([1, 2, 9, -1])),
    CubeIncidence((N,), 3),
    Stranger(STRANGE.T),
    PseudoInverse(Stranger(STRANGE)),
]
GRIDS = [
    Kronecker([PseudoInverse(Haar(3)), Difference(4)]),
    Kronecker([PseudoInverse(Haar(3)), Centred(4)]),
    Selection(np.arange(N) % 3 == 0),
    Incidence(N, np.array([0, 1, 4, 7]), np.array([1, 2, 9, -1])),
    CubeIncidence((3, 4), 2),
    PseudoInverse(Stranger(STRANGE)),
]


def written(estimator):
    return estimator.forward(np.eye(estimator.cols)).T


def boxes(shape):
    along = [[(a, b) for a in range(n) for b in range(a + 1, n + 1)] for n in shape]
    both = np.array(list(itertools.product(*along)), dtype=float)
    return both[..., 0], both[..., 1]


@pytest.mark.parametrize("estimator", LINES, ids=lambda e: type(e).__name__)
def test_no_coefficient_of_a_range_exceeds_the_largest(estimator):
    low, high = boxes((N,))
    felt = box_weights((N,), low, high) @ written(estimator)
    assert np.abs(felt).max() <= estimator.largest_coefficient + 1e-12
    assert np.abs(felt).max() <= largest_in_ranges(estimator) + 1e-12


@pytest.mark.parametrize("estimator", LINES, ids=lambda e: type(e).__name__)
def test_promises_about_integers_and_fourth_moments_hold(estimator):
    low, high = boxes((N,))
    felt = box_weights((N,), low, high) @ written(estimator)
    second, fourth = estimator.box_moments((N,), low, high)
    assert np.allclose(second, (felt**2).sum(axis=1))
    if estimator.fourth_is_exact:
        assert np.allclose(fourth, (felt**4).sum(axis=1))
    if estimator.keeps_integers:
        assert np.array_equal(felt, np.rint(felt))
    if estimator.is_identity:
        assert np.array_equal(written(estimator), np.eye(N))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", LINES, ids=lambda e: type(e).__name__)
def test_mean_variances_are_those_of_the_written_matrix(estimator, kind):
    felt = written(estimator)
    want = float(np.trace(felt.T @ kind.gram(N) @ felt))
    assert estimator.mean_square((kind,), (N,)) == pytest.approx(want)
    if len(estimator.factors) == 1 and not isinstance(estimator, (Selection, Incidence, CubeIncidence)):
        assert kind.mean_variance(estimator) == pytest.approx(want)


@pytest.mark.parametrize("estimator", GRIDS, ids=lambda e: type(e).__name__)
def test_on_a_grid_boxes_means_and_kinds_of_cells_are_those_of_the_written_matrix(estimator):
    shape = (3, 4)
    low, high = boxes(shape)
    felt = box_weights(shape, low, high) @ written(estimator)
    second, fourth = estimator.box_moments(shape, low, high)
    assert np.allclose(second, (felt**2).sum(axis=1)) and np.allclose(fourth, (felt**4).sum(axis=1))
    for kind in KINDS:
        gram = np.kron(kind.gram(3), kind.gram(4))
        want = float(np.trace(written(estimator).T @ gram @ written(estimator)))
        assert estimator.mean_square((kind, kind), shape) == pytest.approx(want)
    kinds, alone = estimator.cell_kinds(shape, None).ravel(), (written(estimator) ** 2).sum(axis=1)
    for number in np.unique(kinds):
        assert np.ptp(alone[kinds == number]) < 1e-9


def test_a_strategy_and_its_inverse_are_remembered_apart():
    kind = RANGES
    once = kind.mean_variance(PseudoInverse(Haar(N)))
    assert kind.mean_variance(Haar(N)) != pytest.approx(once)
    assert kind.mean_variance(PseudoInverse(Haar(N))) == once
    assert PseudoInverse(Matrix(np.eye(2))).key is None and PseudoInverse(Haar(3)).key != Haar(3).key


def test_what_is_too_large_to_be_written_out_is_refused():
    with pytest.raises(TooLarge, match="Bins of 10000 × 20000 entries is too large to be written out"):
        largest_in_ranges(Bins(np.arange(0, 20001, 2)))
