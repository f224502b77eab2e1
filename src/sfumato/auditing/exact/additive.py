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
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.databases import Pair, pair
from sfumato.auditing.exact.flows import FlowSolver
from sfumato.auditing.exact.noisy_number import NoisyNumber
from sfumato.auditing.exact.shifts import Shift, Solver
from sfumato.auditing.result import Loss
from sfumato.errors import InvalidInput
from sfumato.mechanism import AdditiveMechanism
from sfumato.mechanism.base import LinearMechanism
from sfumato.noise import DiscreteLaplace, SeededSource

Integers = NDArray[np.int64]

SIZES = (3, 1_000, 1_000_000)  # of the random noise that identities are checked on
RUNS = 30  # compared draw for draw
LARGEST_TABLE = 40_000_000  # entries of D


@dataclass(frozen=True)
class Finding:
    """The worst loss among the neighbours looked at."""

    loss: Loss
    method: str
    pair: Pair
    event: str
    edges: int
    databases: int


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism for one number of records."""

    mechanism: AdditiveMechanism
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
        """Whether the disturbance is additive, on random integers."""
        rng = np.random.default_rng(5)
        for size in SIZES:
            one, other = self.noise(rng, size), self.noise(rng, size)
            if not np.array_equal(self.report(one + other), self.report(one) + self.report(other)):
                return False
        return not self.report(np.zeros(self.length, dtype=np.int64)).any()

    @cached_property
    def identity(self) -> bool:
        """Whether the disturbance is the noise itself."""
        rng = np.random.default_rng(6)
        return all(np.array_equal(self.report(eta), eta) for eta in (self.noise(rng, size) for size in SIZES))

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
        if self.linear or not isinstance(self.mechanism, LinearMechanism) or self.length**2 > LARGEST_TABLE:
            return None
        return FlowSolver.of(self.mechanism.model, self.rates)

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
        etas = [self.noise(rng, size) for size in SIZES for _ in range(1 if self.linear else 8)]
        return all(np.array_equal(self.report(eta + change) - self.report(eta), d) for eta in etas)


def faithful(mechanism: AdditiveMechanism, databases: Sequence[Integers], public: bool) -> str | None:
    """Why a run is *not* values plus disturbance in integers, and what follows from them; None where it is.

    Runs from the same random words are compared to the last bit, on several databases and several times: one value of
    noise may by chance be the same at two scales, many are not.
    """
    for seed in range(RUNS):
        counts = databases[seed % len(databases)]
        total = int(counts.sum()) if public else None
        fixed = mechanism if total is None else mechanism.for_total(total)
        if isinstance(fixed, AdditiveMechanism) and (reason := _unlike(fixed, counts, total, seed)) is not None:
            return reason
    return None


def _unlike(mechanism: AdditiveMechanism, counts: Integers, total: int | None, seed: int) -> str | None:
    source = SeededSource(seed)
    noise = [law.sample(size, source) for law, size in mechanism.noises(total)]
    values, added = np.asarray(mechanism.values(counts)), np.asarray(mechanism.disturbance(noise))
    for what, array in (("values", values), ("disturbance", added)):
        if array.dtype != np.int64:
            return f"its {what} are {array.dtype}, not whole numbers"
    measured = values + added
    if not np.array_equal(mechanism.draw(counts, total, SeededSource(seed)), measured):
        return "what it draws is not its values plus its disturbance"
    estimates = mechanism.estimate(measured, total)
    if not np.array_equal(mechanism.run(counts, total, SeededSource(seed)), estimates, equal_nan=True):
        return "what it publishes is not computed from its values and disturbance"
    return None


def worst_change(
    mechanism: AdditiveMechanism, edges: Integers, databases: Sequence[Integers], public: bool, deadline: float
) -> Finding | None:
    """The largest loss over edges and databases; None where for some of them none can be named.

    Edges not reached before the deadline are left out, and the number of those reached is told.
    """
    cases: dict[int | None, Case] = {}
    costs: dict[tuple[int | None, bytes], Shift | None] = {}
    worst: tuple[Loss, Shift, Pair] | None = None
    tight, reached = True, 0
    for edge in map(tuple, edges.tolist()):
        if reached and time.thread_time() > deadline:
            break
        for base in databases:
            neighbours = pair(base, edge)
            total = int(neighbours.before.sum()) if public and edge[1] >= 0 else None
            if total not in cases:
                cases[total] = Case(mechanism if total is None else mechanism.for_total(total), total)
            case = cases[total]
            if public and total is None:  # a record appears though the number of records is published
                return Finding(math.inf, "exact", neighbours, "the number of records is published exactly", 1, 1)
            d = case.moved(neighbours)
            key = (None if isinstance(mechanism, LinearMechanism) else total, d.tobytes())
            if key not in costs:
                costs[key] = case.shift(neighbours, d)
            found = costs[key]
            if found is None:
                return None
            tight &= found.tight
            if worst is None or found.cost > worst[0]:
                worst = (found.cost, found, neighbours)
        reached += 1
    if worst is None:
        return None
    loss, shift, neighbours = worst
    method = "exact" if tight or (shift.tight and math.isinf(loss)) else "argument"
    return Finding(loss, method, neighbours, _event(loss, shift), reached, len(databases))


def numbered_change(form: NoisyNumber, edges: Integers, databases: Sequence[Integers], deadline: float) -> Finding:
    """The largest loss of sorted points whose number is private, over edges and databases."""
    worst: tuple[Loss, int, Pair] | None = None
    reached = 0
    for edge in map(tuple, edges.tolist()):
        if worst is not None and time.thread_time() > deadline:
            break
        for base in databases:
            loss, guess = form.loss(base, edge)
            if worst is None or loss > worst[0]:
                worst = (loss, guess, pair(base, edge))
        reached += 1
    if worst is None:
        raise InvalidInput("edges is empty: a policy without changes has nothing to audit.")
    return Finding(worst[0], "exact", worst[2], f"the noisy number of records is {worst[1]}", reached, len(databases))


def _cost(change: Integers, rates: tuple[Fraction, ...]) -> Fraction:
    return sum((abs(int(part)) * rate for part, rate in zip(change, rates, strict=True) if part), Fraction(0))


def _event(loss: Loss, shift: Shift) -> str:
    if shift.change is None or math.isinf(loss):
        return "no noise can lead from one to the other: every output is possible for one of them at most"
    moved = int(np.abs(shift.change).sum())
    return f"the noise has to change by {moved} in all, in {int(np.count_nonzero(shift.change))} places"
