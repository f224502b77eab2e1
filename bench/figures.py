"""How often do intervals of rates, changes and figures that are shown hold the truth? On real groups, small ones too.

- **Rates**: private rooms among all listings of a neighbourhood (Airbnb, New York 2019, 221 neighbourhoods, half of
  them with fewer than 30 listings), with private totals and with public ones. Beside them what is usually done: the
  ratio of the estimates, give or take 1.96 standard errors by the delta method; where the estimated denominator is not
  above zero it has no upper end.
- **Changes**: vehicle thefts by cell of a grid, the later half of the years against the earlier, in per cent.
- **Suppression**: listings of neighbourhoods and kinds of room that are at least 10, or 50; intervals given that they
  are shown, beside the plain intervals of the same figures; over all that are shown, and over those that are below the
  threshold in truth. Of those that are empty in truth how many were shown, and the bound on that.

"width" is the median of the finite ones, "open" the share without an upper end.

    python bench/figures.py [--data ../shared/data] [--releases 40]

The noise is seeded: nothing here is a release.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from _report import table, write_json

import sfumato as sf

ROOMS = ["Entire home/apt", "Private room", "Shared room"]
EPSILONS = (0.1, 1.0)


def listings(folder: Path) -> tuple[sf.Domain, np.ndarray]:
    """Listings by neighbourhood and kind of room."""
    rows = pq.read_table(folder / "airbnb_nyc_2019.parquet", columns=["neighbourhood", "room_type"])
    names, kinds = (rows[name].to_pylist() for name in ("neighbourhood", "room_type"))
    places = sorted(set(names))
    counts = np.zeros((len(places), len(ROOMS)), int)
    np.add.at(counts, ([places.index(name) for name in names], [ROOMS.index(kind) for kind in kinds]), 1)
    return sf.Categories(places, name="place") * sf.Categories(ROOMS, name="room"), counts


def thefts(folder: Path) -> tuple[sf.Domain, np.ndarray, np.ndarray]:
    """Thefts on a grid in the earlier and the later half of the years."""
    rows = pq.read_table(folder / "nyc_vehicle_thefts.parquet")
    lon, lat, t = (rows[name].to_numpy() for name in ("lon", "lat", "t"))
    grid = sf.Grid(bounds=(-74.27, 40.49, -73.68, 40.92), shape=(16, 12))
    late = t >= np.sort(t)[len(t) // 2]
    edges = [np.linspace(-74.27, -73.68, 17), np.linspace(40.49, 40.92, 13)]
    halves = [np.histogram2d(lon[part], lat[part], edges)[0].astype(int) for part in (~late, late)]
    return grid, halves[0], halves[1]


def scored(low: Any, high: Any, truth: Any) -> dict[str, float]:
    """How often intervals hold, how wide they are, and how many have no upper end."""
    low, high = np.asarray(low), np.asarray(high)
    finite = np.isfinite(high)
    return {
        "groups": len(low),
        "held": round(100 * float(((low <= truth) & (truth <= high)).mean()), 2),
        "width": round(float(np.median((high - low)[finite])), 4) if finite.any() else float("nan"),
        "open": round(100 * float((~finite).mean()), 1),
    }


def by_delta_method(release: sf.Release) -> tuple[np.ndarray, np.ndarray]:
    """What is usually done, with the standard errors that the release tells."""
    cases, everyone = release.answer(room="Private room", by="place"), release.answer(by="place")
    a, b = np.asarray(cases.value), np.asarray(everyone.value)
    sa, sb = np.asarray(cases.stderr), np.asarray(everyone.stderr)
    with np.errstate(all="ignore"):
        r = a / b
        # Of independent noise on cells cov(a, b) = var(a).
        margin = 1.96 * np.sqrt(np.maximum(sa**2 * (1 - 2 * r) + r**2 * sb**2, 0)) / b
    usable = b > 0
    return np.where(usable, r - margin, 0.0), np.where(usable, r + margin, np.inf)


def rates(folder: Path, releases: int) -> list[dict[str, Any]]:
    """Private rooms among all listings."""
    space, counts = listings(folder)
    truth = counts[:, 1] / counts.sum(axis=1)
    policies = {
        "private totals": sf.unbounded(space),
        "public totals": sf.policy(space, hide=sf.change("room"), public=["place"]),
    }
    rows = []
    for epsilon in EPSILONS:
        for name, policy in policies.items():
            plan = sf.plan(policy, sf.histogram(), epsilon=epsilon)
            found, usual = [], []
            for seed in range(releases):
                release = plan.publish(counts, source=sf.SeededSource(seed))
                rate = release.rate(case="Private room", by="place")
                found.append((rate.low, rate.high))
                usual.append(by_delta_method(release))
            for method, parts in (("rate", found), ("delta method", usual)):
                if method == "rate" or name == "private totals":
                    low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
                    few = np.tile(counts.sum(axis=1) < 30, releases)
                    both = np.tile(truth, releases)
                    rows.append({"what": f"{method}, {name}", "ε": epsilon} | scored(low, high, both))
                    of = {"what": f"{method}, {name}, fewer than 30", "ε": epsilon}
                    rows.append(of | scored(low[few], high[few], both[few]))
    return rows


def changes(folder: Path, releases: int) -> list[dict[str, Any]]:
    """Thefts in per cent of what they were, in cells where there were some."""
    grid, before, after = thefts(folder)
    some = before.ravel() > 0
    with np.errstate(all="ignore"):
        truth = (100 * (after / before - 1)).ravel()[some]
    rows = []
    for epsilon in EPSILONS:
        old, new = (sf.plan(policy, sf.histogram(), epsilon) for policy in (sf.unbounded(grid), sf.bounded(grid)))
        ends, plain = [], []
        for seed in range(releases):
            pair = (
                new.publish(after, source=sf.SeededSource(2 * seed)),
                old.publish(before, source=sf.SeededSource(2 * seed + 1)),
            )
            found = sf.percent_change(*pair).cells()
            ends.append((np.ravel(found.low)[some], np.ravel(found.high)[some]))
            less = sf.difference(*pair).cells()
            plain.append((np.ravel(less.low), np.ravel(less.high)))
        low, high = (np.concatenate(parts) for parts in zip(*ends, strict=True))
        rows.append({"what": "change in per cent", "ε": epsilon} | scored(low, high, np.tile(truth, releases)))
        low, high = (np.concatenate(parts) for parts in zip(*plain, strict=True))
        moved = np.tile((after - before).ravel(), releases)
        rows.append({"what": "difference", "ε": epsilon} | scored(low, high, moved))
    return rows


def suppression(folder: Path, releases: int) -> list[dict[str, Any]]:
    """Listings of neighbourhoods and rooms that a threshold lets be shown."""
    space, counts = listings(folder)
    rows, bounds = list[dict[str, Any]](), list[dict[str, Any]]()
    for epsilon in EPSILONS:
        plan = sf.plan(sf.unbounded(space), sf.histogram(), epsilon=epsilon)
        for below in (10, 50):
            given, plain, truths = [], [], []
            empty, stated = 0, 0.0
            for seed in range(releases):
                release = plan.publish(counts, source=sf.SeededSource(seed))
                shown = release.suppress(below=below)
                there, cells = ~np.isnan(shown.value), release.answer(by=("place", "room"))
                given.append((shown.low[there], shown.high[there]))
                plain.append((np.asarray(cells.low)[there], np.asarray(cells.high)[there]))
                truths.append(counts[there])
                empty += int((counts[there] == 0).sum())
                stated += shown.empty * shown.shown
            truth = np.concatenate(truths)
            few = truth < below
            for method, parts in (("given shown", given), ("plain", plain)):
                low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
                of = {"what": f"at least {below}, {method}", "ε": epsilon}
                rows.append(of | scored(low, high, truth))
                of = {"what": f"at least {below}, {method}, fewer in truth", "ε": epsilon}
                rows.append(of | scored(low[few], high[few], truth[few]))
            of = {"what": f"at least {below}: empty ones shown", "ε": epsilon, "groups": len(truth)}
            bounds.append(of | {"empty": empty, "stated at most": round(stated, 1)})
    table(bounds)
    return [*rows, *bounds]


def main() -> None:
    """Measure, print, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--releases", type=int, default=40)
    given = parser.parse_args()
    if not (given.data / "airbnb_nyc_2019.parquet").exists():
        parser.exit(0, f"There are no datasets in {given.data}: nothing was measured. Say --data FOLDER.\n")
    start, found = time.perf_counter(), {}
    for part in (rates, changes, suppression):
        found[part.__name__] = part(given.data, given.releases)
        print(f"\n{part.__name__}")
        table([row for row in found[part.__name__] if "held" in row])
    print(f"\n{time.perf_counter() - start:.0f} s")
    print(f"Written: {write_json('figures', {'releases': given.releases, **found}).name}")


if __name__ == "__main__":
    main()
