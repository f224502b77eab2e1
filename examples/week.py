"""A week of hourly counts, under one promise for every day: `python examples/week.py [folder]`."""

import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
rng = np.random.default_rng(1)
stops = sf.Line(0, 16, cells=16, name="stop")

ledger = sf.Ledger.create(folder / "budget.db", epsilon=1.0)
stream = sf.Stream(
    sf.threshold(stops, theta=1),
    sf.histogram(),
    epsilon=1.0,  # for whatever somebody does within one window
    window=timedelta(hours=24),
    step=timedelta(hours=1),
    ledger=ledger,
    name="riders",
    outbox=folder / "hours",
)

for hour in range(7 * 24):
    time = datetime(2026, 3, 2) + timedelta(hours=hour)
    if time.hour < 5:  # no service: decided by the timetable, not by the counts
        stream.skip(time)
        continue
    busy = 200 if time.hour in (7, 8, 16, 17) else 40
    release = stream.publish(time, rng.poisson(busy, 16))  # made up, in the place of private counts

print(f"{sum(record.epsilon > 0 for record in stream.history())} hours published in a week")
print(f"The last one at ε = {release.guarantee.epsilon}; any {stream.window} together at most {stream.epsilon}")
