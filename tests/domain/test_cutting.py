"""Polygons against cells: none that is touched is missed, and what counts as inside is inside to the last point."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from maps import frame, hard, shapely, voronoi

import sfumato as sf
from sfumato.domain.cutting import cut_grid

NEW_YORK = (-74.1, 40.6, -73.9, 40.9)


def star(rng, centre, radius, corners):
    """A polygon that goes in and out."""
    while True:
        turn, far = np.sort(rng.uniform(0, 2 * np.pi, corners)), rng.uniform(0.2, 1, corners) * radius
        found = shapely.Polygon(np.stack([np.cos(turn), np.sin(turn)], axis=-1) * far[:, None] + centre)
        if found.is_valid and found.area > 0:
            return found


def inside_by_fractions(polygon, x, y):
    """The rule itself: crossings to the left of a point, half-open upwards, on a segment counts as right of it."""
    odd = False
    ring = [(Fraction(a), Fraction(b)) for a, b in polygon.exterior.coords]
    for (x0, y0), (x1, y1) in pairwise(ring):
        if y0 > y1:
            x0, y0, x1, y1 = x1, y1, x0, y0
        if y0 <= y < y1 and (x1 - x0) * (y - y0) <= (x - x0) * (y1 - y0):
            odd = not odd
    return odd


def kinds(cut, size):
    found = np.zeros(size, np.int64)
    found[cut.inside], found[cut.cut] = 2, 1
    return found


def test_cells_of_a_grid_by_hand():
    edges = np.arange(5.0)
    cut = cut_grid(edges, edges, shapely.box(1, 1, 3, 2.5), turns=False)
    assert cut.inside.tolist() == [5, 9] and cut.cut.tolist() == [6, 10] and cut.share.tolist() == [0.5, 0.5]
    whole = cut_grid(edges, edges, shapely.box(1, 1, 3, 3), turns=False)
    assert whole.inside.tolist() == [5, 6, 9, 10] and not len(whole.cut)  # borders in common are nothing in common
    assert cut_grid(edges, edges, shapely.box(4, 0, 5, 4), turns=False).is_empty


@pytest.mark.parametrize("seed", range(3))
def test_no_cell_of_a_grid_with_a_point_of_the_polygon_is_missed_also_on_borders(seed):
    """Points are corners of cells, corners of polygons, points on sides of both: where rounding and borders matter."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        nx, ny = rng.integers(2, 24, 2)
        x, y = np.linspace(0, 1, nx + 1), np.linspace(0, 1, ny + 1)
        corners = np.stack([rng.choice(x, 5), rng.choice(y, 5)], axis=-1)
        shapes = [star(rng, rng.random(2), 0.7, 9), shapely.MultiPoint(corners).convex_hull]
        for polygon in shapes:
            if polygon.geom_type != "Polygon":
                continue
            grid = sf.Grid((0, 0, 1, 1), shape=(int(nx), int(ny)))
            x, y = (np.asarray(axis.edges) for axis in grid.axes)
            kind = kinds(cut_grid(x, y, polygon, turns=False), grid.size)
            at = np.stack([rng.choice(x[:-1], 60), rng.choice(y[:-1], 60)], axis=-1)
            ring = np.array(polygon.exterior.coords)
            at = np.concatenate([at, ring, (ring[:-1] + ring[1:]) / 2, rng.random((60, 2))])
            at = at[(at >= 0).all(axis=1) & (at < 1).all(axis=1)]
            for (a, b), cell in zip(at.tolist(), grid.locate(at).tolist(), strict=True):
                held = inside_by_fractions(polygon, Fraction(a), Fraction(b))
                assert kind[cell] > 0 if held else kind[cell] < 2


def test_shares_are_those_of_the_areas_and_longitudes_go_round():
    rng = np.random.default_rng(4)
    x, y = np.linspace(170, 190, 41), np.linspace(-10, 10, 31)
    polygon = star(rng, (181, 1), 8, 30)
    here = cut_grid(x, y, polygon, turns=True)
    there = cut_grid(x, y, shapely.affinity.translate(polygon, -360), turns=True)
    assert np.array_equal(kinds(here, 1200), kinds(there, 1200))
    area = here.share.sum() + len(here.inside)
    assert area * (20 / 40) * (20 / 30) == pytest.approx(polygon.area)
    assert len(here.cut) and ((here.share > 0) & (here.share < 1)).all()


def test_large_grids_are_compared_in_blocks_and_give_the_same_cells():
    polygon = star(np.random.default_rng(5), (0.4, 0.6), 0.5, 12)
    edges = np.linspace(0, 1, 97)
    cut = cut_grid(edges, edges, polygon, turns=False)
    i, j = (part.ravel() for part in np.indices((96, 96)))
    boxes = shapely.box(edges[i], edges[j], edges[i + 1], edges[j + 1])
    kind = kinds(cut, 96 * 96)
    assert np.array_equal(kind == 2, shapely.covers(polygon, boxes))
    assert np.array_equal(kind > 0, shapely.relate_pattern(polygon, boxes, "T********"))


@pytest.mark.parametrize("seed", range(3))
def test_regions_that_a_polygon_touches_and_elsewhere(seed):
    """Every random point in a polygon is in a cell that is touched, and those in cells inside are in it."""
    rng = np.random.default_rng(seed)
    regions = sf.Regions(frame(hard(seed)), id="id")
    polygons = [star(rng, rng.random(2) * 1.5, radius, 12) for radius in (0.05, 0.3, 1.0)]
    points = rng.uniform(-0.5, 2, (20_000, 2))
    cells = regions.locate(points)
    for polygon, cut in zip(polygons, regions.axes[0].cuts(polygons, moved=False), strict=True):
        held, kind = shapely.contains_xy(polygon, points), kinds(cut, regions.size)
        assert (kind[cells[held]] > 0).all() and (kind[cells[~held]] < 2).all()
        assert set(np.unique(cells[held])) <= set(np.flatnonzero(kind))


def test_a_union_of_regions_cuts_none_and_elsewhere_only_where_there_is_some():
    cells = voronoi(30, seed=2)
    axis = sf.Regions(frame(cells), id="id").axes[0]
    middle = [shape for shape in cells if not shape.intersects(shapely.box(0, 0, 1, 1).exterior)]
    (cut,) = axis.cuts([shapely.union_all(middle)], moved=False)
    assert len(cut.inside) == len(middle) and not len(cut.cut)
    (all_of_it,) = axis.cuts([shapely.box(0, 0, 1, 1)], moved=False)
    assert axis.cells - 1 not in all_of_it.cut
    (beyond,) = axis.cuts([shapely.box(-1, 0, 1, 1)], moved=False)
    assert beyond.cut[-1] == axis.cells - 1 and beyond.share[-1] == 0
    (away,) = axis.cuts([shapely.box(5, 5, 6, 6)], moved=False)
    assert away.cut.tolist() == [axis.cells - 1] and not len(away.inside)


def test_corners_upon_sides_leave_no_elsewhere_between_regions():
    shapes = [shapely.box(0, 0, 1, 2), shapely.box(1, 0, 2, 1), shapely.box(1, 1, 2, 2)]  # the long side has a corner
    axis = sf.Regions(frame(shapes), id="id").axes[0]
    (cut,) = axis.cuts([shapely.box(0.5, 0.5, 1.5, 1.5)], moved=False)
    assert cut.cut.tolist() == [0, 1, 2] and cut.share.tolist() == [0.25, 0.25, 0.25]


def test_a_gap_as_narrow_as_a_hair_is_elsewhere():
    shapes = [shapely.box(0, 0, 1, 1), shapely.box(np.nextafter(1, 2), 0, 2, 1)]
    axis = sf.Regions(frame(shapes), id="id").axes[0]
    (cut,) = axis.cuts([shapely.box(0.5, 0.2, 1.5, 0.8)], moved=False)
    assert cut.cut.tolist() == [0, 1, 2]


def test_corners_that_a_transformation_moved_by_a_hair_are_put_back():
    cells = voronoi(12, seed=3)
    axis = sf.Regions(frame(cells), id="id").axes[0]
    moved = shapely.transform(cells[4], lambda at: at + 1e-11)
    (touching,) = axis.cuts([moved], moved=False)
    (same,) = axis.cuts([moved], moved=True)
    assert len(touching.cut) > 1 and same.inside.tolist() == [4] and not len(same.cut)


@pytest.mark.parametrize(("resolution", "bounds"), [(7, NEW_YORK), (4, (176, -20, 190, -8)), (3, (-180, 78, 180, 90))])
def test_hexagons_that_a_polygon_touches_and_elsewhere(resolution, bounds):
    """In a city, over the date line, and over the pole."""
    pytest.importorskip("h3", reason="needs sfumato[h3]")
    rng = np.random.default_rng(resolution)
    x0, y0, x1, y1 = bounds
    hexagons = sf.H3(resolution, cover=bounds)
    wide = min(x1 - x0, y1 - y0)
    polygons = [star(rng, ((x0 + x1) / 2, y0 + 0.4 * (y1 - y0)), r * wide, 15) for r in (0.1, 0.4, 0.9)]
    if y1 == 90:
        polygons = [shapely.box(-60, 80, 100, 90), shapely.box(-180, 85.5, 180, 90), shapely.box(10, 83, 90, 84)]
    points = rng.uniform([x0 - wide / 4, y0 - wide / 4], [x1 + wide / 4, min(y1 + wide / 4, 90)], (20_000, 2))
    cells, seen = hexagons.locate(points), 0
    for polygon, cut in zip(polygons, hexagons.axes[0].cuts(polygons, moved=False), strict=True):
        held = np.logical_or.reduce(
            [shapely.contains_xy(polygon, *(points + np.array([[turn, 0]])).T) for turn in (-360, 0, 360)]
        )
        kind = kinds(cut, hexagons.size)
        assert (kind[cells[held]] > 0).all() and (kind[cells[~held]] < 2).all()
        seen += len(cut.inside)
    assert seen


def test_the_arcs_of_hexagons_stay_within_what_is_added_to_them():
    """Places on arcs between corners, where a hexagon ends: the straight outline alone would miss them."""
    pytest.importorskip("h3", reason="needs sfumato[h3]")
    from sfumato.domain.cut_hexagons import Comb
    from sfumato.domain.hexagons import outlines

    cells = sf.H3(1, cover=(5, 40, 30, 60)).axes[0].indices.tolist()
    corners = outlines(cells)
    comb = Comb.of(corners, len(cells))
    radians = np.radians(corners)
    space = np.stack(
        [np.cos(radians[..., 1]) * f(radians[..., 0]) for f in (np.cos, np.sin)] + [np.sin(radians[..., 1])], axis=-1
    )
    share = np.linspace(0, 1, 101)[:, None]
    missed = 0
    for i in range(len(cells)):
        for k in range(space.shape[1]):
            along = space[i, k] + (space[i, (k + 1) % space.shape[1]] - space[i, k]) * share
            along /= np.linalg.norm(along, axis=1, keepdims=True)
            lon, lat = np.degrees(np.arctan2(along[:, 1], along[:, 0])), np.degrees(np.arcsin(along[:, 2]))
            assert shapely.covers(comb.shapes[i], shapely.points(lon, lat)).all()
            straight = shapely.Polygon(corners[i])
            missed += int((shapely.distance(straight, shapely.points(lon, lat)) > 1e-3).sum())
    assert missed  # else the test would hold of straight outlines as well
