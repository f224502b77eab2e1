"""Brute force over small policies: every edge, every path."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

import sfumato as sf
from sfumato.linear import Operator


def box(shape, side=1.0):
    """A line or grid over the unit cube (or a larger one) with cells in this shape."""
    d = len(shape)
    return sf.Line(0, side, cells=shape[0]) if d == 1 else sf.Grid(bounds=(0,) * d + (side,) * d, shape=shape)


def small_policies(domain):
    """Every kind of structured policy on a spatial domain."""
    d = domain.ndim
    yield sf.bounded(domain)
    yield sf.unbounded(domain)
    for theta in (1, 2, 3):
        yield sf.threshold(domain, theta)
    yield sf.within(domain, 0.3)
    yield sf.within(domain, 0.2, metric="manhattan")
    yield sf.within(domain, 0.45, metric="chebyshev")
    yield sf.within(domain, 0.26, sources="boundary")
    yield sf.within(domain, 0.05, sources="boundary")
    yield sf.within(domain, 0.2, sources=[(0.4,) * d])
    yield sf.within(domain, 0.15, sources=[(0.0,) * d, (0.9,) * d])


def all_distances(policy):
    """Shortest paths between all vertices, ⊥ last."""
    n = policy.domain.size
    edges = np.where(policy.edges() < 0, n, policy.edges())
    graph = sp.csr_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n + 1, n + 1))
    return shortest_path(graph, directed=False, unweighted=True)


def brute_sensitivity(policy, strategy):
    """The largest L1 distance between the columns that an edge joins; ⊥ has a column of zeros."""
    matrix = strategy.dense() if isinstance(strategy, Operator) else np.asarray(strategy)
    matrix = np.hstack([matrix.astype(object), np.zeros((len(matrix), 1), dtype=object)])
    return max((abs(matrix[:, u] - matrix[:, v]).sum() for u, v in policy.edges()), default=0)
