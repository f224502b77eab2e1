"""What parts miss of a number that all of them should add up to, handed out to them equally: as linear operators."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.linear import Operator


class Shared(Operator):
    """The values themselves, less the same part of their sum each."""

    largest_coefficient = 1.0

    def __init__(self, size: int, part: float) -> None:
        self.rows = self.cols = size
        self.part = part

    def forward(self, x: NDArray[np.number]) -> NDArray[np.number]:
        """x - part·Σx."""
        values = np.asarray(x, dtype=np.float64)
        return values - self.part * values.sum(axis=-1, keepdims=True)

    def transpose(self, y: NDArray[np.number]) -> NDArray[np.number]:
        """The same: it is symmetric."""
        return self.forward(y)


class Handed(Operator):
    """One number, of which each of so many gets the same part."""

    def __init__(self, size: int, part: float) -> None:
        self.rows, self.cols, self.part = size, 1, part

    @property
    def largest_coefficient(self) -> float:
        """The part."""
        return self.part

    def forward(self, x: NDArray[np.number]) -> NDArray[np.number]:
        """The part for each."""
        return np.asarray(x, dtype=np.float64) * np.full(self.rows, self.part)

    def transpose(self, y: NDArray[np.number]) -> NDArray[np.number]:
        """The part of the sum."""
        return np.asarray(self.part * np.asarray(y, dtype=np.float64).sum(axis=-1, keepdims=True))
