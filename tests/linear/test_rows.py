"""Each row of a table once, by one number a row where it fits into one: as a comparison of whole rows finds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sfumato.linear import distinct, distinct_rows

LARGEST = np.iinfo(np.int64).max
TABLES = arrays.arrays(
    np.int64,
    st.tuples(st.integers(0, 8), st.integers(1, 5)),
    elements=st.one_of(st.integers(-2, 2), st.integers(-LARGEST - 1, LARGEST)),
)


@given(TABLES)
def test_the_rows_are_those_that_whole_comparisons_find(table: np.ndarray) -> None:
    found, want = distinct_rows(table), np.unique(table, axis=0)
    assert np.array_equal(found, want)
    assert (found.dtype, found.shape) == (want.dtype, want.shape)


@pytest.mark.parametrize("top", [(1 << 31) - 2, (1 << 31) - 1, 1 << 31, 1 << 32, LARGEST])
def test_numbers_that_just_fit_and_just_do_not(top: int) -> None:
    table = np.array([[top, 0], [0, top], [top, top], [0, 0], [0, top], [top, -1], [top, 0]])
    assert distinct_rows(table).tolist() == [[0, 0], [0, top], [top, -1], [top, 0], [top, top]]


def test_a_few_of_many_dimensions() -> None:
    table = np.random.default_rng(1).integers(0, 2, (5000, 13))
    assert np.array_equal(distinct_rows(table), np.unique(table, axis=0))
    assert distinct_rows(np.zeros((7, 40), dtype=np.int64)).tolist() == [[0] * 40]


@pytest.mark.parametrize("numbers", [[], [3], [2, 2], [5, -1, 5, 0, -1], [[4, 1], [1, 4]]])
def test_distinct_numbers_are_those_of_numpy(numbers):
    given = np.array(numbers, dtype=np.int64)
    assert np.array_equal(distinct(given), np.unique(given))
