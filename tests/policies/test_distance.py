"""Distances, diameters and exchange rates, against a search over all pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from policy_oracle import all_distances, box, small_policies

import sfumato as sf
from sfumato.policies import exchange_rate

SHAPES = [(1,), (2,), (9,), (7, 6), (12, 5), (1, 4), (4, 5, 3)]


def random_graph(data, cells):
    vertex = st.integers(-1, cells - 1)
    pair = st.tuples(vertex, vertex).filter(lambda p: p[0] != p[1])
    pairs = np.array(data.draw(st.lists(pair, min_size=1, max_size=3 * cells)), dtype=np.int64)
    return sf.graph(sf.Line(0, 1, cells=cells), pairs, publish_component_totals=True)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_distances_by_hand():
    line = sf.Line(0, 1, cells=10)
    policy = sf.threshold(line, 3)
    assert [policy.distance(0, v) for v in (0, 1, 3, 4, 9)] == [0, 1, 1, 2, 3]
    assert policy.diameter == 3
    assert policy.distance(0, sf.ABSENT) == policy.eccentricity == math.inf


def test_a_way_through_nothing_may_be_shorter():
    """Both ends of the line may vanish: from one end to the other takes two steps, not nine."""
    policy = sf.within(sf.Line(0, 1, cells=10), 0.1, sources="boundary")
    assert policy.distance(0, 9) == policy.distance(9, 0) == 2
    assert policy.distance(0, sf.ABSENT) == policy.distance(sf.ABSENT, 9) == 1
    assert policy.eccentricity == 5
    assert sf.within(sf.Line(0, 1, cells=10), 0.1).distance(0, 9) == 9


def test_standard_policies_have_the_distances_of_lemma_1():
    line = sf.Line(0, 1, cells=10)
    assert (sf.bounded(line).diameter, sf.bounded(line).eccentricity) == (1, math.inf)
    assert (sf.unbounded(line).diameter, sf.unbounded(line).eccentricity) == (2, 1)


def test_vertices_are_numbers_indices_or_nothing():
    policy = sf.threshold(box((3, 4)), 1)
    assert policy.distance((0, 0), (2, 3)) == policy.distance(0, 11) == policy.distance(np.int64(0), 11) == 5


def test_exchange_rates_by_hand():
    line = sf.Line(0, 1, cells=10)
    assert exchange_rate(sf.threshold(line, 1), sf.threshold(line, 1)) == 1
    assert exchange_rate(sf.threshold(line, 1), sf.bounded(line)) == 1
    assert exchange_rate(sf.bounded(line), sf.threshold(line, 1)) == 9
    assert exchange_rate(sf.bounded(line), sf.unbounded(line)) == 2
    assert exchange_rate(sf.threshold(line, 5), sf.threshold(line, 2)) == 3


def test_replace_one_costs_the_whole_diameter_whatever_cells_it_was_declared_on():
    """An account under replace-one promises something about any change at all, also when it was opened on one cell."""
    release = sf.threshold(sf.Line(0, 1, cells=100), 1)
    for cells in (1, 2, 100):
        assert exchange_rate(sf.bounded(sf.Line(0, 1, cells=cells)), release) == 99
    assert exchange_rate(sf.unbounded(sf.Line(0, 1, cells=1)), sf.unbounded(sf.Line(0, 1, cells=7))) == 1


# --- oracle -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_distances_are_those_of_a_search(shape):
    rng = np.random.default_rng(1)
    for policy in small_policies(box(shape)):
        n, table = policy.domain.size, all_distances(policy)
        for u, v in rng.integers(0, n, (40, 2)).tolist():
            assert policy.distance(u, v) == table[u, v], (policy, u, v)
            assert policy.distance(u, sf.ABSENT) == table[u, n], (policy, u)
        assert policy.diameter == table[:n, :n].max(), policy
        assert policy.eccentricity == table[:n, n].max(), policy


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_exchange_rates_are_never_below_the_longest_path(shape):
    """Exact where the way through ⊥ is not shorter; else above, never below: an account may be over-charged only."""
    exact = 0
    policies = list(small_policies(box(shape)))
    tables = [all_distances(policy) for policy in policies]
    for account in policies:
        pairs = account.edges()
        for release, table in zip(policies, tables, strict=True):
            longest = max(table[pairs[:, 0], pairs[:, 1]].max(initial=0), 1)  # ⊥ = -1 is the last row
            try:
                rate = exchange_rate(account, release)
            except sf.PolicyMismatch:
                rate = math.inf
            assert rate >= longest, (account, release)
            exact += rate == longest
    assert exact >= 0.9 * len(policies) ** 2


@settings(deadline=None, max_examples=50)
@given(data=st.data(), cells=st.integers(1, 8))
def test_distances_in_random_graphs(data, cells):
    policy = random_graph(data, cells)
    n, table = cells, all_distances(policy)
    assert policy.diameter == table[:n, :n].max()
    assert policy.eccentricity == (table[:n, n].max() if policy.absent is not None else math.inf)
    for u in range(n):
        assert policy.distance(u, sf.ABSENT) == table[u, n]
        assert [policy.distance(u, v) for v in range(n)] == table[u, :n].tolist()


@settings(deadline=None)
@given(data=st.data(), cells=st.integers(2, 8))
def test_exchange_rates_between_random_graphs_and_structured_policies(data, cells):
    drawn = random_graph(data, cells)
    other = data.draw(st.sampled_from([*small_policies(drawn.domain), drawn]))
    assume(cells > 1)
    for account, release in ((drawn, other), (other, drawn)):
        pairs = account.edges()
        longest = max(all_distances(release)[pairs[:, 0], pairs[:, 1]].max(initial=0), 1)
        try:
            rate = exchange_rate(account, release)
        except sf.PolicyMismatch:
            rate = math.inf
        assert rate >= longest


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(50, 45), (13, 13, 14)], ids=str)
def test_on_larger_domains_with_sources_figures_are_upper_bounds(shape):
    policy = sf.within(box(shape), 0.06, sources=[(0.1,) * len(shape), (0.9,) * len(shape)])
    table = all_distances(policy)
    n = policy.domain.size
    assert policy.eccentricity == table[:n, n].max()
    assert policy.diameter >= table[:n, :n].max()


# --- refusals ---------------------------------------------------------------------------------------------------------

LINE = sf.Line(0, 1, cells=4)


@pytest.mark.parametrize(
    ("vertex", "message"),
    [
        (4, "u=4 is not a cell of this domain, which has 4 cells."),
        (-1, "u=-1 is not a cell of this domain, which has 4 cells."),
        (True, "u=True is not a cell: give its number, its index tuple, or sf.ABSENT."),
        ("a", "u='a' is not a cell: give its number, its index tuple, or sf.ABSENT."),
        ((9,), "index does not lie in the shape (4,) of the domain."),
    ],
)
def test_what_is_no_vertex_is_refused(vertex, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.threshold(LINE, 1).distance(vertex, 0)
    assert str(refusal.value) == message


def test_edges_on_other_cells_cannot_be_compared():
    with pytest.raises(sf.PolicyMismatch) as refusal:
        exchange_rate(sf.threshold(LINE, 1), sf.threshold(sf.Line(0, 1, cells=5), 1))
    assert str(refusal.value) == (
        "the account's policy (one record moves by at most 1 cell (counted along the axes); the number of records is "
        "public) lives on the cells of Line(0, 1, cells=4), the release on Line(0, 1, cells=5): their edges cannot be "
        "compared. Use the account's domain, or another account."
    )


def test_what_a_release_does_not_hide_has_no_price():
    with pytest.raises(sf.PolicyMismatch) as refusal:
        exchange_rate(sf.unbounded(LINE), sf.bounded(LINE))
    assert str(refusal.value) == (
        "the account promises to hide that one record is added or removed, wherever it lies (add/remove); a release "
        "that hides only that one record is replaced by any other record (replace-one); the number of records is "
        "public says nothing about some of these changes, at any price. Nothing was drawn or recorded."
    )


def test_the_diameter_of_a_large_drawn_graph_takes_a_few_searches():
    cells = 12_000
    path = np.stack([np.arange(cells - 1), np.arange(1, cells)], axis=-1)
    assert sf.graph(sf.Line(0, 1, cells=cells), path).diameter == cells - 1


def test_distances_in_very_large_boxes_are_refused():
    policy = sf.threshold(sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(200, 200, 200)), 2)
    with pytest.raises(sf.TooLarge) as refusal:
        policy.distance((0, 0, 0), (199, 199, 199))
    assert str(refusal.value) == "distances in a box of 8,000,000 cells are not computed (at most 4,000,000)."
