"""Maps that follow the data: adaptive grids beside UGrid, AGrid, PrivTree and DAWA, on real points.

Mean squared errors of ranges on 256 × 256 cells, times ε², by size of the range, over --runs releases and 4,000 random
ranges of each size, the same for all. Two relations, each the same for all: add/remove, and moves of less than four
cells. What was published for add/remove is private under moves at half of ε, as every change of a record is two.

UGrid and AGrid (Qardaji, Yang, Li, ICDE 2013) and PrivTree (Zhang, Xiao, Xie, SIGMOD 2016) are written from their
papers, with floating-point Laplace noise, and are told the number of records for free; DAWA is this library's, along
the Hilbert curve. "plan" is what `sf.plan` takes without looking at any data.

    python bench/maps.py [--data FOLDER] [--runs 3] [--quick]        --quick: two maps, ε = 1
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
from _maps import MAPS, boxes, counted, grid, sums
from _report import table, write_json

import sfumato as sf
from sfumato.mechanism import build
from sfumato.noise import SystemSource
from sfumato.release.nonnegative import non_negative

SIDE, DELTA = 256, 4
EPSILONS = ("1/100", "1/10", "1")
SIZES: dict[str, int | None] = {"all ranges": None, "side 16": 16, "side 4": 4}
SOURCE = SystemSource()
Released = Callable[[], np.ndarray]


# --------------------------------------------------------------------------------------------------------------- peers


def cut(cells: np.ndarray, m: int) -> np.ndarray:
    """Where m parts of some cells begin, and the end."""
    return np.unique(np.linspace(0, len(cells), min(m, len(cells)) + 1).round().astype(int))


def tiled(counts: np.ndarray, m: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Counts of m × m parts with noise, spread evenly."""
    x, y = cut(counts, m), cut(counts.T, m)
    found = np.add.reduceat(np.add.reduceat(counts, x[:-1], 0), y[:-1], 1) + rng.laplace(
        0, scale, (len(x) - 1, len(y) - 1)
    )
    return np.repeat(np.repeat(found / np.outer(np.diff(x), np.diff(y)), np.diff(x), 0), np.diff(y), 1)


def ugrid(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """One grid of √(N·ε/10) parts a side."""
    return tiled(counts, max(1, math.ceil(math.sqrt(counts.sum() * epsilon / 10))), 1 / epsilon, rng)


def agrid(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Two levels, each with half of ε, and their weighted mean."""
    half, found = epsilon / 2, np.empty(counts.shape)
    first = max(10, math.ceil(math.sqrt(counts.sum() * epsilon / 10) / 4))
    x, y = cut(counts, first), cut(counts.T, first)
    for a, b in pairwise(x):
        for c, d in pairwise(y):
            part = counts[a:b, c:d]
            above = part.sum() + rng.laplace(0, 1 / half)
            m = max(1, math.ceil(math.sqrt(max(above, 0) * half / 5)))
            below = tiled(part, m, 1 / half, rng)
            parts = (len(cut(part, m)) - 1) * (len(cut(part.T, m)) - 1)
            missing = (above - below.sum()) * parts / (parts + 1)
            found[a:b, c:d] = below + missing / part.size
    return found


def privtree(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """A quadtree whose nodes split while a noisy, decaying count is above zero; then noisy counts of the leaves."""
    half, found = epsilon / 2, np.empty(counts.shape)
    scale = (2 * 4 - 1) / (4 - 1) / half
    decay = scale * math.log(4)
    waiting = [(0, 0, SIDE, 0)]
    while waiting:
        x, y, side, depth = waiting.pop()
        inside = counts[x : x + side, y : y + side].sum()
        if side > 1 and max(inside - depth * decay, -decay) + rng.laplace(0, scale) > 0:
            waiting += [(x + i, y + j, side // 2, depth + 1) for i in (0, side // 2) for j in (0, side // 2)]
        else:
            found[x : x + side, y : y + side] = (inside + rng.laplace(0, 1 / half)) / side**2
    return found


# ---------------------------------------------------------------------------------------------------------------- ours


def ours(name: str, policy: sf.Policy, epsilon: Fraction, counts: np.ndarray, **options: object) -> Released:
    """One of the library's mechanisms."""
    mechanism = build(name, policy, epsilon, **options)
    total = int(counts.sum()) if policy.total_is_public else None
    return lambda: mechanism.run(counts.ravel(), total, SOURCE).reshape(counts.shape)


def shared_out(estimates: np.ndarray, total: int | None) -> np.ndarray:
    """What `release.nonnegative()` makes of them."""
    known = None if total is None else np.array(total)
    return non_negative(estimates.reshape(SIDE, SIDE), grid(SIDE), known)


def rivals(relation: str, epsilon: Fraction, counts: np.ndarray, rng: np.random.Generator) -> dict[str, Released]:
    """Everything that is compared."""
    moves = relation == "moves"
    policy = sf.within(grid(SIDE), Fraction(2 * DELTA - 1, 2 * SIDE)) if moves else sf.unbounded(grid(SIDE))
    plain, share = sf.unbounded(grid(SIDE)), epsilon / 2 if moves else epsilon
    planned = sf.plan(policy, sf.ranges(), epsilon).mechanism
    total = int(counts.sum()) if policy.total_is_public else None
    grids = build("adaptive-grid", policy, epsilon).informed(int(counts.sum()))
    return {
        "UGrid": lambda: ugrid(counts, float(share), rng),
        "AGrid": lambda: agrid(counts, float(share), rng),
        "PrivTree": lambda: privtree(counts, float(share), rng),
        "dawa": ours("dawa", plain, share, counts),
        f"plan: {planned.name}": lambda: planned.run(counts.ravel(), total, SOURCE).reshape(counts.shape),
        "adaptive-grid": lambda: grids.run(counts.ravel(), total, SOURCE).reshape(counts.shape),
        "adaptive-grid, non-negative": lambda: shared_out(grids.run(counts.ravel(), total, SOURCE), total),
    }


def measure(name: str, data: Path, relation: str, epsilon: str, runs: int) -> list[dict[str, object]]:
    """One map under one relation at one ε."""
    counts, rng, exact = counted(data, name, SIDE), np.random.default_rng(2), Fraction(epsilon)
    asked = {size: boxes(SIDE, side, 4000, rng) for size, side in SIZES.items()}
    rows = []
    for way, released in rivals(relation, exact, counts, rng).items():
        errors = dict.fromkeys(SIZES, 0.0)
        for _ in range(runs):
            found = released()
            for size, ranges in asked.items():
                error = float(((sums(found, ranges) - sums(counts, ranges)) ** 2).mean())
                errors[size] += error * float(exact) ** 2 / runs
        rows.append({"relation": relation, "data": name, "epsilon": epsilon, "way": way, **errors})
    return rows


def main() -> None:
    """All maps, as a table and as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    names, epsilons = (("thefts", "uber"), ("1",)) if options.quick else (tuple(MAPS), EPSILONS)
    rows: list[dict[str, object]] = []
    for relation in ("add/remove", "moves"):
        for name in names:
            for epsilon in epsilons:
                rows += measure(name, options.data, relation, epsilon, options.runs)
    table(rows)
    print(f"\nwritten to {write_json('maps', {'rows': rows})}")


if __name__ == "__main__":
    main()
