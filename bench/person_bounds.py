"""How many records of a person to count: `sf.tune_bound` on a stand-in against the best bound in hindsight.

The stand-in has the place of public data, and is none: other weeks of the same people, or the first half of the time,
in which they were busier (Foursquare), or the other half of the people (Gowalla, which has no times). What is published
is the rest. For every bound the error is the plan's noise, exact, and what the bound cuts from the records that are
published, over four independent choices.

    python bench/person_bounds.py --data FOLDER
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from _report import markdown, table, write_json

import sfumato as sf

CHOICES = 4


def foursquare(data: Path) -> tuple[sf.Domain, pa.Table, pa.Table]:
    """New York, every second week."""
    grid, rows = _new_york(data)
    even = pc.equal(pc.bit_wise_and(pc.divide(rows["minute"], 7 * 24 * 60), 1), 0)
    return grid, rows.filter(even), rows.filter(pc.invert(even))


def drifted(data: Path) -> tuple[sf.Domain, pa.Table, pa.Table]:
    """New York, divided in the middle of the time: people were far busier in the first half."""
    grid, rows = _new_york(data)
    middle = (pc.min(rows["minute"]).as_py() + pc.max(rows["minute"]).as_py()) // 2
    early = pc.less(rows["minute"], middle)
    return grid, rows.filter(early), rows.filter(pc.invert(early))


def _new_york(data: Path) -> tuple[sf.Domain, pa.Table]:
    rows = _read(data / "foursquare_nyc_checkins.parquet", ["user", "lon", "lat", "minute"])
    return sf.Grid(bounds=(-74.28, 40.55, -73.68, 40.99), shape=(32, 32)), rows


def gowalla(data: Path) -> tuple[sf.Domain, pa.Table, pa.Table]:
    """The lower 48 states, every second person."""
    rows = _read(data / "gowalla_user_poi_counts.parquet", ["user", "lon", "lat", "n_checkins"])
    rows = rows.take(pa.array(np.repeat(np.arange(len(rows)), rows["n_checkins"].to_numpy())))
    inside = (rows["lon"].to_numpy() > -125) & (rows["lon"].to_numpy() < -66)
    inside &= (rows["lat"].to_numpy() > 24) & (rows["lat"].to_numpy() < 50)
    even = rows["user"].to_numpy() % 2 == 0
    grid = sf.Grid(bounds=(-125, 24, -66, 50), shape=(32, 32))
    return grid, rows.filter(pa.array(inside & even)), rows.filter(pa.array(inside & ~even))


def _read(path: Path, columns: list[str]) -> pa.Table:
    if not path.exists():
        raise SystemExit(f"{path} is not there: this benchmark reads real data. Give its folder with --data.")
    return pq.read_table(path, columns=columns)


def questions(grid: sf.Domain) -> Iterator[tuple[str, sf.Policy, sf.Workload]]:
    """What is hidden and asked."""
    width = (grid.axes[0].high - grid.axes[0].low) / 32
    yield "somebody comes or goes, cells", sf.unbounded(grid), sf.histogram()
    yield "moves of a cell, all ranges", sf.within(grid, delta=width), sf.ranges()


def hindsight(
    policy: sf.Policy, workload: sf.Workload, epsilon: float, records: pa.Table, chosen: int
) -> dict[int, float]:
    """The error of bounds around the chosen one, a twentieth apart, and of it."""
    keys = {"x": "lon", "y": "lat", "entity": "user"}
    whole = sf.count(records, policy.domain, x="lon", y="lat").values.astype(float)
    found = {}
    for bound in sorted({max(1, round(chosen * 1.07**k)) for k in range(-16, 17)}):
        cut = [whole - sf.count(records, policy.domain, max_per_entity=bound, **keys).values for _ in range(CHOICES)]
        bias = float(np.mean([workload.mean_square(one, policy.domain) for one in cut]))
        found[bound] = sf.plan(policy, workload, epsilon, max_per_entity=bound).expected_error + bias
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="", help="stand-ins with this in their name")
    given = parser.parse_args()
    rows = []
    for name, load, guessed in (
        ("Foursquare, every second week", foursquare, False),
        ("Foursquare, first half of the time", drifted, False),
        ("the same, with `records`", drifted, True),
        ("Gowalla, other people", gowalla, False),
    ):
        if given.only not in name:
            continue
        grid, public, private = load(given.data)
        for words, policy, workload in questions(grid):
            for epsilon in (0.1, 1.0):
                people = pc.count_distinct(private["user"]).as_py()
                records = len(private) // 1000 * 1000 if guessed else None  # a guess, to thousands
                told = sf.tune_bound(
                    public, policy, workload, epsilon, entity="user", people=people, records=records, x="lon", y="lat"
                )
                errors = hindsight(policy, workload, epsilon, private, told.max_per_entity)
                best = min(errors, key=errors.__getitem__)
                rows.append(
                    {
                        "stand-in": name,
                        "hidden, asked": words,
                        "ε a person": epsilon,
                        "chosen": told.max_per_entity,
                        "best in hindsight": best,
                        "error (root)": round(errors[told.max_per_entity] ** 0.5, 1),
                        "above the best": f"{errors[told.max_per_entity] / errors[best] - 1:.1%}",
                    }
                )
                table(rows[-1:])
    table(rows)
    print(markdown(rows))
    write_json("person_bounds", {"rows": rows})


if __name__ == "__main__":
    main()
