"""python examples/fares.py [folder]: sums of fares, mean fares and distinct people by district, in one account.

The account hides that one record lies in another district, or has another fare.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
rng = np.random.default_rng(4)
trips = {
    "district": rng.choice(["north", "east", "south", "west"], 20_000, p=[0.4, 0.3, 0.2, 0.1]),
    "hour": rng.integers(0, 24, 20_000),
    "fare": np.round(rng.gamma(3, 6, 20_000), 2),
    "user": rng.integers(0, 3_000, 20_000),
}

places = sf.Categories(["north", "east", "south", "west"], name="district")
hide = sf.change("district") | sf.change("fare")  # one of them at a time
ledger = sf.Ledger.create(folder / "fares.db", epsilon=3.0, hide=hide)

fares = sf.amounts("fare", clip=(0, 60), step=0.25)  # bounds are declared, or bought: docs/sums.md
policy = sf.policy(places, hide=hide, values=fares)
counts = sf.count(trips, places, values=fares)

sums = sf.plan(policy, sf.histogram(), epsilon=1.0).publish(counts, ledger=ledger, label="sums of fares")
means = sf.plan_means(policy, sf.histogram(), epsilon=1.0).publish(counts, ledger=ledger, label="mean fares")

users = sf.people("user", cells=4)
plan = sf.plan(sf.policy(places, hide=sf.change("district")), sf.histogram(), epsilon=1.0, values=users)
people = plan.publish(sf.count(trips, places, values=users), ledger=ledger, label="distinct people")

print(f"{'':8}{'sum':>28}{'mean':>24}{'people':>24}")
for row, name in enumerate(["north", "east", "south", "west"]):
    said = []
    for table, digits in (
        (sums.marginal("district"), 0),
        (means.marginal("district"), 2),
        (people.marginal("district"), 0),
    ):
        said.append(f"{table.value[row]:,.{digits}f} [{table.low[row]:,.{digits}f}, {table.high[row]:,.{digits}f}]")
    print(f"{name:8}{said[0]:>28}{said[1]:>24}{said[2]:>24}")
print(f"\nspent {ledger.spent} of {ledger.total}")
means.save(folder / "mean-fares")
