"""What every axis offers:
a name, a number of cells, a cell for every value, and a description that JSON can hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidInput

OWN = "own"
SECONDS = "s"


class Axis(ABC):
    """One named side of a domain. Axes are frozen values, equal when what they say is equal."""

    name: str
    cells: int
    """How many cells the axis is cut into; they are numbered from zero."""
    unit: ClassVar[str | None] = None
    """What distances along it are measured in: OWN numbers, SECONDS, or nothing where values have no distances."""

    @abstractmethod
    def locate(self, values: ArrayLike) -> NDArray[np.int64]:
        """The cell of each value. Every value that is not missing has one, or the call is refused."""

    def last_near(self, delta: Fraction) -> NDArray[np.int64] | None:
        """For every cell the last one with a value nearer than δ to one of its own; None: the cells wind round."""
        del delta
        return None

    def near(self, delta: Fraction) -> NDArray[np.int64]:
        """Every pair of cells, the smaller first, that hold two values nearer than δ to each other."""
        del delta
        raise InvalidInput(f"Axis {self.name!r}: its values have no distances. Use sf.change({self.name!r}).")

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
