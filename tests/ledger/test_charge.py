"""A guarantee is what is charged: by a ledger, by a stream, and by a step of one in the place of a ledger."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.ledger import Ledger
from sfumato.policies import threshold, unbounded
from sfumato.promise import SAMPLER_SLACK, Guarantee, Unit
from sfumato.promise.cost import replacement
from sfumato.publishing.account import require_account
from sfumato.publishing.step import StreamStep

LINE = sf.Line(0, 1, cells=5)
POLICY = threshold(LINE, theta=1)
GUARANTEE = Guarantee(policy=POLICY, epsilon=Fraction(1, 4))
PERSON = Guarantee(policy=POLICY, epsilon=Fraction(1, 4), unit="person", max_per_entity=2)


@pytest.mark.parametrize("guarantee", [GUARANTEE, PERSON])
@pytest.mark.parametrize("own", [POLICY, threshold(LINE, theta=2)])
def test_a_guarantee_costs_what_its_parts_did(place: str, guarantee: Guarantee, own: sf.policies.Policy) -> None:
    ledger = Ledger.create(place, epsilon=10, policy=own, unit=guarantee.unit, max_per_entity=guarantee.max_per_entity)
    parts = (guarantee.epsilon, guarantee.policy, guarantee.unit)
    quoted = ledger.quote(guarantee)
    assert quoted == ledger.quote(*parts, max_per_entity=guarantee.max_per_entity)
    whole = ledger.charge(guarantee, label="visits", release_id="a").entry
    by_parts = ledger.charge(*parts, label="visits", release_id="a", max_per_entity=guarantee.max_per_entity).entry
    assert replace(whole, time=by_parts.time) == by_parts
    assert (whole.cost, whole.unit, ledger.spent) == (quoted, guarantee.protects, 2 * quoted)


def test_a_stream_is_charged_a_guarantee(place: str) -> None:
    stream = Ledger.create(place, epsilon=1).stream(
        "visits", epsilon=1, window=3, policy=POLICY, unit="person", max_per_entity=2
    )
    receipt = stream.charge(1, PERSON, label="visits", release_id="a")
    assert (receipt.epsilon, receipt.remaining) == (Fraction(1, 4), Fraction(3, 4))
    with pytest.raises(InvalidInput, match="Nothing was drawn or recorded"):
        stream.charge(2, GUARANTEE, label="visits", release_id="b")  # says nothing about persons
    assert len(stream) == 1


def test_what_a_ledger_cannot_add_up_is_refused(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    stream = ledger.stream("visits", epsilon=1, window=3, policy=POLICY)
    for wrong, message in (
        (replace(GUARANTEE, slack=2 * SAMPLER_SLACK), "the slack would be forgotten. Nothing was drawn or recorded"),
        (replace(GUARANTEE, private=False), "seeded randomness"),
    ):
        with pytest.raises(InvalidInput, match=message):
            ledger.charge(wrong, label="visits", release_id="a")
        with pytest.raises(InvalidInput, match=message):
            stream.charge(1, wrong, label="visits", release_id="a")
    for more in ({"policy": POLICY}, {"unit": "record"}, {"max_per_entity": 2}, {"private": False}):
        with pytest.raises(InvalidInput, match="a guarantee says its policy, unit and max_per_entity itself"):
            ledger.charge(GUARANTEE, label="visits", release_id="a", **more)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="a guarantee says its policy, unit and max_per_entity itself"):
            stream.charge(1, GUARANTEE, label="visits", release_id="a", **more)  # type: ignore[arg-type]
    assert (ledger.spent, len(stream)) == (0, 0)


def test_what_can_be_charged_is_an_account_whatever_its_class(place: str) -> None:
    ledger = Ledger.create(place, epsilon=1)
    stream = ledger.stream("visits", epsilon=1, window=3, policy=POLICY)
    require_account(ledger)
    require_account(StreamStep(stream, 1))
    for other in (stream, "budget.db", None, Ledger):
        with pytest.raises(InvalidInput, match=r"is not a ledger. Open one with sf.Ledger\(path\)"):
            require_account(other)


def test_a_promise_follows_what_was_counted() -> None:
    come_and_go = Guarantee(policy=unbounded(LINE), epsilon=1)
    assert come_and_go.counted(None) == come_and_go
    bounded = come_and_go.counted(3)
    factor = replacement(come_and_go.policy, Unit("record", 3))
    assert (bounded.epsilon, bounded.replacement, bounded.protects) == (factor, factor, Unit("record", 3))
    assert factor > 1
    assert PERSON.counted(1).protects == Unit("person", 1)
    assert PERSON.loss == PERSON.epsilon
