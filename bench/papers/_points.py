"""The real point data of the paper benchmarks, normalised to the unit square, and random square queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FILES = {
    "twitter": ("twitter_hashtags_us_68k.parquet", ("lon", "lat")),
    "foursquare": ("foursquare_nyc_checkins.parquet", ("lon", "lat")),
    "thefts": ("nyc_vehicle_thefts.parquet", ("lon", "lat")),
    "gowalla": ("gowalla_user_poi_counts.parquet", ("lon", "lat")),
    "kaluza": ("uci_person_activity_first10pct.parquet", ("x", "y")),
}


def load(data: Path, name: str) -> np.ndarray:
    """Points in [0, 1]², or a plain word on what is missing."""
    import pyarrow.parquet as pq

    file, columns = FILES[name]
    path = data / file
    if not path.exists():
        raise SystemExit(f"{path} is not there: this benchmark reads real data. Give its folder with --data.")
    table = pq.read_table(path, columns=list(columns))
    points = np.stack([table[column].to_numpy() for column in columns], axis=-1)
    low, high = points.min(axis=0), points.max(axis=0)
    return (points - low) / (high - low)


def squares(side: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random squares of one side that lie in the unit square, as (x0, y0, x1, y1)."""
    centre = rng.uniform(side / 2, 1 - side / 2, (count, 2))
    return np.concatenate([centre - side / 2, centre + side / 2], axis=1)


def truth(points: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """How many points lie in each box."""
    order = np.argsort(points[:, 0], kind="stable")
    x, y = points[order, 0], points[order, 1]
    start, stop = np.searchsorted(x, boxes[:, 0]), np.searchsorted(x, boxes[:, 2])
    return np.array(
        [
            np.sum((y[a:b] >= y0) & (y[a:b] < y1))
            for a, b, y0, y1 in zip(start, stop, boxes[:, 1], boxes[:, 3], strict=True)
        ]
    )
