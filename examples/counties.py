"""Counties that sum to their states, on a map that it makes: `python examples/counties.py [folder]`."""

import sys
import tempfile
from pathlib import Path

import geopandas
import numpy as np
import shapely

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
rng = np.random.default_rng(1)

# Made up, in the place of your own files: three states of nine counties each, and 30,000 cases.
corners = [(x, y) for x in np.arange(-93.0, -88.5, 0.5).tolist() for y in (40.0, 40.5, 41.0)]
counties = geopandas.GeoDataFrame(
    {
        "county": [f"county {i}" for i in range(len(corners))],
        "state": [["west", "middle", "east"][i // 9] for i in range(len(corners))],
    },
    geometry=[shapely.box(x, y, x + 0.5, y + 0.5) for x, y in corners],
    crs="EPSG:4326",
)
cases = geopandas.GeoDataFrame(
    geometry=geopandas.points_from_xy(*rng.normal([-90.7, 40.8], [1.0, 0.3], (30_000, 2)).T), crs="EPSG:4326"
).to_crs("EPSG:5070")  # as others may hand them over: in metres of another CRS

# Declared, never read off the cases: the map and its levels, what to hide, and what will be asked.
place = sf.Regions(counties, id="county", levels=["state"])
policy = sf.policy(place, hide=sf.move("20 km"))
plan = sf.plan(policy, sf.levels(), epsilon=1.0)
print(plan)

counts = sf.count(cases, place)  # private; the points are transformed, and those in no county are elsewhere
ledger = sf.Ledger.create(folder / "budget.db", epsilon=10.0, hide=sf.move("20 km"))
release = plan.publish(counts, ledger=ledger, label="cases")

states, parts = release.to_geopandas("state"), release.to_geopandas(density=True)
print(states[["state", "value", "low", "high"]].to_string(index=False))
total = parts["value"][:9].sum()
print(f"The nine counties of the west sum to {total:.1f}, the west has {states['value'][0]:.1f}.")

lake = shapely.box(-91.6, 40.4, -90.4, 41.1)  # a polygon that nobody thought of before, and that cuts counties
print("Along the lake:", release.answer(lake))
release.to_geoparquet(folder / "cases.parquet", density=True)
release.plot(folder / "cases.png", title="Cases by county")
print(f"Spent: {ledger.spent} of {ledger.total}. Written: {release.save(folder / 'cases.sfumato').name}, cases.png")
