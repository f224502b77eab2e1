"""What an account knows of a record: its attributes, which of them change, and what is refused."""

from __future__ import annotations

import pytest

import sfumato as sf
from sfumato.relations import Record, record_from_spec
from sfumato.relations.record import belongs


def test_a_move_of_nothing_named_is_one_of_the_place() -> None:
    assert Record.of(sf.move(0.1)).relation.names == ("place",)
    assert Record.of(sf.move(0.1)) == Record.of(sf.move(0.1, of="place"))


@pytest.mark.parametrize(
    ("axis", "place", "fits"),
    [
        ("x", "place", True),
        ("z", "place", True),
        ("axis3", "place", True),
        ("origin_x", "origin", True),
        ("origin_x", "place", False),
        ("x", "origin", False),
        ("place", "place", False),
        ("place_x", "place", False),
        ("axis0", "place", False),
        ("xx", "place", False),
    ],
)
def test_which_axes_belong_to_a_place(axis: str, place: str, fits: bool) -> None:
    assert belongs(axis, place) is fits


def test_an_axis_changes_with_its_place() -> None:
    account = Record.of(sf.move(0.1, metric="chebyshev", sources=[(0, 0)]) | sf.change("mode"), ["hour"])
    assert account.changes("x") and account.changes("place") and account.changes("mode")
    assert not account.changes("hour")
    moves = next(term for term in account.relation.terms if "place" in term.names)
    (rule,) = account.rules(moves, "y")
    assert rule == sf.move(0.1, of="y").rules[0]  # the longest axis of any metric, and no sources along one alone
    assert account.rules(moves, "mode") == ()


def test_attributes_are_known_when_they_change_or_are_fixed() -> None:
    account = Record.of(sf.move(0.1) | sf.change("mode"), fixed=["hour", "home"])
    account.require_known(["place", "x", "mode", "hour", "home", "home_x"][:5])
    with pytest.raises(sf.InvalidInput, match="Did you mean 'hour'"):
        account.require_known(["hours"])
    for whole in (sf.anything(), sf.presence(), sf.anything() | sf.presence(), sf.anything() | sf.move(0.1)):
        Record.of(whole).require_known(["whatever"])
    with pytest.raises(sf.InvalidInput, match="neither changes nor holds fixed"):
        Record.of(sf.presence() | sf.move(0.1)).require_known(["whatever"])


def test_a_fixed_place_keeps_its_axes() -> None:
    Record.of(sf.change("mode"), fixed=["place"]).require_known(["x", "y"])


def test_presence_and_sources_let_a_record_vanish() -> None:
    assert Record.of(sf.presence() | sf.move(1)).may_vanish
    assert Record.of(sf.move(1, sources=[(0, 0)])).may_vanish
    assert not Record.of(sf.move(1)).may_vanish
    assert not Record.of(sf.anything()).may_vanish


@pytest.mark.parametrize(
    ("hide", "fixed", "said"),
    [
        (sf.move(1) | sf.change("x"), [], "'place' and its axis 'x', which change together"),
        (sf.move(1), ["place"], "fixed names 'place', and hide changes 'place'"),
        (sf.move(1), ["y"], "fixed names 'y', and hide changes 'place'"),
        (sf.change("x"), ["place"], "fixed names 'place', and hide changes 'x'"),
        (sf.anything(), ["mode"], "nothing has to be fixed"),
        (sf.presence(), ["mode"], "nothing has to be fixed"),
        (sf.move(1, sources="boundary"), [], "records have no boundary"),
        (sf.move(1), "mode", "must be a list of attributes"),
        ("move(1)", [], "is not a relation"),
    ],
)
def test_contradictions_are_refused(hide: sf.Relation, fixed: list[str], said: str) -> None:
    with pytest.raises(sf.InvalidInput, match=said):
        Record.of(hide, fixed)


def test_a_record_is_read_back() -> None:
    account = Record.of(sf.move("500 m") | (sf.move("30 min", of="t") & sf.change("mode")), fixed=["hour", "b"])
    assert record_from_spec(account.spec()) == account
    assert str(account).endswith("declared fixed: 'b', 'hour'")


@pytest.mark.parametrize(
    "damage",
    [
        None,
        [],
        {"hide": {}},
        {"hide": {"terms": []}, "fixed": []},
        {"hide": sf.move(1).spec(), "fixed": "mode"},
        {"hide": sf.move(1).spec(), "fixed": [3]},
        {"hide": sf.move(1).spec(), "fixed": ["mode"] * 2000},
        {"hide": sf.move(1).spec(), "fixed": ["place"]},
        {"hide": sf.move(1).spec(), "fixed": [], "more": 1},
    ],
)
def test_damaged_descriptions_are_refused(damage: object) -> None:
    with pytest.raises(sf.InvalidInput):
        record_from_spec(damage)
