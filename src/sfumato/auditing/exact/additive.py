"""The exact audit of mechanisms that add integer noise: the argument itself, redone on what is built.

For every change of a record and every database the values move by d, and the loss is the cost of the cheapest integer
change of the noise that moves the report by d too (`shifts`). What the argument rests on is checked first, to the last
bit: that a run publishes `values + disturbance` and what is computed from it and from nothing else, that both are
integers, and that the disturbance is linear. Where it is linear only up to its own rounding (fixed-point estimators),
the cheapest change is a whole flow (`flows`), and that it moves the report by exactly d, whatever the
noise, is checked on random integers of several sizes: an upper bound, "argument". An estimator that leaks a remainder,
and noise that is multiplied, are caught here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato._types import Integers
from sfumato.auditing.databases import Pair, pair
from sfumato.auditing.exact.flows import FlowSolver
from sfumato.auditing.exact.question import Finding, Question
from sfumato.auditing.exact.shifts import Shift, Solver
from sfumato.auditing.result import Loss
from sfumato.linear import Operator
from sfumato.mechanism.forms import Additive, AddsNoise
from sfumato.noise import DiscreteLaplace, SeededSource

NOISE_SIZES = (3, 1_000, 1_000_000)  # of the random noise that identities are checked on
PARITIES = 16  # times each: one binary digit that is carried over once in four escapes them all once in 10⁶
LARGEST_TABLE = 40_000_000  # entries of D


def audit_additive(form: Additive, question: Question) -> Finding | str:
    """The largest loss, or in words why it cannot be named."""
    if (reason := faithful(form.mechanism, question)) is not None:
        return reason
    found = worst_change(form, question)
    return found or "no change of its noise makes up for some change of a record, as far as can be told"


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism for one number of records, and the operators that carry its noise to the cells, if such do."""

    mechanism: AddsNoise
    estimators: tuple[Operator, ...]
    total: int | None

    @cached_property
    def laws(self) -> list[tuple[DiscreteLaplace, int]]:
        """The noise."""
        return self.mechanism.noises(self.total)

    @cached_property
    def length(self) -> int:
        """How many values of noise there are."""
        return sum(size for _, size in self.laws)

    def report(self, noise: Integers) -> Integers:
        """The disturbance, flat."""
        ends = np.cumsum([size for _, size in self.laws])[:-1]
        return np.asarray(self.mechanism.disturbance(np.split(noise, ends) if self.laws else [])).ravel()

    def moved(self, neighbours: Pair) -> Integers:
        """d: by how much the values of two neighbours differ."""
        after, before = (np.asarray(self.mechanism.values(x)) for x in (neighbours.after, neighbours.before))
        return (after - before).ravel()

    def noise(self, rng: np.random.Generator, size: int) -> Integers:
        """Random noise of some size, of any law."""
        return rng.integers(-size, size + 1, self.length)

    @cached_property
    def linear(self) -> bool:
        """Whether the disturbance is additive, on random integers: so often that a single parity is noticed, too."""
        rng = np.random.default_rng(5)
        for size in NOISE_SIZES * PARITIES:
            one, other = self.noise(rng, size), self.noise(rng, size)
            if not np.array_equal(self.report(one + other), self.report(one) + self.report(other)):
                return False
        return not self.report(np.zeros(self.length, dtype=np.int64)).any()

    @cached_property
    def identity(self) -> bool:
        """Whether the disturbance is the noise itself."""
        rng = np.random.default_rng(6)
        return all(np.array_equal(self.report(eta), eta) for eta in (self.noise(rng, size) for size in NOISE_SIZES))

    @cached_property
    def rates(self) -> tuple[Fraction, ...]:
        """The rate of every value of noise."""
        return tuple(law.rate for law, size in self.laws for _ in range(size))

    @cached_property
    def solver(self) -> Solver | None:
        """Cheapest changes, where the disturbance is linear."""
        if self.linear:
            width = len(self.report(np.zeros(self.length, dtype=np.int64)))
            if width * self.length > LARGEST_TABLE:
                return None
            matrix = np.zeros((width, self.length), dtype=np.int64)
            unit = np.zeros(self.length, dtype=np.int64)
            for j in range(self.length):
                unit[j] = 1
                matrix[:, j] = self.report(unit)
                unit[j] = 0
            return Solver(matrix, self.rates)
        return None

    @cached_property
    def flows(self) -> FlowSolver | None:
        """Cheapest flows, where the disturbance is linear up to its rounding."""
        if self.linear or not self.estimators or self.length**2 > LARGEST_TABLE:
            return None
        return FlowSolver.of(self.estimators, self.rates)

    def shift(self, neighbours: Pair, d: Integers) -> Shift | None:
        """The cheapest change of the noise that moves the report by d, checked; None where none can be named."""
        if self.identity:
            return Shift(_cost(d, self.rates), True, d)
        found: Shift | None = None
        if self.solver is not None:
            found = self.solver.cheapest(d)
        elif self.flows is not None:
            found = self.flows.cheapest(neighbours.after - neighbours.before)
        if found is None or found.change is None:
            return found
        return found if self._equivariant(found.change, d) else None

    def _equivariant(self, change: Integers, d: Integers) -> bool:
        """Whether noise that is changed so moves the report by d exactly, on random noise."""
        rng = np.random.default_rng(7)
        etas = [self.noise(rng, size) for size in NOISE_SIZES for _ in range(1 if self.linear else 8)]
        return all(np.array_equal(self.report(eta + change) - self.report(eta), d) for eta in etas)


def faithful(mechanism: AddsNoise, question: Question) -> str | None:
    """Why a run is *not* values plus disturbance in integers, and what follows from them; None where it is.

    Runs from the same random words are compared to the last bit, on several databases and several times.
    """
    for seed, counts in question.seeded():
        total = question.total(counts)
        fixed, source = _told(mechanism, total), SeededSource(seed)
        noise = [law.sample(size, source) for law, size in fixed.noises(total)]
        values, added = np.asarray(fixed.values(counts)), np.asarray(fixed.disturbance(noise))
        for what, array in (("values", values), ("disturbance", added)):
            if array.dtype != np.int64:
                return f"its {what} are {array.dtype}, not whole numbers"
        measured = values + added
        if not np.array_equal(fixed.draw(counts, total, SeededSource(seed)), measured):
            return "what it draws is not its values plus its disturbance"
        if not question.publishes(counts, seed, measured, fixed.estimate(measured, total)):
            return "what it publishes is not computed from its values and disturbance"
    return None


def _told(mechanism: AddsNoise, total: int | None) -> AddsNoise:
    return mechanism if total is None else mechanism.for_total(total)


def worst_change(form: Additive, question: Question) -> Finding | None:
    """The largest loss over edges and databases; None where for some of them none can be named."""
    # Values that are linear move alike on every database; that they are is seen on the few made up before.
    databases = question.databases if form.linear else [*question.databases, *question.tiny]
    cases: dict[int | None, Case] = {}
    costs: dict[tuple[int | None, bytes], Shift | None] = {}
    worst: tuple[Loss, Shift, Pair] | None = None
    tight, reached = True, 0
    for edge in question.edges_in_time():
        reached += 1
        for base in databases:
            neighbours = pair(base, edge)
            total = question.total(neighbours.before)
            if total not in cases:
                cases[total] = Case(_told(form.mechanism, total), form.estimators, total)
            case = cases[total]
            d = case.moved(neighbours)
            key = (None if form.linear else total, d.tobytes())
            if key not in costs:
                costs[key] = case.shift(neighbours, d)
            found = costs[key]
            if found is None:
                return None
            tight &= found.tight
            if worst is None or found.cost > worst[0]:
                worst = (found.cost, found, neighbours)
    if worst is None:
        return None
    loss, shift, neighbours = worst
    total = question.total(question.databases[-1])
    return Finding(
        loss=loss,
        method="exact" if tight or (shift.tight and math.isinf(loss)) else "argument",
        pair=neighbours,
        event=_event(loss, shift),
        edges=reached,
        databases=len(databases),
        laws=frozenset(law for law, _ in _told(form.mechanism, total).noises(total)),
    )


def _cost(change: Integers, rates: tuple[Fraction, ...]) -> Fraction:
    return sum((abs(int(part)) * rate for part, rate in zip(change, rates, strict=True) if part), Fraction(0))


def _event(loss: Loss, shift: Shift) -> str:
    if shift.change is None or math.isinf(loss):
        return "no noise can lead from one to the other: every output is possible for one of them at most"
    moved = int(np.abs(shift.change).sum())
    return f"the noise has to change by {moved} in all, in {int(np.count_nonzero(shift.change))} places"
