"""How well are ranges of grids answered under moves, add/remove and replace-one? All that compete, times ε².

The mean squared error of a range, over all of them, at ε = 1 with continuous noise. Every error is exact: nothing is
drawn. The first table has what a plan takes and the errors of the strategies with hats and of the best of the others;
the second puts Theorem 5.6 of Haney, Machanavajjhala, Ding (VLDB 2015) beside it: noise on the internal and external
edges of their spanner, as it is built here, and a lower estimate of their own strategy, ranges over the strips of
internal edges: what these alone cost with Privelet, as printed, and with the best strategy that is known for them.

    python bench/frontier.py [--quick]        --quick leaves out 1024 × 1024 cells
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction

from _report import table, write_json

import sfumato as sf

SMALL = Fraction(1, 100)  # so little privacy loss that discrete noise is as good as continuous
HATS = ("edge-hats", "diagonal-hats", "hat-products", "hats")
SIZES = (64, 128, 256, 1024)


def grid(n: int, axes: int = 2) -> sf.Domain:
    """A box of n cells along every axis."""
    return sf.Grid(bounds=(0,) * axes + (1,) * axes, shape=(n,) * axes)


def weighed(policy: sf.Policy, label: str, cells: str) -> dict[str, object]:
    """What a plan takes, and what it weighed."""
    start = time.process_time()
    plan = sf.plan(policy, sf.ranges(), SMALL)
    seconds = time.process_time() - start
    scale = float(SMALL) ** 2
    errors = {other.name: other.error * scale for other in plan.alternatives if other.error is not None}
    return {
        "cells": cells,
        "policy": label,
        **{name: errors.get(name) for name in HATS},
        "best of the others": min((e for name, e in errors.items() if name not in HATS), default=None),
        "the plan": plan.expected_error * scale,
        "takes": plan.mechanism.name,
        "seconds": seconds,
    }


def cases(quick: bool) -> list[dict[str, object]]:
    """Small moves, longer ones, the standard policies; 2D and 3D."""
    rows = []
    sizes = SIZES[:-1] if quick else SIZES
    for n in sizes:
        rows.append(weighed(sf.threshold(grid(n), 1), "G¹", f"{n}²"))
        rows.append(weighed(sf.within(grid(n), Fraction(1, 2 * n)), "δ = ½ cell", f"{n}²"))
    for n in sizes:
        for cells in (2, 4, 8, 16):
            rows.append(weighed(sf.within(grid(n), Fraction(cells, n)), f"δ = {cells} cells", f"{n}²"))
    for n in (16, 32, *sizes):
        rows.append(weighed(sf.unbounded(grid(n)), "add/remove", f"{n}²"))
        rows.append(weighed(sf.bounded(grid(n)), "replace-one", f"{n}²"))
    for n in (16, 32, 64):
        rows.append(weighed(sf.threshold(grid(n, 3), 4), "G⁴", f"{n}³"))
        rows.append(weighed(sf.unbounded(grid(n, 3)), "add/remove", f"{n}³"))
        rows.append(weighed(sf.bounded(grid(n, 3)), "replace-one", f"{n}³"))
    return rows


def spanners(quick: bool) -> list[dict[str, object]]:
    """Noise on the edges of the spanner, at the side and share that are best, against the plan, by k and θ."""
    rows: list[dict[str, object]] = []
    scale = float(SMALL) ** 2
    for k in (32, 64, 128, 256) if quick else (32, 64, 128, 256, 512, 1024):
        for theta in (2, 4, 8, 16):
            policy = sf.threshold(grid(k), theta)
            try:
                built = sf.plan(policy, sf.ranges(), SMALL, mechanism="spanner").expected_error * scale
            except sf.SfumatoError:
                built = None
            plan = sf.plan(policy, sf.ranges(), SMALL)
            best = plan.expected_error * scale
            internal = [strips(k, theta, "haar"), strips(k, theta, None)]
            found = [error for error in (built, internal[0]) if error is not None]
            rows.append(
                {
                    "cells": f"{k}²",
                    "θ": theta,
                    "noise on the spanner's edges": built,
                    "strips by Privelet, at least": internal[0],
                    "strips by the best known, at least": internal[1],
                    "the plan": best,
                    "takes": plan.mechanism.name,
                    "times better than either of the first two": min(found) / best if found else None,
                }
            )
    return rows


def strips(k: int, theta: int, mechanism: str | None) -> float | None:
    """What the internal edges alone cost the strategy of Theorem 5.6, if all of ε were theirs.

    A range cuts four rows or columns of squares of side θ/2, and asks each for a rectangle as long as the range and
    as wide as what it holds of the squares. Ranges of every row and every column of squares are answered, so that an
    internal edge is measured twice; a move takes two of them. With squares of one cell there are no such edges.
    """
    side = theta // 2
    if side < 2:
        return None
    strip = sf.Grid(bounds=(0, 0, 1, 1), shape=(side, k))
    asked = sf.ask(x=sf.prefixes(), y=sf.ranges())
    alone = sf.plan(sf.unbounded(strip), asked, SMALL, mechanism=mechanism).expected_error * float(SMALL) ** 2
    cut = (side - 1) / side  # a range may end where squares do
    return 4 * cut * (2 * 2) ** 2 * alone


def main() -> None:
    """Both tables, and their JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    sf.plan(sf.unbounded(grid(8)), sf.ranges(), 1)  # what is imported late is imported now
    rows = cases(options.quick)
    table(rows)
    print()
    others = spanners(options.quick)
    table(others)
    print(f"\nwritten to {write_json('frontier', {'rows': rows, 'spanners': others})}")


if __name__ == "__main__":
    main()
