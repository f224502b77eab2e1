"""Counting on a real cluster of Spark, with and without persons, against the bare group-by and a window function.

    python bench/engines.py                          10⁶ and 10⁷ rows
    python bench/engines.py --large                  10⁸ as well: some minutes, 3 GB of disk
    python bench/engines.py --tumult PYTHON          and Tumult Analytics, in an environment of its own
    python bench/engines.py --page                   the tables of docs/engines.md from the JSON that is there

Rows are generated on the engine and written as Parquet, which every job reads. A size has a process of its own, and so
its peak memory of the driver, Python's and Java's. CPU seconds are those of the driver, the workers and their Python
together: what a machine that others use says of a job. The jobs alternate; medians count (10⁸ rows are counted once).
Bytes of shuffles and results are Spark's own, from its log of events.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from _report import OUT, put, table, write_json

BOUNDS = (-74.3, 40.5, -73.7, 40.95)
SIDE, LIMIT, PARTS, CORES = 256, 3, 8, 2
PAGE = Path(__file__).parent.parent / "docs" / "engines.md"
PLACED = ("regions", "hexagons")
_CELL = " + ".join(
    f"least(greatest(floor(({name} - ({BOUNDS[i]})) / {(BOUNDS[i + 2] - BOUNDS[i]) / SIDE!r}), 0), {SIDE - 1}) * {step}"
    for i, (name, step) in enumerate((("lon", SIDE), ("lat", 1)))
)


@contextmanager
def cluster(events: Path) -> Iterator[Any]:
    """A driver, and two workers of one core and 2 GB each in processes of their own."""
    import pyspark

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for path in Path(pyspark.__file__).parent.iterdir():
            if path.name != "work":
                (Path(folder) / path.name).symlink_to(path)  # workers write into Spark's home
        os.environ |= {"SPARK_HOME": folder, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        from pyspark.sql import SparkSession

        settings = {
            "spark.driver.memory": "1g", "spark.executor.memory": "1g", "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(PARTS), "spark.ui.showConsoleProgress": "false",
            "spark.eventLog.enabled": "true", "spark.eventLog.dir": str(events), "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }  # fmt: skip
        builder = SparkSession.builder.master(f"local-cluster[{CORES},1,2048]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


def generate(session: Any, rows: int, path: Path) -> None:
    """Places about the middle of a town, and a person for eighty rows, some with very many."""
    session.range(0, rows, 1, 2 * PARTS).selectExpr(
        "-74 + 0.15 * randn(1) AS lon",
        "40.72 + 0.1 * randn(2) AS lat",
        f"CAST(pow(rand(3), 3) * {rows // 80} AS BIGINT) AS person",
    ).write.parquet(str(path))


def jobs(session: Any, path: Path) -> dict[str, Callable[[], Any]]:
    """What is timed, by name."""
    import sfumato as sf

    frame = session.read.parquet(str(path))
    frame.createOrReplaceTempView("records")
    grid = sf.Grid(bounds=BOUNDS, shape=(SIDE, SIDE))
    polygons = sf.Regions(squares(), id="id")
    hexagons = sf.H3(8, cover=BOUNDS)
    counted = "SELECT cell, count(*) AS n FROM {} GROUP BY cell"
    cells = f"(SELECT {_CELL} AS cell, person FROM records)"
    first = f"(SELECT *, row_number() OVER (PARTITION BY person ORDER BY rand()) AS nth FROM {cells})"
    return {
        "bare group-by": lambda: session.sql(counted.format(cells)).toArrow(),
        "records": lambda: sf.count(frame, grid, x="lon", y="lat"),
        "persons": lambda: sf.count(frame, grid, x="lon", y="lat", entity="person", max_per_entity=LIMIT),
        "row_number": lambda: session.sql(counted.format(f"{first} WHERE nth <= {LIMIT}")).toArrow(),
        "regions": lambda: sf.count(frame, polygons, lon="lon", lat="lat"),
        "hexagons": lambda: sf.count(frame, hexagons, lon="lon", lat="lat"),
    }


def squares() -> Any:
    """Three hundred regions that fill the bounds: Voronoi cells of random points."""
    import geopandas
    import shapely

    rng, box = np.random.default_rng(1), shapely.box(*BOUNDS)
    points = rng.uniform(BOUNDS[:2], BOUNDS[2:], (300, 2))
    cells = shapely.voronoi_polygons(shapely.MultiPoint(points), extend_to=box).geoms
    shapes = [shapely.intersection(cell, box) for cell in cells]
    return geopandas.GeoDataFrame({"id": [f"r{i}" for i in range(300)]}, geometry=shapes, crs="EPSG:4326")


def peak(pid: int | str) -> float:
    """The most memory that a process has had, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def cpu_seconds(driver: int) -> float:
    """What the driver, its workers and their Python have used of the processors, and the children that are gone."""
    parents: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it is gone
            continue
        pid = int(path.parent.name)
        parents.setdefault(int(fields[1]), []).append(pid)
        used[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total, waiting = time.process_time(), [driver]
    while waiting:
        pid = waiting.pop()
        total += used.get(pid, 0.0)
        waiting += parents.get(pid, [])
    return total


def moved(events: Path) -> tuple[int, int]:
    """(bytes written to shuffles, bytes of results sent to the driver) of all tasks so far."""
    shuffled = sent = 0
    for path in events.rglob("*"):
        for line in path.read_text().splitlines() if path.is_file() else ():
            if '"SparkListenerTaskEnd"' in line and line.endswith("}"):
                metrics = json.loads(line).get("Task Metrics", {})
                shuffled += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                sent += metrics["Result Size"]
    return shuffled, sent


def one_size(rows: int, repeat: int, folder: Path, tumult: str | None) -> dict[str, Any]:
    """All jobs on so many rows, in this process."""
    events = folder / "events"
    events.mkdir()
    path = folder / "records"
    with cluster(events) as session:
        generate(session, rows, path)
        todo = jobs(session, path)
        if rows > 10**7:  # what growth is told by
            todo = {name: job for name, job in todo.items() if name in ("bare group-by", "records", "persons")}
        for name in ("bare group-by", "persons"):  # Java and Python warm up
            todo[name]()
        driver = session.sparkContext._gateway.proc.pid
        for pid in ("self", driver):
            Path(f"/proc/{pid}/clear_refs").write_text("5")
        found: dict[str, Any] = {"rows": rows, "seconds": {}, "shuffled": {}, "sent": {}}
        times: dict[str, list[float]] = {name: [] for name in todo}
        cpu: dict[str, list[float]] = {name: [] for name in todo}
        for turn in range(repeat):
            for name, job in todo.items():
                if name in PLACED and turn:
                    continue
                before = moved(events) if not turn else (0, 0)
                begin, used = time.perf_counter(), cpu_seconds(driver)
                result = job()
                times[name].append(time.perf_counter() - begin)
                cpu[name].append(cpu_seconds(driver) - used)
                if not turn:
                    shuffled, sent = moved(events)
                    found["shuffled"][name], found["sent"][name] = shuffled - before[0], sent - before[1]
                if name in ("records", "persons"):
                    found[f"counted {name}"] = int(result.values.sum())
                    found[f"MB {name}"] = {"python": round(peak("self")), "java": round(peak(driver))}
                del result
        found["seconds"] = {name: round(statistics.median(each), 2) for name, each in times.items()}
        found["cpu"] = {name: round(statistics.median(each), 2) for name, each in cpu.items()}
        found["all seconds"] = {name: [round(one, 2) for one in each] for name, each in times.items()}
    if tumult is not None:
        run = [tumult, str(Path(__file__)), "--as-tumult", str(path), "--repeat", str(repeat)]
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
        own["PYSPARK_PYTHON"] = tumult
        said = subprocess.run(run, capture_output=True, text=True, check=False, env=own)
        line = said.stdout.strip().splitlines()[-1] if said.stdout.strip() else ""
        found["tumult"] = json.loads(line) if line.startswith("{") else {"failed": said.stderr.strip()[-300:]}
    return found


def as_tumult(path: Path, repeat: int) -> None:
    """Counts by cell with at most three rows a person, in Tumult's own environment; JSON on the last line."""
    import pyspark
    from pyspark.sql import SparkSession, functions
    from tmlt.analytics import AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session

    spark = (
        SparkSession.builder.master(f"local[{CORES}]").config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", str(PARTS)).config("spark.ui.enabled", "false").getOrCreate()
    )  # fmt: skip
    frame = spark.read.parquet(str(path)).select(functions.expr(f"CAST({_CELL} AS BIGINT)").alias("cell"), "person")
    keys = KeySet.from_dict({"cell": list(range(SIDE * SIDE))})
    times, cpu, driver = [], [], spark.sparkContext._gateway.proc.pid
    for _turn in range(repeat + 1):
        session = Session.from_dataframe(
            PureDPBudget(1), "records", frame, protected_change=AddRowsWithID(id_column="person")
        )
        query = QueryBuilder("records").enforce(MaxRowsPerID(LIMIT)).groupby(keys).count()
        begin, used = time.perf_counter(), cpu_seconds(driver)
        session.evaluate(query, PureDPBudget(1)).toPandas()
        times.append(time.perf_counter() - begin)
        cpu.append(cpu_seconds(driver) - used)
    found = {"seconds": statistics.median(times[1:]), "cpu": statistics.median(cpu[1:])}
    print(json.dumps({name: round(value, 2) for name, value in found.items()} | {"spark": pyspark.__version__}))


def growth(sizes: list[dict[str, Any]], name: str) -> tuple[float, float]:
    """(CPU seconds at none, CPU seconds for each million rows), by the smallest and the largest size."""
    low, high = sizes[0], sizes[-1]
    slope = (high["cpu"][name] - low["cpu"][name]) / (high["rows"] - low["rows"]) * 1e6
    return low["cpu"][name] - slope * low["rows"] / 1e6, slope


def power(rows: int) -> str:
    """A power of ten as the page writes it."""
    return f"10<sup>{round(np.log10(rows))}</sup>"


def write_page(sizes: list[dict[str, Any]]) -> None:
    """The tables of the page."""
    measured: list[dict[str, object]] = []
    for size in sizes:
        bare = size["cpu"]["bare group-by"]
        for name, used in size["cpu"].items():
            measured.append({
                "rows": power(size["rows"]), "job": name, "CPU seconds": used, "× bare": round(used / bare, 2),
                "million rows a CPU second": round(size["rows"] / used / 1e6, 2), "seconds": size["seconds"][name],
                "shuffled bytes a row": round(size["shuffled"][name] / size["rows"], 1),
                "kB to the driver": round(size["sent"][name] / 1e3),
            })  # fmt: skip
        if "cpu" in size.get("tumult", {}):
            used = size["tumult"]["cpu"]
            measured.append({
                "rows": power(size["rows"]), "job": "Tumult, persons", "CPU seconds": used,
                "× bare": round(used / bare, 2), "million rows a CPU second": round(size["rows"] / used / 1e6, 2),
                "seconds": size["tumult"]["seconds"], "shuffled bytes a row": None, "kB to the driver": None,
            })  # fmt: skip
    put(PAGE, "measured", measured)
    put(PAGE, "memory", [
        {"rows": power(size["rows"]), "job": name, "driver's Python, MB": size[f"MB {name}"]["python"],
         "driver's Java, MB": size[f"MB {name}"]["java"]}
        for size in sizes for name in ("records", "persons")
    ])  # fmt: skip
    projected: list[dict[str, object]] = []
    last = sizes[-1]
    for name in ("records", "persons"):
        fixed, slope = growth(sizes, name)
        moves = name == "persons"  # a row is moved; without persons the result of a group-by is, whatever the rows
        for rows, cores in ((10**9, 16), (10**11, 400)):
            used = fixed + slope * rows / 1e6
            projected.append({
                "job": name, "a, CPU seconds": round(fixed, 1), "b, CPU seconds a million": round(slope, 2),
                "rows": power(rows), "CPU hours": round(used / 3600, 2), "cores": cores,
                "minutes": round(used / cores / 60, 1),
                "shuffled, GB": round(last["shuffled"][name] * (rows / last["rows"] if moves else 1) / 1e9, 3),
            })  # fmt: skip
    put(PAGE, "projected", projected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tumult")
    parser.add_argument("--folder", type=Path, default=None, help="where rows are written; a temporary folder")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--as-tumult", type=Path)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.as_tumult:
        as_tumult(given.as_tumult, given.repeat)
        return
    if given.page:
        write_page(json.loads((OUT / "engines.json").read_text())["sizes"])
        return
    if given.rows:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            print(json.dumps(one_size(given.rows, given.repeat, Path(folder), given.tumult)))
        return
    sizes = []
    for rows in (10**6, 10**7, *([10**8] if given.large else [])):
        largest = rows == 10**8  # once, and without what says nothing about growth
        again = ["--tumult", given.tumult] if given.tumult and not largest else []
        again += ["--folder", str(given.folder)] if given.folder else []
        run = [sys.executable, __file__, "--rows", str(rows), "--repeat", str(1 if largest else given.repeat), *again]
        said = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout
        sizes.append(json.loads(said.strip().splitlines()[-1]))
        table([{"job": name, "rows": rows, "seconds": each} for name, each in sizes[-1]["seconds"].items()])
        write_json("engines", {"sizes": sizes})


if __name__ == "__main__":
    main()
