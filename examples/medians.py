"""Medians and quantiles without a map: `python examples/medians.py [folder]`."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import sfumato as sf

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
fares = np.random.default_rng(1).gamma(3, 5, 50_000)  # made up, in the place of private values

ledger = sf.Ledger.create(folder / "budget.db", epsilon=3.0)
middle = sf.median(fares, bounds=(0, 200), epsilon=1.0, ledger=ledger, label="the median fare")
high = sf.quantile(fares, 0.9, bounds=(0, 200), epsilon=1.0, ledger=ledger, label="what nine in ten pay at most")
print(f"Half of the fares are below {middle.value:.2f}, nine in ten below {high.value:.2f}.")

try:
    sf.quantile(fares, 0.99, bounds=(0, 200), epsilon=1.5, ledger=ledger, label="one more")
except sf.BudgetExceeded as refusal:
    print(refusal)
