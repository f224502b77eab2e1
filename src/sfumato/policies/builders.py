"""The policies people name: replace-one, add/remove, Blowfish thresholds, any graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain, Labels
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import is_whole, positive_int
from sfumato.linear import distinct_rows
from sfumato.policies.absent import ABSENT, _Absent
from sfumato.policies.listed_moves import Explicit
from sfumato.policies.moves import LARGEST_EDGE_LIST, Complete, NoMoves, Stencil
from sfumato.policies.policy import Policy
from sfumato.policies.within import box, refuse_apart
from sfumato.relations import anything, presence

# What a listed edge takes while a policy is built of it, described and planned for.
BYTES_AN_EDGE = 240


def bounded(domain: Domain) -> Policy:
    """Replace-one (bounded differential privacy): any record may become any other; the number of records is public.

    >>> sf.bounded(sf.Line(0, 24, cells=24)).describe()
    'one record is replaced by any other record (replace-one); the number of records is public'
    """
    words = "one record is replaced by any other record (replace-one); the number of records is public"
    joined = None
    if domain.apart:  # any other record may be elsewhere
        words = (
            "one record is replaced by any other record, or by one beyond the bounds, which is left out (replace-one)"
        )
        joined = np.broadcast_to(np.True_, domain.shape)
    return Policy(domain=domain, moves=Complete(), joined=joined, name="bounded", words=words, relation=anything())


def unbounded(domain: Domain) -> Policy:
    """Add/remove (unbounded differential privacy): any record may be there or not.

    >>> sf.unbounded(sf.Line(0, 24, cells=24)).total_is_public
    False
    """
    absent = np.broadcast_to(np.True_, domain.shape)  # says so once, however many cells there are
    words = "one record is added or removed, wherever it lies (add/remove)"
    return Policy(domain=domain, moves=NoMoves(), joined=absent, name="unbounded", words=words, relation=presence())


def threshold(domain: Domain, theta: int) -> Policy:
    """Blowfish G^θ: cells whose indices differ by at most θ in L1 are neighbours; the number of records is public.

    >>> sf.threshold(sf.Line(0, 24, cells=24), theta=2).distance(0, 23)
    12.0
    """
    refuse_apart(domain, "threshold")
    theta = positive_int(theta, "theta")
    if not domain.is_ordered:
        raise InvalidInput(
            "threshold needs a domain whose axes are all intervals; labels have no distance. Use sf.graph."
        )
    reach = [min(theta, n - 1) for n in domain.shape]
    lengths = box(reach)
    lengths = lengths[lengths.sum(axis=1) <= theta]
    unit = "cell" if theta == 1 else "cells"
    words = f"one record moves by at most {theta} {unit} (counted along the axes); the number of records is public"
    return Policy(
        domain=domain, moves=Stencil(lengths), joined=None, name="threshold", arguments={"theta": theta}, words=words
    )


def graph(domain: Domain, edges: Any, *, publish_component_totals: bool = False) -> Policy:
    """Any policy: a list of pairs of cells, ABSENT standing for ⊥; also a networkx graph or a SciPy sparse adjacency
    matrix.

    Cells are numbers in C order, index tuples, or labels where the domain is `Categories` of strings. In an integer
    array ⊥ is -1; an adjacency matrix has one row a cell, and one more at the end where there is a ⊥. A graph that is
    not connected would publish the total of each of its parts exactly: it is refused unless
    `publish_component_totals=True` asks for that.

    >>> sf.graph(sf.Line(0, 3, cells=3), edges=[(0, 1), (1, 2), (2, sf.ABSENT)]).edges().tolist()
    [[0, 1], [1, 2], [2, -1]]
    """
    refuse_apart(domain, "graph")
    pairs = _pairs(domain, edges)
    if len(pairs) > LARGEST_EDGE_LIST:
        raise TooLarge(
            f"edges lists {len(pairs):,} pairs, which need about {len(pairs) * BYTES_AN_EDGE / 2**30:.1f} GiB (at most "
            f"{LARGEST_EDGE_LIST:,}). Nothing was built. Moves by a rule need no list: sf.policy(domain, hide=…)."
        )
    if len(pairs) == 0:
        raise InvalidInput("edges is empty: a policy without edges hides nothing.")
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    if (low == high).any():
        raise InvalidInput(f"edges joins the vertex {int(low[low == high][0])} to itself. Leave self-loops out.")
    if (low < ABSENT).any() or (high >= domain.size).any():
        wrong = int(low.min()) if low.min() < ABSENT else int(high.max())
        raise InvalidInput(f"edges names the vertex {wrong}, but the cells are numbered 0 to {domain.size - 1}.")
    absent = None
    if (low == ABSENT).any():
        absent = np.zeros(domain.size, dtype=bool)
        absent[high[low == ABSENT]] = True
        absent = absent.reshape(domain.shape)
    inner = distinct_rows(np.stack([low, high], axis=-1)[low != ABSENT])
    appear = [] if absent is None else np.flatnonzero(absent).tolist()
    words = f"one record changes along one of {len(inner)} listed edges"
    words += f" or appears or vanishes in one of {len(appear)} cells" if appear else "; the number of records is public"
    policy = Policy(
        domain=domain,
        moves=Explicit(inner) if len(inner) else NoMoves(),
        joined=absent,
        name="graph",
        arguments={
            "edges": inner.tolist() + [[cell, -1] for cell in appear],
            "publish_component_totals": bool(publish_component_totals),
        },
        words=words,
    )
    if not policy.connected and not publish_component_totals:
        label, public = policy.components
        raise InvalidInput(
            f"edges leaves the {domain.size} cells in {len(np.unique(label))} parts that no path joins; the exact "
            f"number of records in {int(public[np.unique(label)].sum())} of them would be published. "
            "Add edges, or ask for it with publish_component_totals=True."
        )
    return policy


def _pairs(domain: Domain, edges: Any) -> NDArray[np.int64]:
    if hasattr(edges, "tocoo"):
        return _from_sparse(domain, edges)
    if hasattr(edges, "edges") and callable(edges.edges):
        edges = list(edges.edges())
    if isinstance(edges, np.ndarray):
        if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
            raise InvalidInput("edges as an array needs whole numbers in two columns, -1 for ABSENT.")
        return edges.astype(np.int64)
    if not isinstance(edges, Iterable):
        raise InvalidInput("edges must be pairs of cells, a networkx graph, or a SciPy sparse adjacency matrix.")
    labels = _labels(domain)
    found = []
    for edge in edges:
        ends = tuple(edge) if isinstance(edge, Iterable) and not isinstance(edge, str) else ()
        if len(ends) != 2:
            raise InvalidInput("edges must be pairs of cells: one entry does not have two ends.")
        found += [_cell(domain, end, labels) for end in ends]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _labels(domain: Domain) -> dict[Any, int]:
    """The cell of every label, where one may name cells by them."""
    axis = domain.axes[0]
    if domain.ndim != 1 or not axis.named:
        return {}
    return {label: cell for cell, label in enumerate(cast(Labels, axis).labels)}


def _from_sparse(domain: Domain, matrix: Any) -> NDArray[np.int64]:
    entries = matrix.tocoo()
    if entries.shape not in ((domain.size,) * 2, (domain.size + 1,) * 2):
        raise InvalidInput(
            f"edges as an adjacency matrix has shape {entries.shape}; a domain of {domain.size} cells needs "
            f"{domain.size} rows and columns, or one more for ⊥."
        )
    there = entries.data != 0
    pairs = np.stack([entries.row[there], entries.col[there]], axis=-1).astype(np.int64)
    return np.where(pairs == domain.size, ABSENT, pairs)


def _cell(domain: Domain, end: Any, labels: dict[Any, int]) -> int:
    if isinstance(end, _Absent):
        return ABSENT
    if isinstance(end, str) and labels:
        if end not in labels:
            raise InvalidInput(f"edges names {end!r}, which is not a label of the domain.")
        return labels[end]
    if isinstance(end, tuple):
        return int(domain.ravel(end))
    if not is_whole(end) or not 0 <= end < domain.size:
        raise InvalidInput(
            f"edges names {end!r}, which is not a cell: give numbers from 0 to {domain.size - 1}, index tuples, "
            "labels or sf.ABSENT."
        )
    return int(end)
