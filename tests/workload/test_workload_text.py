"""A workload is one line of text that reads back as itself; what is none is refused where it stands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf

SPACE = sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4)) * sf.Categories(["bus", "bike"], name="mode")
NAMES = st.text(min_size=1, max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
BOXES = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=3)
PLAIN = st.sampled_from([sf.ranges(), sf.histogram(), sf.prefixes(), sf.scales(), sf.levels()])
ONE = PLAIN | st.builds(sf.ranges, BOXES)
TABLES = st.lists(NAMES | st.lists(NAMES, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3, unique_by=str)
WEIGHTS = st.fractions(min_value=0, max_value=10**6, max_denominator=10**6).filter(bool)


@st.composite
def workloads(draw: st.DrawFn) -> sf.Workload:
    asked = st.dictionaries(NAMES, ONE, max_size=3).map(lambda along: sf.ask(**along))
    tables = st.builds(sf.marginals, st.integers(1, 5)) | st.builds(lambda names: sf.marginals(names), NAMES)
    found = draw(ONE | asked | tables)
    for _ in range(draw(st.integers(0, 2))):
        found = found + draw(WEIGHTS) * draw(ONE | asked | tables)
    return found


@pytest.mark.slow  # workloads of any depth
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(workloads())
def test_every_workload_survives_its_text(workload: sf.Workload) -> None:
    text = workload.to_text()
    again = sf.workload_from_text(text)
    assert again.to_text() == text
    assert again.spec() == workload.spec()
    assert again.describe() == workload.describe()


def test_given_ranges_are_read_to_the_last_bit() -> None:
    boxes = np.random.default_rng(4).normal(0, 1e3, (50, 4)) * 10.0 ** np.arange(-2, 2)
    again = sf.workload_from_text(sf.ranges(boxes).to_text())
    assert np.array_equal(again.ranges, boxes)


@pytest.mark.parametrize(
    ("text", "workload"),
    [
        ("ranges()", sf.ranges()),
        ("sf.histogram()", sf.histogram()),
        ("ask(place=ranges(), mode=histogram())", sf.ask(place=sf.ranges(), mode=sf.histogram())),
        ("ask()", sf.ask()),
        ("ranges()+2*marginals('mode', ('x', 'mode'))", sf.ranges() + 2 * sf.marginals("mode", ("x", "mode"))),
        ("ranges() * 0.5", 0.5 * sf.ranges()),
        ('"1/3" * (ranges() + 3 * histogram())', "1/3" * (sf.ranges() + 3 * sf.histogram())),
        ("marginals(2)", sf.marginals(2)),
        ('ask("hour of day"=prefixes())', sf.ask(**{"hour of day": sf.prefixes()})),
        ("ranges([(0, -1.5), [2, 3e0]])", sf.ranges([(0, -1.5), (2, 3)])),
        ("ranges([(-1e999, 5)])", sf.ranges([(-np.inf, 5)])),
    ],
)
def test_what_people_write_is_read(text: str, workload: sf.Workload) -> None:
    found = sf.workload_from_text(text)
    assert (found.spec(), found.to_text()) == (workload.spec(), workload.to_text())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "range()",
            "at character 1: 'range' is none of ask, marginals, ranges, histogram, prefixes, scales, levels. Did",
        ),
        ("ranges(1, 2)", "at character 11: ranges(…) takes given"),
        ("histogram(1)", "at character 11: histogram(…) takes nothing"),
        ("ask(place=5)", "at character 1: place=5 is not a workload"),
        ("ask(ranges())", "at character 5: ask(…) takes name=…"),
        ("ranges() * ranges()", "at character 10: workloads are added up with +"),
        ("ranges() + 2", "at character 10: 2 stands where a workload is expected"),
        ("2 + 3", "2 stands where a workload is expected"),
        ("'a' * 1000000000000", "1000000000000 stands where a workload is expected"),
        ("-1 * ranges()", "at character 4: the weight of a workload=-1 must be greater than zero"),
        ("'x' * ranges()", "at character 5: the weight of a workload='x' is not a finite number"),
        ("ranges(['a'])", "at character 1: ranges must be numbers"),
        ("ranges([[" + "9" * 400 + ", 1]])", "at character 1: ranges must be"),
        ("marginals()", "none was given"),
        ("marginals(ranges())", "is no such table"),
        ("marginals('a', 2.5)", "is no such table"),
        ("queries([[1]])", "'queries' is none of"),
        ("ranges() | histogram()", "at character 10: '|' stands where '+', '*' or the end is expected"),
        (" + ".join(["ranges()"] * 65), "at most 64 terms"),
        ("ask(a=" * 40, "more than 32 deep"),
        ("ranges() + ", "the text ends where"),
        ("ranges() + -", "the text ends where a number after '-' is expected"),
    ],
)
def test_what_is_refused_says_where(text: str, words: str) -> None:
    with pytest.raises(sf.InvalidInput) as refused:
        sf.workload_from_text(text)
    assert words in str(refused.value)
    assert len(str(refused.value)) < 500


def test_a_matrix_stays_in_python() -> None:
    with pytest.raises(sf.InvalidInput, match="1 given linear queries cannot be written as text"):
        (sf.ranges() + sf.queries([[1, 0, 1]])).to_text()


def test_what_was_read_plans_alike() -> None:
    asked = sf.ask(place=sf.ranges(), mode=sf.histogram()) + 2 * sf.marginals("mode")
    policy = sf.bounded(SPACE)
    again = sf.workload_from_text(asked.to_text())
    assert sf.plan(policy, again, epsilon=1).expected_error == sf.plan(policy, asked, epsilon=1).expected_error
