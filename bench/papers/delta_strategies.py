"""Figure 2, Tables 3 and 4 of Fang and Chang (ASIA CCS 2014), sections 5.1 to 5.4.1, measured; and the greedy
improvement of section 5.3, before and after.

Every strategy gives the same guarantee: ε = 1 when one record moves by at most δ bins; the number of records is
public. Errors are expected squared errors of range queries, computed from the mechanisms' own noise without sampling
any: the variance of discrete Laplace noise, which is a little below 2Δ²/ε².

    python bench/papers/delta_strategies.py            # n up to 4096
    python bench/papers/delta_strategies.py --quick    # n up to 256
"""

from __future__ import annotations

import argparse
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _report import table, write_json

import sfumato as sf
from sfumato.mechanism import Mechanism, build
from sfumato.mechanism.cells.cuts import cut_sensitivity
from sfumato.mechanism.cells.greedy import greedy_strategy
from sfumato.workload import RANGES

ONE = Fraction(1)
ALL_RANGES = 256  # up to so many bins the largest error is over all ranges, beyond over 32,768 of them, evenly spread


def line(n: int) -> sf.Domain:
    return sf.Line(0, 1, cells=n)


def grid(n: int) -> sf.Domain:
    return sf.Grid(bounds=(0, 0, 1, 1), shape=(n, n))


def source(n: int) -> sf.Policy:
    """Section 5.1: moves of one bin, and points that appear and vanish in the first one."""
    return sf.graph(line(n), [*((i, i + 1) for i in range(n - 1)), (0, sf.ABSENT)])


def figure_2() -> dict:
    """The four strategies on four bins, as the library builds them."""
    everything = sf.unbounded(line(4))
    found = {
        "H_4": build("hierarchy", everything, ONE, branching=2, root=True),
        "Y_4": build("haar", everything, ONE),
        "I_4": build("identity", everything, ONE),
        "C_4": build("prefix", everything, ONE, reverse=True),
    }
    matrices = {name: mechanism.strategy.dense().astype(int).tolist() for name, mechanism in found.items()}
    print("Figure 2: the strategies on four bins")
    tall = max(map(len, matrices.values()))
    print("   ".join(f"{name:<13}" for name in matrices).rstrip())
    for i in range(tall):
        rows = (" ".join(f"{k:2d}" for k in m[i]) if i < len(m) else "" for m in matrices.values())
        print("   ".join(f"{row:<13}" for row in rows).rstrip())
    return matrices


def table_3() -> list[dict]:
    """The ten ranges of four bins with continuous noise, by hand from the strategies: the totals are 160 and 32."""
    rows = []
    for name, strategy in (("Table 1: counts", np.eye(4)), ("Table 2: triangle", np.triu(np.ones((4, 4))))):
        delta = cut_sensitivity(source(4), strategy)
        inverse = np.linalg.inv(strategy)
        row: dict = {"published": name, "Δ": delta}
        total = 0.0
        for length in range(1, 5):
            queries = np.array([[i <= cell < i + length for cell in range(4)] for i in range(5 - length)], dtype=float)
            variances = 2 * delta**2 * ((queries @ inverse) ** 2).sum(axis=1)
            total += float(variances.sum())
            row[f"{length} bins"] = " ".join(f"{v:g}" for v in variances)
        rows.append({**row, "total": total})
    print("\nTable 3: variances of the ranges by length, ε = 1, δ = 1 bin, source at the lower end")
    table(rows)
    return rows


def strategies(policy: sf.Policy, delta: int) -> dict[str, Mechanism]:
    """The columns of Table 4, and two that reach what it says of C_n."""
    n = policy.domain.size
    found = {
        "H_n": build("hierarchy", policy, ONE, branching=2, root=True),
        "Y_n": build("haar", policy, ONE),
        "I_n": build("identity", policy, ONE),
        "C_n": build("prefix", policy, ONE),
    }
    if 1 < delta < n:
        found["blocks of δ"] = build("blocks", policy, ONE, blocks=[delta, 1], weights=[1, 1])
    found["sfumato's plan"] = sf.plan(policy, sf.ranges(), ONE).mechanism
    return found


def largest(mechanism: Mechanism) -> float:
    """The largest variance over the ranges."""
    n = mechanism.policy.domain.size
    if n <= ALL_RANGES:
        low, high = np.triu_indices(n + 1, k=1)
    else:
        low, high = RANGES.sample(n)
    ends = (end.astype(np.float64)[:, None] for end in (low, high))
    return float(mechanism.model.range_cumulants(*ends)[0].max())


def table_4(lengths: list[int]) -> list[dict]:
    rows = []
    for n in lengths:
        for delta in (1, 4, 16, 64):
            if delta >= n:
                continue
            policy = sf.threshold(line(n), delta)
            for name, mechanism in strategies(policy, delta).items():
                mean = mechanism.model.expected_error(sf.ranges(), policy.domain)
                rows.append(
                    {
                        "n": n,
                        "δ": delta,
                        "strategy": name,
                        "mechanism": mechanism.name,
                        "scale": " and ".join(sorted({f"{1 / block.noise.rate}" for block in mechanism.model.blocks})),
                        "max": largest(mechanism),
                        "mean": mean,
                        "total": mean * RANGES.count(n),
                        "mean/δ": mean / delta,
                    }
                )
    for what in ("max", "mean"):
        print(f"\nTable 4: {what} squared error of a range, ε = 1; C_n is 4δ²/ε², blocks of δ are Θ(δ/ε²)")
        table(pivot(rows, what))
    print("\nTable 4: total squared error of all ranges, ε = 1")
    table(pivot(rows, "total"))
    return rows


def pivot(rows: list[dict], what: str) -> list[dict]:
    """One row for every n and δ, one column a strategy."""
    wide: dict[tuple[int, int], dict] = {}
    names = list(dict.fromkeys(row["strategy"] for row in rows if row["δ"] > 1)) or ["H_n"]
    for row in rows:
        found = wide.setdefault((row["n"], row["δ"]), {"n": row["n"], "δ": row["δ"], **dict.fromkeys(names)})
        found[row["strategy"]] = row[what]
        if row["strategy"] == "sfumato's plan":
            found["mechanism"] = row["mechanism"]
    return list(wide.values())


def squares(n: int) -> np.ndarray:
    """The solid squares of Figure 1, two cells wide."""
    block = np.arange(n) // 2
    axis = (np.unique(block)[:, None] == block).astype(int)
    return np.kron(axis, axis)


def improvements(quick: bool) -> list[dict]:
    """Section 5.3: what a start is worth, what the search makes of it, and the best of all other mechanisms."""
    ends = [(a / 4, b / 4) for a in range(4) for b in range(a + 1, 5)]
    quarters = sf.ranges(ends)
    boxes = sf.ranges([(a, c, b, d) for a, b in ends for c, d in ends])
    side = 8 if quick else 16
    figure_1 = np.concatenate([squares(8), np.eye(64, dtype=int)])
    cases = [
        ("δ = 1 bin, source at 0", source(4), sf.ranges(), "cells"),
        ("δ = 1 bin, source at 0", source(4), sf.ranges(), None),
        ("δ = 1 bin", sf.threshold(line(64), 1), sf.ranges(), "cells"),
        ("δ = 4 bins", sf.threshold(line(64), 4), sf.ranges(), "cells"),
        ("δ = 4 bins", sf.threshold(line(64), 4), sf.ranges(), "halves"),
        ("δ = 0.1, sources at the border", sf.within(line(64), 0.1, sources="boundary"), sf.ranges(), None),
        ("δ = 0.1, sources at the border", sf.within(line(64), 0.1, sources="boundary"), quarters, None),
        ("add/remove", sf.unbounded(line(64)), sf.ranges(), None),
        ("add/remove", sf.unbounded(line(64)), quarters, None),
        ("one step along an axis", sf.threshold(grid(8), 1), sf.ranges(), "cells"),
        ("one step along an axis", sf.threshold(grid(8), 1), sf.ranges(), figure_1),
        ("δ = 0.05, sources at the border", sf.within(grid(side), 0.05, sources="boundary"), sf.ranges(), None),
        ("δ = 0.05, sources at the border", sf.within(grid(side), 0.05, sources="boundary"), boxes, None),
        ("add/remove", sf.unbounded(grid(side)), boxes, None),
    ]
    rows = []
    for words, policy, workload, start in cases:
        began = time.process_time()
        found = greedy_strategy(policy, workload, start=start, most=6000)
        seconds = time.process_time() - began
        weighed = sf.plan(policy, workload, ONE).alternatives
        other = min((a for a in weighed if a.name != "greedy" and a.error is not None), key=lambda a: a.error)
        rows.append(
            {
                "cells": "×".join(map(str, policy.domain.shape)),
                "hidden": words,
                "queries": "quarters" if workload in (quarters, boxes) else "all ranges",
                "start": "Figure 1 and cells" if start is figure_1 else found.start,
                "sets": f"{found.sets_before} → {len(found.members)}",
                "Δ": f"{found.sensitivity_before} → {found.sensitivity}",
                "before": found.variance_before,
                "after": found.variance,
                "mechanism": found.expected_error(1),
                "best other": other.error,
                "name": other.name,
                "seconds": seconds,
            }
        )
    print("\nSection 5.3: greedy improvement, mean squared error a query at ε = 1 (before and after with 2Δ²/ε²)")
    table(rows)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    started = time.perf_counter()
    lengths = [16, 64, 256] if options.quick else [16, 64, 256, 1024, 4096]
    payload = {
        "guarantee": "epsilon 1, one record moves by at most delta bins, the number of records is public",
        "figure_2": figure_2(),
        "table_3": table_3(),
        "table_4": table_4(lengths),
        "greedy": improvements(options.quick),
    }
    path = write_json("delta_strategies", payload)
    print(f"\n{time.perf_counter() - started:.0f} seconds; written to {path}")


if __name__ == "__main__":
    main()
