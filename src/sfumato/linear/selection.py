"""Some of the cells: the edges to ⊥ of a policy, seen as an operator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.linear.operator import Array, Operator


class Selection(Operator):
    """One column for every chosen cell, with a one in its row."""

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        self.mask = mask
        self._cells = np.flatnonzero(mask)
        self.rows, self.cols = mask.size, len(self._cells)

    def forward(self, x: Array) -> Array:
        """Values put back into their cells, zero elsewhere."""
        result = np.zeros_like(x, shape=(*x.shape[:-1], self.rows))
        result[..., self._cells] = x
        return result

    def transpose(self, y: Array) -> Array:
        """The values of the chosen cells."""
        return y[..., self._cells]
