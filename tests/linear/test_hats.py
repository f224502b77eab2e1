"""Hats: whole numbers with equal column sums, least squares, and variances without the matrix."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidInput
from sfumato.linear import Hats, Kronecker, PseudoInverse
from sfumato.linear.operator import range_weights
from sfumato.mechanism.cells.hat_tuning import best_hats

CASES = [
    (1, (), (3,)),
    (2, (), (1,)),
    (3, (), (5,)),
    (5, (2,), (3, 4)),
    (7, (2,), (256, 256)),
    (13, (5, 2), (3, 4, 5)),
    (37, (11, 3), (330, 350, 344)),
    (64, (20,), (1, 1)),  # so coarse that hats which overlap do not meet in any cell
    (50, (18, 3, 2), (1, 1, 2, 1)),
    (101, (30, 10, 3), (100, 120, 90, 200)),
    (97, (38, 2), (65536, 1, 65536)),
]


@st.composite
def any_hats(draw):
    n = draw(st.integers(1, 60))
    allowed = st.integers(2, max(2 * n // 5, 2))
    widths = sorted(draw(st.sets(allowed, max_size=3)) if n >= 5 else set(), reverse=True)
    most = draw(st.sampled_from([2, 20, 1000]))
    return n, tuple(widths), tuple(draw(st.integers(1, most)) for _ in range(len(widths) + 1))


def matrix(n, widths, weights):
    """The definition, cell by cell in exact fractions."""
    columns = [[] for _ in range(n)]
    left = [sum(weights)] * n
    for level, width in enumerate(widths):
        m = floor(Fraction(n, width) + Fraction(1, 2))
        crowded = Fraction(6 if level == 0 else 0, 16)
        knots = []
        for j in range(m + 1):
            u = Fraction(j, m)
            knots.append(Fraction(floor(64 * n * (u - crowded * (u - 3 * u**2 + 2 * u**3))), 64))
        rows = np.zeros((m + 1, n), dtype=np.int64)
        place = []
        for cell in range(n):
            middle = cell + Fraction(1, 2)
            j = max(j for j in range(m) if knots[j] <= middle)
            share = left[cell] * weights[level] // sum(weights[level:])
            after = floor(share * (middle - knots[j]) / (knots[j + 1] - knots[j]) + Fraction(1, 2))
            rows[j, cell], rows[j + 1, cell] = share - after, after
            place.append(j)
        for cell in range(n):  # no entry is above one that a hat has later on its way up, or earlier on its way down
            j, same = place[cell], [c for c in range(n) if place[c] == place[cell]]
            rising, falling = (rows[j + 1, c] for c in same if c >= cell), (rows[j, c] for c in same if c <= cell)
            hats = [0] * (m + 1)
            hats[j], hats[j + 1] = min(falling), min(rising)
            columns[cell] += hats[1:-1]
            left[cell] -= sum(hats[1:-1])
    return np.concatenate([np.array(columns, dtype=np.int64).reshape(n, -1).T, np.diag(left)])


def covariance(hats):
    dense = hats.dense().astype(float)
    return np.linalg.inv(dense.T @ dense)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_two_hats_over_eight_cells_by_hand():
    """Knots at 0, 2.4, 5.5 and 8; every cell gives away 8 and keeps at least its half."""
    hats = Hats(8, [3], [4, 4])
    assert hats.dense()[:2].tolist() == [[1, 2, 4, 3, 1, 0, 0, 0], [0, 0, 0, 1, 3, 4, 2, 1]]
    assert hats.dense()[2:].diagonal().tolist() == [7, 6, 4, 4, 4, 4, 6, 7]
    assert hats.forward(np.array([0, 0, 5, 0, 0, 0, 0, 1])).tolist() == [20, 1, 0, 0, 20, 0, 0, 0, 0, 7]
    assert hats.farthest(np.array([1])) == 2 * 8 - 2 * 1  # the first two cells share one: 1 of their hat
    assert hats.farthest(np.arange(1, 8)) == 16


def test_without_a_width_only_the_cells_are_left():
    hats = Hats(3, [], [2])
    assert hats.dense().tolist() == np.diag([2, 2, 2]).tolist()
    assert hats.pinv(np.array([2, 4, 6])).tolist() == [1, 2, 3]
    assert hats.prefix_variances().tolist() == [0.25, 0.5, 0.75]


# --- oracle -----------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(given_hats=any_hats())
def test_entries_follow_the_definition_and_columns_sum_alike(given_hats):
    hats = Hats(*given_hats)
    dense = hats.dense()
    assert np.array_equal(dense, matrix(*given_hats))
    assert (dense >= 0).all()
    assert (dense.sum(axis=0) == hats.total).all()
    assert (dense[hats.hats :].diagonal() >= 1).all()  # so that every cell is determined
    assert np.array_equal(hats.column_norms(), dense.sum(axis=0))


@pytest.mark.parametrize(("n", "widths", "weights"), CASES)
def test_integers_stay_integers_and_equal_the_matrix(n, widths, weights):
    rng = np.random.default_rng(n)
    hats = Hats(n, widths, weights)
    dense = hats.dense()
    x, y = rng.integers(-(10**9), 10**9, (2, 3, n)), rng.integers(-(10**9), 10**9, (2, 3, hats.rows))
    assert hats.forward(x).dtype == hats.transpose(y).dtype == np.int64
    assert np.array_equal(hats.forward(x), x @ dense.T)
    assert np.array_equal(hats.transpose(y), y @ dense)
    assert np.array_equal(hats.sparse().toarray(), dense)


@pytest.mark.parametrize(("n", "widths", "weights"), CASES)
def test_least_squares_equals_the_dense_one(n, widths, weights):
    rng = np.random.default_rng(n)
    hats = Hats(n, widths, weights)
    inverse = np.linalg.pinv(hats.dense().astype(float))
    y, q = rng.normal(size=(2, 3, hats.rows)), rng.normal(size=(2, 3, n))
    np.testing.assert_allclose(hats.pinv(y), y @ inverse.T, atol=1e-9)
    np.testing.assert_allclose(hats.pinv_transpose(q), q @ inverse, atol=1e-9)


@settings(deadline=None)
@given(given_hats=any_hats(), seed=st.integers(0, 999))
def test_variances_of_ranges_prefixes_and_cells_equal_the_dense_ones(given_hats, seed):
    rng = np.random.default_rng(seed)
    hats, n = Hats(*given_hats), given_hats[0]
    sigma = covariance(hats)
    ends = np.sort(rng.uniform(0, n, (40, 2)), axis=1)
    ends[:20] = np.floor(ends[:20])
    ends[20:24] = [(0, n), (n, n), (0, 0), (0, 0.5)]
    ranges = range_weights(n, ends[:, 0], ends[:, 1])
    scale = sigma.max()
    second, fourth = PseudoInverse(hats).range_moments(ends[:, 0], ends[:, 1])
    np.testing.assert_allclose(second, np.einsum("ri,ij,rj->r", ranges, sigma, ranges), atol=1e-9 * n * scale)
    assert (fourth >= 0).all()
    np.testing.assert_allclose(hats.cell_variances(), sigma.diagonal(), rtol=1e-9)
    below = np.tri(n)
    np.testing.assert_allclose(hats.prefix_variances(), np.diag(below @ sigma @ below.T), rtol=1e-8)
    cells = np.arange(n, dtype=float)
    np.testing.assert_allclose(hats.inverse_range_moments(cells, cells + 1)[0], sigma.diagonal(), rtol=1e-8)


@settings(deadline=None)
@given(given_hats=any_hats(), theta=st.integers(1, 59))
def test_farthest_columns_equal_brute_force(given_hats, theta):
    n = given_hats[0]
    hats = Hats(*given_hats)
    dense = hats.dense()
    pairs = [(u, v) for u in range(n) for v in range(u + 1, min(n, u + theta + 1))]
    apart = max((int(np.abs(dense[:, u] - dense[:, v]).sum()) for u, v in pairs), default=0)
    assert hats.farthest(np.arange(1, theta + 1)) == apart


@settings(deadline=None)
@given(given_hats=any_hats())
def test_every_row_rises_and_then_falls(given_hats):
    """What the farthest columns are concluded from; also under weights of few steps, where rounding alone would dip."""
    hats = Hats(*given_hats)
    for row in hats.dense():
        top = int(row.argmax())
        assert (np.diff(row[: top + 1]) >= 0).all()
        assert (np.diff(row[top:]) <= 0).all()


@pytest.mark.parametrize("n", range(5, 41))
def test_the_outermost_cells_share_no_hat(n):
    """What the sensitivity under replace-one rests on: it is twice the column sum, on a line and in products."""
    for width in range(2, 2 * n // 5 + 1):
        first, last = Hats(n, [width], [65536, 1]).dense()[:, [0, -1]].T
        assert not (first * last).any()
    small = Hats(n, [2], [3, 2])
    types = small.pair_types(None)
    distances = types.counts @ np.abs(types.values[:, 0] - types.values[:, 1])
    dense = small.dense()
    assert distances.max() == max(np.abs(dense[:, [u]] - dense).sum(axis=0).max() for u in range(n))


def test_products_of_hats_are_as_far_apart_as_brute_force_says():
    small, narrow = Hats(6, [2], [3, 2]), Hats(5, [2], [1, 4])
    dense = Kronecker([small, narrow]).dense()
    assert max(np.abs(dense[:, [u]] - dense).sum(axis=0).max() for u in range(30)) == 2 * small.total * narrow.total


@pytest.mark.parametrize(
    ("n", "widths", "weights"),
    [case for case in CASES if case[1]] + [(188, (68,), (14, 16)), (256, (20,), (1, 1)), (256, *best_hats(256, False))],
)
def test_no_coefficient_of_any_range_reaches_the_bound_that_intervals_use(n, widths, weights):
    hats = Hats(n, widths, weights)
    prefixes = np.concatenate([np.zeros((1, hats.rows)), hats.pinv_transpose(np.tri(n))])
    spread = prefixes.max(axis=0) - prefixes.min(axis=0)  # a range is the difference of two prefixes
    assert spread.max() < 0.7 * hats.inverse_largest_coefficient


def test_a_long_line_is_solved_without_its_matrix():
    """100,000 cells: what goes in exactly comes out, and the pass over all prefixes agrees with single solutions."""
    n = 100_000
    hats = Hats(n, *best_hats(n, False))
    x = np.random.default_rng(1).integers(0, 1000, n)
    np.testing.assert_allclose(hats.pinv(hats.forward(x)), x, atol=1e-8)
    ends = np.linspace(1, n, 23).astype(np.int64)
    single = hats.inverse_range_moments(np.zeros(23), ends.astype(float))[0]
    np.testing.assert_allclose(hats.prefix_variances()[ends - 1], single, rtol=1e-9)
    cells = ends - 1.0
    single = hats.inverse_range_moments(cells, cells + 1)[0]
    np.testing.assert_allclose(hats.cell_variances()[ends - 1], single, rtol=1e-9)


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("widths", [(3, 3), (3, 4), (1,), (5,)])
def test_widths_that_do_not_fall_or_do_not_fit_are_refused(widths):
    with pytest.raises(InvalidInput) as refusal:
        Hats(11, widths, (1,) * (len(widths) + 1))
    assert str(refusal.value) == (
        f"widths={widths} must fall, and lie between 2 and 2/5 of the line: here 4 cells. "
        "Nothing was drawn or recorded."
    )


@pytest.mark.parametrize("weights", [(1,), (1, 0), (1, 65537), (1, 1, 1)])
def test_weights_that_do_not_fit_are_refused(weights):
    with pytest.raises(InvalidInput) as refusal:
        Hats(11, (3,), weights)
    assert str(refusal.value) == (
        f"weights={weights} must be whole numbers from 1 to 65536, one for each of (3,) and one for the cells. "
        "Nothing was drawn or recorded."
    )


@pytest.mark.parametrize("n", [5, 40, 300])
def test_ranges_from_the_table_of_prefixes_equal_those_solved_one_by_one(n, monkeypatch):
    """Whole cells, cut cells, slivers of a cell, the whole line; the table is kept for short lines alone."""
    strategy = Hats(n, *best_hats(n, False))
    ends = np.sort(np.random.default_rng(n).uniform(0, n, (200, 2)), axis=1)
    ends[:60] = np.floor(ends[:60])
    ends[60:80, 1] = ends[60:80, 0] + 1e-4
    ends[80] = 0, n
    low, high = np.clip(ends, 0, n).T
    tabled = strategy.inverse_range_moments(low, high)[0]
    monkeypatch.setattr("sfumato.linear.hat_variances.TABLED", 0)
    assert np.allclose(tabled, strategy.inverse_range_moments(low, high)[0], rtol=1e-9, atol=1e-18)
