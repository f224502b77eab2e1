"""Bins of cells: sums, what is said about bins seen from the cells, and their averages over all queries."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from linear_oracle import range_matrix, some_ranges

from sfumato.errors import InvalidInput
from sfumato.linear import Bins, Coarse, Difference, Identity
from sfumato.workload import CELLS, PREFIXES, RANGES

KINDS = [CELLS, RANGES, PREFIXES]

CUTS = [[0, 1], [0, 5], [0, 2, 4, 6], [0, 1, 4, 7, 9], [0, 3, 4, 5, 11], list(range(8))]


def dense_sums(cuts):
    n = cuts[-1]
    return np.array([[a <= cell < b for cell in range(n)] for a, b in pairwise(cuts)], dtype=np.int64)


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_bins_are_sums_of_cells(cuts):
    operator, dense = Bins(np.array(cuts)), dense_sums(cuts)
    x = np.random.default_rng(0).integers(-9, 9, (3, cuts[-1]))
    y = np.random.default_rng(1).integers(-9, 9, (3, len(cuts) - 1))
    assert np.array_equal(operator.dense(), dense)
    assert np.array_equal(operator.forward(x), x @ dense.T)
    assert operator.forward(x).dtype == np.int64
    assert np.array_equal(operator.transpose(y), y @ dense)


@pytest.mark.parametrize("inner", [Identity, Difference])
@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_coarse_estimators_spread_bins_over_their_cells(cuts, inner):
    bins = len(cuts) - 1
    spread = dense_sums(cuts).T / np.diff(cuts) * 0.25
    dense = spread @ inner(bins).dense() if inner is Identity or bins > 1 else np.zeros((cuts[-1], 0))
    operator = Coarse(inner(bins), np.array(cuts), 0.25)
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(3, operator.cols)), rng.normal(size=(3, cuts[-1]))
    assert np.allclose(operator.forward(x), x @ dense.T)
    assert np.allclose(operator.transpose(y), y @ dense)
    low, high = some_ranges(cuts[-1], rng)
    felt = range_matrix(cuts[-1], low, high) @ dense
    second, fourth = operator.range_moments(low, high)
    assert np.allclose(second, (felt**2).sum(axis=-1))
    assert np.allclose(fourth, (felt**4).sum(axis=-1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inner", [Identity, Difference])
@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_means_over_all_queries_follow_from_three_numbers_a_column(cuts, inner, kind):
    operator = Coarse(inner(len(cuts) - 1), np.array(cuts), 0.5)
    brute = float(kind.mean_square(operator.forward(np.eye(operator.cols))).sum()) if operator.cols else 0.0
    assert kind.of_shapes(operator.rows, *operator.column_shapes()) == pytest.approx(brute)


@pytest.mark.parametrize("cuts", [[0], [1, 3], [0, 2, 2], [0, 3, 1], [[0, 1]]], ids=str)
def test_cuts_must_rise_from_zero(cuts):
    with pytest.raises(InvalidInput, match="cuts must rise from 0 to the number of cells"):
        Bins(np.array(cuts))


def test_an_estimator_must_fit_its_bins():
    with pytest.raises(InvalidInput, match="an estimator over 3 bins needs 4 cuts, not 3"):
        Coarse(Identity(3), np.array([0, 2, 4]))
