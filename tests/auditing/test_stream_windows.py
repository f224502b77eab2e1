"""Streams: the worst window is that of all windows."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.auditing import audit_stream

LINE = sf.Line(0, 1, cells=4)


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 8))
def test_the_worst_window_is_that_of_all_windows(tenths, window):
    budgets = [Fraction(t, 10) for t in tenths]
    expected = max((sum(budgets[max(0, i - window + 1) : i + 1]) for i in range(len(budgets))), default=Fraction(0))
    assert audit_stream(budgets, window=window, epsilon=2).epsilon == expected


def test_an_account_of_a_stream_is_audited_by_its_own_terms(tmp_path):
    ledger = sf.Ledger.create(tmp_path / "budget.db", epsilon=1)
    account = ledger.stream("visits", epsilon=1, window=3, policy=sf.threshold(LINE, 1))
    for step, spent in enumerate(["0.2", "0.5", "0.3", "0.2"]):
        account.charge(step, spent, label="visits", release_id=f"{step}")
    found = audit_stream(account)
    assert (found.subject, found.epsilon, found.promised) == ("stream 'visits'", 1, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"budgets": [1]},
            "window and epsilon are needed beside a list of budgets. Nothing was concluded.",
        ),
        ({"budgets": [-1], "window": 1, "epsilon": 1}, "budgets must be at least 0. Nothing was concluded."),
    ],
)
def test_what_is_no_stream_is_refused(given, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        audit_stream(**given)
    assert str(refusal.value) == message
