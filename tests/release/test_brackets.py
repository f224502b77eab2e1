"""Ranges that cut cells: the interval holds the number of records, on whichever side of the cut they lie."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from released import GRID, LINE, MEANS, known, sample, with_mechanism

import sfumato as sf
from sfumato.release.intervals import query_margins, range_margins

# A false alarm is 4.9 standard errors of a binomial proportion: less than one in a million.
Z = 4.9

# ---------------------------------------------------------------------------------------------- by hand


def test_an_interval_reaches_from_the_cells_inside_to_the_cells_touched() -> None:
    release = known(LINE, [100, 200, 400, 800, 1600, 3200, 6400, 12800])
    cut, inner, outer = (release.answer(r) for r in ((1.5, 4.25), (2, 4), (1, 5)))
    assert cut.value == 100 + 400 + 800 + 400
    assert (cut.low, cut.high) == (inner.low, outer.high)
    assert cut.cut_share == pytest.approx(500 / 1700)
    one_side = release.answer((2, 4.25))
    assert (one_side.low, one_side.high) == (inner.low, release.answer((2, 5)).high)


def test_within_one_cell_nothing_is_certain_but_the_cell() -> None:
    """Nobody is certainly inside: the lower end cannot fail, and the upper one may have all of the 5 %."""
    release = known(LINE, [1000] * 8)
    answer = release.answer((3.25, 3.5))
    assert (answer.value, answer.low, answer.cut_share) == (250, 0, 1)
    assert answer.high == release.answer((3, 4), confidence=0.9).high < release.answer((3, 4)).high


def test_where_all_cells_are_touched_the_public_total_is_the_end() -> None:
    release = known(LINE, [1000] * 8, public_total=True)
    answer = release.answer((0.5, 8))
    assert answer.high == 8000
    assert answer.low == pytest.approx(release.answer((1, 8), confidence=0.9).low)
    whole = release.answer((0.5, 7.5))
    assert whole.high == 8000
    tiny = sf.Line(0, 1, cells=1)
    alone = with_mechanism(sf.bounded(tiny), [50], "edges", {}).answer((0.25, 0.5))
    assert (alone.low, alone.high, alone.value) == (0, 50, 12.5)


def test_ends_are_cut_to_what_a_number_of_records_can_be() -> None:
    public, hidden = (known(LINE, [-50, 0, 30, 0, 0, 0, 0, 20], public_total=p) for p in (True, False))
    for release in (public, hidden):
        for asked in ((0, 1), (0.5, 1), (0, 1.5), (0.2, 0.4)):
            answer = release.answer(asked)
            assert 0 <= answer.low <= answer.high
        assert release.answer((0, 1)).high == 0  # whole cells too: the truth is not negative
    assert release.answer((0, 1), cut="proportion").high < 0
    assert public.total == 0
    assert public.answer((1.5, 7.5)).high == 0
    assert hidden.answer((1.5, 7.5)).high > 30


def test_a_lower_end_above_the_upper_one_widens_the_interval() -> None:
    """Negative noise at the rim: the cells inside are estimated far above all that are touched."""
    release = known(LINE, [0, 0, -500, 300, -500, 0, 0, 0])
    answer = release.answer((2.5, 4.5))
    assert 0 <= answer.low <= answer.high
    assert answer.low == answer.high == release.answer((3, 4)).low


def test_the_share_in_cut_cells_stays_between_zero_and_one_whatever_the_noise() -> None:
    release = known(LINE, [-100, 40, -30, 0, 0, 7, 7, 7])
    asked = [(1, 3), (0.5, 3), (0.5, 0.75), (2.5, 4), (2.5, 4.5), (3.5, 4.5), (5.5, 7.5), (2, 2), (2.5, 2.5)]
    share = release.answer(asked).cut_share
    assert share == pytest.approx([0, 50 / 60, 1, 1, 1, 1, 0.5, 0, 0])
    assert isinstance(release.answer((0.5, 3)).cut_share, float)
    assert release.answer(np.reshape(asked[:4], (2, 2, 2))).cut_share.shape == (2, 2)


def test_an_empty_range_holds_nobody_wherever_it_is() -> None:
    release = known(GRID, np.arange(30) * 50)
    for x in (0.0, 0.123, 1.0, -1.0):
        answer = release.answer((x, 40.6, x, 40.9))
        assert (answer.value, answer.stderr, answer.low, answer.high, answer.cut_share) == (0, 0, 0, 0, 0)


def test_proportion_is_the_noise_of_the_value_alone() -> None:
    release = sample("within edges")
    asked = np.array([(-0.9, 40.52, 0.3, 40.93), (-0.5, 40.6, -0.4, 40.61), (-1, 40.5, 1, 41)])
    plain, bracket = (release.answer(asked, cut=cut) for cut in ("proportion", "bracket"))
    low, high = GRID.fractional(asked)
    stderr, margin = range_margins(release.mechanism.model, low, high, 0.95)
    assert np.array_equal(plain.low, plain.value - margin)
    assert np.array_equal(plain.high, plain.value + margin)
    for name in ("value", "stderr", "cut_share"):  # the same value, the same noise, another interval
        assert np.array_equal(getattr(plain, name), getattr(bracket, name))
    assert np.array_equal(plain.stderr, stderr)
    assert bracket.low[2] == bracket.high[2] == plain.value[2]


def test_snap_answers_the_nearest_whole_cells_and_says_which() -> None:
    release = known(GRID, np.arange(30))
    snapped = release.answer((-0.9, 40.52, 0.3, 40.97), cut="snap")
    x, y = (axis.edges for axis in GRID.intervals)
    assert snapped.range == (x[0], y[0], x[4], y[5])
    whole = release.answer(snapped.range)
    for name in ("value", "stderr", "low", "high"):
        assert getattr(snapped, name) == getattr(whole, name)
    assert snapped.cut_share == whole.cut_share == 0
    assert release.answer((-0.9, 40.52, 0.3, 40.97)).range == (-0.9, 40.52, 0.3, 40.97)  # as asked


def test_a_range_within_a_cell_snaps_to_it_and_an_empty_one_to_nothing() -> None:
    release = known(LINE, [1, 2, 4, 8, 16, 32, 64, 128])
    answers = release.answer([(2.1, 2.3), (2.8, 2.9), (2.9, 3.2), (2.5, 2.5), (2.4, 3.6), (7.6, 99)], cut="snap")
    assert answers.range.tolist() == [[2, 3], [2, 3], [3, 4], [3, 3], [2, 4], [7, 8]]
    assert answers.value.tolist() == [4, 4, 8, 0, 12, 128]


def test_labels_and_queries_cut_nothing() -> None:
    release = known(MEANS, [5, 7, 9])
    for cut in ("bracket", "proportion", "snap"):
        answer = release.answer(["bus", "tram"], cut=cut)
        assert answer.cut_share.tolist() == [0, 0]
        assert answer.range == ["bus", "tram"]
    assert known(LINE, range(8)).query(np.full(8, 0.5)).cut_share == 0
    assert known(LINE, range(8)).cells().cut_share.tolist() == [0] * 8


def test_answers_may_still_be_made_of_five_figures() -> None:
    answer = sf.Answer(1.0, 2.0, 3.0, 4.0, 0.95)
    assert (answer.cut_share, answer.range, answer.cut) == (0, None, None)
    made = sf.Answer.of(np.array([5.0]), np.array([1.0]), np.array([2.0]), 0.9, ())
    assert (made.low, made.high, made.cut_share) == (3, 7, 0)


def test_answers_say_what_the_cut_means() -> None:
    release = known(LINE, [1000] * 8)
    bracket = release.answer((0.5, 3.5))
    assert repr(bracket) == (f"Answer(3,000.0, 95% within [{bracket.low:,.1f}, {bracket.high:,.1f}]; 33% in cut cells)")
    plain = release.answer((0.5, 3.5), cut="proportion")
    assert repr(plain) == (
        f"Answer(3,000.0, 95% within [{plain.low:,.1f}, {plain.high:,.1f}] for the noise alone; 33% in cut cells, "
        "taken in proportion)"
    )
    assert repr(release.answer((0.4, 3.4), cut="snap")) == (
        "Answer(3,000.0, 95% within [2,995.0, 3,005.0] for the nearest whole cells, see .range)"
    )
    many = [(0.5, 3.5), (1, 2)]
    assert repr(release.answer(many)) == "Answer(2 values, 95% intervals; up to 33% in cut cells)"
    sorted_points = sf.plan(sf.bounded(LINE), sf.ranges(), 1, mechanism="sorted").publish(np.full(8, 9))
    for unknown in (sorted_points, sample("threshold consistent")):
        assert np.isnan(unknown.answer((0.5, 3.5)).low)
        words = repr(unknown.answer((0.5, 3.5)))
        assert "error unknown: it depends on the data; " in words
        assert words.endswith("in cut cells, and no bracket for them)")


@pytest.mark.parametrize("cut", ["brackets", "", None, True, 1, ["snap"]])
def test_another_way_to_cut_is_refused(cut: object) -> None:
    with pytest.raises(sf.InvalidInput) as refusal:
        known(LINE, range(8)).answer((0, 1), cut=cut)  # type: ignore[arg-type]
    assert str(refusal.value) == (
        f"cut={cut!r} must be one of 'bracket', 'proportion', 'snap': an interval that holds the records of a range "
        "that cuts cells, the noise alone with cut cells in proportion, or the nearest range of whole cells."
    )


# ---------------------------------------------------------------------------------------------- stored edges


@given(
    low=st.floats(-200, 200),
    width=st.floats(0.01, 300),
    cells=st.integers(1, 40),
    ends=st.tuples(st.integers(0, 400), st.integers(0, 400)),
    beside=st.tuples(*[st.sampled_from(["on", "below", "above", "between"])] * 2),
)
def test_cells_inside_and_touched_equal_those_of_the_values_in_the_range(
    low: float, width: float, cells: int, ends: tuple[int, int], beside: tuple[str, str]
) -> None:
    axis = sf.Interval("x", low, low + width, cells)
    edges = axis.edges
    moved = []
    for index, how in zip(ends, beside, strict=True):
        edge = edges[index % (cells + 1)]
        towards = {"on": edge, "below": -np.inf, "above": np.inf, "between": edge}[how]
        moved.append(edge + 0.3 * axis.step if how == "between" else np.nextafter(edge, towards))
    begin, end = sorted(moved)
    inside, touched = axis.covered(begin, end)
    begin, end = np.clip([begin, end], edges[0], edges[-1])
    if begin == end:  # no value lies in it
        assert inside[0] == inside[1]
        assert touched[0] == touched[1]
        return
    values = np.array([begin, np.nextafter(end, -np.inf), *edges[(begin <= edges) & (edges < end)]])
    met = set(axis.locate(values).tolist())
    whole = {i for i in met if edges[i] >= begin and edges[i + 1] <= end}
    assert set(range(*touched)) == met
    assert set(range(*inside)) == whole


@pytest.mark.parametrize("bounds", [(0, 1), (-74.3, -73.7), (40.5, 40.95), (0.1, 0.9), (-1e6, 1e6 / 3)])
@pytest.mark.parametrize("cells", [3, 10, 64, 1000])
def test_an_end_on_a_stored_edge_cuts_nothing(bounds: tuple[float, float], cells: int) -> None:
    line = sf.Line(*bounds, cells=cells)
    edges = line.intervals[0].edges
    i, j = np.triu_indices(len(edges), 1)
    chosen = np.random.default_rng(1).permutation(len(i))[:500]
    release = known(line, np.ones(cells))
    answer = release.answer(np.stack([edges[i[chosen]], edges[j[chosen]]], axis=-1))
    assert not answer.cut_share.any()
    assert np.array_equal(answer.value, (j - i)[chosen])


def test_an_end_beside_an_edge_cuts_the_cell_that_its_records_are_in() -> None:
    """0.3 lies below the stored edge 3·0.1 = 0.30000000000000004: what is recorded there is counted one cell before."""
    line = sf.Line(0, 1, cells=10)
    points = np.full((1000, 1), 0.3)
    assert line.locate(points[:, 0])[0] == 2
    release = sf.plan(sf.bounded(line), sf.ranges(), 1).publish(points=points, source=sf.SeededSource(1))
    for asked, truth in (((0.3, 0.5), 1000), ((0.1, 0.3), 0)):
        answer = release.answer(asked)
        assert answer.low <= truth <= answer.high


# ---------------------------------------------------------------------------------------------- coverage

SHAPES = {1: ((16,), (64,)), 2: ((8, 8), (32, 32)), 3: ((4, 4, 4), (8, 8, 8))}
SIZES = (0.02, 0.1, 0.3, 0.7)  # of a side, as a share of the domain's
HOLDS = [
    (1, "bounded", "identity"),
    (1, "unbounded", "hierarchy"),
    (1, "unbounded", "hats"),
    (1, "within", "edges"),
    (1, "within", "blocks"),
    (2, "bounded", "hierarchy"),
    (2, "unbounded", "identity"),
    (2, "unbounded", "haar"),
    (2, "within", "edges"),
    (2, "within", "edge-hierarchy"),
    (2, "within", "edge-hats"),
    (2, "sources", "edges"),
    (1, "bounded", "dawa"),
    (1, "unbounded", "dawa"),
    (2, "bounded", "dawa"),
    (2, "unbounded", "dawa"),
    (1, "within", "adaptive-grid"),
    (2, "unbounded", "adaptive-grid"),
    (2, "within", "adaptive-grid"),
    (1, "bounded", "quadtree"),
    (2, "unbounded", "quadtree"),
    (2, "within", "quadtree"),
    (1, "within", "shifted"),
    (1, "within", "shifted-edges"),
    (2, "within", "shifted"),
    (2, "within", "shifted-edges"),
    (3, "bounded", "identity"),
    (3, "within", "edges"),
]


def places(kind: str, dimensions: int, count: int) -> np.ndarray:
    """Points in the unit cube and a little beyond: spread evenly, in clusters, or heaped on a few places."""
    rng = np.random.default_rng(17)
    if kind == "uniform":
        return rng.uniform(-0.02, 1.02, (count, dimensions))
    centres = rng.uniform(0, 1, (40, dimensions))
    which = rng.choice(40, count, p=np.arange(1, 41) / 820)
    return centres[which] + (0 if kind == "heaped" else rng.normal(0, 0.01, (count, dimensions)))


def asked(dimensions: int, size: float, count: int) -> np.ndarray:
    """Ranges of one size at arbitrary places."""
    low = np.random.default_rng(round(1000 * size)).uniform(0, 1 - size, (count, dimensions))
    return np.concatenate([low, low + size], axis=-1)


def inside(points: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """The records in half-open ranges, clamped to the unit cube as they are counted."""
    d = points.shape[1]
    clamped = np.clip(points, 0, 1)
    held = np.ones((len(ranges), len(points)), dtype=bool)
    for i in range(d):
        above = (clamped[:, i] < ranges[:, d + i, None]) | (ranges[:, d + i, None] >= 1)
        held &= (clamped[:, i] >= ranges[:, i, None]) & above
    return held.sum(axis=1)


def policy_on(domain: sf.Domain, name: str) -> sf.Policy:
    """The policies of the coverage tests."""
    if name == "within":
        return sf.within(domain, delta=0.15)
    if name == "sources":
        return sf.within(domain, delta=0.15, sources="boundary")
    return {"bounded": sf.bounded, "unbounded": sf.unbounded}[name](domain)


@pytest.mark.slow  # releases of every size
@pytest.mark.parametrize("kind", ["uniform", "clustered", "heaped"])
@pytest.mark.parametrize(("dimensions", "policy", "mechanism"), HOLDS)
def test_intervals_hold_the_records_at_every_size_and_resolution(
    dimensions: int, policy: str, mechanism: str, kind: str
) -> None:
    """4 sizes × 2 resolutions × 8 releases × 50 ranges; whole releases share their noise, so 95 % is asked of all."""
    points = places(kind, dimensions, 3000)
    ranges = np.concatenate([asked(dimensions, size, 50) for size in SIZES])
    truth = inside(points, ranges)
    source = sf.SeededSource(5)
    for shape in SHAPES[dimensions]:
        grid = (
            sf.Line(0, 1, cells=shape[0]) if dimensions == 1 else sf.Grid((0,) * dimensions + (1,) * dimensions, shape)
        )
        plan = sf.plan(policy_on(grid, policy), sf.ranges(), 0.5, mechanism=mechanism)
        held = []
        for _ in range(8):
            answer = plan.publish(points=points, source=source).answer(ranges)
            held.append((answer.low <= truth + 1e-6) & (truth <= answer.high + 1e-6))
        by_size = np.mean(held, axis=0).reshape(len(SIZES), -1).mean(axis=1)
        assert (by_size >= 0.95).all(), (shape, by_size)


def test_the_noise_alone_would_miss_most_of_them() -> None:
    """What the tests above would show without brackets: they can fail."""
    points = places("clustered", 2, 3000)
    ranges = np.concatenate([asked(2, size, 50) for size in SIZES])
    grid = sf.Grid((0, 0, 1, 1), (8, 8))
    release = sf.plan(sf.within(grid, delta=0.15), sf.ranges(), 5).publish(points=points, source=sf.SeededSource(5))
    answer = release.answer(ranges, cut="proportion")
    truth = inside(points, ranges)
    assert ((answer.low <= truth) & (truth <= answer.high)).mean() < 0.5


@pytest.mark.parametrize("side", ["inner", "outer", "hollow"])
@pytest.mark.parametrize("confidence", [0.3, 0.8, 0.95])
def test_each_side_fails_as_seldom_as_it_may(side: str, confidence: float) -> None:
    """The worst places: all records of the cut cells outside the range, or all inside. 20,000 independent ranges.

    Either side of a bracket may fail (1 - c)/2 of the time; the upper one alone 1 - c where no whole cell is inside.
    """
    line = sf.Line(0, 8000, cells=8000)
    counts = np.full(8000, 1000)
    plan = sf.plan(sf.unbounded(line), sf.histogram(), 0.2, mechanism="identity")
    low = np.arange(0, 8000, 4.0)
    ranges = np.stack([low + 0.5, low + (0.75 if side == "hollow" else 3.5)], axis=-1)
    truth = {"inner": 2000, "outer": 4000, "hollow": 1000}[side]
    source = sf.SeededSource(2)
    answers = [plan.publish(counts, source=source).answer(ranges, confidence=confidence) for _ in range(10)]
    missed = np.mean([(a.low > truth) | (truth > a.high) for a in answers])
    allowed = 1 - confidence if side == "hollow" else (1 - confidence) / 2
    slack = Z * math.sqrt(allowed * (1 - allowed) / 20_000)
    assert missed <= allowed + slack
    if confidence > 0.5:  # and not wider than it need be: half a step of the noise is all that is given away
        assert missed >= 0.8 * allowed - slack


@pytest.mark.slow  # 1,000 releases, whose runs are found anew
@pytest.mark.parametrize("queries", ["ranges", "cells"])
@pytest.mark.parametrize("policy", ["bounded", "unbounded"])
def test_sums_of_runs_are_missed_as_seldom_as_they_may(policy: str, queries: str) -> None:
    """DAWA's runs by themselves, whatever runs it finds: the true sums of some of them, 4,000 times at 80 %."""
    line = sf.Line(0, 48, cells=48)
    counts = np.repeat([0, 90, 300, 20], 12)
    plan = sf.plan(policy_on(line, policy), sf.ranges(), 1, mechanism="dawa", queries=queries)
    source, rng = sf.SeededSource(4), np.random.default_rng(4)
    missed = []
    for _ in range(1000):
        release = plan.publish(counts, source=source)
        runs = release.mechanism.runs(release.measured, 4920 if policy == "bounded" else None)
        starts = runs.low[:, 0]
        ends = np.sort(rng.choice(len(starts) + 1, (4, 2)), axis=1)
        edges, places = np.append(starts, 48), np.arange(len(starts))
        chosen = ((places >= ends[:, :1]) & (places < ends[:, 1:])).astype(float)
        margins = query_margins(runs.model, chosen, 0.8)[1]
        for (begin, end), sums, margin in zip(ends, chosen @ runs.values, margins, strict=True):
            assert sums == pytest.approx(release.counts[edges[begin] : edges[end]].sum(), abs=1e-6)
            missed.append(abs(sums - counts[edges[begin] : edges[end]].sum()) > margin + 1e-9)
    assert np.mean(missed) <= 0.2 + Z * math.sqrt(0.16 / 4000)
    if policy == "unbounded":
        assert np.mean(missed) >= 0.12  # whole numbers make intervals a little wider than they need be


@pytest.mark.parametrize("shape", [(16,), (9, 7), (4, 4, 4)])
def test_a_release_of_runs_comes_back_from_its_file_and_brackets_empty_ranges_by_nothing(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    d = len(shape)
    grid = sf.Line(0, 1, cells=shape[0]) if d == 1 else sf.Grid((0,) * d + (1,) * d, shape)
    release = sf.plan(sf.unbounded(grid), sf.ranges(), 1, mechanism="dawa").publish(np.full(shape, 7))
    again = sf.load(release.save(tmp_path / "runs.sfumato"))
    ranges = np.concatenate([asked(d, size, 20) for size in SIZES])
    for name in ("value", "low", "high", "cut_share"):
        assert np.array_equal(getattr(again.answer(ranges), name), getattr(release.answer(ranges), name))
    empty = release.answer(np.repeat(np.full((1, d), 0.37), 2, axis=0).ravel())
    assert (empty.value, empty.low, empty.high) == (0, 0, 0)
    assert release.answer((0,) * d + (1,) * d).high >= release.answer((0.1,) * d + (0.9,) * d).low
    damaged = replace(release, measured=release.measured[:-1])
    assert np.isnan(damaged.answer(ranges[0]).low)


@pytest.mark.parametrize("mechanism", ["identity", "haar", "hierarchy", "edges"])
def test_a_wider_confidence_never_gives_a_narrower_bracket(mechanism: str) -> None:
    grid = sf.Grid((0, 0, 1, 1), (8, 8))
    plan = sf.plan(sf.within(grid, delta=0.2), sf.histogram(), 1, mechanism=mechanism)
    release = plan.publish(np.full((8, 8), 100), source=sf.SeededSource(3))
    ranges = np.concatenate([asked(2, size, 20) for size in (*SIZES, 1.0)])
    answers = [release.answer(ranges, confidence=c) for c in (0.1, 0.4, 0.5, 0.6, 0.9, 0.99, 1 - 1e-9)]
    for a, b in pairwise(answers):
        assert (a.low >= b.low - 1e-9).all()
        assert (a.high <= b.high + 1e-9).all()


def test_a_bracket_does_not_depend_on_what_else_is_asked() -> None:
    grid = sf.Grid((0, 0, 1, 1), (16, 16))
    release = sf.plan(sf.unbounded(grid), sf.ranges(), 1).publish(np.full((16, 16), 9), source=sf.SeededSource(1))
    ranges = np.concatenate([asked(2, size, 50) for size in (*SIZES, 1.0)])
    together = release.answer(ranges)
    for i in (0, 60, 120, 199, 249):
        alone = release.answer(ranges[i])
        names = ("value", "stderr", "low", "high", "cut_share")
        assert [getattr(alone, n) for n in names] == [getattr(together, n)[i] for n in names]


def test_a_bracket_holds_every_way_to_place_the_records() -> None:
    """Without noise to speak of: all ways in which four records of each cell can lie in its quarters."""
    line = sf.Line(0, 4, cells=4)
    release = with_mechanism(sf.unbounded(line), [4, 4, 4, 4], "identity", {})
    answer = release.answer((0.25, 2.75), confidence=1e-6)
    for here in product(range(5), repeat=2):
        truth = here[0] + 4 + here[1]
        assert answer.low <= truth <= answer.high
    assert (answer.low, answer.high) == (4, 12)
