"""How wide a large graph is, without a search from every vertex.

From a vertex r in the middle all others are at most h away, so no two are more than 2h apart. Going inwards from the
farthest ones, each vertex at distance i from r is searched from: once all at distance i and beyond have been, two
vertices are either among those, and no farther apart than the longest way found, or both nearer than i to r, and at
most 2(i - 1) apart. Where the longest way found is as long as that, it is the diameter. Crescenzi, Grossi, Habib,
Lanzi, Marino: On computing the diameter of real-world undirected graphs (Theoretical Computer Science 2013). Most
graphs are settled in a few searches; where so many do not settle it, what is returned is too large, never too small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._types import Integers
from sfumato.linear import distinct

# Searches, counted in edges and vertices met: this many take a few seconds.
MOST_WORK = 60_000_000
FEWEST_SEARCHES = 8


def large_diameter(graph: Any, cells: int) -> float:
    """The diameter of the first `cells` vertices of a connected graph (a symmetric CSR matrix), or an upper bound."""
    searches = max(FEWEST_SEARCHES, MOST_WORK // (graph.nnz + graph.shape[0]))
    far, _ = depths(graph, int(np.diff(graph.indptr)[:cells].argmax()))
    first = int(far[:cells].argmax())
    away, before = depths(graph, first)
    last = int(away[:cells].argmax())
    longest = int(away[last])
    middle = last
    for _ in range(longest // 2):
        middle = int(before[middle])
    around, _ = depths(graph, middle)
    outwards = np.argsort(-around[:cells], kind="stable")
    for vertex in outwards[: searches - 3].tolist():
        if longest >= 2 * int(around[vertex]):
            return float(longest)  # all that are left lie no farther than this from the middle
        found, _ = depths(graph, vertex)
        longest = max(longest, int(found[:cells].max()))
    left = outwards[searches - 3 :]
    return float(max(longest, 2 * int(around[left].max(initial=0))))


def depths(graph: Any, root: int) -> tuple[Integers, Integers]:
    """(the distance of every vertex from a root, -1 where there is no way; the vertex before it on a shortest way)."""
    distance, before = np.full(graph.shape[0], -1), np.full(graph.shape[0], -1)
    distance[root] = 0
    front, steps = np.array([root]), 0
    while len(front):
        steps += 1
        sizes = graph.indptr[front + 1] - graph.indptr[front]
        # All neighbours of the front, one after the other.
        at = np.repeat(graph.indptr[front + 1] - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
        met = graph.indices[at]
        new = distance[met] < 0
        met, behind = met[new], np.repeat(front, sizes)[new]
        distance[met], before[met] = steps, behind
        front = distinct(met)
    return distance, before
