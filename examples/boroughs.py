"""Visits by neighbourhood and hour, on a map that it makes: `python examples/boroughs.py [folder]`."""

import sys
import tempfile
from pathlib import Path

import geopandas
import numpy as np
import shapely

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
rng = np.random.default_rng(1)

# Made up, in the place of your own files: 40 neighbourhoods of 4 boroughs, and 20,000 visits.
box = shapely.box(-74.3, 40.5, -73.7, 40.95)
seeds = shapely.MultiPoint(rng.random((40, 2)) * [0.6, 0.45] + [-74.3, 40.5])
cells = [cell.intersection(box) for cell in shapely.voronoi_polygons(seeds, extend_to=box).geoms]
boroughs = ["north" if cell.centroid.y > 40.72 else "south" for cell in cells]
table = {"name": [f"neighbourhood {i}" for i in range(40)], "borough": boroughs}
geopandas.GeoDataFrame(table, geometry=cells, crs="EPSG:4326").to_parquet(folder / "map.parquet")
where = rng.normal([-74.0, 40.72], [0.1, 0.08], (20_000, 2))
hours = rng.integers(0, 7 * 24, 20_000)
times = np.datetime64("2026-03-02T00", "us") + hours * np.timedelta64(3_600_000_000, "us")
visits = geopandas.GeoDataFrame({"t": times}, geometry=geopandas.points_from_xy(*where.T), crs="EPSG:4326")

# Declared, never read off the visits: the map, the hours, what to hide, and what will be asked.
place = sf.Regions(folder / "map.parquet", id="name", levels=["borough"])
space = place * sf.Cycle("hour of day", name="t")
policy = sf.policy(space, hide=sf.move("500 m") & sf.move("1 h", of="t"))
plan = sf.plan(policy, sf.histogram(), epsilon=1.0)
print(plan)

counts = sf.count(visits, space)  # private; the points of a GeoDataFrame, those in no region elsewhere
ledger = sf.Ledger.create(folder / "budget.db", epsilon=10.0)
release = plan.publish(counts, ledger=ledger, label="visits")

answer = release.answer(place="neighbourhood 7", t=(8, 10))
print(f"Neighbourhood 7 from 8 to 10: {answer.value:.0f} visits, 95 % within {answer.low:.0f} to {answer.high:.0f}.")
print(f"Spent: {ledger.spent} of {ledger.total}. Written: {release.save(folder / 'visits.sfumato').name}")
