"""The programs in examples/ run as a user would start them, and write into the folder that they are given alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import sfumato as sf

ROOT = Path(__file__).resolve().parent.parent
ON_SPARK = [ROOT / "examples" / "nightly_spark.py"]
EXAMPLES = sorted({*(ROOT / "examples").glob("*.py")} - {*ON_SPARK})
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(sf.__file__).parent.parent), "PYTHONWARNINGS": "error"}


def test_there_are_some():
    assert len(EXAMPLES) >= 5


@pytest.mark.slow  # a process each, and a week of releases: seconds
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path):
    given, elsewhere = tmp_path / "given", tmp_path / "elsewhere"
    given.mkdir()
    elsewhere.mkdir()
    command = [sys.executable, str(path), str(given)]
    run = subprocess.run(command, cwd=elsewhere, env=ENVIRONMENT, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout and not run.stderr
    assert list(given.iterdir()) and not list(elsewhere.iterdir())
    assert f"python examples/{path.name} [folder]" in path.read_text(encoding="utf-8").splitlines()[0]


def test_a_nightly_job_that_is_run_again_publishes_what_was_late_and_nothing_twice(tmp_path):
    command = [sys.executable, str(ROOT / "examples" / "nightly.py"), str(tmp_path)]
    run = subprocess.run(command, env=ENVIRONMENT, capture_output=True, encoding="utf-8", check=True)
    assert run.stdout.splitlines() == [
        "The first three nights:",
        "2026-03-01 00:00:00: published at ε = 1/7",
        "2026-03-02 00:00:00: not delivered yet",
        "2026-03-03 00:00:00: published at ε = 1/7",
        "The same again, say after a crash:",
        "2026-03-02 00:00:00: not delivered yet",
        "The night after, with the delivery that was late:",
        "2026-03-02 00:00:00: published at ε = 1/7",
        "2026-03-04 00:00:00: published at ε = 1/7",
    ]
    assert len(list((tmp_path / "published").iterdir())) == 4


@pytest.mark.slow  # Java is started: half a minute
def test_the_nightly_job_runs_by_spark_submit(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    found = re.search(
        r'version "(\d+)',
        subprocess.run(["java", "-version"], capture_output=True, text=True).stderr if shutil.which("java") else "",
    )
    if found is None or int(found[1]) < 17:
        pytest.skip("there is no Java of version 17 or later on this machine")
    submit = Path(sysconfig.get_path("scripts")) / "spark-submit"
    quiet = ["--master", "local[2]", "--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"]
    run = subprocess.run(
        [str(submit), *quiet, "--driver-memory", "1g", str(ON_SPARK[0]), str(tmp_path / "given")],
        cwd=tmp_path,
        env={**ENVIRONMENT, "PYTHONWARNINGS": "", "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stderr
    nights = [line for line in run.stdout.splitlines() if line.startswith("2026-03-0")]
    assert nights == [f"2026-03-0{day} 00:00:00: published at ε = 1/7" for day in (1, 2, 3)]
    assert len(list((tmp_path / "given" / "published").iterdir())) == 3
