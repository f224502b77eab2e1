"""Moves on a product: some factors change, each by its own rule or staying, the others stay.

A term is what may change at once: a leg for every factor that may, with the moves on that factor's own cells. Nothing
is expanded to a list of edges. The distance of two cells is the least Σ k_t over the terms t such that for every factor
i the moves of the terms that hold it are enough, `Σ_{t ∋ i} k_t ≥ d_i`, where d_i is the distance along factor i alone:
k_t moves of term t bring each of its factors k_t steps on, or fewer. That is exact where a factor has one rule; with
several, each factor is taken to go by one of them all the way, which can only be longer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from sfumato.linear import Operator, PairTypes
from sfumato.policies.covering import least_cover
from sfumato.policies.moves import Moves, refuse_long

# Ways of choosing one term for each factor that are compared where a factor has several rules.
MOST_CHOICES = 4_096


@dataclass(frozen=True, eq=False)
class Leg:
    """How one factor changes: the positions of its axes, and the moves on its own cells."""

    positions: tuple[int, ...]
    moves: Moves

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The factor's part of a shape."""
        return tuple(shape[i] for i in self.positions)

    def cell(self, index: tuple[int, ...], shape: tuple[int, ...]) -> int:
        """The factor's own cell of a cell of the product."""
        own = self.shape(shape)
        return int(np.ravel_multi_index(tuple(index[i] for i in self.positions), own))

    def steps(self, u: tuple[int, ...], v: tuple[int, ...], shape: tuple[int, ...]) -> float:
        """How many moves lead along this factor from one cell to another."""
        a, b = self.cell(u, shape), self.cell(v, shape)
        return 0.0 if a == b else self.moves.direct(self.shape(shape), a, b)

    def across(self, shape: tuple[int, ...]) -> float:
        """How many moves the longest way along this factor takes."""
        own = self.shape(shape)
        return 0.0 if math.prod(own) == 1 else self.moves.across(own)


@dataclass(frozen=True, eq=False)
class Origin:
    """Where records may appear or vanish: cells of one factor, whatever the others are."""

    positions: tuple[int, ...]
    mask: Callable[[], NDArray[np.bool_]]
    boundary: bool


@dataclass(frozen=True, eq=False)
class ProductMoves(Moves):
    """A union of terms, each a leg for every factor that may change in it."""

    terms: tuple[tuple[Leg, ...], ...]
    origins: tuple[Origin, ...] = field(default=())
    unchanged: tuple[int, ...] = ()  # positions of the axes of factors that no term changes

    @property
    def follow_rule(self) -> bool:  # type: ignore[override]  # of most moves it is known from their class
        """Whether every factor changes, each in one part."""
        return not self.unchanged and all(leg.moves.follow_rule for term in self.terms for leg in term)

    @cached_property
    def _legs(self) -> dict[tuple[int, ...], list[tuple[int, Leg]]]:
        """The legs of every factor that may change, each with the number of its term."""
        found: dict[tuple[int, ...], list[tuple[int, Leg]]] = {}
        for number, term in enumerate(self.terms):
            for leg in term:
                found.setdefault(leg.positions, []).append((number, leg))
        return found

    def count(self, shape: tuple[int, ...]) -> int:
        """The edges of the term that has most: terms may have some in common."""
        return max((self._count_of(term, shape) for term in self.terms), default=0)

    def _count_of(self, term: tuple[Leg, ...], shape: tuple[int, ...]) -> int:
        own = [leg.shape(shape) for leg in term]
        cells = [math.prod(part) for part in own]
        ways = [n + 2 * leg.moves.count(part) for leg, n, part in zip(term, cells, own, strict=True)]
        return (math.prod(ways) - math.prod(cells)) // 2 * (math.prod(shape) // math.prod(cells))

    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The union over the terms, each edge once."""
        refuse_long(self.count(shape))
        found = [self._edges_of(term, shape) for term in self.terms]
        return np.unique(np.concatenate(found), axis=0)

    def _edges_of(self, term: tuple[Leg, ...], shape: tuple[int, ...]) -> NDArray[np.int64]:
        size = math.prod(shape)
        cell = np.arange(size, dtype=np.int64).reshape(shape)
        lead = [position for leg in term for position in leg.positions]
        rest = [i for i in range(len(shape)) if i not in lead]
        table = cell.transpose(lead + rest).reshape(*(math.prod(leg.shape(shape)) for leg in term), -1)
        ways = []
        for leg, n in zip(term, table.shape, strict=False):
            pairs = leg.moves.edges(leg.shape(shape))
            stay = np.stack([np.arange(n)] * 2, axis=-1)
            ways.append(np.concatenate([stay, pairs, pairs[:, ::-1]]))
        choice = np.indices([len(way) for way in ways]).reshape(len(ways), -1)
        tails = table[tuple(way[c, 0] for way, c in zip(ways, choice, strict=True))].ravel()
        heads = table[tuple(way[c, 1] for way, c in zip(ways, choice, strict=True))].ravel()
        once = tails < heads
        return np.stack([tails[once], heads[once]], axis=-1)

    def sizes(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The longest changes of every term: what a change of some of its factors alone reaches is no farther."""
        rows = [np.zeros((0, len(shape)), dtype=np.int64)]
        for term in self.terms:
            found = np.zeros((1, len(shape)), dtype=np.int64)
            for leg in term:
                own = leg.moves.sizes(leg.shape(shape))
                if not len(own):
                    continue  # a factor of one cell: it stays, and the others change all the same
                spread = np.zeros((len(own), len(shape)), dtype=np.int64)
                spread[:, leg.positions] = own
                found = (found[:, None] + spread[None]).reshape(-1, len(shape))
            rows.append(found)
        return np.concatenate(rows)

    def sizes_by_term(self, shape: tuple[int, ...]) -> list[NDArray[np.int64]]:
        """Term by term."""
        return [ProductMoves(terms=(term,)).sizes(shape) for term in self.terms]

    def along(self, shape: tuple[int, ...], axis: int, most: int) -> NDArray[np.int64] | None:
        """Those of the legs of the axis's factor, where it is its only axis."""
        found = [np.empty((0, 2), dtype=np.int64)]
        for leg in (leg for term in self.terms for leg in term if axis in leg.positions):
            own = leg.moves.along(leg.shape(shape), leg.positions.index(axis), most)
            if own is None:
                return None
            found.append(own)
        return np.concatenate(found)

    def longest_along(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Axis by axis the longest change of the terms in which it may change: terms do not share what they cost."""
        return dearest_along(self.sizes_by_term(shape), len(shape))

    def direct(self, shape: tuple[int, ...], u: int, v: int) -> float:
        """By the distances along the factors."""
        here, there = (tuple(int(i) for i in np.unravel_index(cell, shape)) for cell in (u, v))
        if any(here[i] != there[i] for i in self.unchanged):
            return math.inf
        return self._cover(lambda leg: leg.steps(here, there, shape))

    def across(self, shape: tuple[int, ...]) -> float:
        """All factors may be as far apart as can be at once."""
        if any(shape[i] > 1 for i in self.unchanged):
            return math.inf
        return self._cover(lambda leg: leg.across(shape))

    def _cover(self, length: Callable[[Leg], float]) -> float:
        """The least number of moves that covers the lengths of all legs: exact where every factor has one rule."""
        needs = [[(number, length(leg)) for number, leg in legs] for legs in self._legs.values()]
        if all(len({steps for _, steps in ways}) == 1 for ways in needs):
            return least_cover([([number for number, _ in ways], ways[0][1]) for ways in needs], len(self.terms))
        choices = itertools.islice(itertools.product(*needs), MOST_CHOICES)
        return min(least_cover([([number], steps) for number, steps in choice], len(self.terms)) for choice in choices)

    def to_sources(self, mask: NDArray[np.bool_], cells: NDArray[np.int64], *, boundary: bool) -> NDArray[np.float64]:
        """To the nearest source of any factor that has some: the other factors stay where they are."""
        del boundary
        index = np.unravel_index(cells, mask.shape)
        nearest = np.where(mask.ravel()[cells], 0.0, math.inf)
        for origin in self.origins:
            own = np.ravel_multi_index([index[i] for i in origin.positions], origin.mask().shape)
            for _, leg in self._legs.get(origin.positions, []):
                nearest = np.minimum(nearest, leg.moves.to_sources(origin.mask(), own, boundary=origin.boundary))
        return nearest

    def labels(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The parts of all factors together; of one that never changes every cell is a part."""
        label = np.zeros(shape, dtype=np.int64)
        for i in self.unchanged:
            label = label * shape[i] + np.arange(shape[i]).reshape([-1 if j == i else 1 for j in range(len(shape))])
        for positions, legs in self._legs.items():
            own = tuple(shape[i] for i in positions)
            parts = reduce(joined_labels, [leg.moves.labels(own) for _, leg in legs])
            spread = [own[positions.index(j)] if j in positions else 1 for j in range(len(shape))]
            label = label * (int(parts.max()) + 1) + parts.reshape(spread)
        return np.unique(label, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def in_parts(self, shape: tuple[int, ...]) -> bool:
        """Whether some factor that changes falls into parts which no move joins."""
        for positions, legs in self._legs.items():
            own = tuple(shape[i] for i in positions)
            if reduce(joined_labels, [leg.moves.labels(own) for _, leg in legs]).any():
                return True
        return False

    def pair_types(self, factors: tuple[Operator, ...]) -> Iterator[list[PairTypes]] | None:
        """Term by term: every leg in each of its ways, or staying; the other axes stay."""
        ways: dict[int, list[list[PairTypes]]] = {}
        for leg in (leg for term in self.terms for leg in term):
            own = tuple(factors[i] for i in leg.positions)
            kinds = leg.moves.pair_types(own)
            if kinds is None:
                return None
            ways[id(leg)] = [[factor.pair_types(0) for factor in own], *kinds]
        return self._combined(ways, [factor.pair_types(0) for factor in factors])

    def _combined(self, ways: dict[int, list[list[PairTypes]]], stay: list[PairTypes]) -> Iterator[list[PairTypes]]:
        for term in self.terms:
            for choice in itertools.product(*(ways[id(leg)] for leg in term)):
                types = list(stay)
                for leg, kinds in zip(term, choice, strict=True):
                    for position, kind in zip(leg.positions, kinds, strict=True):
                        types[position] = kind
                yield types


def dearest_along(terms: list[NDArray[np.int64]], axes: int) -> tuple[int, ...]:
    """Axis by axis what no change costs of a term in which that axis may change, all its axes together."""
    return tuple(
        max((int(rows.sum(axis=1).max()) for rows in terms if len(rows) and rows[:, axis].any()), default=0)
        for axis in range(axes)
    )


def joined_labels(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """The parts of two graphs on the same cells taken together."""
    if not first.any() or not second.any():
        return np.zeros_like(first)
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components  # slow to import, and only graphs in several parts need it

    n = int(first.max()) + 1
    links = csr_matrix((np.ones(len(first), np.int8), (first, second + n)), shape=(n + int(second.max()) + 1,) * 2)
    return connected_components(links, directed=False)[1][first].astype(np.int64)
