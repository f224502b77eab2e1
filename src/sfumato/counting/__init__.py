"""Records to counts, on the engine that holds them: the last step that sees records.

Nothing is drawn, charged or written here, and no message shows what a record holds: what happened to the records is a
report for the operator's eyes.

    counts       Counts, what counting hands on
    report       CountReport, what happened to the records, for the operator's eyes
    tally        one number for each cell; raw points
    choice       which column feeds which axis
    columns      whether it can
    inputs       files, frames, tables and relations, all seen as one Narwhals frame of private names
    frames       the frames of every engine, coordinates as doubles
    arrow        Arrow tables and streams
    tables       files as one table
    files        which files a path means, each of them once
    delimited    CSV: columns by the header, values as the domain needs them
    columnar     Parquet: columns by the schema
    points       places that come as geometries
    geometries   columns of geometries, before anything is read
    sql          names and numbers for DuckDB
    streams      lazy frames as streams of batches
    ticks        times of every engine as whole microseconds
    hushing      engines' errors without what they quote
    expression   the cell of a record as one expression for every engine
    stages       its steps on each kind of axis
    spark        frames of Spark, and labels on it
    spark_count  counting on it
    spark_partition  what its workers do with their part of the records
    spark_failures   what goes wrong on it, in our words
    spark_logs   its loggers, silent while it counts
    native       counting inside the engine of the frame
    located      the cell of every record, one by one
    place        from a batch of columns to the cells of its records
    batches      counting here, batch by batch, in memory that does not grow
    entities     at most m records an entity, of any number of records
    keyed        the choice itself, by a key: the same on every engine
    persons      whose a record is, as a number
    packing      records as plain numbers, which sort fast
    progress     how far it is, on long inputs
    spill        records set aside on disk, enciphered
    run          `count`, which puts these together

No engine is imported before it is needed.
"""

from sfumato.counting.counts import Counts
from sfumato.counting.located import NOWHERE, locate_records, locate_values
from sfumato.counting.report import CountReport
from sfumato.counting.run import count
from sfumato.counting.tally import count_points

__all__ = ["NOWHERE", "CountReport", "Counts", "count", "count_points", "locate_records", "locate_values"]
