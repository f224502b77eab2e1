"""The edges between cells, in the four forms they come in. Edges to ⊥ are kept apart, as a mask over the cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import TooLarge

# Edge lists are for small domains, tests and exports; above this many edges nobody wants one.
LARGEST_EDGE_LIST = 50_000_000


class _Absent(int):
    """⊥, "not there". In arrays of edges it is written -1."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent(-1)


@dataclass(frozen=True)
class NoMoves:
    """No edge joins two cells: records appear and vanish, they do not move."""

    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """None."""
        del shape
        return np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class Complete:
    """Every two cells are joined."""

    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """All pairs."""
        size = int(np.prod(shape))
        _refuse_long(size * (size - 1) // 2)
        return np.stack(np.triu_indices(size, k=1), axis=-1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Stencil:
    """The same moves from every cell, cut off at the border: never expanded into an edge list unless asked.

    `offsets` holds one of each pair (o, -o), the one whose first non-zero entry is positive. Stencils here are
    *downward closed*: with an offset they contain every offset that is no longer along any axis (and every change of
    signs). Shortest paths can therefore be monotone along every axis, and the border never stands in their way.
    """

    offsets: NDArray[np.int64]

    @cached_property
    def reach(self) -> NDArray[np.int64]:
        """The longest step along each axis."""
        return np.abs(self.offsets).max(axis=0) if len(self.offsets) else np.zeros(self.offsets.shape[1], np.int64)

    @cached_property
    def longest(self) -> int:
        """The largest L1 norm of an offset: how many grid edges a move may cross."""
        return int(np.abs(self.offsets).sum(axis=1).max(initial=0))

    def count(self, shape: tuple[int, ...]) -> int:
        """How many pairs of cells differ by an offset."""
        return int(np.maximum(np.array(shape) - np.abs(self.offsets), 0).prod(axis=1).sum())

    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Every pair of cells that differ by an offset."""
        _refuse_long(self.count(shape))
        cell = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
        found = [np.empty((0, 2), dtype=np.int64)]
        for offset in self.offsets:
            here = tuple(slice(max(0, -o), n - max(0, o)) for o, n in zip(offset, shape, strict=True))
            there = tuple(slice(max(0, o), n - max(0, -o)) for o, n in zip(offset, shape, strict=True))
            found.append(np.stack([cell[here].ravel(), cell[there].ravel()], axis=-1))
        return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class Explicit:
    """Edges that were listed one by one: an array of pairs of cell numbers, the smaller first, each once."""

    pairs: NDArray[np.int64]

    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The list itself."""
        del shape
        return self.pairs


Moves = NoMoves | Complete | Stencil | Explicit


def _refuse_long(count: int) -> None:
    if count > LARGEST_EDGE_LIST:
        raise TooLarge(
            f"this policy has {count:,} edges between cells, too many to list (at most {LARGEST_EDGE_LIST:,}). "
            "Sensitivities, distances and plans do not need the list."
        )
