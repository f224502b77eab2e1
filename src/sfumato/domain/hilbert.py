"""The Hilbert curve: a walk through all cells of a cube in which neighbours on the walk are neighbours in space.

Skilling, *Programming the Hilbert curve* (2004), for all cells at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput


def hilbert_index(coordinates: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The position on the curve of points with d coordinates (rows) of so many bits each; exact integers."""
    dimensions = coordinates.shape[-1]
    if bits * dimensions > 62:
        raise InvalidInput(
            f"{dimensions} coordinates of {bits} bits are more than a 64-bit position on the curve holds."
        )
    axes = [coordinates[..., i].astype(np.int64).copy() for i in range(dimensions)]
    for bit in range(bits - 1, 0, -1):  # undo the turns, from the largest cube down
        low = (np.int64(1) << bit) - 1
        for i in range(dimensions):
            turned = (axes[i] >> bit) & 1 == 1
            swap = (axes[0] ^ axes[i]) & low
            axes[0] = np.where(turned, axes[0] ^ low, axes[0] ^ swap)
            if i:
                axes[i] = np.where(turned, axes[i], axes[i] ^ swap)
    for i in range(1, dimensions):  # Gray code
        axes[i] ^= axes[i - 1]
    flip = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        flip ^= np.where((axes[-1] >> bit) & 1 == 1, (np.int64(1) << bit) - 1, 0)
    axes = [axis ^ flip for axis in axes]
    index = np.zeros_like(axes[0])
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            index = (index << 1) | ((axis >> bit) & 1)
    return index


def hilbert_order(shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The cells of a grid (numbers in C order) in the order of the curve through the smallest cube that holds it."""
    bits = max(1, int(np.ceil(np.log2(max(max(shape), 2)))))
    cells = np.stack(np.unravel_index(np.arange(int(np.prod(shape))), shape), axis=-1).astype(np.int64)
    return np.argsort(hilbert_index(cells, bits), kind="stable")
