"""Maps that tests make: squares, random Voronoi cells, and what is hard about maps."""

from __future__ import annotations

import numpy as np
import pytest

geopandas = pytest.importorskip("geopandas", reason="needs sfumato[geo]")
shapely = pytest.importorskip("shapely", reason="needs sfumato[geo]")
pyproj = pytest.importorskip("pyproj", reason="needs sfumato[geo]")

WGS84 = pyproj.Geod(ellps="WGS84")


def frame(shapes, crs="EPSG:4326", **columns):
    return geopandas.GeoDataFrame({"id": [f"r{i}" for i in range(len(shapes))], **columns}, geometry=shapes, crs=crs)


def voronoi(count, bounds=(0.0, 0.0, 1.0, 1.0), seed=0):
    """Cells of random points that fill a box."""
    x0, y0, x1, y1 = bounds
    points = np.random.default_rng(seed).random((count, 2)) * [x1 - x0, y1 - y0] + [x0, y0]
    box = shapely.box(*bounds)
    cells = shapely.voronoi_polygons(shapely.MultiPoint(points), extend_to=box)
    return [shapely.intersection(cell, box) for cell in cells.geoms]


def hard(seed=0):
    """Cells in several parts, a hole that is a region, one that is nowhere, an island, and a gap."""
    cells = voronoi(12, seed=seed)
    rest = shapely.union_all(cells[3:5])
    inner = cells[0].centroid.buffer(0.03, quad_segs=3)
    lake = cells[1].centroid.buffer(0.03, quad_segs=2)
    island = shapely.box(1.25, 0.25, 1.5, 0.5)
    many = shapely.multipolygons([cells[6], island])
    return [cells[0] - inner, inner, cells[1] - lake, cells[2], rest, cells[5], many, *cells[8:]]


def border_points(outlines, each, seed=0):
    """Points on every segment of every border, and the region that it bounds."""
    segments, owner = outlines.segments()
    share = np.random.default_rng(seed).random((len(segments), each))
    share[:, 0] = 0
    ends = segments[:, None, :2] + share[..., None] * (segments[:, None, 2:] - segments[:, None, :2])
    return ends.reshape(-1, 2), np.repeat(owner, each)


def witnesses(outlines, delta, each=8, seed=0):
    """Pairs of regions on whose borders there are points with a geodesic below delta between them."""
    from scipy.spatial import cKDTree

    points, owner = border_points(outlines, each, seed)
    lon, lat = np.radians(points.T)
    chords = 6_400_000 * np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    pairs = cKDTree(chords).query_pairs(delta * 1.02, output_type="ndarray")
    pairs = pairs[owner[pairs[:, 0]] != owner[pairs[:, 1]]]
    apart = WGS84.inv(*points[pairs[:, 0]].T, *points[pairs[:, 1]].T)[2]
    return {tuple(sorted(pair)) for pair in owner[pairs[apart < delta]].tolist()}
