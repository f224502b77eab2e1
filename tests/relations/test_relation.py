"""Relations are frozen values: they combine, say themselves in words, and are read back from plain data."""

from __future__ import annotations

import json
from datetime import timedelta

import numpy as np
import pytest

import sfumato as sf
from sfumato.relations import Length, Relation, relation_from_spec

EVERY_KIND = [
    sf.move(0.5),
    sf.move("500 m"),
    sf.move("0.5 km", metric="great-circle", of="origin"),
    sf.move("30 min", of="t"),
    sf.move(2, sources=[(0, 0), (1, 1)]),
    sf.move(2, sources="boundary"),
    sf.change("mode"),
    sf.anything(),
    sf.presence(),
    sf.presence() | sf.anything(),
    (sf.move("500 m") & sf.move("30 min", of="t")) | sf.change("mode") | sf.presence(),
]


@pytest.mark.parametrize("relation", EVERY_KIND, ids=str)
def test_description_survives_json(relation: Relation) -> None:
    again = relation_from_spec(json.loads(json.dumps(relation.spec())))
    assert again == relation
    assert hash(again) == hash(relation)
    assert again.fingerprint == relation.fingerprint
    assert str(again) == str(relation)


def test_relations_are_told_apart() -> None:
    assert len({relation.fingerprint for relation in EVERY_KIND}) == len(EVERY_KIND)


def test_a_fingerprint_does_not_change_between_versions() -> None:
    fingerprint = (sf.move("500 m") | sf.change("mode")).fingerprint
    assert fingerprint == "fa8fe455bc1fbc8a74f8c8982d41a6fe154608e923d127678d3c6a26a3efb133"


def test_order_and_repetition_do_not_matter() -> None:
    a, b, c = sf.move(1), sf.change("mode"), sf.move("1 h", of="t")
    assert a | b == b | a | a
    assert a & b == b & a
    assert (a | b) & c == (c & b) | (a & c)
    assert sf.anything() & a == sf.anything()


@pytest.mark.parametrize(
    ("given", "unit", "amount"),
    [
        ("500 m", "m", 500),
        ("0.5 km", "m", 500),
        ("90 s", "s", 90),
        ("30 min", "s", 1800),
        ("1 h", "s", 3600),
        ("2 days", "s", 172_800),
        ("1 week", "s", 604_800),
        ("30 minutes", "s", 1800),
        ("1 hour", "s", 3600),
        (timedelta(minutes=5), "s", 300),
        (np.timedelta64(5, "m"), "s", 300),
        (3, "own", 3),
        ("3", "own", 3),
    ],
)
def test_lengths_are_exact(given: object, unit: str, amount: int) -> None:
    assert Length.of(given) == Length(amount, unit)


def test_words_name_the_length_as_people_do() -> None:
    assert "moves by less than 500 m" in str(sf.move("0.5 km"))
    assert "moves by less than 90 min" in str(sf.move("1.5 h", of="t"))
    assert "(at once, or one of them alone)" in str(sf.move(1) & sf.change("mode"))


def test_what_is_left_of_it_where_attributes_are_absent() -> None:
    hide = (sf.move(1, of="place") & sf.move("1 h", of="t")) | sf.change("mode")
    assert hide.about({"place"}) == sf.move(1, of="place")
    assert hide.about({"mode", "t"}) == sf.move("1 h", of="t") | sf.change("mode")
    assert hide.about({"fare"}) is None
    assert (hide | sf.presence()).about({"fare"}) == sf.presence()


REFUSED = [
    (lambda: sf.move("500 yards"), "is no length"),
    (lambda: sf.move(0), "must be greater than zero"),
    (lambda: sf.move("-5 m"), "is no length"),
    (lambda: sf.move("5 months", of="t"), "is no length"),
    (lambda: sf.move(-timedelta(minutes=5), of="t"), "more than none"),
    (lambda: sf.move(np.timedelta64("NaT"), of="t"), "is not a length of time"),
    (lambda: sf.move("500 m", metric="euclidean"), "metres need metric="),
    (lambda: sf.move("5 min", metric="great-circle"), "great-circle is in metres"),
    (lambda: sf.move(5, metric="taxi"), "is not one of"),
    (lambda: sf.move("5 min", sources=[(0, 0)]), "this move is one in time"),
    (lambda: sf.move(5, sources="border"), "sources='border' must be"),
    (lambda: sf.change(5), "is not the name of a factor"),
    (lambda: sf.move(1) & sf.move(2), "would change by two rules at once"),
    (lambda: sf.presence() & sf.move(2), "presence at once with another change means nothing"),
    (lambda: sf.move(1, sources=[(0, 0)]) & sf.change("mode"), "say the sources in a term of its own"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_what_is_refused(call, words: str) -> None:
    with pytest.raises(sf.InvalidInput) as refused:
        call()
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"terms": []},
        {"terms": [{"kind": "teleport"}]},
        {"terms": [{"rules": []}]},
        {"terms": [{"rules": [{"kind": "change", "of": 3}]}]},
        {"terms": [{"rules": [{"kind": "move", "of": "x", "delta": "1e9", "unit": "own", "metric": "euclidean"}]}]},
        {"terms": [{"rules": [{"kind": "move", "of": "x", "delta": "-1", "unit": "own", "metric": "euclidean"}]}]},
        {"terms": [{"rules": [{"kind": "change", "of": "x"}, {"kind": "change", "of": "x"}]}]},
    ],
)
def test_damaged_descriptions_are_refused(spec: object) -> None:
    with pytest.raises(sf.InvalidInput):
        relation_from_spec(spec)
