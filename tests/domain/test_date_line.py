"""Rings that cross the date line, or go round a pole, are cut: nothing is lost and nothing is drawn across the map."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.domain.date_line import cut_at_date_line
from sfumato.domain.geometries import geometries

shapely = pytest.importorskip("shapely", reason="needs sfumato[geo]")


def test_a_ring_that_does_not_cross_is_itself():
    ring = np.array([[-180, 0], [0, 0], [0, 10], [-180, 0]], float)
    (found,) = cut_at_date_line(ring)
    assert found is ring


def test_a_box_over_the_date_line_is_two_boxes():
    for turned in (False, True):
        ring = np.array([[179, 0], [-178, 0], [-178, 1], [179, 1], [179, 0]], float)
        parts = cut_at_date_line(ring[::-1] if turned else ring)
        bounds = sorted((*part.min(axis=0).tolist(), *part.max(axis=0).tolist()) for part in parts)
        assert bounds == [(-180, 0, -178, 1), (179, 0, 180, 1)]
        assert all((part[0] == part[-1]).all() for part in parts)


def test_what_only_touches_the_date_line_has_one_part():
    ring = np.array([[179, 0], [-180, 0], [-180, 1], [179, 1], [179, 0]], float)
    assert [shapely.Polygon(part).area for part in cut_at_date_line(ring)] == [1.0]


@pytest.mark.parametrize("pole", [90, -90])
def test_a_ring_round_a_pole_is_all_beyond_it(pole):
    ring = np.array([[x, pole * 8 / 9] for x in (10, 100, -170, -80, 10)], float)
    for path in (ring, ring[::-1]):
        (part,) = cut_at_date_line(path)
        assert shapely.Polygon(part).equals(shapely.box(-180, min(pole, 80), 180, max(pole, -80)))


@pytest.mark.parametrize("resolution", [0, 1])
def test_the_hexagons_of_the_whole_earth_fill_the_map(resolution):
    """Each is valid, and together they have the area of the map and no overlap: pentagons, poles and date line too."""
    library = pytest.importorskip("h3", reason="needs sfumato[h3]")
    cells = library.uncompact_cells(library.get_res0_cells(), resolution)
    outlines = sf.H3(resolution, cover=cells).axes[0].outlined
    shapes = geometries(outlines, "A test")
    assert len(shapes) == len(cells) and shapely.is_valid(shapes).all()
    assert shapely.area(shapes).sum() == pytest.approx(360 * 180, rel=1e-9)
    assert shapely.union_all(shapes, grid_size=1e-9).area == pytest.approx(360 * 180, rel=1e-6)
    rings = shapely.get_exterior_ring(shapely.get_parts(geometries(outlines.oriented, "A test")))
    assert shapely.is_ccw(rings).all()
