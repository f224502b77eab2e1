"""Visits by hexagon and mode, where nobody's place within 500 m shows: `python examples/hexagons.py [folder]`."""

import sys
import tempfile
from pathlib import Path

import h3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
rng = np.random.default_rng(1)

# Made up, in the place of your own file: 20,000 visits, each with a cell of resolution 10 and a mode.
where = rng.normal([40.75, -73.98], [0.04, 0.03], (20_000, 2))
cells = [h3.latlng_to_cell(lat, lon, 10) for lat, lon in where.tolist()]
modes = rng.choice(["bus", "bike", "car"], len(cells), p=[0.3, 0.2, 0.5])
pq.write_table(pa.table({"cell": cells, "mode": modes}), folder / "visits.parquet")

# Declared, never read off the visits: the area and its hexagons, the modes, what to hide, and what will be asked.
place = sf.H3(8, cover=(-74.03, 40.69, -73.92, 40.83), levels=[7])
space = place * sf.Categories(["bus", "bike", "car"], name="mode")
policy = sf.policy(space, hide=sf.move("500 m") | sf.change("mode"))
plan = sf.plan(policy, sf.histogram(), epsilon=1.0)
print(plan)

# Private: records belong to the parents of their cells, and to elsewhere where these are not covered.
counts = sf.count(folder / "visits.parquet", space, h3="cell")
ledger = sf.Ledger.create(folder / "budget.db", epsilon=10.0, hide=sf.move("500 m") | sf.change("mode"))
release = plan.publish(counts, ledger=ledger, label="visits")

square = h3.latlng_to_cell(40.758, -73.9855, 8)
answer = release.answer(place=square, by="mode")
for mode, value, low, high in zip(["bus", "bike", "car"], answer.value, answer.low, answer.high, strict=True):
    print(f"Around Times Square, {mode}: {value:.0f} visits, 95 % within {low:.0f} to {high:.0f}.")
print(f"Spent: {ledger.spent} of {ledger.total}. Written: {release.save(folder / 'visits.sfumato').name}")
