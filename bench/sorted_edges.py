"""Noisy sorted points as the edges of bins, then counts: the combination that Fang and Chang (PETS 2012) hint at.

With a share of ε sorted points are published; their quantiles cut the line (or the curve) into bins that hold about as
many records each. The rest of ε publishes how many records lie in the bins: under replace-one by `hats` over the bins,
under moves of less than δ by noisy numbers below each edge, where edges lie so far apart that a move crosses one at the
most. Sorted points say how records lie between the edges, and the numbers at the edges are corrected by the weights of
both variances. Private by composition: where the edges lie is a function of the first release.

The number of bins and the share are the best of several *in hindsight*, which no release can do: where the combination
loses so, it loses. Root mean squared errors of ranges of a tenth, beside sorted points alone, what a plan takes without
data, adaptive grids and an even spread of the records.

    python bench/sorted_edges.py [--data FOLDER] [--runs 8] [--page docs/sorted.md]
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "papers"))
from _adaptive_data import counted, grid_data, line_data, range_squares
from _report import put, table, write_json

import sfumato as sf
from sfumato.mechanism import build
from sfumato.mechanism.points.sorted import SortedMechanism, sorted_points
from sfumato.mechanism.points.sorted_model import rank_error
from sfumato.noise import DiscreteLaplace, SystemSource

SOURCE, SIZE = SystemSource(), 0.1
LINE = sf.Line(0, 1, cells=4096)
GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(256, 256))
BINS, SHARES = (4, 8, 16, 32, 64, 128), (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def edges(below: np.ndarray, bins: int, apart: int) -> np.ndarray:
    """Cells at which bins of about equal numbers begin, at least so far apart."""
    wanted = np.searchsorted(below, below[-1] * np.arange(1, bins) / bins)
    found = [0]
    for cell in wanted:
        if cell - found[-1] >= apart and len(below) - 1 - cell >= apart:
            found.append(int(cell))
    return np.array([*found, len(below) - 1])


def numbers(along: np.ndarray, at: np.ndarray, policy: sf.Policy, epsilon: Fraction) -> tuple[np.ndarray, float]:
    """How many records lie below every edge, noisy, and the variance of one of these numbers."""
    exact, total = np.concatenate([[0], np.cumsum(along)])[at], int(along.sum())
    bins = len(at) - 1
    if bins == 1:
        return exact.astype(float), 1.0  # the total is public
    if policy.moves.join_all:
        line = sf.Line(0, bins, cells=bins)
        mechanism = build("hats", sf.bounded(line), epsilon)
        noisy = mechanism.run(np.diff(exact), total, SOURCE)
        return np.concatenate([[0.0], np.cumsum(noisy)]), mechanism.model.expected_error(sf.prefixes(), line)
    law = DiscreteLaplace(epsilon)
    found = exact.astype(float)
    found[1:-1] += law.sample(bins - 1, SOURCE)
    return found, law.variance


def combined(x: np.ndarray, policy: sf.Policy, epsilon: Fraction, bins: int, share: Fraction) -> np.ndarray:
    """Counts of all cells from both releases."""
    n, first = int(x.sum()), sorted_points(policy, share * epsilon)
    order = first.order if first.order is not None else np.arange(len(x))
    below = np.concatenate([[0.0], np.cumsum(first.run(x, n, SOURCE)[order])])
    apart = 1 if policy.moves.join_all else first.sensitivity
    at = edges(below, bins, apart)
    noisy, variance = numbers(x[order], at, policy, (1 - share) * epsilon)
    own = rank_error(n, first.group_size(n), 1.0, first.relative_scale)
    correction = own / (own + variance) * (noisy - below[at])
    better = below + np.interp(np.arange(len(below)), at, correction)
    found = np.empty(len(x))
    found[order] = np.diff(np.clip(np.maximum.accumulate(better), 0, n))
    return found


def root(released, x: np.ndarray, shape: tuple[int, ...], runs: int) -> float:
    """Of the mean squared error of ranges of a tenth."""
    rng = np.random.default_rng(3)
    return float(np.sqrt(np.mean([range_squares((released() - x).reshape(shape), SIZE, rng) for _ in range(runs)])))


def ran(mechanism, x: np.ndarray):
    return lambda: mechanism.run(x, int(x.sum()), SOURCE)


def measure(name: str, x: np.ndarray, policy: sf.Policy, words: str, epsilon: Fraction, runs: int) -> dict:
    """One dataset, one policy, one ε."""
    shape, n = policy.domain.shape, int(x.sum())
    plan = sf.plan(policy, sf.ranges(), epsilon).mechanism
    grids = build("adaptive-grid", policy, epsilon).informed(n)
    alone: SortedMechanism = sorted_points(policy, epsilon)
    tried = {
        (bins, share): root(lambda b=bins, s=share: combined(x, policy, epsilon, b, s), x, shape, max(2, runs // 2))
        for bins in BINS
        for share in SHARES
    }
    best = min(tried, key=lambda key: tried[key])
    return {
        "data": name,
        "n": n,
        "policy": words,
        "ε": float(epsilon),
        "even guess": root(lambda: np.full(len(x), n / len(x)), x, shape, 1),
        "sorted": root(ran(alone, x), x, shape, runs),
        "adaptive-grid": root(ran(grids, x), x, shape, runs),
        "plan": root(ran(plan, x), x, shape, runs),
        "sorted edges, counts": root(lambda: combined(x, policy, epsilon, *best), x, shape, runs),
        "bins": best[0],
        "share": str(best[1]),
    }


def main() -> None:
    """Lines and maps, as a table and as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--page", type=Path, default=None, help="write the table into this page")
    options = parser.parse_args()
    rng, rows = np.random.default_rng(1), []
    lines, maps = line_data(options.data), grid_data(options.data)
    cases = [(LINE, lines, sf.bounded(LINE), "replace-one"), (GRID, maps, sf.bounded(GRID), "replace-one")]
    cases += [(LINE, lines, sf.within(LINE, delta), f"δ = {delta:g}") for delta in (0.1, 0.01)]
    for domain, sets, policy, words in cases:
        for name, points in sets.items():
            for n in (1000, None):
                x = counted(points, domain, n, rng)
                for epsilon in (Fraction(1, 10), Fraction(1)):
                    rows.append(measure(name, x, policy, words, epsilon, options.runs))
                    table(rows[-1:])
    table(rows)
    if options.page is not None:
        put(options.page, "sorted edges", [row for row in rows if row["ε"] < 1])
    print(f"\nwritten to {write_json('sorted_edges', {'rows': rows})}")


if __name__ == "__main__":
    main()
