"""The queries along one axis against the same queries written out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.linear import Difference, Haar, Hats, Hierarchy, Identity, Prefix, PseudoInverse, nested_blocks
from sfumato.linear.estimator import box_weights
from sfumato.workload import CELLS, PREFIXES, RANGES, TOTAL, Blocks, Given, Groups, Part

SIZES = [1, 2, 3, 5, 8, 13]
SOME = Given(np.array([0.0, 0.5, 0.25]), np.array([1.0, 1.0, 0.75]))  # in shares of an axis, which `kinds` stretches


def kinds(n):
    given = Given(SOME.low * n, SOME.high * n)
    groups = [Groups("run", np.arange(n) // 2), Groups("mixed", np.arange(n) % 3)]  # in runs, and not
    return [CELLS, RANGES, PREFIXES, TOTAL, Blocks(2), Blocks(3), Blocks(n + 1), given, *groups]


def written_out(kind, n):
    """Every query, one row each."""
    if isinstance(kind, Given):
        return box_weights((n,), kind.low[:, None], kind.high[:, None])
    if isinstance(kind, Groups):
        return (kind.of == np.arange(kind.of.max() + 1)[:, None]).astype(float)
    spans = {
        CELLS: [(i, i + 1) for i in range(n)],
        PREFIXES: [(0, i + 1) for i in range(n)],
        RANGES: [(i, j) for i in range(n) for j in range(i + 1, n + 1)],
        TOTAL: [(0, n)],
    }
    length = getattr(kind, "length", 1)
    blocks = [(i, min(i + length, n)) for i in range(0, n, length)]
    return np.array([[i <= c < j for c in range(n)] for i, j in spans.get(kind, blocks)], dtype=float)


def estimators(n):
    yield Identity(n)
    strategies = [Identity(n), Prefix(n), Haar(n), Hierarchy(n, nested_blocks(n, 2))]
    if n >= 5:
        strategies.append(Hats(n, (2,), (3, 2)))
    yield from (PseudoInverse(strategy) for strategy in strategies)
    if n > 1:
        yield Difference(n)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_numbers_of_queries_by_hand():
    assert [kind.count(7) for kind in (CELLS, RANGES, PREFIXES, TOTAL, Blocks(3), SOME)] == [7, 28, 7, 1, 3, 3]
    assert Part(Fraction(1), (RANGES, TOTAL, Blocks(2))).count((4, 9, 5)) == 10 * 1 * 3


def test_given_ranges_along_two_axes_go_in_step():
    part = Part(Fraction(1), (SOME, CELLS, SOME))
    assert part.count((1, 4, 1)) == 3 * 4


def test_kinds_are_values():
    assert Blocks(3) == Blocks(3) != Blocks(4) and len({TOTAL, type(TOTAL)(), RANGES, CELLS}) == 3


# --- oracle -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
def test_shares_gram_entries_and_roots_are_those_of_the_queries(n):
    u, v = (index.ravel() for index in np.indices((n, n)))
    values = np.random.default_rng(n).normal(size=(3, n))
    for kind in kinds(n):
        table = written_out(kind, n)
        gram = table.T @ table / len(table)
        assert kind.count(n) == len(table)
        assert np.allclose(kind.inclusion(n), table.mean(axis=0))
        assert np.allclose(kind.together(n, u, v), gram.ravel()) and np.allclose(kind.gram(n), gram)
        assert np.allclose(kind.together(n, u[:1], v[:1]), gram[0, 0])
        assert np.allclose((kind.root(values) ** 2).sum(axis=-1), ((values @ table.T) ** 2).mean(axis=1))
        assert np.allclose(np.mean(kind.held(n, n - 1)), (table[:, n - 1] ** 2).mean())


@pytest.mark.parametrize("n", SIZES)
def test_mean_variances_are_those_of_the_queries(n):
    for kind in kinds(n):
        table = written_out(kind, n)
        for estimator in estimators(n):
            each = (estimator.transpose(table) ** 2).sum(axis=1)
            assert kind.mean_variance(estimator) == pytest.approx(each.mean()), type(estimator).__name__
            assert np.allclose(np.mean(kind.variances(estimator)), each.mean())
            assert kind.steps is None or np.allclose(kind.variances(estimator), each)


@settings(deadline=None)
@given(n=st.integers(1, 40), length=st.integers(1, 45), own=st.integers(1, 45))
def test_what_blocks_explain_is_a_trace(n, length, own):
    first = np.arange(n) // length
    same = first[:, None] == first[None, :]
    projection = same / same.sum(axis=1)
    for kind in [Blocks(own), *kinds(n)]:
        table = written_out(kind, n)
        want = np.trace(table.T @ table @ projection) / len(table)
        assert kind.explained(n, length) == pytest.approx(want)


@pytest.mark.parametrize("n", SIZES)
def test_nuclear_norms_are_sums_of_singular_values(n):
    for kind in kinds(n):
        table = written_out(kind, n)
        want = np.linalg.svd(table, compute_uv=False).sum() / np.sqrt(len(table))
        assert kind.nuclear_norm(n) is None or kind.nuclear_norm(n) == pytest.approx(want)
    assert all(kind.nuclear_norm(n) is not None for kind in kinds(n) if not isinstance(kind, Given))


@pytest.mark.parametrize("chosen", range(8))
def test_mean_squares_and_grams_of_parts_are_those_of_products(chosen):
    shape, rng = (4, 3, 5), np.random.default_rng(chosen)
    values = rng.normal(size=shape)
    for _ in range(6):
        pick = [kinds(n)[i] for n, i in zip(shape, rng.integers(0, 8, 3), strict=True)]
        part = Part(Fraction(1), tuple(pick))
        tables = [written_out(kind, n) for kind, n in zip(pick, shape, strict=True)]
        steps = [axis for axis, kind in enumerate(pick) if kind.steps]
        rows = []
        for index in np.ndindex(*(len(table) for table in tables)):
            if len({index[axis] for axis in steps}) < 2:
                row = np.ones(1)
                for table, i in zip(tables, index, strict=True):
                    row = np.kron(row, table[i])
                rows.append(row)
        whole = np.array(rows)
        assert part.count(shape) == len(whole)
        assert np.allclose(part.gram(shape), whole.T @ whole / len(whole))
        assert part.mean_square(values) == pytest.approx(((whole @ values.ravel()) ** 2).mean())
        assert part.held(shape, (3, 1, 2)) == pytest.approx((whole.reshape(-1, *shape)[:, 3, 1, 2] ** 2).mean())


def test_samples_lie_in_the_domain():
    for kind in kinds(13):
        low, high = kind.sample(13)
        assert ((low >= 0) & (high > low) & (high <= 13)).all()
    low, high = Part(Fraction(1), (RANGES, Blocks(4))).sample((50, 9), 100)
    assert low.shape == high.shape == (100, 2) and (high <= (50, 9)).all()


def test_long_lists_are_thinned_out():
    low, high = Blocks(2).listed(200_001)
    assert len(low) == 1 << 15 and high.max() <= 200_001 and (np.diff(low) > 0).all()
