"""Rooted trees: sums over subtrees, lengths of paths, and the search for a spanning tree that stretches edges little.

Everything is vectorised by doubling. After r rounds every vertex knows its 2^r-th ancestor, so a path of a million
vertices takes twenty passes over arrays, where a pass for every depth would take a million.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Integers
from sfumato.errors import InvalidInput, TooLarge

# The search for a low-stretch tree is bounded by work, never by the clock: the same graph gives the same tree on every
# machine. A trial costs its vertices and edges, and never less than TRIAL, about what building any tree takes.
SEARCH = 2_000_000
TRIAL = 2_000
LARGEST_SEARCH = 5_000_000
FEWEST_ROOTS = 3
WORST_EDGES = 4
SHORTCUTS = 8


@dataclass(frozen=True, eq=False)
class Tree:
    """A rooted tree over the vertices 0 … n - 1, as the parent of each; the root is its own parent."""

    parent: Integers
    root: int

    @classmethod
    def of(cls, vertices: int, pairs: Integers, root: int) -> Tree:
        """The tree with these edges, hung up at a root. Refused where the edges are not a tree on all the vertices."""
        if len(pairs) == vertices - 1:
            tree = breadth_first(_adjacency(vertices, pairs), root)
            if tree is not None:
                return tree
        raise InvalidInput(
            f"{len(pairs)} edges on {vertices} vertices are not a tree: a tree joins them all with {vertices - 1}."
        )

    @cached_property
    def depth(self) -> Integers:
        """How many edges lie between each vertex and the root."""
        return self._summed_to_root((np.arange(len(self.parent)) != self.root).astype(np.int64))

    @cached_property
    def sizes(self) -> Integers:
        """How many vertices hang on each one, itself included."""
        total = np.ones(len(self.parent), dtype=np.int64)
        for r, up in enumerate(self._ancestors):
            below = self.depth >= 1 << r
            total = total + np.bincount(up[below], weights=total[below], minlength=len(total)).astype(np.int64)
        return total

    @cached_property
    def place(self) -> Integers:
        """The place of each vertex in an order in which every subtree is one run: from place to place + size."""
        by_parent = np.argsort(self.parent, kind="stable")
        by_parent = by_parent[by_parent != self.root]
        sizes = self.sizes[by_parent]
        before = np.cumsum(sizes) - sizes
        _, first, family = np.unique(self.parent[by_parent], return_index=True, return_inverse=True)
        step = np.zeros(len(self.parent), dtype=np.int64)
        step[by_parent] = 1 + before - before[first][family]
        return self._summed_to_root(step)

    def subtree_sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sum over the subtree of every vertex, along the last axis: one cumulative sum, exact for integers."""
        ordered = np.empty_like(values)
        ordered[..., self.place] = values
        running = np.zeros((*values.shape[:-1], values.shape[-1] + 1), dtype=values.dtype)
        np.cumsum(ordered, axis=-1, out=running[..., 1:])
        return running[..., self.place + self.sizes] - running[..., self.place]

    def distances(self, u: Integers, v: Integers) -> Integers:
        """The number of edges on the path between the vertices of each pair."""
        return self._summed_between(self.depth, u, v)

    def shared(self, path: list[int], u: Integers, v: Integers) -> Integers:
        """How many edges of a path (as `path` gives it) lie on the path between the vertices of each pair."""
        marked = np.zeros(len(self.parent), dtype=np.int64)
        marked[path] = 1
        return self._summed_between(self._summed_to_root(marked), u, v)

    def path(self, u: int, v: int) -> list[int]:
        """The vertices whose edge to their parent lies on the path between two vertices."""
        found = []
        while u != v:
            if self.depth[u] < self.depth[v]:
                u, v = v, u
            found.append(u)
            u = int(self.parent[u])
        return found

    def edges(self) -> Integers:
        """Every vertex but the root beside its parent."""
        child = np.delete(np.arange(len(self.parent)), self.root)
        return np.stack([child, self.parent[child]], axis=-1)

    @cached_property
    def _ancestors(self) -> list[Integers]:
        """The 2^r-th ancestor of every vertex for r = 0, 1, …, up to the one that is the root for all."""
        found = [self.parent]
        while (found[-1] != self.root).any():
            found.append(found[-1][found[-1]])
        return found

    def _summed_to_root(self, steps: Integers) -> Integers:
        """The sum of the steps from each vertex up to the root, whose own step is zero."""
        total = steps
        for up in self._ancestors:
            total = total + total[up]
        return total

    def _summed_between(self, to_root: Integers, u: Integers, v: Integers) -> Integers:
        """Sums along the path between the vertices of each pair, from the sums between each vertex and the root."""
        here = np.array(u)
        for up in reversed(self._ancestors):
            higher = up[here]
            here = np.where(self._above(higher, v), here, higher)
        meet = np.where(self._above(here, v), here, self.parent[here])
        return to_root[u] + to_root[v] - 2 * to_root[meet]

    def _above(self, vertex: Integers, other: Integers) -> NDArray[np.bool_]:
        """Whether a vertex is another one or an ancestor of it."""
        low = self.place[vertex]
        return (low <= self.place[other]) & (self.place[other] < low + self.sizes[vertex])


def breadth_first(adjacency: Any, root: int) -> Tree | None:
    """The tree of shortest paths from a root; None where some vertex is out of reach."""
    from scipy.sparse.csgraph import breadth_first_order  # slow to import, and only graphs without structure need it

    order, before = breadth_first_order(adjacency, root, directed=False)
    if len(order) < adjacency.shape[0]:
        return None
    parent = before.astype(np.int64)
    parent[root] = root
    return Tree(parent, root)


def refuse_long_search(edges: int) -> None:
    """Refuse to look for a spanning tree among so many edges, found or yet to be listed."""
    if edges > LARGEST_SEARCH:
        raise TooLarge(
            f"this policy has {edges:,} edges, too many to search for a spanning tree (at most "
            f"{LARGEST_SEARCH:,}). Nothing was computed. Use fewer cells, or a policy with fewer edges."
        )


def low_stretch_tree(vertices: int, pairs: Integers, first: int) -> tuple[Tree, int]:
    """A spanning tree of a connected graph, and the longest path in it between the ends of an edge of the graph.

    Trees of shortest paths are grown from several roots (`first`, the best connected vertices, the middle of a long
    path, then evenly spread ones); the best of them is improved by exchanging an edge on the path of a worst edge for
    a shortcut, as long as this helps. To find the best tree is NP-hard; this one is good, and its stretch is exact.
    """
    refuse_long_search(len(pairs))
    adjacency = _adjacency(vertices, pairs)
    left = SEARCH
    best: Tree | None = None
    score = (vertices, 0)
    for i, root in enumerate(_roots(adjacency, pairs, first)):
        if score[0] <= 2 or (left < 0 and i >= FEWEST_ROOTS):  # a graph that is no tree has a stretch of at least 2
            break
        tree = breadth_first(adjacency, root)
        left -= TRIAL + vertices + len(pairs)
        if tree is not None and (best is None or _score(tree, pairs) < score):
            best, score = tree, _score(tree, pairs)
    if best is None:
        raise InvalidInput("the graph is not connected: no tree joins its vertices.")
    while score[0] > 2:
        better, left = _exchanged(best, pairs, score, left)
        if better is None:
            break
        best, score = better, _score(better, pairs)
    return best, score[0]


def _adjacency(vertices: int, pairs: Integers) -> Any:
    from scipy.sparse import csr_matrix

    ones = np.ones(len(pairs), dtype=np.int8)
    return csr_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(vertices, vertices))


def _score(tree: Tree, pairs: Integers) -> tuple[int, int]:
    """(the longest path for an edge, how many edges take one that long): smaller is better."""
    lengths = tree.distances(pairs[:, 0], pairs[:, 1])
    longest = int(lengths.max())
    return longest, int((lengths == longest).sum())


def _roots(adjacency: Any, pairs: Integers, first: int) -> Iterator[int]:
    """Promising roots, each once: the first, the middle of a long path, well connected vertices, all the others."""
    seen = {first}
    yield first
    for root in _candidates(adjacency, pairs, first):
        if root not in seen:
            seen.add(root)
            yield root


def _candidates(adjacency: Any, pairs: Integers, first: int) -> Iterator[int]:
    vertices = adjacency.shape[0]
    sweep = breadth_first(adjacency, first)
    if sweep is not None:
        sweep = breadth_first(adjacency, int(sweep.depth.argmax()))
    if sweep is not None:
        middle = int(sweep.depth.argmax())
        for _ in range(int(sweep.depth.max()) // 2):
            middle = int(sweep.parent[middle])
        yield middle
    degree = np.bincount(pairs.ravel(), minlength=vertices)
    yield from (int(v) for v in np.argsort(-degree, kind="stable")[:16])
    stride = max(1, round(vertices * 0.381966))  # about the golden section, so that any few of them lie spread out
    while np.gcd(stride, vertices) > 1:
        stride += 1
    yield from (int(v) for v in np.arange(vertices) * stride % vertices)


def _exchanged(tree: Tree, pairs: Integers, score: tuple[int, int], left: int) -> tuple[Tree | None, int]:
    """The first tree with a smaller score that exchanging one edge gives, and how much work is left.

    To take in a worst edge itself would not help: the edge given up for it has just as long a way round. An edge with a
    shorter way round, most of which lies on the path of the worst one, shortens that path instead.
    """
    vertices = len(tree.parent)
    lengths = tree.distances(pairs[:, 0], pairs[:, 1])
    for u, v in pairs[np.flatnonzero(lengths == score[0])[:WORST_EDGES]]:
        path = tree.path(int(u), int(v))
        gain = 2 * tree.shared(path, pairs[:, 0], pairs[:, 1]) - lengths - 1
        gain[(lengths == 1) | (lengths == score[0])] = 0
        for entering in np.argsort(-gain, kind="stable")[: min(SHORTCUTS, int((gain > 0).sum()))]:
            for child in sorted(set(path).intersection(tree.path(*pairs[entering].tolist()))):
                left -= TRIAL + vertices + len(pairs)
                if left < 0:
                    return None, left
                edges = tree.edges()
                edges[child - (child > tree.root)] = pairs[entering]
                other = Tree.of(vertices, edges, tree.root)
                if _score(other, pairs) < score:
                    return other, left
    return None, left
