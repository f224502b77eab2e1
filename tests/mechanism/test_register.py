"""Registering a mechanism: names that are taken or none, entries that are incomplete, promises that are not kept."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.linear import Identity
from sfumato.mechanism import VertexMechanism, mechanisms, registered

LINE = sf.unbounded(sf.Line(0, 1, cells=4))


def plain(policy, epsilon, **options):
    """The plain histogram, under a name of its own."""
    return VertexMechanism(name="mine", policy=policy, epsilon=epsilon, options=options, factors=(Identity(4),))


@pytest.fixture(autouse=True)
def forgotten():
    before = mechanisms()
    with registered():
        yield
    assert mechanisms() == before


@pytest.mark.parametrize("name", ["identity", "edge-haar", "strategy", "mine"])
def test_names_that_are_taken_are_refused(name):
    sf.register("mine", plain)
    with pytest.raises(sf.InvalidInput) as refusal:
        sf.register(name, plain)
    assert str(refusal.value) == f"name={name!r} is taken: choose another one. Nothing was registered."
    assert sf.plan(LINE, sf.histogram(), 1, mechanism="identity").mechanism.name == "identity"


@pytest.mark.parametrize(
    "name", ["", "1st", "my mechanism", "a--b", "-a", "a.b", "../a", "é", "x" * 65, 3, None, "a\n"]
)
def test_what_is_no_name_is_refused(name):
    with pytest.raises(sf.InvalidInput, match=r"is no name of a mechanism: .* Nothing was registered\.$"):
        sf.register(name, plain)
    assert "mine" not in mechanisms()


@pytest.mark.parametrize("wrong", [{"build": None}, {"candidates": [{}]}, {"tunings": {}}, {"needed": [1]}])
def test_incomplete_entries_are_refused(wrong):
    with pytest.raises(sf.InvalidInput, match=r"Nothing was registered\.$"):
        sf.register("mine", **{"build": plain, **wrong})
    assert "mine" not in mechanisms()


@dataclass(frozen=True, kw_only=True, eq=False)
class Boastful(VertexMechanism):
    """One whose loss is above its ε."""

    @property
    def privacy_loss(self):
        return 2 * self.epsilon


def made(kind=VertexMechanism, entry=1, **changed):
    def build(policy, epsilon, **options):
        given = {"name": "mine", "policy": policy, "epsilon": epsilon, "options": {}} | changed
        return kind(factors=(Weighted(entry),), **given)

    return build


class Weighted(Identity):
    """The counts, times a number."""

    def __init__(self, entry):
        super().__init__(4)
        self.entry = entry

    @property
    def largest_entry(self):
        return self.entry


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda policy, epsilon: None, "returned no mechanism"),
        (made(name="identity"), "of another name"),
        (made(epsilon=Fraction(100)), "of another epsilon"),
        (made(policy=sf.bounded(LINE.domain)), "of another policy"),
        (made(kind=Boastful), r"tells up to 2, above its epsilon=1\."),
        (made(options={"width": (1, 2)}), "do not build it again"),
        (made(options={"width": float("nan")}), "do not build it again"),
        (made(options={"width": object()}), "do not build it again"),
        (made(entry=1 << 12), "might not fit 64-bit integers"),
    ],
)
def test_what_is_built_must_be_what_was_asked_for(build, message):
    """Before anything is drawn: a wrong ε would be charged as the plan's, and a file would not be read again."""
    sf.register("mine", build)
    with pytest.raises(sf.InvalidInput, match=message):
        sf.plan(LINE, sf.histogram(), 1, mechanism="mine")
    assert "mine" in {other.name for other in sf.plan(LINE, sf.histogram(), 1).alternatives if other.error is None} or (
        sf.plan(LINE, sf.histogram(), 1).mechanism.name == "identity"
    )


def test_a_file_of_an_unregistered_mechanism_says_what_to_do(tmp_path):
    with registered():
        sf.register("mine", plain, needed=["width"])
        release = sf.plan(LINE, sf.histogram(), 1, mechanism="mine", width=3).publish(
            np.arange(4), source=sf.SeededSource(1)
        )
        path = release.save(tmp_path / "r")
        assert np.array_equal(sf.load(path).counts, release.counts)
    with pytest.raises(sf.FileFormatError) as refusal:
        sf.load(path)
    assert str(refusal.value) == (
        f"{str(path)!r} cannot be read as a release: it was made by mechanism='mine', which is not registered here. "
        "Import what registers it with sf.register, if you trust it, or install a newer sfumato; nothing is imported "
        "because a file names it."
    )


def test_options_that_a_file_needs_are_needed():
    sf.register("mine", plain, needed=["width"])
    with pytest.raises(sf.InvalidInput, match="do not build it again"):
        sf.plan(LINE, sf.histogram(), 1, mechanism="mine")


def test_tunings_are_weighed_where_it_is_named_without_options():
    sf.register("mine", plain, tunings=lambda policy, workload: [{"width": k} for k in (1, 2)])
    assert sf.plan(LINE, sf.histogram(), 1, mechanism="mine").mechanism.options == {"width": 1}


@dataclass(frozen=True, kw_only=True, eq=False)
class Understated(VertexMechanism):
    """One that believes in a smaller sensitivity than its policy's."""

    sensitivity = 1


def test_the_audit_finds_out_whoever_does_not_keep_his_word():
    policy = sf.bounded(sf.Line(0, 1, cells=4))
    sf.register("mine", made(kind=Understated))
    plan = sf.plan(policy, sf.histogram(), 1, mechanism="mine")
    found = sf.audit(plan, method="exact")
    assert not found.passed
    assert found.epsilon == pytest.approx(2)
    with pytest.raises(sf.AuditFailed):
        found.require()
