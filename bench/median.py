"""How good and how fast is a private median? Smooth sensitivity, plain noise and our mechanism, and the peers.

1. **Time and error** on 10⁵ and 10⁶ points of [0, 1] at ε = 1, beside OpenDP's private quantile (if installed) and the
   figures recorded for diffprivlib and OpenDP. Mind the neighbours: ours are replace-one and δ; an ε under add/remove
   is 2ε under replace-one. No peer knows a δ. A few candidates hit one dataset's median by luck and another's not at
   all, so the error is a mean over ten datasets.
2. **Figure 6** of the paper on δ-neighbourhoods: exponential points scaled to [0, 1], by n and δ, every method as the
   paper would run it, 300 repetitions with new points each. Smooth sensitivity with Cauchy noise has no finite mean
   error; the median absolute error is compared, beside the mean.
   The figure's own quantity, the mean smooth sensitivity, is a table by itself (`--sensitivity`: seconds).
3. **The choice** of the method from public figures, against the better one of the two, on four kinds of points.

    python bench/median.py [--quick] [--picture docs/img/median.png]
    python bench/median.py --sensitivity [--page docs/delta.md]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from _report import put, table, write_json
from numpy.typing import NDArray

from sfumato.publishing.quantile import median
from sfumato.quantiles import METHODS, rank_of
from sfumato.quantiles.smooth import SmoothSensitivity
from sfumato.quantiles.smooth_bound import smooth_sensitivity

# Mean squared error over 200 runs on 10⁵ points at ε = 1, and seconds a call; measured beforehand.
RECORDED = {
    "diffprivlib tools.median": {"uniform": 1.5e-9, "beta(2, 5)": 2.0e-10, "seconds": 0.085},
    "OpenDP, 10,001 candidates": {"uniform": 4.8e-11, "beta(2, 5)": 2.5e-10, "seconds": 0.027},
}
OURS: dict[str, dict[str, float]] = {
    "sfumato, replace-one": {},
    "sfumato, δ = 0.001": {"delta": 0.001},
    "sfumato, δ = 0.00001": {"delta": 1e-5},
    "sfumato, δ = 0.000003": {"delta": 3e-6},
}
KINDS: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.normal(0.5, 0.1, n).clip(0, 1),
    "exponential": lambda rng, n: scaled(rng.exponential(size=n)),
    "two humps": lambda rng, n: np.where(rng.random(n) < 0.5, rng.normal(0.2, 0.05, n), rng.normal(0.8, 0.05, n)),
}


def scaled(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """To [0, 1] by the largest, as in the paper. (The bounds are then private: for a figure, not for a release.)"""
    return points / points.max()


def truth(points: NDArray[np.float64]) -> float:
    """The order statistic that is published."""
    rank = rank_of(Fraction(1, 2), len(points))
    return float(np.partition(points, rank - 1)[rank - 1])


def errors(points: NDArray[np.float64], runs: int, **given: object) -> tuple[NDArray[np.float64], float]:
    """Absolute errors, and CPU seconds a call."""
    true, start = truth(points), time.process_time()
    found = [median(points, bounds=(0, 1), **given).value for _ in range(runs)]  # type: ignore[arg-type]
    return np.abs(np.array(found) - true), (time.process_time() - start) / runs


def speed(quick: bool) -> list[dict[str, object]]:
    """Mean squared errors and seconds of ours and theirs on the same points."""
    rows: list[dict[str, object]] = []
    for n, datasets, runs in ((10**5, 10, 2 if quick else 20), (10**6, 2 if quick else 5, 1)):
        for kind in ("uniform", "beta(2, 5)"):
            rng = np.random.default_rng(1)
            every = [rng.random(n) if kind == "uniform" else rng.beta(2, 5, n) for _ in range(datasets)]
            for name, given in OURS.items():
                found = [errors(points, runs, epsilon=1, **given) for points in every]
                mse = float(np.mean([off**2 for off, _ in found]))
                rows.append(
                    _row(n, kind, name, mse, float(np.mean([seconds for _, seconds in found])), datasets * runs)
                )
            for relation in ("replace-one", "add/remove"):
                peer = [_opendp(points, 1, runs, replace=relation == "replace-one") for points in every]
                if None not in peer:
                    mse, seconds = (float(np.mean(column)) for column in zip(*peer, strict=True))
                    rows.append(_row(n, kind, f"OpenDP, 10,001 candidates, {relation}", mse, seconds, datasets * runs))
            if n == 10**5:
                rows += [
                    _row(n, kind, f"{name}, recorded on one dataset", found[kind], found["seconds"], 200)
                    for name, found in RECORDED.items()
                ]
    return rows


def _row(n: int, kind: str, who: str, mse: float, seconds: float, runs: int) -> dict[str, object]:
    return {"n": n, "points": kind, "who": who, "MSE": mse, "seconds": seconds, "runs": runs}


def _opendp(points: NDArray[np.float64], epsilon: float, runs: int, *, replace: bool) -> tuple[float, float] | None:
    """(mean squared error, seconds a call) of OpenDP's quantile by candidates, or None where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    atoms = dp.atom_domain(T=float, nan=False)
    domain = dp.vector_domain(atoms, size=len(points)) if replace else dp.vector_domain(atoms)
    candidates = np.linspace(0, 1, 10_001).tolist()

    def quantile_at(scale: float) -> dp.Measurement:
        return dp.m.make_private_quantile(
            domain, dp.symmetric_distance(), dp.max_divergence(), candidates, alpha=0.5, scale=scale
        )

    distance = 2 if replace else 1  # one record goes and another one comes
    made = quantile_at(dp.binary_search_param(quantile_at, d_in=distance, d_out=float(epsilon), T=float))
    data, true, start = points.tolist(), truth(points), time.process_time()
    found = [made(data) for _ in range(runs)]
    return float(((np.array(found) - true) ** 2).mean()), (time.process_time() - start) / runs


def figure(repetitions: int) -> list[dict[str, object]]:
    """Every n, δ and ε of the paper's figure: the median (and mean) absolute error of every method."""
    rng = np.random.default_rng(6)
    rows = []
    for epsilon in (1, 5):
        for n in (11, 101, 1001, 10001):
            datasets = [scaled(rng.exponential(size=n)) for _ in range(repetitions)]
            for delta in (0.001, 0.01, 0.1, 1):
                row: dict[str, object] = {"ε": epsilon, "n": n, "δ": delta}
                for method in (*METHODS, None):
                    answers = [median(x, bounds=(0, 1), epsilon=epsilon, delta=delta, method=method) for x in datasets]
                    off = np.array([abs(a.value - truth(x)) for a, x in zip(answers, datasets, strict=True)])
                    row[method or "chosen"] = float(np.median(off))
                    row[f"{method or 'chosen'}, mean"] = float(off.mean())
                row["choice"] = answers[0].method
                rows.append(row)
    return rows


def sensitivities(repetitions: int) -> list[dict[str, object]]:
    """What the paper's figure shows: the mean smooth sensitivity of the median as a share of the bounds, ε = 1; δ = 1
    is the standard neighbourhood.
    """
    rng, cells, rows = np.random.default_rng(6), 1 << 20, []
    for n in (11, 101, 1001, 10001):
        datasets = [scaled(rng.exponential(size=n)) for _ in range(repetitions)]
        located = [np.sort(np.minimum((x * cells).astype(np.int64), cells - 1)) for x in datasets]
        for noise, slack in (("Laplace, slack 10⁻⁶", Fraction(1, 10**6)), ("Cauchy", Fraction(0))):
            row: dict[str, object] = {"n": n, "noise": noise}
            for delta in (0.001, 0.01, 0.1, 1):
                theta = max(1, round(delta * cells))
                beta = SmoothSensitivity(epsilon=Fraction(1), theta=theta, cells=cells, slack=slack).beta
                rank = rank_of(Fraction(1, 2), n)
                bounds = [smooth_sensitivity(x, rank, beta=beta, theta=theta, cells=cells)[1] for x in located]
                row[f"δ = {delta:g}"] = float(np.mean([float(bound) for bound in bounds])) / cells
            rows.append(row)
    return rows


def choices(runs: int) -> list[dict[str, object]]:
    """Root mean squared error of the two that are chosen from, and of the choice."""
    rng = np.random.default_rng(2)
    rows = []
    for epsilon in (0.1, 1, 5):
        for kind, draw in KINDS.items():
            for n in (101, 1001, 10001):
                for delta in (1e-4, 1e-3, 1e-2, 0.1):
                    found = {"inverse": [], "laplace": []}
                    for _ in range(runs):
                        points = draw(rng, n).clip(0, 1)
                        for method, off in found.items():
                            answer = median(points, bounds=(0, 1), epsilon=epsilon, delta=delta, method=method)
                            off.append(abs(answer.value - truth(points)))
                    size = {method: float(np.sqrt(np.mean(np.square(off)))) for method, off in found.items()}
                    chosen = median([0.5] * n, bounds=(0, 1), epsilon=epsilon, delta=delta).method  # sees only n
                    rows.append(
                        {
                            "ε": epsilon,
                            "points": kind,
                            "n": n,
                            "δ": delta,
                            **size,
                            "chosen": chosen,
                            "times the better": size[chosen] / min(size.values()),
                        }
                    )
    return rows


def picture(rows: list[dict[str, object]], path: Path) -> None:
    """Error by n, one panel for each δ, at ε = 1."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(13, 3.8), dpi=150, layout="constrained")
    deltas = sorted({row["δ"] for row in rows})
    for ax, delta in zip(drawing.subplots(1, len(deltas), sharey=True), deltas, strict=True):
        there = [row for row in rows if row["δ"] == delta and row["ε"] == 1]
        for name, look in {
            "smooth": {"color": "0.7"},
            "smooth-pure": {"color": "0.5"},
            "laplace": {"color": "0.2", "linestyle": ":"},
            "inverse": {"color": "0.2", "linestyle": "--"},
            "chosen": {"color": "#c8553d"},
        }.items():
            ax.plot([row["n"] for row in there], [row[name] for row in there], label=name, **look)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_title(f"δ = {delta:g}, ε = 1", fontsize=9)
        ax.set_xlabel("points", fontsize=8)
        ax.tick_params(labelsize=7)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        if delta == deltas[0]:
            ax.set_ylabel("median absolute error", fontsize=8)
            ax.legend(fontsize=7, frameon=False)
    drawing.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--picture", type=Path, default=None, help="write the panels at ε = 1 here")
    parser.add_argument("--sensitivity", action="store_true", help="the smooth sensitivity of the figure alone")
    parser.add_argument(
        "--page", type=Path, default=None, help="write the table of smooth sensitivities into this page"
    )
    options = parser.parse_args()
    smooth = sensitivities(30 if options.quick else 300)
    print("Figure 6's own quantity: the mean smooth sensitivity, as a share of the bounds")
    table(smooth)
    if options.page is not None:
        put(options.page, "figure 6", smooth)
    if options.sensitivity:
        print(f"\nwritten to {write_json('median_sensitivity', {'rows': smooth})}")
        return
    rows = speed(options.quick)
    table(rows)
    panels = figure(30 if options.quick else 300)
    print("\nFigure 6: median absolute error over datasets")
    table([{k: v for k, v in row.items() if not k.endswith("mean")} for row in panels])
    compared = choices(20 if options.quick else 100)
    worst = sorted(compared, key=lambda row: -float(str(row["times the better"])))[:8]
    print("\nThe choice of the method: where it is farthest from the better one")
    table(worst)
    path = write_json("median", {"speed": rows, "figure6": panels, "choice": compared})
    if options.picture is not None:
        picture(panels, options.picture)
    print(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
