"""The least number of moves that covers the lengths of several factors: a small covering programme in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

# A need is a length and the terms whose moves can serve it.
Need = tuple[Sequence[int], float]


def least_cover(needs: Sequence[Need], terms: int) -> float:
    """min Σ k_t over whole k_t ≥ 0 with Σ_{t in served} k_t ≥ length for every need (infinite where nothing serves).

    Never too low: what is returned is Σ k_t of numbers that cover, and they are the least ones unless a solver gave up.
    """
    wanted: dict[frozenset[int], int] = {}
    for served, length in needs:
        if length <= 0:
            continue
        if math.isinf(length) or not served:
            return math.inf
        key = frozenset(served)
        wanted[key] = max(wanted.get(key, 0), int(length))
    kept = {key: n for key, n in wanted.items() if not any(o < key and wanted[o] >= n for o in wanted)}
    if not kept:
        return 0.0
    if all(len(key) == 1 for key in kept):
        return float(sum(kept.values()))
    if len(kept) == 1:
        return float(next(iter(kept.values())))
    return float(_solved(kept, terms))


def _solved(needs: dict[frozenset[int], int], terms: int) -> int:
    """By integer programming; checked in whole numbers, and what one need after the other takes where it fails."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import, and seldom needed

    matrix = np.array([[float(t in key) for t in range(terms)] for key in needs])
    lengths = np.array(list(needs.values()), dtype=np.float64)
    found = milp(
        np.ones(terms),
        constraints=LinearConstraint(matrix, lb=lengths),
        integrality=np.ones(terms),
        bounds=Bounds(0, np.inf),
        options={"mip_rel_gap": 0},
    )
    simple = sum(needs.values())
    if found.x is None:
        return simple
    counts = [round(float(k)) for k in found.x]
    covers = all(sum(counts[t] for t in key) >= n for key, n in needs.items())
    return min(simple, sum(counts)) if covers else simple
