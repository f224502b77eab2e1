"""From points in a Parquet file to a saved release on 1024 × 1024 cells, against the bare group-by of the same file.

    python bench/end_to_end.py                      10⁷ points
    python bench/end_to_end.py --large              10⁸ points: memory must not grow with them

Each job runs in a process of its own, so that its peak memory is its own, and is repeated; the fastest run counts. The
two jobs to compare alternate, because a machine that is busy for a while should be busy for both. ``seconds`` leaves
out the imports, which are shown beside it, and the plan, which is made without data.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _report import table, write_json

BOUNDS = (-74.3, 40.5, -73.7, 40.95)
SIDE = 1024
CHUNK = 1_000_000
TARGET = 2.0


def write_points(path: Path, points: int) -> None:
    """Fifty clusters and one visitor for five points, written chunk by chunk."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    centres = rng.uniform((-74.25, 40.52), (-73.75, 40.93), (50, 2))
    schema = pa.schema({"user": pa.int64(), "lon": pa.float64(), "lat": pa.float64(), "time": pa.int64()})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, points, CHUNK):
            count = min(CHUNK, points - start)
            where = centres[rng.integers(0, 50, count)] + rng.normal(0, 0.02, (count, 2))
            users, times = rng.integers(0, max(points // 5, 1), count), rng.integers(0, 10**6, count)
            writer.write_table(pa.table([users, where[:, 0], where[:, 1], times], schema=schema))


def bare(path: Path) -> Callable[[], object]:
    """The least that any tool has to do: DuckDB counts records by cell, with cells by plain division."""
    import duckdb

    x0, y0, x1, y1 = BOUNDS

    def cell(column: str, low: float, high: float) -> str:
        return f"least(greatest(floor(({column} - ({low})) / {(high - low) / SIDE!r}), 0), {SIDE - 1})"

    flat = f"({cell('lon', x0, x1)} * {SIDE} + {cell('lat', y0, y1)})::INTEGER"
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection.sql(f"SELECT {flat} AS cell, count(*) AS n FROM read_parquet('{path}') GROUP BY cell").fetchnumpy


def count(path: Path) -> Callable[[], object]:
    """Counting alone."""
    import duckdb  # noqa: F401  # imported beforehand, as the bare job imports it
    import narwhals  # noqa: F401
    import pyarrow  # noqa: F401

    import sfumato as sf

    grid = sf.Grid(bounds=BOUNDS, shape=(SIDE, SIDE))
    return lambda: sf.count(path, grid, x="lon", y="lat")


def count_entities(path: Path) -> Callable[[], object]:
    """Counting one record a visitor."""
    import duckdb  # noqa: F401
    import narwhals  # noqa: F401
    import pyarrow  # noqa: F401

    import sfumato as sf

    grid = sf.Grid(bounds=BOUNDS, shape=(SIDE, SIDE))
    return lambda: sf.count(path, grid, x="lon", y="lat", entity="user", max_per_entity=1)


def whole(path: Path) -> Callable[[], object]:
    """Counting, publishing and saving."""
    import sfumato as sf

    counting = count(path)
    policy = sf.within(sf.Grid(bounds=BOUNDS, shape=(SIDE, SIDE)), delta=0.01)
    plan = sf.plan(policy, sf.ranges(), epsilon=1.0)
    return lambda: plan.publish(counting()).save(path.with_suffix(".sfumato"))  # type: ignore[arg-type]


JOBS = {"bare group-by": bare, "whole path": whole, "count": count, "count, 1 per entity": count_entities}


def measure(job: str, path: Path) -> dict[str, float]:
    """One job in this process: its seconds, the seconds before it could start, and the most memory the process held."""
    begin = time.perf_counter()
    work = JOBS[job](path)
    ready = time.perf_counter()
    work()
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": done - ready, "before": ready - begin, "megabytes": peak}


def run(job: str, path: Path, program: str = __file__) -> dict[str, float]:
    """One job of a benchmark in a new process."""
    command = [sys.executable, program, "--job", job, "--path", str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, float] = json.loads(output.splitlines()[-1])
    return result


def compare(points: int, repeat: int) -> list[dict[str, object]]:
    """Every job on the same points; seconds are those of the fastest run, memory that of the largest."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.parquet"
        write_points(path, points)
        runs: dict[str, list[dict[str, float]]] = {job: [] for job in JOBS}
        for _ in range(repeat):
            for job in JOBS:
                runs[job].append(run(job, path))
    fastest = {job: min(results, key=lambda result: result["seconds"]) for job, results in runs.items()}
    base = fastest["bare group-by"]["seconds"]
    return [
        {
            "job": job,
            "points": points,
            "seconds": best["seconds"],
            "times bare": best["seconds"] / base,
            "before (s)": best["before"],
            "peak (MB)": max(result["megabytes"] for result in runs[job]),
        }
        for job, best in fastest.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--large", action="store_true", help="10⁸ points as well")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(measure(options.job, options.path)))
        return
    rows = [row for points in (options.points, *([10**8] * options.large)) for row in compare(points, options.repeat)]
    table(rows)
    print(f"\ntarget: whole path at most {TARGET:g} times bare, and memory that does not grow with the points")
    write_json("end_to_end", {"cells": SIDE**2, "target_times_bare": TARGET, "rows": rows})


if __name__ == "__main__":
    main()
