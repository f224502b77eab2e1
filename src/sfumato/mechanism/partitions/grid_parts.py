"""A grid of blocks, each cut into a grid of parts of its own: what an adaptive grid counts.

Nothing here sees private data. Blocks are given before, and how often each is cut follows from what was released.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput


@dataclass(frozen=True)
class Blocks:
    """Blocks of so many cells along each axis, from the first cell on; the last ones may be cut short."""

    shape: tuple[int, ...]
    sides: tuple[int, ...]

    @property
    def coarse(self) -> tuple[int, ...]:
        """How many there are along each axis."""
        return tuple(-(-n // side) for n, side in zip(self.shape, self.sides, strict=True))

    @property
    def size(self) -> int:
        """How many there are."""
        return int(np.prod(self.coarse, dtype=np.int64))

    @cached_property
    def lengths(self) -> Integers:
        """Cells along each axis, one row a block."""
        along = [
            np.minimum(side, n - side * np.arange(count))
            for n, side, count in zip(self.shape, self.sides, self.coarse, strict=True)
        ]
        return np.stack([table.ravel() for table in np.meshgrid(*along, indexing="ij")], axis=-1).astype(np.int64)

    @cached_property
    def firsts(self) -> Integers:
        """The first cell along each axis, one row a block."""
        at = np.stack(np.unravel_index(np.arange(self.size), self.coarse), axis=-1)
        return at * np.array(self.sides)

    def counts(self, cells: Integers) -> Integers:
        """The sums over blocks, flat, from flat cells; in integers."""
        table = cells.reshape(self.shape)
        for axis, (n, side) in enumerate(zip(self.shape, self.sides, strict=True)):
            table = np.add.reduceat(table, np.arange(0, n, side), axis=axis)
        return table.ravel()

    def crossed(self, offsets: Integers) -> int:
        """The most lines between blocks that one of these moves crosses, added up over the axes.

        Lines are `side` cells apart, and behind the last one there is none: a step of r cells crosses ⌈r/side⌉ at most.
        """
        sides = np.array(self.sides, dtype=np.int64)
        lines = np.minimum(-(-np.abs(offsets) // sides), np.array(self.coarse) - 1)
        return int(lines.sum(axis=1).max(initial=0))


@dataclass(frozen=True, eq=False)
class GridParts:
    """Every block cut into `splits` parts along each axis, one row a block; parts are numbered block after block."""

    blocks: Blocks
    splits: Integers

    def __post_init__(self) -> None:
        splits = np.asarray(self.splits, dtype=np.int64)
        if splits.shape != self.blocks.lengths.shape or (splits < 1).any() or (splits > self.blocks.lengths).any():
            raise InvalidInput("splits must cut every block into at least one part, and at most into its cells.")
        object.__setattr__(self, "splits", splits)

    @classmethod
    def of_size(cls, blocks: Blocks, parts: Floats) -> GridParts:
        """About so many parts for every block, as near to cubes of cells as they may be."""
        lengths = blocks.lengths
        side = (lengths.prod(axis=1) / np.maximum(parts, 1.0)) ** (1 / len(blocks.shape))
        return cls(blocks, np.clip(np.ceil(lengths / side[:, None] - 1e-9).astype(np.int64), 1, lengths))

    @cached_property
    def each(self) -> Integers:
        """How many parts every block has."""
        return np.asarray(self.splits.prod(axis=1))

    @cached_property
    def starts(self) -> Integers:
        """The first part of every block."""
        return np.cumsum(self.each) - self.each

    def __len__(self) -> int:
        return int(self.each.sum())

    @cached_property
    def block_of(self) -> Integers:
        """The block of every part."""
        return np.repeat(np.arange(len(self.each)), self.each)

    @cached_property
    def boxes(self) -> tuple[Integers, Integers]:
        """(first cell, cell after the last) along each axis, one row a part.

        Of a block of l cells cut m times the cell o is in part ⌊o·m/l⌋, which begins at the cell ⌈p·l/m⌉.
        """
        block = self.block_of
        rest, split, length = np.arange(len(self)) - self.starts[block], self.splits[block], self.blocks.lengths[block]
        low, high = np.empty(split.shape, dtype=np.int64), np.empty(split.shape, dtype=np.int64)
        for axis in range(split.shape[1] - 1, -1, -1):
            rest, part = np.divmod(rest, split[:, axis])
            low[:, axis] = -(-part * length[:, axis] // split[:, axis])
            high[:, axis] = -(-(part + 1) * length[:, axis] // split[:, axis])
        return self.blocks.firsts[block] + low, self.blocks.firsts[block] + high

    @cached_property
    def areas(self) -> Floats:
        """The cells of every part."""
        low, high = self.boxes
        return np.asarray((high - low).prod(axis=1), dtype=np.float64)

    @cached_property
    def part_of(self) -> Integers:
        """The part of every cell, flat."""
        coarse, shape = self.blocks.coarse, self.blocks.shape
        at = np.ix_(*(np.arange(n) // side for n, side in zip(shape, self.blocks.sides, strict=True)))
        local = np.zeros(shape, dtype=np.int64)
        for axis, (n, side) in enumerate(zip(shape, self.blocks.sides, strict=True)):
            along = [1] * len(shape)
            along[axis] = n
            offset = (np.arange(n) % side).reshape(along)
            split, length = (table[:, axis].reshape(coarse)[at] for table in (self.splits, self.blocks.lengths))
            local = local * split + offset * split // length
        return (self.starts.reshape(coarse)[at] + local).ravel()

    def counts(self, cells: Integers) -> Integers:
        """The sums over parts, from flat cells; in integers."""
        found = np.zeros(len(self), dtype=np.int64)
        np.add.at(found, self.part_of, cells)
        return found

    def spread(self, values: Floats) -> Floats:
        """Every part's number shared out equally among its cells."""
        return np.asarray((values / self.areas)[self.part_of], dtype=np.float64)

    def by_block(self, values: Floats) -> Floats:
        """Sums over the parts of every block."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=-1))
