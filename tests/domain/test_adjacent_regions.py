"""Which regions are beside each other: by hand, against the outlines themselves, and what rounding does to borders."""

from __future__ import annotations

import numpy as np
import pytest
from maps import frame, hard, shapely, voronoi

import sfumato as sf
from sfumato.domain.adjacent_regions import _joining


def beside(shapes, *, corners):
    axis = sf.Regions(frame(shapes), id="id").axes[0]
    return {tuple(pair) for pair in axis.adjacent(corners=corners).tolist()}


def boxes(rows, columns, size=0.01, x0=0.0):
    return [
        shapely.box(x0 + x * size, y * size, x0 + (x + 1) * size, (y + 1) * size)
        for x in range(columns)
        for y in range(rows)
    ]


def test_queen_and_rook_on_nine_boxes():
    """Twelve borders, eight corners, and elsewhere beside all but the one in the middle."""
    rook = {(u, v) for u in range(9) for v in range(u + 1, 9) if v - u == 3 or (v - u == 1 and v % 3)}
    corners = {(u, v) for u in range(9) for v in range(u + 1, 9) if v - u in (2, 4) and abs(u % 3 - v % 3) == 1}
    out = {(u, 9) for u in range(9) if u != 4}
    assert len(rook) == 12 and len(corners) == 8
    assert beside(boxes(3, 3), corners=False) == rook | out
    assert beside(boxes(3, 3), corners=True) == rook | corners | out


def test_a_border_in_pieces_is_a_border():
    """Two boxes stand on a wide one, which has no corner where they meet."""
    shapes = [shapely.box(0, 0, 2, 1), shapely.box(0, 1, 1, 2), shapely.box(1, 1, 2, 2)]
    assert {(0, 1), (0, 2), (1, 2)} <= beside(shapes, corners=False)


def test_borders_that_were_rounded_apart_are_borders():
    """A tenth of a millimetre between two boxes, and a corner that is as far off."""
    gap = 1e-9
    shapes = [shapely.box(0, 0, 1, 1), shapely.box(1 + gap, 0.2, 2, 0.8), shapely.box(1 + gap, 1 + gap, 2, 2)]
    assert {(0, 1)} == {pair for pair in beside(shapes, corners=False) if 3 not in pair}
    assert {(0, 1), (0, 2)} == {pair for pair in beside(shapes, corners=True) if 3 not in pair}


def test_the_date_line_is_a_border_like_others():
    shapes = [shapely.box(179.99, 0, 180, 0.01), shapely.box(-180, 0, -179.99, 0.01)]
    assert (0, 1) in beside(shapes, corners=False)


@pytest.mark.parametrize("seed", range(3))
def test_against_the_outlines(seed):
    """Holes, several parts, islands: a border in common is one whose part in common has a length."""
    shapes = hard(seed)
    rook, queen = beside(shapes, corners=False), beside(shapes, corners=True)
    last = len(shapes)
    for u in range(last):
        for v in range(u + 1, last):
            shared = shapely.intersection(shapes[u].boundary, shapes[v].boundary)
            assert ((u, v) in queen) == (not shared.is_empty), (u, v)
            assert ((u, v) in rook) == (shared.length > 1e-6), (u, v)
    rest = shapely.union_all(shapes).boundary
    for u in range(last):
        assert ((u, last) in rook) == (shapely.intersection(shapes[u].boundary, rest).length > 1e-6)


def test_corners_are_added_where_borders_alone_would_leave_parts():
    pairs = np.array([(0, 1), (1, 2), (2, 3), (0, 2)])
    assert _joining(pairs, np.array([True, False, True, False]), 4).tolist() == [True, True, True, True]
    assert _joining(pairs, np.array([True, True, True, False]), 4).tolist() == [True, True, True, False]


def test_regions_are_in_one_part_by_borders_alone():
    for shapes in (voronoi(30), boxes(2, 3), hard(1)):
        policy = sf.policy(sf.Regions(frame(shapes), id="id"), hide=sf.adjacent("place", contiguity="rook"))
        labels = policy.moves.found.labels(policy.domain.shape)
        assert policy.connected and not labels.any()


def test_hexagons_have_six_neighbours_and_pentagons_five():
    h3 = pytest.importorskip("h3", reason="needs sfumato[h3]")
    for middle in (h3.latlng_to_cell(40.7, -74.0, 7), h3.get_pentagons(7)[0]):
        cells = sorted(h3.grid_disk(middle, 2), key=lambda cell: int(cell, 16))
        domain = sf.H3(7, cover=cells)
        pairs = {tuple(pair) for pair in domain.axes[0].adjacent(corners=True).tolist()}
        expected = {
            (u, v)
            for u in range(len(cells))
            for v in range(u + 1, len(cells))
            if h3.are_neighbor_cells(cells[u], cells[v])
        }
        inner = set(h3.grid_disk(middle, 1))
        assert pairs == expected | {(u, len(cells)) for u, cell in enumerate(cells) if cell not in inner}
        assert sum(cells.index(middle) in pair for pair in pairs) == (5 if h3.is_pentagon(middle) else 6)
