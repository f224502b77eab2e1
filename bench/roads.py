"""Road networks: what it takes to read one, to know which segments are near by road, to locate places and to plan.

    python bench/roads.py [crossings along a side]

A town of streets on a lattice whose crossings are moved at random and of which one street in ten is missing; CPU
seconds of one process. The peer for places is an R-tree of the lines, asked for the nearest of each.
"""

from __future__ import annotations

import sys
import time
import warnings

import geopandas
import numpy as np
import shapely
from _report import table, write_json

import sfumato as sf

STEP = 0.001
PLACES = 1_000_000
PEER = 50_000
DELTAS = ("50 m", "100 m", "150 m")


def town(side: int) -> geopandas.GeoDataFrame:
    rng = np.random.default_rng(side)
    at = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), axis=-1).reshape(-1, 2)
    at = (at + rng.uniform(-0.3, 0.3, at.shape)) * STEP + [-74.3, 40.5]
    number = np.arange(side * side).reshape(side, side)
    ends = np.concatenate(
        [
            np.stack([number[1:].ravel(), number[:-1].ravel()], axis=1),
            np.stack([number[:, 1:].ravel(), number[:, :-1].ravel()], axis=1),
        ]
    )
    ends = ends[rng.random(len(ends)) < 0.9]
    ward = number[0, 0] + (ends[:, 0] // side // 30) * 100 + ends[:, 0] % side // 30
    return geopandas.GeoDataFrame({"ward": ward}, geometry=shapely.linestrings(at[ends]), crs="EPSG:4326")


def timed(work):
    begin = time.process_time()
    found = work()
    return found, round(time.process_time() - begin, 2)


def main(side: int = 300) -> None:
    warnings.simplefilter("ignore")
    lines = town(side)
    roads, read = timed(lambda: sf.network(lines, levels=["ward"]))
    axis = roads.axes[0]
    low, high = lines.total_bounds[:2], lines.total_bounds[2:]
    places = np.random.default_rng(0).random((PLACES, 2)) * (high - low) + low
    _, indexed = timed(lambda: axis.nearest)
    found, located = timed(lambda: roads.locate(places))
    tree = shapely.STRtree(lines.geometry.to_numpy())
    few = shapely.points(places[:PEER])
    _, peer = timed(lambda: tree.query_nearest(few, all_matches=False))
    rows = [
        {
            "ends": len(axis.lines.ends[0]),
            "segments": roads.size - 1,
            "read, s": read,
            "index, s": indexed,
            "million places/s": round(PLACES / located / 1e6, 2),
            "R-tree, million/s": round(PEER / peer / 1e6, 2),
            "elsewhere": round(float((found == roads.size - 1).mean()), 3),
        }
    ]
    table(rows)
    moves = []
    for delta in DELTAS:
        policy, _ = timed(lambda delta=delta: sf.policy(roads, hide=sf.move(delta, along=roads)))
        pairs, near = timed(lambda policy=policy: policy.moves.count(roads.shape))
        plan, planned = timed(lambda policy=policy: sf.plan(policy, sf.histogram(), epsilon=1))
        levels, by_level = timed(lambda policy=policy: sf.plan(policy, sf.levels(), epsilon=1))
        release, published = timed(lambda plan=levels: plan.publish(np.ones(roads.size, np.int64)))
        _, answered = timed(lambda release=release: release.answer(by="ward"))
        moves.append(
            {
                "delta": delta,
                "pairs": pairs,
                "near, s": near,
                "plan, s": planned,
                "takes": f"{plan.mechanism.name} {plan.expected_error:.4g}",
                "plan for levels, s": by_level,
                "takes then": f"{levels.mechanism.name} {levels.expected_error:.4g}",
                "publish, s": published,
                "by ward, s": answered,
            }
        )
    table(moves)
    write_json("roads", {"network": rows, "moves": moves})


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
