"""Real records as points in the unit square and cube: what error models are calibrated on, and what they are tested on.

Bounds are round public figures; a moment counts as its hour of the day; what lies beyond is clamped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

NEW_YORK, DAY = ((-74.27, 40.49), (-73.68, 40.92)), 86_400
Space = tuple[str, tuple[str, ...], tuple[float, ...], tuple[float, ...]]


def _city(file: str, *also: tuple[str, float]) -> Space:
    low, high = NEW_YORK
    return (
        file,
        ("lon", "lat", *(name for name, _ in also)),
        (*low, *(0.0 for _ in also)),
        (*high, *(top for _, top in also)),
    )


UBER, THEFTS = "uber_nyc_2014_04.parquet", "nyc_vehicle_thefts.parquet"
FOURSQUARE, AIRBNB = "foursquare_nyc_checkins.parquet", "airbnb_nyc_2019.parquet"
KALUZA, TAXES = "uci_person_activity_first10pct.parquet", "us_cps_tax_units.parquet"
# By dimensions: those that models are made from, and those that they are tested on.
FITTED: dict[int, dict[str, Space]] = {
    2: {
        "thefts": _city(THEFTS),
        "check-ins": _city(FOURSQUARE),
        "gowalla": ("gowalla_user_poi_counts.parquet", ("lon", "lat"), (-180, -90), (180, 90)),
        "age, wages": (TAXES, ("age_head", "wages"), (0, 0), (100, 200_000)),
    },
    3: {
        "pickups, hour": _city(UBER, ("t", DAY)),
        "check-ins, hour": _city(FOURSQUARE, ("t", DAY)),
        "age, wages, security": (
            TAXES,
            ("age_head", "wages", "social_security"),
            (0, 0, 0),
            (100, 200_000, 50_000),
        ),
    },
}
TESTED: dict[int, dict[str, Space]] = {
    1: {
        "longitude of tweets": ("twitter_hashtags_us_68k.parquet", ("lon",), (-126,), (-63,)),
        "prices": (AIRBNB, ("price_usd",), (0,), (1000,)),
        "wages": (TAXES, ("wages",), (0,), (200_000,)),
    },
    2: {
        "tweets": ("twitter_hashtags_us_68k.parquet", ("lon", "lat"), (-126, 20), (-63, 51)),
        "pickups": _city(UBER),
        "airbnb": _city(AIRBNB),
        "Kaluza": (KALUZA, ("x", "y"), (-1, -1), (6, 6)),
    },
    3: {
        "Kaluza": (KALUZA, ("x", "y", "z"), (-1, -1, -1), (6, 6, 3)),
        "thefts, hour": _city(THEFTS, ("t", DAY)),
        "airbnb, price": _city(AIRBNB, ("price_usd", 1000)),
    },
}


def points(data: Path, space: Space) -> np.ndarray:
    """In [0, 1)ᵈ, or a plain word on what is missing."""
    import pyarrow.parquet as pq

    file, names, low, high = space
    if not (data / file).exists():
        raise SystemExit(f"{data / file} is not there: this benchmark reads real data. Give its folder with --data.")
    found, columns = pq.read_table(data / file, columns=list(names)), []
    for name, a, b in zip(names, low, high, strict=True):
        column = found[name].to_numpy()
        if column.dtype.kind == "M":
            column = column.astype("datetime64[s]").astype(np.int64) % DAY
        columns.append(np.clip((column.astype(float) - a) / (b - a), 0, 1 - 1e-9))
    return np.stack(columns, axis=-1)


def counted(places: np.ndarray, shape: tuple[int, ...], n: int | None, rng: np.random.Generator) -> np.ndarray:
    """Counts of all of them, or of n of them, in the shape of the grid."""
    chosen = places if n is None or n >= len(places) else places[rng.choice(len(places), n, replace=False)]
    cells = tuple((chosen * shape).astype(int).T)
    return np.bincount(np.ravel_multi_index(cells, shape), minlength=int(np.prod(shape))).reshape(shape)
