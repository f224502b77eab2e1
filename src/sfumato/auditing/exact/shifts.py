"""The cheapest change of the noise that makes up for a change of the counts: what a linear mechanism's loss is.

A mechanism reports `v + D·η` with an integer matrix D and independent noise, η_j of rate r_j. A neighbour moves v by d.

**Theorem.** Let Q be the least cost Σ r_j·|c_j| of an *integer* vector c with D·c = d, and q the least cost of a real
one. The loss, the largest log-ratio of probabilities of an output over both orders, lies between q and Q; where there
is no integer c it is infinite. *Proof.* Upper bound: η and η + c lead to the same report, and their probabilities
differ by a factor of at most e^Q. No integer c: no output is possible for both neighbours. Lower bound: write p(y) =
P[D·η = y]. For every s < 1 and every n, `p(n·d) ≤ C·Σ_{D·η = n·d} exp(-Σ r_j·|η_j|) ≤ C·exp(-s·n·q)·Σ_η
exp(-(1-s)·Σ r_j·|η_j|)`, since each such η costs at least n·q; the last sum is finite. So log p(0) - log p(n·d) ≥ s·n·q
less a constant, a sum of n differences log p(k·d) - log p((k+1)·d), of which one is at least s·q less a constant over
n. Take n to infinity, then s to one. ∎

Where D has full column rank c is unique and q = Q. Where D is the incidence matrix of a graph, which is totally
unimodular, the real programme has an integer solution, and again q = Q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.auditing.result import Loss

TOLERANCE = 1e-7  # between a solver's optimum and the exact cost of what it found
SECONDS_A_PROGRAMME = 5.0  # of solving one integer programme


@dataclass(frozen=True)
class Shift:
    """The cheapest c that was found, its exact cost Q, and whether the loss is known to be Q."""

    cost: Loss
    tight: bool
    change: Integers | None = None


@dataclass(frozen=True, eq=False)
class Solver:
    """Cheapest changes for one integer matrix D (m × n) and n rates."""

    matrix: Integers
    rates: tuple[Fraction, ...]

    @cached_property
    def injective(self) -> bool:
        """Whether D has full column rank, from its rank modulo a prime, which never exceeds the true one."""
        return _rank(self.matrix) == self.matrix.shape[1]

    @cached_property
    def _inverse(self) -> Floats:
        return np.linalg.pinv(self.matrix.astype(np.float64))

    def cheapest(self, change: Integers) -> Shift:
        """The cheapest c with D·c = change."""
        if not change.any():
            return Shift(Fraction(0), True, np.zeros(self.matrix.shape[1], dtype=np.int64))
        if self.matrix.shape[1] == 0:
            return Shift(math.inf, True)
        if self.injective:
            only = np.rint(self._inverse @ change).astype(np.int64)
            return Shift(self._cost(only), True, only) if self._solves(only, change) else Shift(math.inf, True)
        least, c = self._programme(change, integral=False)
        if c is None:
            return Shift(math.inf, True)
        if not self._solves(c, change) or float(self._cost(c)) > least + TOLERANCE:
            _, c = self._programme(change, integral=True)
            if c is None or not self._solves(c, change):
                return Shift(math.inf, c is None)
        cost = self._cost(c)
        return Shift(cost, float(cost) <= least + TOLERANCE * max(1.0, least), c)

    def _solves(self, c: Integers, change: Integers) -> bool:
        return bool(np.array_equal(self.matrix @ c, change))

    def _cost(self, c: Integers) -> Fraction:
        return sum((abs(int(part)) * rate for part, rate in zip(c, self.rates, strict=True) if part), Fraction(0))

    def _programme(self, change: Integers, *, integral: bool) -> tuple[float, Integers | None]:
        """min Σ r·(p + n) with D·(p - n) = change, p, n ≥ 0; no solution: None."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import, and only audits need it

        rates = np.array([float(rate) for rate in self.rates])
        table = np.concatenate([self.matrix, -self.matrix], axis=1).astype(np.float64)
        target = change.astype(np.float64)
        found = milp(
            np.concatenate([rates, rates]),
            constraints=LinearConstraint(table, target, target),
            bounds=Bounds(0, np.inf),
            integrality=np.full(table.shape[1], int(integral)),
            options={"time_limit": SECONDS_A_PROGRAMME},
        )
        if found.x is None:
            return math.inf, None
        plus, minus = np.split(found.x, 2)
        return float(found.fun), np.rint(plus - minus).astype(np.int64)


def _rank(matrix: Integers) -> int:
    """The rank modulo a prime below 2³¹: products fit 64 bits."""
    prime = 2_147_483_629
    table = np.mod(matrix, prime)
    rank = 0
    for column in range(table.shape[1]):
        pivots = np.flatnonzero(table[rank:, column])
        if not len(pivots):
            continue
        table[[rank, rank + pivots[0]]] = table[[rank + pivots[0], rank]]
        table[rank] = table[rank] * pow(int(table[rank, column]), -1, prime) % prime
        others = np.flatnonzero(table[:, column])
        others = others[others != rank]
        table[others] = (table[others] - table[others, column][:, None] * table[rank]) % prime
        rank += 1
        if rank == table.shape[0]:
            break
    return rank
