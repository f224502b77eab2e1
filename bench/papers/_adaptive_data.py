"""What adaptive histograms are measured on: real values on a line, points in the unit square and in the unit cube; and
the error of ranges."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _spaces import TESTED
from _spaces import points as space_points

import sfumato as sf
from sfumato.mechanism import SummedArea

NEW_YORK = (-74.006, 40.7128)


def read(data: Path, name: str, columns: list[str]) -> np.ndarray | None:
    import pyarrow.parquet as pq

    path = data / name
    if not path.exists():
        print(f"skipped: {name} is not in {data}. Give its folder with --data.")
        return None
    found = pq.read_table(path, columns=columns)
    return np.stack([found[column].to_numpy().astype(float) for column in columns], axis=-1)


def line_data(data: Path) -> dict[str, np.ndarray]:
    """Values in [0, 1]; the bounds are round public figures."""
    found = {}
    tweets = read(data, "twitter_hashtags_us_68k.parquet", ["lon", "lat"])
    if tweets is not None:
        lon, lat = np.radians(tweets.T)
        lon0, lat0 = np.radians(NEW_YORK)
        half = np.sin((lat - lat0) / 2) ** 2 + np.cos(lat) * np.cos(lat0) * np.sin((lon - lon0) / 2) ** 2
        found["distance to New York"] = 2 * 6371 * np.arcsin(np.sqrt(half)) / 5000
    prices = read(data, "airbnb_nyc_2019.parquet", ["price_usd"])
    if prices is not None:
        found["prices"] = prices[:, 0] / 1000
    wages = read(data, "us_cps_tax_units.parquet", ["wages"])
    if wages is not None:
        found["wages"] = wages[:, 0] / 200_000
    return found


def grid_data(data: Path) -> dict[str, np.ndarray]:
    """Points in the unit square."""
    boxes = {
        "twitter_hashtags_us_68k.parquet": ("tweets", (-126, 20, -63, 51)),
        "foursquare_nyc_checkins.parquet": ("check-ins", (-74.3, 40.5, -73.65, 41.0)),
    }
    found = {}
    for file, (name, (x0, y0, x1, y1)) in boxes.items():
        points = read(data, file, ["lon", "lat"])
        if points is not None:
            found[name] = (points - [x0, y0]) / [x1 - x0, y1 - y0]
    return found


def cube_data(data: Path) -> dict[str, np.ndarray]:
    """Points in the unit cube: the tags of Kaluza et al., and other records with a third number."""
    return {name: space_points(data, space) for name, space in TESTED[3].items()}


def counted(points: np.ndarray, domain: sf.Domain, n: int | None, rng: np.random.Generator) -> np.ndarray:
    """Flat counts of all points, or of n of them."""
    chosen = points if n is None or n >= len(points) else points[rng.choice(len(points), n, replace=False)]
    shape = np.array(domain.shape)
    cells = np.clip((chosen.reshape(len(chosen), -1) * shape).astype(int), 0, shape - 1)
    return np.bincount(np.ravel_multi_index(tuple(cells.T), domain.shape), minlength=domain.size)


def range_squares(off: np.ndarray, size: float, rng: np.random.Generator) -> float:
    """The mean squared error of ranges (squares) that hold a share of the domain."""
    d = off.ndim
    sides = [max(1, round(size ** (1 / d) * n)) for n in off.shape]
    if d == 1:
        below = np.concatenate([[0.0], np.cumsum(off)])
        return float(((below[sides[0] :] - below[: -sides[0]]) ** 2).mean())
    low = np.stack([rng.integers(0, n - side + 1, 4000) for n, side in zip(off.shape, sides, strict=True)], axis=-1)
    return float((SummedArea(off).fractional_sums(low.astype(float), low + np.array(sides, float)) ** 2).mean())
