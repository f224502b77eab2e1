"""Answers by the names of axes and factors: against sums written out cell by cell, in every way one can ask."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from released import CUBE, LINE, MEANS, known

import sfumato as sf
from sfumato.release import asking

PLACE = sf.Grid(bounds=(0, 0, 4, 3), shape=(4, 3))
DAYS = sf.Times("2026-01-01", "2026-01-05", every="1 day", name="t")
MODE = sf.Categories(["bus", "bike", "car"], name="mode")
WEEK = sf.Cycle("weekday")
SPACE = PLACE * DAYS * MODE * WEEK
COUNTS = np.random.default_rng(5).integers(0, 50, SPACE.shape)
RELEASE = known(SPACE, COUNTS)


def at(*weights: Any) -> float:
    """The sum over all cells, each weighted by the shares along every axis."""
    along = [np.ones(n) if w is None else np.asarray(w, float) for w, n in zip(weights, SPACE.shape, strict=True)]
    return float((COUNTS * reduce(np.multiply.outer, along)).sum())


# ---------------------------------------------------------------------------------------------- by hand


def test_what_is_not_named_is_summed_over() -> None:
    assert RELEASE.answer().value == COUNTS.sum()
    assert RELEASE.answer(mode="bike").value == at(None, None, None, [0, 1, 0], None)
    assert RELEASE.answer((1, 0, 3, 2)).value == at([0, 1, 1, 0], [1, 1, 0], None, None, None)
    assert RELEASE.answer((1, 0, 3, 2), mode="car").value == at([0, 1, 1, 0], [1, 1, 0], None, [0, 0, 1], None)
    assert RELEASE.answer(place=(1, 0, 3, 2), mode="car").value == RELEASE.answer((1, 0, 3, 2), mode="car").value
    assert RELEASE.answer(x=(0.5, 2)).value == at([0.5, 1, 0, 0], None, None, None, None)


@pytest.mark.parametrize(
    "days",
    [
        ("2026-01-02", "2026-01-04"),
        ["2026-01-02T00:00", "2026-01-04"],
        (date(2026, 1, 2), date(2026, 1, 4)),
        (datetime(2026, 1, 2), datetime(2026, 1, 4)),
        np.array(["2026-01-02", "2026-01-04"], dtype="M8[ns]"),
        (np.datetime64("2026-01-02"), np.datetime64("2026-01-04")),
        (pd.Timestamp("2026-01-02"), pd.Timestamp("2026-01-04")),
    ],
)
def test_times_are_given_as_one_has_them(days: Any) -> None:
    assert RELEASE.answer(t=days).value == at(None, None, [0, 1, 1, 0], None, None)


def test_times_without_a_zone_are_read_on_the_clocks_of_the_axis() -> None:
    days = sf.Times("2026-03-07", "2026-03-11", every="1 day", tz="America/New_York")  # the 8th has 23 hours
    release = known(days, [1, 2, 4, 8])
    assert release.answer(("2026-03-08", "2026-03-10")).value == 6
    assert release.answer(t=("2026-03-08T00:00-05:00", "2026-03-10T00:00-04:00")).value == 6
    utc = (datetime(2026, 3, 8, 5, tzinfo=UTC), datetime(2026, 3, 10, 4, tzinfo=UTC))
    assert release.answer(t=utc).value == 6
    with pytest.raises(sf.InvalidInput, match="its values have a time zone, and the axis has none"):
        RELEASE.answer(t=utc)


def test_a_list_of_labels_is_taken_together_and_by_tells_them_apart() -> None:
    both = RELEASE.answer(mode=["bus", "car"])
    assert both.value == at(None, None, None, [1, 0, 1], None)
    assert both.stderr == pytest.approx(RELEASE.answer(mode=["car", "bus", "car"]).stderr)
    assert both.stderr == pytest.approx(RELEASE.answer(mode="bus").stderr * np.sqrt(2))
    table = RELEASE.answer(mode=["car", "bus"], by="mode")
    assert table.by == ("mode",)
    assert table.value.tolist() == [at(None, None, None, w, None) for w in ([1, 0, 0], [0, 0, 1])]  # as declared
    assert RELEASE.answer(mode=[]).value == 0


def test_cells_of_a_cycle_go_by_their_names_and_round() -> None:
    assert RELEASE.answer(weekday="Sunday").value == at(None, None, None, None, [0, 0, 0, 0, 0, 0, 1])
    assert RELEASE.answer(weekday=["Monday", "Friday"]).value == at(None, None, None, None, [1, 0, 0, 0, 1, 0, 0])
    assert RELEASE.answer(weekday=("Monday", "Wednesday")).value == at(None, None, None, None, [1, 1, 0, 0, 0, 0, 0])
    assert RELEASE.answer(weekday=("Saturday", "Tuesday")).value == at(None, None, None, None, [1, 0, 0, 0, 0, 1, 1])
    night = known(sf.Cycle("hour of day"), 2 ** np.arange(24))
    assert night.answer(("22:00", "02:00")).value == 2**22 + 2**23 + 1 + 2
    assert night.answer((22, 24)).value == 2**22 + 2**23
    assert night.answer("08:00").value == 2**8


def test_many_ranges_are_many_answers_in_step_with_others() -> None:
    boxes, days = [(0, 0, 1, 1), (1, 1, 4, 3)], [("2026-01-01", "2026-01-02"), ("2026-01-03", "2026-01-05")]
    many = RELEASE.answer(boxes, t=days, mode="bus")
    assert many.value.tolist() == [RELEASE.answer(b, t=t, mode="bus").value for b, t in zip(boxes, days, strict=True)]
    table = RELEASE.answer(boxes, by=("mode", "t"))
    assert table.value.shape == (2, 3, 4)
    assert table.by == ("mode", "t")
    for i, j, k in np.ndindex(2, 3, 4):
        day = (f"2026-01-0{k + 1}", f"2026-01-0{k + 2}")
        one = RELEASE.answer(boxes[i], mode=MODE.axes[0].labels[j], t=day)  # type: ignore[attr-defined]
        found = [float(getattr(table, name)[i, j, k]) for name in ("value", "stderr", "low", "high")]
        assert found == pytest.approx([one.value, one.stderr, one.low, one.high])


def test_where_takes_names_that_are_keywords() -> None:
    odd = (
        sf.Categories(["a", "b"], name="by") * sf.Categories(["c", "d"], name="cut") * sf.Categories([1, 2], name="n m")
    )
    release = known(odd, range(8))
    assert release.answer(where={"by": "a", "cut": "d", "n m": 2}).value == 3
    assert release.answer(where={"by": "b"}, by="cut").value.tolist() == [4 + 5, 6 + 7]


def test_a_range_along_what_is_grouped_by_gives_the_groups_that_it_touches() -> None:
    release = known(PLACE * DAYS, np.full((4, 3, 4), 100))
    table = release.answer(x=(0.5, 2), by="x")
    assert table.value.tolist() == [600, 1200]
    assert table.low[0] == 0  # nobody is surely in the half
    assert table.high[0] == release.answer(x=(0, 1), confidence=0.9).high
    assert table.cut_share.tolist() == [1, 0]
    snapped = release.answer(x=(0.6, 2.2), by="x", cut="snap")
    assert (snapped.value.tolist(), snapped.range) == ([1200], {"x": (1.0, 2.0)})
    place = release.answer((1, 1, 3, 3), by="place")
    assert (place.by, place.value.tolist()) == (("x", "y"), [[400, 400], [400, 400]])


def test_a_cell_that_is_cut_is_bracketed_on_times_as_on_places() -> None:
    release = known(DAYS, [100, 200, 400, 800])
    cut = release.answer(("2026-01-01T12:00", "2026-01-03"))
    assert (cut.value, cut.cut_share) == (250, pytest.approx(0.2))
    assert cut.low == release.answer(("2026-01-02", "2026-01-03")).low
    assert cut.high == release.answer(("2026-01-01", "2026-01-03")).high
    both = known(DAYS * LINE, np.full((4, 8), 100)).answer((datetime(2026, 1, 1, 12), 0.5, datetime(2026, 1, 3), 2))
    assert both.value == 1.5 * 150
    assert both.low == known(LINE, [100] * 8).answer((1, 2)).low
    snapped = release.answer(("2026-01-01T13:00", "2026-01-03"), cut="snap")
    assert (snapped.value, snapped.range) == (200, ("2026-01-02", "2026-01-03"))


def test_old_questions_are_answered_as_before() -> None:
    box = (0.3, 0, 0.1, 0.9, 1, 0.7)
    release = known(CUBE, np.arange(24))
    assert release.answer(box).value == release.answer(x=(0.3, 0.9), y=(0, 1), z=(0.1, 0.7)).value
    assert release.answer(box).range == box
    product = known(PLACE * sf.Line(0, 8, cells=8, name="u"), np.arange(96))
    assert product.answer((0, 0, 1, 4, 3, 2)).value == product.answer(u=(1, 2)).value
    assert known(MEANS, [5, 7, 9]).answer(["bus", "tram"]).value.tolist() == [5, 7]
    assert known(MEANS, [5, 7, 9]).answer(category=["bus", "tram"]).value == 12


# ---------------------------------------------------------------------------------------------- oracle

ALONG = [
    st.none() | st.tuples(st.floats(-0.5, 3.9), st.floats(0.1, 4.5)).map(sorted),
    st.none() | st.tuples(st.integers(0, 2), st.integers(1, 3)).map(sorted),
    st.none() | st.tuples(st.integers(0, 3), st.integers(1, 4)).map(sorted),
    st.none() | st.sets(st.integers(0, 2)),
    st.none() | st.sets(st.integers(0, 6), min_size=1),
]


@pytest.mark.slow  # many questions
@given(st.tuples(*ALONG), st.sets(st.sampled_from(["x", "y", "t", "mode", "weekday"])))
def test_any_question_equals_the_sum_over_cells(asked: Any, by: set[str]) -> None:
    x, y, t, mode, week = asked
    named: dict[str, Any] = {}
    weights = [np.ones(n) for n in SPACE.shape]
    for i, (name, span) in enumerate((("x", x), ("y", y), ("t", t))):
        if span is None:
            continue
        low, high = span
        cells = np.arange(SPACE.shape[i])
        weights[i] = np.clip(np.minimum(high, cells + 1) - np.maximum(low, cells), 0, 1)
        named[name] = (low, high) if name != "t" else tuple(datetime(2026, 1, 1 + end) for end in span)
    for i, name, cells, names in ((3, "mode", mode, MODE), (4, "weekday", week, WEEK)):
        if cells is not None:
            weights[i] = np.isin(np.arange(SPACE.shape[i]), list(cells)).astype(float)
            named[name] = [names.axes[0].cell_names()[cell] for cell in cells]
    whole = (COUNTS * reduce(np.multiply.outer, weights)).sum()
    groups = sorted(by)
    answer = RELEASE.answer(**named, by=groups) if groups else RELEASE.answer(**named)
    assert np.sum(answer.value) == pytest.approx(whole, abs=1e-6)
    if not groups:
        row = reduce(np.multiply.outer, weights).ravel()
        assert answer.stderr == pytest.approx(RELEASE.query(row).stderr, abs=1e-9)
        return
    kept = [SPACE.names.index(name) for name in groups]
    table = np.einsum(COUNTS * reduce(np.multiply.outer, weights), range(5), kept)
    for axis, i in enumerate(kept):
        table = np.compress(weights[i] > 0, table, axis=axis)
    assert answer.value == pytest.approx(table, abs=1e-6)


def test_a_marginal_is_the_table_of_sums() -> None:
    table = RELEASE.marginal("mode", "t", confidence=0.9)
    assert table.by == ("mode", "t")
    assert table.value == pytest.approx(COUNTS.sum(axis=(0, 1, 4)).T)
    assert table.confidence == 0.9
    assert RELEASE.marginal("place").value == pytest.approx(COUNTS.sum(axis=(2, 3, 4)))
    assert RELEASE.answer(by="mode").value.tolist() == RELEASE.marginal("mode").value.tolist()


def test_tables_print_for_people() -> None:
    release = known(DAYS * MODE, np.full((4, 3), 1000))
    assert repr(release.answer(by="mode")) == (
        "mode    value  stderr        95% interval\n"
        "bus   4,000.0    2.71  [3,995.0, 4,005.0]\n"
        "bike  4,000.0    2.71  [3,995.0, 4,005.0]\n"
        "car   4,000.0    2.71  [3,995.0, 4,005.0]"
    )
    assert repr(release.marginal("t", "mode")).splitlines()[-1].startswith("[2026-01-04, 2026-01-05)  car")
    assert (
        repr(release.answer(t=[("2026-01-01", "2026-01-02")] * 2, by="mode")).splitlines()[3].startswith("0      car")
    )
    assert repr(RELEASE.marginal("x", "y", "mode")).splitlines()[-1] == "… 24 more rows"
    hostile = known(sf.Categories(["a\x1b[31m", "b"], name="m\n"), [1, 2])
    assert "\x1b" not in repr(hostile.marginal("m\n"))


# ---------------------------------------------------------------------------------------------- refusals

REFUSALS: dict[str, tuple[Any, str]] = {
    "a name that is not there": (
        lambda: RELEASE.answer(mod="bus"),
        "'mod' is no factor and no axis of this release, which has 'place', 't', 'mode', 'weekday', 'x', 'y'. "
        "Did you mean 'mode'? Nothing was answered.",
    ),
    "a keyword that is not there": (
        lambda: RELEASE.answer(confidance=0.9),
        "'confidance' is no factor and no axis of this release, which has 'place', 't', 'mode', 'weekday', 'x', 'y'. "
        "Did you mean 'confidence'? Nothing was answered.",
    ),
    "groups that are not there": (
        lambda: RELEASE.answer(by="modes"),
        "'modes' is no factor and no axis of this release, which has 'place', 't', 'mode', 'weekday', 'x', 'y'. "
        "Did you mean 'mode'? Nothing was answered.",
    ),
    "two names for one axis": (
        lambda: RELEASE.answer(place=(0, 0, 1, 1), x=(0, 1)),
        "'place' and 'x' both stand for axis 'x'. Nothing was answered. Give one of them.",
    ),
    "a range and a name for the place": (
        lambda: RELEASE.answer((0, 0, 1, 1), x=(0, 1)),
        "the range in front is that of the place, which a keyword speaks of as well. Nothing was answered. Give one of "
        "them.",
    ),
    "one group twice": (
        lambda: RELEASE.answer(by=("place", "y")),
        "'place' and 'y' both stand for axis 'y'. Nothing was answered. Give one of them.",
    ),
    "a name twice": (
        lambda: RELEASE.answer(mode="bus", where={"mode": "car"}),
        "'mode' is given twice, as a keyword and in where. Give it once.",
    ),
    "where without names": (
        lambda: RELEASE.answer(where=["mode"]),  # type: ignore[arg-type]
        "where=['mode'] must map names to what is asked of them, such as where={'mode': 'bike'}.",
    ),
    "groups of no name": (
        lambda: RELEASE.answer(by=3),  # type: ignore[arg-type]
        "by=3 must be a name, or a list of names, of axes or factors.",
    ),
    "a label that is not there": (
        lambda: RELEASE.answer(mode="bikes"),
        "mode names 'bikes', which is not a label of the domain. Known: ['bus', 'bike', 'car']. Did you mean 'bike'?",
    ),
    "a day that is not there": (
        lambda: RELEASE.answer(weekday="Sonday"),
        "weekday names 'Sonday', which is none of the cells of 'weekday', 'Monday' to 'Sunday'. Did you mean 'Sunday'? "
        "Nothing was answered. Give names of cells, or a range.",
    ),
    "half a day round the week": (
        lambda: RELEASE.answer(weekday=(6.5, 1)),
        "weekday=(6.5, 1) goes round, and cuts cells or leaves the cycle. Nothing was answered. Give names of cells, "
        "or whole numbers of them.",
    ),
    "one time": (
        lambda: RELEASE.answer(t="2026-01-02"),
        "t='2026-01-02' do not end in 2 numbers. Give (lo…, hi…): 1 lower end, then 1 upper end.",
    ),
    "an end before the start": (
        lambda: RELEASE.answer(t=("2026-01-03", "2026-01-02")),
        "t must not be NaN nor end before they begin. Give (lo…, hi…) with lo ≤ hi on each axis.",
    ),
    "many ranges along what is grouped by": (
        lambda: RELEASE.answer(x=[(0, 1), (1, 2)], by="x"),
        "by names 'x', of which several ranges are asked. Nothing was answered. Give one range along what is grouped "
        "by, or ask range by range.",
    ),
    "a range of nothing in particular": (
        lambda: known(DAYS * LINE, np.zeros((4, 8))).answer((0, 1)),
        "a range without a name could be that of any of 't', 'x'. Nothing was answered. Name it, as in where={'t': …}, "
        "or give 4 ends, (lo…, hi…), for all axes.",
    ),
    "a marginal of nothing": (
        lambda: RELEASE.marginal(),
        "marginal() needs names of axes or factors. The total is release.answer().",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_say_what_is_wrong_and_what_to_do(case: str) -> None:
    ask, message = REFUSALS[case]
    with pytest.raises(sf.InvalidInput) as refusal:
        ask()
    assert str(refusal.value) == message


def test_ranges_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(sf.InvalidInput, match="do not go together"):
        RELEASE.answer([(0, 0, 1, 1)] * 3, t=[("2026-01-01", "2026-01-02")] * 2)


def test_a_time_outside_is_refused_as_any_range() -> None:
    with pytest.raises(sf.InvalidInput, match="lies outside the bounds"):
        RELEASE.answer(t=("2025-01-01", "2025-02-01"))


def test_a_table_too_large_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asking.MOST_ROWS == 1 << 22
    monkeypatch.setattr(asking, "MOST_ROWS", 11)
    assert RELEASE.answer([(0, 0, 1, 1)] * 3, by="mode").value.shape == (3, 3)
    with pytest.raises(sf.TooLarge) as refusal:
        RELEASE.marginal("x", "y")
    assert str(refusal.value) == (
        "12 answers are too many for one table (at most 11). Nothing was answered. Ask for fewer groups or ranges, or "
        "take release.counts and release.cells(), which hold every cell."
    )
