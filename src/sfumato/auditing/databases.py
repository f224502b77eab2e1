"""Made-up databases, and their neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from sfumato._types import Integers
from sfumato.auditing.result import Witness
from sfumato.policies import Policy

MOST_TINY_DATABASES = 200  # of one number of records: up to so many, all of them are tried


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbours: `records` records at the end `edge[1]` in one, at `edge[0]` in the other (⊥: nowhere)."""

    edge: tuple[int, int]
    before: Integers
    after: Integers

    @property
    def databases(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """As plain data."""
        return tuple(self.before.tolist()), tuple(self.after.tolist())

    def witness(self, event: str) -> Witness:
        """These neighbours, and what tells them apart."""
        return Witness(edge=self.edge, databases=self.databases, event=event)


def pair(base: Integers, edge: tuple[int, int], records: int = 1) -> Pair:
    """The base with so many records more, at either end of the edge."""
    ends = []
    for cell in (edge[1], edge[0]):
        counts = base.copy()
        if cell >= 0:
            counts[cell] += records
        ends.append(counts)
    return Pair(edge, *ends)


def bases(policy: Policy, rng: np.random.Generator, given: Integers | None = None) -> list[Integers]:
    """Databases to start from: public ones if given, no record at all, ties, heaps, gaps of all sizes, noise."""
    size = policy.domain.size
    found = [] if given is None else [given]
    found += [
        np.zeros(size, dtype=np.int64),
        np.ones(size, dtype=np.int64),
        np.arange(size, dtype=np.int64) * 7 % 11,
        np.where(np.arange(size) == size // 2, 40, 0).astype(np.int64),
        np.where(np.arange(size) % 2 == 1, 4 ** (np.arange(size) // 2 % 4), 0).astype(np.int64),
        rng.integers(0, 4, size),
        rng.integers(0, 1000, size),
    ]
    return found


def tiny(policy: Policy, most_records: int = 3) -> Iterator[Integers]:
    """Every database with so few records that all can be tried."""
    size = policy.domain.size
    for records in range(1, most_records + 1):
        if size**records > MOST_TINY_DATABASES:
            return
        for cells in combinations_with_replacement(range(size), records):
            yield np.bincount(cells, minlength=size).astype(np.int64)
