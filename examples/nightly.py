"""A job that runs every night and is safe to repeat: `python examples/nightly.py [folder]`.

Cron or Airflow would start `nightly` once a night; here it is started for four of them. One night's delivery is late.
"""

import sys
import tempfile
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
deliveries = folder / "deliveries"  # one file a night, from whoever has the data
place = sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(16, 16))
FIRST = datetime(2026, 3, 1)  # said here, and not read off the data


def nightly(until: datetime) -> None:
    """Publish every night that is over and was not published yet; whatever died before, and as often as it is run."""
    stream = sf.Stream(
        sf.within(place, delta=0.01),
        sf.histogram(),
        epsilon=1.0,  # for whatever somebody does within seven nights
        window=timedelta(days=7),
        step=timedelta(days=1),
        ledger=sf.Ledger(folder / "budget.db"),  # never creates one: a lost ledger is no new budget
        name="visits",
        max_per_entity=1,
        outbox=folder / "published",  # on a disk as safe as the ledger's
    )
    for night in stream.due(until, start=FIRST):
        delivery = deliveries / f"{night:%Y-%m-%d}.parquet"
        if delivery.exists():  # whether it has come; never what is in it
            print(stream.run(night, partial(count, delivery), late=True))
        else:
            print(f"{night}: not delivered yet")


def count(delivery: Path) -> sf.Counts:
    """The private counts of a night: called only where they are needed."""
    return sf.count(str(delivery), place, x="lon", y="lat", entity="user", max_per_entity=1)


def deliver(night: datetime) -> None:
    """Made up, in the place of private records."""
    rng = np.random.default_rng(night.day)
    people = 2_000
    lon, lat = rng.normal(-73.97, 0.06, people), rng.normal(40.74, 0.05, people)
    table = pa.table({"user": np.arange(people), "lon": lon.clip(-74.3, -73.7), "lat": lat.clip(40.5, 40.95)})
    pq.write_table(table, deliveries / f"{night:%Y-%m-%d}.parquet")


deliveries.mkdir(parents=True, exist_ok=True)
sf.Ledger.create(folder / "budget.db", epsilon=10.0)  # once, by hand
nights = [FIRST + timedelta(days=day) for day in range(4)]
for night in (nights[0], nights[2]):  # the second one is missing
    deliver(night)

print("The first three nights:")
nightly(until=nights[3])
print("The same again, say after a crash:")
nightly(until=nights[3])
deliver(nights[1])
deliver(nights[3])
print("The night after, with the delivery that was late:")
nightly(until=nights[3] + timedelta(days=1))
