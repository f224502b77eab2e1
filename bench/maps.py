"""Maps that follow the data: adaptive grids and quadtrees beside UGrid, AGrid, PrivTree, HTF and DAWA, on real points.

Mean squared errors of ranges on 256 × 256 cells, times ε², by size of the range, over --runs releases and 4,000 random
ranges of each size, the same for all. Two relations, each the same for all: add/remove, and moves of less than four
cells. What was published for add/remove is private under moves at half of ε, as every change of a record is two.

`_published` has what was published, with floating-point Laplace noise and the number of records for free; its DAWA is
not private at all at the ε it is given. "plan" is what `sf.plan` takes without looking at any data. "scales" is the
error of `sf.scales()`, every scale weighed alike; "least told" that of whoever knows the number of records alone.

    python bench/maps.py [--data FOLDER] [--runs 2] [--markdown docs/maps.md] [--quick]    --quick: two maps, ε = 1
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from _maps import MAPS, boxes, counted, grid, sums
from _maps_page import write
from _published import agrid, htf, privtree, published_map, ugrid
from _report import table, write_json

import sfumato as sf
from sfumato.mechanism import build
from sfumato.noise import SystemSource
from sfumato.release.nonnegative import non_negative

SIDE, DELTA = 256, 4
EPSILONS = ("1/100", "1/10", "1")
SIZES: dict[str, int | None] = {"all ranges": None, "side 16": 16, "side 4": 4}
SOURCE = SystemSource()
Released = Callable[[], np.ndarray]
SLOW = "DAWA"  # takes seconds, and is run once
OURS = ("adaptive-grid", "quadtree")


def people(data: Path, name: str) -> np.ndarray:
    """Counts of one of the maps: points with longitudes and latitudes, a map of the DPBench study, or a flat."""
    if name == "tweets":
        return np.load(data / "dpbench" / "twitter.npy").astype(np.int64)
    if name == "activity":
        import pyarrow.parquet as pq

        found = pq.read_table(data / "uci_person_activity_first10pct.parquet")
        metres = [found[axis].to_numpy() for axis in ("x", "y")]
        cells = [np.clip((m - low) / 6 * SIDE, 0, SIDE - 1).astype(int) for m, low in zip(metres, (0, -1), strict=True)]
        return np.bincount(cells[0] * SIDE + cells[1], minlength=SIDE * SIDE).astype(np.int64).reshape(SIDE, SIDE)
    return counted(data, name, SIDE)


def shared_out(estimates: np.ndarray, total: int | None) -> np.ndarray:
    """What `release.nonnegative()` makes of them."""
    known = None if total is None else np.array(total)
    return non_negative(estimates.reshape(SIDE, SIDE), grid(SIDE), known)


def under(relation: str) -> sf.Policy:
    """The policy of all ways."""
    moves = relation == "moves"
    return sf.within(grid(SIDE), Fraction(2 * DELTA - 1, 2 * SIDE)) if moves else sf.unbounded(grid(SIDE))


def plan_of(relation: str, epsilon: Fraction) -> sf.Plan:
    """What is planned without data."""
    return sf.plan(under(relation), sf.ranges(), epsilon)


def rivals(relation: str, epsilon: Fraction, counts: np.ndarray, rng: np.random.Generator) -> dict[str, Released]:
    """Everything that is compared."""
    policy, share = under(relation), float(epsilon / 2 if relation == "moves" else epsilon)
    records = int(counts.sum())
    total = records if policy.total_is_public else None
    chosen = plan_of(relation, epsilon).mechanism
    made = {name: build(name, policy, epsilon).informed(records) for name in OURS}
    runs: dict[str, Released] = {
        name: lambda one=one: one.run(counts.ravel(), total, SOURCE).reshape(counts.shape)
        for name, one in {"plan": chosen, **made}.items()
    }
    return {
        "least told": lambda: np.full(counts.shape, records / counts.size),
        "UGrid": lambda: ugrid(counts, share, rng),
        "AGrid": lambda: agrid(counts, share, rng),
        "PrivTree": lambda: privtree(counts, share, rng),
        "HTF": lambda: htf(counts, share, rng),
        "DAWA": lambda: published_map(counts, share, rng),
        **runs,
        **{f"{name}, non-negative": lambda name=name: shared_out(runs[name](), total) for name in OURS},
    }


def measure(name: str, data: Path, relation: str, epsilon: str, runs: int) -> list[dict[str, object]]:
    """One map under one relation at one ε."""
    counts, rng, exact = people(data, name), np.random.default_rng(2), Fraction(epsilon)
    asked = {size: boxes(SIDE, side, 4000, rng) for size, side in SIZES.items()}
    rows, scales, domain = [], sf.scales(), grid(SIDE)
    for way, released in rivals(relation, exact, counts, rng).items():
        errors = dict.fromkeys([*SIZES, "scales"], 0.0)
        times = 1 if way in (SLOW, "least told") else runs
        for _ in range(times):
            found = released()
            for size, ranges in asked.items():
                errors[size] += float(((sums(found, ranges) - sums(counts, ranges)) ** 2).mean())
            errors["scales"] += float(scales.mean_square(found - counts, domain))
        told = {size: error * float(exact) ** 2 / times for size, error in errors.items()}
        rows.append({"relation": relation, "data": name, "epsilon": epsilon, "way": way, **told})
    return rows


def planned(relation: str, epsilon: str) -> dict[str, object]:
    """What a plan takes."""
    return {"relation": relation, "epsilon": epsilon, "takes": plan_of(relation, Fraction(epsilon)).mechanism.name}


def calibration(data: Path, names: tuple[str, ...]) -> list[dict[str, object]]:
    """How the errors that plans tell from the number of records alone compare to those of real maps: their ratio."""
    rows = []
    for name in names:
        counts = people(data, name)
        for relation in ("add/remove", "moves"):
            for epsilon in EPSILONS:
                for way in OURS:
                    told = build(way, under(relation), Fraction(epsilon)).informed(int(counts.sum()))
                    total = int(counts.sum()) if relation == "moves" else None
                    ratios = {}
                    for said, asked in (("ranges", sf.ranges()), ("scales", sf.scales())):
                        off = told.run(counts.ravel(), total, SOURCE).reshape(counts.shape) - counts
                        model = told.modelled_error(asked, int(counts.sum()))
                        ratios[said] = float(asked.mean_square(off, grid(SIDE))) / model
                    rows.append({"relation": relation, "data": name, "epsilon": epsilon, "way": way, **ratios})
    return rows


def main() -> None:
    """All maps, as a table and as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--markdown", type=Path, default=None, help="write the tables of the documentation's page here")
    options = parser.parse_args()
    every = (*MAPS, "tweets", "activity")
    names, epsilons = (("thefts", "uber"), ("1",)) if options.quick else (every, EPSILONS)
    rows: list[dict[str, object]] = []
    for relation in ("moves", "add/remove"):
        for name in names:
            for epsilon in epsilons:
                rows += measure(name, options.data, relation, epsilon, options.runs)
                table(rows[-len(OURS) - 8 :])
    models = [] if options.quick else calibration(options.data, names)
    table(models)
    plans = [planned(relation, epsilon) for relation in ("moves", "add/remove") for epsilon in epsilons]
    if options.markdown is not None:
        write(options.markdown, rows, models, plans)
    print(f"\nwritten to {write_json('maps', {'rows': rows, 'model': models, 'plans': plans})}")


if __name__ == "__main__":
    main()
