"""A hierarchy over buckets of cells, with its budget shared out for range queries over the cells.

Nothing here sees private data: the buckets are released, and the tree, the shares and the expected error are computed
from them. Ends of ranges are equally likely at every cell, so a long bucket meets more of them than a short one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.mechanism.partitions.partition import Buckets

MOST_LEVELS = 4  # of groups above the buckets, the one of all included
UNITS = 32  # shares are whole multiples of 1/32 of the budget: few different rates, each with a cached table


@dataclass(frozen=True, eq=False)
class BucketTree:
    """Levels of groups of buckets, from one group of all, never measured, down to the single buckets.

    `firsts[level]` holds the first child of every group, and `weights` the units of budget of each level below the
    first. A group with a single child hands its units to that child instead of measuring the same cells twice, so the
    units on every way from the top to a bucket add up to `UNITS` exactly.
    """

    buckets: Buckets
    firsts: tuple[Integers, ...]
    weights: tuple[int, ...]

    @cached_property
    def sizes(self) -> list[Integers]:
        """The number of children of every group, level by level."""
        below = [*(len(first) for first in self.firsts[1:]), len(self.buckets)]
        return [np.diff(first, append=count) for first, count in zip(self.firsts, below, strict=True)]

    @cached_property
    def units(self) -> list[Integers]:
        """The budget of every node in units, level by level; zero where nothing is measured."""
        own = np.zeros(1, dtype=np.int64)
        levels = []
        for size, weight in zip(self.sizes, self.weights, strict=True):
            handed = np.where(size == 1, own, 0)
            levels.append(own - handed)
            own = weight + np.repeat(handed, size)
        return [*levels, own]

    @cached_property
    def variances(self) -> tuple[list[Floats], list[Floats]]:
        """(of a node's total from itself and what lies below, of the sum of its children), for noise of variance
        1/units².
        """
        best = [1.0 / self.units[-1] ** 2]
        sums: list[Floats] = []
        for first, units in zip(self.firsts[::-1], self.units[-2::-1], strict=True):
            sums.append(np.add.reduceat(best[-1], first))
            best.append(1.0 / (units**2 + 1.0 / sums[-1]))
        return best[::-1], sums[::-1]

    def measure(self, x: Integers) -> list[Integers]:
        """Totals of all nodes, level by level."""
        levels = [self.buckets.totals(x)]
        for first in self.firsts[::-1]:
            levels.append(np.add.reduceat(levels[-1], first))
        # What is not measured gets no noise, and so must not be looked at either.
        return [np.where(units > 0, level, 0) for level, units in zip(levels[::-1], self.units, strict=True)]

    def estimate(self, measured: Sequence[NDArray[np.number]]) -> Floats:
        """Bucket totals by least squares: upwards every node combines itself and its children, downwards it corrects
        them.
        """
        variance, below = self.variances
        best = [np.asarray(measured[-1], dtype=np.float64)]
        sums: list[Floats] = []
        for level in range(len(self.firsts) - 1, -1, -1):
            sums.append(np.add.reduceat(best[-1], self.firsts[level]))
            own = variance[level] * self.units[level] ** 2
            best.append(sums[-1] + own * (measured[level] - sums[-1]))
        best, sums = best[::-1], sums[::-1]
        value = best[0]
        for level, size in enumerate(self.sizes):
            value = best[level + 1] + variance[level + 1] * np.repeat((value - sums[level]) / below[level], size)
        return value

    def spread(self, measured: Sequence[NDArray[np.number]]) -> Floats:
        """The line of entries as estimated: every run's total shared out equally."""
        return self.buckets.spread(self.estimate(measured))

    def coefficients(self, queries: Floats) -> list[Floats]:
        """How much every node's number counts in sums over buckets, one row each: the transpose of `estimate`."""
        variance, below = self.variances
        value, best, sums = queries, [], []
        for level in range(len(self.firsts) - 1, -1, -1):
            best.append(value)
            value = np.add.reduceat(variance[level + 1] * value, self.firsts[level], axis=-1) / below[level]
            sums.append(-value)
        best, sums = [value, *best[::-1]], sums[::-1]
        measured = []
        for level, size in enumerate(self.sizes):
            own = variance[level] * self.units[level] ** 2
            measured.append(own * best[level])
            best[level + 1] = best[level + 1] + np.repeat(sums[level] + (1 - own) * best[level], size, axis=-1)
        return [*measured, best[-1]]

    def integers(self, measured: Sequence[Integers]) -> Integers:
        """The tree and its measured totals as one row of integers, from which `read_tree` has them again."""
        head = [len(self.firsts), len(self.buckets), *map(len, self.firsts), *self.weights]
        return np.concatenate([np.array(head, dtype=np.int64), self.buckets.starts, *self.firsts, *measured])

    @cached_property
    def mean_variance(self) -> float:
        """The mean variance of a range of cells over all of them, for noise of variance 1/units².

        What the children of a node learn from each other is independent of what is learned higher up. An end of a
        range meets one node on every level and covers a share g of it; E[g] and E[g²] for an end that falls into the
        node are carried upwards. Two ends are independent, so what they have in common is the square of a mean.
        """
        length = self.buckets.lengths.astype(np.float64)
        chance = length / self.buckets.size
        mean, square = (length - 1) / (2 * length), (length - 1) * (2 * length - 1) / (6 * length**2)
        variance, sums = self.variances
        result = 0.0
        for level in range(len(self.firsts) - 1, -1, -1):
            first, size, v, total = self.firsts[level], self.sizes[level], variance[level + 1], sums[level]
            above = np.add.reduceat(chance, first)
            here = chance / np.repeat(above, size)
            before = _before(v, first, size)
            later = 1.0 - _before(here, first, size) - here
            parent_mean = np.add.reduceat(here * (before + v * mean), first) / total
            parent_square = (
                np.add.reduceat(here * (before**2 + 2 * before * v * mean + v**2 * square), first) / total**2
            )
            alone = np.add.reduceat(here * (before + v * square), first) - total * parent_square
            common = np.add.reduceat(v * (later + here * mean) ** 2, first) - total * parent_mean**2
            result += 2.0 * float(above @ (alone - above * common))
            chance, mean, square = above, parent_mean, parent_square
        return result + 2.0 * float(variance[0][0] * (square[0] - mean[0] ** 2))


def read_tree(integers: Integers, size: int) -> tuple[BucketTree, list[Integers]]:
    """(the tree over so many cells, its measured totals) from `BucketTree.integers`; they are not trusted."""
    row = np.asarray(integers, dtype=np.int64)
    damaged = InvalidInput("measured does not describe a tree over runs of cells.")
    if row.ndim != 1 or len(row) < 2 or not 1 <= row[0] <= MOST_LEVELS or not 1 <= row[1] <= size:
        raise damaged
    levels, count = int(row[0]), int(row[1])
    lengths, weights = row[2 : 2 + levels].tolist(), tuple(row[2 + levels : 2 + 2 * levels].tolist())
    if len(weights) < levels or min(lengths) < 1 or max(lengths) > count or min(weights) < 0 or sum(weights) != UNITS:
        raise damaged
    wanted = [count, *lengths, *lengths, count]
    if lengths[0] != 1 or weights[-1] < 1 or len(row) != 2 + 2 * levels + sum(wanted):
        raise damaged
    starts, *rest = np.split(row[2 + 2 * levels :], np.cumsum(wanted)[:-1])
    firsts = tuple(rest[:levels])
    for first, below in zip(firsts, [*lengths[1:], count], strict=True):
        if first[0] != 0 or (np.diff(first) < 1).any() or first[-1] >= below:
            raise damaged
    return BucketTree(Buckets(starts, size), firsts, weights), list(rest[levels:])


def best_tree(buckets: Buckets) -> BucketTree:
    """The tree and the shares with the least mean variance among a few shapes."""
    best = min(_candidates(buckets), key=_error)
    step = UNITS // 4
    while step and len(best.weights) > 1:
        moved = min(_neighbours(best, step), key=_error, default=best)
        if moved.mean_variance < best.mean_variance:
            best = moved
        else:
            step //= 2
    return best


def flat_tree(buckets: Buckets) -> BucketTree:
    """All of the budget on the single buckets: best where single entries are asked for."""
    return next(_candidates(buckets))


def _error(tree: BucketTree) -> float:
    return tree.mean_variance


def _candidates(buckets: Buckets) -> Iterator[BucketTree]:
    """Zero to three levels above the buckets, in steps of equal ratio: groups of equally many cells, or buckets."""
    n, count = buckets.size, len(buckets)
    middle = buckets.starts + (buckets.lengths - 1) // 2
    index = np.arange(count)
    for levels in range(min(4, count)):
        blocks = [2 ** round(math.log2(n) * (levels - i) / (levels + 1)) for i in range(levels)]
        for place in (middle, index * n // count) if levels else (middle,):
            labels = [np.zeros(count, dtype=np.int64), *(place // block for block in blocks)]
            heads = [np.flatnonzero(np.diff(label, prepend=-1)) for label in labels] + [index]
            firsts = tuple(np.searchsorted(lower, upper) for upper, lower in pairwise(heads))
            equal = [UNITS // (levels + 1)] * (levels + 1)
            equal[0] += UNITS - sum(equal)
            yield BucketTree(buckets, firsts, tuple(equal))


def _neighbours(tree: BucketTree, step: int) -> Iterator[BucketTree]:
    """The same tree with `step` units moved from one level to another."""
    for source, weight in enumerate(tree.weights):
        for target in range(len(tree.weights)):
            if source != target and weight > step:
                weights = list(tree.weights)
                weights[source] -= step
                weights[target] += step
                yield BucketTree(tree.buckets, tree.firsts, tuple(weights))


def _before(values: Floats, first: Integers, size: Integers) -> Floats:
    """For every node the sum of the values of its siblings to the left."""
    left = np.cumsum(values) - values
    return left - np.repeat(left[first], size)
