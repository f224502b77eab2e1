"""The programs in examples/ run as a user would start them, and write into the folder that they are given alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato as sf

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
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
