"""The audit of two stages, on few cells: what the choice of the runs tells, and on top of it what their totals tell.

Given the runs, the second stage adds noise to integers. Whoever sees the runs and the noisy totals, and so whoever sees
what is made of them, tells two neighbours apart by at most the log-ratio of the runs' probabilities (`partition_law`)
plus the cost of moving the totals: an upper bound, "argument", which is reached where the counts show runs and totals.

What is summed up is checked on runs first. The runs are chosen anew here, from the same random words, and their totals
get noise anew; to the last bit the same counts must come out, and the same integers where a release keeps them. The
line of entries is the mechanism's own, since the loss is what *it* tells of a change. Partitions of hardly any
probability are left out. What a rare one tells, a common one tells on another database: among those made up there are
gaps of all sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from sfumato._types import Integers
from sfumato.auditing.databases import pair
from sfumato.auditing.exact.partition_law import PartitionLaw, Starts
from sfumato.auditing.exact.question import Finding, Question
from sfumato.auditing.result import Loss
from sfumato.mechanism.forms import Groups, TwoStage
from sfumato.noise import DiscreteLaplace, Geometric, SeededSource, Source

MOST_PARTITIONS = 700  # that are compared: sixteen cells have 625
MOST_VALUES_OF_NOISE = 16_384  # that are convolved
ROUNDING = 1e-7  # relative, of a loss in floating point


def audit_two_stages(form: TwoStage, question: Question) -> Finding | str:
    """An upper bound on the largest loss, or in words why there is none."""
    check = TwoStageAudit(form, question)
    if not check.small:
        return "its runs can be chosen in too many ways to look at each"
    if not check.faithful():
        return "it does not choose runs and then add noise to their totals as it says"
    found = check.worst()
    if found is None:
        return "no change was looked at"
    # Probabilities are summed up in floating point; rounding says nothing.
    near = found.loss <= float(question.promised) * (1 + ROUNDING)
    return replace(found, loss=min(found.loss, question.promised)) if near else found


@dataclass(frozen=True, eq=False)
class TwoStageAudit:
    """A form beside the mechanism that claims it."""

    form: TwoStage
    question: Question

    @cached_property
    def law(self) -> PartitionLaw:
        """Of the first stage."""
        return PartitionLaw(self.form.length, self.form.prices, self.form.choice, self.form.penalty)

    @property
    def small(self) -> bool:
        """Whether every partition can be looked at."""
        few = self.law.partitions <= MOST_PARTITIONS
        return few and (self.law.levels <= 1 or self.law.values_of_noise <= MOST_VALUES_OF_NOISE)

    @cached_property
    def _groups(self) -> dict[Starts, Groups]:
        return {}

    def groups(self, starts: Starts) -> Groups:
        """Those that are measured over the runs that came out."""
        if starts not in self._groups:
            self._groups[starts] = self.form.groups(np.array(starts, dtype=np.int64))
        return self._groups[starts]

    def draw(self, counts: Integers, source: Source) -> tuple[Groups, list[Integers]]:
        """Both stages, anew: the groups over the runs that are chosen, and their noisy totals."""
        line = self.form.entries(counts)
        groups = self.groups(self.law.cut(line, source))
        measured = []
        for level, units in zip(groups.measure(line), groups.units, strict=True):
            noise = np.zeros(len(level), dtype=np.int64)
            for share in sorted(set(units[units > 0].tolist())):
                noise[units == share] = self.form.law(share).sample(int((units == share).sum()), source)
            measured.append(level + noise)
        return groups, measured

    def faithful(self) -> bool:
        """Whether the mechanism does just that, from the same random words."""
        return all(self._alike(counts, seed) for seed, counts in self.question.seeded())

    def _alike(self, counts: Integers, seed: int) -> bool:
        groups, measured = self.draw(counts, SeededSource(seed))
        estimates = self.form.cells(groups.spread(measured), self.question.total(counts))
        return self.question.publishes(counts, seed, groups.integers(measured), estimates)

    def worst(self) -> Finding | None:
        """The largest loss over changes, databases and partitions."""
        worst: Finding | None = None
        reached, databases = 0, self.question.databases
        laws: frozenset[DiscreteLaplace | Geometric] = frozenset([*self.form.choice, self.form.totals])
        for edge in self.question.edges_in_time():
            reached += 1
            for base in databases:
                neighbours = pair(base, edge)
                loss, event = self.loss(self.form.entries(neighbours.before), self.form.entries(neighbours.after))
                if worst is None or loss > worst.loss:
                    worst = Finding(
                        loss=loss,
                        method="argument",
                        pair=neighbours,
                        event=event,
                        edges=reached,
                        databases=len(databases),
                        laws=laws,
                    )
        return None if worst is None else replace(worst, edges=reached)

    def loss(self, x: Integers, other: Integers) -> tuple[Loss, str]:
        """(what runs and totals tell between two lines, the runs that tell most)."""
        worst: tuple[Loss, str] = (0.0, "")
        for chosen in product(*self.law.ratios(x, other)):
            starts = tuple(at for pattern, _ in chosen for at in pattern)
            choice, totals = abs(sum(ratio for _, ratio in chosen)), self._moved(starts, x, other)
            if choice + totals > worst[0]:
                words = f"runs that begin at {', '.join(map(str, starts))}: their choice tells {choice:.4g}, "
                worst = choice + totals, f"{words}their totals {totals:.4g}"
        return worst

    def _moved(self, starts: Starts, x: Integers, other: Integers) -> float:
        """What the totals tell of a change, given the runs."""
        groups, told = self.groups(starts), Fraction(0)
        for one, two, units in zip(groups.measure(x), groups.measure(other), groups.units, strict=True):
            moved = np.abs(one - two)
            if moved[units == 0].any():
                return math.inf
            told += int((moved * units).sum())
        return float(self.form.totals.rate * told / self.form.units)
