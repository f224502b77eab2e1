"""The auditor asks: forms are declared, there is one audit for each, and nothing else of a mechanism is known."""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from matrix import DOMAINS, built, policies
from zoo import LINE

import sfumato as sf
from sfumato import auditing
from sfumato.auditing import audit
from sfumato.auditing.exact.by_form import AUDITS
from sfumato.mechanism import Mechanism, build
from sfumato.mechanism.forms import Form

ONE = Fraction(1)
FILES = sorted(Path(auditing.__file__).parent.rglob("*.py"))
PUBLIC = {"Policy", "Plan", "Mechanism", "OrderMechanism", "Amounts"}  # what users hand in


def test_every_form_has_its_audit():
    assert set(AUDITS) == set(get_args(Form))


def test_every_mechanism_declares_its_form():
    domains = [domain for domain in DOMAINS if domain.size in (3, 6)]
    mechanisms = [made for domain in domains for _, policy in policies(domain) for made in built(policy)]
    assert {mechanism.name for mechanism in mechanisms} >= {"identity", "edges", "consistent", "sorted", "dawa"}
    assert {type(mechanism.form) for mechanism in mechanisms} == set(AUDITS)


class Stranger(Mechanism):
    """Says nothing about itself but its price, and publishes the counts of all cells but two."""

    @property
    def privacy_loss(self):
        return self.epsilon

    def run(self, counts, total, source):
        return np.where(np.arange(len(counts)) < 2, source.words(len(counts)) / 2.0**64, counts)


def test_a_mechanism_without_a_form_is_run():
    stranger = Stranger(name="stranger", policy=sf.unbounded(LINE), epsilon=ONE)
    assert stranger.form is None
    found = audit(stranger, seed=1, samples=200, seconds=1000.0)
    assert (found.method, found.passed) == ("statistical", False)
    assert "it does not say how its output comes about" in found.describe()
    with pytest.raises(sf.InvalidInput, match="does not say how its output comes about"):
        audit(stranger, method="exact")


@pytest.mark.parametrize("name", ["identity", "consistent", "sorted", "dawa"])
def test_a_form_that_belongs_to_another_mechanism_is_not_believed(name):
    """As when one wraps another, passes its form on, and does something more."""

    class Wrapper(Stranger):
        form = build(name, sf.unbounded(LINE), ONE).form

    wrapper = Wrapper(name="wrapper", policy=sf.unbounded(LINE), epsilon=ONE)
    found = audit(wrapper, seed=1, samples=200, seconds=1000.0)
    assert (found.method, found.passed) == ("statistical", False)


def nodes(kind):
    trees = [(path.name, ast.parse(path.read_text("utf-8"))) for path in FILES]
    return [(file, node) for file, tree in trees for node in ast.walk(tree) if isinstance(node, kind)]


def names(expression):
    """The last part of every name in an expression."""
    found = [node for node in ast.walk(expression) if isinstance(node, (ast.Name, ast.Attribute))]
    return {node.id if isinstance(node, ast.Name) else node.attr for node in found}


def test_the_auditor_knows_no_class_of_a_mechanism():
    """Of mechanisms it imports the protocol and the forms, of operators the protocol."""
    allowed = {"sfumato.mechanism": {"Mechanism"}, "sfumato.linear": {"Operator"}}
    for file, node in nodes(ast.ImportFrom):
        module = node.module or ""
        if module.startswith(("sfumato.mechanism", "sfumato.linear")) and module != "sfumato.mechanism.forms":
            assert {alias.name for alias in node.names} <= allowed.get(module, set()), (file, module)


def test_the_auditor_reads_no_private_attribute_and_no_option():
    for file, node in nodes(ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        assert own or not node.attr.startswith("_") or node.attr == "__name__", (file, node.attr)
        assert node.attr != "options", file


def test_the_auditor_asks_nothing_but_public_values_what_they_are():
    within = [node for _, node in nodes(ast.ImportFrom) if (node.module or "").startswith("sfumato.auditing")]
    own = {alias.name for node in within for alias in node.names} | {node.name for _, node in nodes(ast.ClassDef)}
    builtin = {"bool", "int", "float", "str", "bytes", "type", "tuple", "list", "set", "frozenset", "Mapping"}
    builtin |= {"Fraction", "integer", "np", "ndarray", "_NUMBERS"}
    for file, node in nodes(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            assert names(node.args[1]) <= PUBLIC | own | builtin, (file, ast.unparse(node))
