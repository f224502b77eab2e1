"""Moves along a line whose cells are of uneven width: bins with given edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.linear import Operator, PairTypes
from sfumato.linear.estimator import LARGEST_EXPLICIT
from sfumato.policies.listed_moves import Explicit
from sfumato.policies.moves import Moves, both_ways, refuse_long


@dataclass(frozen=True, eq=False)
class Ahead(Moves):
    """Moves along a line of uneven cells: from every cell to all those up to a last one, which never falls.

    `last[u]` is the last cell that is near enough to cell u. The farthest one gets in k moves is got by the longest
    move each time.
    """

    last: NDArray[np.int64]
    follow_rule = True

    @property
    def exist(self) -> bool:  # type: ignore[override]
        """On more than one cell."""
        return len(self.last) > 1

    def sizes(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The longest move."""
        del shape
        return np.array([[(self.last - np.arange(len(self.last))).max(initial=0)]], dtype=np.int64)

    def ahead(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The longest moves."""
        del shape
        return self.last

    def count(self, shape: tuple[int, ...]) -> int:
        """From every cell to those ahead of it."""
        del shape
        return int((self.last - np.arange(len(self.last))).sum())

    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """From every cell to those ahead of it."""
        refuse_long(self.count(shape))
        count = self.last - np.arange(len(self.last))
        tail = np.repeat(np.arange(len(self.last), dtype=np.int64), count)
        first = np.repeat(np.cumsum(count) - count, count)
        return np.stack([tail, tail + 1 + np.arange(len(tail)) - first], axis=-1)

    def direct(self, shape: tuple[int, ...], u: int, v: int) -> float:
        """By the longest move each time."""
        del shape
        at, aim, steps = min(u, v), max(u, v), 0
        while at < aim:
            at, steps = int(self.last[at]), steps + 1
        return float(steps)

    def across(self, shape: tuple[int, ...]) -> float:
        """From one end to the other."""
        return self.direct(shape, 0, len(self.last) - 1)

    def to_sources(self, mask: NDArray[np.bool_], cells: NDArray[np.int64], *, boundary: bool) -> NDArray[np.float64]:
        """By a search over the edges."""
        return Explicit(self.edges(mask.shape)).to_sources(mask, cells, boundary=boundary)

    def pair_types(self, factors: tuple[Operator, ...]) -> Iterator[list[PairTypes]]:
        """The pairs of each distance, as far as there are any; where they are many, all pairs of that distance."""
        (factor,) = factors
        n = len(self.last)
        for offset in range(1, int((self.last - np.arange(n)).max(initial=0)) + 1):
            u = np.flatnonzero(self.last - np.arange(n) >= offset)
            if len(u) == n - offset or len(u) * factor.rows > LARGEST_EXPLICIT:
                yield [both_ways(factor, offset)]
            else:
                yield [factor.types_of_pairs(np.concatenate([u, u + offset]), np.concatenate([u + offset, u]))]
