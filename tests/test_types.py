"""The public face types: a caller under `mypy --strict` is told of a misspelt keyword, and gets no `Any` back."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"

RIGHT = """
import numpy as np
import sfumato as sf

grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4))
plan = sf.plan(sf.within(grid, delta=0.1), sf.ranges(), epsilon=1.0)
ledger = sf.Ledger("budget.db")
vault = sf.Vault("secrets", key="vault.key")
release: sf.Release = plan.publish(np.zeros((4, 4), dtype=np.int64), ledger=ledger, vault=vault, label="a map")
finer: sf.Release = release.refine(epsilon=2.0, vault=vault, ledger=ledger)
answer: sf.Answer = finer.answer((0.0, 0.0, 0.5, 0.5))
finer.plot("map.png", title="A map")
middle: float = finer.quantile(0.5)
"""
WRONG = {
    "plan.publish(counts, leger=ledger)": "leger",
    "plan.publish(counts, ledger='budget.db')": "arg-type",
    "release.refine(2.0, vault=vault, leger=ledger)": "leger",
    "release.refine(2.0)": "vault",
    "release.plot('map.png', titel='A map')": "titel",
    "release.cells(confidance=0.9)": "confidance",
}
GIVEN = """
import sfumato as sf

def ask(plan: sf.Plan, counts: sf.Counts, release: sf.Release, ledger: sf.Ledger, vault: sf.Vault) -> None:
    {line}
"""


def checked(folder: Path, **codes: str) -> tuple[int, str]:
    """What mypy says of some files, which it is given at once: it reads NumPy's stubs each time."""
    for name, code in codes.items():
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=", *(f"{c}.py" for c in codes)],
        cwd=folder,
        env={"MYPYPATH": str(SOURCE), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout


@pytest.mark.slow  # mypy reads NumPy's stubs: half a minute
@pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None, reason="mypy is not installed (it is in the extra 'lint')"
)
def test_a_strict_caller_is_told_of_misspelt_keywords(tmp_path):
    lines = "\n    ".join(WRONG)
    code, told = checked(tmp_path, right=RIGHT, wrong=GIVEN.format(line=lines))
    assert "right.py" not in told, told
    first = GIVEN.splitlines().index("    {line}") + 1
    found = {
        int(line.split(":")[1]): line for line in told.splitlines() if line.startswith("wrong.py") and "error" in line
    }
    assert code == 1
    for number, (line, word) in enumerate(WRONG.items(), start=first):
        assert word in found.get(number, ""), f"{line}: mypy said {found.get(number)!r}"
