"""Large lines and graphs: answers in closed form or by a few searches, compared with brute force on small ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.linear import Haar, Hats, Hierarchy, Identity, Kronecker, Prefix, PrefixBlocks, nested_blocks
from sfumato.policies import distance, wide
from sfumato.policies.distance import _graph, search

LINES = {
    "identity": Identity,
    "prefix": Prefix,
    "prefix reversed": lambda n: Prefix(n, reverse=True),
    "haar": Haar,
    "binary": lambda n: Hierarchy(n, nested_blocks(n, 2)),
    "ternary without root": lambda n: Hierarchy(n, nested_blocks(n, 3, root=False)),
    "weighted": lambda n: Hierarchy(n, (12, 4, 1), (3, 5, 2)),
    "blocks": lambda n: PrefixBlocks(n, (4, 2, 1), (5, 3, 2)),
    "long blocks": lambda n: PrefixBlocks(n, (12, 4, 1), (1, 30, 2)),
    "hats": lambda n: Hats(max(n, 8), (3,), (256, 256)),
}


@pytest.mark.parametrize("name", LINES)
def test_the_farthest_columns_of_a_line_are_found_without_looking_at_pairs(name):
    for n in [*range(1, 20), 31, 32, 33, 45]:
        operator = LINES[name](n)
        n = operator.cols
        dense = operator.dense()
        far = np.abs(dense[:, :, None] - dense[:, None, :]).sum(axis=0)
        apart = np.abs(np.arange(n)[:, None] - np.arange(n))
        u, v = np.indices((n, n)).reshape(2, -1)
        assert (operator.column_distances(u, v) == far.ravel()).all()
        assert operator.largest_entry >= np.abs(dense).max()
        assert operator.largest_norm >= np.abs(dense).sum(axis=0).max()
        for reach in range(n + 2):
            assert operator.farthest(np.arange(1, reach + 1)) == far[apart <= reach].max()


def test_no_strategy_of_a_line_compares_pairs_of_cells(monkeypatch):
    """What took a quarter of an hour on a million cells: one list of pairs for every length of a move."""

    def refuse(*_):
        raise AssertionError("pairs of cells were listed")

    for kind in (Identity, Prefix, Haar, Hierarchy, PrefixBlocks, Hats):
        monkeypatch.setattr(kind, "pair_types", refuse)
    line = sf.Line(0, 1000, cells=2**20)
    for operator in (LINES[name](line.size) for name in LINES if name != "hats"):
        for reach in (1, 5243, 2**19):
            assert sf.threshold(line, reach).sensitivity(operator) > 0


def test_nested_blocks_look_at_steps_of_one_cell_alone(monkeypatch):
    """What took minutes on a million cells: a type of pair for every length of a move, and again for every tuning."""
    asked, real = [], Hierarchy.pair_types

    def counted(self, offset):
        asked.append(offset)
        return real(self, offset)

    monkeypatch.setattr(Hierarchy, "pair_types", counted)
    line = sf.Line(0, 1000, cells=2**12, name="t")
    for domain in (line, line * sf.Categories(["a", "b"], name="mode")):
        hide = sf.move(500, of="t") | sf.change("mode") if domain is not line else sf.move(500, of="t")
        plan = sf.plan(
            sf.policy(domain, hide=hide), sf.ranges() if domain is line else sf.histogram(), 1, mechanism="levels"
        )
        assert plan.expected_error > 0
    assert set(asked) <= {None, 0, 1, -1} and len(asked) < 100


DELTAS = [2, 16, 600, 2**15, 2**19]  # in cells
SOURCES = [None, "boundary", [300.0, 700.0]]
WORKLOADS = [sf.ranges(), sf.histogram(), sf.prefixes()]


@pytest.mark.slow  # a million cells, a second and more a plan
@pytest.mark.parametrize(("d", "s"), list(itertools.product(range(len(DELTAS)), range(len(SOURCES)))))
def test_a_plan_on_a_million_cells_comes_whatever_the_delta(d, s):
    """Every workload meets every delta and every kind of source."""
    line = sf.Line(0, 1000, cells=2**20)
    policy = sf.within(line, (DELTAS[d] + 0.5) * 1000 / 2**20, sources=SOURCES[s])
    assert sf.plan(policy, WORKLOADS[(d + s) % len(WORKLOADS)], epsilon=1).expected_error > 0


# --- graphs -----------------------------------------------------------------------------------------------------------


def drawn_graph(data, size):
    edges = [(i, data.draw(st.integers(0, i - 1))) for i in range(1, size)]
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda pair: pair[0] != pair[1])
    edges += data.draw(st.lists(pairs, max_size=size))
    edges += [(cell, sf.ABSENT) for cell in data.draw(st.lists(st.integers(0, size - 1), max_size=3))]
    return sf.graph(sf.Categories([f"c{i}" for i in range(size)]), edges)


@settings(deadline=None, max_examples=100)
@given(data=st.data(), size=st.integers(2, 30), searches=st.integers(4, 9))
def test_a_few_searches_find_the_diameter_or_more(data, size, searches):
    policy = drawn_graph(data, size)
    graph, true = _graph(policy), search(policy, list(range(size)))[:, :size].max()
    assert wide.large_diameter(graph, size) == true
    before = wide.MOST_WORK, wide.FEWEST_SEARCHES
    try:
        wide.MOST_WORK, wide.FEWEST_SEARCHES = 0, searches
        assert wide.large_diameter(graph, size) >= true
    finally:
        wide.MOST_WORK, wide.FEWEST_SEARCHES = before
    for root in range(size):
        assert (wide.depths(graph, root)[0][:size] == search(policy, [root])[0, :size]).all()


@pytest.mark.parametrize("absent", [False, True])
def test_words_come_for_every_graph(absent, monkeypatch):
    size = 400
    edges = [(i, (i * 7 + 3) % i) for i in range(1, size)] + [(0, sf.ABSENT)] * absent
    policy = sf.graph(sf.Categories([str(i) for i in range(size)]), edges)
    plan = sf.plan(policy, sf.histogram(), 1, mechanism="identity")
    exact = plan.guarantee.describe()
    monkeypatch.setattr(distance, "SMALL_GRAPH", 10)
    policy = sf.graph(policy.domain, edges)
    assert sf.plan(policy, sf.histogram(), 1, mechanism="identity").guarantee.describe() == exact


def test_labels_name_the_cells_of_a_large_graph():
    """22,478 cells and 201,216 edges took 341 s: each label was looked for from the first one on."""
    size = 22_478
    rng = np.random.default_rng(5)
    names = [f"cell{i:05d}" for i in range(size)]
    pairs = np.concatenate([np.stack([np.arange(1, size), rng.integers(0, np.arange(1, size))], axis=-1),
                            np.sort(rng.integers(0, size, (201_216 - size, 2)), axis=1)])  # fmt: skip
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    named = [(names[u], names[v]) for u, v in pairs.tolist()]
    policy = sf.graph(sf.Categories(names), named)
    assert policy == sf.graph(sf.Categories(names), pairs)
    plan = sf.plan(policy, sf.histogram(), 1)
    assert {a.name: a.error for a in plan.alternatives}["identity"] is not None
    assert plan.mechanism.sensitivity == 2
    assert "No two cells are more than" in plan.guarantee.describe()


def test_a_listed_graph_on_a_grid_is_weighed_by_its_sparse_columns():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(150, 140))
    cells = np.arange(grid.size).reshape(grid.shape)
    edges = np.concatenate([np.stack([cells[:-1].ravel(), cells[1:].ravel()], axis=-1),
                            np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], axis=-1)])  # fmt: skip
    listed, rule = sf.graph(grid, edges), sf.threshold(grid, 1)
    for factor in (Identity, Haar, lambda n: Hierarchy(n, (10, 1), (3, 2))):
        strategy = Kronecker([factor(n) for n in grid.shape])
        assert listed.sensitivity(strategy) == rule.sensitivity(strategy)


def test_a_huge_box_still_has_a_diameter():
    """Not by a search of the box: along one axis after the other."""
    grid = sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(200, 200, 200))
    policy = sf.threshold(grid, 3)
    assert policy.diameter >= -(-3 * 199 // 3)
    assert "No two cells are more than" in sf.plan(policy, sf.histogram(), 1, mechanism="identity").guarantee.describe()
