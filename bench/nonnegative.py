"""What does it cost, and gain, that no number of a map is negative?

Mean squared errors a range on 256 × 256 cells at ε = 1 under add/remove, hats, by the size of the range: the plain
estimates, the non-negative map summed up, and the answers with `estimate="nonnegative"`. Means over --runs releases and
4,000 random ranges of each size, the same for all. The best way is not the same for all sizes: what sums up best is the
plain estimate, what a street corner wants is the map.

    python bench/nonnegative.py [--data FOLDER] [--runs 3]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from _maps import boxes, counted, grid, sums
from _report import table, write_json

import sfumato as sf

SIDE = 256
SIZES: dict[str, int | None] = {"all ranges": None, "side 16": 16, "side 4": 4, "cells": 1}
NAMES = ("thefts", "uber", "twitter")
WAYS = ("plain", "the map", "answers")


def measure(name: str, counts: np.ndarray, runs: int, rng: np.random.Generator) -> list[dict[str, object]]:
    """One dataset, a row for each way."""
    plan = sf.plan(sf.unbounded(grid(SIDE)), sf.ranges(), epsilon=1, mechanism="hats")
    asked = {size: boxes(SIDE, side, 4000, rng) for size, side in SIZES.items()}
    errors = {way: dict.fromkeys(SIZES, 0.0) for way in WAYS}
    for _ in range(runs):
        release = plan.publish(counts)
        shared = release.nonnegative()
        for size, ranges in asked.items():
            truth = sums(counts, ranges)
            told = {
                "plain": sums(release.counts, ranges),
                "the map": sums(shared, ranges),
                "answers": release.answer(ranges / SIDE, estimate="nonnegative").value,
            }
            for way, values in told.items():
                errors[way][size] += float(((values - truth) ** 2).mean()) / runs
    return [{"data": name, "way": way, **errors[way]} for way in WAYS]


def seconds(side: int) -> float:
    """To make a map of so many cells non-negative."""
    release = sf.plan(sf.unbounded(grid(side)), sf.histogram(), epsilon=1).publish(np.zeros((side, side), dtype=int))
    release.nonnegative()
    start = time.perf_counter()
    release.nonnegative()
    return time.perf_counter() - start


def main() -> None:
    """All datasets, as a table and as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    rows = [row for name in NAMES for row in measure(name, counted(options.data, name, SIDE), options.runs, rng)]
    table(rows)
    took = seconds(1024)
    print(f"\n1024 × 1024 cells in {took:.2f} s")
    print(f"written to {write_json('nonnegative', {'rows': rows, 'seconds at 1024 squared': took})}")


if __name__ == "__main__":
    main()
