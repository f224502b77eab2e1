"""The best nested blocks and weights for the queries along one line, found in closed form.

Nested blocks commute. Let Π_b be the projection onto vectors that are constant on blocks of length b, and let level ℓ
of a hierarchy have blocks of length b_ℓ (b_0 = 1) and weight w_ℓ. Then `AᵀA = Σ w_ℓ²·b_ℓ·Π_ℓ`, and on what level ℓ
sees and the next coarser one does not, its eigenvalue is `λ_ℓ = Σ_{j ≤ ℓ} w_j²·b_j`. The mean squared error over a
workload with normalised Gram matrix G is therefore

    Σ_ℓ (t_ℓ - t_{ℓ+1}) / λ_ℓ,     t_ℓ = tr(G·Π_ℓ),

times the variance of the noise at sensitivity Σ w. Where the total is known, what it explains is taken off the last
term. The weights that minimise it under Σ w = 1 follow from equal partial derivatives, by a fixed point that would be
exact if the terms were apart. Lengths that the blocks do not divide are treated as if they did; the plan measures
what is built.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations

import numpy as np

from sfumato._types import Floats
from sfumato.mechanism.base import LARGEST_PRODUCT
from sfumato.mechanism.cells.along import Asked, whole_is_asked

# Weights are whole numbers that sum to about this: two digits are enough, since the error is flat around its minimum.
RESOLUTION = 128
# In a product of hierarchies the weights multiply, and fixed point has 64 bits for all of it.
COARSE = 16
MOST_LEVELS = 5


@lru_cache(maxsize=256)
def best_hierarchy(
    n: int, kind: Asked, total_known: bool, resolution: int = RESOLUTION, largest: int | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(blocks, weights) from the coarsest level to single cells, with the least error on all queries of that kind.

    The weights have no common divisor, which would only cost room, and none is larger than `largest`.
    """
    blocks, real = _best_real(n, kind, total_known)
    scale = resolution if largest is None else min(resolution, largest / max(real))
    whole = [max(round(k * scale), 1) for k in real]
    return blocks[::-1], tuple(k // math.gcd(*whole) for k in whole[::-1])


@lru_cache(maxsize=256)
def _best_real(n: int, kind: Asked, total_known: bool) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """(blocks, weights that sum to one), from single cells to the coarsest level."""
    explained = {b: kind.explained(n, b) for b in (*_lengths(n), n)}
    whole = n > 1 and not total_known and whole_is_asked(kind)
    known = explained[n] if total_known else 0.0
    best: tuple[float, tuple[int, ...], Floats] = (float("inf"), (1,), np.ones(1))
    grouped = _chains(n)
    if whole:
        grouped += [[_rooted(chain, n) for chain in chains] for chains in grouped]
    for chains in grouped:
        blocks = np.minimum(np.array(chains, dtype=np.float64), n)
        terms = np.array([[explained[min(b, n)] for b in chain] for chain in chains])
        gaps = terms - np.concatenate([terms[:, 1:], np.full((len(chains), 1), known)], axis=1)
        weights, errors = _best_weights(blocks, np.maximum(gaps, 0.0))
        at = int(np.argmin(errors))
        if errors[at] < best[0] * (1 - 1e-9):
            best = (float(errors[at]), chains[at], weights[at])
    return best[1], tuple(float(k) for k in best[2])


def _rooted(chain: tuple[int, ...], n: int) -> tuple[int, ...]:
    """A chain with one block over everything on top, a multiple of the one below as every length is."""
    return (*chain, -(-n // chain[-1]) * chain[-1])


def best_hierarchies(
    shape: tuple[int, ...], kinds: tuple[Asked, ...], total_known: bool
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """For every axis of a product of hierarchies, in which the weights of the axes multiply."""
    along = list(zip(shape, kinds, strict=True))
    free = [best_hierarchy(n, kind, total_known) for n, kind in along]
    largest = largest_along(sum(len(blocks) > 1 for blocks, _ in free))
    return [best_hierarchy(n, kind, total_known, largest=largest) for n, kind in along]


def largest_along(axes: int) -> int:
    """The largest entry that a strategy may have along each of so many axes, so that products of them leave room."""
    entry = LARGEST_PRODUCT
    while entry ** max(axes, 1) > LARGEST_PRODUCT:
        entry -= 1
    return entry


def _lengths(n: int) -> list[int]:
    """Block lengths worth trying: products of two small branchings, and their powers."""
    found = {1}
    for branching in range(2, 41):
        found |= {branching * other for other in range(1, 41)}
        length = branching
        while length < n:
            found.add(length)
            length *= branching
    return sorted(length for length in found if length < n or length == 1)


def _chains(n: int) -> list[list[tuple[int, ...]]]:
    """Chains 1 = b_0 < b_1 < … in which each length divides the next, grouped by their number of levels."""
    powers = [b for b in _lengths(n) if b > 1 and b & (b - 1) == 0]
    found: set[tuple[int, ...]] = {(1,)}
    for size in range(1, MOST_LEVELS):
        found |= {(1, *chosen) for chosen in combinations(powers, size)}
    for branching in range(2, 41):
        found |= {(1, branching, branching * other) for other in range(2, 41) if branching * other < n}
        chain = [1]
        while chain[-1] * branching < n:
            chain.append(chain[-1] * branching)
            found.add(tuple(chain))
    levels = sorted({len(chain) for chain in found})
    return [sorted(chain for chain in found if len(chain) == size) for size in levels]


def _best_weights(blocks: Floats, gaps: Floats) -> tuple[Floats, Floats]:
    """For chains of equal length (rows): the weights that minimise Σ gaps/λ, and that error."""
    weights = np.full(blocks.shape, 1.0 / blocks.shape[1])
    for _ in range(60):
        eigen = np.cumsum(weights**2 * blocks, axis=1)
        pull = 2 * weights * blocks * np.cumsum((gaps / eigen**2)[:, ::-1], axis=1)[:, ::-1]
        weights = weights * np.maximum(pull, 1e-300) ** (1 / 3)
        weights = np.maximum(weights / weights.sum(axis=1, keepdims=True), 1e-9)
    return weights, (gaps / np.cumsum(weights**2 * blocks, axis=1)).sum(axis=1) * weights.sum(axis=1) ** 2


@lru_cache(maxsize=64)
def best_prefix_blocks(reach: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(blocks, weights) of prefix sums at every b-th cell with a hierarchy inside, for moves of at most `reach` cells.

    On a long line the two ends of a range are independent, and the estimated block ends have the covariance of a
    stationary chain: with V the variance of a block's sum from inside, `1/√(a² - 4e²)` where e = 1/V and
    a = k₀² + 2e, falling off by λ = (a - √(a² - 4e²))/2e from block to block. The mean over the places of an end
    follows.
    """
    best: tuple[float, tuple[int, ...], tuple[float, ...]] = (float("inf"), (2, 1), (1.0, 1.0))
    grid = np.geomspace(0.2, 5.0, 33)
    for length in sorted({max(2, round(reach * f)) for f in (0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1, 1.25, 1.5, 2, 3)}):
        crossed = -(-reach // length)
        error = _ends_error(length, 1, np.inf, grid) * (crossed + 2 * grid) ** 2
        at = int(np.argmin(error))
        best = min(best, (float(error[at]), (length, 1), (1.0, float(grid[at]))))
        small = [c for c in range(1, math.isqrt(length) + 1) if length % c == 0]
        divisors = sorted({*small, *(length // c for c in small)} - {1, length})
        for middle in sorted(divisors, key=lambda c: abs(np.log(c**2 / length)))[:6]:
            blocks, cells = grid[:, None], grid[None, :]
            table = _ends_error(length, middle, blocks, cells) * (crossed + 2 * (blocks + cells)) ** 2
            i, j = np.unravel_index(int(np.argmin(table)), table.shape)
            best = min(best, (float(table[i, j]), (length, middle, 1), (1.0, float(grid[i]), float(grid[j]))))
    whole = np.maximum(np.rint(np.array(best[2]) / sum(best[2]) * RESOLUTION), 1).astype(int)
    return best[1], tuple(int(k) // int(np.gcd.reduce(whole)) for k in whole)


def _ends_error(length: int, middle: int, blocks: Floats | float, cells: Floats) -> Floats:
    """The variance of an end, averaged over its places in a block: unit weight on prefix sums, unit noise."""
    node = middle / cells**2 if middle == 1 else 1 / (blocks**2 + cells**2 / middle)
    whole = (length // middle) * node
    # With t uniform among the cells of a block: E[t/length], E[(t/length)²], and the same inside a middle block.
    share, square = (length - 1) / (2 * length), (length - 1) * (2 * length - 1) / (6 * length**2)
    part, part2 = (middle - 1) / (2 * middle), (middle - 1) * (2 * middle - 1) / (6 * middle**2)
    inside = (length // middle - 1) / 2 * node + part2 * node + (part - part2) * middle / cells**2 - square * whole
    e = 1 / whole
    a = 1 + 2 * e
    root = np.sqrt(a**2 - 4 * e**2)
    fall = (a - root) / (2 * e)
    ends = (1 - 2 * share + 2 * square + 2 * (share - square) * fall) / root
    return np.asarray(ends + inside)
