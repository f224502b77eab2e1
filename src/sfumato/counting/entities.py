"""Contribution bounds for any number of records: set them apart by entity, then choose.

Records come in the order of the file, and an entity's may be anywhere in it. They are dealt into 64 heaps by their
entity's digest; each heap then goes through a `Reservoir` by itself. Heaps stay in memory up to a hundred megabytes,
and are put away in an enciphered temporary file beyond. Memory therefore grows with a 64th of the entities, not with
the records, and the data is read once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.reservoir import Reservoir
from sfumato.counting.spill import Block, Records, Spill, number_for
from sfumato.noise import Source

ROWS = 1 << 23
"""Records held in memory before they are put away, twelve bytes each, or sixteen where there are very many cells."""

_BITS = 6
_HEAPS = 1 << _BITS


class Entities:
    """All records offered, and after :meth:`kept` how many were left out."""

    def __init__(self, limit: int, source: Source, *, rows: int = ROWS, cells: int = 0) -> None:
        self.limit, self.source, self.rows = limit, source, rows
        self._number = number_for(cells)
        self.cut = self.entities_cut = 0
        self._held: list[tuple[Records, NDArray[np.int64]]] = []  # dealt batches, and where each heap begins in them
        self._count = 0
        self._spill: Spill | None = None
        self._blocks: list[list[Block]] = [[] for _ in range(_HEAPS)]

    def add(self, entities: NDArray[np.uint64], cells: NDArray[np.int64]) -> None:
        """Offer records: the digests of their entities, and their cells."""
        order, starts = dealt(entities)
        self._held.append(((entities[order], cells[order].astype(self._number)), starts))
        self._count += len(cells)
        if self._count >= self.rows:
            self._put_away()

    def kept(self) -> Iterator[NDArray[np.integer]]:
        """The cells of the records that were chosen, heap by heap."""
        for heap, blocks in enumerate(self._blocks):
            reservoir = Reservoir(self.limit, self.source, number=self._number)
            if self._spill is not None:
                for block in blocks:
                    reservoir.add(*self._spill.read(block))
            reservoir.add(*self._heap(heap))
            yield reservoir.kept()
            self.cut += reservoir.cut
            self.entities_cut += reservoir.entities_cut
        if self._spill is not None:
            self._spill.close()

    def _heap(self, heap: int) -> Records:
        """What is in memory of a heap."""
        parts = [(e[s[heap] : s[heap + 1]], c[s[heap] : s[heap + 1]]) for (e, c), s in self._held]
        if not parts:
            return np.empty(0, np.uint64), np.empty(0, self._number)
        return np.concatenate([e for e, _ in parts]), np.concatenate([c for _, c in parts])

    def _put_away(self) -> None:
        if self._spill is None:
            self._spill = Spill(self._number)
        for heap, blocks in enumerate(self._blocks):
            blocks.append(self._spill.write(self._heap(heap)))
        self._held, self._count = [], 0


def dealt(entities: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order that puts the entities of a heap side by side, and where each of the heaps begins and the last ends."""
    shift = np.uint64(64 - _BITS)
    packed = ((entities >> shift) << shift) | np.arange(len(entities), dtype=np.uint64)
    packed.sort()
    starts = np.searchsorted(packed >> shift, np.arange(_HEAPS + 1, dtype=np.uint64))
    return (packed & ((np.uint64(1) << shift) - np.uint64(1))).astype(np.int64), starts
