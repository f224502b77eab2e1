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


def nothing_wrong(found):
    """No charge lost, none that nobody was told of, none twice, nothing spent but what is recorded, no process dead."""
    return not any(found[name] for name in ("lost", "unacknowledged", "twice", "overspent", "failed"))


@pytest.mark.slow
def test_processes_at_one_ledger_overspend_nothing(bench, tmp_path):
    """Eight processes at 1/20: at 1/1000 each there is room for fifty charges and not one more."""
    found = bench.load(tmp_path, processes=8, seconds=600, epsilon=Fraction(1, 20))
    assert nothing_wrong(found), found
    assert found["recorded"] == found["acknowledged"] == 50


@pytest.mark.slow
def test_64_processes_at_one_ledger_lose_nothing(bench, tmp_path):
    """Ten seconds from the moment that all of them are there, however long that takes."""
    found = bench.load(tmp_path, processes=64, seconds=10, epsilon=Fraction(10**6))
    assert nothing_wrong(found), found
    assert found["recorded"] == found["acknowledged"] > 0


@pytest.mark.slow
def test_a_release_stays_within_the_memory_that_its_plan_states(bench):
    """A million cells; sixteen million take the same a cell (`python bench/ledger_load.py`)."""
    found = bench.memory(1024)
    assert found["cells"] == 1 << 20
    assert found["within"], found
