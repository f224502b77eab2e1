"""The audit of a tree of boxes that is found by noisy scores, and of the noisy numbers of its leaves.

Every box is split or not with a probability that is known, and boxes know nothing of each other's noise. So the tree
that tells two neighbours apart best is found from the leaves up: a box that ends there tells the log-ratio of not being
split, and as much as its noisy number can; one that is split tells the log-ratio of that, and what its children tell at
best. Boxes with the same number of records in both tell nothing. Both ways round, that is the largest loss between two
neighbours over all trees and numbers, with logarithms in double precision: "argument".

That a run is just that is checked first, draw for draw, with the tree found anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.auditing.databases import pair
from sfumato.auditing.exact.question import Finding, Question
from sfumato.mechanism.forms import Splits
from sfumato.noise import SeededSource

ROUNDING = 1e-9  # relative, of a loss in floating point


def audit_splits(form: Splits, question: Question) -> Finding | str:
    """The largest loss over changes and databases, or in words why there is none."""
    check = SplitsAudit(form, question)
    if not check.faithful():
        return "it does not split boxes and then add noise to the numbers of the rest as it says"
    return check.worst() or "no change was looked at"


@dataclass(frozen=True, eq=False)
class SplitsAudit:
    """A form beside the mechanism that claims it."""

    form: Splits
    question: Question

    def faithful(self) -> bool:
        """Whether the mechanism draws just that, and publishes what follows from it, from the same random words."""
        return all(self._alike(counts, seed) for seed, counts in self.question.seeded())

    def _alike(self, counts: Integers, seed: int) -> bool:
        form, source = self.form, SeededSource(seed)
        levels = form.levels(counts)
        splits = [] if form.number is None else [int(levels[0][0] + form.number.sample(1, source)[0])]
        leaves: list[int] = []
        reached = [0]
        for level, table in enumerate(levels):
            able = [box for box in reached if not form.single[level][box]]
            noise = form.choice.sample(len(able), source).tolist() if able else []
            found = [
                max(int(table[box]) - level * form.decay, -form.floor) + eta > 0
                for box, eta in zip(able, noise, strict=True)
            ]
            split = {box for box, whether in zip(able, found, strict=True) if whether}
            splits += map(int, found)
            leaves += [int(table[box]) for box in reached if box not in split]
            if level < len(form.parents):
                reached = [child for child, parent in enumerate(form.parents[level].tolist()) if parent in split]
        numbers = np.array(leaves, dtype=np.int64) + form.noise.sample(len(leaves), source)
        drawn = np.concatenate([np.array(splits, dtype=np.int64), numbers])
        return self.question.publishes(counts, seed, drawn, form.estimate(drawn, self.question.total(counts)))

    def worst(self) -> Finding | None:
        """The largest loss over changes and databases."""
        worst: Finding | None = None
        reached, databases = 0, self.question.databases
        laws = frozenset(law for law in (self.form.choice, self.form.noise, self.form.number) if law is not None)
        for edge in self.question.edges_in_time():
            reached += 1
            for base in databases:
                neighbours = pair(base, edge)
                loss = self.loss(neighbours.before, neighbours.after)
                if worst is None or loss > worst.loss:
                    worst = Finding(
                        loss=loss,
                        method="argument",
                        pair=neighbours,
                        event="the tree of boxes that tells most, and their numbers",
                        edges=reached,
                        databases=len(databases),
                        laws=laws,
                    )
        if worst is None:
            return None
        # Rounding says nothing.
        near = worst.loss <= float(self.question.promised) * (1 + ROUNDING)
        return replace(worst, loss=min(worst.loss, self.question.promised) if near else worst.loss, edges=reached)

    def loss(self, counts: Integers, other: Integers) -> float:
        """What trees and numbers tell of the two, at most: the number of all records is known beside them."""
        one, two = self.form.levels(counts), self.form.levels(other)
        everybody = 0.0 if self.form.number is None else float(self.form.number.rate) * abs(int(one[0][0] - two[0][0]))
        return everybody + max(self._one_way(one, two), self._one_way(two, one))

    def _one_way(self, one: Sequence[Integers], two: Sequence[Integers]) -> float:
        """The largest logarithm of how much likelier the first makes a tree and its numbers."""
        form, below = self.form, np.zeros(0)
        for level in range(len(one) - 1, -1, -1):
            x, y = one[level], two[level]
            moved = np.abs(x - y) * float(form.noise.rate)
            scores = [np.maximum(table - level * form.decay, -form.floor) for table in (x, y)]
            ends = moved + self._kept(scores[0]) - self._kept(scores[1])
            if level < len(form.parents):
                told = np.zeros(len(x))
                np.add.at(told, form.parents[level], below)
                split = told + self._split(scores[0]) - self._split(scores[1])
                below = np.where(form.single[level], moved, np.maximum(ends, split))
            else:
                below = np.where(form.single[level], moved, ends)
        return float(below[0])

    def _split(self, scores: Integers) -> Floats:
        """log P[score + η > 0]."""
        return self._at_least(1 - scores)

    def _kept(self, scores: Integers) -> Floats:
        """log P[score + η ≤ 0], which is that of η ≥ score."""
        return self._at_least(scores)

    def _at_least(self, k: Integers) -> Floats:
        """log P[η ≥ k]: q^k/(1 + q) for k ≥ 0, and what is left of one below."""
        rate = float(self.form.choice.rate)
        both = math.log1p(math.exp(-rate))
        tail = np.exp(-rate * np.maximum(1 - k, 0) - both)
        return np.where(k >= 1, -rate * np.maximum(k, 0) - both, np.log1p(-tail))
