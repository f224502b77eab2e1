"""The audit of two levels: noise on blocks of cells, then noise on sums that are a function of what came out.

What the first level tells of a change of a record is computed by the audit of noise that is added, on the blocks, for
every change of blocks that changes of records make. Given what came out, the sums of two neighbours differ by a known
d, and tell their rate times ‖d‖₁, at the worst of the outcomes that are looked at: those of runs with noise of several
sizes, which cut blocks in all ways. Both together are an upper bound, "argument". That a run is just that is checked
first, draw for draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato._types import Integers
from sfumato.auditing.databases import pair
from sfumato.auditing.exact.additive import faithful, worst_change
from sfumato.auditing.exact.question import Finding, Question
from sfumato.mechanism.forms import Nested
from sfumato.noise import SeededSource

OUTCOMES = 12  # of the first level, for each database


def audit_nested(form: Nested, question: Question) -> Finding | str:
    """An upper bound on the largest loss, or in words why there is none."""
    check = NestedAudit(form, question)
    if not check.faithful():
        return "it does not release blocks and then noisy sums that follow from them"
    return check.reason or check.worst() or "no change was looked at"


@dataclass(frozen=True, eq=False)
class NestedAudit:
    """A form beside the mechanism that claims it."""

    form: Nested
    question: Question

    def faithful(self) -> bool:
        """Whether the mechanism draws just that, and publishes what follows from it, from the same random words."""
        return all(self._alike(counts, seed) for seed, counts in self.question.seeded())

    def _alike(self, counts: Integers, seed: int) -> bool:
        form, source, total = self.form, SeededSource(seed), self.question.total(counts)
        released = form.first.draw(form.blocks(counts), total, source)
        sums = form.sums(released, total)(counts)
        sums = sums + form.noise.sample(len(sums), source)
        drawn = np.concatenate([form.head(released, total), sums])
        return self.question.publishes(counts, seed, drawn, form.estimate(drawn, total))

    @cached_property
    def _unit(self) -> Integers:
        """The block of every cell."""
        size = self.question.databases[0].size
        units = np.eye(size, dtype=np.int64)
        return np.array([int(np.flatnonzero(self.form.blocks(unit))[0]) for unit in units], dtype=np.int64)

    @cached_property
    def _blocks(self) -> Question:
        """What is asked of the first level: every change of blocks that some change of a record makes."""
        edges = self.question.edges
        moved = np.where(edges < 0, -1, self._unit[edges])
        moved = np.unique(moved[moved[:, 0] != moved[:, 1]], axis=0)
        blocks = [self.form.blocks(counts) for counts in self.question.databases]
        tiny = [self.form.blocks(counts) for counts in self.question.tiny]
        return replace(self.question, mechanism=self.form.first, edges=moved, databases=blocks, tiny=tiny)

    @cached_property
    def first(self) -> Finding | None:
        """The audit of the first level."""
        return worst_change(self.form.first.form, self._blocks)

    @property
    def reason(self) -> str | None:
        """Why the first level cannot be audited."""
        if not len(self._blocks.edges):
            return None
        if (reason := faithful(self.form.first, self._blocks)) is not None:
            return reason
        return "no noise makes up for some change of its blocks" if self.first is None else None

    def worst(self) -> Finding | None:
        """Over changes, databases and outcomes of the first level."""
        first = self.first if len(self._blocks.edges) else None
        told = 0 if first is None else first.loss
        laws = (frozenset() if first is None else first.laws) | {self.form.noise}
        worst: Finding | None = None
        reached, databases = 0, self.question.databases
        for edge in self.question.edges_in_time():
            reached += 1
            for number, base in enumerate(databases):
                neighbours = pair(base, edge)
                total = self.question.total(neighbours.before)
                for sums in self._outcomes(number, total):
                    one, two = sums(neighbours.before), sums(neighbours.after)
                    loss = told + self.form.noise.rate * int(np.abs(one - two).sum())
                    if worst is None or loss > worst.loss:
                        worst = Finding(
                            loss=loss,
                            method="argument",
                            pair=neighbours,
                            event=f"the blocks tell up to {float(told):.4g}, and then {len(one)} sums the rest",
                            edges=reached,
                            databases=len(databases),
                            laws=laws,
                        )
        return None if worst is None else replace(worst, edges=reached)

    def _outcomes(self, number: int, total: int | None) -> list[Callable[[Integers], Integers]]:
        """The sums after what the first level may release: for every database the same, whatever change is looked at;
        blocks are made fuller and fuller, so that they are cut more and more.
        """
        key = (number, total)
        if key not in self._found:
            counts = self.form.blocks(self.question.databases[number])
            self._found[key] = []
            for seed in range(OUTCOMES):
                full, known = counts * 10 ** (seed % 4), None if total is None else total * 10 ** (seed % 4)
                released = self.form.first.draw(full, known, SeededSource(seed))
                self._found[key].append(self.form.sums(released, known))
        return self._found[key]

    @cached_property
    def _found(self) -> dict[tuple[int, int | None], list[Callable[[Integers], Integers]]]:
        return {}
