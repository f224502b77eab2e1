"""Fit the error model of the `sorted` mechanism to synthetic points, once; what it prints is what the package ships.

Points of six kinds in one, two and three dimensions (even, one hill, many hills, a long tail, heaps, a mixture of all)
are published at many n, ε, sensitivities and group sizes. The logarithm of the mean squared error of ranges of four
sizes is fitted by least squares with a soft loss. No real data is used, so the constants are public.

    python bench/calibrate_sorted.py            # print the constants and how well they fit
    python bench/calibrate_sorted.py --write    # and put them into src/sfumato/mechanism/points/sorted_model.py
"""

from __future__ import annotations

import argparse
import re
import time
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
from _report import table, write_json
from scipy.optimize import least_squares

import sfumato as sf
from sfumato.mechanism import SummedArea
from sfumato.mechanism.points.sorted import sorted_points
from sfumato.noise import SeededSource

SHAPES = {1: (4096,), 2: (128, 128), 3: (32, 32, 32)}
VOLUMES = (0.003, 0.02, 0.1, 0.3)
FACTORS = (0.7, 1.5, 2.5, 4.0, 7.0)  # group sizes, in units of the square root of the noise of one record in ranks
MODEL = Path(__file__).parents[1] / "src" / "sfumato" / "mechanism" / "sorted_model.py"


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


def write(constants: dict[str, float]) -> None:
    """Put the constants into the module that ships them."""
    text = MODEL.read_text(encoding="utf-8")
    text = re.sub(r"# Fitted on \S+", f"# Fitted on {datetime.now(UTC).date()}", text)
    for name in ("GENERALISATION", "NOISE", "EXPONENT", "CUT"):
        text = re.sub(rf"^{name} = \S+", f"{name} = {constants[name]:.3g}", text, flags=re.MULTILINE)
    border = f"BORDER = {{1: 2.0, 2: {constants['TWO']:.3g}, 3: {constants['THREE']:.3g}}}"
    MODEL.write_text(re.sub(r"^BORDER = \{.*?\}", border, text, flags=re.MULTILINE), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three runs of each setting instead of eight")
    parser.add_argument("--write", action="store_true", help="put the constants into the package")
    options = parser.parse_args()
    started = time.perf_counter()
    rows = observations(options.quick)
    constants = fit(rows)
    for name, value in constants.items():
        print(f"{name} = {value:.3g}")
    if options.write:
        write(constants)
        print(f"written to {MODEL}")
    path = write_json("calibrate_sorted", {"constants": constants, "rows": rows})
    print(f"{time.perf_counter() - started:.0f} seconds; written to {path}")


if __name__ == "__main__":
    main()
