"""A map from a CSV file of points, with a ledger: `python examples/map.py [folder]`."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())

# Made up, in the place of your own file: 20,000 visits around two places.
rng = np.random.default_rng(1)
places = rng.choice([[-74.0, 40.72], [-73.95, 40.8]], 20_000) + rng.normal(0, 0.02, (20_000, 2))
np.savetxt(folder / "visits.csv", places, delimiter=",", header="lon,lat", comments="")

# Declared, never read off the data: where, what to hide, what will be asked, and how much of the budget it may cost.
grid = sf.Grid(bounds=(-74.1, 40.6, -73.85, 40.9), shape=(50, 60))
policy = sf.within(grid, delta=0.01)  # hides moves shorter than 0.01°
plan = sf.plan(policy, sf.ranges(), epsilon=1.0)
print(plan)

counts = sf.count(folder / "visits.csv", grid, x="lon", y="lat")  # private
ledger = sf.Ledger.create(folder / "budget.db", epsilon=10.0)
release = plan.publish(counts, ledger=ledger, label="visits")

answer = release.answer((-74.02, 40.7, -73.98, 40.74))
print(f"Around the first place: {answer.value:.0f} visits, 95 % within {answer.low:.0f} to {answer.high:.0f}.")
print(f"Spent: {ledger.spent} of {ledger.total}. Written: {release.save(folder / 'visits.sfumato').name}")
