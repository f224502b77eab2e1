"""Shared by the stream tests: exact window sums, and a general solver for small programmes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from sfumato.exact import fraction


def binary(value):
    return Fraction(float(value))


def decimal(value):
    return fraction(float(value), "budget")


def fullest_window(budgets, window, reading):
    """The largest exact sum of `window` consecutive budgets (of all of them when there are fewer)."""
    exact = [reading(value) for value in budgets]
    return max((sum(exact[k : k + window]) for k in range(max(len(exact) - window + 1, 1))), default=Fraction(0))


def keeps_to(budgets, window, epsilon):
    """Whether no window exceeds ε, however the doubles are read."""
    return all(fullest_window(budgets, window, reading) <= Fraction(epsilon) for reading in (binary, decimal))


def general_optimum(weights, window, epsilon, power=2.0):
    """The smallest total error by a general solver; for a handful of steps."""
    w = np.asarray(weights, dtype=float)
    active = np.flatnonzero(w > 0)
    n = len(w)
    rows = np.array([[k <= i < k + window for i in active] for k in range(max(n - window + 1, 1))], dtype=float)
    least = 1e-6 * epsilon
    found = minimize(
        lambda x: float((w[active] * np.maximum(x, least) ** -power).sum()),
        np.full(active.size, epsilon / window * 0.9),
        jac=lambda x: -power * w[active] * np.maximum(x, least) ** (-power - 1),
        hess=lambda x: np.diag(power * (power + 1) * w[active] * np.maximum(x, least) ** (-power - 2)),
        constraints=LinearConstraint(rows, -np.inf, epsilon),
        bounds=[(least, epsilon)] * active.size,
        method="trust-constr",
        options={"gtol": 1e-10, "xtol": 1e-12, "maxiter": 3000},
    )
    return float(found.fun)
