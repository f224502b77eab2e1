"""Non-negative maps: the rule by hand, against a solver, what is kept, and what it does to answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import sfumato as sf
from sfumato.domain.areas import Areas
from sfumato.domain.coarser import Level
from sfumato.domain.factor import Factor
from sfumato.release.nonnegative import non_negative, shared_out
from tests.release.released import known, sample


def line(n: int) -> sf.Line:
    return sf.Line(0, 1, cells=n)


# ---------------------------------------------------------------------------------------------- by hand


def test_halves_get_what_their_parent_has() -> None:
    # 8 goes to halves of 9 and -1: nearest are 8.5 and -0.5, so 8 and 0. 8 goes to 10 and -1: 8 and 0 again.
    assert known(line(4), [10, -1, 2, -3], public_total=True).nonnegative().tolist() == [8, 0, 0, 0]
    # 6 goes to 2 and 4 as they are; 2 to 3 and -1, which is 2 and 0; 4 to 1 and 3 as they are.
    assert known(line(4), [3, -1, 1, 3]).nonnegative().tolist() == [2, 0, 1, 3]


def test_whole_numbers_are_made_on_the_way_down() -> None:
    assert known(line(4), [0.4, 0.4, 0.4, 0.8]).nonnegative(integers=True).tolist() == [1, 0, 0, 1]
    assert known(line(4), [-2.5, 0.4, 1.6, 7]).nonnegative(integers=True).tolist() == [0, 0, 0, 6]


def test_nothing_comes_of_nothing() -> None:
    assert known(line(3), [4, -1, -3], public_total=True).nonnegative().tolist() == [0, 0, 0]
    assert known(line(3), [-4, -1, -3]).nonnegative().tolist() == [0, 0, 0]  # an estimated total below zero
    assert known(line(1), [7]).nonnegative().tolist() == [7]


def test_labels_are_children_of_the_whole() -> None:
    means = sf.Categories(["bus", "tram", "foot", "bike", "car"])
    found = known(means, [5.0, -3.0, 2.0, 0.5, -0.5], public_total=True).nonnegative()
    assert found.tolist() == [3.5, 0, 0.5, 0, 0]


def test_names_of_regions_are_taken_together_level_by_level() -> None:
    states, counties = Level("state", ("A", "A", "A", "B")), Level("county", ("one", "one", "two", "one"))
    regions = Areas("place", tuple("abcd"), "EPSG:4326", True, "", (states, counties))
    domain = sf.Domain((regions,), (Factor("place", (0,)),))
    counts = np.array([6.0, -2.0, -1.0, 5.0, 0.0])
    # 8 over the states 3, 5, 0; in A 3 over the counties 4 and -1, so 3 and 0; in one 3 over 6 and -2, so 3 and 0.
    assert non_negative(counts, domain, np.array(8)).tolist() == [3, 0, 0, 5, 0]
    flat = sf.Domain((replace(regions, levels=()),), (Factor("place", (0,)),))
    assert non_negative(counts, flat, np.array(8)).tolist() == [4.5, 0, 0, 3.5, 0]


# ---------------------------------------------------------------------------------------------- against a solver


def test_children_are_the_nearest_to_their_estimates() -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(5)
    for width in (2, 3, 4, 8):
        children, parent = rng.normal(0, 3, width), float(rng.integers(0, 6))
        nearest = minimize(
            lambda x, wanted=children: ((x - wanted) ** 2).sum(),
            np.full(width, parent / width),
            bounds=[(0, None)] * width,
            constraints={"type": "eq", "fun": lambda x, total=parent: x.sum() - total},
        ).x
        unit = 2.0**-30
        found = shared_out(children[None] / unit, np.array([parent / unit]))[0] * unit
        assert found == pytest.approx(nearest, abs=1e-5)


def test_a_child_that_is_not_there_gets_nothing() -> None:
    children = np.array([[-np.inf, 0.3, 0.3, -np.inf], [5.0, -np.inf, -np.inf, -np.inf]])
    assert shared_out(children, np.array([3.0, 2.0])).tolist() == [[0, 2, 1, 0], [2, 0, 0, 0]]


SHAPES = [(1,), (13,), (8, 8), (7, 5), (1, 6), (3, 4, 5)]


@given(shape=st.sampled_from(SHAPES), integers=st.booleans(), public=st.booleans(), data=st.data())
def test_no_number_is_negative_and_the_total_stays(
    shape: tuple[int, ...], integers: bool, public: bool, data: Any
) -> None:
    d = len(shape)
    domain = sf.Grid(bounds=(0,) * d + (1,) * d, shape=shape) if d > 1 else line(shape[0])
    counts = data.draw(arrays(np.int64, shape, elements=st.integers(-40, 60))) / 4
    total = np.array(data.draw(st.integers(0, 1000))) if public else None
    found = non_negative(counts, domain, total, integers=integers)
    assert found.shape == shape
    assert (found >= 0).all()
    wanted = max(counts.sum(), 0.0) if total is None else float(total)
    if integers:
        assert (found == np.rint(found)).all()
        wanted = float(np.rint(wanted))
    assert found.sum() == found.ravel()[::-1].sum() == wanted  # to the last bit, in any order


@given(arrays(np.int64, (6, 5), elements=st.integers(0, 60)))
def test_what_is_not_negative_stays_as_it_is(counts: np.ndarray) -> None:
    domain = sf.Grid(bounds=(0, 0, 1, 1), shape=(6, 5))
    assert np.array_equal(non_negative(counts.astype(np.float64), domain, np.array(counts.sum())), counts)


# ---------------------------------------------------------------------------------------------- releases


def test_public_tables_are_kept_exactly() -> None:
    space = sf.Line(0, 24, cells=3, name="hour") * sf.Grid(bounds=(0, 0, 1, 1), shape=(5, 6))
    policy = sf.policy(space, hide=sf.move(0.3), public=["hour"])
    counts = np.zeros((3, 5, 6), dtype=np.int64)
    counts[0, 2, 2], counts[2] = 7, 1
    plan = sf.plan(policy, sf.histogram(), epsilon="1/4", mechanism="edges")
    release = plan.publish(counts, source=sf.SeededSource(8))
    for integers in (False, True):
        found = release.nonnegative(integers=integers)
        assert found.sum(axis=(1, 2)).tolist() == [7, 0, 30]
        assert (found >= 0).all()
    answer = release.answer(hour=(8, 16), estimate="nonnegative")
    assert (answer.value, answer.stderr, answer.low, answer.high) == (0, 0, 0, 0)
    table = release.answer(by="hour", estimate="nonnegative")
    assert table.value.tolist() == [7, 0, 30]


def test_an_answer_is_the_non_negative_one_within_a_standard_error() -> None:
    release = sample("unbounded hats")
    boxes = [(-1.0, 40.5, x, y) for x in (-0.9, -0.1, 0.5, 1.0) for y in (40.55, 40.8, 41.0)]
    plain = release.answer(boxes)
    shared = replace(release, estimates=release.nonnegative()).answer(boxes).value
    found = release.answer(boxes, estimate="nonnegative")
    clipped = np.clip(shared, plain.value - plain.stderr, plain.value + plain.stderr)
    assert found.value == pytest.approx(np.maximum(clipped, 0))
    for name in ("stderr", "low", "high", "cut_share"):
        assert np.array_equal(getattr(found, name), getattr(plain, name))
    wide = release.answer(boxes, estimate="nonnegative", confidence=0.99)
    assert ((wide.low <= wide.value + 1e-9) & (wide.value <= wide.high + 1e-9)).all()


def test_cells_taken_together_are_answered_alike() -> None:
    release = known(sf.Categories(["bus", "tram", "foot"], name="mode"), [5.0, -3.0, 2.0])
    # The nearest with the sum of 4 are 3.5, 0 and 0.5; bus and foot together are 4, and their estimate 7 ± 1.92.
    found = release.answer(mode=["bus", "foot"], estimate="nonnegative")
    assert found.value == pytest.approx(7 - found.stderr)
    assert release.answer("tram", estimate="nonnegative").value == 0


def test_where_no_standard_error_is_known_the_map_alone_speaks() -> None:
    release = sample("unbounded dawa")
    found = release.answer((0, 3), estimate="nonnegative").value
    assert found == pytest.approx(release.nonnegative()[:3].sum())


@pytest.mark.parametrize("estimate", ["non-negative", "unbiased", "", None, 3, True])
def test_other_estimates_are_refused(estimate: Any) -> None:
    with pytest.raises(sf.errors.InvalidInput) as refused:
        known(line(4), [1, 2, 3, 4]).answer((0, 1), estimate=estimate)
    assert str(refused.value) == (
        f"estimate={estimate!r} must be one of 'plain', 'nonnegative': the plain estimate, or one that is not "
        "negative, within a standard error of it. Nothing was answered."
    )


# ---------------------------------------------------------------------------------------------- what it is for


def test_empty_places_come_nearer_and_large_ranges_stay() -> None:
    """4,096 cells of which 16 are full, 8 releases: the squared error of cells falls below a third (here a sixth), that
    of halves of the map stays below twice the plain one (here 1.1). The seeds are fixed: no chance is left.
    """
    domain = sf.Grid(bounds=(0, 0, 1, 1), shape=(64, 64))
    counts = np.zeros((64, 64), dtype=np.int64)
    counts[::16, ::16] = 400
    plan = sf.plan(sf.unbounded(domain), sf.ranges(), epsilon=1, mechanism="hats")
    halves = [(0, 0, x, 1) for x in (0.25, 0.5, 0.75)]
    truth = np.array([1600, 3200, 4800])
    cells, wide = np.zeros(2), np.zeros(2)
    for seed in range(8):
        release = plan.publish(counts, source=sf.SeededSource(seed))
        cells += [((m - counts) ** 2).mean() for m in (release.counts, release.nonnegative())]
        values = [release.answer(halves, estimate=e).value for e in ("plain", "nonnegative")]
        wide += [((v - truth) ** 2).mean() for v in values]
    assert cells[1] < cells[0] / 3
    assert wide[1] < 2 * wide[0]
