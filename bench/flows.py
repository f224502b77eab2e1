"""Trips from place to place: how well can pairs of cells and pairs of districts be published from one release?

Trips between consecutive check-ins of a person within 12 hours in New York (Foursquare), 16 × 16 cells at either end.
Mean squared errors of all pairs of cells, and of all pairs of 4 × 4 districts, under replace-one at ε = 1: what is
expected, what was found in one release, and found after negative numbers were taken out. The rivals: noise on every
pair of cells (a flat table), and noise on the edges between neighbouring cells at either end.

Then what it is worth that only one end of a trip changes at a time: expected errors of a map of each end, and of every
pair of scales, under three relations. Expected errors are exact.

    python bench/flows.py [checkins.parquet]        without the data the trips are made up
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from _report import table, write_json

import sfumato as sf
from sfumato.workload import CELLS, Blocks

BOUNDS = (-74.28, 40.55, -73.68, 40.99)
SIDE, DISTRICT = 16, 4
TABLES = [[1] * 4, [SIDE // DISTRICT] * 4]
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "foursquare_nyc_checkins.parquet"


def trips(path: Path) -> dict[str, np.ndarray]:
    """The ends of all trips, from the data where it is there."""
    if not path.exists():
        rng = np.random.default_rng(0)
        start = np.clip(rng.normal((-73.98, 40.75), 0.06, (78_552, 2)), BOUNDS[:2], BOUNDS[2:])
        end = np.clip(start + rng.laplace(0, 0.02, start.shape), BOUNDS[:2], BOUNDS[2:])
    else:
        import pyarrow.parquet as pq

        rows = pq.read_table(path, columns=["user", "minute", "lon", "lat"]).to_pydict()
        user, minute = np.array(rows["user"]), np.array(rows["minute"])
        place = np.stack([rows["lon"], rows["lat"]], axis=-1)
        order = np.lexsort([minute, user])
        user, minute, place = user[order], minute[order], place[order]
        kept = (user[1:] == user[:-1]) & (minute[1:] - minute[:-1] <= 12 * 60)
        start, end = place[:-1][kept], place[1:][kept]
    names = ["origin_x", "origin_y", "destination_x", "destination_y"]
    return dict(zip(names, np.concatenate([start, end], axis=1).T, strict=True))


def districts(counts: np.ndarray) -> np.ndarray:
    """Pairs of districts."""
    wide = SIDE // DISTRICT
    return counts.reshape([DISTRICT, wide] * 4).sum(axis=(1, 3, 5, 7))


def released(flows: sf.Domain, counts: np.ndarray) -> list[dict[str, object]]:
    """One release by every rival."""
    asked = sf.ask(origin=sf.scales(), destination=sf.scales())
    rows: list[dict[str, object]] = []
    for name, options in {"identity": {}, "edges": {}, "levels": {"blocks": TABLES, "weights": [1, 1]}}.items():
        plan = sf.plan(sf.bounded(flows), asked, epsilon=1, mechanism=name, **options)
        model = plan.mechanism.model
        release = plan.publish(counts)
        row: dict[str, object] = {"mechanism": name}
        for said, kind, seen in (("cells", CELLS, np.asarray), ("districts", Blocks(TABLES[1][0]), districts)):
            row[f"{said} expected"] = model.error_of((kind,) * 4)
            for kept, estimates in (("found", release.counts), ("non-negative", release.nonnegative())):
                row[f"{said} {kept}"] = float(((seen(estimates) - seen(counts)) ** 2).mean())
        rows.append(row)
    return rows


def relations(flows: sf.Domain) -> list[dict[str, object]]:
    """What it is worth to hide less, for questions about one end and about both."""
    both = {
        "replace-one": sf.bounded(flows),
        "one end to anywhere": sf.policy(flows, hide=sf.change("origin") | sf.change("destination")),
        "one end by δ = 0.02": sf.policy(flows, hide=sf.move(0.02, of="origin") | sf.move(0.02, of="destination")),
    }
    asked = {
        "maps of the ends": sf.ask(origin=sf.histogram()) + sf.ask(destination=sf.histogram()),
        "boxes of the ends": sf.ask(origin=sf.ranges()) + sf.ask(destination=sf.ranges()),
        "pairs of scales": sf.ask(origin=sf.scales(), destination=sf.scales()),
        "pairs of levels": sf.ask(origin=sf.levels(), destination=sf.levels()),
    }
    rows = []
    for relation, policy in both.items():
        plans = {name: sf.plan(policy, question, epsilon=1) for name, question in asked.items()}
        rows.append({"relation": relation, **{name: plan.expected_error for name, plan in plans.items()}})
    return rows


def main() -> None:
    """Both tables, and JSON."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    origin, destination = (sf.Grid(bounds=BOUNDS, shape=(SIDE, SIDE), name=name) for name in ("origin", "destination"))
    flows = origin * destination
    counts = sf.count(trips(path), flows).values
    rows, worth = released(flows, counts), relations(flows)
    print(f"{counts.sum():,} trips, {(counts > 0).mean():.0%} of {counts.size:,} pairs of cells are not empty\n")
    table(rows)
    print()
    table(worth)
    payload = {"data": path.exists(), "trips": int(counts.sum()), "released": rows, "relations": worth}
    print(f"\nwritten to {write_json('flows', payload)}")


if __name__ == "__main__":
    main()
