"""Real points as maps of counts, and the queries that are asked of them: what the benchmarks of maps share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sfumato as sf
from sfumato.mechanism import SummedArea

NEW_YORK = (-74.27, 40.49, -73.68, 40.92)
# file, columns, bounds: round public figures, not the ends of the data.
MAPS: dict[str, tuple[str, tuple[float, float, float, float]]] = {
    "twitter": ("twitter_hashtags_us_68k.parquet", (-126.0, 20.0, -63.0, 51.0)),
    "uber": ("uber_nyc_2014_04.parquet", NEW_YORK),
    "thefts": ("nyc_vehicle_thefts.parquet", NEW_YORK),
    "foursquare": ("foursquare_nyc_checkins.parquet", NEW_YORK),
    "gowalla": ("gowalla_user_poi_counts.parquet", (-180.0, -90.0, 180.0, 90.0)),
    "airbnb": ("airbnb_nyc_2019.parquet", NEW_YORK),
}


def grid(side: int) -> sf.Grid:
    """The unit square."""
    return sf.Grid(bounds=(0, 0, 1, 1), shape=(side, side))


def counted(data: Path, name: str, side: int) -> np.ndarray:
    """Counts on side × side cells, a row a record (of gowalla a user and a place), or a plain word on what is missing;
    points beyond the bounds are clamped.
    """
    import pyarrow.parquet as pq

    file, (x0, y0, x1, y1) = MAPS[name]
    if not (data / file).exists():
        raise SystemExit(f"{data / file} is not there: this benchmark reads real data. Give its folder with --data.")
    found = pq.read_table(data / file)
    columns = [found[column].to_numpy() for column in ("lon", "lat")]
    places = zip(columns, (x0, y0), (x1, y1), strict=True)
    cells = [np.clip(((c - a) / (b - a) * side).astype(int), 0, side - 1) for c, a, b in places]
    flat = np.bincount(cells[0] * side + cells[1], minlength=side * side)
    return flat.astype(np.int64).reshape(side, side)


def boxes(side: int, size: int | None, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random ranges in cells, (x0, y0, x1, y1): all alike, or squares of one size."""
    if size is None:
        pairs = np.triu_indices(side + 1, 1)
        chosen = [rng.integers(0, len(pairs[0]), count) for _ in range(2)]
        low = np.stack([pairs[0][i] for i in chosen], axis=-1)
        return np.concatenate([low, np.stack([pairs[1][i] for i in chosen], axis=-1)], axis=-1)
    low = rng.integers(0, side - size + 1, (count, 2))
    return np.concatenate([low, low + size], axis=-1)


def sums(table: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """What a map says of ranges in cells."""
    return np.asarray(SummedArea(table).sums(ranges[:, :2], ranges[:, 2:]), dtype=np.float64)
