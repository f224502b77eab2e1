"""Estimates without negative numbers that leave ranges alone: from the whole downwards, what is known of a part is
shared out among its halves.

Setting negative cells to zero, or taking the nearest non-negative map, lifts every empty cell a little, and a range of
a million of them by a lot. Here the cells are halved along every axis, over and over, and the number of a block goes to
its children as the nearest non-negative numbers with that sum: what is empty is taken out block by block, where sums
over many cells still know it, and noise is never added up. Labels, which have no halves, are children of the whole, or
of their coarser names where these are known.

All is done in whole units, of 2⁻⁴⁴ of the total or of one record, so that sums are kept exactly. What comes of it is
post-processing of a release: it costs nothing. Hay, Rastogi, Miklau, Suciu (PVLDB 2010) and the top-down step of the
2020 census of the United States go from parents to children in this way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain import Domain

# Units in the largest sum: so fine that no rounding is seen, and so coarse that double precision holds all sums.
UNITS = 44

# For some axes, the cells that every group takes together: a row a group, filled up with -1.
Step = dict[int, Integers]


def non_negative(
    counts: Floats, domain: Domain, totals: Integers | None, axes: tuple[int, ...] = (), *, integers: bool = False
) -> Floats:
    """Counts of which none is negative, that sum to the totals, exact ones of every cell of some axes, where they are
    known; else to what was estimated for the whole, or to zero.
    """
    size = max(float(np.abs(counts).sum()), 1.0 if totals is None else float(totals.sum()), 1.0)
    unit = 1.0 if integers else 2.0 ** (math.ceil(math.log2(size)) - UNITS)
    taken = list(_steps(domain, axes))
    sums = [counts / unit]
    for step in taken:
        sums.append(_folded(sums[-1], step, 0.0).sum(axis=-1))
    whole = np.rint(np.maximum(sums[-1], 0.0))
    value = whole if totals is None else (totals / unit).reshape(whole.shape)
    for step, children in zip(taken[::-1], sums[-2::-1], strict=True):
        folded = _folded(children, step, -np.inf)
        shared = shared_out(folded.reshape(-1, folded.shape[-1]), value.ravel())
        value = _unfolded(shared.reshape(folded.shape), step, children.shape)
    return value * unit


def shared_out(children: Floats, parents: Floats) -> Floats:
    """For every row the nearest whole numbers, none of them negative, that sum to the whole number of the parent; a
    child of -inf is not there.

    Nearest by least squares before they are rounded: all that stay above zero are lowered, or lifted, by one amount.
    What rounding down leaves goes to those that lost most.
    """
    width = children.shape[1]
    falling = -np.sort(-children, axis=1)
    lowered = (np.cumsum(falling, axis=1) - parents[:, None]) / np.arange(1, width + 1)
    kept = np.maximum((falling > lowered).sum(axis=1), 1)
    real = np.maximum(children - np.take_along_axis(lowered, kept[:, None] - 1, axis=1), 0.0)
    whole = np.floor(real)
    missing = parents - whole.sum(axis=1)
    given = np.clip(missing, 0, (real > 0).sum(axis=1))
    order = np.argsort(np.where(real > 0, whole - real, 1.0), axis=1, kind="stable")
    np.put_along_axis(whole, order, np.take_along_axis(whole, order, 1) + (np.arange(width) < given[:, None]), 1)
    rows = np.flatnonzero(missing != given)  # by rounding in the sums of very many, a unit or two
    whole[rows, whole[rows].argmax(axis=1)] += (missing - given)[rows]
    return whole


def _steps(domain: Domain, public: tuple[int, ...]) -> Iterator[Step]:
    """From cells to the whole: axes with an order are halved together; names are taken together after that, level by
    level.
    """
    shape = list(domain.shape)
    ordered = [i for i, axis in enumerate(domain.axes) if axis.ordered and i not in public]
    while any(shape[i] > 1 for i in ordered):
        step = {i: _groups(np.arange(shape[i]) // 2) for i in ordered if shape[i] > 1}
        yield step
        for i, groups in step.items():
            shape[i] = len(groups)
    named = [i for i in range(domain.ndim) if i not in ordered and i not in public and shape[i] > 1]
    for i in sorted(named, key=lambda i: -shape[i]):
        for groups in _nested([level.of for level in domain.axes[i].coarser[::-1]], shape[i]):
            yield {i: groups}


def _nested(levels: Sequence[Integers], cells: int) -> Iterator[Integers]:
    """The groups of every level in the cells, or groups, of the level below, and at last all in one."""
    below = np.arange(cells)
    for level in [*levels, np.zeros(cells, dtype=np.int64)]:
        first = np.unique(below, return_index=True)[1]
        numbers = np.unique(level, return_inverse=True)[1]
        yield _groups(numbers[first])
        below = numbers


def _groups(of: Integers) -> Integers:
    """The members of every group, a row each, from the group of every member."""
    order = np.argsort(of, kind="stable")
    sizes = np.bincount(of)
    table = np.full((len(sizes), int(sizes.max())), -1, dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    table[of[order], np.arange(len(of)) - starts[of[order]]] = order
    return table


def _folded(array: Floats, step: Step, nobody: float) -> Floats:
    """Groups in the place of their members, which stand in a last axis; with a number for those that are not there."""
    shape: list[int] = []
    for axis, n in enumerate(array.shape):
        if axis in step:
            groups = step[axis]
            array = np.take(array, groups, axis=len(shape))
            if (groups < 0).any():
                array[(slice(None),) * len(shape) + (groups < 0,)] = nobody
            shape += groups.shape
        else:
            shape.append(n)
    member = [axis + i + 1 for i, axis in enumerate(sorted(step))]
    group = [axis for axis in range(len(shape)) if axis not in member]
    found = array.transpose(group + member)
    return np.ascontiguousarray(found).reshape([shape[axis] for axis in group] + [-1])


def _unfolded(folded: Floats, step: Step, shape: tuple[int, ...]) -> Floats:
    """Members again in the place of their groups."""
    axes = sorted(step)
    widths = [step[axis].shape[1] for axis in axes]
    array = folded.reshape(*folded.shape[:-1], *widths)
    for i, axis in enumerate(axes):
        array = np.moveaxis(array, len(shape) + i, axis + i + 1)
    array = array.reshape([len(step[i]) * step[i].shape[1] if i in step else n for i, n in enumerate(shape)])
    for axis in axes:
        members = step[axis].ravel()
        at = np.empty(shape[axis], dtype=np.int64)
        at[members[members >= 0]] = np.flatnonzero(members >= 0)
        if len(at) < len(members) or (np.diff(at) != 1).any():
            array = np.take(array, at, axis=axis)
    return array
