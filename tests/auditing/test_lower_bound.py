"""The statistical audit: no alarm where nothing is wrong, and the pair that shows most is found."""

from __future__ import annotations

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.auditing import audit
from sfumato.mechanism import build

ONE = Fraction(1)
LINE = sf.Line(0, 1, cells=4)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "samples"), [("dawa", 400), ("consistent", 1_000), ("identity", 1_000)])
def test_runs_never_prove_more_than_the_promise_of_what_is_right(name, samples):
    """Four audits at 1 - 10⁻⁷ each: the bound stays at or below ε but once in 2·10⁶ runs of this test."""
    mechanism = build(name, sf.threshold(sf.Line(0, 1, cells=8), 1), Fraction(1, 2))
    for seed in range(4):
        found = audit(mechanism, seed=seed, samples=samples, seconds=100, confidence=1 - 1e-7, method="statistical")
        assert found.method == "statistical"
        assert found.passed, found


@pytest.mark.slow
def test_an_alarm_is_as_rare_as_the_confidence_says():
    """Noise that spends all of ε on two cells, 60 audits at confidence 0.9: at most one in ten may say that it breaks
    its promise, and more than 21 do once in ten million times.
    """
    mechanism = build("edges", sf.bounded(sf.Line(0, 1, cells=2)), ONE)
    audits = (
        audit(mechanism, seed=seed, samples=300, seconds=100, confidence=0.9, method="statistical")
        for seed in range(60)
    )
    assert sum(not found.passed for found in audits) <= 21


@pytest.mark.slow
@pytest.mark.parametrize("bare", [1, 3])
def test_the_pair_that_shows_most_is_found(bare):
    """One cell of four gets no noise: of seven pairs, those that touch it are told apart for certain."""

    class OneBareCell(type(build("identity", sf.unbounded(LINE), ONE))):
        def run(self, counts, total, source):
            noisy = super().run(counts, total, source)
            noisy[bare] = counts[bare]
            return noisy

    mechanism = build("identity", sf.unbounded(LINE), ONE)
    fields = {name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__}
    found = audit(OneBareCell(**fields), seed=1, samples=3_000, seconds=1000.0)
    assert (found.method, found.witness.edge) == ("statistical", (bare, -1))
    assert found.epsilon > 4
