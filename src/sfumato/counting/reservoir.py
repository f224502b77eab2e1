"""At most m records of each entity, chosen by randomness that does not look at them.

**What is promised.** Every set of m among an entity's records is equally likely to be kept, whatever the
records say and in whatever order they come, and an entity with at most m records keeps them all. So one
person touches the counts with m records at most, and when records move the *choice* does not move with them:
pair the runs that make the same choice, and the counts differ by the moves of at most m records. A rule that
prefers the first rows, or breaks ties by content, does not have this property when a file is sorted by place.

**How.** Algorithm R (Vitter 1985) for all entities at once. The t-th record of an entity draws a slot below
t; it is kept if the slot is below m, in place of whoever had it. Rows are grouped by sorting; the last row
that drew a slot wins it. Slots come from cryptographic words w as ``floor(w·t / 2⁶⁴)``, each within 2⁻⁶⁴ of
its probability 1/t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.keyed import grouped
from sfumato.counting.spill import Number
from sfumato.noise import Source

WAITING = 1 << 21
"""Rows gathered before they are thinned out: an entity with very many records costs no more memory than this."""

_GROUPS = 1 << 15  # entities thinned at a time: what they need stays in the cache


class Reservoir:
    """The records kept so far, at most ``limit`` of each entity."""

    def __init__(self, limit: int, source: Source, *, waiting: int = WAITING, number: Number = np.int32) -> None:
        self.limit, self.source, self.waiting = limit, source, waiting
        self._entities = np.empty(0, np.uint64)  # of the kept records, grouped
        self._cells: NDArray[np.integer] = np.empty(0, number)
        self._passed = np.empty(0, np.int64)  # records left out, at their entity's first kept one
        self._new: list[tuple[NDArray[np.uint64], NDArray[np.integer]]] = []
        self._rows = 0

    def add(self, entities: NDArray[np.uint64], cells: NDArray[np.integer]) -> None:
        """Offer records. Entities are 64-bit digests; two that collide would share their m (see `Batches`)."""
        self._new.append((entities, cells))
        self._rows += len(cells)
        if self._rows >= max(self.waiting, len(self._cells)):  # each row is sorted a few times, not at every turn
            self._thin()

    def kept(self) -> NDArray[np.integer]:
        """The cells of the records that were chosen."""
        self._thin()
        return self._cells

    @property
    def cut(self) -> int:
        """How many records were left out, of those thinned so far."""
        return int(self._passed.sum())

    @property
    def entities_cut(self) -> int:
        """How many entities lost a record, of those thinned so far."""
        return int(np.count_nonzero(self._passed))

    def _thin(self) -> None:
        """Take the waiting records into account, entity by entity."""
        if not self._rows:
            return
        entities = np.concatenate([self._entities, *(e for e, _ in self._new)])
        cells = np.concatenate([self._cells, *(c for _, c in self._new)])
        old, passed = len(self._cells), np.append(self._passed, 0)
        self._new, self._rows = [], 0
        order, entities = grouped(entities)  # kept records stand first, so they come first in their group
        starts = np.flatnonzero(np.append(True, entities[1:] != entities[:-1]))
        ends = np.append(starts[1:], len(order))
        tables, passes = [], []
        for a in range(0, len(starts), _GROUPS):
            b = min(a + _GROUPS, len(starts))
            before = passed[np.minimum(order[starts[a:b]], old)]
            table, after = _chosen(ends[a:b] - starts[a:b], before, self.limit, self.source)
            tables.append(table + starts[a])
            passes.append(after)
        chosen = np.concatenate(tables)
        self._entities, self._cells, self._passed = entities[chosen], cells[order[chosen]], np.concatenate(passes)


def _chosen(
    lengths: NDArray[np.int64], before: NDArray[np.int64], limit: int, source: Source
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which rows of consecutive groups are kept, and how many were left out, at each group's first kept row.

    The first rows of a group hold its slots. Row number t (counting the ``before`` that were left out earlier) draws
    one below t and takes it over if it is one of the group's; of several the last does, which is the largest position.
    """
    starts, sizes = np.cumsum(lengths) - lengths, np.minimum(lengths, limit)
    offsets, group = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(lengths)), lengths)
    position = np.arange(len(group)) - starts[group]
    table, late = np.flatnonzero(position < limit), np.flatnonzero(position >= limit)
    group = group[late]
    slot = _below(source.words(len(late)), position[late] + before[group] + 1)
    drawn = slot < limit
    np.maximum.at(table, offsets[group[drawn]] + slot[drawn], late[drawn])
    passed = np.zeros(len(table), np.int64)
    passed[offsets] = before + lengths - sizes
    return table, passed


def _below(words: NDArray[np.uint64], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """``floor(word · bound / 2⁶⁴)`` exactly, for bounds below 2³²."""
    half, bound = np.uint64(32), bounds.astype(np.uint64)
    low = (words & np.uint64(0xFFFFFFFF)) * bound
    return (((words >> half) * bound + (low >> half)) >> half).astype(np.int64)
