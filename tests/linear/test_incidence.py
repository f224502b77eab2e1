"""The incidence matrix of a graph with ⊥: divergence, differences, and the smallest flow, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.linear import Incidence, Selection

GRAPHS = {
    "one edge": (2, [(0, 1)]),
    "path": (5, [(0, 1), (1, 2), (2, 3), (3, 4)]),
    "star": (4, [(0, 1), (0, 2), (0, 3)]),
    "cycle": (4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "complete": (4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
    "path with a source": (3, [(0, 1), (1, 2), (0, -1)]),
    "cycle with two sources": (3, [(0, 1), (1, 2), (2, 0), (1, -1), (2, -1)]),
    "only appearing": (3, [(0, -1), (1, -1), (2, -1)]),
    "one cell that appears": (1, [(0, -1)]),
    "two parts": (4, [(0, 1), (2, 3)]),
    "two parts, one with a source": (5, [(0, 1), (2, 3), (3, 4), (2, 4), (4, -1)]),
    "a lone cell": (3, [(0, 1)]),
    "the same edge twice": (2, [(0, 1), (0, 1)]),
}


def incidence(cells, edges):
    pairs = np.array(edges, dtype=np.int64)
    return Incidence(cells, pairs[:, 0], pairs[:, 1])


def matrix_of(cells, edges):
    matrix = np.zeros((cells, len(edges)), dtype=np.int64)
    for j, (tail, head) in enumerate(edges):
        matrix[tail, j] += 1
        if head >= 0:
            matrix[head, j] -= 1
    return matrix


def check(cells, edges, seed=0):
    rng = np.random.default_rng(seed)
    op, matrix = incidence(cells, edges), matrix_of(cells, edges)
    z, x = rng.integers(-9, 9, (2, len(edges))), rng.integers(-9, 9, (2, cells))
    assert np.array_equal(op.forward(z), z @ matrix.T)
    assert np.array_equal(op.transpose(x), x @ matrix)
    assert op.forward(z).dtype == op.transpose(x).dtype == np.int64
    assert np.array_equal(op.dense(), matrix)
    assert np.array_equal(op.column_norms(), np.abs(matrix).sum(axis=0))
    quick, back = op.quick
    for one, other in rng.normal(size=(3, 2, max(matrix.shape))) * 1e6:
        assert np.array_equal(quick(one[: op.cols]), op.forward(one[: op.cols]))  # to the last bit
        assert np.array_equal(back(other[:cells]), op.transpose(other[:cells]))
    inverse = np.linalg.pinv(matrix.astype(float))
    assert np.allclose(op.pinv(x), x @ inverse.T)
    assert np.allclose(op.pinv_transpose(z), z @ inverse)
    assert np.allclose(op.pinv(x[0]), inverse @ x[0])


def test_divergence_by_hand():
    """One unit along the edge from cell 0 to cell 1, two units that appear in cell 2."""
    op = incidence(3, [(0, 1), (2, -1)])
    assert op.forward(np.array([1, 2])).tolist() == [1, -1, 2]
    assert op.transpose(np.array([5, 3, 7])).tolist() == [2, 7]


def test_the_smallest_flow_by_hand():
    """On a triangle one unit from cell 0 to cell 1 goes two thirds directly and one third round the other way."""
    flow = incidence(3, [(0, 1), (1, 2), (0, 2)]).pinv(np.array([1.0, -1.0, 0.0]))
    assert flow == pytest.approx([2 / 3, -1 / 3, 1 / 3])


@pytest.mark.parametrize("name", GRAPHS)
def test_incidence_is_its_matrix(name):
    check(*GRAPHS[name])


@settings(deadline=None)
@given(data=st.data(), cells=st.integers(1, 9), seed=st.integers(0, 99))
def test_incidence_of_random_graphs(data, cells, seed):
    vertex = st.integers(0, cells - 1)
    pair = st.tuples(vertex, st.integers(-1, cells - 1)).filter(lambda p: p[0] != p[1])
    check(cells, data.draw(st.lists(pair, min_size=1, max_size=20)), seed)


def test_a_selection_is_some_columns_of_the_identity():
    mask = np.array([[True, False], [False, True], [True, True]])
    op = Selection(mask)
    matrix = np.eye(6, dtype=np.int64)[:, mask.ravel()]
    x, y = np.arange(8).reshape(2, 4), np.arange(12).reshape(2, 6)
    assert np.array_equal(op.forward(x), x @ matrix.T)
    assert np.array_equal(op.transpose(y), y @ matrix)
    assert np.array_equal(op.dense(), matrix)
    assert op.forward(x).dtype == np.int64
    assert op.column_norms().tolist() == [1, 1, 1, 1]
