"""Operators made of operators are the matrices made of their matrices; ranges are felt as dense algebra says."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_oracle import SIZES, difference_matrix, range_matrix, some_ranges, strategies

from sfumato.errors import InvalidInput
from sfumato.linear import (
    Difference,
    Embedded,
    Haar,
    Hierarchy,
    Identity,
    Kronecker,
    Prefix,
    Product,
    PseudoInverse,
    Stack,
    nested_blocks,
)
from sfumato.linear.operator import range_weights

KINDS = ["identity", "prefix", "haar", "hierarchy"]


def make(kind, n):
    blocks = nested_blocks(n, 2)
    return {"identity": Identity, "prefix": Prefix, "haar": Haar, "hierarchy": lambda n: Hierarchy(n, blocks)}[kind](n)


# --- stacks, products, Kronecker products -----------------------------------------------------------------------------


def test_a_stack_by_hand():
    stack = Stack([Identity(2), Prefix(2)])
    assert stack.forward(np.array([3, 4])).tolist() == [3, 4, 3, 7]
    assert stack.transpose(np.array([1, 0, 0, 1])).tolist() == [2, 1]
    assert stack.column_norms().tolist() == [3, 2]


def test_a_product_by_hand():
    """Differences undo prefix sums, but for what leaves at the upper end."""
    product = Product(Prefix(3), Difference(3))
    assert product.dense().tolist() == [[1, 0], [0, 1], [0, 0]]


@settings(deadline=None)
@given(n=st.integers(1, 12), kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3), seed=st.integers(0, 99))
def test_stacks_and_products_are_those_of_the_matrices(n, kinds, seed):
    rng = np.random.default_rng(seed)
    parts = [make(kind, n) for kind in kinds]
    product = Product(parts[0], PseudoInverse(parts[-1]))
    cases = [(Stack(parts), np.vstack([part.dense() for part in parts])), (product, product.dense())]
    assert np.allclose(product.dense(), parts[0].dense() @ np.linalg.pinv(parts[-1].dense().astype(float)))
    for op, matrix in cases:
        x, y = rng.normal(size=(2, op.cols)), rng.normal(size=(2, op.rows))
        assert np.allclose(op.forward(x), x @ matrix.T)
        assert np.allclose(op.transpose(y), y @ matrix)
        assert np.allclose(op.sparse().toarray(), matrix)
        assert np.allclose(op.column_norms(), np.abs(matrix).sum(axis=0))


@settings(deadline=None, max_examples=50)
@given(
    factors=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 5)), min_size=1, max_size=3),
    seed=st.integers(0, 99),
)
def test_kronecker_products_act_along_every_axis(factors, seed):
    rng = np.random.default_rng(seed)
    parts = [make(kind, n) for kind, n in factors]
    op = Kronecker(parts)
    matrix = reduce(np.kron, [part.dense() for part in parts])
    inverse = np.linalg.pinv(matrix.astype(float))
    x, y = rng.integers(-9, 9, (2, op.cols)), rng.integers(-9, 9, (2, op.rows))
    assert np.array_equal(op.forward(x), x @ matrix.T)
    assert op.forward(x).dtype == op.transpose(y).dtype == np.int64
    assert np.array_equal(op.transpose(y), y @ matrix)
    assert np.allclose(op.pinv(y.astype(float)), y @ inverse.T)
    assert np.allclose(op.pinv_transpose(x.astype(float)), x @ inverse)
    assert np.array_equal(op.sparse().toarray(), matrix)
    assert np.array_equal(op.column_norms(), np.abs(matrix).sum(axis=0))


# --- ranges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
def test_cut_cells_count_in_proportion(n):
    low, high = some_ranges(n, np.random.default_rng(n))
    assert np.allclose(range_weights(n, low, high), range_matrix(n, low, high))


def estimators(n):
    for name, op, matrix in strategies(n):
        yield name, PseudoInverse(op), np.linalg.pinv(matrix.astype(float))
    yield "cells", Identity(n), np.eye(n)
    if n > 1:
        yield "difference", Difference(n), difference_matrix(n)


@pytest.mark.parametrize("n", SIZES)
def test_a_range_feels_each_noise_as_dense_algebra_says(n):
    """Coefficients as lists, where the structure gives such a list: the same ones, apart from zeros and
    signs (the noise is symmetric).
    """
    low, high = some_ranges(n, np.random.default_rng(n))
    listed = set()
    for name, estimator, matrix in estimators(n):
        terms = estimator.range_terms(low, high)
        if terms is None:
            continue
        listed.add(name)
        coefficients, counts = terms
        counts = np.broadcast_to(counts, coefficients.shape)
        felt = range_matrix(n, low, high) @ matrix
        for row in range(len(low)):
            got = np.repeat(coefficients[row], counts[row])
            got, want = (np.sort(np.abs(c[np.abs(c) > 1e-12])) for c in (got, felt[row]))
            assert np.allclose(got, want), (name, low[row], high[row])
    assert {"identity", "cells", "prefix", "prefix reversed", "haar"} <= listed


@pytest.mark.parametrize("n", SIZES)
def test_the_moments_of_a_range_are_those_of_its_coefficients(n):
    low, high = some_ranges(n, np.random.default_rng(n))
    for name, estimator, matrix in estimators(n):
        second, fourth = estimator.range_moments(low, high)
        felt = range_matrix(n, low, high) @ matrix
        assert np.allclose(second, (felt**2).sum(axis=1)), name
        if not name.startswith("hierarchy"):
            assert np.allclose(fourth, (felt**4).sum(axis=1)), name


@settings(deadline=None)
@given(n=st.integers(1, 100), branching=st.integers(2, 9), root=st.booleans(), seed=st.integers(0, 99))
def test_a_hierarchy_knows_the_variance_of_every_range(n, branching, root, seed):
    low, high = some_ranges(n, np.random.default_rng(seed), count=30)
    estimator = PseudoInverse(Hierarchy(n, nested_blocks(n, branching, root=root)))
    felt = estimator.transpose(range_matrix(n, low, high))
    assert np.allclose(estimator.range_moments(low, high)[0], (felt**2).sum(axis=1))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_an_estimator_says_which_strategy_it_inverts(n):
    """A⁺·A·A⁺ = A⁺; factor by factor in a product, and the same on some cells of a line. Others invert nothing."""
    across = Kronecker([PseudoInverse(Haar(n)), Difference(n + 1)])
    spread = Embedded(PseudoInverse(Prefix(n)), 2 * np.arange(n), 2 * n)
    for name, estimator, matrix in estimators(n):
        strategy = estimator.inverts().dense()
        if isinstance(estimator, PseudoInverse):
            assert np.allclose(matrix @ strategy @ matrix, matrix), name
        else:
            assert np.array_equal(strategy, np.eye(estimator.cols)), name
    assert np.array_equal(PseudoInverse(Prefix(n)).inverts().dense(), Prefix(n).dense())
    assert np.array_equal(Difference(n + 1).inverts().dense(), np.eye(n))
    assert np.array_equal(spread.inverts().dense(), Prefix(n).dense())
    assert np.array_equal(across.inverts().dense(), np.kron(Haar(n).dense(), np.eye(n)))


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [[], [Identity(2), Identity(3)]])
def test_a_stack_of_unequal_parts_is_refused(parts):
    with pytest.raises(InvalidInput) as refusal:
        Stack(parts)
    assert str(refusal.value) == "a stack needs operators over the same number of columns."


def test_a_product_of_unequal_sizes_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        Product(Identity(2), Identity(3))
    assert str(refusal.value) == "a product needs inner sizes that agree, not 2 columns and 3 rows."
