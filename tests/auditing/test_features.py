"""What is looked at in an output: cells around a change, what mistakes leave behind, and the numbers that are kept."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from zoo import OnlyOccupied, disguised

import sfumato as sf
from sfumato.auditing.statistical.audit_source import AuditSource
from sfumato.auditing.statistical.features import CELLS_AROUND, MOST_COLUMNS, Features
from sfumato.mechanism import build

ONE = Fraction(1)


def table(mechanism, edge=(0, 1), runs=5):
    features = Features(mechanism, edge)
    counts = np.arange(mechanism.policy.domain.size)
    total = int(counts.sum()) if mechanism.policy.total_is_public else None
    return features.names(), features.table(counts, total, AuditSource(1), runs)


@pytest.mark.parametrize("name", ["identity", "consistent", "sorted", "dawa"])
def test_numbers_that_are_measured_are_looked_at(name):
    mechanism = build(name, sf.unbounded(sf.Line(0, 1, cells=6)), ONE)
    names, found = table(mechanism)
    assert found.shape == (5, len(names))
    measured, estimates = mechanism.observe(np.arange(6), None, AuditSource(1))
    row = dict(zip(names, found[0], strict=True))
    assert row["how many numbers were measured"] == measured.size
    assert row["measured number 0"] == measured[0]
    assert row["cell 3"] == pytest.approx(estimates[3], abs=1e-9)
    assert row["the total"] == pytest.approx(estimates.sum(), abs=1e-9)


@pytest.mark.parametrize(
    "mechanism",
    [
        build("dawa", sf.threshold(sf.Line(0, 1, cells=6), 1), ONE),
        disguised(build("identity", sf.unbounded(sf.Line(0, 1, cells=6)), ONE), OnlyOccupied),
    ],
    ids=["estimates alone", "a class that runs in its own way"],
)
def test_what_shows_no_measured_numbers_has_no_columns_for_them(mechanism):
    names, found = table(mechanism)
    assert found.shape == (5, len(names) - MOST_COLUMNS - 1)
    counts = np.arange(6)
    total = 15 if mechanism.policy.total_is_public else None
    measured, estimates = mechanism.observe(counts, total, AuditSource(1))
    assert measured is None
    assert np.array_equal(estimates, mechanism.run(counts, total, AuditSource(1)))


def test_of_many_cells_those_around_the_change_are_looked_at():
    features = Features(build("identity", sf.unbounded(sf.Line(0, 1, cells=100)), ONE), (40, -1))
    assert features.cells == list(range(40 - CELLS_AROUND, 41 + CELLS_AROUND))
