"""Answers: against brute force on known counts, in every shape in which one can ask, and every refusal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from released import CUBE, GRID, LINE, MEANS, MIXED, known, sample

import sfumato as sf
from sfumato.counting import count_points

# ---------------------------------------------------------------------------------------------- by hand


def test_a_range_on_a_line_sums_its_cells_and_cuts_in_proportion() -> None:
    release = known(LINE, [1, 2, 4, 8, 16, 32, 64, 128])
    assert release.answer((2, 5)).value == 4 + 8 + 16
    assert release.answer((2.5, 5.25)).value == 2 + 8 + 16 + 8
    assert release.answer((3.25, 3.75)).value == 4  # within one cell
    assert release.answer((3, 3)).value == 0
    assert release.answer((-5, 99)).value == 255  # clipped to the domain


OUTSIDE = [
    (LINE, (8, 9)),  # half-open: it begins where the bounds end
    (LINE, (-1, 0)),
    (LINE, (9, 9)),
    (LINE, (np.inf, np.inf)),
    (LINE, (-np.inf, -0.0)),
    (sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(4, 4)), (40.7, -74.1, 40.8, -74.0)),  # latitude first
    (sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(4, 4)), (-74.1, 40.95, -74.0, 41)),
    (sf.Grid(bounds=(0, 0, 0, 1, 1, 1), shape=(2, 2, 2)), (0, 0, 2, 1, 1, 3)),
]


@pytest.mark.parametrize(("domain", "asked"), OUTSIDE)
def test_a_range_outside_the_map_is_refused_and_not_answered_with_a_sure_zero(domain: sf.Domain, asked) -> None:
    release = known(domain, np.zeros(domain.shape))
    with pytest.raises(sf.InvalidInput) as refusal:
        release.answer(asked)
    assert "lies outside the bounds (" in str(refusal.value)
    assert str(refusal.value).endswith(
        "what is there was not counted there. Nothing was answered. Ask inside the bounds, as (lo…, hi…), or leave the "
        "range out."
    )
    inside = domain.bounds
    with pytest.raises(sf.InvalidInput, match=r"\(number 1 of the ranges\)"):
        release.answer([inside, asked, inside])
    with pytest.raises(sf.InvalidInput, match="lies outside the bounds"):
        sf.plan(sf.bounded(domain), sf.ranges([asked]), epsilon=1)


def test_a_range_that_reaches_beyond_the_map_is_answered_as_counted() -> None:
    """Clamped records are in the cells at the border, and come with them."""
    release = known(LINE, count_points([-7.0, 0.5, 3.5, 99.0, 100.0], LINE).values)
    assert release.answer((-np.inf, np.inf)).value == 5
    assert release.answer((7, 1000)).value == 2
    assert release.answer((-9, 1)).value == 2
    assert release.answer([(0, 0), (8, 8), (3, 3)]).value.tolist() == [0, 0, 0]  # empty, on the border or inside


def test_a_range_in_the_order_of_another_library_is_doubted() -> None:
    release = known(sf.Grid(bounds=(-74.3, 40.5, -73.7, 40.95), shape=(4, 4)), np.ones((4, 4)))
    with pytest.warns(sf.DeclarationWarning) as told:
        release.answer((-74.1, -74.0, 40.6, 40.7))
    (warning,) = told
    assert str(warning.message) == (
        "ranges holds (-74.1, -74, 40.6, 40.7), which reaches beyond the bounds, and lies within them when it is read "
        "as (xmin, xmax, ymin, ymax). Did you mean (-74.1, 40.6, -74, 40.7), in the order (x0, y0, x1, y1)?"
    )
    assert warning.filename == __file__
    release.answer((-75, 40.6, -74.0, 40.7))  # no doubt about this one
    with pytest.raises(sf.InvalidInput, match="end before they begin"):
        release.answer((-74.1, 40.7, -74.0, 40.6))


def test_a_range_on_a_grid_is_lower_corner_then_upper_corner_and_counts_are_indexed_x_first() -> None:
    grid = sf.Grid(bounds=(0, 0, 2, 3), shape=(2, 3))
    release = known(grid, [[1, 2, 4], [8, 16, 32]])
    assert release.answer((1, 0, 2, 1)).value == 8
    assert release.answer((0, 1, 1, 3)).value == 6
    assert release.answer((0.5, 0.5, 2, 1.5)).value == 0.25 + 0.5 + 4 + 8


def test_labels_are_asked_one_by_one_or_as_a_list() -> None:
    release = known(MEANS, [5, 7, 9])
    assert release.answer("tram").value == 7
    assert release.answer(["bus", "tram", "bus"]).value.tolist() == [5, 7, 5]
    assert release.answer(np.array(["tram"])).value.tolist() == [7]
    hours = known(sf.Categories([7, 8, 9]), [1, 2, 3])
    assert hours.answer(8).value == 2
    assert hours.answer(np.int64(9)).value == 3
    flags = known(sf.Categories([False, True]), [1, 2])
    assert flags.answer(True).value == 2


def test_answers_come_in_the_shape_of_the_question() -> None:
    release = known(GRID, np.arange(30))
    one = release.answer(GRID.bounds)
    assert isinstance(one.value, float)
    assert one.value == release.total == 435
    many = release.answer(np.broadcast_to(GRID.bounds, (2, 3, 4)))
    assert many.value.shape == many.stderr.shape == many.low.shape == many.high.shape == (2, 3)
    assert release.answer(np.empty((0, 4))).value.shape == (0,)
    assert many.confidence == 0.95


def test_answers_print_for_people() -> None:
    release = known(LINE, [1000] * 8)
    assert repr(release.answer((0, 2))) == "Answer(2,000.0, 95% within [1,996.0, 2,004.0])"
    assert repr(release.answer([(0, 2), (1, 3)], confidence=0.9)) == "Answer(2 values, 90% intervals)"
    assert repr(release) == "Release(8 cells, identity, epsilon=1)"
    assert repr(sample("within edges")) == "Release(NOT PRIVATE (seeded randomness), 6 × 5 cells, edges, epsilon=0.7)"


# ---------------------------------------------------------------------------------------------- oracle

ENDS = st.floats(-1.5, 1.5)


@given(counts=arrays(np.float64, (4, 3, 2), elements=st.floats(-1e6, 1e6)), ends=st.lists(ENDS, min_size=6, max_size=6))
def test_fractional_boxes_equal_brute_force(counts: np.ndarray, ends: list[float]) -> None:
    box = sf.Grid(bounds=(-1, -1, -1, 1, 1, 1), shape=(4, 3, 2))
    release = known(box, counts)
    low, high = np.sort(np.reshape(ends, (2, 3)), axis=0)
    closed = bool((low == high).any())  # an empty range may lie on the border
    if ((high < -1) | (low > 1) if closed else (high <= -1) | (low >= 1)).any():
        with pytest.raises(sf.InvalidInput, match="lies outside the bounds"):
            release.answer([*low, *high])
        return
    expected = 0.0
    for index in np.ndindex(4, 3, 2):
        share = 1.0
        for axis, i, a, b in zip(box.intervals, index, low, high, strict=True):
            left, right = axis.edges[i], axis.edges[i + 1]
            share *= max(0.0, min(b, right) - max(a, left)) / (right - left)
        expected += share * counts[index]
    assert release.answer([*low, *high]).value == pytest.approx(expected, abs=1e-6)


def test_queries_equal_the_matrix_product_dense_or_sparse() -> None:
    release = known(CUBE, np.random.default_rng(1).normal(0, 10, 24))
    matrix = np.random.default_rng(2).integers(-2, 3, (50, 24))
    dense, sparse = release.query(matrix), release.query(scipy.sparse.csc_matrix(matrix))
    assert np.allclose(dense.value, matrix @ release.counts.ravel())
    for field in ("value", "stderr", "low", "high"):
        assert np.array_equal(getattr(dense, field), getattr(sparse, field))
    assert dense.stderr == pytest.approx(
        np.sqrt((matrix**2).sum(axis=1) * release.mechanism.model.blocks[0].noise.variance)
    )
    single = release.query(matrix[0].tolist())
    assert (single.value, single.stderr) == (dense.value[0], dense.stderr[0])


@pytest.mark.parametrize("name", ["within edges", "bounded hierarchy", "within edge-haar", "unbounded identity"])
def test_a_range_and_the_query_that_writes_it_out_agree(name: str) -> None:
    release = sample(name)
    weights = np.zeros(GRID.shape)
    weights[1:4, 2:5] = 1
    x, y = (axis.edges for axis in GRID.intervals)
    by_range, by_query = release.answer((x[1], y[2], x[4], y[5])), release.query(weights.ravel())
    assert by_range.value == pytest.approx(by_query.value)
    assert by_range.stderr == pytest.approx(by_query.stderr)


def test_many_queries_are_answered_in_parts_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = sf.Line(0, 1, cells=1 << 12)
    release = sf.plan(sf.unbounded(wide), sf.histogram(), 1, mechanism="identity").publish(np.zeros(1 << 12, int))
    rows = scipy.sparse.random(1100, 1 << 12, density=0.001, random_state=1, format="csr")
    together, last = release.query(rows), release.query(rows[1050])
    assert together.value[1050] == last.value[0]
    assert together.high[1050] == last.high[0]


def test_cells_are_the_counts_with_their_errors() -> None:
    release = sample("within boundary")
    cells = release.cells(confidence=0.8)
    assert np.array_equal(cells.value, release.counts)
    assert cells.stderr.shape == cells.low.shape == GRID.shape
    assert cells.stderr[0, 0] < cells.stderr[2, 2]  # a corner has two edges, an inner cell four
    assert cells.confidence == 0.8


def test_the_total_is_exact_where_it_is_public() -> None:
    release = sample("bounded hierarchy")
    assert isinstance(release.total, int)
    assert release.total == (np.arange(30) % 7).sum() == release.counts.sum()
    assert isinstance(sample("unbounded identity").total, float)


def test_a_release_cannot_be_changed() -> None:
    release = sample("threshold edges")
    with pytest.raises(ValueError, match="read-only"):
        release.counts[0] = 1
    with pytest.raises(AttributeError):
        release.id = "other"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["threshold consistent", "unbounded dawa"])
def test_an_error_that_depends_on_the_data_is_not_stated(name: str) -> None:
    release = replace(sample(name), measured=None)  # runs of cells that were kept would bracket the records
    one, many = release.answer((0, 3)), release.cells()
    assert one.value == pytest.approx(release.counts[:3].sum())
    assert np.isnan([one.stderr, one.low, one.high]).all()
    assert np.isnan([many.stderr, many.low, many.high]).all()
    assert np.isnan(release.query(np.ones(8)).stderr)
    assert repr(one) == f"Answer({one.value:,.1f}, error unknown: it depends on the data)"
    assert repr(many) == "Answer(8 values, error unknown: it depends on the data)"


# ---------------------------------------------------------------------------------------------- adjusted


@given(
    counts=arrays(np.int64, 12, elements=st.integers(0, 50)),
    noise=arrays(np.int64, 11, elements=st.integers(-30, 30)),
    integers=st.booleans(),
)
def test_adjusted_counts_are_not_negative_and_keep_a_public_total(
    counts: np.ndarray, noise: np.ndarray, integers: bool
) -> None:
    moved = counts + np.diff(np.concatenate([[0], noise, [0]])) / 4  # like edge noise: the sum stays
    release = known(sf.Line(0, 1, cells=12), moved, public_total=True)
    adjusted = release.adjusted(integers=integers)
    assert adjusted.counts.min() >= 0
    assert adjusted.counts.sum() == pytest.approx(counts.sum(), abs=1e-9)
    if integers:
        assert (adjusted.counts == np.rint(adjusted.counts)).all()
        assert adjusted.counts.sum() == counts.sum()


def test_adjusted_counts_are_the_non_negative_ones() -> None:
    for public in (False, True):
        release = known(sf.Line(0, 1, cells=5), [5.0, -3.0, 2.0, 0.5, -0.5], public_total=public)
        assert np.array_equal(release.adjusted().counts, release.nonnegative())
        assert np.array_equal(release.adjusted(integers=True).counts, release.nonnegative(integers=True))


def test_counts_may_be_rounded_and_stay_negative() -> None:
    release = known(sf.Line(0, 1, cells=4), [-2.5, 0.4, 1.6, 7])
    assert release.adjusted(non_negative=False, integers=True).counts.tolist() == [-2, 0, 2, 7]


def test_adjusted_counts_say_what_was_done_to_them() -> None:
    free, public = (known(sf.Line(0, 1, cells=2), [-1, 4], public_total=p) for p in (False, True))
    assert free.adjusted(integers=True).note == (
        "negative estimates were removed, so empty cells and sums of them are biased upwards, and full cells "
        "downwards, since the estimated total is kept; "
        "estimates were rounded to whole numbers; the release's standard errors no longer apply"
    )
    assert repr(public.adjusted()) == (
        "Adjusted(2 cells: negative estimates were removed, so empty cells and sums of them are biased upwards, and "
        "full cells downwards, since the total is kept; the release's standard errors no longer apply)"
    )
    assert np.array_equal(free.counts, [-1, 4])  # the release itself stays as it is


def test_a_public_total_of_nothing_is_kept() -> None:
    release = known(sf.Line(0, 1, cells=3), [4, -1, -3], public_total=True)
    assert release.adjusted().counts.tolist() == [0, 0, 0]
    assert release.adjusted(integers=True).counts.tolist() == [0, 0, 0]


# ---------------------------------------------------------------------------------------------- refusals

REFUSALS = {
    "a range with too few numbers": (
        lambda: known(GRID, range(30)).answer((0, 1)),
        "ranges of shape (2,) do not end in 4 numbers. Give (lo…, hi…): 2 lower ends, then 2 upper ends.",
    ),
    "a range that ends before it begins": (
        lambda: known(LINE, range(8)).answer((3, 2)),
        "ranges must not be NaN nor end before they begin. Give (lo…, hi…) with lo ≤ hi on each axis.",
    ),
    "a range over labels": (
        lambda: known(MIXED, range(12)).answer((0, 1, 2, 3)),
        "a range without a name could be that of any of 'hour', 'week'. Nothing was answered. Name it, as in "
        "where={'hour': …}.",
    ),
    "a label that is not there": (
        lambda: known(MEANS, range(3)).answer(["bus", "ship"]),
        "ranges names 'ship', which is not a label of the domain. Known: ['bus', 'tram', 'by \"foot\", slowly'].",
    ),
    "a label of another type": (
        lambda: known(sf.Categories([0, 1]), range(2)).answer(True),
        "ranges names True, which is not a label of the domain. Known: [0, 1].",
    ),
    "no label at all": (
        lambda: known(MEANS, range(3)).answer(2.5),
        "ranges=2.5 must be a label of the domain, or a list of labels.",
    ),
    "a query of another width": (
        lambda: known(LINE, range(8)).query(np.ones((2, 7))),
        "matrix has 7 columns; the domain has 8 cells: one each.",
    ),
    "a query that is not finite": (
        lambda: known(LINE, range(8)).query([0, 0, 0, 0, 0, 0, 0, np.nan]),
        "matrix holds entries that are not finite numbers.",
    ),
    "a query of words": (
        lambda: known(LINE, range(8)).query(["bus"] * 8),
        "matrix must be numbers: one row a query, one column a cell in C order.",
    ),
    "a query of three dimensions": (
        lambda: known(LINE, range(8)).query(np.ones((1, 1, 8))),
        "matrix must be numbers: one row a query, one column a cell in C order.",
    ),
    "an adjustment of nothing": (
        lambda: known(LINE, range(8)).adjusted(non_negative=False),
        "adjusted() needs non_negative=True or integers=True; release.counts are the estimates themselves.",
    ),
    "counts of another shape": (
        lambda: sf.Release(
            id="x",
            estimates=np.zeros(3),
            guarantee=known(LINE, range(8)).guarantee,
            mechanism=known(LINE, range(8)).mechanism,
            workload="",
        ),
        "estimates of shape (3,) do not fit the domain's (8,).",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_say_what_is_wrong_and_what_is_allowed(case: str) -> None:
    ask, message = REFUSALS[case]
    with pytest.raises(sf.InvalidInput) as refusal:
        ask()
    assert str(refusal.value) == message
