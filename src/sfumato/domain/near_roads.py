"""Which segments of a road network hold two places less than δ apart along the roads: none is missed.

A way along the roads from one segment to another leads from an end of the one to an end of the other, and no two of
their places are nearer by road than the nearest two of these ends. So the shortest ways between ends say it all.
Lengths of lines are those in the plane of the least M and N cos φ of every straight piece, in which no piece is longer
than on the ellipsoid (`sfumato.domain.near_regions`).

Ways are sought tile by tile. A straight line through the earth is never longer than a way on it: whatever lies on a way
shorter than δ that begins in a tile is less than δ from it in space, times how much the lengths may be too short.

Where a road ends it goes on beyond the map: elsewhere is beside every segment that is less than δ from a dead end, and
beside all segments of roads that end nowhere. So a way leads from every cell to every other.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.lines import Lines
from sfumato.domain.near_hexagons import in_space
from sfumato.domain.near_regions import MOST_EDGES
from sfumato.errors import TooLarge
from sfumato.linear import distinct

_DATUM = 1e-6
_SLACK = 1e-6
_TILE = 512
"""Ends from which ways are sought at once."""
_TABLE = 1 << 23
"""Distances that are held at once."""


def near_roads(lines: Lines, delta: Fraction) -> Integers:
    """Every pair u < v of segments less than δ metres apart by road; the number of the last cell is elsewhere."""
    reach = float(delta) * (1 + _DATUM) + _SLACK
    graph, radius = _graph(lines, reach)
    nodes, _ = lines.ends
    found = _Pairs(lines, delta)
    for sources, around in _tiles(in_space(nodes), radius):
        inside = graph[around][:, around]
        for block in _blocks(sources, len(around)):
            distance = _shortest(inside, np.searchsorted(around, block), reach)
            one, other = np.nonzero(np.isfinite(distance))
            found.add(block[one], around[other])
    return found.listed()


def touching_roads(lines: Lines) -> Integers:
    """Every pair u < v of segments with an end in common; elsewhere as for other moves."""
    nodes, _ = lines.ends
    every = np.arange(len(nodes))
    found = _Pairs(lines, None)
    found.add(every, every)
    return found.listed()


def ways_out(lines: Lines) -> Any:
    """At which ends the roads are left: where one line ends alone; of roads that end nowhere, at all."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    nodes, of = lines.ends
    out = np.bincount(of.ravel(), minlength=len(nodes)) == 1
    joined = csr_matrix((np.ones(len(of), np.int8), (of[:, 0], of[:, 1])), shape=(len(nodes),) * 2)
    count, part = connected_components(joined, directed=False)
    some = np.zeros(count, np.bool_)
    some[part[out]] = True
    return out | ~some[part]


class _Pairs:
    """Pairs of segments from pairs of their ends, gathered and told once each."""

    def __init__(self, lines: Lines, delta: Fraction | None) -> None:
        nodes, of = lines.ends
        self.delta, self.cells = delta, len(lines) + 1
        line = np.repeat(np.arange(len(of)), 2)
        order = np.argsort(of.ravel(), kind="stable")
        self.line = line[order]  # the segments at every end, one end after the other
        self.many = np.bincount(of.ravel(), minlength=len(nodes))
        self.first = np.cumsum(self.many) - self.many
        self.out = ways_out(lines)
        self.kept: list[Integers] = [np.zeros(0, np.int64)]
        self.held = 0

    def add(self, one: Integers, other: Integers) -> None:
        """Ends that are near to each other."""
        times = self.many[other]
        first = np.repeat(one, times)
        across = self.line[np.arange(times.sum()) + np.repeat(self.first[other] - (np.cumsum(times) - times), times)]
        out = across[self.out[first]] * self.cells + self.cells - 1
        again = self.many[first]
        u = self.line[np.arange(again.sum()) + np.repeat(self.first[first] - (np.cumsum(again) - again), again)]
        v = np.repeat(across, again)
        self.kept.append(distinct(np.concatenate([out, (u * self.cells + v)[u < v]])))
        self.held += len(self.kept[-1])
        if self.held > 4 * MOST_EDGES:
            self.listed()

    def listed(self) -> Integers:
        """All of them so far, or a refusal."""
        found = distinct(np.concatenate(self.kept))
        self.kept, self.held = [found], len(found)
        if len(found) > MOST_EDGES:
            far = "" if self.delta is None else f" less than {float(self.delta):g} m apart by road"
            raise TooLarge(
                f"more than {MOST_EDGES:,} pairs of segments are{far}, too many to list. Nothing was built. Use a "
                "smaller distance, or fewer roads."
            )
        return np.stack([found // self.cells, found % self.cells], axis=-1)


def _graph(lines: Lines, reach: float) -> tuple[Any, float]:
    """The ends joined by the shortest lines between them, both ways; how far in space a way of that reach leads."""
    from scipy.sparse import csr_matrix

    nodes, of = lines.ends
    u, v, long = of.min(axis=1), of.max(axis=1), lines.lengths
    kept = (u != v) & (long <= reach)
    u, v, long = u[kept], v[kept], np.maximum(long[kept], 1e-9)  # nothing is taken for no line
    order = np.lexsort((long, v, u))
    u, v, long = u[order], v[order], long[order]
    new = np.ones(len(u), np.bool_)
    new[1:] = (u[1:] != u[:-1]) | (v[1:] != v[:-1])
    u, v, long = u[new], v[new], long[new]
    chords = np.linalg.norm(np.diff(in_space(nodes[np.stack([u, v], axis=1)]), axis=1)[:, 0], axis=1)
    bent = float((chords / long).max(initial=1.0)) if len(u) else 1.0
    graph = csr_matrix(
        (np.concatenate([long, long]), (np.concatenate([u, v]), np.concatenate([v, u]))), shape=(len(nodes),) * 2
    )
    return graph, reach * bent + 1.0


def _tiles(places: Floats, radius: float) -> Any:
    """(ends of a tile, all ends that a way from it may come by), both rising."""
    from scipy.spatial import cKDTree

    tree = cKDTree(places)
    leaves = [np.arange(len(places))]
    while leaves:
        held = leaves.pop()
        if len(held) > _TILE:  # cut in two halves along its longest side
            side = int(np.ptp(places[held], axis=0).argmax())
            order = np.argsort(places[held, side], kind="stable")
            leaves += [held[order[: len(held) // 2]], held[order[len(held) // 2 :]]]
            continue
        low, high = places[held].min(axis=0), places[held].max(axis=0)
        around = tree.query_ball_point((low + high) / 2, float(np.linalg.norm(high - low)) / 2 + radius)
        yield np.sort(held), np.sort(np.asarray(around, np.int64))


def _blocks(sources: Integers, around: int) -> Any:
    size = max(1, _TABLE // max(around, 1))
    for start in range(0, len(sources), size):
        yield sources[start : start + size]


def _shortest(graph: Any, sources: Integers, reach: float) -> Floats:
    from scipy.sparse.csgraph import dijkstra

    return np.asarray(dijkstra(graph, directed=True, indices=sources, limit=reach))
