"""Many processes at one ledger, and a release of sixteen million cells within the memory that a plan states.

Each process charges as fast as it can; what it was told went well it writes down. Afterwards the ledger is opened anew:
every charge that was acknowledged must be there, nothing else may be, and the total must not be exceeded. The release
runs in a process of its own, whose largest resident size is set against the planner's estimate.

    python bench/ledger_load.py [--processes 64] [--seconds 60] [--cells 4096]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from multiprocessing.synchronize import Barrier
from pathlib import Path

from _report import table, write_json

import sfumato as sf

MECHANISMS = ("identity", "haar", "hierarchy", "hats", "edges", "edge-haar", "edge-hierarchy")
CHARGE = Fraction(1, 1000)
PATIENCE = 900.0  # seconds to wait for the others, or for the lock: a slow machine is no failure
POLICY = sf.threshold(sf.Line(0, 1, cells=5), 1)


def spend(path: str, number: int, seconds: float, start: Barrier, out: str) -> None:
    """Charge until the time is up or nothing is left; write down the ids of all charges that were acknowledged."""
    ledger = sf.Ledger(path, timeout=PATIENCE)
    start.wait(PATIENCE)
    stop = time.monotonic() + seconds
    done, refused = [], 0
    while time.monotonic() < stop:
        name = f"{number}-{len(done) + refused}"
        try:
            ledger.charge(CHARGE, POLICY, label="load", release_id=name)
            done.append(name)
        except sf.BudgetExceeded:
            refused += 1
            break
    Path(out).write_text(json.dumps({"done": done, "refused": refused}), encoding="utf-8")


def load(folder: Path, *, processes: int, seconds: float, epsilon: Fraction) -> dict[str, object]:
    """Run them all at one ledger, from one moment on, and compare what they say with what it holds."""
    path = folder / "budget.db"
    sf.Ledger.create(path, epsilon=epsilon, policy=POLICY)
    # One process that has imported everything and opened nothing is copied: 64 imports at once would take all memory.
    known = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in known else "spawn")
    if "forkserver" in known:
        context.set_forkserver_preload(["sfumato"])
    start = context.Barrier(processes)
    workers = [
        context.Process(target=spend, args=(str(path), i, seconds, start, str(folder / f"{i}.json")))
        for i in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    papers = [folder / f"{i}.json" for i in range(processes)]
    said = [json.loads(paper.read_text(encoding="utf-8")) for paper in papers if paper.exists()]
    acknowledged = [name for one in said for name in one["done"]]
    ledger = sf.Ledger(path)
    recorded = [entry.release_id for entry in ledger.history() if entry.kind == "release"]
    return {
        "processes": processes,
        "seconds": seconds,
        "acknowledged": len(acknowledged),
        "took_part": sum(bool(one["done"]) for one in said),
        "recorded": len(recorded),
        "lost": len(set(acknowledged) - set(recorded)),
        "unacknowledged": len(set(recorded) - set(acknowledged)),
        "twice": len(recorded) - len(set(recorded)),
        "spent": str(ledger.spent),
        "total": str(ledger.total),
        "overspent": ledger.spent > ledger.total or ledger.spent != CHARGE * len(recorded),
        "failed": sum(worker.exitcode != 0 for worker in workers),
    }


RELEASE = """
import resource, sys
import numpy as np
import sfumato as sf
side = int(sys.argv[1])
grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(side, side))
policy = sf.unbounded(grid) if sys.argv[2] == "hats" else sf.threshold(grid, 1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
plan = sf.plan(policy, sf.ranges(), 1, mechanism=sys.argv[2])
counts = np.ones(grid.shape, dtype=np.int64)
release = plan.publish(counts)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(before, after, release.counts.size)
"""


def memory(side: int, mechanism: str = "edges") -> dict[str, object]:
    """The largest resident size of a release, against `BYTES_PER_CELL` of the planner."""
    from sfumato.planning.planner import BYTES_PER_CELL

    run = subprocess.run(
        [sys.executable, "-c", RELEASE, str(side), mechanism], capture_output=True, text=True, check=True, timeout=1800
    )
    before, after, cells = map(int, run.stdout.split())
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "mechanism": mechanism,
        "cells": cells,
        "stated_bytes_per_cell": BYTES_PER_CELL,
        "measured_bytes_per_cell": (after - before) * unit / cells,
        "resident_gib": after * unit / 2**30,
        "within": (after - before) * unit <= BYTES_PER_CELL * cells,
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--processes", type=int, default=64)
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--cells", type=int, default=4096, help="along each side of the grid that is released")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ledger = load(Path(folder), processes=given.processes, seconds=given.seconds, epsilon=Fraction(10**6))
    released = [memory(given.cells, name) for name in MECHANISMS]
    table([ledger])
    table(released)
    write_json("ledger_load", {"ledger": ledger, "release": released})
    if (
        ledger["lost"]
        or ledger["overspent"]
        or ledger["twice"]
        or ledger["failed"]
        or not all(one["within"] for one in released)
    ):
        sys.exit("the ledger or the memory did not keep its promise")


if __name__ == "__main__":
    main()
