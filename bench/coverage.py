"""How often does an interval hold the number of records in a rectangle that somebody typed? On three real datasets.

Rectangles of four sizes lie where the records are (each around a record), as people ask them, and cut cells at any
place. The truth is the number of records inside, clamped to the bounds as they are counted. Under `bracket` the
interval has to hold it 95 % of the time; `proportion`, the noise alone with cut cells in proportion, stands beside it.
Real records lie in heaps, so that "hold" and "width" depend on the resolution: both are shown for a coarse and a fine
grid. Widths are medians, as a share of the true number where that is at least 100.

    python bench/coverage.py [--data ../shared/data] [--rectangles 300] [--releases 5]

The noise is seeded: nothing here is a release.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _report import table, write_json
from numpy.typing import NDArray

import sfumato as sf

Floats = NDArray[np.float64]

SIZES = (0.2, 1.0, 5.0, 20.0)  # kilometres, in a city; `Place.scale` stretches them
RESOLUTIONS = (64, 256)
EPSILON = 1.0


@dataclass(frozen=True)
class Place:
    """A dataset: its file, the box, δ in metres, and how much larger than in a city its rectangles are."""

    file: str
    bounds: tuple[float, float, float, float]
    delta: float
    scale: float = 1.0


PLACES = {
    "uber": Place("uber_nyc_2014_04.parquet", (-74.3, 40.5, -73.7, 40.95), 500.0),
    "foursquare": Place("foursquare_nyc_checkins.parquet", (-74.3, 40.5, -73.65, 41.0), 500.0),
    "gowalla": Place("gowalla_user_poi_counts.parquet", (-125.0, 24.0, -66.0, 50.0), 20_000.0, scale=40.0),
}


def points_of(path: Path) -> Floats:
    """The records of a file, one row each."""
    import pyarrow.parquet as pq

    columns = pq.read_table(path)
    points = np.stack([columns["lon"].to_numpy(), columns["lat"].to_numpy()], axis=-1)
    if "n_checkins" in columns.column_names:
        points = np.repeat(points, columns["n_checkins"].to_numpy(), axis=0)
    return points


def rectangles(points: Floats, place: Place, kilometres: float, count: int, seed: int) -> Floats:
    """Rectangles around records inside the bounds, at an arbitrary place around each."""
    rng = np.random.default_rng(seed)
    low, high = np.array(place.bounds[:2]), np.array(place.bounds[2:])
    inside = points[((points >= low) & (points < high)).all(axis=1)]
    centre = inside[rng.integers(0, len(inside), count)]
    north = kilometres * place.scale / 111.2
    side = np.stack([north / np.cos(np.radians(centre[:, 1])), np.full(count, north)], axis=-1)
    begin = np.clip(centre - side * rng.uniform(0, 1, (count, 2)), low, high - 1e-9)
    return np.concatenate([begin, np.minimum(begin + side, high)], axis=-1)


def truth(points: Floats, place: Place, ranges: Floats) -> NDArray[np.int64]:
    """The records in half-open rectangles, clamped to the bounds; on the upper bound they count as inside."""
    low, high = np.array(place.bounds[:2]), np.array(place.bounds[2:])
    x, y = np.clip(points, low, high).T
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    begin = np.searchsorted(x, ranges[:, 0], side="left")
    end = np.where(ranges[:, 2] >= high[0], len(x), np.searchsorted(x, ranges[:, 2], side="left"))
    above = np.where(ranges[:, 3] >= high[1], np.inf, ranges[:, 3])
    found = [
        int(((y[b:e] >= y0) & (y[b:e] < y1)).sum())
        for b, e, y0, y1 in zip(begin, end, ranges[:, 1], above, strict=True)
    ]
    return np.array(found)


def measure(name: str, place: Place, points: Floats, count: int, releases: int) -> list[dict[str, object]]:
    """Both resolutions and all sizes of one dataset."""
    rows: list[dict[str, object]] = []
    for cells in RESOLUTIONS:
        grid = sf.Grid(bounds=place.bounds, shape=(cells, cells), names=("lon", "lat"))
        policy = sf.within(grid, delta=place.delta, metric="great-circle")
        plan = sf.plan(policy, sf.ranges(), EPSILON)
        made = [plan.publish(points=points, source=sf.SeededSource(seed)) for seed in range(releases)]
        for size in SIZES:
            ranges = rectangles(points, place, size, count, seed=round(100 * size))
            true = truth(points, place, ranges)
            some = true >= 100
            row: dict[str, object] = {
                "data": name,
                "records": len(points),
                "cells": f"{cells}²",
                "side (km)": size * place.scale,
                "mechanism": plan.mechanism.name,
            }
            for cut in ("proportion", "bracket"):
                held, widths, share, seconds = [], [], [], []
                for release in made:
                    begin = time.perf_counter()
                    answer = release.answer(ranges, cut=cut)
                    seconds.append(time.perf_counter() - begin)
                    held.append((answer.low <= true + 1e-6) & (true <= answer.high + 1e-6))
                    widths.append((answer.high - answer.low)[some] / true[some])
                    share.append(answer.cut_share)
                row[f"{cut}: held (%)"] = round(100 * float(np.mean(held)), 1)
                row[f"{cut}: width"] = round(float(np.median(widths)), 3) if some.any() else None
            row["in cut cells (%)"] = round(100 * float(np.median(share)))
            row["seconds"] = round(min(seconds), 4)
            rows.append(row)
    return rows


def speed(count: int = 10_000) -> list[dict[str, object]]:
    """Seconds for so many ranges that cut cells, at 1024²: the first time, and the fastest of three more."""
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(1024, 1024))
    ends = np.sort(np.random.default_rng(1).uniform(0, 1, (count, 2, 2)), axis=1)
    policies = {"within": sf.within(grid, delta=0.01), "bounded": sf.bounded(grid), "unbounded": sf.unbounded(grid)}
    rows: list[dict[str, object]] = []
    for name, policy in policies.items():
        plan = sf.plan(policy, sf.ranges(), EPSILON)
        release = plan.publish(np.zeros(grid.shape, dtype=np.int64), source=sf.SeededSource(1))
        seconds = []
        for _ in range(4):
            begin = time.perf_counter()
            release.answer(ends.reshape(count, 4))
            seconds.append(time.perf_counter() - begin)
        row = {"policy": name, "mechanism": plan.mechanism.name, "ranges": count, "first (s)": seconds[0]}
        rows.append(row | {"again (s)": min(seconds[1:])})
    return rows


def main() -> None:
    """Every dataset that is there; those that are not are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parent.parent.parent / "shared" / "data")
    parser.add_argument("--rectangles", type=int, default=300, help="of each size")
    parser.add_argument("--releases", type=int, default=5)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    skipped = {}
    for name, place in PLACES.items():
        path = options.data / place.file
        if not path.is_file():
            skipped[name] = f"skipped: there is no {place.file} in {options.data.name}/ (say where it is with --data)"
            print(f"{name} {skipped[name]}")
            continue
        rows += measure(name, place, points_of(path), options.rectangles, options.releases)
    table(rows)
    print()
    fast = speed()
    table(fast)
    figures = {"speed": fast, "epsilon": EPSILON, "rectangles": options.rectangles, "releases": options.releases}
    print(f"\nwritten to {write_json('coverage', {**figures, 'skipped': skipped, 'rows': rows})}")


if __name__ == "__main__":
    main()
