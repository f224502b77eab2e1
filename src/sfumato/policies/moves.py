"""The edges between cells, in the forms they come in. Edges to ⊥ are kept apart, as a mask over the cells."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import TooLarge
from sfumato.linear import Operator, PairTypes
from sfumato.policies import steps

# Edge lists are for small domains, tests and exports; above this many edges nobody wants one.
LARGEST_EDGE_LIST = 50_000_000


class Moves(ABC):
    """The edges between cells. What needs no list of them is said by each form itself; ways through ⊥ are not its own.

    `exist`: whether there is any; `join_all`: whether every two cells are joined; `follow_rule`: whether a path leads
    from every cell to every other by rule; `listed`: whether the edges are a list, in which ways have to be searched.
    """

    exist: ClassVar[bool] = True
    join_all: ClassVar[bool] = False
    follow_rule: ClassVar[bool] = False
    listed: ClassVar[bool] = False

    @abstractmethod
    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Every edge as a pair of cell numbers."""

    def alone(self) -> Moves | None:
        """The same as moves of a domain that has no other factor, where they are told otherwise there."""
        return None

    @property
    def stencil(self) -> Stencil | None:
        """Themselves, where they are the same from every cell of a line or grid."""
        return None

    def count(self, shape: tuple[int, ...]) -> int:
        """How many edges there are at least, as far as that is known without listing them."""
        del shape
        return 0

    def sizes(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """How far moves lead along every axis: a row for every kind of move, or for those that no other exceeds."""
        del shape
        raise NotImplementedError(f"{type(self).__name__} are searched.")

    def changes(self, shape: tuple[int, ...]) -> set[frozenset[int]]:
        """The axes along which one move may change a record at once: those of every kind of move, or of those kinds
        that no other exceeds.
        """
        return {frozenset(np.flatnonzero(row).tolist()) for row in self.sizes(shape)}

    def sizes_by_term(self, shape: tuple[int, ...]) -> list[NDArray[np.int64]]:
        """The same, apart for terms of which a change is one: what one of them costs another does not."""
        return [self.sizes(shape)]

    def longest_along(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """For every axis a number of grid edges that no move which crosses some of that axis exceeds, on all axes
        together; 0 where no move crosses any.
        """
        longest = int(self.sizes(shape).sum(axis=1).max(initial=0))
        return tuple(longest if n > 1 else 0 for n in shape)

    def along(self, shape: tuple[int, ...], axis: int, most: int) -> NDArray[np.int64] | None:
        """Pairs of cells of one axis that moves join: all pairs that any move joins along it are among them or stay
        where they are. None where every cell is joined with every other, or there are more than `most`.
        """
        del axis
        if not self.exist:
            return np.empty((0, 2), dtype=np.int64)
        if len(shape) > 1 or self.join_all or self.count(shape) > most:
            return None
        return self.edges(shape)

    def in_parts(self, shape: tuple[int, ...]) -> bool:
        """Whether a factor that changes falls into parts which no move joins."""
        del shape
        return False

    def direct(self, shape: tuple[int, ...], u: int, v: int) -> float:
        """How many moves lead from one cell to another one."""
        del shape, u, v
        raise NotImplementedError(f"{type(self).__name__} are searched.")

    def ahead(self, shape: tuple[int, ...]) -> NDArray[np.int64] | None:
        """The last cell that one move leads to from each cell of a line, where it leads to all those between as well;
        None: no rule says.
        """
        del shape
        return None

    def across(self, shape: tuple[int, ...]) -> float:
        """How many moves the longest way between two cells takes, or an upper bound."""
        del shape
        raise NotImplementedError(f"{type(self).__name__} are searched.")

    def to_sources(self, mask: NDArray[np.bool_], cells: NDArray[np.int64], *, boundary: bool) -> NDArray[np.float64]:
        """How many moves lead from each of the cells to the nearest one of the mask; with `boundary` the mask is a
        layer along all faces.
        """
        del mask, cells, boundary
        raise NotImplementedError(f"{type(self).__name__} are searched.")

    def pair_types(self, factors: tuple[Operator, ...]) -> Iterator[list[PairTypes]] | None:
        """For every kind of move, the types of pairs of columns that it makes along every axis; None: no rule says."""
        del factors
        return None

    def farthest(self, factor: Operator) -> int | None:
        """The largest L1 distance of two columns of an operator on a line that one move joins; None: no closed form."""
        del factor
        return None

    def labels(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """A number for every cell, equal for cells that a path of moves joins."""
        return np.zeros(math.prod(shape), dtype=np.int64)


@dataclass(frozen=True)
class NoMoves(Moves):
    """No edge joins two cells: records appear and vanish, they do not move."""

    exist = False

    def sizes(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """None."""
        return np.empty((0, len(shape)), dtype=np.int64)

    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """None."""
        del shape
        return np.empty((0, 2), dtype=np.int64)

    def direct(self, shape: tuple[int, ...], u: int, v: int) -> float:
        """No way."""
        del shape, u, v
        return math.inf

    def across(self, shape: tuple[int, ...]) -> float:
        """No way."""
        del shape
        return math.inf

    def labels(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Every cell by itself."""
        return np.arange(math.prod(shape), dtype=np.int64)

    def to_sources(self, mask: NDArray[np.bool_], cells: NDArray[np.int64], *, boundary: bool) -> NDArray[np.float64]:
        """A source is where it is, and no way leads there."""
        del boundary
        return np.where(mask.ravel()[cells], 0.0, math.inf)


@dataclass(frozen=True)
class Complete(Moves):
    """Every two cells are joined."""

    join_all = True
    follow_rule = True

    def count(self, shape: tuple[int, ...]) -> int:
        """All pairs."""
        return math.comb(math.prod(shape), 2)

    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """All pairs."""
        refuse_long(self.count(shape))
        return np.stack(np.triu_indices(math.prod(shape), k=1), axis=-1).astype(np.int64)

    def sizes(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """No move leads farther than from one corner to the opposite one."""
        return np.array([shape], dtype=np.int64) - 1

    def direct(self, shape: tuple[int, ...], u: int, v: int) -> float:
        """One."""
        del shape, u, v
        return 1

    def across(self, shape: tuple[int, ...]) -> float:
        """One."""
        del shape
        return 1

    def to_sources(self, mask: NDArray[np.bool_], cells: NDArray[np.int64], *, boundary: bool) -> NDArray[np.float64]:
        """One, where there is any source."""
        del boundary
        return np.where(mask.ravel()[cells], 0.0, 1.0 if mask.any() else math.inf)

    def pair_types(self, factors: tuple[Operator, ...]) -> Iterator[list[PairTypes]]:
        """All pairs along every axis."""
        yield [factor.pair_types(None) for factor in factors]


@dataclass(frozen=True, eq=False)
class Stencil(Moves):
    """The same moves from every cell, cut off at the border: never expanded into an edge list unless asked.

    `lengths` says how far they lead along every axis: every offset without its signs, once and in order, but not the
    one that stays. Stencils here are *downward closed*: with an offset they contain every offset that is no longer
    along any axis, and every change of signs. Shortest paths can therefore be monotone along every axis, and the border
    never stands in their way.
    """

    lengths: NDArray[np.int64]
    follow_rule = True

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """One of each pair (o, -o), the one whose first non-zero entry is positive; up to 2^(d-1) for every length, and
        made only for who has to look at each.
        """
        found = self.lengths
        for axis in range(1, found.shape[1]):
            turned = found[(found[:, :axis] != 0).any(axis=1) & (found[:, axis] != 0)]
            turned[:, axis] *= -1
            found = np.concatenate([found, turned])
        return found[np.lexsort(found.T[::-1])]

    @property
    def stencil(self) -> Stencil:
        """Itself."""
        return self

    @cached_property
    def reach(self) -> NDArray[np.int64]:
        """The longest step along each axis."""
        return self.lengths.max(axis=0, initial=0)

    @cached_property
    def longest(self) -> int:
        """The largest L1 norm of an offset: how many grid edges a move may cross."""
        return int(self.lengths.sum(axis=1).max(initial=0))

    def count(self, shape: tuple[int, ...]) -> int:
        """How many pairs of cells differ by an offset."""
        signs = 1 << np.maximum((self.lengths > 0).sum(axis=1) - 1, 0)
        return int((np.maximum(np.array(shape) - self.lengths, 0).prod(axis=1) * signs).sum())

    def edges(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Every pair of cells that differ by an offset."""
        refuse_long(self.count(shape))
        cell = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
        found = [np.empty((0, 2), dtype=np.int64)]
        for offset in self.offsets:
            here = tuple(slice(max(0, -o), n - max(0, o)) for o, n in zip(offset, shape, strict=True))
            there = tuple(slice(max(0, o), n - max(0, -o)) for o, n in zip(offset, shape, strict=True))
            found.append(np.stack([cell[here].ravel(), cell[there].ravel()], axis=-1))
        return np.concatenate(found)

    def sizes(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The offsets without their signs."""
        del shape
        return self.lengths

    def ahead(self, shape: tuple[int, ...]) -> NDArray[np.int64] | None:
        """On a line, as far as the longest offset."""
        return np.minimum(np.arange(shape[0]) + int(self.reach[0]), shape[0] - 1) if len(shape) == 1 else None

    def steps(self, displacement: NDArray[np.int64]) -> float:
        """How many moves a displacement takes."""
        return steps.steps(self, displacement)

    def direct(self, shape: tuple[int, ...], u: int, v: int) -> float:
        """By the displacement."""
        here, there = (np.array(np.unravel_index(c, shape)) for c in (u, v))
        return self.steps(there - here)

    def across(self, shape: tuple[int, ...]) -> float:
        """From one corner to the opposite one."""
        return steps.across(self, shape)

    def to_sources(self, mask: NDArray[np.bool_], cells: NDArray[np.int64], *, boundary: bool) -> NDArray[np.float64]:
        """By the displacements to the sources; an upper bound where both are very many."""
        return steps.to_sources(self, mask, cells, boundary=boundary)

    def pair_types(self, factors: tuple[Operator, ...]) -> Iterator[list[PairTypes]]:
        """Offset by offset. A stencil holds one with every choice of signs, so each axis is seen in both directions.

        Nested blocks are told apart by steps of one cell, which a stencil holds with every longer one.
        """
        seen: dict[tuple[int, int], PairTypes] = {}
        nested = [factor.parts_at_borders for factor in factors]
        lengths = self.lengths
        if any(nested):
            lengths = np.unique(np.where(nested, np.minimum(lengths, 1), lengths), axis=0)
        for offset in lengths:
            types = []
            for axis, (o, factor) in enumerate(zip(offset, factors, strict=True)):
                if (axis, int(o)) not in seen:
                    seen[axis, int(o)] = both_ways(factor, int(o)) if len(factors) > 1 else factor.pair_types(int(o))
                types.append(seen[axis, int(o)])
            yield types

    def farthest(self, factor: Operator) -> int | None:
        """A stencil on a line holds the offsets 1, 2, …, r."""
        return factor.farthest(self.lengths.ravel())


def both_ways(factor: Operator, offset: int) -> PairTypes:
    """The pairs of columns so far apart, in both directions."""
    there = factor.pair_types(offset)
    return there if offset == 0 else there.joined(factor.pair_types(-offset))


def refuse_long(count: int) -> None:
    """Refuse a list of edges that nobody wants."""
    if count > LARGEST_EDGE_LIST:
        raise TooLarge(
            f"this policy has {count:,} edges between cells, too many to list (at most {LARGEST_EDGE_LIST:,}). "
            "Sensitivities, distances and plans do not need the list."
        )
