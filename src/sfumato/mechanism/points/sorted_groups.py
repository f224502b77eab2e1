"""Sorted points in groups: how far they can move, sums from counts, and a distribution function from noisy sums.

A vector of counts in the order of a curve and the sorted list of its records' positions are the same thing read in
two ways. Neither the list nor a sort is needed: a group's sum is a difference of two prefix sums.
"""

from __future__ import annotations

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.policies import Policy

SPREAD = 4.0  # deviations of its mean within which the records of a tied block are taken to lie
LARGEST_SEARCH = 1 << 27  # pairs of cells compared for an exact sensitivity on a grid; beyond, its bound is used


def largest_step(policy: Policy, order: Integers | None) -> int:
    """The largest distance along the curve between the ends of an edge, from what is built.

    With too many pairs of cells to compare, the whole curve: never less than the largest distance.
    """
    if not policy.moves_exist:
        return 0
    size, moves = policy.domain.size, policy.moves
    if moves.join_all:
        return size - 1
    stencil = moves.stencil
    if stencil is not None and order is None:
        return int(stencil.reach[0])
    rank = np.arange(size, dtype=np.int64)
    if order is not None:
        rank[order] = np.arange(size, dtype=np.int64)
    if stencil is None:
        pairs = moves.edges(policy.domain.shape)
        return int(np.abs(rank[pairs[:, 0]] - rank[pairs[:, 1]]).max(initial=0))
    if len(stencil.offsets) * size > LARGEST_SEARCH:
        return size - 1
    ranks, largest = rank.reshape(policy.domain.shape), 0
    for offset in stencil.offsets:
        here = tuple(slice(max(0, -o), max(0, n - max(0, o))) for o, n in zip(offset, ranks.shape, strict=True))
        there = tuple(slice(max(0, o), max(0, n - max(0, -o))) for o, n in zip(offset, ranks.shape, strict=True))
        largest = max(largest, int(np.abs(ranks[here] - ranks[there]).max(initial=0)))
    return largest


def group_sizes(records: int, group: int) -> Integers:
    """As few groups of at most so many records as hold all; sizes differ by one at most, the larger ones first."""
    count = -(-records // group)
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    size, larger = divmod(records, count)
    return size + (np.arange(count) < larger)


def group_sums(counts: Integers, sizes: Integers, *, missing: int = 0, pad_low: bool = False) -> Integers:
    """The sum of the positions of every group, for counts in the order of the curve. Sees private data.

    Where `sizes` hold `missing` records more than there are, the list is padded with its upper end, the last
    position; with fewer it is cut there. `pad_low` does both at the lower end instead.
    """
    position = np.arange(len(counts), dtype=np.int64)
    below = np.concatenate([[0], np.cumsum(counts)])
    # Prefix sums may wrap around in 64 bits: their differences, which are sums over one group, do not.
    sums = np.concatenate([[0], np.cumsum(counts * position)])
    bounds = np.concatenate([[0], np.cumsum(sizes)]) - (missing if pad_low else 0)
    rank = np.clip(bounds, 0, below[-1])
    cell = np.searchsorted(below[1:], rank, side="left")
    total = sums[cell] + (rank - below[cell]) * cell
    if not pad_low:
        total = total + (bounds - rank) * position[-1]
    return np.diff(total)


def increasing(sums: Integers, sizes: Integers, top: int) -> Floats:
    """The nearest non-decreasing group means inside [0, top]: isotonic regression, post-processing of noisy sums.

    All sums have the same noise, so a mean has the weight of its size squared.
    """
    if len(sizes) == 0:
        return np.zeros(0)
    from scipy.optimize import isotonic_regression  # slow to import, and only this needs it

    size = sizes.astype(np.float64)
    return np.clip(isotonic_regression(sums / size, weights=size**2).x, 0.0, float(top))


def distribution(means: Floats, sizes: Integers, top: int, noise: float) -> tuple[Floats, Floats]:
    """(positions, records below them): the knots of a distribution function, linear between them.

    Groups that are tied after isotonic regression are one block at one place, since a tie is where the noise was larger
    than the distance. Between two blocks lies half of each, evenly; but a block gives no more than all that its
    neighbour holds, and the rest of it stays where it is. At the ends the slope goes on. A single block is spread as
    widely around its place as the domain allows. Cell i reaches from i - 1/2 to i + 1/2. (On real data this was the
    best of point masses, even spreading between the middles, and straight lines with and without merged ties.)

    Equal means of sorted groups are equal records, but for the noise: so a block of several groups, and a group of one
    record, reach no further than `SPREAD` deviations of their mean and half a cell. `noise` is the deviation of a sum.
    What is truly heaped up keeps its place, and without noise the data come back as they were.
    """
    if len(means) == 0:
        return np.array([-0.5, top + 0.5]), np.zeros(2)
    first = np.flatnonzero(np.diff(means, prepend=-1.0) > 0)
    place, weight = means[first], np.add.reduceat(sizes, first).astype(np.float64)
    groups = np.diff(first, append=len(means))
    known = (groups > 1) | (sizes[first] == 1)
    reach = np.where(known, SPREAD * noise / sizes[first] + 0.5, np.inf)
    above = np.cumsum(weight)
    if len(place) == 1:
        far = min(place[0] + 0.5, top + 0.5 - place[0], reach[0])
        return np.array([place[0] - far, place[0] + far]), np.array([0.0, above[-1]])
    lower, upper, gap = weight[:-1], weight[1:], np.diff(place)
    to_next = np.minimum(lower / 2, upper)
    to_last = np.minimum(upper / 2, lower)
    starts = above - weight + np.concatenate([to_next[:1], to_last])
    ends = above - np.concatenate([to_next, to_last[-1:]])
    meet = place[:-1] + gap * to_next / (to_next + to_last)  # where the halves of two blocks meet if spread evenly
    until = np.minimum(place[:-1] + reach[:-1], meet)
    since = np.maximum(place[1:] - reach[1:], meet)
    low = max(-0.5, place[0] - min(gap[0] / 2, reach[0]))
    high = min(top + 0.5, place[-1] + min(gap[-1] / 2, reach[-1]))
    # Every block: where it begins to stay, where it ceases to; then where its upper half ends, and the next one begins.
    inner = np.stack([place[:-1], place[:-1], until, since], axis=-1).ravel()
    level = np.stack([starts[:-1], ends[:-1], above[:-1], above[:-1]], axis=-1).ravel()
    positions = np.concatenate([[low], inner, [place[-1], place[-1], high]])
    records = np.concatenate([[0.0], level, [starts[-1], ends[-1], above[-1]]])
    return positions, records


def cell_counts(positions: Floats, records: Floats, cells: int) -> Floats:
    """Counts of the cells in the order of the curve: never negative, and with the exact sum in any order of addition.

    The distribution function is rounded to a binary fraction so fine that no sum needs more than 53 bits; its
    differences are then exact.
    """
    total = records[-1]
    if total == 0:
        return np.zeros(cells)
    unit = 2.0 ** min(np.ceil(np.log2(total)) - 52, 0)
    below = np.interp(np.arange(cells + 1) - 0.5, positions, records)
    below[0], below[-1] = 0.0, total
    return np.diff(np.rint(below / unit)) * unit
