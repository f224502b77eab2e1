"""Figure 4 and Table 5 of Fang, Chang (ASIA CCS 2014): 2D range queries under δ-neighbourhood, on real points.

Mean squared errors of square queries of one side in [0, 1]², ε = 1, one record, the number of records public. All
methods give the same guarantee, ε under `within(delta)`. Four are shown at the bin width that is best *for these data
and this side*, in hindsight, as in the paper; choosing it so is not private, and serves the comparison alone:

- equi-width: a plain histogram with noise of scale 2/ε, which is ε under replace-one and so under every move;
- shifted: the paper's family of shifted histograms, with the number of shifts put right;
- edges: what a plan takes on a grid without looking at data, by the cells' size;
- shifted-edges: our shifted grids with edge noise.

Three are planned, private throughout: "plan" is what `sf.plan` takes on the finest grid (cells of δ, at most 2,000 a
side), "plan, records" the same told the number of records, "shifted-edges" the family with the width that a plan
chooses by the reference population. "uniform" are 193,841 even points, as many as the paper's Dataset 1 has; gowalla
(a row for every user and place, all over the world) stands in for it.

    python bench/papers/delta.py --data ../shared/data --only gowalla           # δ = 0.001; a minute or two a dataset
    python bench/papers/delta.py --data ../shared/data --only uniform --fine    # δ = 0.0001 (needs 8 GB)
    python bench/papers/delta.py --page docs/delta.md     # every table of the page, from the JSON; measures nothing

Without --only all datasets are measured; what was measured before stays in the JSON. The paper's other figures have
files of their own, which `--figure` runs: 2 (and Table 4) are strategies on lines (`delta_strategies.py`), 5 sorted
points (`adaptive.py`), 6 medians (`../median.py`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from _points import FILES, load, squares, truth
from _report import OUT, put, table, write_json

import sfumato as sf
from sfumato.mechanism import SummedArea

SIDES = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3]
TABLE_5 = [0.005, 0.01, 0.015, 0.02]
METHODS = ("equi-width", "shifted", "edges", "shifted-edges")
PLANNED = ("plan", "plan, records", "planned shifted-edges")
WIDTHS = [0.001, 0.002, 0.003, 0.004, 0.006, 0.008, 0.011, 0.016, 0.022, 0.032]  # of the families' bins
RUNS = 3
UNIFORM = 193_841  # as many as the paper's Dataset 1
FINEST = 2000  # cells a side of a grid that is planned
CASES = [(name, 0.001) for name in (*FILES, "uniform")] + [("kaluza", 0.01)]
FINE = [(name, 0.0001) for name in ("twitter", "foursquare", "thefts", "gowalla", "uniform")]
OTHERS = {"2": "delta_strategies.py", "5": "adaptive.py", "6": "../median.py"}


def errors(release: sf.Release, asked: dict[float, np.ndarray], true: dict[float, np.ndarray]) -> dict[float, float]:
    """The mean squared error of every side."""
    domain, tables = release.domain, SummedArea(release.counts)
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


def one_dataset(points: np.ndarray, delta: float, count: int, runs: int, wide: list[float]) -> dict:
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
    widths = sorted({max(1, round(w * n)) for w in wide})
    for method in ("shifted", "shifted-edges"):
        for width in widths:
            plan = sf.plan(policy, sf.ranges(), 1.0, mechanism=method, width=width)
            record(method, f"{width / n:.4f}", lambda plan=plan: plan.publish(values))
    n = min(n, FINEST)
    policy = sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(n, n)), delta)
    values = np.bincount(policy.domain.locate(points), minlength=n * n).reshape(n, n)
    for name, given in zip(PLANNED, ({}, {"records": len(points)}, {"mechanism": "shifted-edges"}), strict=True):
        plan = sf.plan(policy, sf.ranges(), 1.0, **given)
        record(name, plan.mechanism.name, lambda plan=plan: plan.publish(values))
    return found


def best(found: dict, method: str, side: float) -> tuple[float, str]:
    """(least error, its width) over the widths."""
    return min((each[side], width) for width, each in found[method].items())


def points_of(data: Path, name: str) -> np.ndarray:
    """Real points, or even ones."""
    return np.random.default_rng(UNIFORM).random((UNIFORM, 2)) if name == "uniform" else load(data, name)


def guesses(data: Path) -> list[dict]:
    """`shifted-edges` with its width guessed: what the plan says of all ranges, what the data then have, the same told
    how many records there are, and what is known whatever the data.
    """
    policy, rows = sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(1000, 1000)), 0.001), []
    for name in (*FILES, "uniform"):
        points = points_of(data, name)
        values = np.bincount(policy.domain.locate(points), minlength=10**6).reshape(1000, 1000)
        row: dict = {"data": name, "points": len(points), "heaviest cell": f"{values.max() / len(points):.1%}"}
        for words, given in (("guessed", {}), ("with records", {"records": len(points)})):
            plan = sf.plan(policy, sf.ranges(), 1.0, mechanism="shifted-edges", **given)
            width = plan.mechanism.options["width"][0]
            true = sf.plan(policy, sf.ranges(), 1.0, mechanism="shifted-edges", width=width, like=values)
            row |= {f"width {words}": width, f"its error {words}": plan.expected_error}
            row |= {f"true error {words}": true.expected_error}
        known = sf.plan(policy, sf.ranges(), 1.0)
        rows.append(row | {f"known: {known.mechanism.name}": known.expected_error})
    return rows


def measured(path: Path) -> dict:
    """What was measured before."""
    return json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else {}


def rows_of(case: dict) -> list[dict]:
    """The least error of every method, in hindsight, and what was planned, by side."""
    rows = []
    for side in SIDES:
        row: dict = {"side": side}
        for method in METHODS:
            row[method], row[f"{method} width"] = best(case["by width"], method, str(side))
        for name in PLANNED:
            row[name] = next(iter(case["by width"][name].values()))[str(side)]
        rows.append(row)
    return rows


def gains(results: dict, sides: tuple[float, ...] = (0.1, 0.15, 0.2, 0.3)) -> list[dict]:
    """How many times below the equi-width histogram at its best width, over the larger sides."""
    rows = []
    for case in results.values():
        found = [row for row in rows_of(case) if row["side"] in sides]
        row = {"data": case["data"], "points": case["points"], "δ": case["delta"]}
        for method in ("shifted", "shifted-edges", *PLANNED):
            ratios = [each["equi-width"] / each[method] for each in found]
            row[method] = f"{min(ratios):.2g}–{max(ratios):.2g}"
        rows.append(row)
    return rows


def figures(results: dict) -> list[dict]:
    """Figure 4 at four sides."""
    shown = (0.01, 0.1, 0.2, 0.3)
    return [
        {"data": case["data"], "δ": case["delta"], "side": row["side"]}
        | {name: row[name] for name in (*METHODS, *PLANNED)}
        for case in results.values()
        for row in rows_of(case)
        if row["side"] in shown
    ]


def table_5(results: dict) -> list[dict]:
    """The equi-width histogram by bin width, for every dataset once."""
    rows = {}
    for case in results.values():
        found = case["by width"]["equi-width"]
        for side in (0.01, 0.1, 0.2):
            widths = {f"{k:g}": found[f"{k:.4f}"][str(side)] for k in TABLE_5}
            rows[case["data"], side] = {"data": case["data"], "side": side} | widths
    return [rows[key] for key in sorted(rows, key=lambda key: list(dict.fromkeys(k[0] for k in rows)).index(key[0]))]


def pages(results: dict, page: Path) -> None:
    """Every table of the page."""
    put(page, "gains", gains(results))
    put(page, "figure 4", figures(results))
    put(page, "table 5", table_5(results))


def main() -> None:
    """Tables, JSON and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", default="", help="these datasets alone, as in gowalla,uniform")
    parser.add_argument("--fine", action="store_true", help="δ = 0.0001 in the place of 0.001")
    parser.add_argument("--quick", action="store_true", help="fewer queries, one run")
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)), help="of the families' bins")
    parser.add_argument("--page", type=Path, help="write the tables into this page, from what was measured before")
    parser.add_argument("--picture", type=Path, help="where to write the figure")
    parser.add_argument("--guesses", action="store_true", help="only how far off guessed widths are, into --page")
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
    if options.guesses:
        rows = guesses(options.data)
        table(rows)
        print(f"\nwritten to {write_json('delta_guesses', {'rows': rows})}")
        if options.page is not None:
            put(options.page, "guesses", rows)
        return
    results = measured(OUT / "delta.json")
    if options.page is None:
        wide = [float(width) for width in options.widths.split(",")]
        count, runs = (300, 1) if options.quick else (1000, RUNS)
        for name, delta in FINE if options.fine else CASES:
            if options.only and name not in options.only.split(","):
                continue
            started = time.perf_counter()
            points = points_of(options.data, name)
            found = one_dataset(points, delta, count, 1 if delta < 0.001 else runs, wide)
            case = {"data": name, "delta": delta, "points": len(points), "by width": found}
            results[f"{name}, δ = {delta:g}"] = json.loads(json.dumps(case))
            print(f"\n{name}: {len(points):,} points, δ = {delta:g}, ε = 1 ({time.perf_counter() - started:.0f} s)")
            table(
                [
                    {k: v for k, v in row.items() if not k.endswith(" width")}
                    for row in rows_of(results[f"{name}, δ = {delta:g}"])
                ]
            )
            order = [f"{name}, δ = {delta:g}" for name, delta in (*CASES, *FINE)]
            results = {key: results[key] for key in order if key in results}
            write_json("delta", {"queries": count, "runs": runs, "results": results})
    else:
        pages(results, options.page)
    print("\nTimes below the equi-width histogram at its best width, at sides of 0.1 and more")
    table(gains(results))
    print("\nTable 5: equi-width by bin width")
    table(table_5(results))
    draw([(title, rows_of(case)) for title, case in results.items()], options.picture or OUT / "delta.png")


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
            images[title] = SummedArea(release.counts).fractional_sums(low, high).reshape(shown, shown)
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
