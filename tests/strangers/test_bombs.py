"""Small files that ask for much, each read in a process with little time and memory of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato as sf

HERE = Path(__file__).parent
# One thread for what computes: memory and time are those of the file then, and not of the number of cores.
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
ENVIRONMENT = {**os.environ, **ALONE, "PYTHONPATH": str(Path(sf.__file__).parent.parent)}


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a process, as Linux has them")
@pytest.mark.parametrize("script", ["bombs.py", "domain_bombs.py", "verified_bombs.py"])
def test_a_small_file_does_not_cost_much(script: str, tmp_path: Path) -> None:
    command = [sys.executable, script, str(tmp_path)]
    run = subprocess.run(command, cwd=HERE, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    print(run.stdout)
    assert run.stdout.endswith("done\n"), run.stderr
    assert [line for line in run.stdout.splitlines() if line.startswith("wrong")] == []
