"""What it costs to bound persons: m records a person on 1024 × 1024 cells, against the bare group-by of the same file.

    python bench/persons.py                         10⁷ points of 2 · 10⁶ persons
    python bench/persons.py --points 100000000      more than memory is to hold: they go through an enciphered file

Persons are told by small numbers, by numbers of 64 bits, or by names. Each job runs in a process of its own, jobs
alternate, and the fastest run counts. ``seconds`` leaves out the imports; ``CPU`` is user and system time together,
which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _report import table, write_json
from end_to_end import BOUNDS, SIDE, bare, run, write_points

TARGET = 2.5


def write(path: Path, points: int) -> None:
    """The points of the benchmark from end to end, with persons told in two more ways."""
    import duckdb

    plain = path.with_name("plain.parquet")
    write_points(plain, points)
    told = "hash(user)::UBIGINT AS wide, 'visitor ' || user AS name"
    duckdb.sql(f"COPY (SELECT *, {told} FROM read_parquet('{plain}')) TO '{path}' (FORMAT parquet)")
    plain.unlink()


def counting(entity: str | None, most: int | None) -> Callable[[Path], Callable[[], object]]:
    """Counting with at most so many records a person."""

    def job(path: Path) -> Callable[[], object]:
        import duckdb  # noqa: F401  # imported beforehand, as the bare job imports it
        import narwhals  # noqa: F401
        import pyarrow  # noqa: F401

        import sfumato as sf

        grid = sf.Grid(bounds=BOUNDS, shape=(SIDE, SIDE))
        return lambda: sf.count(path, grid, x="lon", y="lat", entity=entity, max_per_entity=most)

    return job


def writing(points: int) -> Callable[[Path], Callable[[], object]]:
    """The file itself, made in a process of its own: those that are measured would inherit this one's peak."""
    return lambda path: lambda: write(path, points)


JOBS: dict[str, Callable[[Path], Callable[[], object]]] = {
    "bare group-by": bare,
    "no bound": counting(None, None),
    "numbers, m = 1": counting("user", 1),
    "numbers, m = 3": counting("user", 3),
    "numbers of 64 bits, m = 1": counting("wide", 1),
    "names, m = 1": counting("name", 1),
}


def measure(job: str, path: Path) -> dict[str, float]:
    """One job in this process."""
    work = (writing(int(job)) if job.isdigit() else JOBS[job])(path)
    begin, before = time.perf_counter(), time.process_time()
    work()
    seconds, cpu = time.perf_counter() - begin, time.process_time() - before
    return {"seconds": seconds, "CPU": cpu, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def compare(points: int, repeat: int) -> list[dict[str, object]]:
    """Every job on the same points, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.parquet"
        run(str(points), path, __file__)
        runs: dict[str, list[dict[str, float]]] = {job: [] for job in JOBS}
        for _ in range(repeat):
            for job in JOBS:
                runs[job].append(run(job, path, __file__))
    best = {job: {name: min(run[name] for run in each) for name in ("seconds", "CPU")} for job, each in runs.items()}
    base = best["bare group-by"]
    return [
        {
            "job": job,
            "points": points,
            "seconds": least["seconds"],
            "times bare": least["seconds"] / base["seconds"],
            "CPU (s)": least["CPU"],
            "CPU times bare": least["CPU"] / base["CPU"],
            "peak (MB)": max(run["megabytes"] for run in runs[job]),
        }
        for job, least in best.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(measure(options.job, options.path)))
        return
    rows = compare(options.points, options.repeat)
    table(rows)
    print(f"\ntarget: one record a person, told by numbers, in at most {TARGET:g} times the bare group-by")
    write_json("persons", {"cells": SIDE**2, "target_times_bare": TARGET, "rows": rows})


if __name__ == "__main__":
    main()
