"""The operators written out from their definitions, independently of the code under test."""

from __future__ import annotations

import numpy as np

from sfumato.linear import Difference, Haar, Hierarchy, Identity, Prefix, nested_blocks

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 24, 31, 32, 33]


def haar_matrix(n):
    """The total, then left minus right for every pair of nodes, coarsest level first; an odd node moves up."""
    nodes, levels = list(np.eye(n, dtype=np.int64)), []
    while len(nodes) > 1:
        pairs = [(nodes[i], nodes[i + 1]) for i in range(0, len(nodes) - 1, 2)]
        levels.append([left - right for left, right in pairs])
        nodes = [left + right for left, right in pairs] + nodes[2 * len(pairs) :]
    return np.array(nodes + [row for level in reversed(levels) for row in level])


def hierarchy_matrix(n, blocks):
    """One row for every block of every level, the coarsest level first."""
    cell = np.arange(n)
    return np.array([cell // block == k for block in blocks for k in range(-(-n // block))], dtype=np.int64)


def difference_matrix(n):
    """Edge i takes one from cell i + 1 and gives it to cell i."""
    matrix = np.zeros((n, n - 1), dtype=np.int64)
    for edge in range(n - 1):
        matrix[edge, edge], matrix[edge + 1, edge] = 1, -1
    return matrix


def strategies(n):
    """(name, operator, matrix) of every strategy over n cells."""
    yield "identity", Identity(n), np.eye(n, dtype=np.int64)
    yield "prefix", Prefix(n), np.tril(np.ones((n, n), dtype=np.int64))
    yield "prefix reversed", Prefix(n, reverse=True), np.triu(np.ones((n, n), dtype=np.int64))
    yield "haar", Haar(n), haar_matrix(n)
    for branching in (2, 3, 4):
        for root in (True, False):
            blocks = nested_blocks(n, branching, root=root)
            yield f"hierarchy {blocks}", Hierarchy(n, blocks), hierarchy_matrix(n, blocks)


def operators(n):
    """The strategies, and the divergence of a line."""
    yield from strategies(n)
    if n > 1:
        yield "difference", Difference(n), difference_matrix(n)


def range_matrix(n, low, high):
    """The share of every cell that lies in [low, high), one row a range."""
    rows = [[max(0.0, min(h, c + 1) - max(lo, c)) for c in range(n)] for lo, h in zip(low, high, strict=True)]
    return np.array(rows).reshape(len(low), n)


def some_ranges(n, rng, count=60):
    """Ranges in cell coordinates: whole cells, cut cells, within one cell, empty, at both ends, everything."""
    ends = np.sort(rng.uniform(0, n, (count, 2)), axis=1)
    ends[: count // 3] = np.floor(ends[: count // 3])
    ends[count // 3 : count // 2, 1] = n
    ends[count // 2 : count // 2 + 5, 0] = 0
    ends[-3:] = [(0, n), (n, n), (0, 0)]
    cell = int(rng.integers(0, n))
    ends[-5:-3] = [(cell + 0.25, cell + 0.5), (cell, cell + 1)]
    return ends[:, 0], ends[:, 1]
