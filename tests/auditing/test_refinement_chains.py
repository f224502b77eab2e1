"""Levels of one noise: all of them together cost the last."""

from __future__ import annotations

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.auditing import audit_chain


@pytest.mark.parametrize("rates", [(1, 2), ("1/2", "3/4"), (1, "3/2", "2")], ids=str)
def test_a_chain_costs_its_last_level(rates):
    found = audit_chain(rates)
    assert (found.method, found.epsilon, found.passed) == ("exact", Fraction(rates[-1]), True)


def test_what_is_no_chain_is_refused():
    with pytest.raises(sf.InvalidInput) as refusal:
        audit_chain([2, 1])
    assert str(refusal.value) == "rates must be two or three rising numbers of at least 0.5. Nothing was concluded."
