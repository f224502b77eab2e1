"""What was published, for comparison alone: UGrid, AGrid, PrivTree, HTF and DAWA.

All with floating-point Laplace noise, which is not safe to publish, and told the number of records for free. UGrid and
AGrid (Qardaji, Yang, Li, ICDE 2013), PrivTree (Zhang, Xiao, Xie, SIGMOD 2016) and HTF (Shaham, Ghinita, Ahuja, Krumm,
Shahabi, SIGSPATIAL 2021) are written from their papers; of HTF the tree, down to single cells, its budgets and its rule
to stop, without the averaging afterwards. A tenth of ε for its splits was the best of three, its other settings hardly
matter: cuts that three steps of a search may reach do not find single cells that hold thousands.

DAWA as its program has it is *not* private at the ε it is given: no noise on single cells, noisy costs cut off from
below, and half of the noise that the deviation from the mean needs (see `sfumato.mechanism.partitions.partition`).
Written from the program of the DPBench study: candidates are runs of 1, 2, 4, … cells from every cell on; a run costs
its deviation from the mean plus 1/ε₂, with Laplace noise.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from sfumato.domain.hilbert import hilbert_order
from sfumato.mechanism.partitions.bucket_tree import UNITS, best_tree
from sfumato.mechanism.partitions.partition import Buckets

ROWS = 512  # windows at a time
DIRECT = 64  # cells up to which deviations are added up one by one


@lru_cache(maxsize=16)
def _deviations(line: bytes) -> tuple[np.ndarray, ...]:
    """Of all runs of 1, 2, 4, … cells, from every cell on."""
    x = np.frombuffer(line, dtype=np.float64)
    found, length = [np.zeros(len(x))], 2
    while length <= len(x):
        found.append(_direct(x, length) if length <= DIRECT else _by_value(x, length))
        length *= 2
    return tuple(found)


def _direct(x: np.ndarray, length: int) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, length)
    steps = [windows[at : at + ROWS] for at in range(0, len(windows), ROWS)]
    return np.concatenate([np.abs(part - part.mean(axis=1, keepdims=True)).sum(axis=1) for part in steps])


def _by_value(x: np.ndarray, length: int) -> np.ndarray:
    """Twice what lies above the mean, less the mean as often: for every value that the means lie next to, two sums."""
    sums = np.concatenate([[0.0], np.cumsum(x)])
    mean = (sums[length:] - sums[:-length]) / length
    values = np.unique(x)
    above, found = np.searchsorted(values, mean, side="right"), np.zeros(len(mean))
    for number in np.unique(above):
        at = np.flatnonzero(above == number)
        high = x >= values[number] if number < len(values) else np.zeros(len(x), dtype=bool)
        total, count = (np.concatenate([[0.0], np.cumsum(part)]) for part in (np.where(high, x, 0.0), high))
        found[at] = 2 * (total[at + length] - total[at] - mean[at] * (count[at + length] - count[at]))
    return found


def published_runs(x: np.ndarray, epsilon: float, ratio: float, rng: np.random.Generator) -> np.ndarray:
    """The first cells of the runs of least noisy cost."""
    n, first, second = len(x), 1 / (epsilon * ratio), 1 / (epsilon * (1 - ratio))
    costs = []
    for level, deviation in enumerate(_deviations(np.asarray(x, dtype=np.float64).tobytes())):
        scale = (2 - 0.5**level - 1 / n) * first if level else 0.0
        costs.append(np.maximum(deviation + second + rng.laplace(0, scale, len(deviation)), second).tolist())
    best, begin = [0.0] * (n + 1), [0] * (n + 1)
    for end in range(1, n + 1):
        least, at, length = best[end - 1] + costs[0][end - 1], end - 1, 2
        for level in range(1, end.bit_length()):
            start = end - length
            if start < 0:
                break
            cost = best[start] + costs[level][start]
            if cost <= least:
                least, at = cost, start
            length *= 2
        best[end], begin[end] = least, at
    starts, end = [], n
    while end:
        end = begin[end]
        starts.append(end)
    return np.array(starts[::-1])


def published_histogram(x: np.ndarray, epsilon: float, ratio: float, rng: np.random.Generator) -> np.ndarray:
    """Runs, then Laplace noise on their totals, shared out equally: what the program does where cells are asked for."""
    starts = published_runs(x, epsilon, ratio, rng)
    lengths = np.diff(starts, append=len(x))
    totals = np.add.reduceat(x, starts) + rng.laplace(0, 1 / (epsilon * (1 - ratio)), len(starts))
    return np.repeat(totals / lengths, lengths)


def published_map(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """The same for ranges over a grid, along the Hilbert curve, a quarter of ε for the runs. The totals are those of a
    hierarchy over the runs with budgets for ranges, this library's in the place of the program's.
    """
    order, ratio = hilbert_order(counts.shape), 0.25
    x = counts.ravel()[order]
    tree = best_tree(Buckets(published_runs(x, epsilon, ratio, rng), len(x)))
    levels = zip(tree.measure(x), tree.units, strict=True)
    rest = epsilon * (1 - ratio) / UNITS
    noisy = [
        exact + np.where(units > 0, rng.laplace(0, 1, len(units)) / (np.maximum(units, 1) * rest), 0.0)
        for exact, units in levels
    ]
    found = np.empty(len(x))
    found[order] = tree.spread(noisy)
    return found.reshape(counts.shape)


def cut(cells: np.ndarray, m: int) -> np.ndarray:
    """Where m parts of some cells begin, and the end."""
    return np.unique(np.linspace(0, len(cells), min(m, len(cells)) + 1).round().astype(int))


def tiled(counts: np.ndarray, m: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Counts of m × m parts with noise, spread evenly."""
    x, y = cut(counts, m), cut(counts.T, m)
    found = np.add.reduceat(np.add.reduceat(counts, x[:-1], 0), y[:-1], 1) + rng.laplace(
        0, scale, (len(x) - 1, len(y) - 1)
    )
    return np.repeat(np.repeat(found / np.outer(np.diff(x), np.diff(y)), np.diff(x), 0), np.diff(y), 1)


def ugrid(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """One grid of √(N·ε/10) parts a side."""
    return tiled(counts, max(1, math.ceil(math.sqrt(counts.sum() * epsilon / 10))), 1 / epsilon, rng)


def agrid(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Two levels, each with half of ε, and their weighted mean."""
    half, found = epsilon / 2, np.empty(counts.shape)
    first = max(10, math.ceil(math.sqrt(counts.sum() * epsilon / 10) / 4))
    x, y = cut(counts, first), cut(counts.T, first)
    for a, b in pairwise(x):
        for c, d in pairwise(y):
            part = counts[a:b, c:d]
            above = part.sum() + rng.laplace(0, 1 / half)
            m = max(1, math.ceil(math.sqrt(max(above, 0) * half / 5)))
            below = tiled(part, m, 1 / half, rng)
            parts = (len(cut(part, m)) - 1) * (len(cut(part.T, m)) - 1)
            missing = (above - below.sum()) * parts / (parts + 1)
            found[a:b, c:d] = below + missing / part.size
    return found


def privtree(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """A quadtree whose nodes split while a noisy, decaying count is above zero; then noisy counts of the leaves."""
    half, found = epsilon / 2, np.empty(counts.shape)
    scale = (2 * 4 - 1) / (4 - 1) / half
    decay = scale * math.log(4)
    waiting = [(0, 0, len(counts), 0)]
    while waiting:
        x, y, side, depth = waiting.pop()
        inside = counts[x : x + side, y : y + side].sum()
        if side > 1 and max(inside - depth * decay, -decay) + rng.laplace(0, scale) > 0:
            waiting += [(x + i, y + j, side // 2, depth + 1) for i in (0, side // 2) for j in (0, side // 2)]
        else:
            found[x : x + side, y : y + side] = (inside + rng.laplace(0, 1 / half)) / side**2
    return found


def htf(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Boxes cut in two, along x and y in turn, where both halves are most alike inside, as far as noisy deviations at
    seven places tell; noisy counts on the way down with budgets that grow by the cube root of two, and an end where one
    of them is small, which gets what is left.
    """
    height = max(int(math.log2(counts.size)), int(math.log2(max(2.0, counts.sum() * epsilon / 10))))
    splitting, counting = epsilon * HTF_SPLITS / height, epsilon * (1 - HTF_SPLITS)
    budgets = 2 ** (np.arange(height + 1) / 3)
    budgets *= counting / budgets.sum()
    found = np.empty(counts.shape)
    waiting = [(0, counts.shape[0], 0, counts.shape[1], 0)]
    while waiting:
        a, b, c, d, depth = waiting.pop()
        part, left = counts[a:b, c:d], budgets[depth:].sum()
        noisy = part.sum() + rng.laplace(0, 1 / budgets[depth])
        if depth == height or part.size == 1 or noisy <= HTF_SMALL:
            # The last number on a way has all of the budget that is left.
            rest = left if depth == height or part.size == 1 else left - budgets[depth]
            found[a:b, c:d] = (part.sum() + rng.laplace(0, 1 / rest)) / part.size
            continue
        axis = depth % 2 if min(part.shape) > 1 else int(np.argmax(part.shape))
        at = _alike(part if axis == 0 else part.T, splitting, rng)
        if axis == 0:
            waiting += [(a, a + at, c, d, depth + 1), (a + at, b, c, d, depth + 1)]
        else:
            waiting += [(a, b, c, c + at, depth + 1), (a, b, c + at, d, depth + 1)]
    return found


HTF_SPLITS, HTF_STEPS, HTF_SMALL = 0.1, 3, 32


def _alike(part: np.ndarray, epsilon: float, rng: np.random.Generator) -> int:
    """Where to cut the rows in two: three steps of a search, two noisy deviations each and one before."""
    scale = 2 * (2 * HTF_STEPS + 1) / epsilon

    def cost(at: int) -> float:
        halves = (part[:at], part[at:])
        return sum(float(np.abs(half - half.mean()).sum()) for half in halves) + rng.laplace(0, scale)

    low, high = 1, len(part) - 1
    middle = (low + high) // 2
    if low == high:
        return middle
    best = cost(middle)
    for _ in range(HTF_STEPS):
        one, two = (low + middle) // 2, (middle + high) // 2
        lower, upper = cost(one), cost(two)
        if best <= min(lower, upper):
            low, high = one, two
        elif lower <= upper:
            high, middle, best = middle, one, lower
        else:
            low, middle, best = middle, two, upper
    return middle
