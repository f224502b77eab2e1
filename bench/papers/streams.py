"""Hourly counts of real records, published for as long as the data last, with ε = 1 for every 24 hours.

Each run is a real stream: a ledger on disk, a release file for every step, windows added up afterwards as fractions.
Each hour hides one record that comes or goes (add/remove), on a 4 × 4 grid over New York; errors are over all 100
ranges. Two questions are asked, with public weights: a *timetable* (nights weigh nothing, rush hours four times as
much), which is known in advance, and *on demand* (every hour is asked for with probability ½), which is not.

*error* is the root of the weighted mean squared error of the hours that were published, *expected* what the noise
alone says it should be, *held* the same over all hours that weigh something when each is answered from the latest
release: what a reader has who cannot wait.

    python bench/papers/streams.py --data ../shared/data              # everything: half an hour
    python bench/papers/streams.py --data ../shared/data --quick      # the first ten days of each
    python bench/papers/streams_allocation.py                         # the division of the budget alone: Figures 7 and 8
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _report import OUT, table, write_json

import sfumato as sf
from sfumato.allocation import Bernoulli, Periodic
from sfumato.stream.publisher import Stream

GRID = sf.Grid(bounds=(-74.05, 40.60, -73.80, 40.85), shape=(4, 4))
POLICY = sf.unbounded(GRID)
HOUR, WINDOW, EPSILON = timedelta(hours=1), 24, 1
RUSH, DAY = (7, 8, 9, 16, 17, 18, 19), range(6, 24)
TIMETABLE = [4.0 if hour in RUSH else 1.0 if hour in DAY else 0.0 for hour in range(24)]


@dataclass(frozen=True)
class Source:
    file: str
    begin: datetime
    hours: int


SOURCES = {
    "uber": Source("uber_nyc_2014_04.parquet", datetime(2014, 4, 1), 24 * 30),
    "foursquare": Source("foursquare_nyc_checkins.parquet", datetime(2012, 4, 4, tzinfo=UTC), 24 * 318),
    "thefts": Source("nyc_vehicle_thefts.parquet", datetime(2014, 1, 1), 24 * 365),
}


def hourly(data: Path, source: Source, hours: int) -> np.ndarray:
    """Exact counts by hour and cell; what lies outside the grid is clamped to it, as `sf.count` does."""
    import pyarrow.parquet as pq

    path = data / source.file
    if not path.exists():
        raise SystemExit(f"{path} is not there: this benchmark reads real data. Give its folder with --data.")
    records = pq.read_table(path, columns=["t", "lon", "lat"])
    begin = np.datetime64(source.begin.replace(tzinfo=None), "h")
    hour = (records["t"].to_numpy().astype("datetime64[h]") - begin).astype(int)
    cell = GRID.locate(np.stack([records["lon"].to_numpy(), records["lat"].to_numpy()], axis=-1))
    counts = np.zeros((hours, GRID.size), dtype=np.int64)
    inside = (hour >= 0) & (hour < hours)
    np.add.at(counts, (hour[inside], cell[inside]), 1)
    return counts.reshape(hours, *GRID.shape)


def range_errors(off: np.ndarray) -> float:
    """The mean squared error over all ranges of a grid, given the errors of its cells."""
    sums = np.zeros((off.shape[0] + 1, off.shape[1] + 1))
    sums[1:, 1:] = off.cumsum(0).cumsum(1)
    a, b = np.triu_indices(off.shape[0] + 1, 1)
    c, d = np.triu_indices(off.shape[1] + 1, 1)
    boxes = sums[b][:, d] - sums[a][:, d] - sums[b][:, c] + sums[a][:, c]
    return float(np.mean(boxes**2))


def run(name: str, counts: np.ndarray, matters: list[float], allocation: str, **given: object) -> dict:
    """Publish one stream, and compare it with the counts."""
    source, errors, expected, held, covered, latest = SOURCES[name], [], [], [], [], None
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        if allocation == "top-up":
            given["vault"] = sf.Vault(here / "secrets", key=here / "vault.key")
        began = time.perf_counter()
        series = Stream(
            POLICY,
            sf.ranges(),
            epsilon=EPSILON,
            window=WINDOW,
            step=HOUR,
            ledger=sf.Ledger.create(here / "budget.db", epsilon=EPSILON),
            name=name,
            allocation=allocation,
            outbox=here / "out",
            **given,
        )
        for i, weight in enumerate(matters):
            release = series.publish(source.begin + i * HOUR, counts[i], weight if allocation != "offline" else None)
            latest = latest if release is None else release
            if weight > 0:  # before the first release a reader knows nothing
                known = np.zeros(GRID.shape) if latest is None else latest.counts
                held.append((weight, range_errors(known - counts[i])))
        if allocation == "top-up":
            series.top_up(ended=True)
        seconds = time.perf_counter() - began
        history = series.history()
        whole = (-74.05, 40.60, -73.80, 40.85)
        line = []
        for i, record in enumerate(history):
            if record.release_id is None:
                continue
            release = sf.load(record.path)
            errors.append((matters[i], range_errors(release.counts - counts[i])))
            expected.append((matters[i], release.mechanism.model.expected_error(sf.ranges(), GRID)))
            answer = release.answer(whole)
            truth = int(counts[i].sum())
            covered.append(answer.low <= truth <= answer.high)
            line.append((i, truth, float(answer.value), float(answer.low), float(answer.high)))
        spent = [Fraction(record.epsilon) for record in history]
        fullest = max(sum(spent[max(i - WINDOW + 1, 0) : i + 1], Fraction(0)) for i in range(len(spent)))
        size = (here / "budget.db").stat().st_size
    if fullest > EPSILON:
        raise SystemExit(f"{name}, {allocation}: a window spent {fullest}, more than {EPSILON}.")
    return {
        "data": name,
        "allocation": allocation,
        "hours": len(matters),
        "published": len(errors),
        "error": _root(errors),
        "expected": _root(expected),
        "held": _root(held),
        "records an hour": float(counts.sum(axis=(1, 2)).mean()),
        "coverage of 95 %": float(np.mean(covered)),
        "fullest window": float(fullest),
        "ms a step": 1000 * seconds / len(matters),
        "ledger, bytes a step": size / len(matters),
        "series": line,
        "budgets": [float(value) for value in spent],
        "truth": counts.sum(axis=(1, 2)).tolist(),
    }


def _root(weighted: list[tuple[float, float]]) -> float:
    w, e = np.array(weighted).T
    return float(np.sqrt((w * e).sum() / w.sum()))


def picture(path: Path, rows: list[dict], question: str) -> None:
    """A week of the city's total with its intervals under three divisions, the errors, and the budget in the window."""
    from matplotlib.figure import Figure

    shown = [row for row in rows if row["data"] == "uber" and row["question"] == question]
    figure = Figure(figsize=(13, 3.1 * len(shown)), dpi=110, layout="constrained")
    axes = figure.subplots(len(shown), 2, width_ratios=(2.2, 1), squeeze=False)
    for (left, right), row in zip(axes, shown, strict=True):
        week = [point for point in row["series"] if 24 * 6 <= point[0] < 24 * 13]
        hour, _, value, low, high = np.array(week).T
        truth = row["truth"][24 * 6 : 24 * 13]
        days = np.arange(24 * 6, 24 * 6 + len(truth)) / 24
        left.vlines(hour / 24, low, high, color="#5b2a86", alpha=0.35, linewidth=2)
        left.plot(hour / 24, value, "o", color="#5b2a86", markersize=3, label="published, with its 95 % interval")
        left.plot(days, truth, color="#22252b", linewidth=1, label="true")
        left.set_title(
            f"{row['allocation']}: pickups an hour, weighted error {row['error']:.0f}, held {row['held']:.0f}",
            loc="left",
            fontsize=10,
        )
        left.set_ylim(-500, 3000)
        budgets = np.array(row["budgets"])[24 * 6 : 24 * 13]
        sums = np.convolve(row["budgets"], np.ones(WINDOW))[: len(row["budgets"])][24 * 6 : 24 * 13]
        right.vlines(days, 0, budgets, color="#c8873a", linewidth=1.2, label="ε of an hour")
        right.plot(days, sums, color="#22252b", linewidth=0.9, label="in its 24 hours")
        right.set_ylim(0, 1.05)
        for ax in (left, right):
            ax.legend(loc="upper left" if ax is left else "center left", fontsize=7, frameon=False)
            ax.set_xlabel("days since the first of April", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="the first ten days of each")
    parser.add_argument("--only", choices=list(SOURCES), help="one dataset")
    parser.add_argument("--picture", type=Path, default=OUT / "streams.png")
    options = parser.parse_args()
    rows: list[dict] = []
    for name, source in SOURCES.items():
        if options.only not in (None, name):
            continue
        hours = min(source.hours, 240) if options.quick else source.hours
        counts = hourly(options.data, source, hours)
        timetable = [TIMETABLE[hour % 24] for hour in range(hours)]
        asked = (np.random.default_rng(7).random(hours) < 0.5).astype(float).tolist()
        runs = [("timetable", timetable, "even", {}), ("timetable", timetable, "offline", {"weights": timetable})]
        if name == "uber":
            runs += [
                ("timetable", timetable, "sample", {}),
                ("timetable", timetable, "online", {"distribution": Periodic(TIMETABLE)}),
                ("on demand", asked, "even", {}),
                ("on demand", asked, "offline", {"weights": asked}),
                ("on demand", asked, "online", {"distribution": Bernoulli(0.5)}),
                ("on demand", asked, "top-up", {"distribution": Bernoulli(0.5)}),
            ]
        for question, weights, allocation, given in runs:
            row = {"question": question} | run(name, counts, weights, allocation, **given)
            rows.append(row)
            print(f"{name}, {question}, {allocation}: {row['ms a step']:.0f} ms a step", file=sys.stderr)
    kept = {"series", "budgets", "truth"}
    table([{key: value for key, value in row.items() if key not in kept} for row in rows])
    print(write_json("streams", {"rows": [{k: v for k, v in row.items() if k not in kept} for row in rows]}))
    if any(row["data"] == "uber" for row in rows):
        picture(options.picture, rows, "timetable")
        print(options.picture)


if __name__ == "__main__":
    main()
