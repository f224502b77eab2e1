"""Transformational equivalence: what holds for every policy, what holds for trees alone, and what does not hold.

Numbers of theorems are those of Haney, Machanavajjhala, Ding (VLDB 2015).
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_oracle import box, brute_sensitivity

import sfumato as sf
from sfumato.linear import Identity, Prefix
from sfumato.policies import transform


@st.composite
def graphs(draw, largest=8, extra=8):
    """Connected graphs over a few cells, with ⊥ (written -1) or without; trees where `extra` is 0."""
    cells = draw(st.integers(2, largest))
    first = draw(st.sampled_from([-1, 0]))
    pairs = {(draw(st.integers(first, v - 1)), v) for v in range(first + 1, cells)}
    vertex = st.integers(first, cells - 1)
    pairs |= {(u, v) for u, v in draw(st.lists(st.tuples(vertex, vertex), max_size=extra)) if u < v}
    return sf.graph(sf.Line(0, 1, cells=cells), np.array(sorted(pairs)))


def matrices(rows, cols, bound=3):
    entries = st.lists(st.integers(-bound, bound), min_size=rows * cols, max_size=rows * cols)
    return entries.map(lambda e: np.array(e, dtype=np.int64).reshape(rows, cols))


def counts_of(draw, policy):
    return draw(matrices(1, policy.domain.size, bound=50))[0]


def transformed(draw, policy):
    """With any cell in the place of ⊥."""
    if policy.absent is not None:
        return transform(policy)
    return transform(policy, replaced=draw(st.none() | st.integers(0, policy.domain.size - 1)))


def kept(side, x):
    return np.delete(x, side.root, axis=-1) if side.total_is_public else x


def total_of(side, x):
    return int(x.sum()) if side.total_is_public else None


def pinv(matrix):
    """With a cut-off far above rounding: the matrices are small and whole, and their rank may be low."""
    return np.linalg.pinv(matrix, rcond=1e-10)


def differences(policy):
    """x' - x for every pair of neighbours (one of each two signs)."""
    size = policy.domain.size
    found = np.zeros((len(policy.edges()), size + 1), dtype=np.int64)
    for row, (u, v) in zip(found, policy.edges(), strict=True):
        row[u], row[v] = row[u] + 1, row[v] - 1
    return found[:, :size]


# by hand


def test_the_line_of_figure_two_has_prefix_sums_on_its_edges():
    line = transform(sf.threshold(sf.Line(0, 4, cells=4), theta=1))
    assert line.incidence.dense().tolist() == [[1, 0, 0], [-1, 1, 0], [0, -1, 1]]
    x = np.array([3, 1, 4, 1])
    assert line.database(x).tolist() == [3, 4, 8]
    assert line.workload(Prefix(4)).toarray().tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert line.answers(Prefix(4), line.database(x), total=9).tolist() == [3, 4, 8, 9]


def test_add_remove_is_the_identity():
    star = transform(sf.unbounded(box((2, 2))))
    assert star.incidence.dense().tolist() == np.eye(4).tolist()
    assert star.database(np.array([[3, 1], [4, 1]])).tolist() == [3, 1, 4, 1]
    assert star.is_tree and star.edge_sensitivity == 1


def test_a_spanner_is_transformed_like_a_policy():
    spanner = sf.threshold(sf.Line(0, 1, cells=10), theta=3).spanner()
    tree = transform(spanner)
    assert tree.is_tree
    x = np.arange(10)
    z = tree.database(x)
    assert z[:6].tolist() == [0, 1, 3, 4, 6, 7]  # internal edges carry the count of their leaf
    assert z[6:].tolist() == [0 + 1 + 2, 0 + 1 + 2 + 3 + 4 + 5, 36]  # external ones a prefix sum
    assert tree.answers(Identity(10), z, total=45).tolist() == x.tolist()


# what holds for every connected policy


@settings(max_examples=60, deadline=None)
@given(data=st.data(), policy=graphs())
def test_incidence_has_full_row_rank_and_edge_values_give_the_counts_back(data, policy):
    """Lemma 4.8."""
    side = transformed(data.draw, policy)
    p = side.incidence.dense()
    assert p.shape == (policy.domain.size - side.total_is_public, len(policy.edges()))
    assert np.linalg.matrix_rank(p) == len(p)
    x = counts_of(data.draw, policy)
    assert side.incidence.forward(side.database(x)) == pytest.approx(kept(side, x), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), policy=graphs())
def test_sensitivity_under_the_policy_is_sensitivity_to_one_edge_value(data, policy):
    """Lemma 4.7, in integers."""
    side = transformed(data.draw, policy)
    w = data.draw(matrices(3, policy.domain.size))
    norms = np.abs(side.workload(w).toarray()).sum(axis=0)
    assert norms.max() == policy.sensitivity(w) == brute_sensitivity(policy, w)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), policy=graphs())
def test_answers_from_edge_values_are_the_answers(data, policy):
    """W·x = W_G·x_G + c(W, n): Theorem 4.1 and the first part of Lemma 4.10."""
    side = transformed(data.draw, policy)
    w = data.draw(matrices(3, policy.domain.size))
    x = counts_of(data.draw, policy)
    total = total_of(side, x)
    assert side.answers(w, side.database(x), total=total) == pytest.approx(w @ x, abs=1e-8)
    if total is not None:
        without = kept(side, w) - w[:, [side.root]]  # W': the root's count is n less all others
        assert (without @ kept(side, x) + side.constant(w, total) == w @ x).all()
        assert (without @ side.incidence.dense() == side.workload(w).toarray()).all()


@settings(max_examples=40, deadline=None)
@given(data=st.data(), policy=graphs(largest=6))
def test_neighbours_without_absence_are_neighbours_with_one_cell_in_its_place(data, policy):
    """The second part of Lemma 4.10: for every change of counts by one record, both ways."""
    side = transformed(data.draw, policy)
    neighbours = {tuple(d) for d in differences(policy)} | {tuple(-d) for d in differences(policy)}
    columns = side.incidence.dense().T
    there = {tuple(c) for c in columns} | {tuple(-c) for c in columns}
    size = policy.domain.size
    unit = np.vstack([np.eye(size, dtype=np.int64), np.zeros((1, size), dtype=np.int64)])
    for u, v in product(range(size + (not side.total_is_public)), repeat=2):
        change = unit[u] - unit[v]
        assert (tuple(change) in neighbours) == (tuple(kept(side, change)) in there)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), policy=graphs(), rows=st.integers(1, 6))
def test_matrix_mechanism_is_the_same_on_cells_and_on_edges(data, policy, rows):
    """Theorem 4.1: the same report for the same noise, also where the strategy has not full column rank."""
    side = transformed(data.draw, policy)
    strategy = data.draw(matrices(rows, policy.domain.size))
    w = data.draw(matrices(2, rows)) @ strategy  # every query is answered by the strategy
    x = counts_of(data.draw, policy)
    noise = np.linspace(-1, 2, rows)
    total = total_of(side, x)
    if total is not None:
        constant = side.constant(w, total)
        w_cells, a_cells = (kept(side, m) - m[:, [side.root]] for m in (w, strategy))
    else:
        constant, w_cells, a_cells = 0, w, strategy
    on_cells = w_cells @ kept(side, x) + constant + w_cells @ pinv(a_cells) @ noise
    w_edges, a_edges = side.workload(w).toarray(), side.workload(strategy).toarray()
    values = side.database(x)
    on_edges = w_edges @ values + constant + w_edges @ pinv(a_edges) @ noise
    assert on_cells == pytest.approx(on_edges, abs=1e-6)
    assert np.abs(a_edges).sum(axis=0).max() == policy.sensitivity(strategy)


def test_reverse_order_of_pseudo_inverses_is_not_why():
    """The printed proof has (AP)⁺ = P⁺A⁺, which fails for a strategy of low rank; W·P·(AP)⁺ = W·A⁺ holds all the
    same, since P has full row rank and W = C·A: both sides are C times the projection on the range of A.
    """
    side = transform(sf.graph(sf.Line(0, 1, cells=2), [(0, 1), (0, sf.ABSENT), (1, sf.ABSENT)]))
    p, a = side.incidence.dense(), np.array([[1, 2]])
    assert not np.allclose(np.linalg.pinv(a @ p), np.linalg.pinv(p) @ np.linalg.pinv(a))
    assert np.allclose(a @ p @ np.linalg.pinv(a @ p), a @ np.linalg.pinv(a))


def test_a_public_total_lowers_the_error_of_a_strategy_over_all_cells():
    """Without ⊥ the equality is about W', A' on the other cells. Over all cells A⁺ does not know that the total is
    public: noise on every count keeps its share of the total's noise, on the edge side that is gone.
    """
    size = 4
    side = transform(sf.bounded(sf.Line(0, 1, cells=size)))
    w_edges = side.workload(Identity(size)).toarray()
    spread = w_edges @ np.linalg.pinv(w_edges)
    assert spread == pytest.approx(np.eye(size) - 1 / size)
    assert (spread**2).sum() == pytest.approx(size - 1)


# what holds for trees


@settings(max_examples=60, deadline=None)
@given(data=st.data(), policy=graphs(largest=20, extra=0))
def test_on_a_tree_edge_values_are_exact_integers(data, policy):
    """Theorem 4.3: the mapping is invertible."""
    side = transformed(data.draw, policy)
    assert side.is_tree
    x = counts_of(data.draw, policy)
    z = side.database(x)
    assert z.dtype == np.int64
    assert (side.incidence.forward(z) == kept(side, x)).all()
    assert z == pytest.approx(side.incidence.pinv(kept(side, x)), abs=1e-8)
    assert (side.database(np.stack([x, 2 * x])) == np.stack([z, 2 * z])).all()
    edge_values = data.draw(matrices(1, len(z)))[0]
    back = side.answers(np.eye(len(x), dtype=np.int64), edge_values, total=total_of(side, x))
    assert (side.database(back) == edge_values).all()


@settings(max_examples=60, deadline=None)
@given(data=st.data(), policy=graphs(extra=0))
def test_on_a_tree_neighbours_are_the_integer_edge_values_at_distance_one(data, policy):
    """Claim 4.2 and Lemma 4.9, both directions."""
    side = transformed(data.draw, policy)
    x = counts_of(data.draw, policy)
    z = side.database(x)
    moved = side.database(x + differences(policy))
    assert (np.abs(moved - z).sum(axis=-1) == 1).all()
    assert len({tuple(row) for row in moved}) == len(z)
    neighbours = {tuple(d) for d in differences(policy)} | {tuple(-d) for d in differences(policy)}
    total = total_of(side, x)
    for j, sign in product(range(len(z)), (1, -1)):
        other = z.copy()
        other[j] += sign
        back = side.answers(np.eye(len(x), dtype=np.int64), other, total=total)
        assert tuple(back - x) in neighbours
    assert side.edge_sensitivity == 1


def test_distance_one_means_neighbours_for_integers_only():
    """Claim 4.2 is printed for real vectors, where half a record on each of two edges is at distance one as well."""
    side = transform(sf.unbounded(sf.Line(0, 1, cells=2)))
    x, half = np.array([1.0, 1.0]), np.array([1.5, 1.5])
    assert np.abs(side.database(half) - side.database(x)).sum() == 1
    assert tuple(half - x) not in {tuple(d) for d in differences(side.policy)}


# spanners: the subgraph approximation, the right way round


@settings(max_examples=60, deadline=None)
@given(policy=graphs())
def test_edge_values_of_a_spanning_tree_move_by_the_stretch(policy):
    """Lemma 4.5 and Corollary 4.6 with the Laplace mechanism, whose loss is exactly this distance times ε."""
    spanner = policy.spanner()
    tree = transform(spanner)
    moved = np.abs(tree.database(differences(policy))).sum(axis=-1)
    assert moved.max() == spanner.stretch


@settings(max_examples=60, deadline=None)
@given(policy=graphs(), data=st.data())
def test_any_mechanism_private_on_the_spanner_is_stretch_times_that_under_the_policy(policy, data):
    """Lemma 4.5 for arbitrary mechanisms on one record: a table of probabilities of three outputs for every value."""
    size = policy.domain.size
    weights = data.draw(matrices(size + 1, 3, bound=9)) + 10
    log = np.log(weights / weights.sum(axis=1, keepdims=True))

    def loss(edges):
        return np.abs(log[edges[:, 0]] - log[edges[:, 1]]).max()  # ⊥ is -1, the last row

    spanner = policy.spanner()
    assert loss(policy.edges()) <= spanner.stretch * loss(spanner.edges()) + 1e-12


def test_the_subgraph_approximation_does_not_hold_the_wrong_way_round():
    """ε on the spanner is not ε under the policy, much less ε/ℓ: on a ring of five the dropped edge costs 4ε."""
    ring = sf.graph(sf.Line(0, 1, cells=5), [(i, (i + 1) % 5) for i in range(5)])
    tree = transform(ring.spanner())
    moved = np.abs(tree.database(differences(ring))).sum(axis=-1)
    assert sorted(moved.tolist()) == [1, 1, 1, 1, 4]


# what does not hold: noisy edge values on a cycle


@pytest.mark.parametrize("cells", [3, 4, 5, 9])
def test_publishing_noisy_edge_values_of_a_cycle_is_caught(cells):
    """z is chosen by a fixed rule, and z + Laplace(1/ε) loses ε·‖z' - z‖₁: 2(n-1)/n for the smallest z, n - 1 for the z
    that leaves one edge empty. Neither is 1.
    """
    ring = sf.graph(sf.Line(0, 1, cells=cells), [(i, (i + 1) % cells) for i in range(cells)])
    side = transform(ring)
    assert not side.is_tree
    assert side.edge_sensitivity == pytest.approx(2 * (cells - 1) / cells)
    moved = side.database(np.zeros(cells) + differences(ring)) - side.database(np.zeros(cells))
    assert np.abs(moved).sum(axis=-1).max() == pytest.approx(side.edge_sensitivity)
    assert side.edge_sensitivity > 1
    through_a_tree = transform(ring.spanner()).database(differences(ring))
    assert np.abs(through_a_tree).sum(axis=-1).max() == cells - 1


@settings(max_examples=40, deadline=None)
@given(policy=graphs())
def test_noisy_edge_values_are_private_on_trees_alone(policy):
    side = transform(policy)
    assert (side.edge_sensitivity == 1) == side.is_tree
    assert side.is_tree or side.edge_sensitivity > 1 + 1e-9


def test_the_report_itself_is_private_on_a_cycle():
    """x + P·η with discrete Laplace noise on each edge of a triangle, by summing over every η that gives a report: the
    log-ratio between neighbours is at most ε (and nearly reaches it), where edge values would have lost 4ε/3 or 2ε.
    """
    epsilon = 1.0
    side = transform(sf.graph(sf.Line(0, 1, cells=3), [(0, 1), (1, 2), (2, 0)]))
    cycle = np.linalg.svd(side.incidence.dense())[2][-1]
    cycle = np.rint(cycle / np.abs(cycle).max()).astype(np.int64)
    assert (side.incidence.forward(cycle) == 0).all()
    turns = np.arange(-60, 61)[:, None] * cycle  # what lies beyond has a probability below e^-150

    def log_probability(flow):
        """Of the report P·flow, up to a constant: flows with the same divergence are whole turns apart."""
        return math.log(np.exp(-epsilon * np.abs(flow + turns).sum(axis=-1)).sum())

    losses = [
        abs(log_probability(np.array([*flow, 0])) - log_probability(np.array([*flow, 0]) + step))
        for flow in product(range(-8, 9), repeat=2)
        for step in np.eye(3, dtype=np.int64)
    ]
    assert 0.8 * epsilon < max(losses) <= epsilon + 1e-12


# refusals


def refusal(act):
    with pytest.raises(sf.InvalidInput) as caught:
        act()
    return str(caught.value)


LINE = sf.threshold(sf.Line(0, 1, cells=4), theta=1)
STAR = sf.unbounded(sf.Line(0, 1, cells=4))


def test_disconnected_policies_are_refused():
    policy = sf.graph(sf.Line(0, 1, cells=4), [(0, 1), (2, 3)], publish_component_totals=True)
    assert refusal(lambda: transform(policy)) == (
        "policy leaves its 4 cells in 2 parts that no path joins; the equivalence holds for one part at a time. "
        "Nothing was computed. Use a policy that is connected."
    )


def test_a_policy_without_edges_is_refused():
    assert refusal(lambda: transform(sf.bounded(sf.Line(0, 1, cells=1)))) == (
        "policy has one cell and no edge: it hides nothing. Nothing was computed."
    )


@pytest.mark.parametrize("cell", [4, -1, 1.0, True])
def test_only_a_cell_can_stand_for_absence(cell):
    message = refusal(lambda: transform(LINE, replaced=cell))
    assert message == f"replaced={cell!r} is not a cell: give a number from 0 to 3."


def test_nothing_stands_for_absence_where_it_is_there():
    assert refusal(lambda: transform(STAR, replaced=0)) == (
        "replaced=0 is for policies without ⊥; this one has it. Leave replaced out."
    )


def test_the_total_is_asked_for_where_it_is_public_and_only_there():
    assert refusal(lambda: transform(LINE).answers(Identity(4), np.zeros(3))) == (
        "total=None, but no record can appear or vanish: give the number of records as total."
    )
    assert refusal(lambda: transform(STAR).answers(Identity(4), np.zeros(4), total=3)) == (
        "total is for policies without ⊥; under this one the number of records is not public."
    )


def test_shapes_that_do_not_fit_are_refused():
    assert refusal(lambda: transform(LINE).workload(Identity(5))) == (
        "workload has 5 columns, but the domain has 4 cells: give one column a cell."
    )
    assert refusal(lambda: transform(LINE).answers(Identity(4), np.zeros(4), total=1)) == (
        "values has shape (4,), but there are 3 edges: one value an edge."
    )
    assert refusal(lambda: transform(LINE).database(np.zeros(3, dtype=np.int64))) == (
        "counts is an array of int64 of shape (3,); give numbers in the domain's shape, (4,), or with 4 along "
        "the last axis."
    )
    assert refusal(lambda: transform(LINE).database(np.array(list("abcd")))) == (
        "counts is an array of <U1 of shape (4,); give numbers in the domain's shape, (4,), or with 4 along "
        "the last axis."
    )


def test_many_edges_are_not_solved_one_by_one():
    side = transform(sf.threshold(sf.Line(0, 1, cells=2001), theta=3))
    with pytest.raises(sf.TooLarge) as caught:
        _ = side.edge_sensitivity
    assert str(caught.value) == "5,997 edges are too many to solve for the flow of each one."
