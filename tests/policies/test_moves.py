"""What every form of moves says without a list of edges, against a search over the list."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

import sfumato as sf
from sfumato.linear import Haar, Hierarchy, Identity, Prefix
from sfumato.policies.listed_moves import Explicit, Neighbours
from sfumato.policies.moves import Complete, NoMoves
from sfumato.policies.uneven import Ahead

SHAPES = [(6,), (3, 4), (2, 3, 2)]


def forms(shape):
    d = len(shape)
    domain = sf.Line(0, 6, cells=6) if d == 1 else sf.Grid(bounds=(0,) * d + shape, shape=shape)
    return [NoMoves(), Complete(), sf.threshold(domain, 1).moves, sf.threshold(domain, 2).moves]


CASES = [(moves, shape) for shape in SHAPES for moves in forms(shape)]
NAMES = [f"{type(moves).__name__}{shape}" for moves, shape in CASES]


def ways(moves, shape):
    """The length of a shortest path between any two cells."""
    size = math.prod(shape)
    pairs = moves.edges(shape)
    graph = csr_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    return dijkstra(graph, directed=False, unweighted=True)


@pytest.mark.parametrize(("moves", "shape"), CASES, ids=NAMES)
def test_ways_are_the_shortest_paths(moves, shape):
    found = ways(moves, shape)
    for u, v in np.ndindex(*found.shape):
        if u != v:
            assert moves.direct(shape, u, v) == found[u, v]
    assert moves.across(shape) == found.max()
    assert moves.follow_rule == bool(np.isfinite(found).all())
    assert moves.exist == bool(len(moves.edges(shape)))
    assert moves.join_all == (found.max() == 1)
    assert moves.count(shape) == len(moves.edges(shape))


@pytest.mark.parametrize(("moves", "shape"), CASES, ids=NAMES)
def test_ways_to_sources_end_at_the_nearest(moves, shape):
    found, cells = ways(moves, shape), np.arange(math.prod(shape))
    for chosen in ([0], [1, 4], [], list(cells)):
        mask = np.zeros(shape, dtype=bool)
        mask.ravel()[chosen] = True
        want = found[:, chosen].min(axis=1, initial=math.inf)
        assert np.array_equal(moves.to_sources(mask, cells, boundary=False), want)
        assert np.array_equal(moves.to_sources(mask, cells[::2], boundary=False), want[::2])


@pytest.mark.parametrize(("moves", "shape"), CASES, ids=NAMES)
def test_sizes_bound_every_edge_and_some_edge_has_each(moves, shape):
    pairs = moves.edges(shape)
    ends = np.stack(np.unravel_index(pairs, shape), axis=-1)
    steps = np.abs(ends[:, 1] - ends[:, 0])
    sizes = moves.sizes(shape)
    assert all((sizes >= step).all(axis=1).any() for step in steps)
    inside = sizes[(sizes < np.array(shape)).all(axis=1)]
    assert all((steps == size).all(axis=1).any() for size in inside)


@pytest.mark.parametrize(("moves", "shape"), CASES[:4], ids=NAMES[:4])
@pytest.mark.parametrize("operator", [Identity(6), Prefix(6), Haar(6)], ids=lambda o: type(o).__name__)
def test_pairs_of_columns_and_the_farthest_are_those_of_the_edges(moves, shape, operator):
    pairs = moves.edges(shape)
    want = operator.column_distances(pairs[:, 0], pairs[:, 1]).max(initial=0)
    farthest, types = moves.farthest(operator), moves.pair_types((operator,))
    assert farthest is None or farthest == want
    if types is None:
        assert not len(pairs)
    else:
        largest = (np.abs(t.values[:, 0] - t.values[:, 1]) @ t.counts.T for (t,) in types)
        assert max(int(each.max()) for each in largest) == want


def test_listed_moves_are_searched():
    moves = sf.graph(sf.Line(0, 1, cells=4), [(0, 1), (1, 2), (2, 3)]).moves
    assert moves.listed and moves.exist and not moves.follow_rule and not moves.join_all
    assert moves.pair_types((Identity(4),)) is None and moves.farthest(Identity(4)) is None
    assert (moves.direct((4,), 0, 3), moves.across((4,))) == (3, 3)
    near = moves.to_sources(np.array([False, True, False, False]), np.arange(4), boundary=False)
    assert near.tolist() == [1, 0, 1, 2]
    with pytest.raises(NotImplementedError, match="Explicit are searched"):
        moves.sizes((4,))
    apart = Explicit(np.array([[0, 1], [2, 3]]))
    assert apart.direct((4,), 0, 3) == np.inf
    assert len(set(apart.labels((4,)).tolist())) == 2


UNEVEN = np.array([1, 3, 3, 5, 5, 5])


def test_moves_along_uneven_cells_are_those_written_out():
    moves = Ahead(UNEVEN)
    pairs = moves.edges((6,))
    assert pairs.tolist() == [[u, v] for u in range(6) for v in range(u + 1, UNEVEN[u] + 1)]
    written = Explicit(pairs)
    for u in range(6):
        for v in range(6):
            assert moves.direct((6,), u, v) == written.direct((6,), u, v)
    assert moves.across((6,)) == written.across((6,))
    assert moves.sizes((6,)).tolist() == [[2]]
    assert moves.count((6,)) == len(pairs)
    operator = Hierarchy(6, (3, 1), (2, 1))
    types = [kinds[0] for kinds in moves.pair_types((operator,))]
    largest = max(int((np.abs(t.values[:, 0] - t.values[:, 1]) @ t.counts.T).max()) for t in types)
    assert largest == operator.column_distances(pairs[:, 0], pairs[:, 1]).max()


def test_pairs_of_a_factor_are_compared_one_by_one():
    ring = Neighbours(np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), 4)
    assert ring.follow_rule
    assert not Neighbours(np.array([[0, 1], [2, 3]]), 4).follow_rule
    assert ring.direct((4,), 0, 2) == ring.across((4,)) == 2
    assert ring.sizes((4,)).tolist() == [[3]]
    (kinds,) = ring.pair_types((Hierarchy(4, (2, 1), (2, 1)),))
    t = kinds[0]
    assert int((np.abs(t.values[:, 0] - t.values[:, 1]) @ t.counts.T).max()) == 6
