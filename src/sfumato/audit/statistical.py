"""The statistical audit, for any mechanism: run it on neighbours, learn what tells them apart, count it on fresh runs.

A few runs on many made-up neighbours choose the pair that looks worst; runs on that pair alone learn one event; fresh
runs count it. Only the last ones enter the bound, so the choices before cost no confidence.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.databases import Pair, pair
from sfumato.audit.events import learn
from sfumato.audit.views import View
from sfumato.mechanism import Mechanism

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

PAIRS = 16  # neighbours that are tried
FIRST_LOOK = 0.3  # of the runs and of the time: choosing the pair
LEARNING = 0.3  # of what is left
FEWEST = 60  # runs on a side in a part
LOOK = 240  # runs on a side that compare neighbours, where they can be afforded
LOOSE = 0.9  # the confidence with which neighbours are compared


class AuditSource:
    """Fast random words from a seed. For audits alone: `private` is False, and no ledger or vault would take it."""

    private = False

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words."""
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)


@dataclass(frozen=True)
class Found:
    """What the runs prove."""

    epsilon: float
    pair: Pair
    event: str
    runs: int
    pairs: int


def search(
    mechanism: Mechanism,
    edges: Integers,
    databases: Sequence[Integers],
    *,
    public: bool,
    records: int,
    samples: int,
    seconds: float,
    confidence: float,
    seed: int,
) -> Found:
    """The largest loss that so many runs (on each of two neighbours), or so much time, prove."""
    rng = np.random.default_rng(seed)
    runner = _Runner(mechanism, public, AuditSource(seed))
    tried = neighbours(edges, databases, records, rng)
    began = time.thread_time()
    runner.both(tried[0], 2)  # tables and caches are filled before the clock counts
    began, warm = time.thread_time(), time.thread_time() - began
    runner.both(tried[0], 3)
    pace = min(warm, _since(began)) / 3
    affordable = min(samples, max(2 * FEWEST, int(seconds / pace)))
    look = max(FEWEST, min(LOOK, int(affordable * FIRST_LOOK) // 2), int(affordable * FIRST_LOOK) // PAIRS)
    tried = tried[: max(1, int(affordable * FIRST_LOOK) // look)]
    chosen, best = tried[0], -math.inf
    for candidate in tried if len(tried) > 1 else ():
        before, after = runner.both(candidate, look)
        part = look * 2 // 3
        _, event = learn(before[:part], after[:part], look, LOOSE)
        loss, _, _ = event.bound(before[part:], after[part:], LOOSE)
        if loss > best:
            chosen, best = candidate, loss
    rest = max(affordable - look * len(tried), 2 * FEWEST)
    learning = runner.both(chosen, max(FEWEST, int(rest * LEARNING)))
    _, event = learn(*learning, rest, confidence)
    # The clock may run faster than the first runs promised; it must not depend on the outcomes, so runs are counted.
    fresh = max(FEWEST, min(rest - len(learning[0]), int((seconds - _since(began)) / (pace or 1e-9))))
    before, after = runner.both(chosen, fresh)
    bound, hits, hits_after = event.bound(before, after, confidence)
    words = (
        f"{event.describe(View(mechanism, chosen.edge).names())}: {hits:,} times in {len(before):,} runs on one, "
        f"{hits_after:,} in {len(after):,} on the other"
    )
    return Found(max(0.0, bound), chosen, words, len(before), len(tried))


def neighbours(edges: Integers, databases: Sequence[Integers], records: int, rng: np.random.Generator) -> list[Pair]:
    """Some pairs: first, last and random edges, each on another database; an edge to ⊥ wherever there is one."""
    picked = [0, len(edges) - 1, *rng.permutation(len(edges)).tolist()]
    absent = np.flatnonzero(edges[:, 1] < 0)
    picked[1:1] = absent[:1].tolist() + absent[-1:].tolist()
    order = list(dict.fromkeys(picked))
    found = []
    for turn in range(PAIRS):
        edge = edges[order[turn % len(order)]]
        base = databases[(turn + turn // len(order)) % len(databases)]
        found.append(pair(base, (int(edge[0]), int(edge[1])), records))
    return found


@dataclass(frozen=True, eq=False)
class _Runner:
    mechanism: Mechanism
    public: bool
    source: AuditSource

    def both(self, neighbours: Pair, runs: int) -> tuple[Floats, Floats]:
        """Tables of features for both databases."""
        tables = []
        for counts in (neighbours.before, neighbours.after):
            total = int(counts.sum()) if self.public else None
            mechanism = self.mechanism if total is None else self.mechanism.for_total(total)
            view = View(mechanism, neighbours.edge)
            tables.append(view.table(counts, total, self.source, runs))
        return tables[0], tables[1]


def _since(moment: float) -> float:
    return time.thread_time() - moment
