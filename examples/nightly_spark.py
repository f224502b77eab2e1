"""A nightly job on Spark, safe to repeat: `spark-submit examples/nightly_spark.py [folder] [until]`.

On a cluster: `spark-submit --master yarn --py-files sfumato.zip nightly_spark.py hdfs:///visits 2026-03-04`, with the
ledger on a server (SFUMATO_LEDGER=postgresql://sfumato@db/budget) and the outbox on a disk that every driver sees
(SFUMATO_OUTBOX=/mnt/published). Without records in the folder it makes up some, and a ledger in a file beside them.
"""

import os
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sfumato as sf

FIRST = datetime(2026, 3, 1)  # said here, and not read off the data


def nightly(records: DataFrame, until: datetime, ledger: str, outbox: str) -> None:
    """Publish every night that is over and was not published yet. A night that is there is not counted again."""
    place = sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(32, 32))
    stream = sf.Stream(
        sf.within(place, delta=0.01),
        sf.histogram(),
        epsilon=1.0,  # for whatever somebody does within seven nights
        window=timedelta(days=7),
        step=timedelta(days=1),
        ledger=sf.Ledger(ledger),  # never creates one: a lost ledger is no new budget
        name="visits",
        max_per_entity=1,
        outbox=outbox,
    )
    for night in stream.due(until, start=FIRST):

        def count(night: datetime = night) -> sf.Counts:
            """The private counts of a night, on the engine: called only where they are needed."""
            of_the_night = records.where(F.col("day") == F.lit(night.date()))
            return sf.count(of_the_night, place, x="lon", y="lat", entity="user", max_per_entity=1)

        print(stream.run(night, count, late=True), flush=True)


def made_up(spark: SparkSession, visits: str) -> None:
    """Three nights of visits, in the place of private records."""
    day = F.date_add(F.lit(FIRST.date()), (F.col("id") % 3).cast("int"))
    lon, lat = F.greatest(F.lit(-74.3), F.randn(1) * 0.06 - 73.97), F.randn(2) * 0.05 + 40.74
    rows = spark.range(30_000).select(
        day.alias("day"), lon.alias("lon"), lat.alias("lat"), (F.col("id") % 2_000).alias("user")
    )
    rows.write.partitionBy("day").parquet(visits)


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    until = datetime.fromisoformat(sys.argv[2]) if len(sys.argv) > 2 else FIRST + timedelta(days=3)
    ledger = os.environ.get("SFUMATO_LEDGER", f"{folder}/budget.db")
    outbox = os.environ.get("SFUMATO_OUTBOX", f"{folder}/published")
    spark = SparkSession.builder.appName("nightly").getOrCreate()
    try:
        if "://" not in folder and not Path(folder, "visits").exists():
            made_up(spark, f"{folder}/visits")
            sf.Ledger.create(ledger, epsilon=10.0)  # once, by hand
        nightly(spark.read.parquet(f"{folder}/visits"), until, ledger, outbox)
    finally:
        spark.stop()
