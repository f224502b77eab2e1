"""Reads forgeries one after the other under limits of its own; says which one it is at, and what was wrong.

    python strangers_worker.py FOLDER KIND FIRST COUNT

A file may take `SECONDS` of CPU, and `MEGABYTES` more memory than the process had before. Beyond the first limit the
system stops the process; the parent knows from the last line which forgery it was.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from forgeries import Seeds

SECONDS = 20  # what is honest takes less than one on a machine in use
MEGABYTES = 400


def main(folder: str, kind: str, first: str, count: str) -> None:
    seeds = Seeds(Path(folder))
    for warm in range(3):
        seeds.run(kind, -1 - warm)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_mapped() + 4 * (MEGABYTES << 20), hard))
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    for number in range(int(first), int(first) + int(count)):
        print("at", number, flush=True)
        used, resident = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        resource.setrlimit(resource.RLIMIT_CPU, (int(used) + SECONDS + 1, hard))
        wrong = seeds.run(kind, number)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident) >> 10  # kB on Linux
        if wrong is not None:
            print("wrong", wrong.encode("ascii", "backslashreplace").decode(), flush=True)
        elif grown > MEGABYTES:
            print(f"wrong {kind} {number}: took {grown} MB", flush=True)
        elif (spent := time.process_time() - used) > 1.5:
            print(f"slow {kind} {number}: {spent:.1f} s", flush=True)
    print("done", flush=True)


def _mapped() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main(*sys.argv[1:])
