"""A mobility report by the rules that Google published for its own: `python examples/mobility_report.py [folder]`.

ε = 2.64 a user-day over three levels of places; nothing for areas below 3 km², for fewer than 100 users, or where a
change may be off by more than ten points. Here a trip stands for a user: Uber's pickups in New York have no names.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
data = Path(__file__).resolve().parents[2] / "shared" / "data" / "uber_nyc_2014_04.parquet"
if data.exists():
    trips = pq.read_table(data)  # April 2014: a usual Wednesday, and one of record rain
    days = [trips.filter(pc.equal(pc.day(trips["t"]), day)) for day in (9, 30)]
else:  # made up, in the place of your own file
    rng = np.random.default_rng(1)
    points = [rng.normal([-73.97, 40.75], [0.03, 0.04], (size, 2)) for size in (18_000, 25_000)]
    days = [pa.table({"lon": lonlat[:, 0], "lat": lonlat[:, 1]}) for lonlat in points]

# Hexagons of 0.7 km² in those of 5 and of 36 km²: three levels of one release, planned together at ε = 2.64.
place = sf.H3(8, cover=(-74.03, 40.69, -73.92, 40.83), levels=[6, 7])
plan = sf.plan(sf.unbounded(place), sf.levels(), epsilon="2.64")
ledger = sf.Ledger.create(folder / "budget.db", epsilon="5.28", hide=sf.presence())
usual, today = (plan.publish(sf.count(day, place, x="lon", y="lat"), ledger=ledger) for day in days)

rules = {"below": 100, "min_area": "3 km2", "off_by": 0.1, "chance": 0.05}
for level in ("place", "resolution 7", "resolution 6"):
    before, now = (release.suppress(by=level, **rules) for release in (usual, today))
    change = sf.percent_change(today, usual)
    first = change.answer(by=level)
    shown = (before.reason == "") & (now.reason == "") & (first.high - first.low <= 20)
    # All figures together chose those that are shown: of the intervals below, at most 5 % miss in expectation.
    spent = 0.05 * max(shown.sum(), 1) / (shown.size * (1 / np.arange(1, shown.size + 1)).sum())
    last = change.answer(by=level, confidence=1 - spent)
    print(f"\n{level}: {shown.sum()} of {shown.size} shown. The usual day: {before.summary}")
    for i in np.flatnonzero(shown)[:3]:
        print(f"  {last.keys[0].names[i]}: {last.value[i]:+.0f} % [{last.low[i]:+.0f}, {last.high[i]:+.0f}]")
print(f"\nWritten: {usual.save(folder / 'usual.sfumato').name}, {today.save(folder / 'today.sfumato').name}")
