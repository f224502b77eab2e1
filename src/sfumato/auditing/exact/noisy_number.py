"""The exact audit of a noisy number of records, followed by noisy sums that are a function of it.

Given the number that came out, the sums of two neighbours differ by a known d: the loss is the rate of the number (if
it differs) plus the rate of the sums times ‖d‖₁, at the worst number. That a run is just that is checked first, draw
for draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato._types import Integers
from sfumato.auditing.databases import Pair, pair
from sfumato.auditing.exact.question import Finding, Question
from sfumato.auditing.result import Loss
from sfumato.errors import InvalidInput
from sfumato.mechanism.forms import NoisyNumber
from sfumato.noise import SeededSource

NUMBERS_AROUND = 4  # numbers of records tried on either side of the true ones, and the first few


def audit_noisy_number(form: NoisyNumber, question: Question) -> Finding | str:
    """The largest loss, or in words why the mechanism is not what it says."""
    check = NumberAudit(form, question)
    if not check.faithful():
        return "it does not draw a number of records and then noisy sums"
    return check.worst()


@dataclass(frozen=True, eq=False)
class NumberAudit:
    """A form beside the mechanism that claims it."""

    form: NoisyNumber
    question: Question

    def faithful(self) -> bool:
        """Whether the mechanism draws just that, and publishes what follows from it, from the same random words."""
        return all(self._alike(counts, seed) for seed, counts in self.question.seeded())

    def _alike(self, counts: Integers, seed: int) -> bool:
        form, source, total = self.form, SeededSource(seed), self.question.total(counts)
        number = min(max(int(counts.sum()) + int(form.number.sample(1, source)[0]), 0), form.most)
        sums = form.sums(counts, number)
        if form.noise is not None:
            sums = sums + form.noise.sample(len(sums), source)
        drawn = np.concatenate([form.head(number), sums])
        return self.question.publishes(counts, seed, drawn, form.estimate(drawn, total))

    def worst(self) -> Finding:
        """Over edges and databases."""
        databases = [*self.question.databases, *self.question.tiny]
        worst: tuple[Loss, int, Pair] | None = None
        reached = 0
        for edge in self.question.edges_in_time():
            reached += 1
            for base in databases:
                neighbours = pair(base, edge)
                loss, number = self.loss(neighbours)
                if worst is None or loss > worst[0]:
                    worst = (loss, number, neighbours)
        if worst is None:
            raise InvalidInput("edges is empty: a policy without changes has nothing to audit.")
        loss, number, neighbours = worst
        return Finding(
            loss=loss,
            method="exact",
            pair=neighbours,
            event=f"the noisy number of records is {number}",
            edges=reached,
            databases=len(databases),
            laws=frozenset(law for law in (self.form.number, self.form.noise) if law is not None),
        )

    def loss(self, neighbours: Pair) -> tuple[Loss, int]:
        """(the loss of one change, the number at which it is reached)."""
        records = [int(neighbours.before.sum()), int(neighbours.after.sum())]
        low, high = min(records), max(records)
        told = self.form.number.rate * (high - low)
        rate = Fraction(0) if self.form.noise is None else self.form.noise.rate
        worst: tuple[Loss, int] = (told, low)
        around = range(max(0, low - NUMBERS_AROUND), high + NUMBERS_AROUND + 1)
        for number in sorted({*range(NUMBERS_AROUND), *around}):
            d = self.form.sums(neighbours.after, number) - self.form.sums(neighbours.before, number)
            moved = int(np.abs(d).sum())
            if moved and self.form.noise is None:
                return math.inf, number
            worst = max(worst, (told + rate * moved, number))
        return worst
