"""A city that does not exist: visits of people to places, for demonstrations and tests.

Everything is synthetic, so that the truth may be shown beside what was published. The random generator is NumPy's:
this is data, not noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BOUNDS = (-74.3, 40.5, -73.7, 40.95)
"""The box of the city in degrees: (west, south, east, north)."""


@dataclass(frozen=True, eq=False)
class City:
    """Visits: who, where and at which hour of the week."""

    person: NDArray[np.int32]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    hour: NDArray[np.int16]


def make_city(people: int, visits_each: float, seed: int) -> City:
    """A centre, a river without visits, quarters of different sizes, and streets along which places line up."""
    rng = np.random.default_rng(seed)
    west, south, east, north = BOUNDS
    middle = np.array([(west + east) / 2, (south + north) / 2])
    quarters = middle + rng.normal(0, [0.11, 0.085], (40, 2))
    quarters[0] = middle
    size = rng.pareto(2.2, 40) + 0.35
    size[0] = size.max() * 2
    home = rng.choice(40, people, p=size / size.sum())
    count = 1 + rng.poisson(visits_each - 1, people)
    person = np.repeat(np.arange(people, dtype=np.int32), count)
    # Two visits in three are near home, the others near the quarter that draws everybody.
    quarter = np.where(rng.random(len(person)) < 0.66, home[person], rng.choice(40, len(person), p=size / size.sum()))
    spread = 0.008 + 0.022 * rng.random(40)
    place = quarters[quarter] + rng.normal(0, 1, (len(person), 2)) * spread[quarter, None]
    on_street = rng.random(len(person)) < 0.45
    axis = rng.integers(0, 2, len(person))
    step = np.where(axis == 0, 0.0072, 0.0054)
    snapped = np.round(place[np.arange(len(person)), axis] / step) * step + rng.normal(0, 0.0004, len(person))
    place[np.arange(len(person)), axis] = np.where(on_street, snapped, place[np.arange(len(person)), axis])
    river = middle[0] + 0.085 + 0.025 * np.sin(12 * (place[:, 1] - south))
    wet = np.abs(place[:, 0] - river) < 0.009
    place[wet, 0] += np.where(place[wet, 0] < river[wet], -0.014, 0.014)
    hour = (rng.normal(14, 4, len(person)) % 24 + 24 * rng.integers(0, 7, len(person))).astype(np.int16)
    return City(person, place[:, 0], place[:, 1], hour)


def one_visit_each(city: City, seed: int) -> City:
    """One visit of every person, each equally likely."""
    order = np.lexsort((np.random.default_rng(seed).random(len(city.person)), city.person))
    first = order[np.diff(city.person[order], prepend=-1) > 0]
    return City(city.person[first], city.lon[first], city.lat[first], city.hour[first])


def as_table(city: City) -> Any:
    """The visits as an Arrow table with the columns person, lon, lat and hour."""
    import pyarrow as pa

    return pa.table({"person": city.person, "lon": city.lon, "lat": city.lat, "hour": city.hour})


def write_city(city: City, path: Path) -> None:
    """The visits as a Parquet file."""
    import pyarrow.parquet as pq

    pq.write_table(as_table(city), path, compression="zstd")
