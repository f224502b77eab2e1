"""Rides by street and hour, where no move of 300 m along the roads shows: `python examples/roads.py [folder]`."""

import sys
import tempfile
from pathlib import Path

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
rng = np.random.default_rng(1)

# Made up, in the place of your own map: a town of 20 × 20 blocks with a river that three bridges cross.
corner = np.stack(np.meshgrid(np.arange(21), np.arange(21), indexing="ij"), axis=-1) * [0.0012, 0.0009] + [-74.0, 40.7]
names, wards, lines = [], [], []
for i in range(21):
    for j in range(21):
        ward = f"{'west' if i < 10 else 'east'} {'south' if j < 10 else 'north'}"
        if i < 20 and (i != 9 or j in (3, 10, 17)):  # streets from west to east, of which three are bridges
            names.append(f"street {j} from {i}")
            wards.append(ward)
            lines.append(shapely.LineString([corner[i, j], corner[i + 1, j]]))
        if j < 20:
            names.append(f"avenue {i} from {j}")
            wards.append(ward)
            lines.append(shapely.LineString([corner[i, j], corner[i, j + 1]]))
town = geopandas.GeoDataFrame({"road": names, "ward": wards}, geometry=lines, crs="EPSG:4326")
town.to_file(folder / "town.geojson", driver="GeoJSON")

# Made up as well: 30,000 rides that begin near a street, most of them by one of the bridges, by the hour.
start = corner[rng.integers(21, size=30_000), rng.choice([3, 10, 17, *range(21)], 30_000)]
start = start + rng.normal(0, [0.0008, 0.0001], start.shape)
hour = rng.choice(24, 30_000, p=np.array([1] * 7 + [6] * 3 + [3] * 7 + [7] * 3 + [2] * 4) / 75)
rides = pa.table({"lon": start[:, 0], "lat": start[:, 1], "hour": hour.astype(np.float64)})
pq.write_table(rides, folder / "rides.parquet")

# Declared, never read off the rides: the roads, what to hide, and what will be asked.
roads = sf.network(folder / "town.geojson", id="road", levels=["ward"], snap="40 m")
space = roads * sf.Line(0, 24, cells=4, name="hour")
hide = sf.move("300 m", along=roads) | sf.change("hour")
plan = sf.plan(sf.policy(space, hide=hide), sf.ask(place=sf.levels(), hour=sf.histogram()), epsilon=1.0)
print(plan)

# Private: a ride is on the nearest street within 40 m, or else elsewhere.
counts = sf.count(folder / "rides.parquet", space)
ledger = sf.Ledger.create(folder / "budget.db", epsilon=10.0, hide=hide)
release = plan.publish(counts, ledger=ledger, label="rides")

for row in release.answer(by="ward", hour=(6, 12)).to_frame().to_pylist():
    within = f"95 % within {row['low']:.0f} to {row['high']:.0f}"
    print(f"{row['ward']}, in the morning: {row['value']:.0f} rides, {within}.")
frame = release.to_geopandas()
frame.to_file(folder / "published.geojson", driver="GeoJSON")
print(f"The busiest: {frame.loc[frame['value'][:-1].idxmax(), 'place']}.")
print(f"Spent: {ledger.spent} of {ledger.total}. Written: {release.save(folder / 'rides.sfumato').name}")
