"""Graph distances under a policy, without a graph wherever the structure gives them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.policies.absent import ABSENT
from sfumato.policies.wide import large_diameter

if TYPE_CHECKING:
    from sfumato.policies.policy import Policy

# All-pairs search is for graphs this small.
SMALL_GRAPH = 2_000


def distance(policy: Policy, u: int, v: int) -> float:
    """The length of a shortest path between two vertices."""
    if u == v:
        return 0
    if policy.moves.listed:
        return float(search(policy, [u])[0, v if v != ABSENT else policy.domain.size])
    if ABSENT in (u, v):
        return float(to_absent(policy, np.array([max(u, v)]))[0])
    detour = float(to_absent(policy, np.array([u, v])).sum())
    return min(policy.moves.direct(policy.domain.shape, u, v), detour)


def diameter(policy: Policy) -> float:
    """The largest distance between two cells; an upper bound on large domains with ⊥, and on large graphs."""
    size, moves = policy.domain.size, policy.moves
    if size == 1:
        return 0
    if moves.join_all:
        return 1
    if moves.listed or (moves.exist and policy.absent is not None and size <= SMALL_GRAPH):
        if not policy.connected:
            return math.inf
        if size > SMALL_GRAPH:
            return large_diameter(_graph(policy), size)
        return float(search(policy, list(range(size)))[:, :size].max())
    return min(moves.across(policy.domain.shape), 2 * eccentricity(policy))


def eccentricity(policy: Policy) -> float:
    """The largest distance from a cell to ⊥; an upper bound where there are very many cells and sources."""
    if policy.absent is None:
        return math.inf
    if policy.hides_presence:
        return 1
    return float(to_absent(policy, np.arange(policy.domain.size)).max())


def to_absent(policy: Policy, cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """The distance to ⊥ of some cells: one step more than to the nearest cell that is joined to it."""
    if policy.absent is None:
        return np.full(len(cells), math.inf)
    if policy.moves.listed:
        return np.asarray(search(policy, [ABSENT])[0, cells], dtype=np.float64)
    boundary = policy.arguments.get("sources") == "boundary"
    return 1.0 + policy.moves.to_sources(policy.absent, cells, boundary=boundary)


def _graph(policy: Policy) -> Any:
    """The adjacency matrix of all vertices, ⊥ last."""
    from scipy.sparse import csr_matrix

    size = policy.domain.size
    ends = policy.edges()
    ends = np.where(ends == ABSENT, size, ends)
    both = np.concatenate([ends, ends[:, ::-1]])
    return csr_matrix((np.ones(len(both), dtype=np.int8), (both[:, 0], both[:, 1])), shape=(size + 1, size + 1))


def search(policy: Policy, sources: list[int]) -> NDArray[Any]:
    """Breadth-first distances from some vertices to all of them, ⊥ last."""
    from scipy.sparse.csgraph import dijkstra  # slow to import, and only explicit graphs need it

    size = policy.domain.size
    start = [size if s == ABSENT else s for s in sources]
    return np.asarray(dijkstra(_graph(policy), directed=True, unweighted=True, indices=start))
