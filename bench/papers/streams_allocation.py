"""Figures 7 and 8 of Fang and Chang (ASIA CCS 2014): budget over sliding windows, offline, online and topped up.

Errors are Σ w/ε² with ε = 1, averaged over random sequences of weights; "even" gives every step ε/δ. Also: what
data-dependent allocation makes of the same windows, online against the algorithm as the paper prints it, and how fast
the solver is (against CVXPY where it is installed).

    python bench/papers/streams_allocation.py                       # 1,000 repetitions: an hour on two cores
    python bench/papers/streams_allocation.py --parts speed         # one part; its JSON has a file of its own
    python bench/papers/streams_allocation.py --repetitions 100     # a few minutes
    python bench/papers/streams_allocation.py --quick               # under a minute
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process a core: threads inside would only fight

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from _report import table, write_json
from stream_baselines import even, even_where_it_matters, paper_online
from w_event import budget_absorption, budget_distribution

from sfumato.allocation import Bernoulli, OnlineAllocator, TopUpAllocator, allocate, draw, total_error

PANELS = [(4, 0.5), (7, 0.5), (4, 0.75)]
PARTS = ["figures", "paper", "data", "speed"]
NAMES = ["optimum", "topped up", "topped up, one window", "online", "even"]


def figure7(lengths: list[int], sequences: int) -> list[dict]:
    """How much of the error of even division the optimum saves."""
    rows = []
    for n in lengths:
        row: dict = {"n": n}
        for p in (0.5, 0.75):
            weights = draw(Bernoulli(p), count=sequences, length=n, seed=7)
            weights = weights[weights.any(axis=1)]
            best = total_error(weights, allocate(weights, window=4, epsilon=1))
            row[f"even / optimum, p = {p}"] = float((16 * weights.sum(axis=1)).mean() / best.mean())
        rows.append(row)
    print("\nFigure 7: error of even division over that of the optimum, δ = 4")
    table(rows)
    return rows


def ended(weights: np.ndarray, window: int, p: float, samples: int) -> dict[str, float]:
    """What each allocation makes of one sequence."""
    online = OnlineAllocator(distribution=Bernoulli(p), window=window, epsilon=1, samples=samples, length=len(weights))
    floor = online.run(weights)
    budgets = {
        "optimum": allocate(weights, window=window, epsilon=1),
        "topped up": TopUpAllocator(online=online).run(weights, floor=floor),
        "topped up, one window": TopUpAllocator(online=online, patience=1).run(weights, floor=floor),
        "online": floor,
        "even": even(weights, window=window, epsilon=1),
    }
    return {name: float(total_error(weights, budget)) for name, budget in budgets.items()}


def figure8(lengths: list[int], repetitions: int, samples: int, pool: ProcessPoolExecutor) -> list[dict]:
    """The mean total error of every allocation, and how often topping up ended above online (it must not)."""
    rows = []
    for window, p in PANELS:
        for n in lengths:
            weights = draw(Bernoulli(p), count=repetitions, length=n, seed=8)
            work = partial(ended, window=window, p=p, samples=samples)
            found = list(pool.map(work, list(weights), chunksize=max(repetitions // 20, 1)))
            means = {name: float(np.mean([one[name] for one in found])) for name in NAMES}
            gap = means["online"] - means["optimum"]
            rows.append(
                {
                    "δ": window,
                    "p": p,
                    "n": n,
                    **means,
                    "gap closed": (means["online"] - means["topped up"]) / gap if gap > 0 else None,
                    "above online": sum(one["topped up"] > one["online"] * (1 + 1e-6) for one in found),
                    "standard error of online": float(
                        np.std([one["online"] for one in found], ddof=1) / np.sqrt(repetitions)
                    ),
                }
            )
    print(f"\nFigure 8: mean total error over {repetitions} sequences, ε = 1; online draws {samples} futures a step")
    table(rows)
    return rows


def data_dependent(window: int, steps: int, runs: int) -> list[dict]:
    """Mean squared error of a cell at the steps that matter (half of them), on counts that drift or jump."""
    rng = np.random.default_rng(9)
    rows = []
    for label, drift, jump in (
        ("still", 0.0, 0.0),
        ("drifting", 3.0, 0.0),
        ("jumping", 0.0, 0.05),
        ("wild", 60.0, 0.5),
    ):
        totals: dict[str, list[float]] = {}
        for _ in range(runs):
            counts = rng.integers(100, 1000, 50) + np.cumsum(rng.normal(0, drift, (steps, 50)), axis=0)
            counts = np.rint(
                counts + np.cumsum((rng.random((steps, 1)) < jump) * rng.normal(0, 300, (steps, 50)), axis=0)
            )
            weights = (rng.random(steps) < 0.5).astype(float)
            for name, budgets in (
                ("even (data-independent)", even(weights, window=window, epsilon=1)),
                ("even where it matters", even_where_it_matters(weights, window=window, epsilon=1)),
                ("optimum (data-independent)", allocate(weights, window=window, epsilon=1)),
            ):
                totals.setdefault(name, []).append(float((2 / budgets[weights > 0] ** 2).mean()))
            for name, mechanism in (("distribution", budget_distribution), ("absorption", budget_absorption)):
                released, _ = mechanism(counts, window, 1.0, rng)
                error = ((released - counts) ** 2).mean(axis=1)[weights > 0].mean()
                totals.setdefault(f"budget {name} (data-dependent)", []).append(float(error))
        rows.append({"counts": label, **{name: float(np.mean(values)) for name, values in totals.items()}})
    print(f"\nMean squared error a cell at the steps that matter, δ = {window}, ε = 1, 50 cells, {runs} runs")
    table(rows)
    return rows


def speed(n: int, window: int, runs: int) -> list[dict]:
    """Seconds for one allocation: the best of several, and the CPU time of the same."""
    rows = []
    for p in (0.5, 1.0):
        weights = draw(Bernoulli(p), count=1, length=n, seed=3)[0]
        timings = []
        for _ in range(runs):
            wall, cpu = time.perf_counter(), time.process_time()
            budgets = allocate(weights, window=window, epsilon=1)
            timings.append((time.perf_counter() - wall, time.process_time() - cpu))
        row: dict = {"n": n, "δ": window, "p": p, "seconds": min(timings)[0], "CPU seconds": min(c for _, c in timings)}
        row["error"] = float(total_error(weights, budgets))
        row["CVXPY seconds"], row["CVXPY error"] = with_cvxpy(weights, window)
        rows.append(row)
    print("\nOne sequence, offline")
    table(rows)
    return rows


def with_cvxpy(weights: np.ndarray, window: int) -> tuple[float | None, float | None]:
    """The same programme by CVXPY with Clarabel, the windows as one sparse matrix; None where it is not installed."""
    try:
        import cvxpy
    except ImportError:
        return None, None
    active = np.flatnonzero(weights > 0)
    x = cvxpy.Variable(len(weights), nonneg=True)
    windows = sparse.diags_array(
        np.ones((window, 1)), offsets=range(window), shape=(len(weights) - window + 1, len(weights))
    )
    limits = [windows.tocsr() @ x <= 1]
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(cvxpy.power(x[active], -2))), limits)
    started = time.perf_counter()
    problem.solve(solver=cvxpy.CLARABEL)
    return time.perf_counter() - started, float(problem.value)


def compared(weights: np.ndarray, window: int, p: float, samples: int, candidates: int) -> tuple[float, float]:
    """The total error of one sequence: ours, and the algorithm as printed."""
    online = OnlineAllocator(distribution=Bernoulli(p), window=window, epsilon=1, samples=samples, length=len(weights))
    options = {"window": window, "epsilon": 1, "samples": samples, "candidates": candidates}
    theirs = paper_online(weights, Bernoulli(p), **options)
    return float(total_error(weights, online.run(weights))), float(total_error(weights, theirs))


def against_the_paper(sequences: int, samples: int, candidates: int, pool: ProcessPoolExecutor) -> list[dict]:
    """Online against section 7.2 as printed, on the same sequences of 24 steps."""
    rows = []
    for window, p in PANELS:
        weights = draw(Bernoulli(p), count=sequences, length=24, seed=11)
        work = partial(compared, window=window, p=p, samples=samples, candidates=candidates)
        ours, theirs = np.array(list(pool.map(work, list(weights)))).T
        ratio = ours / theirs
        rows.append(
            {
                "δ": window,
                "p": p,
                "online": float(ours.mean()),
                "as printed": float(theirs.mean()),
                "mean ratio": float(ratio.mean()),
                "standard error": float(ratio.std(ddof=1) / np.sqrt(sequences)),
            }
        )
    print(
        f"\nOnline against the algorithm as printed: {sequences} sequences, {samples} futures, {candidates} candidates"
    )
    table(rows)
    return rows


def picture(seven: list[dict], eight: list[dict], path: Path) -> None:
    """Figure 7 and the three panels of Figure 8."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4), dpi=150, layout="constrained")
    axes = figure.subplots(1, 4)
    for p, shade in ((0.5, "#c8553d"), (0.75, "#588b8b")):
        axes[0].plot(
            [row["n"] for row in seven],
            [row[f"even / optimum, p = {p}"] for row in seven],
            label=f"p = {p}",
            color=shade,
        )
    axes[0].set_title("Figure 7: even / optimum, δ = 4", fontsize=9)
    shades = dict(zip(NAMES, ["#588b8b", "#c8553d", "#f28f3b", "0.45", "0.75"], strict=True))
    for ax, (window, p) in zip(axes[1:], PANELS, strict=True):
        rows = [row for row in eight if (row["δ"], row["p"]) == (window, p)]
        for name in NAMES:
            ax.plot([row["n"] for row in rows], [row[name] for row in rows], marker=".", label=name, color=shades[name])
        ax.set_title(f"Figure 8: total error, δ = {window}, p = {p}", fontsize=9)
    for ax in axes:
        ax.set_xlabel("steps", fontsize=8)
        ax.legend(fontsize=6.5, frameon=False)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=256, help="futures a step; the paper draws 1,000")
    parser.add_argument(
        "--candidates", type=int, default=50, help="budgets that the paper's algorithm tries; it has 100"
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=[10, 20, 30, 40, 50])
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--picture", type=Path, default=None)
    options = parser.parse_args()
    repetitions, lengths = (8, [20]) if options.quick else (options.repetitions, options.lengths)
    samples, candidates = (64, 20) if options.quick else (options.samples, options.candidates)
    started = time.perf_counter()
    payload: dict = {"repetitions": repetitions, "samples": samples}
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        if "figures" in options.parts:
            payload["figure7"] = figure7([5, 10, 20, 30, 40, 50], 100 if options.quick else 1000)
            payload["figure8"] = figure8(lengths, repetitions, samples, pool)
            if options.picture is not None:
                picture(payload["figure7"], payload["figure8"], options.picture)
        if "paper" in options.parts:
            payload["paper"] = against_the_paper(4 if options.quick else 12, samples, candidates, pool)
    if "data" in options.parts:
        payload["data_dependent"] = data_dependent(7, 200, 5 if options.quick else 50)
    if "speed" in options.parts:
        payload["speed"] = speed(10_000, 7, 5)
    name = "streams_allocation" if options.parts == PARTS else f"streams_allocation_{'_'.join(options.parts)}"
    path = write_json(name, payload)
    print(f"\n{time.perf_counter() - started:.0f} seconds; written to {path}")


if __name__ == "__main__":
    main()
