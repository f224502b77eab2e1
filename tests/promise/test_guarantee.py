"""The guarantee: its words are a specification, so they are pinned; figures in them are rounded to the safe side."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.domain import Grid, Line
from sfumato.errors import FileFormatError, InvalidInput
from sfumato.policies import ABSENT, Policy, bounded, graph, threshold, unbounded, within
from sfumato.promise import SAMPLER_SLACK, Guarantee, Window
from sfumato.promise.wording import odds

LINE = Line(0, 1, cells=21)
POLICY = threshold(LINE, theta=2)


# ------------------------------------------------------------------ words


def test_the_words_of_a_promise_about_records() -> None:
    assert Guarantee(policy=POLICY, epsilon=0.5).describe() == (
        "Neighbours ('threshold'): one record moves by at most 2 cells (counted along the axes); the "
        "number of records is public.\nPromise (ε = 0.5): whatever else somebody knows, seeing this "
        "release changes the odds they give to two datasets that differ by one such step by at most a "
        "factor 1.65.\n\nA longer change is a path of such steps, and is hidden less the longer it "
        "is:\n   1 step: ε = 0.5, odds change by at most a factor 1.65\n   2 steps: ε = 1, odds change "
        "by at most a factor 2.72\n  10 steps: ε = 5, odds change by at most a factor 148.42\n  No two "
        "cells are more than 10 steps apart.\n\nUnit: one record. A person with several records is "
        "hidden less: k records that change together are hidden at k × ε. To promise something about "
        "persons, bound the records of each with max_per_entity.\n\nIn terms of standard differential "
        "privacy (Lemma 1):\n  replace-one (one record moves anywhere): ε = 5 (10 steps × 0.5)\n  "
        "add/remove: no guarantee, since not every record can appear or vanish along a path.\n\nWhat is "
        "not promised:\n  The total number of records is public: no step lets a record appear or "
        "vanish.\n  Presence is not hidden, a step is: that there is a record, and roughly where, may "
        "become known.\n  Records that depend on each other (the same person under two names, a family "
        "that travels together) can betray each other: the promise is about one unit's own change.\n  "
        "What the data show about everybody stays visible; that is what they are published for.\n  "
        "Several releases add up: two at ε are together one at 2ε. A ledger keeps the sum and its "
        "limit.\n  The noise is drawn to within 2^-100 of the exact distribution: in the usual notation there is a "
        "δ of at most (1 + e^ε) × 2^-100. It rests on AES-256 looking random."
    )


def paragraph(words: str, start: str) -> list[str]:
    """The lines of the paragraph that begins so."""
    return next(part for part in words.split("\n\n") if part.startswith(start)).splitlines()


def test_a_promise_about_distance_says_how_it_fades_in_the_units_of_the_domain() -> None:
    """A hundred cells of 0.01 and δ = 0.03, which reaches 3 cells. Below 2δ the gap is at most 5 cells: 6 cells on."""
    words = Guarantee(policy=within(Line(0, 1, cells=100), 0.03), epsilon=0.5).describe()
    assert paragraph(words, "A longer move") == [
        "A longer move is a path of such steps, and is hidden less the longer it is:",
        "  a move of less than 0.03: ε = 0.5, odds change by at most a factor 1.65",
        "  a move of less than 0.06: ε = 1, odds change by at most a factor 2.72",
        "  a move of less than 0.3: ε = 5, odds change by at most a factor 148.42",
        "  No two cells are more than 33 steps apart.",
    ]
    assert "replace-one (one record moves anywhere): ε = 16.5 (33 steps × 0.5)" in words
    assert "Presence is not hidden, a step is" in words


def test_lengths_that_no_move_in_the_domain_has_are_left_out() -> None:
    words = Guarantee(policy=within(LINE, 0.3), epsilon=1).describe()
    lines = paragraph(words, "A longer move")
    assert [line.split(":")[0] for line in lines[1:-1]] == ["  a move of less than 0.3", "  a move of less than 0.6"]
    lines = paragraph(Guarantee(policy=within(LINE, 0.7), epsilon=1).describe(), "A longer move")
    assert [line.split(":")[0] for line in lines[1:-1]] == ["  a move of less than 0.7"]


def test_a_promise_in_metres_says_so_and_where_it_holds() -> None:
    """Rows and columns of 111.2 m at the equator; δ = 300 m reaches 3 of them, 3,000 m reach 27."""
    grid = Grid(bounds=(0, 0, 0.1, 0.1), shape=(100, 100))
    words = Guarantee(policy=within(grid, 300, metric="great-circle"), epsilon=1).describe()
    lines = paragraph(words, "A longer move")
    assert lines[1] == "  a move of less than 300 m: ε = 1, odds change by at most a factor 2.72"
    assert lines[2] == "  a move of less than 600 m: ε = 2, odds change by at most a factor 7.39"
    assert lines[3].startswith("  a move of less than 3000 m: ε = 9, odds")
    assert "Neighbours ('within'): one record moves by less than 300 m (great-circle, inside the bounds);" in words
    assert (
        "  Distances are promised inside the bounds. Records beyond them are counted at the nearest end of each axis, "
        "where a short move may have become a long one."
    ) in words
    assert "Distances are promised" not in Guarantee(policy=within(grid, 0.003), epsilon=1).describe()


def test_with_sources_presence_is_hidden_as_far_as_the_steps_to_nothing_go() -> None:
    """Twenty-one cells of 1/21, δ = 0.1 reaches 3 of them; a line over the first cells, joined as far as cell 4."""
    words = Guarantee(policy=within(LINE, 0.1, sources=[[(0.0,), (0.1,)]]), epsilon=1).describe()
    assert "appears or vanishes within 0.1 of the line." in words
    assert "add/remove (one record comes or goes): ε = 7 (7 steps × 1)" in words
    assert "Presence is hidden only as far as the steps to 'not there' go (see add/remove)." in words


def test_a_promise_about_a_person_says_that_the_number_of_records_is_public() -> None:
    words = Guarantee(policy=bounded(LINE), epsilon=1, unit="person", max_per_entity=3).describe()
    assert (
        "to two datasets in which each counted record of one person differs by at most one such step by "
        "at most a factor 2.72."
    ) in words
    assert (
        "Unit: one person, of whom at most 3 records are counted. Each of them may take one step, all "
        "at once. No step lets a record appear or vanish, so how many records a person has is public."
    ) in words
    assert "replace-one (each counted record of one person moves anywhere): ε = 1 (1 step × 1)" in words
    assert "2 steps:" not in words
    assert "No two cells are more than 1 step apart." in words


def test_a_promise_about_a_person_who_may_be_absent_says_what_is_covered() -> None:
    words = Guarantee(policy=unbounded(LINE), epsilon=1, unit="person", max_per_entity=1).describe()
    assert (
        "Unit: one person, of whom at most 1 record is counted. Each of them may take one step, all at "
        "once. A person who has more records than that is covered when each of them moves between "
        "cells, or when all of them come or go; not when some of them go and others take their place in "
        "the count."
    ) in words
    assert "replace-one (each counted record of one person moves anywhere): ε = 2 (2 steps × 1)" in words
    assert "add/remove (each counted record of one person comes or goes): ε = 1 (1 step × 1)" in words
    assert "total number of records is public" not in words


def test_a_promise_about_records_of_bounded_persons_gives_the_persons_epsilon() -> None:
    words = Guarantee(policy=bounded(LINE), epsilon=0.5, max_per_entity=3).describe()
    assert (
        "Unit: one record. At most 3 records of each person were counted, so all that was counted of "
        "one person is hidden at 3 × ε = 1.5."
    ) in words


def test_a_policy_in_parts_says_that_their_totals_are_public() -> None:
    policy = graph(LINE, edges=[(0, 1), (1, ABSENT)], publish_component_totals=True)
    words = Guarantee(policy=policy, epsilon=1).describe()
    assert "Some cells are joined by no path: a change between them is not hidden." in words
    assert "replace-one: no guarantee, since some cells are joined by no path." in words
    assert "Presence is hidden only as far as the steps to 'not there' go (see add/remove)." in words
    assert (
        "The policy falls into parts that no step joins. How many records are in a part is public, "
        "except in parts where records may appear and vanish."
    ) in words


def test_seeded_randomness_is_said_loudly_first_and_last() -> None:
    seeded = Guarantee(policy=POLICY, epsilon=1, private=False)
    loud = (
        "NOT PRIVATE: made with seeded randomness, for tests and papers. Whoever knows or guesses the "
        "seed can take the noise away. Do not publish it."
    )
    assert seeded.describe().startswith(loud + "\n\nWith unpredictable randomness the promise would be:\n\nNeighbours")
    assert seeded.describe().endswith(loud)
    assert str(seeded).startswith("NOT PRIVATE (seeded randomness). Would be: ε = 1 per record;")


def test_the_line_of_a_guarantee() -> None:
    assert str(Guarantee(policy=unbounded(LINE), epsilon=0.3, unit="person", max_per_entity=2)) == (
        "ε = 0.3 per person, at most 2 counted of each person; policy 'unbounded': one record is added "
        "or removed, wherever it lies (add/remove)"
    )


# ------------------------------------------------------------------ over time


def test_the_words_of_a_release_of_a_stream() -> None:
    """Both promises, by hand: e^0.3 = 1.3499 and e^1, e^2, e^10 = 22026.47, all rounded up."""
    words = Guarantee(policy=POLICY, epsilon=0.3, window=Window.of(7), window_epsilon=1).describe()
    assert paragraph(words, "Neighbours")[1] == (
        "Promise (ε = 0.3): whatever else somebody knows, seeing this release changes the odds they give to two "
        "datasets that differ by one such step by at most a factor 1.35."
    )
    assert paragraph(words, "Over time") == [
        "Over time (windows of 7 steps, ε = 1): this release is one of a stream, and what is said here covers all "
        "releases of that stream together, however many there will be. A change of at most one record at a time that "
        "is confined to 7 consecutive time steps, and is at most one step of the policy ('threshold') each time, is "
        "hidden at ε = 1. What lasts longer is hidden less:",
        "  7 consecutive time steps (one window): ε = 1, odds change by at most a factor 2.72",
        "  14 consecutive time steps (two windows): ε = 2, odds change by at most a factor 7.39",
        "  70 consecutive time steps (ten windows): ε = 10, odds change by at most a factor 22,027",
        "  Who stays in the data for good is not hidden as a whole: the sum grows with every window.",
        "  A change of k steps of the policy at a time is hidden at k times these figures.",
    ]
    assert paragraph(words, "In terms of standard") == [
        "In terms of standard differential privacy (Lemma 1), this release alone:",
        "  replace-one (one record moves anywhere): ε = 3 (10 steps × 0.3)",
        "  add/remove: no guarantee, since not every record can appear or vanish along a path.",
        "  and all releases of a window of 7 steps together:",
        "  replace-one (one record moves anywhere): ε = 10 (10 steps × 1)",
        "  add/remove: no guarantee, since not every record can appear or vanish along a path.",
    ]
    assert paragraph(words, "What is not promised")[-2:] == [
        "  The promise over time is about this stream alone: other releases about the same people, and other streams, "
        "add up with it.",
        "  The noise is drawn to within 2^-100 of the exact distribution: in the usual notation there is a δ of at "
        "most (1 + e^ε) × 2^-100, for each release of a window and each level that it is raised to. It rests on "
        "AES-256 looking random.",
    ]
    assert "Several releases add up" not in words


def test_the_words_of_a_stream_about_persons_and_clock_time() -> None:
    window = Window.of(timedelta(hours=24))
    kept = Guarantee(
        policy=bounded(LINE), epsilon="1/24", unit="person", max_per_entity=3, window=window, window_epsilon=1
    )
    assert paragraph(kept.describe(), "Over time") == [
        "Over time (windows of 24 hours, ε = 1): this release is one of a stream, and what is said here covers all "
        "releases of that stream together, however many there will be. A change of one person's counted records that "
        "is confined to less than 24 hours, and is at most one step of the policy ('bounded') for each of the at most "
        "3 records counted at a time, is hidden at ε = 1. What lasts longer is hidden less:",
        "  less than 24 hours (one window): ε = 1, odds change by at most a factor 2.72",
        "  less than 2 days (two windows): ε = 2, odds change by at most a factor 7.39",
        "  less than 10 days (ten windows): ε = 10, odds change by at most a factor 22,027",
        "  Who stays in the data for good is not hidden as a whole: the sum grows with every window.",
    ]
    assert str(kept).startswith(
        "ε = 1/24 per person, at most 3 counted of each person, of ε = 1 for every window of 24 hours; policy 'bounded'"
    )


@pytest.mark.parametrize("window", [Window.of(1), Window.of(7), Window.of(timedelta(hours=24))])
@pytest.mark.parametrize("more", [{}, {"unit": "person", "max_per_entity": 2}, {"private": False}])
def test_a_guarantee_over_time_survives_a_file(window: Window, more: dict[str, object]) -> None:
    kept = Guarantee(policy=POLICY, epsilon="1/3", window=window, window_epsilon="2/3", **more)  # type: ignore[arg-type]
    again = Guarantee.from_dict(json.loads(json.dumps(kept.to_dict())))
    assert again == kept
    assert (again.window, again.window_epsilon, again.describe()) == (window, Fraction(2, 3), kept.describe())
    assert kept.to_dict()["window"] == {"kind": window.kind, "size": window.size}


def test_a_guarantee_without_a_window_is_written_and_read_as_ever() -> None:
    data = Guarantee(policy=POLICY, epsilon="1/3").to_dict()
    assert sorted(data) == ["epsilon", "max_per_entity", "policy", "private", "slack", "unit", "window"]
    assert data["window"] is None
    assert Guarantee.from_dict(data).window_epsilon is None


def test_a_release_of_a_stream_is_raised_up_to_what_its_window_holds() -> None:
    kept = Guarantee(policy=POLICY, epsilon=0.3, window=Window.of(7), window_epsilon=1)
    assert replace(kept, epsilon=1).window_epsilon == 1
    with pytest.raises(InvalidInput, match=r"^epsilon=1\.1 is more than the 1 that a whole window may spend"):
        replace(kept, epsilon=1.1)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=50))
def test_odds_are_rounded_to_the_safe_side(epsilon: Fraction) -> None:
    words = odds(epsilon)
    if words.endswith("practically not hidden"):
        assert epsilon > 13.8
    else:
        factor = float(words.removeprefix("a factor ").replace(",", ""))
        assert math.exp(epsilon) <= factor <= math.exp(epsilon) * 1.01 + 0.01


# ------------------------------------------------------------------ data


def test_epsilon_is_exact_and_prints_as_a_decimal() -> None:
    guarantee = Guarantee(policy=POLICY, epsilon=0.1)
    assert guarantee.epsilon == Fraction(1, 10)
    assert guarantee.epsilon == 0.1
    assert str(guarantee.epsilon) == "0.1"
    assert guarantee.at(3) == 0.3
    assert guarantee.slack == SAMPLER_SLACK == Fraction(1, 2**100)


def test_a_guarantee_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Guarantee(policy=POLICY, epsilon=1).epsilon = Fraction(2)  # type: ignore[misc]


@pytest.mark.parametrize("policy", [POLICY, bounded(LINE), unbounded(LINE), graph(Line(0, 1, cells=2), edges=[(0, 1)])])
@pytest.mark.parametrize("more", [{}, {"unit": "person", "max_per_entity": 2}, {"private": False}])
def test_a_guarantee_survives_a_file(policy: Policy, more: dict[str, object]) -> None:
    guarantee = Guarantee(policy=policy, epsilon="1/3", **more)  # type: ignore[arg-type]
    again = Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict())))
    assert again == guarantee
    assert again.describe() == guarantee.describe()


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "within"}, "policy=str is not a policy. Build one, such as sf.within(grid, delta=0.01)."),
        ({"epsilon": 0}, "epsilon=0 must be greater than zero. Nothing was drawn or recorded."),
        ({"unit": "household"}, "unit='household' is not known. Use 'record' or 'person'."),
        (
            {"unit": "person"},
            "unit='person' needs max_per_entity, the largest number of records counted of one person. Pass "
            "max_per_entity=1 or more, or use unit='record'.",
        ),
        ({"max_per_entity": 0}, "max_per_entity=0 must be a whole number of at least 1."),
        ({"slack": 1}, "slack=1 must be at least 0 and below 1: it is a probability."),
        (
            {"window": 7, "window_epsilon": 1},
            "window=7 is not a window. Use one, such as Window.of(7), together with window_epsilon; or neither, for a "
            "release that stands alone.",
        ),
        (
            {"window_epsilon": 1},
            "window=None is not a window. Use one, such as Window.of(7), together with window_epsilon; or neither, for "
            "a release that stands alone.",
        ),
        (
            {"window": Window.of(7)},
            "window_epsilon is missing: it is what every window of 7 steps spends at most. Pass the epsilon of the "
            "stream.",
        ),
        (
            {"window": Window.of(7), "window_epsilon": 0},
            "window_epsilon=0 must be greater than zero. Nothing was drawn or recorded.",
        ),
        (
            {"window": Window.of(7), "window_epsilon": 0.5},
            "epsilon=1 is more than the 0.5 that a whole window may spend (window_epsilon).",
        ),
        ({"private": "yes"}, "private='yes' must be True or False."),
    ],
)
def test_what_makes_no_guarantee_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Guarantee(**({"policy": POLICY, "epsilon": 1} | change))  # type: ignore[arg-type]
    assert str(caught.value) == message


FIELDS = "epsilon, max_per_entity, policy, private, slack, unit, window"
END = " The file is damaged or from a newer sfumato."


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda d: d | {"delta": 0}, f"it does not have exactly the fields {FIELDS}."),
        (lambda d: {k: v for k, v in d.items() if k != "slack"}, f"it does not have exactly the fields {FIELDS}."),
        (lambda _: ["epsilon"], f"it does not have exactly the fields {FIELDS}."),
        (lambda d: d | {"epsilon": 1.5}, "every epsilon and slack must be fractions written as text."),
        (lambda d: d | {"epsilon": "-1/2"}, "epsilon='-1/2' must be greater than zero. Nothing was drawn or recorded."),
        (lambda d: d | {"policy": "bounded"}, "its policy is no description."),
        (lambda d: d | {"private": 1}, "private=1 must be True or False."),
        (lambda d: d | {"window_epsilon": None}, f"it does not have exactly the fields {FIELDS}."),
        (lambda d: d | {"window": 3}, f"it does not have exactly the fields {FIELDS}, window_epsilon."),
        (
            lambda d: d | {"window": 3, "window_epsilon": "1/1"},
            "window: it does not have exactly the fields kind, size.",
        ),
        (
            lambda d: d | {"window": {"kind": "moons", "size": 1}, "window_epsilon": "1/1"},
            "kind='moons' is not a kind of window. Use 'steps' or 'time'.",
        ),
        (
            lambda d: d | {"window": {"kind": "steps", "size": 1.5}, "window_epsilon": "1/1"},
            "window=1.5 must be a whole number of at least 1.",
        ),
        (
            lambda d: d | {"window": {"kind": "steps", "size": 7}, "window_epsilon": 1},
            "every epsilon and slack must be fractions written as text.",
        ),
    ],
)
def test_a_damaged_guarantee_is_refused(damage: Callable[[object], dict[str, object]], why: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        Guarantee.from_dict(damage(Guarantee(policy=POLICY, epsilon=1).to_dict()))
    assert str(caught.value) == f"The guarantee cannot be read: {why}{END}"


def test_a_file_cannot_name_code_to_import() -> None:
    data = Guarantee(policy=POLICY, epsilon=1).to_dict()
    data["policy"] = data["policy"] | {"name": "os.system"}
    with pytest.raises(FileFormatError, match=r"^The guarantee cannot be read: the policy 'os\.system' is not known"):
        Guarantee.from_dict(data)
