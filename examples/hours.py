"""Boroughs and hexagons by hour and mode, out of one budget: `python examples/hours.py [folder]`."""

import sys
import tempfile
from pathlib import Path

import geopandas
import numpy as np
import shapely

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
rng = np.random.default_rng(1)

# Made up, in the place of your own files: boroughs, and 40,000 trips with a place, a time and a mode.
names = {"borough": ["west", "middle", "east"]}
boxes = [shapely.box(x, 40.6, x + 0.1, 40.85) for x in (-74.1, -74.0, -73.9)]
boroughs = geopandas.GeoDataFrame(names, geometry=boxes, crs="EPSG:4326")
busy = np.array([1, 1, 1, 1, 1, 2, 4, 8, 9, 6, 5, 5, 5, 5, 5, 6, 8, 9, 7, 5, 3, 2, 2, 1])
hours = rng.choice(24, 40_000, p=busy / busy.sum())
trips = geopandas.GeoDataFrame(
    {
        "pickup": np.datetime64("2026-03-02T00", "us") + hours * np.timedelta64(3_600_000_000, "us"),
        "kind": rng.choice(["bus", "bike", "car"], 40_000, p=[0.3, 0.2, 0.5]),
    },
    geometry=geopandas.points_from_xy(*rng.normal([-73.97, 40.74], [0.05, 0.05], (40_000, 2)).T),
    crs="EPSG:4326",
)

# Declared, never read off the trips: both maps, the hours, the modes, and what to hide in all that is published.
hide = sf.move("500 m") | sf.move("1 h", of="t") | sf.change("mode")
when = sf.Cycle("hour of day", name="t")
modes = sf.Categories(["bus", "bike", "car"], name="mode")
by_borough = sf.Regions(boroughs, id="borough") * when * modes
by_hexagon = sf.H3(7, cover=boroughs, levels=[6]) * when * modes
ledger = sf.Ledger.create(folder / "budget.db", epsilon=2.0, hide=hide)

ask = sf.ask(place=sf.histogram(), t=sf.ranges(), mode=sf.histogram())
maps = {}
for name, space in {"boroughs": by_borough, "hexagons": by_hexagon}.items():
    plan = sf.plan(sf.policy(space, hide=hide), ask, epsilon=1.0)
    counts = sf.count(trips, space, t="pickup", mode="kind")  # private
    maps[name] = plan.publish(counts, ledger=ledger, label=name)
    maps[name].plot(folder / f"{name}.png", where={"t": (7, 10)})

print(maps["boroughs"].answer(place="middle", t=(7, 10), by="mode"))
station = shapely.Point(-73.98, 40.75).buffer(0.04)  # a few kilometres around a station
print("Around the station, from 7 to 10, by bike:", maps["hexagons"].answer(station, t=(7, 10), mode="bike"))
print(f"Spent: {ledger.spent} of {ledger.total}. Written: boroughs.png, hexagons.png")
