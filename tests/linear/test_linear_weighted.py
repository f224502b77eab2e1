"""Weighted hierarchies, prefix sums with blocks, long differences: dense forms, and exactness in fixed point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.linear import Difference, Haar, Hierarchy, Operator, PrefixBlocks, PseudoInverse
from sfumato.linear.operator import range_weights

SIZES = [1, 2, 3, 5, 8, 9, 16, 23, 40]
LEVELS = [
    ((1,), (3,)),
    ((4, 1), (2, 3)),
    ((4, 2, 1), (3, 2, 5)),
    ((9, 3, 1), (1, 7, 2)),
    ((64, 8, 1), (1, 1, 1)),
    ((168, 1), (3, 1)),
]


def some_ranges(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Fractional ranges, whole ones, empty ones, and those that touch the ends."""
    ends = np.sort(rng.uniform(0, n, (80, 2)), axis=1)
    ends[:30] = np.floor(ends[:30])
    ends[30:35, 1] = n
    ends[33:37, 0] = 0
    return ends[:, 0], ends[:, 1]


def check_against_dense(operator: Operator) -> None:
    rng = np.random.default_rng(operator.rows)
    matrix = operator.dense()
    inverse = np.linalg.pinv(matrix.astype(float))
    x, y = rng.integers(-9, 9, (2, operator.cols)), rng.integers(-9, 9, (2, operator.rows))
    assert (operator.forward(x) == x @ matrix.T).all()
    assert operator.forward(x).dtype == np.int64
    assert (operator.transpose(y) == y @ matrix).all()
    np.testing.assert_allclose(operator.pinv(y.astype(float)), y @ inverse.T, atol=1e-9)
    np.testing.assert_allclose(operator.pinv_transpose(x.astype(float)), x @ inverse, atol=1e-9)
    assert (operator.column_norms() == np.abs(matrix).sum(axis=0)).all()
    low, high = some_ranges(operator.cols, rng)
    second, _ = PseudoInverse(operator).range_moments(low, high)
    felt = range_weights(operator.cols, low, high) @ inverse
    np.testing.assert_allclose(second, (felt**2).sum(axis=1), atol=1e-9)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("blocks", "weights"), LEVELS)
def test_weighted_hierarchy_equals_its_dense_form(n: int, blocks: tuple[int, ...], weights: tuple[int, ...]) -> None:
    check_against_dense(Hierarchy(n, blocks, weights))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("blocks", "weights"), [level for level in LEVELS if len(level[0]) > 1])
def test_prefix_blocks_equal_their_dense_form(n: int, blocks: tuple[int, ...], weights: tuple[int, ...]) -> None:
    check_against_dense(PrefixBlocks(n, blocks, weights))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("stride", [1, 2, 3, 7])
def test_long_differences_equal_their_dense_form(n: int, stride: int) -> None:
    edges = Difference(n, stride)
    matrix = edges.forward(np.eye(edges.cols, dtype=np.int64)).T
    expected = np.zeros((n, max(n - stride, 0)), dtype=np.int64)
    for i in range(n - stride):
        expected[i, i], expected[i + stride, i] = 1, -1
    assert (matrix == expected).all()
    low, high = some_ranges(n, np.random.default_rng(n))
    coefficients, counts = edges.range_terms(low, high)
    felt = range_weights(n, low, high) @ matrix
    for power in (2, 4):
        np.testing.assert_allclose((counts * coefficients**power).sum(axis=1), (felt**power).sum(axis=1), atol=1e-9)


@given(st.integers(1, 40), st.sampled_from(LEVELS), st.integers(0, 2**32 - 1), st.sampled_from([6, 8, 14]))
def test_fixed_point_estimate_moves_with_the_cells_exactly(n: int, level: tuple, seed: int, bits: int) -> None:
    strategy = Hierarchy(n, *level, fraction_bits=bits)
    rng = np.random.default_rng(seed)
    size = 10 ** int(rng.integers(4, 14))  # beyond what a double tells apart behind the point, too
    noise = rng.integers(-size, size, strategy.rows)
    z = rng.integers(-(10**6), 10**6, n)
    plain = strategy.inverse_fixed_point(noise)
    assert (strategy.inverse_fixed_point(noise + strategy.forward(z)) == plain + (z << bits)).all()


@pytest.mark.parametrize("n", SIZES)
def test_fixed_point_estimate_is_the_least_squares_one_up_to_rounding(n: int) -> None:
    rng = np.random.default_rng(n)
    for blocks, weights in LEVELS:
        strategy = Hierarchy(n, blocks, weights)
        noise = rng.integers(-1000, 1000, strategy.rows)
        off = strategy.inverse_fixed_point(noise) / 2**14 - strategy.pinv(noise.astype(float))
        assert np.abs(off).max() <= 2**-15 + 1e-9  # rounded once, to the nearest of 14 bits


@pytest.mark.parametrize("n", [1, 2, 7, 12, 40])
@pytest.mark.parametrize(("blocks", "weights"), [level for level in LEVELS if len(level[0]) > 1])
def test_sensitivities_of_weighted_strategies_equal_brute_force(
    n: int, blocks: tuple[int, ...], weights: tuple[int, ...]
) -> None:
    line = sf.Line(0, 1, cells=n)
    for strategy in (Hierarchy(n, blocks, weights), PrefixBlocks(n, blocks, weights)):
        matrix = strategy.dense()
        for policy in (
            sf.threshold(line, 1),
            sf.threshold(line, 3),
            sf.threshold(line, 5),
            sf.bounded(line),
            sf.unbounded(line),
        ):
            ends = ((matrix[:, u], matrix[:, v] if v >= 0 else 0) for u, v in policy.edges())
            assert policy.sensitivity(strategy) == max((np.abs(a - b).sum() for a, b in ends), default=0)


def test_haar_of_a_long_line_has_the_published_error() -> None:
    """Privelet on 4096 cells under add/remove: 686 (twice the squared scale 13 times the mean squared coefficients)."""
    from sfumato.workload import RANGES

    assert 2 * 13**2 * RANGES.mean_variance(PseudoInverse(Haar(4096))) == pytest.approx(685.5, abs=1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Hierarchy(8, (4, 1), (1,)),
            r"weights=\(1,\) must be whole numbers from 1 to 65536, one for each of \(4, 1\).",
        ),
        (lambda: Hierarchy(8, (4, 1), (0, 1)), r"weights=\(0, 1\) must be whole numbers from 1 to 65536"),
        (lambda: Hierarchy(8, (4, 3, 1)), r"blocks=\(4, 3, 1\) must fall from the largest to 1"),
        (lambda: Hierarchy(8, (4, 1), (2**31, 1)), "must be whole numbers from 1 to 65536"),
        (lambda: PrefixBlocks(8, (4, 1), (2**63 - 1, 1)), "must be whole numbers from 1 to 65536."),
        (lambda: PrefixBlocks(8, (4,), (1,)), "must have at least two levels"),
        (lambda: PrefixBlocks(8, (4, 1), (0, 1)), r"weights=\(0, 1\) must be whole numbers from 1 to 65536."),
    ],
)
def test_wrong_levels_are_refused(build: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        build()  # type: ignore[operator]
