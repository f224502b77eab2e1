"""Sorted points whose number is private, by their form; and bugs in what they draw and publish."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from zoo import disguised, planned

import sfumato as sf
from sfumato.auditing import audit
from sfumato.mechanism import build

ONE = Fraction(1)
LINE = sf.Line(0, 1, cells=4)

HONEST = build("sorted", sf.unbounded(LINE), ONE)


def test_sorted_points_with_a_private_number_are_audited_exactly():
    found = audit(build("sorted", sf.unbounded(LINE), ONE), seed=1)
    assert (found.method, found.epsilon) == ("exact", 1)
    assert "the noisy number of records is" in found.witness.event


class PeekingEstimate(type(HONEST)):
    """Draws as it should, and publishes the exact number of records."""

    def run(self, counts, total, source):
        return super().run(counts, total, source) * 0 + counts.sum() / len(counts)


class TalkativeDraw(type(HONEST)):
    """Puts the exact number of records behind the noisy sums, where no estimate looks."""

    def draw(self, counts, total, source):
        return np.append(super().draw(counts, total, source), counts.sum())

    def sums(self, measured, total):
        return super().sums(measured[:-1], total)


class NumberForFree(type(HONEST)):
    """Spends on the sums what the number of records has cost already."""

    @property
    def rate(self):
        return self.epsilon / self.appearing[0]


@pytest.mark.parametrize("bug", [PeekingEstimate, TalkativeDraw])
def test_what_is_published_beside_the_noisy_sums(bug):
    """400 runs on either neighbour, of which the number of records tells all."""
    found = audit(disguised(HONEST, bug), seed=1, samples=400, seconds=1000.0)
    assert (found.method, found.passed) == ("statistical", False)
    assert "it does not draw a number of records and then noisy sums" in found.describe()


def test_a_share_that_is_spent_twice():
    assert audit(disguised(HONEST, NumberForFree), seed=1).epsilon == Fraction(11, 10)


def test_a_number_that_is_told_though_the_promise_has_it_public():
    """Nothing is hidden by the number's noise then; moves cost what they cost."""
    promised = sf.bounded(LINE)
    found = audit(planned(HONEST, promised), seed=1)
    assert (found.method, found.passed) == ("exact", True)
