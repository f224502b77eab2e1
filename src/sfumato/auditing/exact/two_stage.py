"""DAWA by its two stages, on few cells: what the choice of the runs tells, and on top of it what their totals tell.

Given the runs, the second stage adds noise to integers. Whoever sees the runs and the noisy totals, and so whoever sees
what is made of them, tells two neighbours apart by at most the log-ratio of the runs' probabilities (`partitions`) plus
the cost of moving the totals: an upper bound, "argument", which is reached where the counts show runs and totals.

What is summed up is checked on runs first: from the same random words the same runs, the same totals and, to the last
bit, the same counts must come out. Partitions of hardly any probability are left out. What a rare one tells, a common
one tells on another database: among those made up there are gaps of all sizes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.databases import pair
from sfumato.auditing.exact.additive import Finding
from sfumato.auditing.exact.partition_law import Cuts, Starts
from sfumato.auditing.result import Loss
from sfumato.domain.hilbert import hilbert_order
from sfumato.linear import Incidence
from sfumato.mechanism import Mechanism
from sfumato.mechanism.base import settle
from sfumato.mechanism.partitions import dawa as rules
from sfumato.mechanism.partitions.adaptive import DawaOnCells, DawaOnTree
from sfumato.mechanism.partitions.bucket_tree import UNITS, BucketTree, best_tree, flat_tree
from sfumato.mechanism.partitions.partition import Buckets
from sfumato.noise import DiscreteLaplace, Geometric, SeededSource, Source
from sfumato.policies import Transformed, transform

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST = 700  # partitions that are compared: sixteen cells have 625
LONGEST = 16_384  # values of noise that are convolved
RUNS = 30  # compared draw for draw
ROUNDING = 1e-7  # relative, of a loss in floating point


@dataclass(frozen=True, eq=False)
class TwoStages:
    """DAWA under one policy."""

    mechanism: DawaOnCells | DawaOnTree

    @classmethod
    def of(cls, mechanism: Mechanism) -> TwoStages | None:
        """Where the mechanism is DAWA, and so small that every partition can be looked at."""
        if not isinstance(mechanism, DawaOnCells | DawaOnTree):
            return None
        found = cls(mechanism)
        small = found.cuts.partitions <= MOST and (found.cuts.levels <= 1 or found.cuts.reach <= LONGEST)
        return found if small else None

    @cached_property
    def _tree(self) -> Transformed:
        return transform(self.mechanism.policy.spanner())

    @cached_property
    def _order(self) -> Integers:
        if isinstance(self.mechanism, DawaOnTree):
            return np.argsort(self._tree.edges[:, 0], kind="stable")
        shape = self.mechanism.policy.domain.shape
        return np.arange(math.prod(shape)) if len(shape) == 1 else hilbert_order(shape)

    @cached_property
    def _asked(self) -> str:
        return "entries" if isinstance(self.mechanism, DawaOnTree) else str(self.mechanism.options["queries"])

    @cached_property
    def budgets(self) -> tuple[Fraction, Fraction]:
        """What either stage spends on a change of one entry by one."""
        if isinstance(self.mechanism, DawaOnTree):
            return rules.budgets(self.mechanism.edge_epsilon, rules.RATIO, "edge")
        kind = "replace" if self.mechanism.policy.total_is_public else "add/remove"
        return rules.budgets(self.mechanism.epsilon, rules.RATIO, kind)

    @cached_property
    def cuts(self) -> Cuts:
        """The first stage."""
        return Cuts(len(self._order), self.budgets[0], rules.penalty(*self.budgets, self._asked))

    @property
    def laws(self) -> list[DiscreteLaplace | Geometric]:
        """The noise of the first stage, and that of a total which has all of the second budget."""
        return [*self.cuts.noise, DiscreteLaplace(self.budgets[1])]

    @cached_property
    def _trees(self) -> dict[Starts, BucketTree]:
        return {}

    def tree(self, starts: Starts) -> BucketTree:
        """The hierarchy over the runs that came out."""
        if starts not in self._trees:
            buckets = Buckets(np.array(starts), len(self._order))
            self._trees[starts] = best_tree(buckets) if self._asked == "ranges" else flat_tree(buckets)
        return self._trees[starts]

    def entries(self, counts: Integers) -> Integers:
        """The line that is cut: counts, or the edge values of a tree."""
        values = self._tree.database(counts) if isinstance(self.mechanism, DawaOnTree) else counts
        return np.asarray(values[self._order], dtype=np.int64)

    def run(self, counts: Integers, total: int | None, source: Source) -> Floats:
        """What the mechanism publishes if it is what is summed up here."""
        x = self.entries(counts)
        buckets = self.cuts.cut(x, source)
        tree = self.tree(tuple(buckets.starts.tolist()))
        measured = []
        for level, units in zip(tree.measure(x), tree.units, strict=True):
            noise = np.zeros(len(level), dtype=np.int64)
            for share in sorted(set(units[units > 0].tolist())):
                law = DiscreteLaplace(self.budgets[1] * Fraction(share, UNITS))
                noise[units == share] = law.sample(int((units == share).sum()), source)
            measured.append(level + noise)
        return self._cells(buckets.spread(tree.estimate(measured)), total)

    def _cells(self, found: Floats, total: int | None) -> Floats:
        """Entries back to cells: post-processing."""
        size = self.mechanism.policy.domain.size
        if isinstance(self.mechanism, DawaOnTree):
            edges = self._tree.edges[self._order]
            if self.mechanism.options.get("consistent"):
                found = self.mechanism.edges.project(found, total)
            cells = Incidence(size, edges[:, 0], edges[:, 1]).forward(found)
            if total is not None:
                cells[self._tree.root] += total
        else:
            cells = np.empty(size)
            cells[self._order] = found
            cells = cells if total is None else cells + (total - cells.sum()) / size
        return cells if total is None else settle(cells, total)

    def faithful(self, databases: Sequence[Integers], public: bool) -> bool:
        """Whether the mechanism does just that, from the same random words."""
        if self.mechanism.policy.total_is_public != public:
            return False
        for seed in range(RUNS):
            counts = databases[seed % len(databases)]
            total = int(counts.sum()) if public else None
            own = self.mechanism.run(counts, total, SeededSource(seed))
            if not np.array_equal(own, self.run(counts, total, SeededSource(seed))):
                return False
        return True

    def worst(self, edges: Integers, databases: Sequence[Integers], deadline: float) -> Finding | None:
        """The largest loss over changes, databases and partitions; edges not reached by the deadline are left out."""
        worst: Finding | None = None
        reached = 0
        for edge in map(tuple, edges.tolist()):
            if reached and time.thread_time() > deadline:
                break
            reached += 1
            for base in databases:
                neighbours = pair(base, edge)
                loss, event = self.loss(self.entries(neighbours.before), self.entries(neighbours.after))
                if worst is None or loss > worst.loss:
                    worst = Finding(loss, "argument", neighbours, event, reached, len(databases))
        return None if worst is None else replace(worst, edges=reached)

    def loss(self, x: Integers, other: Integers) -> tuple[Loss, str]:
        """(what runs and totals tell between two lines, the runs that tell most)."""
        worst: tuple[Loss, str] = (0.0, "")
        for chosen in product(*self.cuts.ratios(x, other)):
            starts = tuple(at for pattern, _ in chosen for at in pattern)
            choice, totals = abs(sum(ratio for _, ratio in chosen)), self._moved(starts, x, other)
            if choice + totals > worst[0]:
                words = f"runs that begin at {', '.join(map(str, starts))}: their choice tells {choice:.4g}, "
                worst = choice + totals, f"{words}their totals {totals:.4g}"
        return worst

    def _moved(self, starts: Starts, x: Integers, other: Integers) -> float:
        """What the totals tell of a change, given the runs."""
        tree, units = self.tree(starts), 0
        for one, two, share in zip(tree.measure(x), tree.measure(other), tree.units, strict=True):
            moved = np.abs(one - two)
            if moved[share == 0].any():
                return math.inf
            units += int((moved * share).sum())
        return float(self.budgets[1] * Fraction(units, UNITS))
