"""Figure 4 and Table 5 of Fang, Chang (ASIA CCS 2014): 2D range queries under δ-neighbourhood, on real points.

Mean squared errors of square queries of one side in [0, 1]², ε = 1, one record, the number of records public. All four
methods give the same guarantee, ε under `within(delta)`:

- equi-width: a plain histogram with noise of scale 2/ε, which is ε under replace-one and so under every move;
- shifted: the paper's family of shifted histograms, with the number of shifts put right;
- edges: Blowfish edge noise on the grid, as a plan chooses it (edges or hierarchies of edges);
- shifted-edges: our shifted grids with edge noise.

As in the paper, each is shown at the bin width that is best *for these data and this side*, in hindsight: choosing it so
is not private, and serves the comparison alone. The last column is private throughout: `shifted-edges` with the width
that a plan chooses from the reference population, without any look at the data.

    python bench/papers/delta.py --data ../shared/data              # δ = 0.001 and 0.0001 (needs 8 GB)
    python bench/papers/delta.py --data ../shared/data --quick      # δ = 0.001, fewer queries

The paper's other figures have files of their own, which `--figure` runs: 2 (and Table 4) are strategies on lines
(`delta_strategies.py`), 5 sorted points (`adaptive.py`), 6 medians (`../median.py`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from _points import load, squares, truth
from _report import OUT, table, write_json

import sfumato as sf

SIDES = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3]
TABLE_5 = [0.005, 0.01, 0.015, 0.02]
METHODS = ("equi-width", "shifted", "edges", "shifted-edges")
RUNS = 3
OTHERS = {"2": "delta_strategies.py", "5": "adaptive.py", "6": "../median.py"}


def errors(release: sf.Release, asked: dict[float, np.ndarray], true: dict[float, np.ndarray]) -> dict[float, float]:
    """The mean squared error of every side."""
    domain, tables = release.domain, release._table
    return {
        side: float(np.mean((tables.fractional_sums(*domain.fractional(boxes)) - true[side]) ** 2))
        for side, boxes in asked.items()
    }


def equi_width(points: np.ndarray, cells: int) -> sf.Release:
    """A plain histogram."""
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(cells, cells))
    return sf.plan(sf.bounded(grid), sf.ranges(), 1.0, mechanism="identity").publish(points=points)


def blowfish(points: np.ndarray, delta: float, cells: int) -> sf.Release:
    """Edge noise on a grid of cells at least δ wide."""
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(cells, cells))
    return sf.plan(sf.within(grid, delta), sf.ranges(), 1.0).publish(points=points)


def one_dataset(points: np.ndarray, delta: float, count: int, runs: int) -> dict:
    """{method: {setting: {side: error}}} over the widths, the best of each, and the plan's own."""
    rng = np.random.default_rng(2014)
    asked = {side: squares(side, count, rng) for side in SIDES}
    true = {side: truth(points, boxes) for side, boxes in asked.items()}
    found: dict[str, dict[str, dict[float, float]]] = {}

    def record(method: str, setting: str, make) -> None:
        many = [errors(make(), asked, true) for _ in range(runs)]
        found.setdefault(method, {})[setting] = {side: float(np.mean([e[side] for e in many])) for side in SIDES}

    for k in np.arange(1, 17) * 0.0025:  # the paper's own steps
        record("equi-width", f"{k:.4f}", lambda k=k: equi_width(points, round(1 / k)))
    n = round(1 / delta)
    for cells in sorted({round(n / k) for k in (1, 2, 4, 8, 16) if n / k <= 2000}):
        record("edges", f"{1 / cells:.4f}", lambda cells=cells: blowfish(points, delta, cells))
    policy = sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(n, n)), delta)
    values = np.bincount(policy.domain.locate(points), minlength=n * n).reshape(n, n)
    widths = sorted(
        {max(1, round(w * n)) for w in (0.001, 0.002, 0.003, 0.004, 0.006, 0.008, 0.011, 0.016, 0.022, 0.032)}
    )
    for method in ("shifted", "shifted-edges"):
        for width in widths:
            plan = sf.plan(policy, sf.ranges(), 1.0, mechanism=method, width=width)
            record(method, f"{width / n:.4f}", lambda plan=plan: plan.publish(values))
    if n <= 2000:
        blind = sf.plan(policy, sf.ranges(), 1.0, mechanism="shifted-edges")
        record("planned", f"{blind.mechanism.options['width'][0] / n:.4f}", lambda: blind.publish(values))
    return found


def best(found: dict, method: str, side: float) -> tuple[float, str]:
    """(least error, its width) over the widths."""
    return min((each[side], width) for width, each in found[method].items())


def main() -> None:
    """Tables, JSON and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--picture", type=Path, help="where to write the figure")
    parser.add_argument(
        "--maps", type=Path, help="only draw the data and one release by each method, and write it here"
    )
    parser.add_argument("--figure", choices=["2", "4", "5", "6"], default="4")
    options = parser.parse_args()
    if options.figure != "4":
        script = Path(__file__).parent / OTHERS[options.figure]
        given = ["--quick"] * options.quick + ["--data", str(options.data)] * (options.figure == "5")
        raise SystemExit(subprocess.run([sys.executable, script, *given], check=False).returncode)
    if options.maps:
        draw_maps(options.data, options.maps)
        return
    count, runs = (300, 1) if options.quick else (1000, RUNS)
    cases = [("twitter", 0.001), ("foursquare", 0.001), ("thefts", 0.001), ("kaluza", 0.01), ("kaluza", 0.001)]
    if not options.quick:
        cases += [("twitter", 0.0001), ("foursquare", 0.0001), ("thefts", 0.0001)]
    payload, drawn = {}, []
    for name, delta in cases:
        started = time.perf_counter()
        points = load(options.data, name)
        found = one_dataset(points, delta, count, 1 if delta < 0.001 else runs)
        rows = []
        for side in SIDES:
            row: dict = {"side": side}
            for method in METHODS:
                error, width = best(found, method, side)
                row[method] = error
                row[f"{method} width"] = width
            row["paper's gain"] = row["equi-width"] / row["shifted"]
            row["our gain on it"] = row["shifted"] / row["shifted-edges"]
            row["planned"] = next(iter(found["planned"].values()))[side] if "planned" in found else None
            rows.append(row)
        print(f"\n{name}: {len(points):,} points, δ = {delta:g}, ε = 1 ({time.perf_counter() - started:.0f} s)")
        table([{k: v for k, v in row.items() if not k.endswith(" width")} for row in rows])
        print("\nTable 5: equi-width by bin width")
        table(
            [{"side": s, **{f"{k:g}": found["equi-width"][f"{k:.4f}"][s] for k in TABLE_5}} for s in (0.01, 0.1, 0.2)]
        )
        payload[f"{name}, δ = {delta:g}"] = {"points": len(points), "best": rows, "by width": found}
        drawn.append((f"{name}, δ = {delta:g}", rows))
    path = write_json("delta", {"queries": count, "runs": runs, "results": payload})
    print(f"\nwritten to {path}")
    draw(drawn, options.picture or OUT / "delta.png")


def draw(cases: list, path: Path) -> None:
    """Figure 4: error over the side of the query, for every dataset and δ."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(3, len(cases))
    rows = -(-len(cases) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, 3.2 * rows), squeeze=False, sharex=True)
    styles = {"equi-width": "#9aa0a6", "shifted": "#d98c3f", "edges": "#5b8f6b", "shifted-edges": "#2b4c7e"}
    for ax, (title, found) in zip(axes.flat, cases, strict=False):
        for method, colour in styles.items():
            ax.plot(SIDES, [row[method] for row in found], marker="o", ms=3, color=colour, label=method)
        ax.set(title=title, yscale="log")
        ax.title.set_fontsize(10)
    for ax in axes[:, 0]:
        ax.set_ylabel("mean squared error")
    for ax in axes[-1]:
        ax.set_xlabel("side of the query")
    for ax in axes.flat[len(cases) :]:
        ax.set_visible(False)
    axes[0, 0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"drawn to {path}")


def draw_maps(data: Path, path: Path) -> None:
    """Figure 3, and what each method makes of it at ε = 1: the same colours for the same density."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LogNorm

    shown, delta = 250, 0.001
    figure, axes = plt.subplots(2, 5, figsize=(17, 7))
    for row, name in enumerate(("twitter", "foursquare")):
        points = load(data, name)
        n = round(1 / delta)
        policy = sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(n, n)), delta)
        releases = {
            "equi-width, 0.008": equi_width(points, 125),
            "shifted, 0.006": sf.plan(policy, sf.ranges(), 1.0, mechanism="shifted", width=6).publish(points=points),
            "edges, 0.004": blowfish(points, delta, 250),
            "shifted-edges, 0.004": sf.plan(policy, sf.ranges(), 1.0, mechanism="shifted-edges", width=4).publish(
                points=points
            ),
        }
        true, *_ = np.histogram2d(*points.T, bins=shown, range=[(0, 1), (0, 1)])
        images = {f"{name}: {len(points):,} points": true}
        ends = np.linspace(0, 1, shown + 1)
        x, y = np.meshgrid(np.arange(shown), np.arange(shown), indexing="ij")
        cells = np.stack([ends[x], ends[y], ends[x + 1], ends[y + 1]], axis=-1).reshape(-1, 4)
        for title, release in releases.items():
            low, high = release.domain.fractional(cells)
            images[title] = release._table.fractional_sums(low, high).reshape(shown, shown)
        for ax, (title, image) in zip(axes[row], images.items(), strict=True):
            ax.imshow(
                np.maximum(image.T, 0.3), origin="lower", norm=LogNorm(0.3, true.max()), cmap="magma_r", aspect="auto"
            )
            ax.set_title(title, fontsize=10)
            ax.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=55)
    print(f"drawn to {path}")


if __name__ == "__main__":
    main()
