"""Publish strictly now, and more exactly later, at the cost of the larger ε: `python examples/refine.py [folder]`."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
counts = np.random.default_rng(1).poisson(50, (32, 32))  # made up, in the place of private counts

grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(32, 32))
plan = sf.plan(sf.within(grid, delta=0.05), sf.ranges(), epsilon=0.1)
ledger = sf.Ledger.create(folder / "budget.db", epsilon=2.0)
vault = sf.Vault(folder / "secrets", key=folder / "vault.key")  # what is in it reveals the data: keep it apart

release = plan.publish(counts, ledger=ledger, vault=vault, label="visits")
release.save(folder / "visits.sfumato")

# Months later, in another process: the counts are not needed again.
release = sf.load(folder / "visits.sfumato")
better = release.refine(epsilon=1.0, vault=vault, ledger=ledger, label="visits, finer")
better.save(folder / "visits-finer.sfumato")

for name, one in (("first", release), ("finer", better)):
    answer = one.answer((0, 0, 0.5, 0.5))
    print(f"{name}: ε = {one.guarantee.epsilon}, a quarter of the map holds {answer.low:.0f} to {answer.high:.0f}")
print(f"Spent by both together: {ledger.spent}")
