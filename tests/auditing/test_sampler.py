"""Draws prove a rate close to what a law says."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sfumato.auditing.statistical.audit_source import AuditSource
from sfumato.auditing.statistical.sampler import measured_rate
from sfumato.noise import DiscreteLaplace


@pytest.mark.parametrize("rate", ["1/50", "1/3", "2"])
def test_draws_prove_a_rate_close_to_the_law_and_never_above(rate):
    """400,000 draws at confidence 1 - 10⁻⁶: within 5 % from below."""
    drawn = measured_rate(DiscreteLaplace(Fraction(rate)), AuditSource(4), 1 - 1e-6)
    assert 0.95 < drawn.excess <= 1
