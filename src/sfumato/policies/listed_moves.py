"""Edges between cells that were listed one by one: ways between cells are searched, and nothing follows a rule."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.linear import Operator, PairTypes, distinct_rows
from sfumato.policies.moves import Moves

# Cells of a listed graph between all of which ways are searched.
SEARCHED = 2_000


@dataclass(frozen=True, eq=False)
class Explicit(Moves):
    """Edges that were listed one by one: an array of pairs of cell numbers, the smaller first, each once."""

    pairs: NDArray[np.int64]
    listed = True

    def count(self, shape: tuple[int, ...]) -> int:
        """The length of the list."""
        del shape
        return len(self.pairs)

    def changes(self, shape: tuple[int, ...]) -> set[frozenset[int]]:
        """Read off the list."""
        tail, head = (np.stack(np.unravel_index(cells, shape), axis=-1) for cells in self.pairs.T)
        return {frozenset(np.flatnonzero(row).tolist()) for row in np.unique(tail != head, axis=0)}

    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The list itself."""
        del shape
        return self.pairs

    def along(self, shape: tuple[int, ...], axis: int, most: int) -> NDArray[np.int64] | None:
        """Read off the list."""
        if len(self.pairs) > most:
            return None
        if len(shape) == 1:
            return self.pairs
        ends = np.unravel_index(self.pairs, shape)[axis]
        return distinct_rows(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1).astype(np.int64))

    def direct(self, shape: tuple[int, ...], u: int, v: int) -> float:
        """By a search."""
        return float(self._searched(shape, [u])[0, v])

    def across(self, shape: tuple[int, ...]) -> float:
        """By searches from every cell; from one, and twice as far, where there are many."""
        size = math.prod(shape)
        if size <= SEARCHED:
            return float(self.between(shape).max())
        return 2 * float(self._searched(shape, [size // 2]).max())

    def to_sources(self, mask: NDArray[np.bool_], cells: NDArray[np.int64], *, boundary: bool) -> NDArray[np.float64]:
        """By a search from all of them."""
        del boundary
        sources = np.flatnonzero(mask)
        if len(sources) == 0:
            return np.full(len(cells), math.inf)
        return np.asarray(self._searched(mask.shape, sources.tolist(), nearest=True)[cells], dtype=np.float64)

    def labels(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The parts of the graph."""
        from scipy.sparse.csgraph import connected_components  # slow to import, and only listed graphs need it

        return connected_components(self._graph(shape), directed=False)[1].astype(np.int64)

    def between(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """How many moves lead from every cell to every other, for few cells."""
        return self._searched(shape, list(range(math.prod(shape))))

    def _graph(self, shape: tuple[int, ...]) -> Any:
        from scipy.sparse import csr_matrix

        ones = np.ones(len(self.pairs), dtype=np.int8)
        return csr_matrix((ones, (self.pairs[:, 0], self.pairs[:, 1])), shape=(math.prod(shape),) * 2)

    def _searched(self, shape: tuple[int, ...], sources: list[int], *, nearest: bool = False) -> NDArray[Any]:
        from scipy.sparse.csgraph import dijkstra

        return np.asarray(
            dijkstra(self._graph(shape), directed=False, unweighted=True, indices=sources, min_only=nearest)
        )


@dataclass(frozen=True, eq=False)
class Neighbours(Explicit):
    """Pairs of neighbouring cells of one factor among several, which has few cells: hours of a day, months."""

    cells: int
    listed = False

    @property
    def follow_rule(self) -> bool:  # type: ignore[override]  # of most moves it is known from their class
        """Whether a path leads from every cell to every other."""
        return not self.labels((self.cells,)).any()

    def sizes(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Along the cells in their order, whatever shorter way there is."""
        del shape
        return np.array([[np.abs(self.pairs[:, 1] - self.pairs[:, 0]).max(initial=0)]], dtype=np.int64)

    def pair_types(self, factors: tuple[Operator, ...]) -> Iterator[list[PairTypes]] | None:
        """The pairs themselves, both ways."""
        if len(factors) != 1:
            return None
        u, v = self.pairs.T
        return iter([[factors[0].types_of_pairs(np.concatenate([u, v]), np.concatenate([v, u]))]])
