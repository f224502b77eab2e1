"""Trips from cell to cell and from district to district, from one release: `python examples/flows.py [folder]`."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())

# Made up, in the place of private trips: starts around two centres, most of them short.
rng = np.random.default_rng(1)
start = np.concatenate([rng.normal((0.3, 0.4), 0.1, (30_000, 2)), rng.normal((0.7, 0.6), 0.08, (20_000, 2))])
end = start + rng.laplace(0, 0.08, start.shape)
columns = ["origin_x", "origin_y", "destination_x", "destination_y"]
trips = np.concatenate([start, end], axis=1)
np.savetxt(folder / "trips.csv", trips, "%.5f", ",", header=",".join(columns), comments="")

origin = sf.Grid(bounds=(0, 0, 1, 1), shape=(16, 16), name="origin")
destination = sf.Grid(bounds=(0, 0, 1, 1), shape=(16, 16), name="destination")
flows = origin * destination
hide = sf.move(0.05, of="origin") | sf.move(0.05, of="destination")  # either end, by less than 0.05
policy = sf.policy(flows, hide=hide)

# Every pair of cells, and every pair of districts of 4 × 4 cells, each with half of ε.
tables = [[1, 1, 1, 1], [4, 4, 4, 4]]
asked = sf.ask(origin=sf.levels(), destination=sf.levels())
plan = sf.plan(policy, asked, epsilon=1.0, mechanism="levels", blocks=tables, weights=[1, 1])
print(plan.guarantee.describe().splitlines()[0])

counts = sf.count(folder / "trips.csv", flows)
ledger = sf.Ledger.create(folder / "budget.db", epsilon=1.0)
release = plan.publish(counts, ledger=ledger)
release.save(folder / "trips.sfumato")

district = release.answer(origin=(0.25, 0.25, 0.5, 0.5), destination=(0.5, 0.5, 0.75, 0.75))
print(f"From one district to another: {district.value:.0f} ± {district.high - district.value:.0f} trips")
shown = release.nonnegative().reshape(256, 256)
busiest = np.unravel_index(np.argsort(shown, axis=None)[::-1][:3], shown.shape)
for here, there in zip(*busiest, strict=True):
    print(f"cell {here} to cell {there}: about {shown[here, there]:.0f}")
