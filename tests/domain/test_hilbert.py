"""The Hilbert curve visits every cell once, and neighbours on it are neighbours in space."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.domain.hilbert import hilbert_index, hilbert_order
from sfumato.errors import InvalidInput


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 4), (2, 1), (2, 2), (2, 5), (3, 1), (3, 3), (4, 2)])
def test_steps_of_the_curve_are_steps_in_space(dimensions: int, bits: int) -> None:
    shape = (2**bits,) * dimensions
    order = hilbert_order(shape)
    assert sorted(order) == list(range(2 ** (bits * dimensions)))
    place = np.stack(np.unravel_index(order, shape), axis=-1)
    assert (np.abs(np.diff(place, axis=0)).sum(axis=1) == 1).all()


def test_the_first_square_by_hand() -> None:
    corners = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    assert sorted(hilbert_index(corners, 1)) == [0, 1, 2, 3]
    assert np.abs(np.diff(hilbert_index(corners, 1))).tolist() in ([1, 1, 1], [1, 1, 1])


@pytest.mark.parametrize("shape", [(5, 3), (1, 7), (6, 10), (3, 2, 5)])
def test_every_cell_of_an_odd_grid_is_visited_once(shape: tuple[int, ...]) -> None:
    assert sorted(hilbert_order(shape)) == list(range(int(np.prod(shape))))


def test_positions_beyond_64_bits_are_refused() -> None:
    with pytest.raises(InvalidInput, match="4 coordinates of 16 bits are more than a 64-bit position"):
        hilbert_index(np.zeros((1, 4), dtype=np.int64), 16)
