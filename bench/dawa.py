"""How good and how fast is DAWA? Against dpcomp_core, the program of the DPBench study, on its one-dimensional data.

The mean squared error of a range query, over 10,000 random ranges and over all ranges, under add/remove. The figures of
dpcomp_core (ratio 0.5, random ranges, its mean and standard error over ten runs or more) were measured beforehand: it
needs Python 2 and takes up to minutes a run. Its partition is not private at the ε it is given (see
`sfumato.mechanism.partitions.partition`); ours is. `deviation` is how far ours lies above the reference, in standard
errors of the reference: negative is better. Seconds are of one core.

Histograms: the mean squared error of a cell, at the ε/2 of Figure 8 of Haney et al. (VLDB 2015), of DAWA as published
(written anew in `_published`, not private, at the ratio 1/4), with runs first (private), and with noise first, which
plans take; beside noise alone, and beside the best choice of cells to keep by an oracle that reads the data, each of
which has the noise of ε: no choice of single cells can be better.

    python bench/dawa.py DIRECTORY [--quick]        a directory of DPBench histograms, NAME.npy
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
from _published import published_histogram
from _report import table, write_json
from numpy.typing import NDArray

import sfumato as sf
from sfumato.mechanism import build
from sfumato.mechanism.partitions import dawa as partitions
from sfumato.noise import SystemSource

QUERIES = 10_000

# name: ((mean, standard error) at ε = 0.1, the same at ε = 1, seconds a run)
REFERENCE = {
    "NETTRACE": ((2_267, 607), (22.7, 3.6), 0.3),
    "ADULTFRANK": ((10_446, 2_954), (249, 49), 0.3),
    "MEDCOST": ((5_244, 1_165), (320, 29), 0.7),
    "INCOME": ((93_416, 19_134), (1_406, 384), 6.6),
    "SEARCHLOGS": ((73_421, 12_009), (1_251, 247), 3.6),
    "HEPTH": ((97_905, 7_156), (1_911, 598), 8.3),
    "PATENT": ((116_321, 10_737), (1_121, 120), 203.0),
}


def errors(x: NDArray[np.int64], counts: NDArray[np.float64], ranges: NDArray[np.int64]) -> tuple[float, float]:
    """Mean squared error over the given ranges, and over all of them by the moments of the prefix sums."""
    off = np.concatenate([[0.0], np.cumsum(counts - x)])
    ends = len(off)
    everything = (ends * (off @ off) - off.sum() ** 2) / (ends * (ends - 1) / 2)
    return float(np.mean((off[ranges[1]] - off[ranges[0]]) ** 2)), float(everything)


def measure(name: str, x: NDArray[np.int64], epsilon: str, runs: int) -> dict[str, object]:
    """Some runs on one histogram, beside the reference."""
    generator = np.random.default_rng(1)
    found, seconds, buckets = [], [], []
    for _ in range(runs):
        start = time.process_time()
        tree, measured = partitions.measure(x, epsilon=epsilon, source=SystemSource())
        counts = tree.spread(measured)
        seconds.append(time.process_time() - start)
        ranges = np.sort(generator.integers(0, len(x), (2, QUERIES)), axis=0) + np.array([[0], [1]])
        found.append(errors(x, counts, ranges))
        buckets.append(len(tree.buckets))
    mean, everything = np.mean(found, axis=0)
    reference, spread = REFERENCE[name][epsilon == "1"]
    return {
        "data": name,
        "epsilon": epsilon,
        "error": float(mean),
        "standard_error": float(np.std(found, axis=0, ddof=1)[0] / runs**0.5),
        "all_ranges": float(everything),
        "buckets": float(np.mean(buckets)),
        "seconds": float(np.median(seconds)),
        "slowest": max(seconds),
        "reference": float(reference),
        "reference_standard_error": float(spread),
        "deviation": float((mean - reference) / spread),
        "reference_seconds": REFERENCE[name][2] if epsilon == "1" else None,
    }


def histogram(name: str, x: NDArray[np.int64], epsilon: str, runs: int) -> dict[str, object]:
    """The error of a cell on one histogram, by all ways."""
    policy, exact, rng = sf.unbounded(sf.Line(0, 1, cells=len(x))), Fraction(epsilon), np.random.default_rng(1)
    noise = 2 / float(exact) ** 2

    def mean(found: list[NDArray[np.float64]]) -> float:
        return float(np.mean([((one - x) ** 2).mean() for one in found]))

    ways = {first: build("dawa", policy, exact, queries="cells", first=first) for first in ("runs", "noise")}
    return {
        "data": name,
        "epsilon": epsilon,
        "noise alone": noise,
        "published": mean([published_histogram(x, float(exact), 0.25, rng) for _ in range(max(5, runs // 10))]),
        **{
            f"{first} first": mean([way.run(x, None, SystemSource()) for _ in range(runs)])
            for first, way in ways.items()
        },
        "best kept cells": float(np.minimum(x.astype(np.float64) ** 2, noise).mean()),
    }


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="where NAME.npy of the DPBench data are")
    parser.add_argument("--quick", action="store_true", help="20 runs instead of 200")
    options = parser.parse_args()
    runs = 20 if options.quick else 200
    rows = [
        measure(name, np.load(options.directory / f"{name}.npy"), epsilon, runs)
        for name in REFERENCE
        for epsilon in ("0.1", "1")
    ]
    table(rows)
    cells = [
        histogram(name, np.load(options.directory / f"{name}.npy"), epsilon, runs)
        for name in REFERENCE
        for epsilon in ("0.005", "0.05", "0.5")
    ]
    print("\nHistograms: the mean squared error of a cell")
    table(cells)
    payload = {
        "benchmark": "dawa",
        "runs": runs,
        "ratio": str(partitions.RATIO),
        "queries": QUERIES,
        "rows": rows,
        "histograms": cells,
    }
    print(f"\nwritten to {write_json('dawa', payload)}")


if __name__ == "__main__":
    main()
