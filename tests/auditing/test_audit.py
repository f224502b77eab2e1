"""The verb: exact losses by hand, refusals, and the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import sfumato as sf
from sfumato.app.audit import audit as command
from sfumato.auditing import audit
from sfumato.mechanism import build

ONE = Fraction(1)
LINE = sf.Line(0, 1, cells=4)


def test_a_plan_is_audited_exactly_and_says_so():
    found = audit(sf.plan(sf.threshold(LINE, 2), sf.ranges(), "1/2", mechanism="edges"), seed=1)
    assert (found.method, found.epsilon, found.promised, found.passed) == (
        "exact",
        Fraction(1, 2),
        Fraction(1, 2),
        True,
    )
    assert found.require() is found
    assert bool(found)
    u, v = found.witness.edge
    assert abs(u - v) == 2  # two edges at rate 1/4 each
    before, after = (np.array(counts) for counts in found.witness.databases)
    assert np.abs(after - before).sum() == 2
    assert found.describe().splitlines()[:2] == [
        "edges keeps its promise of ε = 0.5: its loss is 0.5.",
        "Method     exact: the loss itself, in whole numbers and fractions.",
    ]
    assert "5 of 5 changes of a record" in found.describe()


def test_too_large_a_promise_is_not_kept_by_luck():
    """Twice the noise that is needed: the loss is half the promise, and the audit says half."""
    plan = sf.plan(sf.bounded(LINE), sf.histogram(), 1, mechanism="identity")
    found = audit(replace(plan, mechanism=replace(plan.mechanism, epsilon=Fraction(1, 2))), seed=1)
    assert (found.epsilon, found.passed) == (Fraction(1, 2), True)


def test_a_persons_records_change_at_once():
    plan = sf.plan(sf.unbounded(LINE), sf.histogram(), 1, mechanism="identity", max_per_entity=3)
    assert plan.mechanism.epsilon == Fraction(1, 3)
    assert audit(plan, seed=1).epsilon == 1


def test_a_single_cell_has_nothing_to_hide():
    found = audit(build("edges", sf.bounded(sf.Line(0, 1, cells=1)), ONE))
    assert (found.epsilon, found.looked_at) == (0, ("no change to hide",))


def test_public_counts_take_part():
    counts = np.array([5, 0, 2, 9])
    found = audit(build("sorted", sf.bounded(LINE), ONE), counts=counts, seed=1)
    assert found.epsilon == 1
    assert found.method == "exact"


# --- words and refusals -----------------------------------------------------------------------------------------------


PLAN = sf.plan(sf.threshold(LINE, 1), sf.ranges(), 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"subject": "edges"},
            "subject=str cannot be audited. Nothing was run. Give a plan from sf.plan(…), a mechanism, a mechanism "
            "for order statistics, or a function with epsilon=… and policy=… or inputs=….",
        ),
        ({"samples": 0}, "samples=0 must be a whole number of at least 1."),
        ({"seconds": 0}, "seconds=0 must be greater than zero. Nothing was run."),
        ({"confidence": 1.0}, "confidence=1.0 must be at least 0.5 and below 1. Nothing was run."),
        ({"seed": -1}, "seed=-1 must be a whole number of at least 0, or left out. Nothing was run."),
        ({"method": "fast"}, "method='fast' must be 'exact', 'statistical', or left out. Nothing was run."),
        (
            {"counts": [1.5] * 4},
            "counts must be public whole numbers of at least 0 in the domain's shape (4,). Nothing was run.",
        ),
        (
            {"subject": build("dawa", sf.unbounded(sf.Line(0, 1, cells=40)), ONE), "method": "exact"},
            "method='exact' does not fit mechanism='dawa': its runs can be chosen in too many ways to look at each. "
            "Nothing was concluded. Leave method out for a statistical audit.",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_audited_is_refused(given, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        audit(given.pop("subject", PLAN), **given)
    assert str(refusal.value) == message


def test_large_domains_are_refused():
    plan = sf.plan(sf.threshold(sf.Line(0, 1, cells=5000), 1), sf.ranges(), 1)
    with pytest.raises(sf.TooLarge) as refusal:
        audit(plan)
    assert str(refusal.value) == (
        "an audit takes at most 4,096 cells, and this domain has 5,000. Nothing was run. Audit the same policy and "
        "mechanism on fewer cells: what is wrong shows there."
    )


def test_the_command_line_audits_a_plan():
    app = typer.Typer()
    app.command()(command)
    arguments = ["--bounds", "0,1", "--shape", "12", "--delta", "0.2", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["passed"] is True
    told = CliRunner().invoke(app, arguments[:-1])
    assert "keeps its promise of ε = 1" in told.output
