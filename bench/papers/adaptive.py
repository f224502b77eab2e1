"""Adaptive histograms (Fang, Chang, PETS 2012; Figure 5 of Fang, Chang, ASIA CCS 2014) on real data, and where they lose.

Range queries on a line and on a grid by size, sorted points against an equi-width histogram at its best width (chosen
on the data, for this benchmark only: it is not private), Privelet (`haar`), our `hierarchy`, and under δ on the line
what `sf.plan` chooses; the error against the group size with the model's curve; the median; and the boundary of where
sorted points win. Beside everything stands what needs no look at the data: as many records, spread evenly. Every column
of a table is ε-private under the policy that its table names, the best width aside.
Errors are root mean squared errors of the number of records in a range, over all places of the range and --runs runs.

    python bench/papers/adaptive.py                      # everything, from ../shared/data
    python bench/papers/adaptive.py --data FOLDER --only ranges,boundary --runs 8 --page docs/sorted.md
    python bench/papers/adaptive.py --data FOLDER --quick --picture adaptive.png

With --only some panels are measured again and the others stay in the JSON as they were.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _adaptive_data import counted, cube_data, grid_data, line_data, range_squares
from _adaptive_picture import picture
from _report import OUT, put, table, write_json

import sfumato as sf
from sfumato.mechanism import build
from sfumato.mechanism.points.sorted import sorted_points
from sfumato.mechanism.points.sorted_model import range_error
from sfumato.noise import DiscreteLaplace, SystemSource

SOURCE = SystemSource()
SIZES = (0.001, 0.01, 0.05, 0.1, 0.3)
SAMPLES = 8  # of fewer records than there are: where groups end between the heaps of one sample is luck
LINE = sf.Line(0, 1, cells=4096)
GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(256, 256))
CUBE = sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(32, 32, 32))


# -------------------------------------------------------------------------------------------------------------- errors


def errors(run, x: np.ndarray, shape: tuple[int, ...], runs: int, rng: np.random.Generator) -> np.ndarray:
    """Mean squared errors by range size, averaged over the runs."""
    found = np.zeros(len(SIZES))
    for _ in range(runs):
        off = (run() - x).reshape(shape)
        found += [range_squares(off, size, rng) / runs for size in SIZES]
    return found


def even_guess(x: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Mean squared errors of spreading the records evenly: n × volume, without a look at them."""
    return errors(lambda: np.full(len(x), x.sum() / len(x)), x, shape, 1, rng)


def published(mechanism, x: np.ndarray):
    total = int(x.sum()) if mechanism.policy.total_is_public else None
    return lambda: mechanism.run(x, total, SOURCE)


def equi_width(x: np.ndarray, shape: tuple[int, ...], width: int, epsilon: Fraction):
    """Noise on bins of `width` cells a side, spread evenly over their cells. Replace-one moves two counts by one."""
    d = len(shape)
    folded = x.reshape([part for n in shape for part in (n // width, width)])
    bins = folded.sum(axis=tuple(range(1, 2 * d, 2)))
    noisy = bins + DiscreteLaplace(epsilon / 2).sample(bins.size, SOURCE).reshape(bins.shape)
    for axis in range(d):
        noisy = np.repeat(noisy, width, axis=axis)
    return noisy.ravel() / width**d


def best_equi_width(x, shape, epsilon, runs, rng) -> tuple[np.ndarray, int]:
    """(errors, width) of the width with the smallest mean error over all sizes: it looks at the data."""
    widths = [2**i for i in range(3, min(shape).bit_length() - 1)]
    tried = [errors(lambda w=w: equi_width(x, shape, w, epsilon), x, shape, max(2, runs // 4), rng) for w in widths]
    width = widths[int(np.argmin([np.log(e).mean() for e in tried]))]
    return errors(lambda: equi_width(x, shape, width, epsilon), x, shape, runs, rng), width


# -------------------------------------------------------------------------------------------------------------- panels


def compare(name, x, domain, epsilon, runs, rng) -> list[dict]:
    """One dataset under replace-one: a row for every range size."""
    bounded, n = sf.bounded(domain), int(x.sum())
    ours = sorted_points(bounded, epsilon)
    width_errors, width = best_equi_width(x, domain.shape, epsilon, runs, rng)
    grids = build("adaptive-grid", bounded, epsilon).informed(n)
    columns = {
        "even guess": even_guess(x, domain.shape, rng),
        "sorted": errors(published(ours, x), x, domain.shape, runs, rng),
        "adaptive-grid": errors(published(grids, x), x, domain.shape, max(3, runs // 4), rng),
        "equi-width, best": width_errors,
        "Privelet": errors(published(build("haar", bounded, epsilon), x), x, domain.shape, max(3, runs // 4), rng),
        "hierarchy": errors(
            published(build("hierarchy", bounded, epsilon), x), x, domain.shape, max(3, runs // 4), rng
        ),
    }
    rows = []
    for i, size in enumerate(SIZES):
        row = {"data": name, "n": n, "ε": float(epsilon), "group": ours.group_size(n), "width": width, "range": size}
        row |= {column: float(np.sqrt(found[i])) for column, found in columns.items()}
        row["best"] = min(columns, key=lambda column: columns[column][i])
        rows.append(row)
    return rows


def range_panels(lines, grids, cubes, epsilons, runs, rng) -> list[dict]:
    rows = []
    for domain, sets in ((LINE, lines), (GRID, grids), (CUBE, cubes)):
        for name, points in sets.items():
            for n in (1000, None):
                x = counted(points, domain, n, rng)
                for epsilon in epsilons:
                    rows += compare(name, x, domain, epsilon, runs, rng)
    print("\nRange queries under replace-one: root mean squared error")
    table(rows)
    return rows


def delta_panel(lines, epsilon, runs, rng) -> list[dict]:
    """Figure 5: the gain of δ-neighbourhood in mean squared error, at the same groups and at the best ones."""
    rows = []
    for name, points in lines.items():
        x = counted(points, LINE, None, rng)
        n = int(x.sum())
        wide = sorted_points(sf.bounded(LINE), epsilon)
        small = max(1, round(wide.group_size(n) / 30))  # so small that noise is all of the error
        even = even_guess(x, LINE.shape, rng)
        base = errors(published(wide, x), x, LINE.shape, runs, rng)
        base_small = errors(
            published(sorted_points(sf.bounded(LINE), epsilon, group=small), x), x, LINE.shape, runs, rng
        )
        for delta in (0.1, 0.03, 0.01, 0.003):
            policy = sf.within(LINE, delta)
            near = sorted_points(policy, epsilon)
            found = errors(published(near, x), x, LINE.shape, runs, rng)
            same = errors(published(sorted_points(policy, epsilon, group=small), x), x, LINE.shape, runs, rng)
            plan = sf.plan(policy, sf.ranges(), epsilon)
            other = errors(published(plan.mechanism, x), x, LINE.shape, max(3, runs // 4), rng)
            rows.append(
                {
                    "data": name,
                    "δ": delta,
                    "sensitivity/cells": near.sensitivity / LINE.size,
                    "group": near.group_size(n),
                    "even guess": float(np.sqrt(even[3])),
                    "sorted, range 0.1": float(np.sqrt(found[3])),
                    "gain in squared error": float(base[3] / found[3]),
                    "gain at groups a thirtieth as large": float(base_small[3] / same[3]),
                    "1/δ": 1 / delta,
                    "1/δ²": 1 / delta**2,
                    "sf.plan": float(np.sqrt(other[3])),
                    "its mechanism": plan.mechanism.name,
                }
            )
    print(f"\nSorted points under δ-neighbourhood on a line, ε = {float(epsilon):g}, against replace-one")
    table(rows)
    return rows


def group_panel(lines, epsilon, runs, rng) -> list[dict]:
    """Error against the group size, the model's curve, and what the model's choice costs against hindsight."""
    rows = []
    for name, points in lines.items():
        for n in (1000, 10_000, None):
            samples = [counted(points, LINE, n, rng) for _ in range(1 if n is None else SAMPLES)]
            total = int(samples[0].sum())
            for policy, words in ((sf.bounded(LINE), "replace-one"), (sf.within(LINE, 0.01), "δ = 0.01")):
                chosen = sorted_points(policy, epsilon).group_size(total)
                curve = []
                for factor in (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0):
                    group = max(1, round(chosen * factor))
                    mechanism = sorted_points(policy, epsilon, group=group)
                    each = max(1, runs // len(samples))
                    tried = [errors(published(mechanism, x), x, LINE.shape, each, rng) for x in samples]
                    found = np.mean(tried, axis=0)
                    model = range_error(
                        SIZES,
                        records=total,
                        group=group,
                        epsilon=float(epsilon),
                        relative_sensitivity=mechanism.sensitivity / LINE.size,
                    )
                    curve.append((group, found, model))
                measured = np.array([found for _, found, _ in curve])
                roots = np.sqrt(measured).mean(axis=1)
                rows.append(
                    {
                        "data": name,
                        "n": total,
                        "policy": words,
                        "ε": float(epsilon),
                        "group": chosen,
                        "best group": curve[int(roots.argmin())][0],
                        "error": float(roots[4]),
                        "over the best": float(roots[4] / roots.min() - 1),
                        "in squared error": float(measured.mean(axis=1)[4] / measured.mean(axis=1).min() - 1),
                        "model/measured": float(np.sqrt(curve[4][2]).mean() / roots[4]),
                        "curve": [
                            {"group": g, "measured": np.sqrt(f).tolist(), "model": np.sqrt(m).tolist()}
                            for g, f, m in curve
                        ],
                    }
                )
    print(f"\nThe model's group size against the best one in hindsight, ε = {float(epsilon):g} (mean over range sizes)")
    table([{key: value for key, value in row.items() if key != "curve"} for row in rows])
    return rows


def boundary_panel(lines, grids, cubes, epsilons, runs, rng) -> list[dict]:
    """Sorted points over the best of the others, in root mean squared error of ranges of a tenth: below 1 they win. The
    others are the plan that looks at no data, adaptive grids, and an even spread of the records.
    """
    rows = []
    cases = [(LINE, "replace-one", sf.bounded(LINE), lines), (LINE, "δ = 0.01", sf.within(LINE, 0.01), lines)]
    fine = sf.Line(0, 1, cells=1 << 16)
    cases += [(fine, "replace-one", sf.bounded(fine), lines), (fine, "δ = 0.001", sf.within(fine, 0.001), lines)]
    cases += [(GRID, "replace-one", sf.bounded(GRID), grids), (GRID, "add/remove", sf.unbounded(GRID), grids)]
    cases += [(CUBE, "replace-one", sf.bounded(CUBE), cubes), (CUBE, "add/remove", sf.unbounded(CUBE), cubes)]
    for domain, words, policy, sets in cases:
        for epsilon in epsilons:
            plan = sf.plan(policy, _tenths(domain, rng), epsilon)
            for n in (100, 1000, 10_000, 50_000):
                found = {name: _tenth(policy, epsilon, points, n, runs, rng) for name, points in sets.items()}
                for name, row in found.items():
                    rows.append(
                        {"cells": "×".join(map(str, domain.shape)), "policy": words, "ε": float(epsilon), "n": n}
                        | {"data": name, **row, "plan": float(np.sqrt(plan.expected_error)), "it": plan.mechanism.name}
                    )
    print("\nThe boundary: root mean squared error of ranges of a tenth")
    table(rows)
    table(boundaries(rows))
    return rows


def _tenths(domain: sf.Domain, rng: np.random.Generator) -> sf.Workload:
    sides = np.array([max(1, round(0.1 ** (1 / domain.ndim) * n)) / n for n in domain.shape])
    low = np.floor(rng.random((400, domain.ndim)) * (1 - sides) * domain.shape) / domain.shape
    return sf.ranges(np.concatenate([low, low + sides], axis=1))


def _tenth(policy, epsilon, points, n, runs, rng) -> dict[str, float]:
    """What each has for ranges of a tenth."""
    domain = policy.domain
    x = counted(points, domain, n, rng)
    some, found = max(3, runs // 4), {}
    found["even guess"] = even_guess(x, domain.shape, rng)[3]
    found["sorted"] = errors(published(sorted_points(policy, epsilon), x), x, domain.shape, some, rng)[3]
    grids = build("adaptive-grid", policy, epsilon).informed(int(x.sum()))
    found["adaptive-grid"] = errors(published(grids, x), x, domain.shape, some, rng)[3]
    return {name: float(np.sqrt(error)) for name, error in found.items()}


def boundaries(rows: list[dict]) -> list[dict]:
    """For every policy and n·ε in how many cases sorted points win: against plans alone, and against everything."""
    found = []
    for key in dict.fromkeys((row["cells"], row["policy"]) for row in rows):
        shown = {"cells": key[0], "policy": key[1]}
        for low, high in ((1, 30), (30, 300), (300, 3000), (3000, 60_000)):
            there = [r for r in rows if (r["cells"], r["policy"]) == key and low <= r["n"] * r["ε"] < high]
            plans = sum(r["sorted"] < r["plan"] for r in there)
            all_others = sum(r["sorted"] < min(r["plan"], r["adaptive-grid"], r["even guess"]) for r in there)
            shown[f"n·ε from {low}"] = f"{plans} / {all_others} of {len(there)}"
        found.append(shown)
    return found


def median_panel(lines, epsilon, runs) -> list[dict]:
    """The median from the sorted release, which answers everything else too, against mechanisms for the median alone."""
    try:
        from sfumato.publishing.quantile import median
    except ImportError as error:
        print(f"\nMedian: skipped, {error}.")
        return []
    rng, rows = np.random.default_rng(3), []
    domain = sf.Line(0, 1, cells=1 << 16)
    for name, points in lines.items():
        for n in (100, 1000, 10_000, 40_000):
            sample = np.clip(points[rng.choice(len(points), n, replace=False)], 0, 1)
            truth = np.sort(sample)[(n + 1) // 2 - 1]
            mechanism = sorted_points(sf.bounded(domain), epsilon)
            x = counted(sample[:, None], domain, None, rng)
            ours = []
            for _ in range(runs):
                positions, records = mechanism.distribution(mechanism.draw(x, n, SOURCE), n)
                ours.append(np.interp(n / 2, records, positions) / domain.size - truth)
            row = {"data": name, "n": n, "ε": float(epsilon), "sorted": _root(ours)}
            for method, extra in (("smooth", {"slack": "1e-6"}), ("smooth-pure", {}), ("inverse", {}), ("laplace", {})):
                try:
                    off = [
                        median(sample, bounds=(0, 1), epsilon=epsilon, method=method, cells=1 << 16, **extra).value
                        - truth
                        for _ in range(max(5, runs // 4))
                    ]
                    row[method] = _root(off)
                except sf.SfumatoError as error:
                    print(f"median by {method!r} skipped: {error}")
                    row[method] = None
            rows.append(row)
    print(
        "\nMedian under replace-one: root mean squared error, as a share of the bounds ('smooth' is only (ε, 10⁻⁶)-private)"
    )
    table(rows)
    return rows


def _root(values) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def maps(grids, epsilon, rng) -> dict[str, np.ndarray]:
    """The first dataset of points, its sorted release, and an equi-width one, in the shape of the grid."""
    if not grids:
        return {}
    name, points = next(iter(grids.items()))
    x = counted(points, GRID, None, rng)
    _, width = best_equi_width(x, GRID.shape, epsilon, 4, rng)
    shown = {
        f"the data: {int(x.sum()):,} {name}": x,
        f"sorted points, ε = {float(epsilon):g}": published(sorted_points(sf.bounded(GRID), epsilon), x)(),
        f"equi-width at its best width ({width} cells), ε = {float(epsilon):g}": equi_width(
            x, GRID.shape, width, epsilon
        ),
    }
    return {title: counts.reshape(GRID.shape) for title, counts in shown.items()}


def pages(results: dict, page: Path) -> None:
    """The tables of the page: ranges of a tenth, the gain under δ, the boundary."""
    ways = ("even guess", "sorted", "adaptive-grid", "equi-width, best", "Privelet", "hierarchy")
    put(
        page,
        "ranges",
        [
            {name: row[name] for name in ("data", "n", "ε", *ways)}
            for row in results["ranges"]
            if row["range"] == 0.1 and row["ε"] < 1
        ],
    )
    put(
        page,
        "delta",
        [
            {name: row[name] for name in ("data", "δ", "even guess", "sorted, range 0.1", "sf.plan", "its mechanism")}
            for row in results["delta"]
        ],
    )
    put(page, "boundary", boundaries(results["boundary"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="eight runs, one ε")
    parser.add_argument("--only", default="", help="these panels alone, of ranges, delta, groups, boundary, median")
    parser.add_argument("--page", type=Path, default=None, help="write the tables into this page")
    parser.add_argument("--picture", type=Path, default=None, help="write maps and curves here")
    options = parser.parse_args()
    runs = 8 if options.quick else options.runs
    epsilons = [Fraction(1, 10)] if options.quick else [Fraction(1, 100), Fraction(1, 10), Fraction(1)]
    started = time.perf_counter()
    rng = np.random.default_rng(1)
    lines, grids, cubes = line_data(options.data), grid_data(options.data), cube_data(options.data)
    if not lines:
        raise SystemExit("nothing to measure: no data was found.")
    panels = {
        "ranges": lambda: range_panels(lines, grids, cubes, epsilons, runs, rng),
        "delta": lambda: delta_panel(lines, Fraction(1, 10), runs, rng),
        "groups": lambda: [row for epsilon in epsilons[-2:] for row in group_panel(lines, epsilon, runs, rng)],
        "boundary": lambda: boundary_panel(lines, grids, cubes, epsilons, runs, rng),
        "median": lambda: median_panel(lines, Fraction(1), runs),
    }
    path, chosen = OUT / "adaptive.json", options.only.split(",") if options.only else list(panels)
    results = json.loads(path.read_text(encoding="utf-8")) if options.only and path.exists() else {}
    for name in chosen:
        results[name] = panels[name]()
        path = write_json("adaptive", {**results, "runs": runs})
    if options.page is not None:
        pages(results, options.page)
    if options.picture is not None:
        picture(options.picture, results, maps(grids, Fraction(1), rng))
    print(f"\n{time.perf_counter() - started:.0f} seconds; written to {path}")


if __name__ == "__main__":
    main()
