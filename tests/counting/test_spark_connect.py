"""Spark Connect, from a process of its own, as its clients are: the counts of every other engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cases import CASES, SPACED
from spark_cluster import alone, end, home, skip_where_none

import sfumato as sf

pytestmark = [pytest.mark.slow, pytest.mark.spark]  # a server has to come to life


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    skip_where_none()
    pytest.importorskip("grpc", reason="needs pyspark[connect]")
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent / "domain")])  # cases, and their maps
    end()  # the cluster of the other tests
    with alone(), home() as folder:
        environment = os.environ | {
            "PYTHONPATH": path, "SPARK_HOME": str(folder), "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
        }  # fmt: skip
        program = [sys.executable, str(here / "on_connect.py"), str(tmp_path_factory.mktemp("connect"))]
        run = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CASES)
def test_connect_puts_every_record_in_the_same_cell(name: str, found: dict[str, Any]) -> None:
    assert found["kind"].startswith("pyspark.sql.connect")
    case = CASES[name]()
    bound = {"entity": SPACED, "max_per_entity": 2, "source": sf.SeededSource(3)}
    for counted, more in zip(found[name], ({}, bound), strict=True):
        expected = sf.count(case.table, case.domain, **case.keywords, **more)
        assert counted["values"] == expected.values.ravel().tolist()
        assert counted["report"] == repr(expected.report)


def test_connect_refuses_in_the_same_words(found: dict[str, Any]) -> None:
    assert "a stream of Spark" in found["stream"]
    assert "Its message may quote a record and is not repeated. Nothing was counted" in found["quoted"]
    assert "7f3a" not in found["quoted"]
    assert "session of the data has stopped. Nothing was counted" in found["stopped"]
