"""Workloads: how many queries there are, and their averages in closed form against the queries written out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.linear import Difference, Haar, Hierarchy, Identity, Prefix, PseudoInverse, nested_blocks
from sfumato.workload import CELLS, PREFIXES, RANGES, axis

KINDS = [CELLS, RANGES, PREFIXES]

LINE = sf.Line(0, 1, cells=4)
GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(3, 5))
TRAMS = sf.Categories(["bus", "tram"])
SIZES = [1, 2, 3, 5, 8, 13]


def written_out(kind, n):
    """Every query of a kind on n cells, one row each."""
    spans = {
        CELLS: [(i, i + 1) for i in range(n)],
        PREFIXES: [(0, i + 1) for i in range(n)],
        RANGES: [(i, j) for i in range(n) for j in range(i + 1, n + 1)],
    }[kind]
    return np.array([[i <= cell < j for cell in range(n)] for i, j in spans], dtype=float)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_numbers_of_queries_by_hand():
    assert [w.count(LINE) for w in (sf.histogram(), sf.prefixes(), sf.ranges())] == [4, 4, 10]
    assert [w.count(GRID) for w in (sf.histogram(), sf.prefixes(), sf.ranges())] == [15, 15, 6 * 15]
    assert sf.ranges([(0, 0.5), (0.5, 1)]).count(LINE) == 2
    assert sf.queries(np.eye(4)[:3]).count(LINE) == 3


def test_workloads_say_themselves():
    for workload, words in [
        (sf.histogram(), "single cells"),
        (sf.ranges(), "all ranges"),
        (sf.prefixes(), "all prefixes"),
        (sf.ranges([(0, 0.5), (0.5, 1)]), "2 given ranges"),
        (sf.ranges((0, 0.5)), "1 given ranges"),
    ]:
        assert workload.describe() == words
    assert sf.queries(np.eye(4)).describe() == "4 given linear queries"
    assert sf.queries(np.eye(4)).spec() == {"kind": "given queries", "count": 4}
    assert sf.ranges().spec() == {"kind": "ranges"}


# --- oracle -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_shares_and_gram_entries_are_those_of_the_queries(kind, n):
    table = written_out(kind, n)
    u, v = (index.ravel() for index in np.indices((n, n)))
    assert kind.count(n) == len(table)
    assert np.allclose(kind.inclusion(n), table.mean(axis=0))
    assert np.allclose(kind.together(n, u, v), (table.T @ table / len(table)).ravel())


@settings(deadline=None)
@given(kind=st.sampled_from(KINDS), n=st.integers(1, 30), seed=st.integers(0, 99))
def test_mean_squares_are_those_of_the_queries(kind, n, seed):
    values = np.random.default_rng(seed).normal(size=(3, n))
    assert np.allclose(kind.mean_square(values), ((values @ written_out(kind, n).T) ** 2).mean(axis=1))


def estimators(n):
    yield Identity(n)
    yield from (PseudoInverse(s) for s in (Identity(n), Prefix(n), Prefix(n, reverse=True), Haar(n)))
    yield from (PseudoInverse(Hierarchy(n, nested_blocks(n, b))) for b in (2, 3))
    if n > 1:
        yield Difference(n)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_mean_variances_are_those_of_the_queries(kind, n):
    table = written_out(kind, n)
    for estimator in estimators(n):
        want = (estimator.transpose(table) ** 2).sum() / len(table)
        assert kind.mean_variance(estimator) == pytest.approx(want), type(estimator).__name__


@pytest.mark.parametrize("kind", KINDS)
def test_beyond_the_exact_length_a_fixed_sample_is_close(kind, monkeypatch):
    """4096 queries drawn by a rule that knows n alone: within 5 % of the exact average, and the same each time."""
    estimator = PseudoInverse(Haar(1000))
    exact = kind.mean_variance(estimator)
    monkeypatch.setattr(axis, "EXACT_LENGTH", 100)
    assert kind.mean_variance(estimator) == pytest.approx(exact, rel=0.05)
    assert kind.mean_variance(estimator) == kind.mean_variance(estimator)
    low, high = kind.sample(1000)
    assert ((low >= 0) & (high > low) & (high <= 1000)).all()


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: sf.ranges().check(TRAMS),
            "all ranges need an order, and the labels of axis 'category' have none. Nothing was computed. "
            "Use sf.histogram() or sf.queries(matrix).",
        ),
        (
            lambda: sf.prefixes().check(TRAMS),
            "all prefixes need an order, and the labels of axis 'category' have none. Nothing was computed. "
            "Use sf.histogram() or sf.queries(matrix).",
        ),
        (lambda: sf.ranges(["a"]), "ranges must be numbers: one row (lo…, hi…) a range."),
        (lambda: sf.ranges([]), "ranges is empty or has too many dimensions: give one row (lo…, hi…) a range."),
        (
            lambda: sf.ranges(np.zeros((2, 2, 2))),
            "ranges is empty or has too many dimensions: give one row (lo…, hi…) a range.",
        ),
        (
            lambda: sf.ranges([(0, 1, 2)]).check(LINE),
            "ranges of shape (1, 3) do not end in 2 numbers. Give (lo…, hi…): 1 lower ends, then 1 upper ends.",
        ),
        (
            lambda: sf.ranges([(1, 0)]).check(LINE),
            "ranges must not be NaN nor end before they begin. Give (lo…, hi…) with lo ≤ hi on each axis.",
        ),
        (
            lambda: sf.queries(np.eye(3)).check(LINE),
            "matrix has 3 columns, but the domain has 4 cells: one column a cell.",
        ),
        (lambda: sf.queries("abc"), "matrix must be a two-dimensional array or sparse matrix of numbers."),
        (lambda: sf.queries(np.zeros((0, 4))), "matrix must have at least one row, and finite entries alone."),
        (lambda: sf.queries([[np.nan]]), "matrix must have at least one row, and finite entries alone."),
    ],
)
def test_queries_that_make_no_sense_are_refused(build, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build()
    assert str(refusal.value) == message


def test_queries_fit_their_domain():
    sf.histogram().check(TRAMS)
    sf.ranges([(0, 0, 1, 1)]).check(GRID)
    sf.queries(sp.eye(15)).check(GRID)
