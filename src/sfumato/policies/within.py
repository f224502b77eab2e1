"""The δ-neighbourhood: one record moves by less than δ, or appears within δ of a source.

Two cells are neighbours when some points of theirs are closer than δ. In the offsets (a, b) of cells of size h_x × h_y
that is `‖(h_x·max(|a|-1, 0), h_y·max(|b|-1, 0))‖ < δ`, so even a tiny δ joins cells that touch at a corner. On the
globe the same offset is shorter near a pole, and no rule on offsets fits every row: there an offset is an edge when it
is one in *some* rows (`sphere.staircase`). More is hidden in the other rows than was asked for, nowhere less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import Number, positive_fraction
from sfumato.policies import doubts, sphere
from sfumato.policies.moves import Stencil
from sfumato.policies.policy import Policy
from sfumato.policies.sources import ALLOWED, Sources, boundary
from sfumato.relations import BOUNDARY, CHANGES, METRES, OWN, Length, Move, Relation, Term

# `within` promises to hide moves up to δ(1 - 10⁻⁹). Half of that margin pays for the rounding of cell edges, the
# other half keeps a distance of exactly δ out of the stencil however it was rounded.
MARGIN = 1e-9

# Moves are told apart by their offset in cells; beyond this many nobody gains from it.
LARGEST_STENCIL = 10_000_000
# Numbers in their table: in more than three dimensions it is these that fill the memory.
LARGEST_ENTRIES = 3 * LARGEST_STENCIL
_TOGETHER = 1 << 18  # offsets that are compared at a time

_NORMS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "euclidean": lambda gaps: np.sqrt((gaps**2).sum(axis=-1)),
    "manhattan": lambda gaps: gaps.sum(axis=-1),
    "chebyshev": lambda gaps: gaps.max(axis=-1),
}
METRICS = (*_NORMS, "great-circle")


def within(domain: Domain, delta: Number, *, sources: Any = None, metric: str = "euclidean") -> Policy:
    """δ-neighbourhood: one record moves by less than δ, or appears or vanishes within δ of a source.

    `metric` is "euclidean", "manhattan" or "chebyshev", with δ in the units of the axes, or "great-circle", with δ in
    metres on a grid of degrees, longitude first, between -180 and 180; its promise is about places inside the bounds.
    `sources` is None (the number of records is public), "boundary", a list of points, a list of lines, each a list of
    points such as `[[(0, 0), (1, 2)], [(3, 3), (4, 3), (4, 4)]]` (on a line `[[(2,), (5,)]]` is the interval from 2 to
    5), or one or more geometries with `__geo_interface__`: Point, MultiPoint, LineString or MultiLineString. Cells
    nearer than δ to a source are joined to ⊥. The promise is for moves up to δ(1 - 10⁻⁹).

    >>> policy = sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(10, 10)), delta=0.05)
    >>> policy.distance((0, 0), (0, 3))
    3.0
    """
    policy = built_within(domain, delta, sources=sources, metric=metric)
    if metric == "great-circle":
        sphere.refuse_beyond_date_line(domain)
    doubts.warn(domain, positive_fraction(delta, "delta"), delta, metric)
    return policy


def built_within(domain: Domain, delta: Number, *, sources: Any = None, metric: str = "euclidean") -> Policy:
    """As `within`, for what a file says: without a word about what looks like a mistake, and also for what earlier
    versions wrote down, bounds beyond the date line.
    """
    ordered(domain, "within")
    exact = positive_fraction(delta, "delta")
    if metric not in METRICS:
        raise InvalidInput(f"metric={metric!r} is not one of {', '.join(map(repr, METRICS))}.")
    if metric == "great-circle":
        sphere.refuse_unless_degrees(domain)
    if exceeds(domain, exact, metric):
        widest = _widest(domain, metric)
        raise InvalidInput(
            f"delta={delta!r} exceeds the largest distance in the domain, {widest:.6g}{_unit(metric)}: every move is "
            "hidden, which is sf.bounded(domain). Use that, or a smaller delta." + doubts.hint(domain, exact, metric)
        )
    limit = _limit(domain, exact, metric)
    if metric == "great-circle":
        sphere.refuse_meeting_ends(domain, delta, limit)
    else:
        _refuse_far_origin(domain, delta, float(exact))
    arguments: dict[str, Any] = {"delta": str(exact), "metric": metric}
    size = length(exact, metric)
    where = "great-circle, inside the bounds" if metric == "great-circle" else metric
    words = f"one record moves by less than {size} ({where})"
    joined: Callable[[], NDArray[np.bool_]] | None = None
    if sources is None:
        words += "; the number of records is public"
    elif isinstance(sources, str):
        if sources != "boundary":
            raise InvalidInput(f"sources={sources!r} must be {ALLOWED}.")
        joined = partial(boundary, domain, limit, metric)
        arguments["sources"] = "boundary"
        words += f", or appears or vanishes within {size} of the boundary"
    else:
        places = Sources.of(domain, sources)
        joined = partial(places.near, domain, limit, metric)
        arguments["sources"] = places.spec()
        words += f", or appears or vanishes within {size} of {places.words()}"
    stencil = Stencil(_lengths(domain, limit, metric))
    return Policy(
        domain=domain,
        moves=stencil,
        joined=joined,
        name="within",
        arguments=arguments,
        words=words,
        relation=_relation(domain, exact, metric, arguments.get("sources")),
    )


def numbers(domain: Domain, delta: Fraction, metric: str) -> int:
    """How many numbers tell the moves apart while they are looked for: known before any is made."""
    ordered(domain, "within")
    reach = _reach(domain, _limit(domain, delta, metric))
    return math.prod(2 * r + 1 for r in reach) * len(reach)


def exceeds(domain: Domain, delta: Fraction, metric: str) -> bool:
    """Whether δ is more than the largest distance in the domain, both as the decimals that print them."""
    return delta > positive_fraction(_widest(domain, metric), "bounds")


def steps_within(policy: Policy, multiple: int) -> int | None:
    """The most steps of a `within` policy that a move of less than multiple × δ may take; None where none is so long.

    A straight path is cut into as many moves shorter than δ, so there are at most `multiple`; fewer where cells are
    coarse. Great circles may leave the bounds between two places inside them: there, and in up to two dimensions, the
    steps of the longest displacements are counted instead, by the farthest that one can be after each step.
    """
    domain, metric = policy.domain, str(policy.arguments["metric"])
    radius = multiple * Fraction(policy.arguments["delta"])
    if radius > positive_fraction(_widest(domain, metric), "bounds"):
        return None
    if domain.ndim > 2:
        return int(min(multiple, policy.diameter))
    aim, stair = (_staircase(domain, _limit(domain, r, metric), metric) for r in (radius, radius / multiple))
    far = np.full(len(aim), -1)
    far[0], count = 0, 0
    while (far < aim).any():
        farther = np.full(len(aim), -1)
        for a, b in enumerate(stair[: len(aim)]):
            before = far[: len(far) - a]
            np.maximum(farther[a:], np.where(before >= 0, before + b, -1), out=farther[a:])
        far, count = farther, count + 1
    return int(min(max(count, 1), policy.diameter))


def _relation(domain: Domain, delta: Fraction, metric: str, sources: Any) -> Relation | None:
    """What it hides of a record. The boundary of a domain is an outline that stays where it is on other domains; of
    several factors that move together as one no relation speaks.
    """
    if len(domain.factors) > 1:
        return None
    if sources == BOUNDARY:
        sources = outline(domain)
        if sources is None:
            return None
    unit = METRES if metric == "great-circle" else OWN
    rule = Move(of=domain.factors[0].name, delta=Length(delta, unit), metric=metric, sources=sources)
    return Relation((Term(CHANGES, (rule,)),))


def outline(domain: Domain) -> list[Any] | None:
    """The outline of a line's or a map's bounds, as lines; None in more dimensions, where no line goes all around."""
    sides = [(axis.low, axis.high) for axis in domain.intervals]
    if len(sides) == 1:
        return [[low_or_high] for low_or_high in sides[0]]
    if len(sides) == 2:
        (x0, x1), (y0, y1) = sides
        return [[[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]]
    return None


def length(distance: Fraction, metric: str) -> str:
    """A distance with all its digits (rounded up it would promise more than is hidden) and its unit."""
    return repr(float(distance)).removesuffix(".0") + _unit(metric)


def box(reach: list[int]) -> NDArray[np.int64]:
    """How far the moves of a box lead along every axis, in order and without the one that stays.

    Refused by the number of moves, which differ in signs as well: whoever has to look at each makes them of these.
    """
    count = math.prod(2 * r + 1 for r in reach)
    if count > LARGEST_STENCIL or count * len(reach) > LARGEST_ENTRIES:
        raise TooLarge(
            f"this policy has moves of {count:,} kinds, more than can be told apart one by one (at most "
            f"{LARGEST_STENCIL:,}). Use a smaller reach, fewer cells, or sf.bounded(domain)."
        )
    lengths = np.stack(np.unravel_index(np.arange(math.prod(r + 1 for r in reach)), [r + 1 for r in reach]), axis=-1)
    return lengths[1:].astype(np.int64, copy=False)


def refuse_apart(domain: Domain, name: str) -> None:
    """Refuse a grid with a CRS, whose borders a record may cross: policies of cells alone do not hide that."""
    if domain.apart:
        raise InvalidInput(
            f"{name} is about cells, and beyond the bounds of a grid with a CRS is elsewhere, which is none: that a "
            "record leaves would not be hidden. Nothing was built. Use sf.policy(grid, hide=sf.move('500 m')), or a "
            "grid without crs=."
        )


def ordered(domain: Domain, name: str) -> None:
    """Refuse a domain without distances."""
    refuse_apart(domain, name)
    if not domain.is_spatial:
        raise InvalidInput(
            f"{name} needs a domain whose axes are all intervals; labels have no distance. Use sf.graph."
        )


def _unit(metric: str) -> str:
    return " m" if metric == "great-circle" else ""


def _widest(domain: Domain, metric: str) -> float:
    """The largest distance between two points of the domain."""
    if metric == "great-circle":
        return sphere.widest(domain)
    sides = np.array([axis.high - axis.low for axis in domain.intervals])
    scale = int(np.frexp(sides.max())[1])
    return float(np.ldexp(_NORMS[metric](np.ldexp(sides, -scale)), scale))


def _closer(gaps: NDArray[np.float64], limit: float, metric: str) -> NDArray[np.bool_]:
    """Whether gaps along the axes are below the limit together.

    In units of about the limit, a power of two: squares of very small or large numbers would be lost, and all others
    are compared as they are, to the last bit.
    """
    scale = int(np.frexp(limit)[1])
    with np.errstate(over="ignore"):  # what is far beyond the limit may be infinitely far
        near: NDArray[np.bool_] = _NORMS[metric](np.ldexp(gaps, -scale)) < np.ldexp(limit, -scale)
    return near


def _limit(domain: Domain, radius: Fraction, metric: str) -> float:
    """The distance below which cells are joined. On the globe nothing lies at exactly δ: there rounding adds edges."""
    if metric == "great-circle":
        return float(radius) * (1 - MARGIN) + sphere.rounding(domain)
    return float(radius) * (1 - MARGIN / 2)


def _refuse_far_origin(domain: Domain, delta: Number, radius: float) -> None:
    # An edge lies within 2·ulp(side) + ulp(bound)/2 of its ideal place (four roundings); a gap has two edges an axis.
    seam = sum(math.ulp(max(-a.low, a.low, -a.high, a.high)) + 4 * math.ulp(a.high - a.low) for a in domain.intervals)
    if seam > MARGIN / 2 * radius:
        raise InvalidInput(
            f"delta={delta!r} is too small for coordinates of this size: cell edges are only known to {seam:.1e} "
            f"in double precision. Use at least {2 * seam / MARGIN:.1e}, or a nearer origin."
        )


def _lengths(domain: Domain, limit: float, metric: str) -> NDArray[np.int64]:
    """The offsets of all edges, without their signs."""
    if metric == "great-circle":
        stair = sphere.staircase(domain, limit)
        lengths = box([int(stair[0]), len(stair) - 1])
        return lengths[lengths[:, 0] <= stair[lengths[:, 1]]]
    reach = _reach(domain, limit)
    lengths = box(reach)
    if domain.ndim == 1:  # gaps grow with the distance: all offsets up to the longest are edges
        while len(lengths) and not _closer(domain.intervals[0].gap(lengths[-1:, 0])[:, None], limit, metric)[0]:
            lengths = lengths[:-1]
        return lengths
    # Where cells are not equal an offset is an edge when it is one anywhere: more is hidden than asked for, never less.
    tables = [axis.gap(np.arange(r + 1)) for axis, r in zip(domain.intervals, reach, strict=True)]
    near = np.empty(len(lengths), dtype=np.bool_)
    for start in range(0, len(lengths), _TOGETHER):
        part = lengths[start : start + _TOGETHER]
        gaps = np.stack([table[part[:, i]] for i, table in enumerate(tables)], axis=-1)
        near[start : start + _TOGETHER] = _closer(gaps, limit, metric)
    return lengths if near.all() else lengths[near]


def _staircase(domain: Domain, limit: float, metric: str) -> NDArray[np.int64]:
    """The longest offset along the first axis for every offset along the second, where there is one."""
    if metric == "great-circle":
        return sphere.staircase(domain, limit)
    reach = [*_reach(domain, limit), 0][:2]
    tables = [axis.gap(np.arange(r + 1)) for axis, r in zip(domain.intervals, reach, strict=False)]
    gaps = np.zeros((reach[0] + 1, domain.ndim))
    gaps[:, 0] = tables[0]
    found = []
    for b in range(reach[1] + 1):
        gaps[:, 1:] = [table[b] for table in tables[1:]]
        found.append(int(_closer(gaps, limit, metric).sum()) - 1)
    stair = np.array(found)
    return stair[stair >= 0]


def _reach(domain: Domain, limit: float) -> list[int]:
    return [axis.farthest(limit) for axis in domain.intervals]
