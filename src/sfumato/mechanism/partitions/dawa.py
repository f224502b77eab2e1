"""DAWA: noise adapted to the data and to range queries.

**Promise.** `measure` is ε-private: for a change of one entry of x by one (`neighbours="add/remove"`, or `"edge"` where
x is a transformed database, such as the prefix sums under a line policy: a move along one edge of a *tree* changes one
entry by one), or for one record that moves between any two entries (`"replace"`).

**How.** A share of ε buys a partition into runs of nearly equal counts (`partition`, with its proof). The rest buys the
totals of a hierarchy over the runs. A record lies in one node of every level, so that discrete Laplace noise with
rates that add up to the rest on every way from the top to a run is as private as one count with the rest. Tree and
rates are computed from the released runs alone. Least squares makes the totals consistent, and each is shared out
equally among the cells of its run. A replaced record leaves one entry and enters another: two changes by one, each at
half of ε.

**What it does not give.** The error depends on the data: cells that were put into one run are pulled towards their
mean, no interval is promised, and nothing is known before the data is seen except that about the noise. Every integer
array has an output, and no refusal depends on the values.

Li, Hay, Miklau: A data- and workload-aware algorithm for range queries under differential privacy (VLDB 2014). Here
with exact integer noise, deviations from the median (integers, of sensitivity one instead of nearly two), aligned
runs, and shares of the budget that are optimised for all ranges.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.exact import Number, fraction, positive_fraction
from sfumato.mechanism.partitions.bucket_tree import UNITS, BucketTree, best_tree, flat_tree
from sfumato.mechanism.partitions.partition import PRICE, Buckets, bounded, cost_noise, longest_run, partition
from sfumato.mechanism.partitions.partition import require_room as partition_room
from sfumato.noise import DiscreteLaplace, Source
from sfumato.noise.expansion import bits
from sfumato.noise.source import require

# How many entries change by one between neighbours.
NEIGHBOURS = {"add/remove": 1, "edge": 1, "replace": 2}
# The penalty of a run in units of 1/ε₁: with less, noise cuts uniform data into many runs; with more, runs hide change.
GUARDS = {"ranges": Fraction(4), "cells": Fraction(2), "entries": Fraction(1, 4)}
RATIO = Fraction(1, 4)  # of the ratios and guards tried on the DPBench data the best pair for ranges


def measure(
    x: ArrayLike,
    *,
    epsilon: Number,
    source: Source,
    ratio: Number = RATIO,
    neighbours: str = "add/remove",
    queries: str = "ranges",
) -> tuple[BucketTree, list[Integers]]:
    """All that either stage tells: a tree over runs, and the noisy totals of its nodes, whose `tree.spread` are the
    estimated counts. ε-private; `ratio` is the share of ε for the partition. Sees private data.

    `queries` says what will be asked: sums over `"ranges"` of entries, single `"cells"`, or differences of two
    `"entries"`, which is what a range of counts becomes under the transformation of a line policy.
    """
    if queries not in GUARDS:
        raise InvalidInput(f"queries={queries!r} must be one of {', '.join(map(repr, GUARDS))}.")
    values = _integers(x)
    first, second = budgets(epsilon, ratio, neighbours)
    require(source)
    buckets = partition(values, epsilon=first, penalty=penalty(first, second, queries), source=source)
    return totals(values, buckets, epsilon=second, source=source, queries=queries)


def budgets(epsilon: Number, ratio: Number, neighbours: str) -> tuple[Fraction, Fraction]:
    """(ε₁, ε₂) of the two stages for a change of one entry by one: together ε, or half of it under `"replace"`."""
    share = fraction(ratio, "ratio")
    if not 0 < share < 1:
        raise InvalidInput(
            f"ratio={ratio!r} must lie between 0 and 1, both excluded: the share of epsilon for the partition. "
            "Nothing was drawn or recorded."
        )
    if neighbours not in NEIGHBOURS:
        raise InvalidInput(
            f"neighbours={neighbours!r} must be one of {', '.join(map(repr, NEIGHBOURS))}. "
            "Nothing was drawn or recorded."
        )
    whole = positive_fraction(epsilon, "epsilon") / NEIGHBOURS[neighbours]
    return whole * share, whole * (1 - share)


def require_room(length: int, epsilon: Fraction, neighbours: str, queries: str) -> None:
    """Refuse, for lines of so many entries, what `measure` would refuse, whatever the entries: before it is paid for.

    Where nothing is to be chosen nothing is drawn for the runs. A node may get a single unit of the rest.
    """
    first, second = budgets(epsilon, RATIO, neighbours)
    levels = longest_run(length).bit_length() - 1
    if levels:
        cost_noise(first, levels)
        partition_room(first, penalty(first, second, queries), levels)
    bits(second / UNITS)


def penalty(first: Fraction, second: Fraction, queries: str = "ranges") -> int:
    """What a run costs beside its deviation: a guard against cuts made by noise, and the noise that its total gets."""
    return int(PRICE * (GUARDS[queries] / first + 1 / second))


def estimate(x: Integers, buckets: Buckets, *, epsilon: Fraction, source: Source, queries: str = "ranges") -> Floats:
    """Counts that are equal within buckets, ε-private for a change of one entry by one. Sees private data."""
    tree, measured = totals(x, buckets, epsilon=epsilon, source=source, queries=queries)
    return tree.spread(measured)


def totals(
    x: Integers, buckets: Buckets, *, epsilon: Fraction, source: Source, queries: str = "ranges"
) -> tuple[BucketTree, list[Integers]]:
    """A tree over the buckets, and the noisy totals of its nodes, level by level. Sees private data."""
    tree = groups(buckets, queries)
    levels = zip(tree.measure(bounded(x)), tree.units, strict=True)
    return tree, [exact + _noise(units, epsilon, source) for exact, units in levels]


def groups(buckets: Buckets, queries: str) -> BucketTree:
    """Which groups of runs are measured: a hierarchy where ranges are asked for, else the single runs."""
    return best_tree(buckets) if queries == "ranges" else flat_tree(buckets)


def _noise(units: Integers, epsilon: Fraction, source: Source) -> Integers:
    """Noise of rate ε·units/UNITS for each node. Where there are no units the node is not measured."""
    noise = np.zeros(len(units), dtype=np.int64)
    for share in np.unique(units[units > 0]).tolist():
        chosen = units == share
        noise[chosen] = DiscreteLaplace(epsilon * Fraction(share, UNITS)).sample(int(chosen.sum()), source)
    return noise


def _integers(x: ArrayLike) -> NDArray[np.int64]:
    values = np.asarray(x)
    if values.ndim != 1 or not values.size or values.dtype.kind not in "iu":
        raise InvalidInput(
            f"x with shape {values.shape} and type {values.dtype} must be a line of whole numbers, one at least. "
            "Nothing was drawn or recorded."
        )
    if values.dtype.kind == "u":
        values = np.minimum(values, np.iinfo(np.int64).max)
    return values.astype(np.int64)
