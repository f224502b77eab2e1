"""How much each table is measured: weights that make the expected error of what is asked least, in closed form.

The error is Δ(w)²·Σ_A g_A/λ_A(w) up to the noise's own constant: g_A what the questions ask of the residual A, λ_A how
precisely it is told (`sfumato.linear.lattice`), Δ the sensitivity, the largest of a few sums of weights. All of it is
known without data. The candidates are all parts of the tables that are asked for; a descent from a few starts finds
weights for them, small ones are left out where that is no worse, and what is left is rounded to whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from sfumato._types import Floats
from sfumato.errors import InvalidInput
from sfumato.linear.lattice import MOST_PARTS, Lattice, parts_of
from sfumato.linear.tables import Axes, Tables, real
from sfumato.mechanism.base import LARGEST_PRODUCT
from sfumato.policies import Policy
from sfumato.workload import Part, Workload

# How much tables of fewer axes weigh beside those asked for, at the start; how small is left out, beside the largest.
STARTS = (1.0, 0.3, 0.02)
SMALL = (0.1, 0.03, 0.01, 0.003, 0.0)
# The largest of several sums is taken for their norm of these orders, one after the other, in the search for weights.
ORDERS = (40, 400, 4000)


def asked_tables(workload: Workload, policy: Policy) -> Tables | None:
    """The tables that hold all that a workload asks; None where it is no union of products, asks of no axis, or of so
    many at once that least squares would take too long.
    """
    kept = workload.kept(policy.domain)
    if kept is None:
        return None
    found = Tables.holding(policy.domain.shape, kept)
    return found if any(found.sets) and _parts_in(found.sets) <= MOST_PARTS else None


def _parts_in(sets: Iterable[Axes]) -> int:
    return sum(1 << len(axes) for axes in sets)


def _measurable(asked: Tables) -> set[Axes]:
    """The tables asked for and all of their sums; these tables alone, where the sums would be too many."""
    some = set(asked.sets)
    for axes in asked.sets:
        some.update(parts_of(axes))
        if _parts_in(some) > MOST_PARTS:
            return set(asked.sets)
    return some


def tuned(workload: Workload, policy: Policy) -> dict[Axes, int] | None:
    """Whole weights of the tables to measure for a workload; None where no noise is needed for any."""
    asked, parts = asked_tables(workload, policy), workload.shares(policy.domain)
    if asked is None or parts is None:
        raise InvalidInput("asks for more than tables of some axes. Nothing was computed.")
    known = known_axes(policy)
    sets = sorted(axes for axes in _measurable(asked) if known is None or not known.issuperset(axes))
    if not sets:
        return None
    problem = _Problem(policy, tuple(sets), known, tuple(parts), asked)
    best = min((problem.descend(start) for start in STARTS), key=problem.error)
    options = [problem.rounded(np.where(best < least * best.max(), 0.0, best)) for least in SMALL]
    weights = min(options, key=problem.error)
    common = int(np.gcd.reduce(weights.astype(np.int64)))
    return {axes: int(w) // common for axes, w in zip(sets, weights, strict=True) if w}


def known_axes(policy: Policy) -> frozenset[int] | None:
    """The axes of the joint table that is published exactly: of none the total alone; None where nothing is."""
    return frozenset(policy.public_axes) if policy.total_is_public else None


def sensitivity(policy: Policy, sets: Sequence[Axes], weights: Sequence[int]) -> int:
    """The most by which weighed tables move in L1 together, when one record changes along an edge: Python's integers.

    A record that appears is one more in every table. One that changes leaves one cell and comes into another, in every
    table of an axis along which it changes, and changes nothing in the others.
    """
    largest = sum(weights) if policy.joined is not None else 0
    for changed in policy.changes:
        moved = [w for axes, w in zip(sets, weights, strict=True) if not changed.isdisjoint(axes)]
        largest = max(largest, 2 * sum(moved))
    return int(largest)


@dataclass(frozen=True, eq=False)
class _Problem:
    policy: Policy
    sets: tuple[Axes, ...]
    known: frozenset[int] | None
    parts: tuple[tuple[float, Part], ...]
    asked: Tables

    @cached_property
    def _all(self) -> Lattice:
        return Lattice(self.policy.domain.shape, self.sets, (1,) * len(self.sets), self.known)

    @cached_property
    def residuals(self) -> list[Axes]:
        """All that the questions ask of, as far as it is not known."""
        return [part for part in self._all.precision if self._demand.get(part, 0.0) > 0]

    @cached_property
    def _demand(self) -> dict[Axes, float]:
        """g: how much the questions ask of every residual, on average."""
        found: dict[Axes, float] = {}
        shape = self.policy.domain.shape
        for share, part in self.parts:
            within, mean = part.spreads(shape)
            for axes in parts_of(real(shape, part.kept(shape))):
                felt = [within[:, i] if i in axes else mean[:, i] for i in range(len(shape))]
                found[axes] = found.get(axes, 0.0) + share * float(np.prod(felt, axis=0).mean())
        return found

    @cached_property
    def demand(self) -> Floats:
        """g as an array."""
        return np.array([self._demand[part] for part in self.residuals])

    @cached_property
    def precision(self) -> scipy.sparse.csr_matrix:
        """From squares of weights to λ."""
        at = {part: i for i, part in enumerate(self.residuals)}
        rows, columns, entries = [], [], []
        for j, axes in enumerate(self.sets):
            for part in parts_of(axes):
                if part in at:
                    rows.append(at[part])
                    columns.append(j)
                    entries.append(self._all.size(part) / self._all.size(axes))
        return scipy.sparse.csr_matrix((entries, (rows, columns)), shape=(len(at), len(self.sets)))

    @cached_property
    def sums(self) -> Floats:
        """The sums of weights of which the largest is the sensitivity."""
        rows = [np.ones(len(self.sets))] if self.policy.joined is not None else []
        rows += [np.array([2.0 * (not c.isdisjoint(axes)) for axes in self.sets]) for c in self.policy.changes]
        return np.stack([row for row in rows if row.any()] or [np.ones(len(self.sets))])

    def error(self, weights: Floats) -> float:
        """Δ²·Σ g/λ."""
        with np.errstate(divide="ignore"):
            return float((self.sums @ weights).max() ** 2 * (self.demand / (self.precision @ weights**2)).sum())

    def descend(self, start: float) -> Floats:
        """The weights at the end of a descent of the logarithm of the error, in the logarithms of the weights."""
        from scipy.optimize import minimize  # slow to import

        begin = np.array([1.0 if axes in self.asked.sets else start for axes in self.sets])

        def value(logs: Floats, order: int) -> tuple[float, Floats]:
            weights = np.exp(logs)
            precision, sums = self.precision @ weights**2, self.sums @ weights
            largest = sums.max()
            scaled = (sums / largest) ** order
            error = (self.demand / precision).sum()
            slope = -2 * weights**2 * (self.precision.T @ (self.demand / precision**2)) / error
            slope += 2 * weights * (self.sums.T @ (scaled / (sums + (sums == 0)))) / scaled.sum()
            return float(np.log(error) + 2 * (np.log(largest) + np.log(scaled.sum()) / order)), slope

        logs, limits = np.log(begin), [(-20.0, 20.0)] * len(begin)
        for order in ORDERS if len(self.sums) > 1 else ORDERS[:1]:
            logs = minimize(value, logs, (order,), jac=True, method="L-BFGS-B", bounds=limits).x
        weights = np.exp(logs)
        return np.asarray(weights / weights.max())

    def rounded(self, weights: Floats) -> Floats:
        """In whole numbers, the largest as large as entries may be; no table that alone tells what is asked is lost."""
        found = np.rint(weights * LARGEST_PRODUCT)
        for at, axes in enumerate(self.sets):
            if axes in self.asked.sets:
                found[at] = max(found[at], 1.0)
        return found
