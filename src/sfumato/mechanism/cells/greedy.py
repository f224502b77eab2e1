"""A greedy search for a binary strategy: add sets that cost nothing until none is left, then weigh a rise of the cost.

A set that cuts only edges below the largest number of cuts can join a strategy without raising its sensitivity Δ, and
adding a row never raises a variance. With Σ = (AᵀA)⁻¹ and the workload's Gram matrix G the mean variance falls by
`aᵀΣGΣa / (1 + aᵀΣa)` when a joins. So add, again and again, the candidate for which it falls most, for every edge that
it cuts: cuts are what runs out, and without the division a few large sets use them up. When nothing fits any more,
allow one cut more and go on: the noise grows by (Δ+1)²/Δ², and whether the new sets outweigh that depends on the
workload. The best of all stages is kept.

Fang, Chang (ASIA CCS 2014), section 5.3, for any policy and workload. Equation (5) there lacks the factor 2/ε².
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato._types import Floats
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import Number, positive_fraction
from sfumato.mechanism.base import Mechanism, require_connected
from sfumato.mechanism.cells.candidates import MOST_BOXES, Candidates, candidates, starts
from sfumato.mechanism.cells.cuts import Bools, binary, crossings, cut_sensitivity
from sfumato.mechanism.cells.sets import (
    centred,
    covariance,
    encoded,
    precision,
    refuse_large,
    set_mechanism,
)
from sfumato.mechanism.cells.strategies import no_options
from sfumato.mechanism.entry import Entry
from sfumato.noise import DiscreteLaplace
from sfumato.policies import Policy, bounded
from sfumato.workload import Workload, histogram, ranges

# Every step looks at the edges that have become full: above so many of them a search takes minutes.
LARGEST_EDGES = 50_000
# A plan searches by itself only where it takes a second or so.
LARGEST_PLANNED = 64  # cells; named, it searches on more
LARGEST_SEARCHED = 256
LARGEST_PLANNED_EDGES = 4_000
MOST_PLANNED_BOXES = 6_000
# A set that lowers the error by less than this share is left out.
SMALLEST_GAIN = 1e-6
# While the sets leave some cell undetermined, its variance counts as this much.
UNKNOWN = 1e3
# Stages without an improvement before the search gives up.
PATIENCE = 2
# A stage that is this many times worse than another start's result ends its search; so does a start that is so by the
# square of it.
HOPELESS = 8


@dataclass(frozen=True, eq=False)
class GreedyStrategy:
    """A binary strategy that a search has found, and what it was worth.

    Variances are mean squared errors a query at ε = 1 with continuous Laplace noise, 2Δ² times the mean of qᵀ(AᵀA)⁻¹q;
    infinite where the sets do not determine every query.
    """

    policy: Policy
    members: Bools
    sensitivity: int
    variance: float
    start: str
    sets_before: int
    sensitivity_before: int
    variance_before: float

    @property
    def options(self) -> dict[str, Any]:
        """What builds the strategy again: `sf.plan(…, mechanism="greedy", **options)`."""
        return encoded(self.members, self.policy.domain.shape)

    def expected_error(self, epsilon: Number) -> float:
        """The mean squared error a query of the mechanism at ε, with its discrete noise."""
        noise = DiscreteLaplace(positive_fraction(epsilon, "epsilon") / self.sensitivity)
        return self.variance / (2 * self.sensitivity**2) * noise.variance

    def describe(self) -> str:
        """One line: from what to what."""
        return (
            f"from {self.start}: {self.sets_before} to {len(self.members)} sets, sensitivity {self.sensitivity_before} "
            f"to {self.sensitivity}, mean squared error {self.variance_before:.4g} to {self.variance:.4g} at ε = 1"
        )


def greedy_strategy(
    policy: Policy, workload: Workload, *, start: Any = None, raises: int | None = None, most: int = MOST_BOXES
) -> GreedyStrategy:
    """The best strategy that greedy steps reach, from one start or from all.

    `start` is the name of a start (`starts(policy)`) or a matrix of zeros and ones, one row a set; None tries all
    names. `raises` is how often the sensitivity may rise by one; None goes on while it helps. Where there are more
    than `most` boxes, they are thinned out.
    """
    workload.check(policy.domain)
    if raises is not None and (type(raises) is not int or raises < 0):
        raise InvalidInput(f"raises={raises!r} must be a whole number of at least 0, or None.")
    require_connected(policy, "greedy")
    refuse_large(policy.domain.size)
    count = len(policy.edges())
    if count > LARGEST_EDGES:
        raise TooLarge(
            f"mechanism='greedy' takes policies of at most {LARGEST_EDGES:,} edges, and this one has {count:,}. Use "
            "fewer cells, or mechanism='hierarchy' or 'edges'. Nothing was drawn or recorded."
        )
    search = _Search(policy, workload.gram(policy.domain), candidates(policy, most))
    named = _chosen_starts(policy, start)
    best = search.best(*named[0], raises, math.inf)
    for name, members in named[1:]:
        found = search.best(name, members, raises, HOPELESS * best.variance)
        if found.variance < best.variance * (1 - SMALLEST_GAIN):  # else the plainer start is kept
            best = found
    return best


def greedy(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """The mechanism of `boxes` (lo…, hi…) of cell indices and `sets` of cell numbers; without them, of the sets that
    a search finds for all ranges (for single cells where labels have no order).
    """
    given: dict[str, Any] = {name: options.pop(name) for name in ("boxes", "sets") if name in options}
    no_options("greedy", options)
    if not given:
        require_connected(policy, "greedy")
        if not _quick(policy):
            raise InvalidInput(
                f"mechanism='greedy' searches by itself on at most {LARGEST_SEARCHED} cells and "
                f"{LARGEST_PLANNED_EDGES:,} edges; here give boxes=… or sets=…, or use mechanism='hierarchy' or "
                "'edges'. Nothing was drawn or recorded."
            )
        given = _searched(policy, _usual(policy)).options
    return set_mechanism("greedy", policy, epsilon, given)


def greedy_variants(policy: Policy, workload: Workload, *, most: int = LARGEST_PLANNED) -> Iterator[dict[str, Any]]:
    """The options that a plan tries: what a search for its workload finds, one for the usual workload, and on grids
    for an unusual one what is found under replace-one, which is good for every policy without ⊥; none where it would
    be kept waiting, or where nothing was added to a start that has a name of its own.
    """
    if 1 < policy.domain.size <= most and policy.connected and _quick(policy):
        searches = dict.fromkeys([(policy, workload), (policy, _usual(policy))])
        if policy.total_is_public and policy.domain.ndim > 1 and workload != _usual(policy):
            searches[bounded(policy.domain), workload] = None
        for under, asked in searches:
            found = _searched(under, asked)
            if len(found.members) > found.sets_before:
                yield found.options


def _quick(policy: Policy) -> bool:
    return policy.domain.size <= LARGEST_SEARCHED and len(policy.edges()) <= LARGEST_PLANNED_EDGES


def _usual(policy: Policy) -> Workload:
    return ranges() if policy.domain.is_ordered else histogram()


@lru_cache(maxsize=64)
def _searched(policy: Policy, workload: Workload) -> GreedyStrategy:
    """Searches are repeated when a plan is: at another ε the same sets are best."""
    return greedy_strategy(policy, workload, most=MOST_PLANNED_BOXES)


def _chosen_starts(policy: Policy, start: Any) -> list[tuple[str, Bools]]:
    named = starts(policy)
    if start is None:
        return list(named.items())
    if isinstance(start, str):
        if start not in named:
            raise InvalidInput(f"start={start!r} is not one of {', '.join(map(repr, named))}.")
        return [(start, named[start])]
    return [("the given sets", binary(policy, start).toarray().astype(bool))]


class _Search:
    """The steps. Everything is kept for all candidates at once and follows each added set by a rank-one change."""

    def __init__(self, policy: Policy, gram: Floats, pool: Candidates) -> None:
        self.policy, self.gram, self.pool = policy, gram, pool
        self.edges = policy.edges()
        self.by_cell = np.ascontiguousarray(pool.members.T)

    def best(self, name: str, members: Bools, raises: int | None, hopeless: float) -> GreedyStrategy:
        """The best stage of one search. The first allows as many cuts as the start has, each further one more; it
        ends where nothing has improved for a while, or where a finite variance is hopeless.
        """
        before = cut_sensitivity(self.policy, members)
        current, sigma = members, covariance(members, self.policy.total_is_public)
        variance_before = self.variance(current, sigma)
        kept, least, worse = members, variance_before, 0
        stages = 1 + (2 * self.policy.domain.size.bit_length() + 4 if raises is None else raises)
        if HOPELESS * hopeless < variance_before < math.inf:
            stages = 0
        for allowed in range(max(before, 1), max(before, 1) + stages):
            current = self.filled(current, sigma, allowed)
            sigma = covariance(current, self.policy.total_is_public)
            variance = self.variance(current, sigma)
            if variance < least:
                kept, least, worse = current, variance, 0
            elif math.isfinite(least):
                worse += 1
            if worse == PATIENCE or hopeless < variance < math.inf:
                break
        return GreedyStrategy(
            policy=self.policy,
            members=kept,
            sensitivity=cut_sensitivity(self.policy, kept),
            variance=least,
            start=name,
            sets_before=len(members),
            sensitivity_before=before,
            variance_before=variance_before,
        )

    def variance(self, members: Bools, sigma: Floats | None) -> float:
        """2Δ²·trace(G·Σ)."""
        if sigma is None:
            return math.inf
        return 2 * cut_sensitivity(self.policy, members) ** 2 * float(np.einsum("ij,ij->", self.gram, sigma))

    def filled(self, members: Bools, sigma: Floats | None, allowed: int) -> Bools:
        """The sets, of covariance Σ, and all that greedy steps add to them while no edge exceeds the allowed cuts."""
        pool = self.pool
        if not len(pool.members):
            return members
        cuts = crossings(members, self.edges).sum(axis=0)
        closed = self._crossing(cuts >= allowed)
        sigma = self._ridge(members) if sigma is None else sigma
        left = float(np.einsum("ij,ij->", self.gram, sigma))
        v, k = pool.lifted(sigma), pool.lifted(sigma @ self.gram @ sigma)
        spread, weight = pool.quadratic(v), pool.quadratic(k)  # aᵀΣa and aᵀΣGΣa of every candidate
        added: list[int] = []
        while True:
            gain = weight / (1 + spread)
            pick = int(np.where(closed, -np.inf, gain / pool.cut).argmax())
            if closed[pick] or gain[pick] <= SMALLEST_GAIN * left:
                return np.concatenate([members, pool.members[added]])
            added.append(pick)
            left -= float(gain[pick])
            at = slice(*pool.corners.indptr[pick : pick + 2])
            where, signs = pool.corners.indices[at], pool.corners.data[at]
            felt, pulled = v[:, where] @ signs, k[:, where] @ signs
            shrink = 1 / (1 + spread[pick])
            turned = shrink * pulled - 0.5 * shrink**2 * weight[pick] * felt
            v -= np.outer(shrink * felt, felt)
            change = np.outer(felt, turned)
            k -= change + change.T
            along = pool.corners @ np.stack([felt, turned], axis=-1)
            spread -= shrink * along[:, 0] ** 2
            weight -= 2 * along[:, 0] * along[:, 1]
            cut = crossings(pool.members[pick], self.edges)
            cuts += cut
            closed |= self._crossing(cut & (cuts == allowed))

    def _ridge(self, members: Bools) -> Floats:
        """A stand-in for Σ while some cell is undetermined."""
        table = precision(members, self.policy.total_is_public)
        table[np.diag_indices_from(table)] += 1 / UNKNOWN
        return centred(np.asarray(np.linalg.inv(table), dtype=np.float64), self.policy.total_is_public)

    def _crossing(self, full: Bools) -> Bools:
        """Which candidates cut one of the edges that have no room left."""
        closed = np.zeros(len(self.pool.members), dtype=bool)
        for tail, head in self.edges[full]:
            closed |= self.by_cell[tail] if head < 0 else self.by_cell[tail] ^ self.by_cell[head]
        return closed


def _searched_by_name(policy: Policy, workload: Workload) -> Iterator[dict[str, Any]]:
    yield from greedy_variants(policy, workload, most=LARGEST_SEARCHED)


def _needed(policy: Policy) -> tuple[Set[str], ...]:
    del policy
    return {"boxes"}, {"sets"}


GREEDY = Entry(name="greedy", build=greedy, candidates=greedy_variants, tunings=_searched_by_name, needed=_needed)
