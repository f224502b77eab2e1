"""Cheapest changes for estimators in fixed point: noise is changed by a whole flow, or not at all.

Such an estimator f rounds, and `f(η + B·z) = f(η) + z` holds for integer z alone, B being the strategy that it inverts.
So the changes that can be named are c = B·z for an integer flow z whose divergence is the change of the counts, and the
cheapest of these is an upper bound on the loss. Every estimator says which strategy it inverts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato._types import Integers
from sfumato.auditing.exact.shifts import SECONDS_A_PROGRAMME, Shift
from sfumato.linear import Operator


@dataclass(frozen=True, eq=False)
class FlowSolver:
    """Cheapest integer flows: `divergence` maps flows to counts, `lift` is B, with one rate a row."""

    divergence: Integers
    lift: Integers
    rates: tuple[Fraction, ...]

    @classmethod
    def of(cls, estimators: Sequence[Operator], rates: tuple[Fraction, ...]) -> FlowSolver | None:
        """From the estimators, side by side; None where flows and strategies do not come out in whole numbers."""
        lifts = [np.asarray(estimator.inverts().dense(), dtype=np.float64) for estimator in estimators]
        parts = [estimator.dense() @ lift for estimator, lift in zip(estimators, lifts, strict=True)]
        divergence = np.concatenate(parts, axis=1)
        if not np.allclose(divergence, np.rint(divergence), atol=1e-6):
            return None
        rows, cols = (sum(lift.shape[axis] for lift in lifts) for axis in (0, 1))
        lift, row, col = np.zeros((rows, cols), dtype=np.int64), 0, 0
        for part in lifts:
            lift[row : row + part.shape[0], col : col + part.shape[1]] = np.rint(part)
            row, col = row + part.shape[0], col + part.shape[1]
        return cls(np.rint(divergence).astype(np.int64), lift, rates)

    def cheapest(self, change: Integers) -> Shift | None:
        """The cheapest B·z with the divergence of z equal to the change."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import, and only audits need it

        flows, values = self.divergence.shape[1], len(self.rates)
        cost = np.concatenate([np.zeros(flows), [float(rate) for rate in self.rates]])
        sizes = np.eye(values)
        below = np.block([[-self.lift, sizes], [self.lift, sizes]])  # |B·z| ≤ t
        meet = np.concatenate([self.divergence, np.zeros((len(change), values))], axis=1)
        found = milp(
            cost,
            constraints=[LinearConstraint(meet, change, change), LinearConstraint(below, 0, np.inf)],
            bounds=Bounds(np.concatenate([np.full(flows, -np.inf), np.zeros(values)]), np.inf),
            integrality=np.concatenate([np.ones(flows), np.zeros(values)]),
            options={"time_limit": SECONDS_A_PROGRAMME},
        )
        if found.x is None:
            return None
        z = np.rint(found.x[:flows]).astype(np.int64)
        if not np.array_equal(self.divergence @ z, change):
            return None
        c = self.lift @ z
        price = sum((abs(int(part)) * rate for part, rate in zip(c, self.rates, strict=True) if part), Fraction(0))
        return Shift(price, False, c)
