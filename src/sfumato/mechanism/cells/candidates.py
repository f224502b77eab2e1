"""The sets that a greedy search may add, and the ones that it may begin with.

On a line or grid every box is a candidate. A box is a sum of 2^d prefix sums with signs, so whatever is a quadratic
form over cells is one over corners, with four entries a box on a line and sixteen on a grid, however many cells the
box has. Listed graphs add balls around every cell and the subtrees of a breadth-first tree, which cut one tree edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.mechanism.cells.cuts import Bools, crossings
from sfumato.policies import Policy

# More boxes than this are thinned out: the longer a box, the coarser the places where it may begin.
MOST_BOXES = 60_000
MOST_BOXES_OF_A_GRAPH = 8_000  # there each is carried cell by cell


@dataclass(frozen=True, eq=False)
class Candidates:
    """Sets of cells, one row of `members` each, and the same sets over corners: members = corners · lift."""

    shape: tuple[int, ...]
    members: Bools
    corners: scipy.sparse.csr_matrix
    cut: NDArray[np.int64]  # how many edges of the policy each cuts
    over_corners: bool

    def lifted(self, matrix: Floats) -> Floats:
        """A quadratic form over the cells as one over the corners: its sums over lower boxes, on both sides."""
        if not self.over_corners:
            return matrix
        table = matrix.reshape(self.shape * 2)
        for axis in range(table.ndim):
            table = np.cumsum(table, axis=axis)
        table = np.pad(table, [(1, 0)] * table.ndim)
        return table.reshape(int(np.prod([n + 1 for n in self.shape])), -1)

    def quadratic(self, lifted: Floats) -> Floats:
        """aᵀ·M·a for every candidate a, from the lifted M."""
        values = np.empty(len(self.members))
        step = max(1, (1 << 22) // len(lifted))
        for start in range(0, len(values), step):
            part = self.corners[start : start + step]
            values[start : start + step] = np.asarray(part.multiply(part @ lifted).sum(axis=1)).ravel()
        return values


def candidates(policy: Policy, most: int = MOST_BOXES) -> Candidates:
    """The pool for a policy: sets that cut some edge, each once; about `most` boxes at the most."""
    shape, edges = policy.domain.shape, policy.edges()
    explicit = policy.moves.listed
    spans = _spans(shape, min(most, MOST_BOXES_OF_A_GRAPH) if explicit else most)
    members = _boxes(shape, spans)
    if explicit:
        members = np.concatenate([members, _balls(policy), subtrees(policy)])
        members = members[np.sort(np.unique(np.packbits(members, axis=1), axis=0, return_index=True)[1])]
        corners = scipy.sparse.csr_matrix(members, dtype=np.float64)
    else:
        corners = _corners(shape, spans)
    parts = np.array_split(members, 1 + len(members) * len(edges) // (1 << 24))
    cut = np.concatenate([crossings(part, edges).sum(axis=1) for part in parts])
    useful = cut > 0
    return Candidates(shape, members[useful], corners[useful], cut[useful], not explicit)


def starts(policy: Policy) -> dict[str, Bools]:
    """Where a search may begin: sums that cut few edges, every cell, nested halves, nothing."""
    shape, size = policy.domain.shape, policy.domain.size
    found = {}
    if policy.moves.listed:
        found["subtrees"] = subtrees(policy)
    elif len(shape) == 1:
        below = np.tri(size, dtype=bool)
        if policy.total_is_public:
            found["prefixes"] = below[:-1]  # the last sum is known, and a suffix tells what its complement does
        else:
            found["prefixes"], found["suffixes"] = below, below.T
    found["cells"] = np.eye(size, dtype=bool)
    return {**found, "halves": _halves(shape), "nothing": np.zeros((0, size), dtype=bool)}


def subtrees(policy: Policy) -> Bools:
    """What hangs below each edge of a breadth-first tree: rooted at ⊥ where there is one, else at the first cell."""
    from scipy.sparse.csgraph import breadth_first_order  # slow to import, and only listed graphs need it

    size = policy.domain.size
    root = 0 if policy.total_is_public else size
    order, parent = breadth_first_order(_adjacency(policy), root, directed=False)
    below = np.eye(size + 1, dtype=bool)
    for vertex in order[:0:-1]:
        below[parent[vertex]] |= below[vertex]
    return below[np.sort(order[1:]), :size]


def _balls(policy: Policy) -> Bools:
    from scipy.sparse.csgraph import shortest_path

    size = policy.domain.size
    distance = shortest_path(_adjacency(policy)[:size, :size], directed=False, unweighted=True)
    largest = int(distance[np.isfinite(distance)].max(initial=0))
    radii = [r for r in range(largest) if r < 4 or r & (r - 1) == 0 or (r % 3 == 0 and (r // 3) & (r // 3 - 1) == 0)]
    return np.concatenate([np.zeros((0, size), dtype=bool), *(distance <= r for r in radii)])


def _adjacency(policy: Policy) -> scipy.sparse.csr_matrix:
    size, (tail, head) = policy.domain.size, policy.edges().T
    ones = np.ones(len(tail), dtype=np.int8)
    return scipy.sparse.csr_matrix((ones, (tail, np.where(head < 0, size, head))), shape=(size + 1, size + 1))


def _spans(shape: tuple[int, ...], most: int) -> list[NDArray[np.int64]]:
    """Along every axis the ranges (lo, hi) of which boxes are made; prefixes and suffixes are always among them."""
    for fineness in (max(shape), 16, 8, 4, 2, 1):
        spans = [_axis_spans(n, fineness) for n in shape]
        if np.prod([float(len(span)) for span in spans]) <= most:
            break
    return spans


def _axis_spans(n: int, fineness: int) -> NDArray[np.int64]:
    low, high = (end.ravel() for end in np.indices((n, n + 1)))
    length = high - low
    step = 2 ** np.floor(np.log2(np.maximum(length // fineness, 1))).astype(np.int64)
    kept = (length > 0) & (((low % step == 0) & (high % step == 0)) | (low == 0) | (high == n))
    return np.stack([low[kept], high[kept]], axis=-1)


def _boxes(shape: tuple[int, ...], spans: list[NDArray[np.int64]]) -> Bools:
    axes = [(np.arange(n) >= span[:, :1]) & (np.arange(n) < span[:, 1:]) for n, span in zip(shape, spans, strict=True)]
    return reduce(np.kron, axes)


def _corners(shape: tuple[int, ...], spans: list[NDArray[np.int64]]) -> scipy.sparse.csr_matrix:
    axes = []
    for n, span in zip(shape, spans, strict=True):
        rows = np.repeat(np.arange(len(span)), 2)
        signs = np.tile([-1.0, 1.0], len(span))
        axes.append(scipy.sparse.csr_matrix((signs, (rows, span.ravel())), shape=(len(span), n + 1)))
    return scipy.sparse.csr_matrix(reduce(scipy.sparse.kron, axes))


def _halves(shape: tuple[int, ...]) -> Bools:
    """The blocks of a nested halving of all axes at once, down to single cells; the whole domain is left out."""
    depths = [(n - 1).bit_length() for n in shape]
    levels = [np.zeros((0, int(np.prod(shape))), dtype=bool)]
    for level in range(1, max(depths) + 1):
        axes = []
        for n, depth in zip(shape, depths, strict=True):
            block = np.arange(n) >> max(depth - level, 0)
            axes.append(np.unique(block)[:, None] == block)
        levels.append(reduce(np.kron, axes))
    return np.concatenate(levels)
