"""What the tests of streams share: a small stream that a folder goes on with, and windows added up by brute force."""

from __future__ import annotations

import warnings
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np

import sfumato as sf
from sfumato.allocation import Bernoulli
from sfumato.stream.publisher import Stream

LINE = sf.Line(0, 6, cells=6)
POLICY = sf.threshold(LINE, 1)
COUNTS = np.array([5, 0, 3, 9, 1, 2])
HOUR = timedelta(hours=1)


def ledger(folder: Path) -> sf.Ledger:
    """The folder's ledger, made by whoever comes first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.LedgerCreated)
        return sf.Ledger(folder / "budget.db", epsilon=1)


def stream(folder: Path, allocation: str = "even", **given) -> Stream:
    """A stream over steps 0, 1, 2, …; the same folder goes on with the same stream."""
    if allocation in ("online", "top-up"):
        given.setdefault("distribution", Bernoulli(0.5))
    if allocation == "top-up":
        given.setdefault("vault", sf.Vault(folder / "secrets", key=folder / "vault.key"))
    given = {"epsilon": 1, "window": 3, "mechanism": "identity", **given}
    return Stream(POLICY, sf.histogram(), ledger=ledger(folder), name="visits", allocation=allocation, **given)


def budgets(series: Stream) -> dict:
    return {record.time: Fraction(record.epsilon) for record in series.history()}


def fullest(spent: dict, window: int) -> Fraction:
    """The largest sum over any window of consecutive steps, by brute force."""
    steps = range(min(spent, default=0), max(spent, default=0) + 1)
    return max((sum(spent.get(t - k, Fraction(0)) for k in range(window)) for t in steps), default=Fraction(0))


def hourly(folder: Path, **given) -> Stream:
    given = {"window": timedelta(hours=3), "step": HOUR, **given}
    return Stream(POLICY, sf.histogram(), epsilon=1, ledger=ledger(folder), name="visits", **given)
