"""A release as one page, as pictures, and as tables and maps for other tools: `python examples/report.py [folder]`."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
rng = np.random.default_rng(1)

# Made up, in the place of your own files: 60,000 trips around three places, and the border of a town.
middles, wide = np.array([[-73.98, 40.75], [-73.95, 40.70], [-73.87, 40.77]]), np.array([0.02, 0.015, 0.006])
which = rng.choice(3, 60_000, p=[0.6, 0.3, 0.1])
lon, lat = (middles[which] + wide[which, None] * rng.normal(size=(60_000, 2))).T
busy = np.array([1, 1, 1, 1, 1, 2, 4, 8, 9, 6, 5, 5, 5, 5, 5, 6, 8, 9, 7, 5, 3, 2, 2, 1])
hours = rng.choice(24, 60_000, p=busy / busy.sum()) * np.timedelta64(3_600_000_000, "us")
trips = pd.DataFrame({"lon": lon, "lat": lat, "pickup": np.datetime64("2026-03-02", "us") + hours})
ring = [[-74.02, 40.66], [-73.90, 40.66], [-73.83, 40.74], [-73.86, 40.82], [-73.99, 40.81], [-74.02, 40.66]]
border = folder / "border.geojson"
border.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))

# Declared, never read off the trips: a map, the hours, and what to hide.
space = sf.Grid(bounds=(-74.05, 40.63, -73.8, 40.85), cell="500 m") * sf.Cycle("hour of day", name="hour")
hide = sf.move("500 m")
policy = sf.policy(space, hide=hide, public=["hour"])
ledger = sf.Ledger.create(folder / "budget.db", epsilon=1.0, hide=hide, fixed=["hour"])
plan = sf.plan(policy, sf.ask(place=sf.ranges(), hour=sf.histogram()), epsilon=1.0)
counts = sf.count(trips, space, lon="lon", lat="lat", hour="pickup")  # private
release = plan.publish(counts, ledger=ledger)

page = release.to_html(folder / "trips.html", title="Trips on a day in March", outlines=border)
release.plot(folder / "trips.png", by="place", where={"hour": ("07:00", "10:00")}, outlines=border, uncertainty=True)
release.answer(by="hour").to_frame("pandas").to_csv(folder / "hours.csv")
release.to_geojson(folder / "trips.geojson")
print(f"Open {page} in a browser: {page.stat().st_size / 1e6:.1f} MB, and it asks no server for anything.")
