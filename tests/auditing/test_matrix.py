"""Everything is audited: every mechanism under every policy on domains of awkward shapes; exactly, where possible."""

from __future__ import annotations

import pytest
from matrix import DOMAINS, PRODUCTS, built, policies, related

import sfumato as sf
from sfumato.auditing import audit

CASES = [
    pytest.param(policy, id=f"{label}{policy.domain.shape}") for domain in DOMAINS for label, policy in policies(domain)
]
RELATED = [
    pytest.param(policy, id=f"{label}{policy.domain.shape}") for domain in PRODUCTS for label, policy in related(domain)
]
SECONDS = 1.0  # of computing, in which a few do not reach every edge; they look at edges of all kinds first


@pytest.mark.slow
@pytest.mark.parametrize("policy", CASES)
def test_every_mechanism_keeps_its_promise_exactly(policy):
    """The loss is at most what the mechanism says of itself, and that is at most ε."""
    for mechanism in built(policy):
        found = audit(mechanism, seed=1, seconds=SECONDS)
        assert found.method in ("exact", "argument"), (mechanism.name, mechanism.options, found)
        assert found.passed, (mechanism.name, mechanism.options, found)
        assert found.epsilon <= mechanism.privacy_loss, (mechanism.name, mechanism.options, found)


@pytest.mark.slow
@pytest.mark.parametrize("policy", RELATED)
def test_every_mechanism_keeps_its_promise_under_relations_on_products(policy):
    """The same, half a second each: over edges of all kinds, and over changes made anew from the relation's words."""
    for mechanism in built(policy):
        found = audit(mechanism, seed=1, seconds=0.5)
        assert found.method in ("exact", "argument"), (mechanism.name, mechanism.options, found)
        assert found.passed, (mechanism.name, mechanism.options, found)
        assert found.epsilon <= mechanism.privacy_loss, (mechanism.name, mechanism.options, found)


def test_dawa_under_add_remove_and_replace_one_together_is_at_half_of_epsilon():
    """Either alone was right; together a replaced record cost twice the promise. Noise that comes first is audited
    exactly; runs that come first by an argument.
    """
    for domain in (sf.Line(0, 1, cells=3), sf.Line(0, 1, cells=2, name="place") * sf.Categories(["a", "b"], name="m")):
        policy = (sf.presence() | sf.anything()).on(domain)
        for options, method in (({}, "exact"), ({"queries": "cells"}, "argument"), ({"queries": "ranges"}, "argument")):
            plan = sf.plan(policy, sf.histogram(), epsilon=1, mechanism="dawa", **options)
            found = audit(plan, seed=1, seconds=5.0)
            assert found.method == method
            assert found.passed, found


@pytest.mark.slow
@pytest.mark.parametrize("policy", CASES[::8])
def test_no_run_proves_a_broken_promise(policy):
    """DAWA both ways, 200 runs a side, eleven policies: a false alarm at confidence 1 - 10⁻⁸ once in 4·10⁶ runs."""
    for mechanism in built(policy, ["dawa"]):
        found = audit(mechanism, seed=2, samples=200, seconds=SECONDS, confidence=1 - 1e-8, method="statistical")
        assert found.method == "statistical"
        assert found.passed, (mechanism.name, found)


def test_every_mechanism_is_audited_somewhere():
    seen: set[str] = set()
    for policy in (policy for domain in DOMAINS for _, policy in policies(domain)):
        seen |= {mechanism.name for mechanism in built(policy, sorted(set(sf.mechanisms()) - seen))}
    assert seen == set(sf.mechanisms())
