"""How good are private sums and means of real values? Wages by state and prices by borough, beside OpenDP.

1. **Sums and means by group**, add/remove of one record, ε = 1 in all, bounds declared: wages of 280,005 tax units of
   the Current Population Survey by state (cut to 0 … 200,000 in steps of 100), and prices of 48,895 listings in New
   York by borough (0 … 1,000 in steps of 1). The same guarantee on both sides. Groups are disjoint and declared, so
   OpenDP publishes each by a pipeline of its own at the whole ε: cut, sum, discrete Laplace noise; for means as much
   again for the number, ε halved, and the quotient. Errors are root mean squares over groups and releases.
2. **Intervals** of the means: how often they hold, and how wide they are. OpenDP gives none for a quotient.
3. **Time**: counting and publishing all groups, seconds of one core.

    python bench/sums.py [--data ../shared/data] [--releases 200]
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _report import table, write_json

import sfumato as sf

warnings.simplefilter("ignore", sf.NoLedgerWarning)
EPSILON = 1.0


def wages(data: Path) -> tuple[pd.DataFrame, sf.Domain, sf.Amounts]:
    """Tax units: the state of each, and its wages."""
    frame = pd.read_parquet(data / "us_cps_tax_units.parquet", columns=["state_fips", "wages"])
    states = sf.Categories(sorted(int(s) for s in frame["state_fips"].unique()), name="state_fips")
    return frame, states, sf.amounts("wages", clip=(0, 200_000), step=100)


def prices(data: Path) -> tuple[pd.DataFrame, sf.Domain, sf.Amounts]:
    """Listings: the borough of each, and its price."""
    frame = pd.read_parquet(data / "airbnb_nyc_2019.parquet", columns=["borough", "price_usd"])
    boroughs = sf.Categories(sorted(frame["borough"].unique()), name="borough")
    return frame, boroughs, sf.amounts("price_usd", clip=(0, 1000), step=1)


def ours(frame: pd.DataFrame, groups: sf.Domain, values: sf.Amounts, releases: int) -> tuple[dict[str, Any], ...]:
    """Errors of sums and of means, and the intervals of the means."""
    sf.count(frame.head(10), groups, values=values)  # engines are loaded once
    policy = sf.unbounded(groups)
    plan = sf.plan(policy, sf.histogram(), EPSILON, values=values)
    began = time.process_time()
    counts = sf.count(frame, groups, values=values)
    plan.publish(counts)
    seconds = time.process_time() - began
    means = sf.plan_means(policy, sf.histogram(), EPSILON, values=values)
    sums, exact = counts.values * float(values.step), counts.values * float(values.step) / counts.numbers
    errors, off, held, wide = [], [], [], []
    for _ in range(releases):
        errors.append(plan.publish(counts).counts - sums)
        found = means.publish(counts).answer(by=groups.names[0])
        off.append(found.value - exact)
        held.append((found.low <= exact) & (exact <= found.high))
        wide.append(found.high - found.low)
    row = {"sum": _rms(errors), "mean": _rms(off), "seconds": seconds}
    return row, {"held": float(np.mean(held)), "width": float(np.median(wide)), "rms": _rms(off)}


def opendp(frame: pd.DataFrame, groups: sf.Domain, values: sf.Amounts, releases: int) -> dict[str, Any]:
    """A pipeline for each group; values are whole numbers of steps, as ours are."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    low, high, step = values.least, values.most, float(values.step)
    name = groups.names[0]
    steps = np.floor(np.clip(frame[values.column], low * step, high * step) / step + 0.5).astype(int)
    parts = [steps[frame[name] == label].tolist() for label in groups.axes[0].labels]
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()

    def pipeline(made: Any, largest: int, epsilon: float) -> Any:
        return space >> made >> dp.m.then_laplace(scale=largest / epsilon)

    def adding(epsilon: float) -> Any:
        return pipeline(dp.t.then_clamp((low, high)) >> dp.t.then_sum(), max(abs(low), abs(high)), epsilon)

    def counting(epsilon: float) -> Any:
        return pipeline(dp.t.then_count(TO=int), 1, epsilon)

    whole, half, number = adding(EPSILON), adding(EPSILON / 2), counting(EPSILON / 2)
    assert whole.map(1) <= EPSILON * (1 + 1e-9)
    began = time.process_time()
    for part in parts:
        whole(part)
    seconds = time.process_time() - began
    some = max(1, releases // 10)
    errors, off = [], []
    for part in parts:
        exact = sum(part)
        for _ in range(some):
            errors.append((whole(part) - exact) * step)
            off.append((half(part) / max(number(part), 1) - exact / len(part)) * step)
    return {"sum": _rms(errors), "mean": _rms(off), "seconds": seconds}


def _rms(errors: Any) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--releases", type=int, default=200)
    chosen = parser.parse_args()
    rows, intervals = [], []
    for name, made in (("wages by state", wages(chosen.data)), ("prices by borough", prices(chosen.data))):
        row, interval = ours(*made, chosen.releases)
        rows.append({"data": name, "by": "sfumato", **row})
        intervals.append({"data": name, **interval})
        try:
            rows.append({"data": name, "by": "OpenDP", **opendp(*made, chosen.releases)})
        except ImportError:
            print("OpenDP is not installed: pip install opendp")
    table(rows)
    print()
    table(intervals)
    write_json("sums", {"errors": rows, "intervals": intervals})


if __name__ == "__main__":
    main()
