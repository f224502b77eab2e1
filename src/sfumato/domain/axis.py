"""What every axis offers:
a name, a number of cells, a cell for every value, and a description that JSON can hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidInput


class Axis(ABC):
    """One named side of a domain. Axes are frozen values, equal when what they say is equal."""

    name: str
    cells: int
    """How many cells the axis is cut into; they are numbered from zero."""

    @abstractmethod
    def locate(self, values: ArrayLike) -> NDArray[np.int64]:
        """The cell of each value. Every value that is not missing has one, or the call is refused."""

    @abstractmethod
    def face(self) -> str:
        """The domain of this axis alone, as one writes it."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """The axis as plain data for a file."""


def axis_name(name: object) -> str:
    """A usable axis name, or a refusal."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"name={name!r} is not the name of an axis. Give a string that is not empty.")
    return name
