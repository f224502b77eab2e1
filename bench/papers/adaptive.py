"""Adaptive histograms (Fang, Chang, PETS 2012; Figure 5 of Fang, Chang, ASIA CCS 2014) on real data, and where they lose.

Range queries on a line and on a grid by size, sorted points against an equi-width histogram at its best width (chosen
on the data, for this benchmark only: it is not private), Privelet (`haar`), our `hierarchy`, and under δ on the line
what `sf.plan` chooses; the error against the group size with the model's curve; the median; and the boundary of where
sorted points win. Every column of a table is ε-private under the policy that its table names, the best width aside.
Errors are root mean squared errors of the number of records in a range, over all places of the range and --runs runs.

    python bench/papers/adaptive.py                      # everything, from ../shared/data
    python bench/papers/adaptive.py --data FOLDER --quick --picture adaptive.png
"""

from __future__ import annotations

import argparse
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _adaptive_picture import picture
from _report import table, write_json

import sfumato as sf
from sfumato.mechanism import SummedArea, build
from sfumato.mechanism.points.sorted import sorted_points
from sfumato.mechanism.points.sorted_model import range_error
from sfumato.noise import DiscreteLaplace, SystemSource

SOURCE = SystemSource()
SIZES = (0.001, 0.01, 0.05, 0.1, 0.3)
SAMPLES = 8  # of fewer records than there are: where groups end between the heaps of one sample is luck
LINE = sf.Line(0, 1, cells=4096)
GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(256, 256))
NEW_YORK = (-74.006, 40.7128)


# ---------------------------------------------------------------------------------------------------------------- data


def read(data: Path, name: str, columns: list[str]) -> np.ndarray | None:
    import pyarrow.parquet as pq

    path = data / name
    if not path.exists():
        print(f"skipped: {name} is not in {data}. Give its folder with --data.")
        return None
    found = pq.read_table(path, columns=columns)
    return np.stack([found[column].to_numpy().astype(float) for column in columns], axis=-1)


def line_data(data: Path) -> dict[str, np.ndarray]:
    """Values in [0, 1]; the bounds are round public figures."""
    found = {}
    tweets = read(data, "twitter_hashtags_us_68k.parquet", ["lon", "lat"])
    if tweets is not None:
        lon, lat = np.radians(tweets.T)
        lon0, lat0 = np.radians(NEW_YORK)
        half = np.sin((lat - lat0) / 2) ** 2 + np.cos(lat) * np.cos(lat0) * np.sin((lon - lon0) / 2) ** 2
        found["distance to New York"] = 2 * 6371 * np.arcsin(np.sqrt(half)) / 5000
    prices = read(data, "airbnb_nyc_2019.parquet", ["price_usd"])
    if prices is not None:
        found["prices"] = prices[:, 0] / 1000
    wages = read(data, "us_cps_tax_units.parquet", ["wages"])
    if wages is not None:
        found["wages"] = wages[:, 0] / 200_000
    return found


def grid_data(data: Path) -> dict[str, np.ndarray]:
    """Points in the unit square."""
    boxes = {
        "twitter_hashtags_us_68k.parquet": ("tweets", (-126, 20, -63, 51)),
        "foursquare_nyc_checkins.parquet": ("check-ins", (-74.3, 40.5, -73.65, 41.0)),
    }
    found = {}
    for file, (name, (x0, y0, x1, y1)) in boxes.items():
        points = read(data, file, ["lon", "lat"])
        if points is not None:
            found[name] = (points - [x0, y0]) / [x1 - x0, y1 - y0]
    return found


def counted(points: np.ndarray, domain: sf.Domain, n: int | None, rng: np.random.Generator) -> np.ndarray:
    """Flat counts of all points, or of n of them."""
    chosen = points if n is None or n >= len(points) else points[rng.choice(len(points), n, replace=False)]
    shape = np.array(domain.shape)
    cells = np.clip((chosen.reshape(len(chosen), -1) * shape).astype(int), 0, shape - 1)
    return np.bincount(np.ravel_multi_index(tuple(cells.T), domain.shape), minlength=domain.size)


# -------------------------------------------------------------------------------------------------------------- errors


def range_squares(off: np.ndarray, size: float, rng: np.random.Generator) -> float:
    """The mean squared error of ranges (squares) that hold a share of the domain."""
    d = off.ndim
    sides = [max(1, round(size ** (1 / d) * n)) for n in off.shape]
    if d == 1:
        below = np.concatenate([[0.0], np.cumsum(off)])
        return float(((below[sides[0] :] - below[: -sides[0]]) ** 2).mean())
    low = np.stack([rng.integers(0, n - side + 1, 4000) for n, side in zip(off.shape, sides, strict=True)], axis=-1)
    return float((SummedArea(off).fractional_sums(low.astype(float), low + np.array(sides, float)) ** 2).mean())


def errors(run, x: np.ndarray, shape: tuple[int, ...], runs: int, rng: np.random.Generator) -> np.ndarray:
    """Mean squared errors by range size, averaged over the runs."""
    found = np.zeros(len(SIZES))
    for _ in range(runs):
        off = (run() - x).reshape(shape)
        found += [range_squares(off, size, rng) / runs for size in SIZES]
    return found


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
    columns = {
        "sorted": errors(published(ours, x), x, domain.shape, runs, rng),
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


def range_panels(lines, grids, epsilons, runs, rng) -> list[dict]:
    rows = []
    for domain, sets in ((LINE, lines), (GRID, grids)):
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


def boundary_panel(lines, grids, epsilons, runs, rng) -> list[dict]:
    """Sorted points, measured, over the best of the others, in expected root mean squared error: below 1 they win."""
    rows = []
    cases = [(LINE, "replace-one", sf.bounded(LINE), lines), (LINE, "δ = 0.01", sf.within(LINE, 0.01), lines)]
    fine = sf.Line(0, 1, cells=1 << 16)
    cases += [(fine, "replace-one", sf.bounded(fine), lines), (fine, "δ = 0.001", sf.within(fine, 0.001), lines)]
    cases += [(GRID, "replace-one", sf.bounded(GRID), grids), (GRID, "add/remove", sf.unbounded(GRID), grids)]
    for domain, words, policy, sets in cases:
        for epsilon in epsilons:
            others = {}
            for size in SIZES:
                sides = [max(1, round(size ** (1 / domain.ndim) * n)) / n for n in domain.shape]
                low = rng.random((400, domain.ndim)) * (1 - np.array(sides))
                low = np.floor(low * domain.shape) / domain.shape
                asked = sf.ranges(np.concatenate([low, low + sides], axis=1))
                plan = sf.plan(policy, asked, epsilon)
                others[size] = (plan.expected_error, plan.mechanism.name)
            for n in (100, 1000, 10_000, 50_000):
                found = []
                for points in sets.values():
                    x = counted(points, domain, n, rng)
                    found.append(
                        errors(published(sorted_points(policy, epsilon), x), x, domain.shape, max(3, runs // 4), rng)
                    )
                squares = np.mean(found, axis=0)
                row = {"cells": "×".join(map(str, domain.shape)), "policy": words, "ε": float(epsilon), "n": n}
                for i, size in enumerate(SIZES):
                    row[f"range {size:g}"] = float(np.sqrt(squares[i] / others[size][0]))
                row["against"] = "/".join(dict.fromkeys(name for _, name in others.values()))
                rows.append(row)
    print("\nThe boundary: error of sorted points over that of the best plan without them; below 1 sorted points win")
    table(rows)
    return rows


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="eight runs, one ε")
    parser.add_argument("--picture", type=Path, default=None, help="write maps and curves here")
    options = parser.parse_args()
    runs = 8 if options.quick else options.runs
    epsilons = [Fraction(1, 10)] if options.quick else [Fraction(1, 100), Fraction(1, 10), Fraction(1)]
    started = time.perf_counter()
    rng = np.random.default_rng(1)
    lines, grids = line_data(options.data), grid_data(options.data)
    if not lines:
        raise SystemExit("nothing to measure: no data was found.")
    results = {
        "ranges": range_panels(lines, grids, epsilons, runs, rng),
        "delta": delta_panel(lines, Fraction(1, 10), runs, rng),
        "groups": [row for epsilon in epsilons[-2:] for row in group_panel(lines, epsilon, runs, rng)],
        "boundary": boundary_panel(lines, grids, epsilons, runs, rng),
        "median": median_panel(lines, Fraction(1), runs),
    }
    path = write_json("adaptive", {"runs": runs, **results})
    if options.picture is not None:
        picture(options.picture, results, maps(grids, Fraction(1), rng))
    print(f"\n{time.perf_counter() - started:.0f} seconds; written to {path}")


if __name__ == "__main__":
    main()
