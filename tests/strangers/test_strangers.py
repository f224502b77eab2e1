"""Files from strangers: whatever the bytes, reading one is cheap and ends in a value or in the documented error.

`SFUMATO_FORGERIES=5000` reads so many of each kind (`PYTHONPATH=src pytest -m slow tests/strangers`).
"""

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
FORGERIES = int(os.environ.get("SFUMATO_FORGERIES", "0"))
KINDS = {"release": 400, "verified": 150, "patch": 300, "state": 100, "ledger": 80}


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a process, as Linux has them")
@pytest.mark.parametrize("kind", KINDS)
def test_forged_files_are_refused_in_little_time_and_memory(kind: str, tmp_path: Path) -> None:
    first, wanted, wrong = 0, FORGERIES or KINDS[kind], []
    while first < wanted:
        (folder := tmp_path / str(first)).mkdir()
        command = [sys.executable, "strangers_worker.py", str(folder), kind, str(first), str(wanted - first)]
        run = subprocess.run(command, cwd=HERE, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        lines = run.stdout.splitlines()
        wrong += [line.removeprefix("wrong ") for line in lines if line.startswith(("wrong ", "slow "))]
        if lines[-1:] == ["done"]:
            break
        reached = [int(line.split()[1]) for line in lines if line.startswith("at ")]
        assert reached, run.stderr
        wrong.append(f"{kind} {reached[-1]}: stopped by the system ({run.returncode}) {run.stderr[-300:]}")
        first = reached[-1] + 1
    assert [line for line in wrong if "slow" not in line] == []
