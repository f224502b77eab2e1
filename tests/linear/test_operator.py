"""Every operator is its matrix: forward, transpose, least squares, norms and pairs of columns."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_oracle import SIZES, haar_matrix, operators, strategies

from sfumato.errors import InvalidInput, TooLarge
from sfumato.linear import Difference, Haar, Hierarchy, Identity, Matrix, Prefix, nested_blocks, operator


def random_integers(rng, *shape):
    return rng.integers(-9, 10, shape)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_prefix_sums_by_hand():
    counts = np.array([5, 0, 2])
    assert Prefix(3).forward(counts).tolist() == [5, 5, 7]
    assert Prefix(3, reverse=True).forward(counts).tolist() == [7, 2, 2]
    assert Prefix(3).pinv(np.array([5, 5, 7])).tolist() == [5, 0, 2]
    assert Prefix(3).column_norms().tolist() == [3, 2, 1]


def test_haar_by_hand():
    """Three cells: the total, the pair against the odd one, and the difference within the pair."""
    assert haar_matrix(3).tolist() == [[1, 1, 1], [1, 1, -1], [1, -1, 0]]
    assert Haar(3).forward(np.array([5, 0, 2])).tolist() == [7, 3, 5]
    assert Haar(3).column_norms().tolist() == [3, 3, 2]
    assert Haar(3).inverse_fixed_point(np.array([7, 3, 5])).tolist() == [4 * 5, 0, 4 * 2]


def test_hierarchy_by_hand():
    """Five cells in pairs in fours in all: the last block of a level is cut short."""
    assert nested_blocks(5, 2) == (8, 4, 2, 1)
    assert nested_blocks(5, 2, root=False) == (4, 2, 1)
    assert nested_blocks(1, 2) == nested_blocks(1, 2, root=False) == (1,)
    assert Hierarchy(5, (4, 2, 1)).forward(np.array([1, 2, 3, 4, 5])).tolist() == [10, 5, 3, 7, 5, 1, 2, 3, 4, 5]


def test_two_equal_measurements_are_averaged():
    """Least squares on a tree of one cell measured twice and once: each value counts the same."""
    assert Hierarchy(1, (2, 1)).pinv(np.array([4.0, 8.0])) == pytest.approx([6.0])


def test_differences_move_counts_and_create_none():
    flow = np.array([3, -1])
    assert Difference(3).forward(flow).tolist() == [3, -4, 1]
    assert Difference(3).transpose(np.array([1, 0, 0])).tolist() == [1, 0]
    assert Difference(1).forward(np.zeros(0, dtype=np.int64)).tolist() == [0]


# --- oracle: implicit equals dense ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
def test_every_operator_is_its_matrix(n):
    rng = np.random.default_rng(n)
    for name, op, matrix in operators(n):
        x, y = random_integers(rng, 2, 3, op.cols), random_integers(rng, 2, 3, op.rows)
        assert (op.rows, op.cols) == matrix.shape, name
        assert np.array_equal(op.forward(x), x @ matrix.T), name
        assert np.array_equal(op.transpose(y), y @ matrix), name
        assert np.array_equal(op.dense(), matrix), name
        assert np.array_equal(op.sparse().toarray(), matrix), name
        assert np.array_equal(op.column_norms(), np.abs(matrix).sum(axis=0)), name


@pytest.mark.parametrize("n", SIZES)
def test_every_strategy_is_inverted_by_least_squares(n):
    rng = np.random.default_rng(n)
    for name, op, matrix in strategies(n):
        inverse = np.linalg.pinv(matrix.astype(float))
        y, q = rng.normal(size=(2, op.rows)), rng.normal(size=(2, n))
        assert np.allclose(op.pinv(y), y @ inverse.T), name
        assert np.allclose(op.pinv_transpose(q), q @ inverse), name


@pytest.mark.slow  # dense matrices of many lengths
@settings(deadline=None)
@given(n=st.integers(1, 70), branching=st.integers(2, 9), root=st.booleans(), seed=st.integers(0, 99))
def test_hierarchies_of_any_length_and_branching(n, branching, root, seed):
    rng = np.random.default_rng(seed)
    op = Hierarchy(n, nested_blocks(n, branching, root=root))
    inverse = np.linalg.pinv(op.dense().astype(float))
    y = rng.normal(size=op.rows)
    assert np.allclose(op.pinv(y), inverse @ y)
    assert np.allclose(op.pinv_transpose(y[:n]), inverse.T @ y[:n])


@pytest.mark.parametrize("n", SIZES)
def test_integers_stay_integers(n):
    rng = np.random.default_rng(n)
    for name, op, _ in operators(n):
        assert op.forward(random_integers(rng, op.cols)).dtype == np.int64, name
        assert op.transpose(random_integers(rng, op.rows)).dtype == np.int64, name


# --- the fixed-point inverse: what keeps wavelet noise on edges private -----------------------------------------------


@settings(deadline=None)
@given(n=st.integers(1, 80), seed=st.integers(0, 999), size=st.sampled_from([3, 10**4, 10**9]))
def test_haar_inverse_in_fixed_point_moves_by_exactly_what_went_in(n, seed, size):
    """B⁻¹(η + B·z) = B⁻¹η + z, in integers: the fraction that is left over is that of the noise alone."""
    rng = np.random.default_rng(seed)
    haar, noise, z = Haar(n), rng.integers(-size, size, n), rng.integers(-size, size, n)
    moved = haar.inverse_fixed_point(noise + haar.forward(z))
    assert np.array_equal(moved, haar.inverse_fixed_point(noise) + (z << haar.levels))


@pytest.mark.parametrize("n", SIZES)
def test_haar_inverse_in_fixed_point_is_the_inverse(n):
    noise = np.random.default_rng(n).integers(-1000, 1000, (2, n))
    assert np.allclose(Haar(n).inverse_fixed_point(noise) / 2.0 ** Haar(n).levels, Haar(n).pinv(noise))


# --- pairs of columns -------------------------------------------------------------------------------------------------


def kinds(matrix, pairs):
    """The multisets of (A[r, u], A[r, v]) that occur, up to the sign of a row, which no absolute value can see."""
    found = set()
    for u, v in pairs:
        seen = [max((int(a), int(b)), (-int(a), -int(b))) for a, b in zip(matrix[:, u], matrix[:, v], strict=True)]
        found.add(tuple(sorted(pair for pair in seen if pair != (0, 0))))
    return found


def told(types):
    found = set()
    for row in types.counts:
        seen = []
        for (a, b), often in zip(types.values.tolist(), row.tolist(), strict=True):
            seen += [max((a, b), (-a, -b))] * (often if (a, b) != (0, 0) else 0)
        found.add(tuple(sorted(seen)))
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 11, 16, 17])
def test_pair_types_of_an_offset_leave_out_only_what_another_one_holds(n):
    for name, op, matrix in strategies(n):
        for offset in range(-n + 1, n):
            every = kinds(matrix, [(u, u + offset) for u in range(n) if 0 <= u + offset < n])
            some = told(op.pair_types(offset))
            assert some <= every, (name, offset)
            assert all(any(holds(kind, other) for other in some) for kind in every), (name, offset)


def holds(part, whole):
    """Whether a type has every pair of another as often: it is then at least as far apart, also in any product."""
    return not Counter(part) - Counter(whole)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 11])
def test_pair_types_of_all_pairs_leave_out_only_what_another_one_holds(n):
    for name, op, matrix in strategies(n):
        every = kinds(matrix, [(u, v) for u in range(n) for v in range(n)])
        some = told(op.pair_types(None))
        assert some <= every, name
        assert all(any(holds(kind, other) for other in some) for kind in every), name


def test_pair_types_keep_fractions():
    """A strategy with halves must not be taken for one with zeros: that would make a sensitivity too small."""
    types = Matrix(np.array([[0.5, 0.0], [0.5, -0.5]])).pair_types(1)
    assert told(types) == {((0.5, -0.5), (0.5, 0.0))}


# --- matrices that users write ----------------------------------------------------------------------------------------


def test_narrow_and_unsigned_matrices_do_not_wrap_around():
    assert Matrix(np.array([[127, -128]], dtype=np.int8)).dense().dtype == np.int64
    assert Matrix(np.array([[0, 200]], dtype=np.uint8)).dense().tolist() == [[0, 200]]
    assert Matrix(np.array([[True, False]])).dense().tolist() == [[1, 0]]
    assert Matrix(np.array([[1.0, 2.0]])).dense().dtype == np.int64
    assert Matrix(np.array([[1.5, 2.0]])).dense().dtype == np.float64
    assert Matrix(np.array([[2**63]], dtype=np.uint64)).dense().tolist() == [[2.0**63]]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[np.nan, 1.0]], "matrix holds entries that are not finite numbers."),
        ([[np.inf, 1.0]], "matrix holds entries that are not finite numbers."),
        ([[1j, 1.0]], "matrix holds entries of type complex128; give real numbers."),
        ([["a", "b"]], "matrix must be a two-dimensional array or sparse matrix of numbers."),
        (np.zeros((2, 2, 2)), "matrix must be a two-dimensional array or sparse matrix of numbers."),
        (None, "matrix must be a two-dimensional array or sparse matrix of numbers."),
    ],
)
def test_what_is_not_a_matrix_of_numbers_is_refused(matrix, message):
    with pytest.raises(InvalidInput) as refusal:
        Matrix(matrix)
    assert str(refusal.value) == message


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [(), (4, 2), (4, 3, 1), (2, 4, 1), (2, 2, 1)])
def test_blocks_that_do_not_nest_are_refused(blocks):
    with pytest.raises(InvalidInput) as refusal:
        Hierarchy(8, blocks)
    assert str(refusal.value) == f"blocks={blocks} must fall from the largest to 1, each a multiple of the next one."


@pytest.mark.parametrize("method", ["pinv", "pinv_transpose"])
def test_an_operator_without_a_structured_inverse_says_so(method):
    with pytest.raises(InvalidInput) as refusal:
        getattr(Difference(4), method)(np.zeros(4))
    assert str(refusal.value) == "Difference has no structured pseudo-inverse."


def test_large_operators_are_not_written_out(monkeypatch):
    with pytest.raises(TooLarge) as refusal:
        Identity(10_000).sparse()
    assert str(refusal.value) == (
        "Identity of 10000 × 10000 entries is too large to be written out (at most 60,000,000)."
    )
    monkeypatch.setattr(operator, "LARGEST_EXPLICIT", 100)
    with pytest.raises(TooLarge) as refusal:
        Matrix(np.eye(10)).pair_types(None)
    assert str(refusal.value) == "Matrix with 10 columns has too many pairs of columns to compare."


@pytest.mark.parametrize("most", [1 << 16, 4], ids=["a table", "sorting"])
@pytest.mark.parametrize("entries", [range(-2, 3), range(400)], ids=["few values", "many values"])
def test_types_of_pairs_are_counted_alike_by_a_table_and_by_sorting(entries, most, monkeypatch):
    """And in parts: what stands beside what in two columns, each kind as often as it does."""
    monkeypatch.setattr("sfumato.linear.operator.HELD", 64)
    monkeypatch.setattr("sfumato.linear.operator.MOST_VALUE_PAIRS", most)
    table = np.random.default_rng(7).choice(np.array(entries), (9, 12))
    u, v = (index.ravel() for index in np.indices((12, 12)))
    types = Matrix(table).types_of_pairs(u, v)
    shown = {tuple(sorted(zip(map(tuple, types.values.tolist()), row, strict=True))) for row in types.counts.tolist()}
    kinds = sorted(set(zip(table[:, u].ravel().tolist(), table[:, v].ravel().tolist(), strict=True)))
    for a, b in zip(u, v, strict=True):
        beside = list(zip(table[:, a].tolist(), table[:, b].tolist(), strict=True))
        assert tuple((kind, beside.count(kind)) for kind in kinds) in shown
    assert len(shown) == len(
        {tuple(sorted(zip(table[:, a], table[:, b], strict=True))) for a, b in zip(u, v, strict=True)}
    )
