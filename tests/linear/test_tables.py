"""Tables in the place of cells: what they hold, how they are counted, and how they follow from one another."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from sfumato.linear.tables import Tables, real

SHAPE = (3, 1, 4, 2)
CELLS = np.random.default_rng(1).integers(0, 50, SHAPE)


def summed(axes):
    """A table by NumPy alone."""
    return CELLS.sum(axis=tuple(i for i in range(len(SHAPE)) if i not in axes))


def test_the_largest_tables_hold_the_others_and_axes_of_one_cell_say_nothing():
    tables = Tables.holding(SHAPE, [(0,), (2, 0), (1,), (3, 1), ()])
    assert tables.sets == ((0, 2), (3,))
    assert tables.sizes == (12, 2)
    assert tables.length == 14
    assert [tables.holds(axes) for axes in [(), (1,), (0, 1), (0, 1, 2), (0, 3), (3,)]] == [True] * 4 + [False, True]
    assert real(SHAPE, (3, 1, 0, 3)) == (0, 3)


def test_every_table_follows_from_the_cells_and_from_larger_tables():
    every = [axes for k in range(4) for axes in combinations((0, 2, 3), k)]
    whole = Tables.holding(SHAPE, [(0, 2, 3)])
    pairs = Tables.holding(SHAPE, [(0, 2), (2, 3), (0, 3)])
    vector = pairs.of_cells(CELLS.ravel())
    assert np.array_equal(pairs.of_tables(whole, whole.of_cells(CELLS.ravel())), vector)
    assert whole.covers(pairs)
    assert not pairs.covers(whole)
    for axes in every:
        found = whole.table(CELLS.ravel(), axes)
        assert np.array_equal(found, summed(axes))
        if len(axes) < 3:
            assert np.array_equal(pairs.table(vector, axes), summed(axes))
    assert np.array_equal(pairs.table(vector, (0, 1)), summed((0, 1)))  # an axis of one cell keeps its place
    with pytest.raises(LookupError):
        pairs.table(vector, (0, 2, 3))
    assert [part.shape for part in pairs.split(vector)] == [(3, 4), (3, 2), (4, 2)]


def test_records_are_counted_into_every_table_without_the_product():
    shape = (1 << 20, 1 << 20, 7, 1 << 19)  # 7·2⁵⁹ cells: the last number of a cell has 62 bits
    rng = np.random.default_rng(2)
    index = [rng.integers(n - 3, n, 500) for n in shape]  # at the far end, where what wraps would show
    cells = np.ravel_multi_index(index, shape)
    assert cells.max() > 1 << 61
    tables = Tables.holding(shape, [(2,), (1,)])
    vector = np.zeros(tables.length, dtype=np.int64)
    tables.add(vector, cells)
    one, other = (tables.table(vector, (axis,)) for axis in (1, 2))
    assert np.array_equal(one, np.bincount(index[1], minlength=shape[1]))
    assert np.array_equal(other, np.bincount(index[2], minlength=7))
    assert math.prod(shape) > 1 << 61


def test_which_tables_hold_others_is_what_comparing_all_of_them_says() -> None:
    """Also with axes of one cell, the table of no axes, and two tables of one size, of which the first is taken."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        shape = tuple(rng.integers(1, 4, rng.integers(1, 7)).tolist())
        every = [axes for k in range(len(shape) + 1) for axes in combinations(range(len(shape)), k)]
        asked = [every[at] for at in rng.integers(0, len(every), rng.integers(0, 10))]
        distinct = sorted({tuple(i for i in axes if shape[i] > 1) for axes in asked})
        tables = Tables.holding(shape, asked)
        assert tables.sets == tuple(a for a in distinct if not any(set(a) < set(other) for other in distinct))
        plain = Tables(shape, tuple(distinct))  # also with tables that others hold
        vector = rng.integers(0, 9, plain.length)
        for axes in every:
            own = {i for i in axes if shape[i] > 1}
            holders = [at for at, held in enumerate(plain.sets) if own <= set(held)]
            assert plain.holds(axes) == tables.holds(axes) == bool(holders)
            if holders:
                smallest = min(holders, key=plain.sizes.__getitem__)
                kept = [at for at, i in enumerate(plain.sets[smallest]) if i not in own]
                expected = plain.split(vector)[smallest].sum(axis=tuple(kept)).ravel()
                assert plain.table(vector, axes).ravel().tolist() == expected.tolist()
