"""The axis along which counting reads a summed value: cells of one step each, and nothing beyond its ends."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Interval


class Lattice(Interval):
    """An interval whose cells are the multiples of a step. What lies beyond the bounds is cut to them and is no error:
    it is neither reported as outside nor dropped with what is.
    """

    def outside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """None is."""
        return np.zeros(len(values), np.bool_)

    def beyond(self, scaled: NDArray[Any]) -> NDArray[np.bool_]:
        """None is."""
        return np.zeros(scaled.shape, np.bool_)
