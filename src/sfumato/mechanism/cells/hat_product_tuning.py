"""How many hats along every axis, and how much each kind of product of them weighs: by the expected error alone.

With m hats along an axis and the share ω_S that a cell gives to a set of axes S, the mean squared error is a sum over
the eigenvectors of hats times the squared sensitivity, and both follow from what the policy's moves share of the hats.
The shares are found by steps that never make the error larger, for one width after another until wider hats are no
better; then they are rounded to whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.linear import HatAxis, PairTypes, asked_of, least_shared
from sfumato.linear.hat_axis import FEWEST
from sfumato.mechanism.base import LARGEST_PRODUCT
from sfumato.policies import Policy
from sfumato.policies.moves import both_ways
from sfumato.workload import RANGES, AxisQueries, Workload

# Widths of hats grow by this from one to the next, and are tried by so many at a time.
WIDER, STRIDES = 1.15, (2, 1)
# The height of hats while they are tuned; then it is one of which products stay small.
FINE = 24
HEIGHTS = {1: (128, 64, 48, 31), 2: (31, 26, 22, 18, 10), 3: (10, 8, 6, 5)}
# Of the longest moves so many are looked at while tuning.
SOME_MOVES = 12
# Steps of the logarithms of shares: the first one, and the last.
FIRST_STEP, LAST_STEP = 1.0, 0.06
# The share that stands for none.
NONE = -30.0

Options = tuple[list[int], int, list[int]]


class Found(NamedTuple):
    """An error at ε = 1 for noise of variance 2, the logarithms of shares, the numbers of hats, and the best shares
    with and without products with hats along some axes alone.
    """

    error: float
    shares: tuple[float, ...]
    hats: tuple[int, ...]
    ends: tuple[tuple[float, ...], tuple[float, ...]]


@lru_cache(maxsize=32)
def best_hat_products(policy: Policy, workload: Workload | None) -> Options | None:
    """(the number of hats along every axis, the height, the weights); None where no axis is long enough, or asked for
    sums.
    """
    domain = policy.domain
    shares = None if workload is None else workload.shares(domain)
    parts = (
        [(1.0, (RANGES,) * domain.ndim)]
        if shares is None
        else [(share, tuple(RANGES if k.steps is not None else k for k in part.kinds)) for share, part in shares]
    )
    hatted = [
        n >= 2 * FEWEST and axis.ordered and any(kinds[i].partial for _, kinds in parts)
        for i, (n, axis) in enumerate(zip(domain.shape, domain.axes, strict=True))
    ]
    if not any(hatted):
        return None
    lengths = [n for n, there in zip(domain.shape, hatted, strict=True) if there]
    middle = math.sqrt(math.prod(lengths) ** (1 / len(lengths)))
    known: dict[tuple[int, ...], Found] = {}

    def at(step: int) -> Found:
        """With hats that are WIDER^step times as wide as the root of the axes' length."""
        along = zip(domain.shape, hatted, strict=True)
        width = middle * WIDER**step
        hats = tuple(min(max(round(n / width), FEWEST), n // 2) if there else 0 for n, there in along)
        if hats not in known:
            known[hats] = _tuned(policy, hats, parts, best.ends if known else None)
        return known[hats]

    best, centre = at(0), 0
    for stride in STRIDES:
        for sign in (1, -1):
            while (tried := at(centre + sign * stride)).error < best.error:
                best, centre = tried, centre + sign * stride
    return _rounded(policy, parts, best)


class Costs:
    """What a change of one record costs by the shares, for some hats."""

    def __init__(self, policy: Policy, axes: Sequence[HatAxis]) -> None:
        self.absent = policy.absent is not None and bool(policy.absent.any())
        self.least = least_shared(_kinds(policy, tuple(axes)))
        self.hatted = [i for i, axis in enumerate(axes) if axis.count]
        self.height = axes[0].height

    def largest(self, shares: Floats) -> float:
        """The sensitivity where a cell gives shares[k] to every set of k axes."""
        d = len(self.hatted)
        norm = sum(math.comb(d, k) * float(share) for k, share in enumerate(shares))
        found = [norm] if self.absent else []
        for changed, least in self.least.items():
            c = len(changed)
            above = 0.0
            if all(i in self.hatted for i in changed):
                above = sum(math.comb(d - c, k - c) * float(shares[k]) for k in range(c, d + 1))
            found.append(2 * (norm - above * least / self.height**c))
        return max(found, default=0.0)


def _kinds(policy: Policy, axes: tuple[HatAxis, ...]) -> list[list[PairTypes]]:
    """The kinds of moves that matter for tuning: of a stencil those that no other exceeds; of moves that follow no
    rule one that leads anywhere. The sensitivity itself is taken from all of them.
    """
    if not policy.moves_exist:
        return []
    stencil = policy.moves.stencil
    if stencil is None:
        found = policy.moves.pair_types(axes)
        return [[axis.pair_types(None) for axis in axes]] if found is None else list(found)
    outer = _outermost(stencil.sizes(policy.domain.shape))
    outer = outer[np.unique(np.linspace(0, len(outer) - 1, SOME_MOVES).astype(np.int64))]
    steps = {(axis, int(o)) for axis, along in zip(axes, outer.T, strict=True) for o in along}
    types = {(axis, o): both_ways(axis, o) for axis, o in steps}
    return [[types[axis, int(o)] for axis, o in zip(axes, size, strict=True)] for size in outer]


def _outermost(sizes: Integers) -> Integers:
    """The rows that no other exceeds of those that are zero in the same places."""
    order = np.lexsort(sizes.T[::-1])
    rows = sizes[order]
    last = np.append((rows[1:, :-1] != rows[:-1, :-1]).any(axis=1) | (rows[:-1, -1] == 0), True)
    rows = rows[last]  # of those that differ in the last axis alone, the longest
    more = (rows[None] >= rows[:, None]).all(axis=2) & ((rows[None] > 0) == (rows[:, None] > 0)).all(axis=2)
    return np.asarray(rows[more.sum(axis=1) == 1])


def _error(
    policy: Policy, axes: Sequence[HatAxis], parts: Sequence[tuple[float, tuple[AxisQueries, ...]]]
) -> Callable[[Floats], float]:
    """The mean squared error at ε = 1, by the shares of a cell for sets of 0, 1, 2, … axes."""
    costs = Costs(policy, axes)
    own = [np.append(axis.spectrum[1], 0.0) / axis.height**2 for axis in axes]
    powers = [_elementary(own, k) for k in range(len(costs.hatted) + 1)]
    known = policy.total_is_public
    asked: Floats = np.zeros(())
    totals = []
    seen: dict[tuple[int, AxisQueries], tuple[Floats, Any]] = {}
    for share, kinds in parts:
        term: Floats = np.full((), share)
        for i, (axis, kind) in enumerate(zip(axes, kinds, strict=True)):
            if (i, kind) not in seen:
                seen[i, kind] = asked_of(axis, kind), _of_total(axis, kind) if known else None
            term = np.multiply.outer(term, seen[i, kind][0])
        asked = asked + term
        totals.append((share, [seen[i, kind][1] for i, kind in enumerate(kinds)]))
    ones = [_of_ones(axis) for axis in axes]

    def error(shares: Floats) -> float:
        inverse = 1.0 / sum(share**2 * power for share, power in zip(shares, powers, strict=True) if share > 0)
        found = float((asked * inverse).sum())
        if known:
            g = inverse
            for i, one in enumerate(ones):
                g = g * one.reshape([-1 if j == i else 1 for j in range(len(ones))])
            whole = g
            for i, one in enumerate(ones):
                whole = whole * one.reshape([-1 if j == i else 1 for j in range(len(ones))])
            for share, grams in totals:
                felt = g
                for i, gram in enumerate(grams):
                    felt = np.moveaxis(np.tensordot(gram, felt, axes=(1, i)), 0, i)
                found -= share * float((felt * g).sum()) / float(whole.sum())
        return 2 * costs.largest(shares) ** 2 * max(found, 0.0)

    return error


def _elementary(own: Sequence[Floats], k: int) -> Floats:
    """The sum over all sets of k axes of the products of their eigenvalues, for every product of eigenvectors."""
    found: list[Floats] = [np.ones((1,) * len(own))] + [np.zeros((1,) * len(own))] * k
    for i, values in enumerate(own):
        along = values.reshape([-1 if j == i else 1 for j in range(len(own))])
        found = [found[0], *(found[j] + along * found[j - 1] for j in range(1, k + 1))]
    return np.broadcast_to(found[k], tuple(map(len, own)))


def _of_ones(axis: HatAxis) -> Floats:
    """The sum over all cells in the axis' eigenvectors, and last in all others."""
    return np.append(axis.spectrum[0].sum(axis=1), 0.0 if axis.count else math.sqrt(axis.cols))


def _of_total(axis: HatAxis, kind: AxisQueries) -> Floats:
    """How often eigenvectors are asked for together, where they have something of the total."""
    vectors = axis.spectrum[0] if axis.count else np.full((1, axis.cols), axis.cols**-0.5)
    roots = np.asarray(kind.root(vectors))
    gram = roots @ roots.T
    return np.pad(gram, ((0, 1), (0, 1))) if axis.count else gram


def _tuned(
    policy: Policy,
    hats: tuple[int, ...],
    parts: Sequence[tuple[float, tuple[AxisQueries, ...]]],
    near: tuple[tuple[float, ...], tuple[float, ...]] | None,
) -> Found:
    made = {axis: HatAxis(*axis, FINE) for axis in zip(policy.domain.shape, hats, strict=True)}
    error = _error(policy, [made[axis] for axis in zip(policy.domain.shape, hats, strict=True)], parts)
    d = sum(m > 0 for m in hats)
    starts = {(0.3,) * d, (NONE,) * (d - 1) + (0.3,)} if near is None else {near[0], near[1]}
    found = sorted((_steps(error, start) for start in starts), key=lambda one: max(one[1][:-1], default=0) <= NONE)
    best = min(found)
    return Found(best[0], best[1], hats, (found[0][1], found[-1][1]))


def _steps(error: Callable[[Floats], float], start: tuple[float, ...]) -> tuple[float, tuple[float, ...]]:
    """Up and down along every logarithm, by steps that get shorter; what is none stays so."""

    def of(logs: Sequence[float]) -> float:
        return error(np.array([1.0, *(0.0 if x <= NONE else math.exp(x) for x in logs)]))

    at, best, step = list(start), of(start), FIRST_STEP
    while step > LAST_STEP:
        before = best
        for i in range(len(at)):
            for sign in (1.0, -1.0):
                moved = [*at[:i], at[i] + sign * step, *at[i + 1 :]]
                if at[i] > NONE and (found := of(moved)) < best:
                    at, best = moved, found
                    break
        if best == before:
            step /= 2
    return best, tuple(at)


def _rounded(policy: Policy, parts: Sequence[tuple[float, tuple[AxisQueries, ...]]], found: Found) -> Options:
    """Whole weights: those of several heights that lose least."""
    shape, d = policy.domain.shape, len(found.shares)
    shares = np.array([1.0, *(0.0 if x <= NONE else math.exp(x) for x in found.shares)])
    best: tuple[float, int, list[int]] | None = None
    for height in HEIGHTS.get(d, (2,)):
        powers = float(height) ** np.arange(d + 1)
        weights = np.maximum(np.rint(shares * LARGEST_PRODUCT / shares.max() / powers), shares > 0)
        weights = np.where(weights * powers > LARGEST_PRODUCT, weights - 1, weights)
        if weights[0] < 1 or (weights[shares > 0] < 1).any():
            continue
        made = {axis: HatAxis(*axis, height) for axis in zip(shape, found.hats, strict=True)}
        error = _error(policy, [made[axis] for axis in zip(shape, found.hats, strict=True)], parts)(weights * powers)
        if best is None or error < best[0]:
            best = error, height, [int(w) for w in weights]
    if best is None:
        return list(found.hats), 1, [1] * (d + 1)
    return list(found.hats), best[1], best[2]
