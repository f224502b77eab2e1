"""The policies that people name, the graphs that they draw, and what is refused."""

from __future__ import annotations

import json
import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from policy_oracle import box, small_policies

import sfumato as sf
from sfumato.errors import FileFormatError
from sfumato.policies import Stencil, builders, policy_from_spec

LINE = sf.Line(0, 1, cells=4)
GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(2, 3))
TRAMS = sf.Categories(["bus", "tram", "rest"])
PATH = {(0, 1), (1, 2), (2, 3)}


def edges(policy):
    return {tuple(pair) for pair in policy.edges().tolist()}


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_replace_one_joins_every_two_cells_and_publishes_the_total():
    policy = sf.bounded(TRAMS)
    assert edges(policy) == {(0, 1), (0, 2), (1, 2)}
    assert policy.total_is_public
    assert policy.describe() == (
        "one record is replaced by any other record (replace-one); the number of records is public"
    )


def test_add_remove_joins_every_cell_to_nothing():
    policy = sf.unbounded(TRAMS)
    assert edges(policy) == {(0, -1), (1, -1), (2, -1)}
    assert not policy.total_is_public
    assert policy.allows_dropping
    assert policy.describe() == "one record is added or removed, wherever it lies (add/remove)"


def test_threshold_counts_cells_along_the_axes():
    assert edges(sf.threshold(LINE, 1)) == PATH
    assert edges(sf.threshold(LINE, 2)) == PATH | {(0, 2), (1, 3)}
    assert edges(sf.threshold(LINE, 99)) == edges(sf.bounded(LINE))
    assert edges(sf.threshold(GRID, 1)) == {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}
    assert (0, 4) in edges(sf.threshold(GRID, 2))
    assert sf.threshold(LINE, 1).describe() == (
        "one record moves by at most 1 cell (counted along the axes); the number of records is public"
    )
    assert "at most 2 cells" in sf.threshold(LINE, 2).describe()


@pytest.mark.parametrize("shape", [(9,), (4, 5), (2, 3, 4)])
@pytest.mark.parametrize("theta", [1, 2, 3, 7])
def test_threshold_joins_exactly_the_cells_within_theta(shape, theta):
    domain = box(shape)
    index = np.stack(np.unravel_index(np.arange(domain.size), shape), axis=-1)
    apart = np.abs(index[:, None] - index[None]).sum(axis=-1)
    want = {(u, v) for u in range(domain.size) for v in range(u + 1, domain.size) if apart[u, v] <= theta}
    assert {(min(pair), max(pair)) for pair in edges(sf.threshold(domain, theta))} == want


def test_a_graph_is_what_was_drawn():
    policy = sf.graph(LINE, [(0, 1), (2, 1), (1, 2), (3, 2), (3, sf.ABSENT)])
    assert edges(policy) == PATH | {(3, -1)}
    assert policy.absent.tolist() == [False, False, False, True]
    assert (
        policy.describe() == "one record changes along one of 3 listed edges or appears or vanishes in one of 1 cells"
    )
    assert sf.graph(LINE, sorted(PATH)).describe() == (
        "one record changes along one of 3 listed edges; the number of records is public"
    )
    assert not policy.structured
    assert repr(sf.ABSENT) == "ABSENT"
    assert pickle.loads(pickle.dumps(sf.ABSENT)) == sf.ABSENT


@pytest.mark.parametrize(
    "given",
    [
        [(0, 1), (1, 2), (2, 3)],
        [[1, 0], [2, 1], [3, 2]],
        iter([(0, 1), (1, 2), (2, 3)]),
        [((0,), (1,)), ((1,), (2,)), ((2,), (3,))],
        np.array([(0, 1), (1, 2), (2, 3)], dtype=np.int32),
        np.array([(0, 1), (1, 2), (2, 3)], dtype=np.uint8),
        nx.path_graph(4),
        nx.path_graph(4, create_using=nx.DiGraph),
        sp.csr_matrix(np.eye(4, k=1)),
        sp.csr_array(nx.to_scipy_sparse_array(nx.path_graph(4))),
    ],
    ids=["tuples", "lists", "iterator", "indices", "int32", "uint8", "networkx", "directed", "sparse", "symmetric"],
)
def test_a_graph_comes_in_many_forms(given):
    assert sf.graph(LINE, given) == sf.graph(LINE, sorted(PATH))


def test_nothing_in_arrays_matrices_and_labels():
    """⊥ is -1 in an array, one row more in an adjacency matrix, ABSENT in a list; cells may be labels or indices."""
    want = {(0, 1), (1, 2), (2, -1)}
    adjacency = sp.lil_matrix((4, 4), dtype=int)
    for u, v in [(0, 1), (1, 2), (2, 3)]:
        adjacency[u, v] = 1
    for given in (np.array([(0, 1), (1, 2), (2, -1)]), adjacency.tocsr(), [(0, 1), (1, 2), (2, sf.ABSENT)]):
        assert edges(sf.graph(sf.Line(0, 1, cells=3), given)) == want
    assert edges(sf.graph(TRAMS, [("bus", "tram"), ("tram", "rest"), ("rest", sf.ABSENT)])) == want
    grid = nx.grid_2d_graph(2, 3)
    assert edges(sf.graph(GRID, grid)) == edges(sf.threshold(GRID, 1))


def test_a_graph_in_parts_is_allowed_only_when_asked_for():
    policy = sf.graph(LINE, [(0, 1), (2, 3), (3, sf.ABSENT)], publish_component_totals=True)
    assert not policy.connected
    label, public = policy.components
    assert label[0] == label[1] != label[2] == label[3]
    assert public[label].tolist() == [True, True, False, False]
    assert sf.graph(LINE, sorted(PATH)).connected


# --- values, files, scale ---------------------------------------------------------------------------------------------

EVERY = [
    *small_policies(LINE),
    *small_policies(box((3, 4))),
    sf.bounded(TRAMS),
    sf.unbounded(TRAMS),
    sf.graph(TRAMS, [("bus", "tram"), ("tram", "rest"), ("rest", sf.ABSENT)]),
    sf.graph(LINE, sorted(PATH)),
    sf.graph(LINE, [(0, 1)], publish_component_totals=True),
    sf.graph(TRAMS, [(i, sf.ABSENT) for i in range(3)]),
    sf.threshold(sf.Line(0, 1, cells=1), 1),
]


@pytest.mark.parametrize("policy", EVERY, ids=repr)
def test_a_policy_survives_its_description(policy):
    again = policy_from_spec(json.loads(json.dumps(policy.spec())))
    assert again == policy
    assert hash(again) == hash(policy)
    assert again.fingerprint == policy.fingerprint
    assert again.describe() == policy.describe()
    assert np.array_equal(again.edges(), policy.edges())
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_different_policies_have_different_fingerprints():
    assert len({policy.fingerprint for policy in EVERY}) == len(EVERY)
    assert sf.bounded(LINE) != "bounded"
    assert sf.within(LINE, 0.25) == sf.within(LINE, "1/4")
    assert sf.within(LINE, 0.25) != sf.within(LINE, 0.25, metric="chebyshev")


def test_a_million_cells_need_no_edge_list(monkeypatch):
    """Sensitivity, distance, diameter, plan and price of a policy with many million edges come from its stencil."""

    def refuse(self, shape):
        raise AssertionError("an edge list was made")

    monkeypatch.setattr(Stencil, "edges", refuse)
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(1024, 1024))
    policy = sf.threshold(grid, 8)
    assert policy.connected
    assert policy.diameter == 2 * 1023 / 8 + 1 / 4
    assert policy.distance((0, 0), (1023, 1023)) == 256
    assert sf.plan(policy, sf.ranges(), 1.0).mechanism.privacy_loss <= 1
    near = sf.within(grid, 0.01, sources="boundary")
    assert sf.plan(near, sf.histogram(), 1.0).expected_error > 0
    assert sf.policies.exchange_rate(policy, sf.threshold(grid, 2)) == 4


# --- refusals ---------------------------------------------------------------------------------------------------------

NOT_A_CELL = "which is not a cell: give numbers from 0 to 3, index tuples, labels or sf.ABSENT."
NOT_PAIRS = "edges must be pairs of cells: one entry does not have two ends."


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: sf.threshold(LINE, 0), "theta=0 must be a whole number of at least 1."),
        (lambda: sf.threshold(LINE, 1.5), "theta=1.5 must be a whole number of at least 1."),
        (lambda: sf.threshold(LINE, True), "theta=True must be a whole number of at least 1."),
        (
            lambda: sf.threshold(TRAMS, 1),
            "threshold needs a domain whose axes are all intervals; labels have no distance. Use sf.graph.",
        ),
        (lambda: sf.graph(LINE, []), "edges is empty: a policy without edges hides nothing."),
        (lambda: sf.graph(LINE, [(1, 1)]), "edges joins the vertex 1 to itself. Leave self-loops out."),
        (
            lambda: sf.graph(LINE, np.eye(4, dtype=int)[:, :2]),
            "edges joins the vertex 0 to itself. Leave self-loops out.",
        ),
        (lambda: sf.graph(LINE, np.array([[0, 4]])), "edges names the vertex 4, but the cells are numbered 0 to 3."),
        (lambda: sf.graph(LINE, np.array([[0, -2]])), "edges names the vertex -2, but the cells are numbered 0 to 3."),
        (lambda: sf.graph(LINE, [(0, 4)]), f"edges names 4, {NOT_A_CELL}"),
        (lambda: sf.graph(LINE, [(0, -1)]), f"edges names -1, {NOT_A_CELL}"),
        (lambda: sf.graph(LINE, [(0, True)]), f"edges names True, {NOT_A_CELL}"),
        (lambda: sf.graph(LINE, [(0, 1.0)]), f"edges names 1.0, {NOT_A_CELL}"),
        (lambda: sf.graph(LINE, [("a", "b")]), f"edges names 'a', {NOT_A_CELL}"),
        (lambda: sf.graph(LINE, [(0, (4,))]), "index does not lie in the shape (4,) of the domain."),
        (lambda: sf.graph(TRAMS, [("bus", "ship")]), "edges names 'ship', which is not a label of the domain."),
        (lambda: sf.graph(LINE, [(0, 1, 2)]), NOT_PAIRS),
        (lambda: sf.graph(LINE, [0, 1]), NOT_PAIRS),
        (lambda: sf.graph(LINE, ["01"]), NOT_PAIRS),
        (
            lambda: sf.graph(LINE, 7),
            "edges must be pairs of cells, a networkx graph, or a SciPy sparse adjacency matrix.",
        ),
        (
            lambda: sf.graph(LINE, np.array([[0.0, 1.0]])),
            "edges as an array needs whole numbers in two columns, -1 for ABSENT.",
        ),
        (
            lambda: sf.graph(LINE, np.array([0, 1])),
            "edges as an array needs whole numbers in two columns, -1 for ABSENT.",
        ),
        (
            lambda: sf.graph(LINE, sp.eye(3)),
            "edges as an adjacency matrix has shape (3, 3); a domain of 4 cells needs 4 rows and columns, or one more "
            "for ⊥.",
        ),
        (
            lambda: sf.graph(LINE, [(0, 1), (2, 3)]),
            "edges leaves the 4 cells in 2 parts that no path joins; the exact number of records in 2 of them would be "
            "published. Add edges, or ask for it with publish_component_totals=True.",
        ),
        (
            lambda: sf.graph(LINE, [(0, 1), (2, sf.ABSENT)]),
            "edges leaves the 4 cells in 3 parts that no path joins; the exact number of records in 2 of them would be "
            "published. Add edges, or ask for it with publish_component_totals=True.",
        ),
    ],
)
def test_what_is_no_policy_is_refused(build, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build()
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"name": "bounded"},
        {"name": "bounded", "domain": {}},
        {"name": "threshold", "domain": LINE.spec()},
        {"name": "threshold", "domain": LINE.spec(), "theta": 1, "more": 2},
        {"name": "within", "domain": LINE.spec(), "delta": "a"},
        {"name": "graph", "domain": LINE.spec(), "edges": [[0, 9]]},
        {"name": "graph", "domain": LINE.spec(), "edges": [[0, 1, 2]]},
    ],
)
def test_a_damaged_description_is_refused(spec):
    with pytest.raises(FileFormatError) as refusal:
        policy_from_spec(spec)
    assert str(refusal.value) == "the description of the policy is damaged."


@pytest.mark.parametrize("name", ["os.system", "unheard of"])
def test_an_unknown_policy_is_refused_not_imported(name):
    with pytest.raises(FileFormatError) as refusal:
        policy_from_spec({"name": name, "domain": LINE.spec()})
    assert str(refusal.value) == f"the policy {name!r} is not known to this version of sfumato."


def test_edge_lists_beyond_reason_are_refused():
    with pytest.raises(sf.TooLarge) as refusal:
        sf.bounded(sf.Line(0, 1, cells=20_000)).edges()
    assert str(refusal.value) == (
        "this policy has 199,990,000 edges between cells, too many to list (at most 50,000,000). "
        "Sensitivities, distances and plans do not need the list."
    )


def test_the_tree_of_many_edges_is_refused_before_they_are_listed():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(512, 512))
    with pytest.raises(sf.TooLarge) as refusal:
        sf.within(grid, 0.003, sources="boundary").spanner()
    assert str(refusal.value) == (
        "a spanning tree of 262,144 cells with sources takes a search over 3,130,386 edges (at most 300,000). Nothing "
        "was computed. Use fewer cells, or a mechanism that needs no tree."
    )


def test_more_edges_than_can_be_listed_are_refused_with_what_they_would_take(monkeypatch):
    monkeypatch.setattr(builders, "LARGEST_EDGE_LIST", 2)
    with pytest.raises(sf.TooLarge) as refusal:
        sf.graph(sf.Line(0, 1, cells=4), [(0, 1), (1, 2), (2, 3)])
    assert str(refusal.value) == (
        "edges lists 3 pairs, which need about 0.0 GiB (at most 2). Nothing was built. Moves by a rule need no list: "
        "sf.policy(domain, hide=…)."
    )
