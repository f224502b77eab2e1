"""Spark on a real cluster of two workers: the counts of every other engine, and nobody beyond their share.

All of it is slow (a cluster takes half a minute to stand), and comes first, so that one process has all of it.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import CASES, DOTTED, SPACED, Case
from spark_cluster import Cluster, started

import sfumato as sf
from sfumato.counting import spark_logs

pytestmark = [
    pytest.mark.slow,  # a cluster of three processes, and work for each
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark.*"),  # of pandas 3
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark.*"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets that PySpark leaves to the collector
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with started() as cluster:
        yield cluster


def on_spark(table: pa.Table, folder: Path, cluster: Cluster, parts: int = 3) -> Any:
    """A table as a frame of Spark, with the names that it has, however Spark likes them."""
    path = folder / "records"
    path.mkdir(exist_ok=True)
    plain = table.rename_columns([f"p{i}" for i in range(table.num_columns)])
    for i in range(parts):
        pq.write_table(plain[i::1][: 0 if i else None] if False else _cut(plain, i, parts), path / f"{i}.parquet")
    return cluster.session.read.parquet(str(path)).toDF(*table.column_names)


def _cut(table: pa.Table, i: int, parts: int) -> pa.Table:
    edges = [len(table) * k // parts for k in range(parts + 1)]
    return table[edges[i] : edges[i + 1]]


def same(found: sf.Counts, expected: sf.Counts) -> None:
    assert (found.values == expected.values).all()
    assert found.report == expected.report


@pytest.mark.parametrize("how", ["by itself", "on its workers", "persons"])
@pytest.mark.parametrize("name", CASES)
def test_spark_puts_every_record_in_the_same_cell(name: str, how: str, cluster: Cluster, tmp_path: Path) -> None:
    """For persons the same key chooses the same records, wherever they lie."""
    case = CASES[name]()
    given = dict(case.keywords)
    if how == "persons":
        given |= {"entity": SPACED, "max_per_entity": 2}
    found, expected = (
        sf.count(
            data,
            case.domain,
            engine="numpy" if how == "on its workers" else None,
            **(given | ({"source": sf.SeededSource(3)} if how == "persons" else {})),
        )
        for data in (on_spark(case.table, tmp_path, cluster), case.table)
    )
    same(found, expected)
