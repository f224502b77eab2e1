"""The ledger under load and the memory of a large release: `bench/ledger_load.py`, made small."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import ledger_load

    yield ledger_load
    sys.modules.pop("ledger_load", None)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1000)], ids=["runs out", "lasts"])
def test_processes_at_one_ledger_overspend_nothing_and_lose_nothing(bench, tmp_path, epsilon):
    """Eight processes, a few seconds; with 1/20 at 1/1000 each there is room for fifty charges and not one more."""
    found = bench.load(tmp_path, processes=8, seconds=3, epsilon=epsilon)
    assert (found["lost"], found["unacknowledged"], found["twice"], found["overspent"], found["failed"]) == (
        0,
        0,
        0,
        False,
        0,
    )
    assert found["recorded"] == 50 if epsilon < 1 else found["recorded"] > 0


@pytest.mark.slow
def test_a_release_stays_within_the_memory_that_its_plan_states(bench):
    """A million cells; sixteen million take the same a cell (`python bench/ledger_load.py`)."""
    found = bench.memory(1024)
    assert found["cells"] == 1 << 20
    assert found["within"], found
