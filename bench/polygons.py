"""How often does an interval hold the number of records in a polygon that somebody drew? On real pickups and check-ins.

Polygons of four sizes, with corners that go in and out, lie where the records are: each around one of them. They are
asked of a grid on the ground, of hexagons and of regions made by a Voronoi diagram of public places; they cut cells at
any place, and some reach beyond the cover. The truth is the number of records inside. Under `bracket` the interval has
to hold it 95 % of the time; `proportion`, the noise alone with cut cells by their shares of area, stands beside it.
Widths are medians, as a share of the true number where that is at least 100.

    python bench/polygons.py [--data ../shared/data] [--polygons 60] [--releases 5]

The noise is seeded: nothing here is a release.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import shapely
from _report import table, write_json
from coverage import points_of

import sfumato as sf

FILES = {"uber": "uber_nyc_2014_04.parquet", "foursquare": "foursquare_nyc_checkins.parquet"}
BOX = (-74.1, 40.6, -73.8, 40.88)
SIZES = (0.5, 2.0, 5.0)  # kilometres from the middle to the farthest corner
EPSILON = 1.0


def places() -> dict[str, sf.Domain]:
    """The three kinds of places, over one box."""
    box = shapely.box(*BOX)
    low, high = np.array(BOX[:2]), np.array(BOX[2:])
    seeds = shapely.MultiPoint(np.random.default_rng(0).random((300, 2)) * (high - low) + low)
    cells = [shapely.intersection(cell, box) for cell in shapely.voronoi_polygons(seeds, extend_to=box).geoms]
    regions = geopandas.GeoDataFrame({"id": range(len(cells))}, geometry=cells, crs="EPSG:4326")
    return {
        "grid, 500 m": sf.Grid(BOX, cell="500 m"),
        "hexagons, 8": sf.H3(8, cover=BOX),
        "regions, 300": sf.Regions(regions, id="id", repair=True),
    }


def polygons(points: Any, kilometres: float, count: int, seed: int) -> list[Any]:
    """Polygons around records, at an arbitrary place around each."""
    rng = np.random.default_rng(seed)
    near = points[((points >= BOX[:2]) & (points < BOX[2:])).all(axis=1)]
    found: list[Any] = []
    while len(found) < count:
        turn, far = np.sort(rng.uniform(0, 2 * np.pi, 12)), rng.uniform(0.3, 1.0, 12) * kilometres / 111.2
        wide = 1 / np.cos(np.radians(40.75))
        middle = near[rng.integers(len(near))] + rng.uniform(-0.5, 0.5, 2) * kilometres / 111.2
        shape = shapely.Polygon(np.stack([np.cos(turn) * wide, np.sin(turn)], axis=-1) * far[:, None] + middle)
        if shape.is_valid and shape.area > 0:
            found.append(shape)
    return found


def measure(data: str, points: Any, count: int, releases: int) -> list[dict[str, object]]:
    """All places and sizes for one dataset."""
    rows: list[dict[str, object]] = []
    inside = points[((points >= BOX[:2]) & (points < BOX[2:])).all(axis=1)]
    for name, place in places().items():
        plan = sf.plan(sf.policy(place, hide=sf.move("500 m")), sf.histogram(), epsilon=EPSILON)
        counts = sf.count({"lon": points[:, 0], "lat": points[:, 1]}, place, lon="lon", lat="lat")
        made = [plan.publish(counts, source=sf.SeededSource(seed)) for seed in range(releases)]
        counted = inside if place.apart else points  # what lies beyond a grid is in no cell
        for size in SIZES:
            asked = polygons(points, size, count, seed=round(100 * size))
            true = np.array([shapely.contains_xy(shape, counted).sum() for shape in asked])
            row: dict[str, object] = {
                "data": data,
                "place": name,
                "cells": place.size,
                "radius (km)": size,
                "mechanism": plan.mechanism.name,
            }
            some = true >= 100
            for cut in ("proportion", "bracket"):
                held, widths, seconds = [], [], []
                for release in made:
                    begin = time.process_time()
                    answer = release.answer(asked, cut=cut)
                    seconds.append(time.process_time() - begin)
                    held.append((answer.low <= true + 1e-6) & (true <= answer.high + 1e-6))
                    widths.append((answer.high - answer.low)[some] / true[some])
                row[f"{cut}: held (%)"] = round(100 * float(np.mean(held)), 1)
                row[f"{cut}: width"] = round(float(np.median(widths)), 3) if some.any() else None
            row["CPU ms a polygon"] = round(1000 * min(seconds) / count, 2)
            rows.append(row)
    return rows


def main() -> None:
    """Every dataset that is there; those that are not are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parent.parent.parent / "shared" / "data")
    parser.add_argument("--polygons", type=int, default=60, help="of each size")
    parser.add_argument("--releases", type=int, default=5)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    skipped = {}
    for name, file in FILES.items():
        path = options.data / file
        if not path.is_file():
            skipped[name] = f"skipped: there is no {file} in {options.data.name}/ (say where it is with --data)"
            print(f"{name} {skipped[name]}")
            continue
        rows += measure(name, points_of(path), options.polygons, options.releases)
    table(rows)
    about = {"epsilon": EPSILON, "polygons": options.polygons, "releases": options.releases, "skipped": skipped}
    print(f"\nwritten to {write_json('polygons', {**about, 'rows': rows})}")


if __name__ == "__main__":
    main()
