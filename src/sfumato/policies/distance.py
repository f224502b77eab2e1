"""Graph distances under a policy, without a graph wherever the structure gives them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import TooLarge
from sfumato.policies.moves import ABSENT, Complete, Explicit, NoMoves, Stencil
from sfumato.policies.wide import large_diameter

if TYPE_CHECKING:
    from sfumato.policies.policy import Policy

# All-pairs search is for graphs this small; breadth-first search over displacements for boxes this large.
SMALL_GRAPH = 2_000
LARGEST_BOX = 4_000_000


def distance(policy: Policy, u: int, v: int) -> float:
    """The length of a shortest path between two vertices."""
    if u == v:
        return 0
    if isinstance(policy.moves, Explicit):
        return float(_search(policy, [u])[0, v if v != ABSENT else policy.domain.size])
    if ABSENT in (u, v):
        return float(_to_absent(policy, np.array([max(u, v)]))[0])
    detour = float(_to_absent(policy, np.array([u, v])).sum())
    return min(_direct(policy, u, v), detour)


def diameter(policy: Policy) -> float:
    """The largest distance between two cells; an upper bound on large domains with ⊥, and on large graphs."""
    size, moves = policy.domain.size, policy.moves
    if size == 1:
        return 0
    if isinstance(moves, Complete):
        return 1
    if isinstance(moves, Explicit) or (
        isinstance(moves, Stencil) and policy.absent is not None and size <= SMALL_GRAPH
    ):
        if not policy.connected:
            return math.inf
        if size > SMALL_GRAPH:
            return large_diameter(_graph(policy), size)
        return float(_search(policy, list(range(size)))[:, :size].max())
    direct = _across(moves, policy.domain.shape) if isinstance(moves, Stencil) else math.inf
    return min(direct, 2 * eccentricity(policy))


def eccentricity(policy: Policy) -> float:
    """The largest distance from a cell to ⊥; an upper bound where there are very many cells and sources."""
    if policy.absent is None:
        return math.inf
    if policy.absent.all():
        return 1
    if isinstance(policy.moves, Explicit):
        return float(_search(policy, [ABSENT])[0, : policy.domain.size].max())
    return float(_to_absent(policy, None).max())


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


def _across(stencil: Stencil, shape: tuple[int, ...]) -> float:
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
    size = np.abs(stencil.offsets)
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
    size = np.unique(np.minimum(np.abs(stencil.offsets), box), axis=0)
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


def _direct(policy: Policy, u: int, v: int) -> float:
    if isinstance(policy.moves, Complete):
        return 1
    if isinstance(policy.moves, NoMoves):
        return math.inf
    here, there = (np.array(np.unravel_index(c, policy.domain.shape)) for c in (u, v))
    return steps(policy.moves, there - here)  # type: ignore[arg-type]


def _to_absent(policy: Policy, cells: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """The distance to ⊥ of some cells, or of all of them: one step more than to the nearest cell that is joined to
    it.
    """
    count = policy.domain.size if cells is None else len(cells)
    if policy.absent is None:
        return np.full(count, math.inf)
    cells = np.arange(count) if cells is None else cells
    joined = policy.absent.ravel()[cells]
    if isinstance(policy.moves, (NoMoves, Complete)):
        return np.where(joined, 1.0, 2.0 if isinstance(policy.moves, Complete) and policy.absent.any() else math.inf)
    shape, stencil = policy.domain.shape, policy.moves
    index = np.stack(np.unravel_index(cells, shape), axis=-1)
    if policy.arguments.get("sources") == "boundary":
        # The nearest source lies straight along one axis: past it, a face of the box is no nearer.
        inner = [_layers(policy, axis) for axis in range(len(shape))]
        gap = np.stack(
            [np.maximum(np.minimum(index[:, i], n - 1 - index[:, i]) - inner[i] + 1, 0) for i, n in enumerate(shape)],
            axis=-1,
        )
        return 1.0 + (-(-gap // np.maximum(stencil.reach, 1))).min(axis=1)  # type: ignore[union-attr]
    sources = np.stack(np.nonzero(policy.absent), axis=-1)
    if len(cells) * len(sources) > 50_000_000:  # fewer sources can only lengthen the way
        sources = sources[:: -(-len(cells) * len(sources) // 50_000_000)]
    nearest = np.full(len(cells), math.inf)
    try:
        table = _steps_table(stencil, shape)  # type: ignore[arg-type]
    except TooLarge:
        for source in sources:
            nearest = np.minimum(nearest, _one_by_one(stencil, index - source))  # type: ignore[arg-type]
        return 1.0 + nearest
    for source in sources:
        nearest = np.minimum(nearest, table[tuple(np.abs(index - source).T)])
    return 1.0 + nearest


def _layers(policy: Policy, axis: int) -> int:
    """How many cells deep the boundary's sources reach along one axis (read off the middle of the mask)."""
    line = policy.absent[tuple(slice(None) if i == axis else n // 2 for i, n in enumerate(policy.domain.shape))]  # type: ignore[index]
    return int(len(line) if line.all() else np.argmin(line))


def _steps_table(stencil: Stencil, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Steps to every displacement within a grid of this shape."""
    if len(shape) == 1:
        return -(-np.arange(shape[0]) // max(int(stencil.reach[0]), 1))
    return _steps_box(stencil, tuple(n - 1 for n in shape))


def _graph(policy: Policy) -> Any:
    """The adjacency matrix of all vertices, ⊥ last."""
    from scipy.sparse import csr_matrix

    size = policy.domain.size
    ends = policy.edges()
    ends = np.where(ends == ABSENT, size, ends)
    both = np.concatenate([ends, ends[:, ::-1]])
    return csr_matrix((np.ones(len(both), dtype=np.int8), (both[:, 0], both[:, 1])), shape=(size + 1, size + 1))


def _search(policy: Policy, sources: list[int]) -> NDArray[Any]:
    """Breadth-first distances from some vertices to all of them, ⊥ last."""
    from scipy.sparse.csgraph import dijkstra  # slow to import, and only explicit graphs need it

    size = policy.domain.size
    start = [size if s == ABSENT else s for s in sources]
    return np.asarray(dijkstra(_graph(policy), directed=True, unweighted=True, indices=start))
