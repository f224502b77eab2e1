"""Regions and hexagons: points located a second, and what it takes to know which regions are near each other.

    python bench/geography.py [points]

Random points on random Voronoi cells, against an R-tree that is asked for every point, in CPU time of one process.
"""

from __future__ import annotations

import sys
import time

import geopandas
import numpy as np
import shapely
from _report import table, write_json

import sfumato as sf

BOUNDS = (-74.3, 40.5, -73.7, 40.95)
PEER = 200_000


def voronoi(count: int) -> list[shapely.Polygon]:
    x0, y0, x1, y1 = BOUNDS
    points = np.random.default_rng(count).random((count, 2)) * [x1 - x0, y1 - y0] + [x0, y0]
    cells = shapely.voronoi_polygons(shapely.MultiPoint(points), extend_to=shapely.box(*BOUNDS))
    return [shapely.intersection(cell, shapely.box(*BOUNDS)) for cell in cells.geoms]


def timed(work):
    begin = time.process_time()
    found = work()
    return found, time.process_time() - begin


def main(points: int = 5_000_000) -> None:
    x0, y0, x1, y1 = BOUNDS
    places = np.random.default_rng(0).random((points, 2)) * [x1 - x0, y1 - y0] + [x0, y0]
    rows = []
    for count in (100, 2_000, 20_000):
        shapes = voronoi(count)
        frame = geopandas.GeoDataFrame({"id": range(count)}, geometry=shapes, crs="EPSG:4326")
        regions, made = timed(lambda frame=frame: sf.Regions(frame, id="id"))
        _, built = timed(lambda axis=regions.axes[0]: axis.lookup)
        found, located = timed(lambda axis=regions.axes[0]: axis.locate(places))
        tree = shapely.STRtree(shapes)
        few = shapely.points(places[:PEER])
        (at, region), peer = timed(lambda tree=tree, few=few: tree.query(few, predicate="intersects"))
        expected = np.full(PEER, count)
        expected[at] = region
        _, near = timed(lambda axis=regions.axes[0]: axis.near(500))
        rows.append(
            {
                "regions": count,
                "checked, s": round(made, 2),
                "lookup, s": round(built, 2),
                "million points/s": round(points / located / 1e6, 1),
                "R-tree, million/s": round(PEER / peer / 1e6, 2),
                "other cells": int((found[:PEER] != expected).sum()),
                "near 500 m, s": round(near, 2),
            }
        )
    table(rows)
    hexagons = [_hexagons(resolution, places[:PEER]) for resolution in (7, 8, 9)]
    table(hexagons)
    write_json("geography", {"points": points, "rows": rows, "hexagons": hexagons})


def _hexagons(resolution, places):
    domain, made = timed(lambda: sf.H3(resolution, cover=BOUNDS))
    _, located = timed(lambda: domain.locate(places))
    pairs, near = timed(lambda: domain.axes[0].near(500))
    return {
        "resolution": resolution,
        "hexagons": domain.size - 1,
        "covered, s": round(made, 2),
        "million points/s": round(len(places) / located / 1e6, 2),
        "pairs within 500 m": len(pairs),
        "near 500 m, s": round(near, 2),
    }


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
