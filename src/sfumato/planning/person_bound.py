"""How many records of a person to count: noise against what is cut off, weighed on public data.

Promise: none is made here, and nothing private comes near it. With `max_per_entity=m` a plan's noise grows with m, and
every record of a person beyond m is cut off. Which m is best depends on how records are spread over persons and
places, and may therefore be chosen from public data alone (a stand-in of the same kind, which is published anyway):
never from the data that will be published, nor from their past.

The error at m is the mean over the queries of noise² + bias² + the variance of the choice: with d the records that are
cut from the stand-in, E(q·d)² is the last two together. Two independent choices tell them apart, which matters where
the stand-in is larger or smaller: with R times as many records the square of the bias grows by R², the variance by R.
Where people will be s times as busy as in the stand-in, a bound of m cuts from them what m/s cuts from it. The noise is
the plan's own at m. Beyond the m at which noise alone is worse than the best so far nothing can be better.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import Floats
from sfumato.counting import count
from sfumato.errors import InvalidInput
from sfumato.exact import Number, positive_int
from sfumato.planning.planner import plan
from sfumato.policies import Policy
from sfumato.workload import Workload

MOST = 1 << 40  # records of a person: no bound
NEAR = 1.05  # two bounds nearer than that have errors that nobody tells apart


@dataclass(frozen=True, kw_only=True)
class TriedBound:
    """One bound: the mean squared errors that noise and what is cut off will make."""

    max_per_entity: int
    noise: float
    cut: float

    @property
    def error(self) -> float:
        """Both together."""
        return self.noise + self.cut


@dataclass(frozen=True, kw_only=True)
class TunedBound:
    """The bound with the smallest expected error, and all that were weighed; printed as a table."""

    max_per_entity: int
    expected_error: float
    tried: tuple[TriedBound, ...]

    def __str__(self) -> str:
        lines = [f"max_per_entity={self.max_per_entity}: expected squared error {self.expected_error:.4g} a query"]
        lines += [f"  {'at most':>8} {'noise':>12} {'cut off':>12} {'together':>12}"]
        for one in self.tried:
            mark = "  <-" if one.max_per_entity == self.max_per_entity else ""
            lines.append(f"  {one.max_per_entity:>8} {one.noise:>12.4g} {one.cut:>12.4g} {one.error:>12.4g}{mark}")
        return "\n".join(lines)


def tune_bound(
    like: Any,
    policy: Policy,
    workload: Workload,
    epsilon: Number,
    *,
    entity: str,
    people: int | None = None,
    records: int | None = None,
    columns: Mapping[str, Any] | None = None,
    **axes: str,
) -> TunedBound:
    """The `max_per_entity` with the smallest expected error on the workload, weighed on public records.

    `like` are records that everybody may know, of the same kind: anything that `sf.count` takes, and `entity`,
    `columns` and the keywords of axes are as there. `people` and `records` say how many persons and records there will
    be, both public guesses (by default people are as many, and as busy, as in `like`). The error counts what is cut
    off: it is that of the answers about *all* records, while the interval of a release is about those that were
    counted. Never give private records here, not even old
    ones: the bound would tell of them, and no ε would pay for it.

    >>> rng = np.random.default_rng(0)
    >>> person = np.repeat(np.arange(2_000), rng.integers(1, 6, 2_000))
    >>> public = {"who": person, "x": rng.uniform(0, 8, len(person))}
    >>> line = sf.Line(0, 8, cells=8)
    >>> sf.tune_bound(public, sf.unbounded(line), sf.histogram(), epsilon=1, entity="who").max_per_entity
    5
    """
    stand_in = _StandIn(like, policy, workload, entity, people, records, columns, axes)
    tried: dict[int, TriedBound] = {}

    def error(bound: int) -> float:
        if bound not in tried:
            noise = plan(policy, workload, epsilon, max_per_entity=bound).expected_error
            tried[bound] = TriedBound(max_per_entity=bound, noise=noise, cut=stand_in.cut(bound))
        return tried[bound].error

    bound, best = 1, math.inf
    while True:  # noise only grows: the best is behind once noise alone is worse
        best = min(best, error(bound))
        if tried[bound].noise >= best or not tried[bound].cut:
            break
        bound *= 2
    while True:
        chosen = min(tried, key=lambda one: tried[one].error)
        halves = set()
        for other in _neighbours(chosen, tried):
            if max(other, chosen) > NEAR * min(other, chosen):
                halves.add((chosen + other) // 2)
        halves -= tried.keys()
        if not halves:
            break
        for half in halves:
            error(half)
    found = tuple(tried[one] for one in sorted(tried))
    return TunedBound(max_per_entity=chosen, expected_error=tried[chosen].error, tried=found)


def _neighbours(chosen: int, tried: Collection[int]) -> list[int]:
    """The next smaller and the next larger one that was tried."""
    smaller, larger = [one for one in tried if one < chosen], [one for one in tried if one > chosen]
    return [*([max(smaller)] if smaller else []), *([min(larger)] if larger else [])]


class _StandIn:
    """Public records, and what a bound cuts from them."""

    def __init__(
        self,
        like: Any,
        policy: Policy,
        workload: Workload,
        entity: str,
        people: int | None,
        records: int | None,
        columns: Mapping[str, Any] | None,
        axes: Mapping[str, str],
    ) -> None:
        workload.check(policy.domain)
        self.policy, self.workload = policy, workload
        self._how: dict[str, Any] = {"columns": columns, "entity": entity, **axes}
        self._like = like
        self.all = self._counted(MOST)
        persons = self._counted(1).sum()
        if not persons:
            raise InvalidInput(
                "like has no record with an entity: nothing can be weighed on it. Nothing was drawn or recorded. Give "
                "public records of the same kind."
            )
        known, there = float(self.all.sum()), float(persons)
        expected = there if people is None else float(positive_int(people, "people"))
        self._busier = 1.0 if records is None else positive_int(records, "records") / expected * there / known
        self._larger = self._busier * expected / there
        self._parts: dict[int, tuple[float, float]] = {0: (self._mean_square(self.all), 0.0)}

    def cut(self, bound: int) -> float:
        """The mean squared error of what a bound cuts off: the square of its mean, and the variance of the choice."""
        below, share = divmod(bound / self._busier, 1)
        lower, upper = (np.array(self._split(int(below) + more)) for more in (0, 1 if share else 0))
        bias, variance = (1 - share) * lower + share * upper
        return float(self._larger**2 * bias + self._larger * variance)

    def _split(self, bound: int) -> tuple[float, float]:
        """(square of the bias, variance) of what a bound cuts from the stand-in."""
        if bound not in self._parts:
            first = self.all - self._counted(bound)
            second = self.all - self._counted(bound) if first.any() else first
            variance = 2 * self._mean_square((first - second) / 2)
            self._parts[bound] = max(self._mean_square((first + second) / 2) - variance / 2, 0.0), variance
        return self._parts[bound]

    def _counted(self, bound: int) -> Floats:
        counts = count(self._like, self.policy.domain, max_per_entity=bound, **self._how)
        return np.asarray(counts.values, dtype=np.float64).reshape(self.policy.domain.shape)

    def _mean_square(self, values: Floats) -> float:
        return self.workload.mean_square(values, self.policy.domain)
