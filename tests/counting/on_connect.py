"""A client of Spark Connect: a server of its own, and the cases counted on it. One JSON object comes out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from cases import CASES, SPACED
from pyspark.sql import SparkSession

import sfumato as sf


def counted(frame: Any, case: Any, **more: Any) -> dict[str, Any]:
    """What a count found, as JSON takes it."""
    found = sf.count(frame, case.domain, **case.keywords, **more)
    return {"values": found.values.ravel().tolist(), "report": repr(found.report)}


def refused(frame: Any, line: sf.Domain) -> str:
    """The words of a refusal."""
    try:
        sf.count(frame, line)
    except sf.InvalidInput as error:
        return str(error)
    return "nothing was refused"


def main() -> None:
    """All cases, by themselves and by persons; then what is refused."""
    folder = Path(sys.argv[1])
    session = (
        SparkSession.builder.remote("local[2]")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "Asia/Tokyo")
        .getOrCreate()
    )
    found: dict[str, Any] = {"kind": type(session).__module__}
    for name, make in CASES.items():
        case = make()
        path = folder / f"{name}.parquet"
        pq.write_table(case.table.rename_columns([f"p{i}" for i in range(case.table.num_columns)]), path)
        frame = session.read.parquet(str(path)).toDF(*case.table.column_names)
        bound = {"entity": SPACED, "max_per_entity": 2, "source": sf.SeededSource(3)}
        found[name] = [counted(frame, case), counted(frame, case, **bound)]
    line = sf.Line(0, 1, cells=2, name="value")
    found["stream"] = refused(session.readStream.format("rate").load(), line)
    quoted = session.range(9).selectExpr("CAST(concat('planted-7f3a', id) AS DOUBLE) AS value")
    found["quoted"] = refused(quoted, line)
    session.stop()
    found["stopped"] = refused(quoted, line)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
