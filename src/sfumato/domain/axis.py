"""What every axis offers:
a name, a number of cells, a cell for every value, and a description that JSON can hold.

Axes of whose cells one comes before another are *ordered* (`sfumato.domain.ordered`): intervals, bins, instants and
cycles. Labels are not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain.coarser import Coarse
from sfumato.errors import InvalidInput

OWN = "own"
SECONDS = "s"
METRES = "m"
MOST_PAIRS = 50_000_000
"""Pairs of near cells beyond which a list of them is refused."""


class Axis(ABC):
    """One named side of a domain. Axes are frozen values, equal when what they say is equal."""

    name: str
    cells: int
    """How many cells the axis is cut into; they are numbered from zero."""
    reads: ClassVar[Literal["numbers", "labels", "times", "places"]]
    """What its values are, and so which columns can feed it."""
    what: ClassVar[str] = "cells"
    """What its cells are, in words."""
    named: ClassVar[bool] = False
    """Whether its cells are asked for by names, its `labels`."""
    ordered: ClassVar[bool] = False
    """Whether its cells have an order, so that ranges of them mean something."""
    winds: ClassVar[bool] = False
    """Whether the last cell is beside the first."""

    apart: ClassVar[bool] = False
    """Whether elsewhere stands beside its cells: whoever is beyond its ends is in none of them, and left out."""

    @property
    def unit(self) -> str | None:
        """What distances along it are measured in: OWN numbers, SECONDS, METRES, or None where there are none."""
        return {"numbers": OWN, "times": SECONDS}.get(self.reads)

    @property
    def arity(self) -> int:
        """How many numbers or words tell one of its values."""
        return 1

    @property
    def comparisons(self) -> int:
        """With how many edges an engine that knows nothing else compares a value to find its cell."""
        return 1

    @property
    def leaves_out(self) -> bool:
        """Whether there are values that none of its cells holds: whoever has one is not there."""
        return self.apart

    @property
    def map_digest(self) -> str | None:
        """The digest of the map that its cells are; None where they are no map."""
        return None

    @property
    def has_roads(self) -> bool:
        """Whether its cells are segments of roads, along which there are distances."""
        return False

    @property
    def off_roads(self) -> str:
        """Where its roads are left and entered, in words; empty where it has none."""
        return ""

    @property
    def coarser(self) -> tuple[Coarse, ...]:
        """Its levels that have names, from the coarsest to the finest, each nested in the one before; mostly none."""
        return ()

    @abstractmethod
    def locate(self, values: ArrayLike) -> NDArray[np.int64]:
        """The cell of each value. Every value that is not missing has one, or the call is refused."""

    @abstractmethod
    def face(self) -> str:
        """The domain of this axis alone, as one writes it."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """The axis as plain data for a file."""

    def identity(self) -> dict[str, Any]:
        """What of its description it shares with equal axes, and with no others."""
        return self.spec()

    def entry(self) -> dict[str, Any]:
        """The axis without its name as people write it in a file of a publication: a list of edges, a start and stop.

        Read back it makes an equal axis.
        """
        raise InvalidInput(f"Axis {self.name!r} cannot be written to a file of a publication. Nothing was written.")

    @abstractmethod
    def cell_names(self) -> list[str]:
        """What people call the cells, in their order."""

    @abstractmethod
    def size(self, cells: int) -> str:
        """How large so many cells are, in words."""

    def accumulate(self, values: NDArray[Any], cells: NDArray[np.int64]) -> None:
        """Turn each number in ``cells`` into ``number * self.cells + cell of the value``, in place.

        Doing so for one axis after the other gives flat cell numbers in C order.
        """
        np.multiply(cells, self.cells, out=cells)
        np.add(cells, self.locate(values), out=cells)

    def outside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values lie beyond the ends of the axis, and are counted in its first or last cell."""
        return np.zeros(len(values), np.bool_)

    def reach(self, delta: Any) -> NDArray[np.int64]:
        """For every cell the last one that holds a value less than delta from one of its own, where none winds."""
        return self.near(delta)  # which says that there is no distance

    def near(self, delta: Any) -> NDArray[np.int64]:
        """Every pair of cells u < v that hold values less than delta apart, and touching cells: one row a pair.

        No pair is missing, so that a policy may be made of them.
        """
        raise InvalidInput(
            f"Axis {self.name!r}: no distance is known between its cells, so delta={delta!r} says nothing of them. "
            "Use sf.graph, and say which cells are neighbours."
        )

    def adjacent(self, *, corners: bool) -> NDArray[np.int64]:
        """Every pair of cells u < v that have a border in common, or with `corners` a border or a corner."""
        del corners
        raise InvalidInput(
            f"Axis {self.name!r}: nobody knows which of its cells are beside each other. Nothing was built. "
            "sf.adjacent is for regions, hexagons and roads; use sf.threshold on grids, and sf.graph elsewhere."
        )


def axis_name(name: object) -> str:
    """A usable axis name, or a refusal."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"name={name!r} is not the name of an axis. Give a string that is not empty.")
    return name
