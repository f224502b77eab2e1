"""What an exact audit is asked, and what it answers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.auditing.databases import Pair, pair
from sfumato.auditing.result import Loss
from sfumato.mechanism import Mechanism
from sfumato.noise import DiscreteLaplace, Geometric, SeededSource

RUNS_COMPARED = 30  # draw for draw: one value may by chance be the same under two laws, many are not


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """A mechanism, its promise for one record, and the changes and databases to look at.

    `tiny` are all databases with hardly any records, where these are few. Changes that are not reached by the
    deadline, in computing time of this thread, are left out; one is always looked at.
    """

    mechanism: Mechanism
    promised: Fraction
    total_is_public: bool
    edges: Integers
    databases: Sequence[Integers]
    tiny: Sequence[Integers]
    deadline: float

    def total(self, counts: Integers) -> int | None:
        """The number of records as the mechanism is told it."""
        return int(counts.sum()) if self.total_is_public else None

    def seeded(self) -> Iterator[tuple[int, Integers]]:
        """Seeds, each with one of the databases, for comparing runs draw for draw."""
        for seed in range(RUNS_COMPARED):
            yield seed, self.databases[seed % len(self.databases)]

    def publishes(self, counts: Integers, seed: int, measured: Integers, estimates: Floats) -> bool:
        """Whether the mechanism itself publishes just that, from the random words of the seed."""
        total = self.total(counts)
        made = self.mechanism if total is None else self.mechanism.for_total(total)
        counts = made.seen(counts)
        drawn, observed = made.observe(counts, total, SeededSource(seed))
        if drawn is not None and not np.array_equal(drawn, measured):
            return False
        ran = made.run(counts, total, SeededSource(seed))
        return all(np.array_equal(found, estimates, equal_nan=True) for found in (ran, observed))

    @property
    def shown_by_the_total(self) -> Pair | None:
        """Neighbours that the published number of records tells apart: a record appears though it is public."""
        appearing = self.edges[self.edges[:, 1] < 0]
        if not self.total_is_public or not len(appearing):
            return None
        return pair(self.databases[0], (int(appearing[0, 0]), int(appearing[0, 1])))

    def edges_in_time(self) -> Iterator[tuple[int, int]]:
        """The changes, until the deadline."""
        for i, (u, v) in enumerate(self.edges.tolist()):
            if i and time.thread_time() > self.deadline:
                return
            yield u, v


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The worst loss among the neighbours looked at, and the laws of noise that it rests on."""

    loss: Loss
    method: str
    pair: Pair
    event: str
    edges: int
    databases: int
    laws: frozenset[DiscreteLaplace | Geometric] = frozenset()
