"""Moves between regions of a place: pairs that are found when they are first asked for.

A file of a release names regions and what is hidden; how near the regions are to each other takes packages that a
reader of its figures may lack, and no figure needs it. One thing is known beforehand: a way leads from every region to
every other. Regions and elsewhere hold the whole earth, which is in one piece, and touching ones are always joined; no
roads are without a way to elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.linear import Operator, PairTypes
from sfumato.policies.listed_moves import Neighbours
from sfumato.policies.moves import Moves


@dataclass(frozen=True, eq=False)
class NearPlaces(Moves):
    """Pairs of near regions; `listed` where no other factor is beside them."""

    find: Callable[[], NDArray[np.int64]]
    cells: int
    listed: bool = False  # type: ignore[misc]  # of most moves it is known from their class

    follow_rule = True

    @property
    def exist(self) -> bool:  # type: ignore[override]
        """On more than one cell: regions and elsewhere are that many always."""
        return self.cells > 1

    def alone(self) -> Moves:
        """The same as a list."""
        return replace(self, listed=True)

    @cached_property
    def found(self) -> Neighbours:
        """The pairs themselves."""
        return Neighbours(self.find(), self.cells)

    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The list."""
        return self.found.edges(shape)

    def count(self, shape: tuple[int, ...]) -> int:
        """Its length."""
        return self.found.count(shape)

    def sizes(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Along the cells in their order."""
        return self.found.sizes(shape)

    def direct(self, shape: tuple[int, ...], u: int, v: int) -> float:
        """By a search."""
        return self.found.direct(shape, u, v)

    def across(self, shape: tuple[int, ...]) -> float:
        """By searches."""
        return self.found.across(shape)

    def to_sources(self, mask: NDArray[np.bool_], cells: NDArray[np.int64], *, boundary: bool) -> NDArray[np.float64]:
        """By a search."""
        return self.found.to_sources(mask, cells, boundary=boundary)

    def pair_types(self, factors: tuple[Operator, ...]) -> Iterator[list[PairTypes]] | None:
        """The pairs, both ways."""
        return None if self.listed else self.found.pair_types(factors)


@dataclass(frozen=True, eq=False, kw_only=True)
class KeptPlaces(NearPlaces):
    """Pairs of near regions of one group; `of` is the group of every cell. No way leads out of a group."""

    of: NDArray[np.int64]

    follow_rule = False

    @cached_property
    def found(self) -> Neighbours:
        """The pairs themselves."""
        pairs = self.find()
        return Neighbours(pairs[self.of[pairs[:, 0]] == self.of[pairs[:, 1]]], self.cells)

    @property
    def exist(self) -> bool:  # type: ignore[override]
        """Whether any group has two near regions."""
        return len(self.found.pairs) > 0

    @property
    def groups_are_whole(self) -> bool:
        """Whether a way joins all regions of every group: nothing but what lies in a group is public."""
        return int(self.labels((self.cells,)).max()) == int(self.of.max())

    def labels(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The parts that moves join: the groups, or less."""
        return self.found.labels(shape)

    def in_parts(self, shape: tuple[int, ...]) -> bool:
        """There are as many as groups at least."""
        return bool(self.labels(shape).any())
