"""Positions on the Hilbert curve and points in space are the same thing, exactly, in any number of dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.domain import hilbert
from sfumato.domain.hilbert import hilbert_index, hilbert_order, hilbert_point
from sfumato.errors import InvalidInput


def test_the_square_of_four_cells_by_hand():
    assert hilbert_point(np.arange(4), 1, 2).tolist() == [[0, 0], [0, 1], [1, 1], [1, 0]]
    assert hilbert_index(np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), 1).tolist() == [0, 1, 2, 3]


@settings(deadline=None)
@given(dimensions=st.integers(1, 9), data=st.data())
def test_inverse_undoes_forward_and_the_other_way_round(dimensions, data):
    bits = data.draw(st.integers(1, 62 // dimensions))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    points = rng.integers(0, 1 << bits, (50, dimensions))
    points[0], points[1] = 0, (1 << bits) - 1
    index = hilbert_index(points, bits)
    assert index.dtype == np.int64
    assert index.min() >= 0
    assert index.max() < 1 << (bits * dimensions)
    assert np.array_equal(hilbert_point(index, bits, dimensions), points)
    anywhere = rng.integers(0, 1 << (bits * dimensions), 50)
    assert np.array_equal(hilbert_index(hilbert_point(anywhere, bits, dimensions), bits), anywhere)


@settings(deadline=None)
@given(dimensions=st.integers(1, 9), data=st.data())
def test_the_next_position_is_a_neighbour_in_space_also_on_fine_curves(dimensions, data):
    bits = data.draw(st.integers(1, 62 // dimensions))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    index = rng.integers(0, (1 << (bits * dimensions)) - 1, 200)
    here, there = (hilbert_point(i, bits, dimensions) for i in (index, index + 1))
    assert (np.abs(here - there).sum(axis=-1) == 1).all()


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 6), (2, 1), (2, 4), (2, 6), (3, 1), (3, 4), (4, 3), (5, 2)])
def test_tables_walk_as_single_steps_do(dimensions, bits, monkeypatch):
    index = np.arange(1 << (bits * dimensions))
    tabled = hilbert_point(index, bits, dimensions)
    monkeypatch.setattr(hilbert, "LARGEST_TABLED", 0)
    assert np.array_equal(hilbert_point(index, bits, dimensions), tabled)
    assert np.array_equal(hilbert_index(tabled, bits), index)


def test_more_points_than_one_chunk_keep_their_order_and_shape():
    points = np.random.default_rng(3).integers(0, 1 << 20, (3, hilbert.CHUNK, 2))
    index = hilbert_index(points, 20)
    assert index.shape == points.shape[:-1]
    assert np.array_equal(hilbert_point(index, 20, 2), points)
    assert np.array_equal(hilbert_index(points[1], 20), index[1])


def test_no_points_at_all():
    assert hilbert_index(np.empty((0, 3), dtype=np.int64), 5).shape == (0,)
    assert hilbert_point(np.empty(0, dtype=np.int64), 5, 3).shape == (0, 3)


@pytest.mark.parametrize("shape", [(5,), (16, 16), (5, 3), (1, 7), (6, 10), (3, 100), (1, 1), (3, 2, 5), (9, 2, 2)])
def test_an_order_is_the_rank_of_the_cells_along_the_curve(shape):
    """The cells that exist, sorted by their position, whichever way the order is found."""
    bits = max(1, (max(shape) - 1).bit_length())
    cells = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=-1)
    assert hilbert_order(shape).tolist() == np.argsort(hilbert_index(cells, bits)).tolist()


def test_the_order_of_a_line_is_the_line():
    assert hilbert_order((13,)).tolist() == list(range(13))


def test_an_inverse_beyond_64_bits_is_refused():
    with pytest.raises(InvalidInput) as refusal:
        hilbert_point(np.zeros(1, dtype=np.int64), 32, 2)
    assert str(refusal.value) == "2 coordinates of 32 bits are more than a 64-bit position on the curve holds."
