"""Outlines as geometries and back, some of them, turned the right way round, and joined."""

from __future__ import annotations

import numpy as np
import pytest
from maps import frame, hard, shapely, voronoi

import sfumato as sf
from sfumato.domain.geometries import geometries, joined, outlines_of
from sfumato.domain.outlines import rectangles

SHAPES = np.array(hard(), dtype=object)


def test_there_and_back_nothing_changes():
    outlines = outlines_of(SHAPES)
    found = geometries(outlines, "A test")
    assert shapely.equals_exact(found, SHAPES, 0).all()
    assert outlines_of(found).digest == outlines.digest


def test_some_regions_in_another_order_holes_and_islands_with_them():
    outlines = outlines_of(SHAPES)
    chosen = np.array([7, 0, 3, 2])
    assert outlines.taken(chosen).digest == outlines_of(SHAPES[chosen]).digest
    assert len(outlines.taken(np.array([], np.int64)).points) == 0
    (region,) = outlines.taken(np.array([2])).coordinates()
    assert region == [[[list(point) for point in ring.coords] for ring in (SHAPES[2].exterior, *SHAPES[2].interiors)]]


def test_shells_run_counter_clockwise_and_holes_the_other_way():
    for shapes in (SHAPES, shapely.reverse(SHAPES)):
        parts = shapely.get_parts(geometries(outlines_of(shapes).oriented, "A test"))
        assert all(part.exterior.is_ccw and not any(hole.is_ccw for hole in part.interiors) for part in parts)
        assert shapely.equals(geometries(outlines_of(shapes).oriented, "A test"), SHAPES).all()


def test_a_far_small_ring_is_turned_as_well():
    box = rectangles(*(np.array([x]) for x in (179.9999999, 89.9, 179.99999991, 89.9000000001)))
    assert np.array_equal(box.oriented.points, box.points)


def test_joined_regions_are_their_union():
    cells = np.array(voronoi(40), dtype=object)
    of = np.arange(40) % 3
    found = geometries(joined(outlines_of(cells), of, np.array([2, 0, 1]), "A test"), "A test")
    for shape, group in zip(found, (2, 0, 1), strict=True):
        assert shape.symmetric_difference(shapely.union_all(cells[of == group])).area < 1e-8
    whole = geometries(joined(outlines_of(cells), np.zeros(40, np.int64), np.array([0]), "A test"), "A test")[0]
    assert whole.area == pytest.approx(1, abs=1e-8) and not whole.interiors


def test_joined_hexagons_have_no_slivers():
    """Corners of neighbours are computed apart, and may differ in their last digits."""
    pytest.importorskip("h3", reason="needs sfumato[h3]")
    axis = sf.H3(8, cover=(-74.05, 40.68, -73.9, 40.88)).axes[0]
    outlines = joined(axis.outlined, np.zeros(axis.cells - 1, np.int64), np.array([0]), "A test")
    assert len(outlines.rings) == 2


def test_regions_have_the_outlines_that_they_were_given():
    axis = sf.Regions(frame(voronoi(5)), id="id").axes[0]
    assert shapely.equals_exact(geometries(axis.outlined, "A test"), np.array(voronoi(5), dtype=object), 0).all()
