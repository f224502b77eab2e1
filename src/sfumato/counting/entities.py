"""Contribution bounds for any number of records: hold them, set apart by entity where they are many, then choose.

Records come in the order of the file, and an entity's may be anywhere in it; which of them are kept is known when all
are there (`sfumato.counting.keyed`). They stay in memory, up to sixteen million. Beyond, they are dealt into 64
heaps by their entity's number and put away in an enciphered temporary file, and each heap goes through the choice by
itself. Where a heap has very many records, equal ones are put into one row. Memory therefore grows with a 64th of the
different records, however many an entity has, and the data is read once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.keyed import Kept, Keyed, Records
from sfumato.counting.packing import Numbers, Packing
from sfumato.counting.spill import Block, Spill

ROWS = 1 << 24
"""Records held in memory before they are put away, eight bytes each, or twelve to sixteen where the numbers of their
entities do not fit beside their cells."""

WAITING = 1 << 22
"""Records of a heap gathered before equal ones are put into one row."""

_BATCH = 1 << 17
_BITS = 6
_HEAPS = 1 << _BITS
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # numbers that lie side by side go to different heaps


class Entities:
    """All records offered, and after :meth:`kept` how many were left out.

    Cells are from -1 to ``cells``; ``values`` are the least and the largest of what else a record says, if anything.
    """

    def __init__(
        self,
        choice: Keyed,
        *,
        cells: int,
        values: tuple[int, int] | None = None,
        rows: int = ROWS,
        waiting: int = WAITING,
    ) -> None:
        self.choice, self.rows, self.waiting = choice, rows, waiting
        self._number = np.int32 if cells <= 1 << 31 else np.int64
        self.cut = self.entities_cut = 0
        self._packing = Packing.beside((-1, cells), *(() if values is None else (values,)))
        self._words = np.empty(0, np.uint64)  # records, as many as there are, while entities fit beside their cells
        self._held: list[Records] = []
        self._count = 0
        self._spill: Spill | None = None
        self._blocks: list[list[Block]] = [[] for _ in range(_HEAPS)]

    def add(self, entities: NDArray[np.uint64], cells: Numbers, values: Numbers | None = None) -> None:
        """Offer records: the numbers of their entities, their cells, and what else they say."""
        columns = (entities, cells, *(() if values is None else (values,)))
        if self._packing is not None and not self._packing.holds(entities):
            self._unpack()
            self._packing, self._words = None, np.empty(0, np.uint64)
        if self._packing is None:
            # Copies: a batch of an engine stays in memory whole while a column of it is held.
            said = None if values is None else values.copy()
            self._held.append(Records(entities.copy(), cells.astype(self._number), said))
        else:
            if self._count + len(cells) > len(self._words):
                words = np.empty(self.rows + len(cells), np.uint64)  # what is not touched takes no memory
                words[: self._count] = self._words[: self._count]
                self._words = words
            self._packing.pack(columns, self._words[self._count : self._count + len(cells)])
        self._count += len(cells)
        if self._count >= self.rows:
            self._put_away()

    def kept(self) -> Iterator[Kept]:
        """The records that were chosen, some at a time."""
        if self._spill is not None:
            self._put_away()
            for blocks in self._blocks:
                yield from self._chosen(self.choice.kept(self._gathered(blocks, self._spill)))
            self._spill.close()
        elif self._packing is not None:
            yield from self._chosen(self.choice.kept_words(self._words[: self._count], self._packing))
        else:
            for heap in self._heaps():
                yield from self._chosen(self.choice.kept(heap))

    def _chosen(self, parts: Iterator[Kept]) -> Iterator[Kept]:
        for kept in parts:
            self.cut += kept.cut
            self.entities_cut += kept.persons_cut
            yield kept

    def _gathered(self, blocks: list[Block], spill: Spill) -> list[Records]:
        """The records of a heap; of very many, one row for those that are equal."""
        found: list[Records] = []
        most = self.waiting
        for block in blocks:
            found.append(spill.read(block))
            if sum(map(len, found)) > most:
                found = [Records.joined([part.counted() for part in found]).merged()]
                most = max(self.waiting, 2 * len(found[0]))  # each row is sorted a few times, not at every turn
        return found if all(part.times is None for part in found) else [part.counted() for part in found]

    def _unpack(self) -> None:
        """Hold what is in words as columns."""
        if self._packing is None:
            return
        for start in range(0, self._count, _BATCH):
            words = self._words[start : min(start + _BATCH, self._count)]
            persons, cells, *values = self._packing.columns(words)
            self._held.append(Records(persons.view(np.uint64), cells.astype(self._number), *values))

    def _heaps(self) -> list[list[Records]]:
        """What is in memory, dealt; then nothing is."""
        self._unpack()
        heaps: list[list[Records]] = [[] for _ in range(_HEAPS)]
        while self._held:
            batch = self._held.pop()
            order, starts = dealt(batch.persons)
            ordered = batch[order]
            for heap, part in enumerate(heaps):
                part.append(ordered[starts[heap] : starts[heap + 1]])
        self._count = 0
        return heaps

    def _put_away(self) -> None:
        if self._spill is None:
            self._spill = Spill()
        for blocks, part in zip(self._blocks, self._heaps(), strict=True):
            if any(map(len, part)):
                blocks.append(self._spill.write(Records.joined(part)))


def dealt(entities: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order that puts the entities of a heap side by side, and where each of the heaps begins and the last ends."""
    shift = np.uint64(64 - _BITS)
    packed = (((entities * _SPREAD) >> shift) << shift) | np.arange(len(entities), dtype=np.uint64)
    packed.sort()
    starts = np.searchsorted(packed >> shift, np.arange(_HEAPS + 1, dtype=np.uint64))
    return (packed & ((np.uint64(1) << shift) - np.uint64(1))).astype(np.int64), starts
