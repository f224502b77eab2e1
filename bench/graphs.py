"""Listed graphs at scale: what 200,000 cells and 2 million edges take, and what identity, trees and edges have.

    python bench/graphs.py [cells]

Random places in a unit square, joined to those nearby (ten edges a cell), in a hundred districts; ε = 1. CPU seconds of
one process, and its largest memory so far.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings

import numpy as np
from _report import table, write_json
from scipy.spatial import Delaunay, cKDTree

import sfumato as sf

MECHANISMS = ("identity", "tree", "edges")


def timed(work):
    begin = time.process_time()
    found = work()
    return found, round(time.process_time() - begin, 2)


def main(cells: int = 200_000) -> None:
    warnings.simplefilter("ignore")
    places = np.random.default_rng(0).random((cells, 2))
    near = cKDTree(places).query_pairs(np.sqrt(20 / cells / np.pi), output_type="ndarray").astype(np.int64)
    corners = Delaunay(places).simplices
    pairs = np.concatenate([near, *(corners[:, pair] for pair in ([0, 1], [1, 2], [0, 2]))])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    of = (places * 10).astype(int) @ [10, 1]
    domain = sf.Categories([str(i) for i in range(cells)], name="cell", levels={"district": [str(i) for i in of]})
    policy, made = timed(lambda: sf.graph(domain, pairs))
    _, words = timed(lambda: str(policy))
    asked = {"cells": sf.histogram(), "all levels": sf.levels(), "districts": sf.levels("district")}
    rows = []
    for name, workload in asked.items():
        plan, planned = timed(lambda workload=workload: sf.plan(policy, workload, epsilon=1))
        weighed = {other.name: other.error for other in plan.alternatives if other.name in MECHANISMS}
        errors = {one: None if weighed.get(one) is None else round(weighed[one], 2) for one in MECHANISMS}
        rows.append({"asked": name, "plan, s": planned, "takes": plan.mechanism.name, **errors})
    release, published = timed(lambda: plan.publish(np.ones(cells, np.int64)))
    diameter, wide = timed(lambda: policy.diameter)
    table(rows)
    work = {
        "cells": cells,
        "edges": len(pairs),
        "built, s": made,
        "in words, s": words,
        "published, s": published,
        "diameter": f"{diameter:g}",
        "found, s": wide,
        "largest, GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }
    table([work])
    write_json("graphs", {"errors": rows, "work": work, "total": float(release.total)})


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
