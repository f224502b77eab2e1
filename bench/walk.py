"""How many modules and packages a plan, a publication, an answer, a reading and a refinement walk through.

    python bench/walk.py

A figure for whoever changes the house: a job that visits ever more rooms is harder to read. Nothing is timed.

| job | before there were rooms: modules, packages | with rooms | relations, products | parts, places, levels | tables |
| --- | --- | --- | --- | --- | --- |
| plan | 41, 7 | 45, 7 | 51, 7 | 57, 7 | 73, 7 |
| publish | 35, 10 | 44, 12 | 47, 12 | 57, 13 | 58, 13 |
| answer | 13, 5 | 17, 6 | 25, 7 | 24, 6 | 26, 6 |
| load | 24, 7 | 23, 6 | 28, 7 | 28, 7 | 31, 7 |
| refine | 42, 8 | 56, 10 | 63, 11 | 64, 11 | 65, 11 |

(With a vault and a ledger. What came is what was missing: who paid is sealed, old ledgers are noticed, what was paid
for is kept, ranges that cut cells are bracketed. The promise and the unit are rooms of their own. Then relations:
a record view and its price, factors and questions by name. Then what was left out before counting, and elsewhere.
A plan walks through every mechanism that it weighs: each new family is a module or two more.)
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import sfumato as sf

BASE = str(Path(sf.__file__).parent)


def walked(job: Callable[[], Any]) -> tuple[Any, int, int]:
    """(what the job gives, modules, packages) of sfumato in which a function was called."""
    seen: set[str] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(BASE):
            seen.add(os.path.relpath(name, BASE))

    sys.setprofile(look)
    try:
        found = job()
    finally:
        sys.setprofile(None)
    return found, len(seen), len({Path(name).parts[0] for name in seen if os.sep in name})


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(32, 32))
        policy, counts = sf.within(grid, 0.05), np.ones((32, 32), dtype=np.int64)
        ledger = sf.Ledger.create(place / "budget.db", epsilon=10)
        vault = sf.Vault(place / "secrets", key=place / "vault.key")
        plan, *planned = walked(lambda: sf.plan(policy, sf.ranges(), 1.0))
        release, *published = walked(lambda: plan.publish(counts, ledger=ledger, vault=vault))
        _, *answered = walked(lambda: release.answer((0.1, 0.1, 0.55, 0.6)))
        file = release.save(place / "map.sfumato")
        loaded, *read = walked(lambda: sf.load(file))
        _, *refined = walked(lambda: loaded.refine(epsilon=2, vault=vault, ledger=ledger))
    print(f"{'':<8} {'modules':>8} {'packages':>9}")
    for name, (modules, packages) in zip(
        ("plan", "publish", "answer", "load", "refine"), (planned, published, answered, read, refined), strict=True
    ):
        print(f"{name:<8} {modules:>8} {packages:>9}")


if __name__ == "__main__":
    main()
