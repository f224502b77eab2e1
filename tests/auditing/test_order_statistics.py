"""Order statistics: the worst ratio of their own laws on a small lattice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.auditing import audit
from sfumato.auditing.exact.order_statistics import audit_order
from sfumato.quantiles import InverseSensitivity, OrderLaplace, RankSplit, SmoothSensitivity

ONE = Fraction(1)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1/2", "2"])
@pytest.mark.parametrize("kind", [InverseSensitivity, OrderLaplace])
def test_order_statistics_keep_their_promise(kind, epsilon):
    found = audit(kind(epsilon=Fraction(epsilon), theta=1000, cells=1 << 20))
    assert found.passed
    assert found.method == "exact"
    assert float(Fraction(epsilon)) * 0.6 < found.epsilon <= float(Fraction(epsilon))


@pytest.mark.parametrize("slack", [Fraction(0), Fraction(1, 1000)], ids=["smooth-pure", "smooth"])
def test_smooth_sensitivity_keeps_its_promise(slack):
    assert audit(SmoothSensitivity(epsilon=ONE, theta=1000, cells=1 << 20, slack=slack)).passed


def test_a_hidden_number_of_points_is_audited_by_one_more_or_less():
    found = audit(RankSplit(epsilon=ONE, share=Fraction(1, 2), cells=1 << 20))
    assert found.passed
    assert found.method == "exact"
    assert 0.6 < found.epsilon <= 1
    assert abs(len(found.witness.databases[0]) - len(found.witness.databases[1])) == 1


def test_a_number_of_points_hidden_at_too_low_a_price_is_caught():
    class Eager(RankSplit):
        @property
        def rate(self):
            return self.epsilon

    assert not audit(Eager(epsilon=ONE, share=Fraction(1, 2), cells=6)).passed


def test_an_exponential_mechanism_at_the_full_rate_is_caught():
    class Eager(InverseSensitivity):
        @property
        def rate(self):
            return self.epsilon

    assert not audit(Eager(epsilon=ONE, theta=5, cells=6)).passed


def test_a_law_is_a_law():
    for mechanism in (
        InverseSensitivity(epsilon=ONE, theta=2, cells=6),
        OrderLaplace(epsilon=ONE, theta=2, cells=6),
        SmoothSensitivity(epsilon=ONE, theta=2, cells=6, slack=Fraction(0)),
    ):
        p = mechanism.law(np.array([0, 1, 4]), 2)
        assert p.shape == (6,)
        assert p.sum() == pytest.approx(1)
        assert (p > 0).all()


def test_what_is_no_order_statistic_is_refused():
    with pytest.raises(sf.InvalidInput) as refusal:
        audit_order("median")
    assert str(refusal.value) == "mechanism=str does not publish an order statistic."
