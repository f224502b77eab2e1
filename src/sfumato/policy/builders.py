"""The policies people name: replace-one, add/remove, δ-neighbourhood, Blowfish thresholds, and any graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain import Domain, Labels, domain_from_spec
from sfumato.errors import FileFormatError, InvalidInput, TooLarge
from sfumato.exact import Number, positive_fraction, positive_int
from sfumato.policy.moves import ABSENT, Complete, Explicit, NoMoves, Stencil, _Absent
from sfumato.policy.policy import Policy

# `within` promises to hide moves up to δ(1 - 10⁻⁹). Half of that margin pays for the rounding of cell edges, the
# other half keeps a distance of exactly δ out of the stencil however it was rounded.
MARGIN = 1e-9

# Moves are told apart by their offset in cells; beyond this many nobody gains from it.
LARGEST_STENCIL = 10_000_000

_NORMS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "euclidean": lambda gaps: np.sqrt((gaps**2).sum(axis=-1)),
    "manhattan": lambda gaps: gaps.sum(axis=-1),
    "chebyshev": lambda gaps: gaps.max(axis=-1),
}


def bounded(domain: Domain) -> Policy:
    """Replace-one (bounded differential privacy): any record may become any other; the number of records is public."""
    words = "one record is replaced by any other record (replace-one); the number of records is public"
    return Policy(domain=domain, moves=Complete(), absent=None, name="bounded", words=words)


def unbounded(domain: Domain) -> Policy:
    """Add/remove (unbounded differential privacy): any record may be there or not."""
    absent = np.ones(domain.shape, dtype=bool)
    words = "one record is added or removed, wherever it lies (add/remove)"
    return Policy(domain=domain, moves=NoMoves(), absent=absent, name="unbounded", words=words)


def threshold(domain: Domain, theta: int) -> Policy:
    """Blowfish G^θ: cells whose indices differ by at most θ in L1 are neighbours; the number of records is public."""
    theta = positive_int(theta, "theta")
    _ordered(domain, "threshold")
    reach = [min(theta, n - 1) for n in domain.shape]
    offsets = _half_box(reach)
    offsets = offsets[np.abs(offsets).sum(axis=1) <= theta]
    unit = "cell" if theta == 1 else "cells"
    words = f"one record moves by at most {theta} {unit} (counted along the axes); the number of records is public"
    return Policy(
        domain=domain, moves=Stencil(offsets), absent=None, name="threshold", arguments={"theta": theta}, words=words
    )


def within(
    domain: Domain, delta: Number, *, sources: str | ArrayLike | None = None, metric: str = "euclidean"
) -> Policy:
    """δ-neighbourhood: one record moves by less than δ, or appears within δ of a source.

    Two cells are neighbours when some points of theirs are closer than δ; in the offsets (a, b) of cells of size h_x
    × h_y that is `‖(h_x·max(|a|-1, 0), h_y·max(|b|-1, 0))‖ < δ`, so even a tiny δ joins cells that touch at a corner.
    With `sources="boundary"` or a list of points, cells nearer than δ to a source are joined to ⊥; without sources
    the number of records is public. The promise is for moves up to δ(1 - 10⁻⁹).
    """
    _ordered(domain, "within")
    exact = positive_fraction(delta, "delta")
    if metric not in _NORMS:
        raise InvalidInput(f"metric={metric!r} is not one of {', '.join(map(repr, _NORMS))}.")
    sides = np.array([axis.high - axis.low for axis in domain.intervals])
    widest = float(_NORMS[metric](sides))
    if exact > positive_fraction(widest, "bounds"):  # both as the decimals that print them
        raise InvalidInput(
            f"delta={delta!r} exceeds the largest distance in the domain, {widest:.6g}: every move is hidden, which is "
            "sf.bounded(domain). Use that, or a smaller delta."
        )
    radius = float(exact)
    # An edge lies within 2·ulp(side) + ulp(bound)/2 of its ideal place (four roundings); a gap has two edges an axis.
    seam = sum(math.ulp(max(-a.low, a.low, -a.high, a.high)) + 4 * math.ulp(a.high - a.low) for a in domain.intervals)
    if seam > MARGIN / 2 * radius:
        raise InvalidInput(
            f"delta={delta!r} is too small for coordinates of this size: cell edges are only known to {seam:.1e} "
            f"in double precision. Use at least {2 * seam / MARGIN:.1e}, or a nearer origin."
        )
    limit = radius * (1 - MARGIN / 2)
    widths = np.array([float(axis.width) for axis in domain.intervals])
    reach = [min(int(limit // w) + 2, n - 1) for w, n in zip(widths, domain.shape, strict=True)]
    offsets = _half_box(reach)
    gaps = widths * np.maximum(np.abs(offsets) - 1, 0)
    offsets = offsets[_NORMS[metric](gaps) < limit]
    arguments: dict[str, Any] = {"delta": str(exact), "metric": metric}
    size = repr(radius).removesuffix(".0")  # all its digits: rounded up it would promise more than is hidden
    words = f"one record moves by less than {size} ({metric})"
    absent = None
    if sources is None:
        words += "; the number of records is public"
    elif isinstance(sources, str):
        if sources != "boundary":
            raise InvalidInput(f"sources={sources!r} must be None, 'boundary', or a list of points.")
        absent = _near_boundary(domain, widths, limit)
        arguments["sources"] = "boundary"
        words += f", or appears or vanishes within {size} of the boundary"
    else:
        points = _source_points(domain, sources)
        absent = _near_points(domain, points, limit, _NORMS[metric])
        arguments["sources"] = points.tolist()
        where = "the source" if len(points) == 1 else f"one of {len(points)} sources"
        words += f", or appears or vanishes within {size} of {where}"
    return Policy(domain=domain, moves=Stencil(offsets), absent=absent, name="within", arguments=arguments, words=words)


def graph(domain: Domain, edges: Any, *, publish_component_totals: bool = False) -> Policy:
    """Any policy: a list of pairs of cells, ABSENT standing for ⊥; also a networkx graph or a SciPy sparse adjacency
    matrix.

    Cells are numbers in C order, index tuples, or labels where the domain is `Categories` of strings. In an integer
    array ⊥ is -1; an adjacency matrix has one row a cell, and one more at the end where there is a ⊥. A graph that is
    not connected would publish the total of each of its parts exactly: it is refused unless
    `publish_component_totals=True` asks for that.
    """
    pairs = _pairs(domain, edges)
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
    inner = np.unique(np.stack([low, high], axis=-1)[low != ABSENT], axis=0)
    appear = [] if absent is None else np.flatnonzero(absent).tolist()
    words = f"one record changes along one of {len(inner)} listed edges"
    words += f" or appears or vanishes in one of {len(appear)} cells" if appear else "; the number of records is public"
    policy = Policy(
        domain=domain,
        moves=Explicit(inner) if len(inner) else NoMoves(),
        absent=absent,
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


def policy_from_spec(spec: dict[str, Any]) -> Policy:
    """The policy that `Policy.spec()` described. Only the names below are known; nothing is imported."""
    try:
        arguments = {k: v for k, v in spec.items() if k not in ("name", "domain")}
        domain = domain_from_spec(spec["domain"])
        name = spec["name"]
        if name in ("bounded", "unbounded") and not arguments:
            return bounded(domain) if name == "bounded" else unbounded(domain)
        if name == "threshold":
            return threshold(domain, **arguments)
        if name == "within":
            return within(domain, **arguments)
        if name == "graph":
            edges = np.asarray(arguments.pop("edges"), dtype=np.int64).reshape(-1, 2)
            return graph(domain, edges, **arguments)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileFormatError("the description of the policy is damaged.") from error
    raise FileFormatError(f"the policy {name!r} is not known to this version of sfumato.")


def _ordered(domain: Domain, name: str) -> None:
    if not domain.is_spatial:
        raise InvalidInput(
            f"{name} needs a domain whose axes are all intervals; labels have no distance. Use sf.graph."
        )


def _half_box(reach: list[int]) -> NDArray[np.int64]:
    """All offsets of a box whose first non-zero entry is positive."""
    count = math.prod(2 * r + 1 for r in reach)
    if count > LARGEST_STENCIL:
        raise TooLarge(
            f"this policy has moves of {count:,} kinds, more than can be told apart one by one (at most "
            f"{LARGEST_STENCIL:,}). Use a smaller reach, fewer cells, or sf.bounded(domain)."
        )
    axes = np.meshgrid(*[np.arange(-r, r + 1) for r in reach], indexing="ij")
    offsets = np.stack([a.ravel() for a in axes], axis=-1).astype(np.int64)
    return offsets[len(offsets) // 2 + 1 :]


def _near_boundary(domain: Domain, widths: NDArray[np.float64], limit: float) -> NDArray[np.bool_]:
    near = np.zeros(domain.shape, dtype=bool)
    for axis, (n, width) in enumerate(zip(domain.shape, widths, strict=True)):
        depth = np.minimum(np.arange(n), np.arange(n)[::-1])
        near |= np.expand_dims(depth * width < limit, [i for i in range(domain.ndim) if i != axis])
    return near


def _source_points(domain: Domain, sources: ArrayLike) -> NDArray[np.float64]:
    try:
        points = np.asarray(sources, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("sources must be None, 'boundary', or a list of points.") from error
    points = points.reshape(-1, 1) if domain.ndim == 1 and points.ndim <= 1 else np.atleast_2d(points)
    if points.ndim != 2 or points.shape[1] != domain.ndim or len(points) == 0:
        raise InvalidInput(f"sources must be one or more points of {domain.ndim} coordinates each.")
    low, high = np.array(domain.bounds).reshape(2, -1)
    if not ((points >= low) & (points <= high)).all():
        raise InvalidInput("sources holds a point outside the domain's bounds. Sources must lie inside.")
    return points


def _near_points(
    domain: Domain, points: NDArray[np.float64], limit: float, norm: Callable[[NDArray[Any]], NDArray[Any]]
) -> NDArray[np.bool_]:
    near = np.zeros(domain.shape, dtype=bool)
    for point in points:
        window, gaps = [], []
        for axis, place in zip(domain.intervals, point, strict=True):
            gap = np.maximum(np.maximum(axis.edges[:-1] - place, place - axis.edges[1:]), 0.0)
            inside = np.flatnonzero(gap < limit)
            window.append(slice(int(inside[0]), int(inside[-1]) + 1))
            gaps.append(gap[inside])
        mesh = np.stack(np.meshgrid(*gaps, indexing="ij"), axis=-1)
        near[tuple(window)] |= norm(mesh) < limit
    return near


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
    found = []
    for edge in edges:
        ends = tuple(edge) if isinstance(edge, Iterable) and not isinstance(edge, str) else ()
        if len(ends) != 2:
            raise InvalidInput("edges must be pairs of cells: one entry does not have two ends.")
        found.append([_cell(domain, end) for end in ends])
    return np.array(found, dtype=np.int64).reshape(-1, 2)


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


def _cell(domain: Domain, end: Any) -> int:
    if isinstance(end, _Absent):
        return ABSENT
    axis = domain.axes[0]
    if isinstance(end, str) and domain.ndim == 1 and isinstance(axis, Labels):
        if end not in axis.labels:
            raise InvalidInput(f"edges names {end!r}, which is not a label of the domain.")
        return axis.labels.index(end)
    if isinstance(end, tuple):
        return int(domain.ravel(end))
    if isinstance(end, (bool, np.bool_)) or not isinstance(end, (int, np.integer)) or not 0 <= end < domain.size:
        raise InvalidInput(
            f"edges names {end!r}, which is not a cell: give numbers from 0 to {domain.size - 1}, index tuples, "
            "labels or sf.ABSENT."
        )
    return int(end)
