"""Which borders the changes of a policy cross, level by level: what lets groups inside be measured better.

Let the levels of a tree be numbered from the coarsest. A change from one cell to another crosses the coarsest level on
which their groups differ, and changes the counts of both on that level and all finer ones, and no others. The *class*
of a cell is the coarsest level that any change at it crosses; that of a group is the least of its cells'. Give the
groups of level ℓ and class k the weight `s_ℓ / Σ_{j ≥ k} s_j`. Both groups of a change that crosses level k have
classes of at most k on every level, and weights rise with the class: the change costs at most
`2·Σ_{ℓ ≥ k} s_ℓ / Σ_{j ≥ k} s_j = 2`, whatever k. (The sensitivity is computed from the weights that are built; this is
why they are good, not why they are private.)

A cell that is joined to ⊥ crosses everything, and so it does where its own cell may change along another factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.policies import Policy

# Pairs of cells along an axis beyond which nobody looks which borders they cross.
MOST_PAIRS = 20_000_000


def cell_classes(policy: Policy, axis: int, levels: Sequence[Integers]) -> Integers | None:
    """The class of every cell of an axis; None where every change crosses everything, or no list says."""
    shape = policy.domain.shape
    pairs = policy.moves.along(shape, axis, MOST_PAIRS)
    if pairs is None:
        return None
    n = shape[axis]
    classes = np.full(n, len(levels), dtype=np.int64)
    u, v = pairs.T
    crossed = np.full(len(pairs), len(levels), dtype=np.int64)
    for depth in range(len(levels) - 1, -1, -1):
        crossed[levels[depth][u] != levels[depth][v]] = depth
    np.minimum.at(classes, u, crossed)
    np.minimum.at(classes, v, crossed)
    if policy.absent is not None:
        others = tuple(i for i in range(len(shape)) if i != axis)
        classes[policy.absent.any(axis=others)] = 0
    return classes if classes.any() else None


def group_classes(classes: Integers, levels: Sequence[Integers]) -> list[Integers]:
    """The class of every group of every level and of every cell, none finer than its own level."""
    found = []
    for depth, of in enumerate(levels):
        least = np.full(int(of.max()) + 1, depth, dtype=np.int64)
        np.minimum.at(least, of, classes)
        found.append(least)
    return [*found, np.minimum(classes, len(levels))]


def class_weights(shares: Floats, largest: int) -> list[list[int]]:
    """For every level the whole weights of its classes, from shares of the levels; the largest weight is `largest`.

    Among few levels of equal shares the weights are exact.
    """
    after = np.cumsum(shares[::-1])[::-1]
    table = [[float(shares[level] / after[k]) for k in range(level + 1)] for level in range(len(shares))]
    top = max(max(row) for row in table)
    for scale in range(1, largest + 1):  # the smallest one that makes all of them whole
        if all(abs(w / top * scale - round(w / top * scale)) < 1e-9 for row in table for w in row):
            break
    return [[max(1, int(w / top * scale + 1e-9)) for w in row] for row in table]


def level_weights(shares: Floats, largest: int) -> list[list[int]]:
    """One whole weight a level, in proportion to the shares; none above `largest`, equal ones all 1."""
    if shares.min() == shares.max():
        return [[1]] * len(shares)
    whole = [max(1, round(share * largest / shares.max())) for share in shares.tolist()]
    return [[weight // math.gcd(*whole)] for weight in whole]
