"""How many moves of a stencil a displacement takes, without a graph."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import TooLarge
from sfumato.linear import distinct_rows

if TYPE_CHECKING:
    from sfumato.policies.moves import Stencil

# Breadth-first search over displacements is for boxes this large.
LARGEST_BOX = 4_000_000
# Pairs of a cell and a source that are compared; beyond, some sources stand for all.
LARGEST_COMPARED = 50_000_000


def steps(stencil: Stencil, displacement: NDArray[np.int64]) -> float:
    """How many moves a displacement takes. The stencil is downward closed, so signs and borders do not matter."""
    box = np.abs(np.asarray(displacement, dtype=np.int64))
    reach = stencil.reach
    if (box[reach == 0] > 0).any():
        return math.inf
    axes = np.flatnonzero(box)
    if len(axes) == 0:
        return 0
    if len(axes) == 1:
        return float(-(-box[axes[0]] // reach[axes[0]]))
    if len(axes) == 2:
        return float(_steps_plane(_staircase(stencil, int(axes[0]), int(axes[1])), *(int(b) for b in box[axes])))
    return float(_steps_box(stencil, tuple(int(b) for b in box))[tuple(box)])


def across(stencil: Stencil, shape: tuple[int, ...]) -> float:
    """How many moves lead from one corner to the opposite one; an upper bound where the box is too large to search."""
    corner = np.array(shape) - 1
    try:
        return steps(stencil, corner)
    except TooLarge:
        return float(_one_by_one(stencil, corner))


def _one_by_one(stencil: Stencil, displacement: NDArray[np.int64]) -> Any:
    """How many moves a displacement takes along one axis after the other: no fewer than it takes."""
    reach = stencil.reach
    gaps = -(-np.abs(displacement) // np.maximum(reach, 1))
    return np.where((reach == 0) & (gaps > 0), math.inf, gaps).sum(axis=-1)


def _staircase(stencil: Stencil, first: int, second: int) -> NDArray[np.int64]:
    """The longest step along the second axis for every step along the first, with none along the others."""
    size = stencil.lengths
    others = [i for i in range(size.shape[1]) if i not in (first, second)]
    flat = size[(size[:, others] == 0).all(axis=1)]
    best = np.zeros(int(stencil.reach[first]) + 1, dtype=np.int64)
    np.maximum.at(best, flat[:, first], flat[:, second])
    return best


def _steps_plane(staircase: NDArray[np.int64], across: int, along: int) -> int:
    """The fewest steps: after k of them, `far[a]` is the farthest one can be along the second axis at a along the
    first.
    """
    far, count = np.full(across + 1, -1, dtype=np.int64), 0
    far[0] = 0
    while far[across] < along:
        best = far + staircase[0]
        best[far < 0] = -1
        for a in range(1, min(len(staircase) - 1, across) + 1):
            moved = far[:-a] + staircase[a]
            moved[far[:-a] < 0] = -1
            np.maximum(best[a:], moved, out=best[a:])
        far, count = best, count + 1
    return count


def _steps_box(stencil: Stencil, box: tuple[int, ...]) -> NDArray[np.int64]:
    """Steps to every displacement of a box, by breadth-first search with the longest offsets alone."""
    shape = tuple(b + 1 for b in box)
    if math.prod(shape) > LARGEST_BOX:
        raise TooLarge(f"distances in a box of {math.prod(shape):,} cells are not computed (at most {LARGEST_BOX:,}).")
    size = distinct_rows(np.minimum(stencil.lengths, box))
    longest = [o for o in size if not ((size >= o).all(axis=1) & (size > o).any(axis=1)).any()]
    reached = np.zeros(shape, dtype=bool)
    reached[(0,) * len(shape)] = True
    table = np.where(reached, 0, -1)
    for count in range(1, sum(box) + 1):
        wider = reached.copy()
        for offset in longest:
            wider[tuple(slice(int(o), None) for o in offset)] |= reached[
                tuple(slice(0, n - int(o)) for o, n in zip(offset, shape, strict=True))
            ]
        for axis in range(len(shape)):  # downward closed: whatever is nearer is reached as well
            wider = np.flip(np.logical_or.accumulate(np.flip(wider, axis), axis), axis)
        table[wider & ~reached] = count
        reached = wider
        if reached.all():
            break
    return table


def to_sources(
    stencil: Stencil, mask: NDArray[np.bool_], cells: NDArray[np.int64], *, boundary: bool
) -> NDArray[np.float64]:
    """How many moves lead from each of the cells to the nearest source; an upper bound where both are very many."""
    shape = mask.shape
    index = np.stack(np.unravel_index(cells, shape), axis=-1)
    if boundary:
        # The nearest source lies straight along one axis: past it, a face of the box is no nearer.
        inner = [_layers(mask, axis) for axis in range(len(shape))]
        gap = np.stack(
            [np.maximum(np.minimum(index[:, i], n - 1 - index[:, i]) - inner[i] + 1, 0) for i, n in enumerate(shape)],
            axis=-1,
        )
        moves: NDArray[np.float64] = (-(-gap // np.maximum(stencil.reach, 1))).min(axis=1).astype(np.float64)
        return moves
    sources = np.stack(np.nonzero(mask), axis=-1)
    if len(cells) * len(sources) > LARGEST_COMPARED:  # fewer sources can only lengthen the way
        sources = sources[:: -(-len(cells) * len(sources) // LARGEST_COMPARED)]
    nearest = np.full(len(cells), math.inf)
    try:
        table = _steps_table(stencil, shape)
    except TooLarge:
        for source in sources:
            nearest = np.minimum(nearest, _one_by_one(stencil, index - source))
        return nearest
    for source in sources:
        nearest = np.minimum(nearest, table[tuple(np.abs(index - source).T)])
    return nearest


def _layers(mask: NDArray[np.bool_], axis: int) -> int:
    """How many cells deep the boundary's sources reach along one axis (read off the middle of the mask)."""
    line = mask[tuple(slice(None) if i == axis else n // 2 for i, n in enumerate(mask.shape))]
    return int(len(line) if line.all() else np.argmin(line))


def _steps_table(stencil: Stencil, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Steps to every displacement within a grid of this shape."""
    if len(shape) == 1:
        return -(-np.arange(shape[0]) // max(int(stencil.reach[0]), 1))
    return _steps_box(stencil, tuple(n - 1 for n in shape))
