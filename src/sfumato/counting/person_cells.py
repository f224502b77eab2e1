"""Distinct people: in which cells each person is counted, at most so many, chosen under a key.

**What is promised.** A person counts once in every cell that a record of hers lies in. Where those are more than m
cells, the m of least priority AES_K(person‖cell) are kept. The priority of a cell depends on nothing but the person and
the cell: not on how many records lie there, nor on what else the person did. So every set of m cells is equally likely,
and runs over two sets of records can be paired under one key:

- where one record changes, comes or goes, the cells that the person was in lose one at most and gain one at most. Of
  the m that are kept one at most becomes another one, comes or goes: what is pushed out, or comes in, is the next in
  one order of all cells, the same for both;
- whatever happens to all records of a person, at most m cells become others.

Nobody else's cells change. Records that lie in no cell count for nothing, and take no place from others.

For one key the choice depends on the set of a person's cells alone: it is the same after another order of rows, another
way of cutting them into parts, and on another engine. The key is never written, shown or logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.keyed import Kept, Keyed, Records, priorities
from sfumato.counting.packing import Numbers, Packing, positions, run_lengths


@dataclass(frozen=True)
class PersonCells(Keyed):
    """The choice of at most ``limit`` cells a person under a key."""

    def kept(self, batches: Sequence[Records]) -> Iterator[Kept]:
        """The cells of all persons, each once; of all records of these persons."""
        batches = [batch for batch in batches if len(batch)]
        if batches:
            rows = Records.joined([batch.counted() for batch in batches]).merged()
            yield from self._kept_once(rows.persons, rows.cells)

    def kept_words(self, words: NDArray[np.uint64], packing: Packing) -> Iterator[Kept]:
        """The same of records in words, persons first."""
        words = np.unique(words)
        yield from self._kept_once(packing.column(words, 0).view(np.uint64), packing.column(words, 1))

    def _kept_once(self, persons: NDArray[np.uint64], cells: Numbers) -> Iterator[Kept]:
        """Of persons side by side, each cell of one once, in order."""
        persons, cells = persons[cells >= 0], cells[cells >= 0]
        if not len(cells):
            return
        lengths = run_lengths(persons)
        long = lengths > self.limit
        crowded = np.repeat(long, lengths)
        yield Kept(cells[~crowded], None, 0, 0)
        many = cells[crowded]
        if not len(many):
            return
        drawn = priorities(self.key, persons[crowded], many.astype(np.uint64))
        group = np.repeat(np.arange(np.count_nonzero(long)), lengths[long])
        order = np.lexsort((many, drawn, group))
        kept = many[order[positions(lengths[long]) < self.limit]]
        yield Kept(kept, None, len(many) - len(kept), int(np.count_nonzero(long)))
