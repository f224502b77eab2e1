"""Fit the error model of the `sorted` mechanism, once; what it prints is what the package ships.

1. **Noise and grouping** are fitted to synthetic points of six kinds in one, two and three dimensions (even, one hill,
   many hills, a long tail, heaps, a mixture of all), published at many n, ε, sensitivities and group sizes: the
   logarithm of the mean squared error of ranges of four sizes, by least squares with a soft loss.
2. **The border** of boxes in two and three dimensions is fitted to *real* points, since real records are heaped up in a
   way that synthetic ones are not: the mean over datasets of measured over modelled errors. Four maps and three spaces
   are fitted, three lines, four maps and three spaces are tested on; all of them are public.
3. **The choice**: on those that were not fitted, what `sf.plan(…, records=n)` takes, and what it has beside the best
   plan without sorted points.

    python bench/calibrate_sorted.py --data ../shared/data            # 2 and 3, as 1 is written in the package
    python bench/calibrate_sorted.py --data ../shared/data --write    # and put the borders into the package
    python bench/calibrate_sorted.py --noise [--write]                # 1
"""

from __future__ import annotations

import argparse
import re
import time
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
from _report import put, table, write_json
from _spaces import FITTED, TESTED, counted
from _spaces import points as real_points
from scipy.optimize import least_squares

import sfumato as sf
from sfumato.mechanism import SummedArea, build
from sfumato.mechanism.points.sorted import sorted_points
from sfumato.mechanism.points.sorted_model import BORDER, range_error
from sfumato.noise import SeededSource
from sfumato.planning.rehearsal import rehearsed_error

SHAPES = {1: (4096,), 2: (128, 128), 3: (32, 32, 32)}
VOLUMES = (0.003, 0.02, 0.1, 0.3)
FACTORS = (0.7, 1.5, 2.5, 4.0, 7.0)  # group sizes, in units of the square root of the noise of one record in ranks
MODEL = Path(__file__).parents[1] / "src" / "sfumato" / "mechanism" / "points" / "sorted_model.py"


def points(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """n synthetic points in the unit cube."""
    if kind == "even":
        found = rng.random((n, d))
    elif kind == "hill":
        found = rng.normal(0.45, 0.12, (n, d))
    elif kind == "hills":
        centres, widths = rng.random((12, d)), 10 ** rng.uniform(-2.5, -1, 12)
        of = rng.integers(0, 12, n)
        found = centres[of] + rng.normal(0, 1, (n, d)) * widths[of, None]
    elif kind == "tail":
        found = rng.lognormal(-2.3, 0.9, (n, d))
    elif kind == "heaps":
        heaps, weights = rng.random((60, d)), rng.pareto(1.2, 60)
        found = heaps[rng.choice(60, n, p=weights / weights.sum())]
        found = np.where(rng.random((n, 1)) < 0.5, found, rng.random((n, d)))
    else:
        parts = [points(each, n, d, rng) for each in ("even", "hill", "hills", "tail", "heaps")]
        found = np.stack(parts)[rng.integers(0, 5, n), np.arange(n)]
    return np.clip(found, 0, 1)


KINDS = ("even", "hill", "hills", "tail", "heaps", "mixed")


def boxes(volume: float, shape: tuple[int, ...], count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Cubes of one volume at random places, in cell coordinates."""
    sides = np.maximum(1, np.rint(volume ** (1 / len(shape)) * np.array(shape)))
    low = rng.integers(0, np.array(shape) - sides + 1, (count, len(shape)))
    return low.astype(float), low + sides


def observations(quick: bool) -> list[dict]:
    """One row for every setting and range size."""
    rng = np.random.default_rng(12)
    rows: list[dict] = []
    runs = 3 if quick else 8
    for d, shape in SHAPES.items():
        domain = sf.Line(0, 1, cells=shape[0]) if d == 1 else sf.Grid(bounds=(0,) * d + (1,) * d, shape=shape)
        policies = [sf.bounded(domain)] + ([sf.within(domain, 0.03)] if d == 1 else [])
        for kind in KINDS:
            for n in (500, 5_000, 50_000):
                cells = np.minimum((points(kind, n, d, rng) * shape).astype(int), np.array(shape) - 1)
                x = np.bincount(np.ravel_multi_index(tuple(cells.T), shape), minlength=domain.size)
                for policy in policies:
                    for epsilon in (Fraction(1, 20), Fraction(1, 2)):
                        rows += _measured(policy, x, epsilon, runs, rng, kind)
    return rows


def _measured(
    policy: sf.Policy, x: np.ndarray, epsilon: Fraction, runs: int, rng: np.random.Generator, kind: str
) -> list[dict]:
    shape, n, rows = policy.domain.shape, int(x.sum()), []
    share = float(sorted_points(policy, epsilon).sensitivity) / policy.domain.size
    for factor in FACTORS:
        group = round(factor * np.sqrt(n * share / float(epsilon)))
        if not 1 <= group <= n / 3:
            continue
        mechanism = sorted_points(policy, epsilon, group=group)
        errors = np.zeros(len(VOLUMES))
        for _ in range(runs):
            off = mechanism.run(x, n, SeededSource(int(rng.integers(2**62)))) - x
            area = SummedArea(off.reshape(shape))
            errors += [float((area.fractional_sums(*boxes(v, shape, 1000, rng)) ** 2).mean()) / runs for v in VOLUMES]
        for volume, error in zip(VOLUMES, errors, strict=True):
            rows.append(
                {"kind": kind, "d": len(shape), "n": n, "epsilon": float(epsilon), "share": share, "group": group,
                 "volume": volume, "error": error}
            )  # fmt: skip
    return rows


def fit(rows: list[dict]) -> dict[str, float]:
    """γ, a, p, the cut, and the border of two and three dimensions, from the logarithms of the errors."""
    names = ("n", "epsilon", "share", "group", "volume", "d", "error")
    n, epsilon, share, group, volume, d, error = (np.array([row[name] for row in rows], float) for name in names)
    ranks = n * share / epsilon

    def residuals(theta: np.ndarray) -> np.ndarray:
        gamma, a, p, cut, two, three = np.exp(theta)
        square = group**2 * (gamma + a * (ranks / group**2) ** p)
        pieces = volume * n / np.sqrt(square)
        border = np.select([d == 1, d == 2], [2.0, two], three)
        return np.log(square * border * pieces ** ((d - 1) / d) * pieces / (pieces + cut)) - np.log(error + 1e-9)

    found = least_squares(residuals, np.log([0.05, 0.6, 1.5, 1.0, 4.0, 6.0]), loss="soft_l1")
    off = residuals(found.x)
    names = ("GENERALISATION", "NOISE", "EXPONENT", "CUT", "TWO", "THREE")
    result = dict(zip(names, np.exp(found.x).tolist(), strict=True))
    print(f"{len(rows)} settings; the model is off by a factor of {np.exp(np.median(np.abs(off))):.2f} in the median")
    table([
        {"d": each, "kind": kind, "median of model/measured": float(np.exp(np.median(off[(d == each) & of])))}
        for each in SHAPES
        for kind in KINDS
        for of in [np.array([row["kind"] == kind for row in rows])]
    ])  # fmt: skip
    return result


def spaces(data: Path, kinds: dict, runs: int) -> list[dict]:
    """One row for every real dataset, number of records, ε and range size: measured, modelled, and the data-free guess
    that spreads the records evenly.
    """
    rng, rows = np.random.default_rng(5), []
    for d, sets in kinds.items():
        shape = SHAPES[d]
        policy = sf.bounded(_domain(d))
        for name, space in sets.items():
            places = real_points(data, space)
            for n in sorted({min(len(places), 1000), min(len(places), 10_000), len(places)}):
                x = counted(places, shape, n, rng)
                asked = {v: boxes(v, shape, 1500, rng) for v in VOLUMES}
                guess = _squares(x - n / x.size, asked)
                for epsilon in (Fraction(1, 100), Fraction(1, 10), Fraction(1)):
                    mechanism = sorted_points(policy, epsilon)
                    found = np.mean([_squares(_off(mechanism, x, n, rng), asked) for _ in range(runs)], axis=0)
                    modelled = range_error(
                        VOLUMES,
                        records=n,
                        group=mechanism.group_size(n),
                        epsilon=1.0,
                        relative_sensitivity=mechanism.relative_scale,
                        dimensions=d,
                    )
                    for each in zip(VOLUMES, found, modelled, guess, strict=True):
                        row = dict(zip(("volume", "error", "model", "guess"), map(float, each), strict=True))
                        rows.append({"d": d, "data": name, "n": n, "epsilon": float(epsilon)} | row)
    return rows


def _domain(d: int) -> sf.Domain:
    return sf.Line(0, 1, cells=SHAPES[1][0]) if d == 1 else sf.Grid(bounds=(0,) * d + (1,) * d, shape=SHAPES[d])


def _off(mechanism, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return mechanism.run(x.ravel(), n, SeededSource(int(rng.integers(2**62)))).reshape(x.shape) - x


def _squares(off: np.ndarray, asked: dict) -> list[float]:
    area = SummedArea(off)
    return [float((area.fractional_sums(*each) ** 2).mean()) for each in asked.values()]


def factors(rows: list[dict], name: str) -> np.ndarray:
    """Measured over modelled errors of one dataset."""
    return np.array([row["error"] / row["model"] for row in rows if row["data"] == name])


def borders(rows: list[dict]) -> dict[int, float]:
    """What makes the model the mean of what the datasets had: their middles weigh alike."""
    found = {1: BORDER[1]}  # a range has two ends
    for d in (2, 3):
        there = [row for row in rows if row["d"] == d]
        middles = [np.exp(np.log(factors(there, name)).mean()) for name in dict.fromkeys(row["data"] for row in there)]
        found[d] = BORDER[d] * float(np.mean(middles))
    return found


def fits(rows: list[dict], now: dict[int, float]) -> list[dict]:
    """For every dataset measured over modelled errors with new borders, and how often the even guess was as good."""
    found = []
    for d in SHAPES:
        there = [row for row in rows if row["d"] == d]
        for name in dict.fromkeys(row["data"] for row in there):
            ratio = factors(there, name) * BORDER[d] / now[d]
            worse = np.mean([row["error"] >= row["guess"] for row in there if row["data"] == name])
            found.append(
                {
                    "data": name,
                    "dimensions": d,
                    "fitted": "yes" if name in FITTED.get(d, {}) else "no",
                    "measured / modelled": float(np.exp(np.log(ratio).mean())),
                    "least": float(ratio.min()),
                    "most": float(ratio.max()),
                    "no better than even": f"{worse:.0%}",
                }
            )
    return found


def choices(data: Path) -> list[dict]:
    """What a number of records chooses on datasets that nothing was fitted to, over all ranges, rehearsed on them."""
    rng, rows = np.random.default_rng(7), []
    for d, sets in TESTED.items():
        shape = SHAPES[d]
        grid = _domain(d)
        relations = {"replace-one": sf.bounded(grid), "add/remove": sf.unbounded(grid)}
        if d == 1:
            relations |= {f"δ = {delta:g}": sf.within(grid, delta) for delta in (0.01, 0.1)}
        for name, space in sets.items():
            places = real_points(data, space)
            for n in sorted({min(len(places), 1000), min(len(places), 10_000), len(places)}):
                x = counted(places, shape, n, rng)
                even = sf.ranges().mean_square(x - n / x.size, grid)
                for relation, policy in relations.items():
                    for epsilon in (Fraction(1, 100), Fraction(1, 10), Fraction(1)):
                        plan = sf.plan(policy, sf.ranges(), epsilon, records=n)
                        others = [a for a in plan.alternatives if a.error is not None and a.name != "sorted"]
                        other = min(others, key=lambda a: a.error)
                        kept = {b.name: b for b in (plan.mechanism, build("sorted", policy, epsilon))}
                        measured = {k: rehearsed_error(b, x, sf.ranges()) for k, b in kept.items()}
                        if other.name not in measured:
                            forced = sf.plan(policy, sf.ranges(), epsilon, mechanism=other.name, like=x, records=n)
                            measured[other.name] = forced.expected_error
                        rows.append(
                            {
                                "data": name,
                                "dimensions": d,
                                "n": n,
                                "relation": relation,
                                "ε": float(epsilon),
                                "chosen": plan.mechanism.name,
                                "modelled": plan.expected_error,
                                "its error": measured[plan.mechanism.name],
                                "sorted": measured["sorted"],
                                "best other": other.name,
                                "other's error": measured[other.name],
                                "even guess": even,
                            }
                        )
    return rows


def summary(rows: list[dict]) -> list[dict]:
    """By dimensions: how often sorted points are chosen, how often rightly, and what it costs where not."""
    found = []
    for d in SHAPES:
        there = [row for row in rows if row["dimensions"] == d]
        taken = [row for row in there if row["chosen"] == "sorted"]
        lost = [row["its error"] / row["other's error"] for row in taken if row["its error"] > row["other's error"]]
        missed = [
            row["other's error"] / row["sorted"]
            for row in there
            if row["chosen"] != "sorted" and row["sorted"] < row["other's error"]
        ]
        found.append(
            {
                "dimensions": d,
                "cases": len(there),
                "sorted chosen": len(taken),
                "of these worse": len(lost),
                "at most times": max(lost, default=1.0),
                "not chosen though better": len(missed),
                "by at most": max(missed, default=1.0),
                "no better than even": sum(row["its error"] >= row["even guess"] for row in there),
            }
        )
    return found


def write(constants: dict[str, float]) -> None:
    """Put constants into the module that ships them."""
    text = MODEL.read_text(encoding="utf-8")
    text = re.sub(r"# Fitted on \S+", f"# Fitted on {datetime.now(UTC).date()}", text)
    for name in ("GENERALISATION", "NOISE", "EXPONENT", "CUT"):
        if name in constants:
            text = re.sub(rf"^{name} = \S+", f"{name} = {constants[name]:.3g}", text, flags=re.MULTILINE)
    if "TWO" in constants:
        border = f"BORDER = {{1: 2.0, 2: {constants['TWO']:.3g}, 3: {constants['THREE']:.3g}}}"
        text = re.sub(r"^BORDER = \{.*?\}", border, text, flags=re.MULTILINE)
    MODEL.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--noise", action="store_true", help="fit noise and grouping, on synthetic points")
    parser.add_argument("--quick", action="store_true", help="fewer runs of each setting")
    parser.add_argument("--write", action="store_true", help="put the constants into the package")
    parser.add_argument("--page", type=Path, help="write the tables into this page")
    options = parser.parse_args()
    started = time.perf_counter()
    if options.noise:
        rows = observations(options.quick)
        constants = {name: value for name, value in fit(rows).items() if name not in ("TWO", "THREE")}
        found: dict[str, object] = {"constants": constants, "rows": rows}
    else:
        runs = 1 if options.quick else 4
        fitted, tested = spaces(options.data, FITTED, runs), spaces(options.data, TESTED, runs)
        now = borders(fitted)
        constants = {"TWO": now[2], "THREE": now[3]}
        shown = fits(fitted + tested, now)
        table(shown)
        chosen = choices(options.data)
        table(chosen)
        table(summary(chosen))
        found = {"constants": constants, "fits": shown, "choices": chosen, "summary": summary(chosen)}
        if options.page is not None:
            put(options.page, "fits", shown)
            put(options.page, "choices", summary(chosen))
    for name, value in constants.items():
        print(f"{name} = {value:.3g}")
    if options.write:
        write(constants)
        print(f"written to {MODEL}: run again, to see what it chooses")
    path = write_json("calibrate_sorted_noise" if options.noise else "calibrate_sorted", found)
    print(f"{time.perf_counter() - started:.0f} seconds; written to {path}")


if __name__ == "__main__":
    main()
