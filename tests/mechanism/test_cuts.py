"""Cuts: sets of cells and the edges of a policy that they cut; their largest number is the sensitivity."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from mechanism_oracle import box, cases, label

import sfumato as sf
from sfumato.mechanism.cells.cuts import crossings, cut_sensitivity, cuts

LINE = sf.threshold(sf.Line(0, 1, cells=4), 1)


def squares(n, shift):
    """The blocks of 2 × 2 cells of an n × n grid that begin at an even (or, shifted, odd) place along both axes."""
    found = []
    for i in range(shift, n - 1, 2):
        for j in range(shift, n - 1, 2):
            block = np.zeros((n, n), dtype=int)
            block[i : i + 2, j : j + 2] = 1
            found.append(block.ravel())
    return np.array(found)


def test_the_triangle_of_four_bins_has_each_edge_cut_once():
    """Section 5.1, with the source at the lower end: moves of one bin, and points that appear in the first one."""
    policy = sf.graph(sf.Line(0, 1, cells=4), [(0, 1), (1, 2), (2, 3), (0, sf.ABSENT)])
    triangle = np.triu(np.ones((4, 4)))
    assert sorted(map(tuple, cuts(policy, triangle).toarray().T)) == sorted(map(tuple, np.eye(4)))
    assert cut_sensitivity(policy, triangle) == 1
    assert cut_sensitivity(sf.bounded(policy.domain), triangle) == 3
    assert cut_sensitivity(policy, np.eye(4)) == 2


@pytest.mark.parametrize("n", [4, 6, 8])
def test_shifted_squares_add_nothing_to_the_sensitivity(n):
    """Figure 1: under moves of one step along an axis the dashed squares cut edges inside the solid ones."""
    policy = sf.threshold(box((n, n)), 1)
    solid, dashed = squares(n, 0), squares(n, 1)
    assert cut_sensitivity(policy, solid) == 2
    assert cut_sensitivity(policy, np.concatenate([solid, dashed])) == 2
    together = cuts(policy, solid).sum(axis=0), cuts(policy, dashed).sum(axis=0)
    assert not np.multiply(*map(np.asarray, together)).any()


def test_shifted_squares_do_add_where_diagonal_moves_are_hidden():
    """Section 5.3: in two dimensions the sensitivity is 4, since (i, j) and (i + 1, j + 1) are neighbours as well."""
    policy = sf.within(box((8, 8)), 0.01)
    solid, dashed = squares(8, 0), squares(8, 1)
    assert cut_sensitivity(policy, solid) == 2
    assert cut_sensitivity(policy, np.concatenate([solid, dashed])) == 4


@pytest.mark.parametrize("policy", list(cases()), ids=label)
def test_the_most_cuts_are_the_sensitivity(policy):
    rng = np.random.default_rng(5)
    for rows in (1, 3, 20):
        sets = rng.integers(0, 2, (rows, policy.domain.size))
        assert cut_sensitivity(policy, sets) == policy.sensitivity(sets)


@given(st.data())
def test_cuts_by_brute_force(data):
    n = data.draw(st.integers(2, 7), label="cells")
    pairs = [(u, v) for u in range(n) for v in [*range(u + 1, n), sf.ABSENT]]
    edges = data.draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True), label="edges")
    policy = sf.graph(sf.Line(0, 1, cells=n), edges, publish_component_totals=True)
    sets = data.draw(st.lists(st.sets(st.integers(0, n - 1)), min_size=1, max_size=5), label="sets")
    members = np.array([[cell in chosen for cell in range(n)] for chosen in sets])
    listed = policy.edges()
    want = [[(u in chosen) != (v in chosen) for u, v in listed.tolist()] for chosen in sets]
    assert np.array_equal(cuts(policy, members).toarray(), want)
    assert np.array_equal(crossings(members, listed), want)
    assert cut_sensitivity(policy, scipy.sparse.coo_matrix(members)) == max(map(sum, zip(*want, strict=True)))


def test_no_sets_and_no_edges_cut_nothing():
    assert cut_sensitivity(LINE, np.zeros((0, 4))) == 0
    assert cut_sensitivity(LINE, np.ones((3, 4))) == 0
    assert cut_sensitivity(sf.bounded(sf.Line(0, 1, cells=1)), [[1]]) == 0


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (
            [[1, 0, 0]],
            "sets has 3 columns, but the domain has 4 cells: one column a cell.",
        ),
        (
            [[1, 0, 0, 2]],
            "sets holds entries other than 0 and 1: a cell is in a set or it is not.",
        ),
        (
            "prefixes",
            "sets must be a matrix of zeros and ones: one row a set, one column a cell.",
        ),
    ],
)
def test_what_is_no_collection_of_sets_is_refused(sets, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        cuts(LINE, sets)
    assert str(refusal.value) == message
