"""Which tables of blocks to measure, and how well: the best weights for a workload, by its expected error alone.

A table has a level of every axis, its nested blocks' length. With g_k what the workload asks of level k and longer
blocks do not have, and λ_k as in `linear.block_sums`, the mean squared error is `Σ_k g_k/λ_k` times the variance of the
noise, which grows with the square of the sensitivity. That is linear in the weights for every kind of change: one that
leaves the blocks of level m together costs 2·Σ w_t over all tables t that are along some axis shorter than m, one that
appears Σ w_t. So marginals of factors that do not change at once share no budget.

`1/λ` is bounded from above by a sum of `1/w²` that touches it at the present weights (Jensen); each step takes the best
weights of that bound, with a price for every kind of change, and never makes the error larger. There are several
minima, since a table that is hardly measured is worth nothing: steps go on from many starts, which know nothing but the
shape, and the best one stays. Weights are then rounded to whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato._types import Floats
from sfumato.domain import Domain
from sfumato.linear import Hierarchy, Level, Nests, levels_apart
from sfumato.policies import Policy
from sfumato.workload import CELLS, RANGES, TOTAL, AxisQueries, Part, Workload

# Blocks shrink by about so much from one level to the next where ranges of any length are asked.
RATIO = 4
# A table more than so many are not weighed.
MOST_TABLES = 10_000
# Starts, and the numbers that all of them together may hold.
STARTS, HELD = 48, 1 << 15
# Steps from every start, and from the best few.
FIRST_STEPS, KEPT, LAST_STEPS = 40, 4, 200
# The largest weight, of several that are tried: small ones draw faster, and are taken where they are nearly as good.
LARGEST = tuple(round(24 * 40 ** (step / 47)) for step in range(48))
NEARLY = 1.002


@lru_cache(maxsize=32)
def best_levels(policy: Policy, workload: Workload | None) -> tuple[list[list[int]], list[int]] | None:
    """(the lengths of the blocks of every table along every axis, their weights); None where there are too many tables.

    Without a workload for all ranges along axes that have an order, and single cells along the others.
    """
    parts = _parts(workload, policy.domain)
    nests = Nests(policy.domain.shape, [_lengths(n, along) for n, along in _along(policy.domain, parts)])
    if np.prod(nests.depth) > MOST_TABLES:
        return None
    costs = change_costs(policy, nests)
    asked = np.where(costs.any(axis=0), _asked(nests, parts), 0.0)  # what no change moves is known exactly
    if not len(costs):
        return None
    whole = _rounded(asked, nests.volumes(), costs, _best(asked, nests, costs, parts))
    tables = [level for level in nests.levels() if whole[level]]
    return [_blocks(nests, level) for level in tables], [int(whole[level]) for level in tables]


def change_costs(policy: Policy, nests: Nests) -> Floats:
    """For every kind of change that no other exceeds, what it costs by a table of weight one, for all tables."""
    found = []
    if policy.absent is not None and policy.absent.any():
        found.append(np.ones(nests.depth))
    if policy.moves_exist:
        chains = tuple(Hierarchy(n, along[::-1]) for n, along in zip(nests.shape, nests.lengths, strict=True))
        kinds = policy.moves.pair_types(chains)
        farthest = tuple(depth - 1 for depth in nests.depth)
        apart = {farthest} if kinds is None else {levels_apart(types) for types in kinds}
        level = np.indices(nests.depth)
        for most in apart:
            exceeded = any(other != most and all(a <= b for a, b in zip(most, other, strict=True)) for other in apart)
            if not exceeded and any(most):
                together = [index >= least for index, least in zip(level, most, strict=True)]
                found.append(2.0 * ~np.logical_and.reduce(together))
    return np.stack(found) if found else np.zeros((0, *nests.depth))


def expected_errors(asked: Floats, volumes: Floats, costs: Floats, weights: Floats) -> Floats:
    """Σ_k g_k/λ_k times the squared sensitivity, for many weightings at once, one row each."""
    left = np.divide(asked, _precisions(weights, volumes), out=np.zeros_like(weights), where=asked > 0)
    return np.asarray(left.reshape(len(weights), -1).sum(axis=1) * _loads(weights, costs).max(axis=1) ** 2)


def _best(asked: Floats, nests: Nests, costs: Floats, parts: Sequence[tuple[float, Part]]) -> Floats:
    volumes = nests.volumes()
    weights = _starts(nests, parts)
    for steps, kept in ((FIRST_STEPS, KEPT), (LAST_STEPS, 1)):
        weights = _improved(asked, volumes, costs, weights, steps)
        weights = weights[np.argsort(expected_errors(asked, volumes, costs, weights), kind="stable")[:kept]]
    return np.asarray(weights[0])


def _starts(nests: Nests, parts: Sequence[tuple[float, Part]]) -> Floats:
    """The tables that are asked for themselves, and random weights."""
    rng = np.random.default_rng(0)
    volumes = nests.volumes()
    count = max(4, min(STARTS, HELD // volumes.size))
    falls = rng.uniform(0.0, 0.7, count), rng.uniform(0.2, 2.5, count)
    starts = [volumes**-a * np.exp(b * rng.normal(size=volumes.shape)) for a, b in zip(*falls, strict=True)]
    own = np.full(volumes.shape, 1e-2)
    for _, part in parts:
        own[tuple(_own_level(nests, axis, kind) for axis, kind in enumerate(part.kinds))] += 1.0
    return np.stack([own, np.sqrt(own), np.ones_like(own), volumes ** (-1 / 3), *starts])


def _own_level(nests: Nests, axis: int, kind: AxisQueries) -> int:
    lengths = nests.lengths[axis]
    asked = [lengths.index(b) for b in kind.lengths if b in lengths]
    return len(lengths) - 1 if kind == TOTAL else max(asked, default=0)


def _improved(asked: Floats, volumes: Floats, costs: Floats, weights: Floats, steps: int) -> Floats:
    axes = tuple(range(1, weights.ndim))
    costly = costs.any(axis=0)
    weights = np.where(costly, weights, 0.0)
    prices = np.full((len(weights), len(costs)), 1.0 / len(costs))
    for _ in range(steps):
        pull = np.divide(asked, _precisions(weights, volumes) ** 2, out=np.zeros_like(weights), where=asked > 0)
        for axis in axes:
            pull = np.flip(np.cumsum(np.flip(pull, axis), axis=axis), axis)
        pull *= volumes * weights**4
        for _ in range(3 if len(costs) > 1 else 1):
            price = np.tensordot(prices, costs, axes=1)
            weights = np.where(costly, np.cbrt(np.maximum(pull, 1e-290) / np.where(costly, price, 1.0)), 0.0)
            loads = _loads(weights, costs)
            prices = np.maximum(prices * loads / loads.max(axis=1, keepdims=True), 1e-12)
            prices /= prices.sum(axis=1, keepdims=True)
        weights = weights / loads.max(axis=1).reshape(-1, *(1,) * len(axes))
    return weights


def _rounded(asked: Floats, volumes: Floats, costs: Floats, weights: Floats) -> Floats:
    """Whole weights: those of several that round best. Single cells keep a weight of one, so that every one is told."""
    scaled = np.stack([np.rint(weights * (largest / weights.max())) for largest in LARGEST])
    flat = scaled.reshape(len(LARGEST), -1)  # a view: the first table is that of single cells
    flat[:, 0] = np.maximum(flat[:, 0], 1.0)
    errors = expected_errors(asked, volumes, costs, scaled)
    return np.asarray(scaled[int(np.argmax(errors <= NEARLY * errors.min()))])


def _precisions(weights: Floats, volumes: Floats) -> Floats:
    found = weights**2 * volumes
    for axis in range(1, found.ndim):
        found = np.cumsum(found, axis=axis)
    return np.maximum(found, 1e-300)


def _loads(weights: Floats, costs: Floats) -> Floats:
    """What every kind of change costs, a row for each weighting."""
    return np.asarray(weights.reshape(len(weights), -1) @ costs.reshape(len(costs), -1).T)


def _blocks(nests: Nests, level: Level) -> list[int]:
    return [chain[k] for chain, k in zip(nests.lengths, level, strict=True)]


def _parts(workload: Workload | None, domain: Domain) -> list[tuple[float, Part]]:
    shares = None if workload is None else workload.shares(domain)
    if shares is not None:
        return shares
    return [(1.0, Part(Fraction(1), tuple(RANGES if axis.ordered else CELLS for axis in domain.axes)))]


def _along(domain: Domain, parts: Sequence[tuple[float, Part]]) -> list[tuple[int, list[AxisQueries]]]:
    return [(n, [part.kinds[axis] for _, part in parts]) for axis, n in enumerate(domain.shape)]


def _asked(nests: Nests, parts: Sequence[tuple[float, Part]]) -> Floats:
    """g: what is asked of every level, in the mean over the workload."""
    found, seen = np.zeros(nests.depth), {}
    for share, part in parts:
        term = np.full((1,), share)
        for axis, kind in enumerate(part.kinds):
            if (axis, kind) not in seen:
                seen[axis, kind] = nests.explained(axis, kind).mean(axis=1)
            term = np.multiply.outer(term, seen[axis, kind])
        found += term[0]
    return found


def _lengths(n: int, kinds: Sequence[AxisQueries]) -> list[int]:
    """The lengths of blocks along an axis: those that are asked for, powers where ranges are, and the whole."""
    asked = [1]
    for b in sorted(frozenset().union(*(kind.lengths for kind in kinds))):
        if b < n and b > asked[-1] and b % asked[-1] == 0:
            asked.append(b)
    if len(asked) > 1 or not any(kind.partial for kind in kinds):
        return asked
    powers = [[ratio**k for k in range(most + 1)] for ratio in range(2, 9) for most in range(8) if ratio**most < n]
    return min(powers, key=lambda chain: _unevenness(chain, n), default=[1])


def _unevenness(chain: Sequence[int], n: int) -> float:
    """How far its ratios are from the one that is wanted, and how many cells it adds to the axis."""
    whole = -(-n // chain[-1]) * chain[-1]
    ratios = [b / a for a, b in zip(chain, [*chain[1:], whole], strict=True)]
    return float(sum(abs(np.log2(ratio / RATIO)) for ratio in ratios) + 20 * (whole - n) / n)
