"""Location is exact: a cell comes from comparison with the edges, for every double."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.domain import Domain, Grid, Interval, Labels, Line
from sfumato.domain.interval import CHUNK
from sfumato.errors import InvalidInput


def oracle(axis: Interval, values: NDArray[np.float64]) -> NDArray[np.int64]:
    cells = np.searchsorted(axis.edges, values, side="right") - 1
    return np.clip(cells, 0, axis.cells - 1).astype(np.int64)


def adversarial(axis: Interval) -> NDArray[np.float64]:
    """Every edge, its neighbours up to four doubles away on both sides, the middles, and what lies outside."""
    values = [axis.edges, (axis.edges[1:] + axis.edges[:-1]) / 2]
    for direction in (-np.inf, np.inf):
        near = axis.edges
        for _ in range(4):
            near = np.nextafter(near, direction)
            values.append(near)
    extremes = [0.0, -0.0, np.inf, -np.inf, sys.float_info.max, -sys.float_info.max, sys.float_info.min, 5e-324]
    return np.concatenate([*values, extremes])


@st.composite
def axes(draw: st.DrawFn) -> Interval:
    """Intervals of all sizes and places, also those whose cells are barely wide enough to be allowed."""
    cells = draw(st.integers(1, 3000))
    low = draw(st.floats(allow_nan=False, allow_infinity=False, max_value=1e300, min_value=-1e300))
    if draw(st.booleans()):
        high = draw(st.floats(allow_nan=False, allow_infinity=False, max_value=1e300, min_value=-1e300))
        low, high = min(low, high), max(low, high)
    else:
        high = low + cells * math.ulp(low) * draw(st.sampled_from([1024, 1025, 1500, 2048, 4099, 1e6]))
    try:
        return Interval("x", low, high, cells)
    except InvalidInput:
        return Interval("x", 0.0, 1.0, cells)


def test_cells_are_half_open_and_the_last_is_closed() -> None:
    line = Line(0, 4, cells=4)
    assert line.locate([0.0, 0.5, 1.0, 3.0, 3.999, 4.0]).tolist() == [0, 0, 1, 3, 3, 3]


def test_values_outside_are_clamped_also_infinite_ones() -> None:
    assert Line(0, 4, cells=4).locate([-1.0, -np.inf, 4.5, np.inf]).tolist() == [0, 0, 3, 3]


def test_a_division_that_rounds_does_not_decide() -> None:
    # 0.3 / 0.1 is below 3 and 0.6 / 0.1 is below 6 in doubles; the edges 3 * 0.1 and 6 * 0.1 lie above 0.3 and 0.6.
    axis = Interval("x", 0.0, 1.0, 10)
    assert axis.locate([0.3, axis.edges[3], 0.6, axis.edges[6]]).tolist() == [2, 3, 5, 6]
    # With nine cells the seventh edge divided by the width rounds to below 7; with six, what lies below 1/2 to 3.
    ninth, sixth = Interval("x", 0.0, 1.0, 9), Interval("x", 0.0, 1.0, 6)
    below = math.nextafter(0.5, 0.0)
    assert math.floor(ninth.edges[7] / float(ninth.width)) == 6
    assert math.floor(below / float(sixth.width)) == 3
    assert ninth.locate([ninth.edges[7]]).tolist() == [7]
    assert sixth.locate([below]).tolist() == [2]


def test_edges_are_one_product_and_one_sum() -> None:
    axis = Interval("x", -74.3, -73.7, 1000)
    assert axis.edges.tolist() == [-74.3 + i * axis.step for i in range(1000)] + [-73.7]


@given(axes())
def test_location_agrees_with_the_edges_on_adversarial_doubles(axis: Interval) -> None:
    values = adversarial(axis)
    assert (axis.locate(values) == oracle(axis, values)).all()


@given(axes(), st.lists(st.floats(allow_nan=False), min_size=1, max_size=50))
def test_location_agrees_with_the_edges_on_any_double(axis: Interval, values: list[float]) -> None:
    assert (axis.locate(values) == oracle(axis, np.array(values))).all()


@given(axes())
def test_edges_increase_strictly_and_lie_where_the_argument_puts_them(axis: Interval) -> None:
    assert (np.diff(axis.edges) > 0).all()
    unit = Fraction(math.ulp(max(abs(axis.low), abs(axis.high))))
    for i in {0, 1, axis.cells // 2, axis.cells - 1, axis.cells}:
        ideal = Fraction(axis.low) + i * Fraction(axis.step)
        assert abs(Fraction(float(axis.edges[i])) - ideal) < 5 * unit


@given(axes(), st.integers(1, 2**40))
def test_an_accepted_axis_never_guesses_more_than_one_off(axis: Interval, cells: int) -> None:
    try:
        axis = Interval("x", axis.low, axis.high, cells)  # far too many cells for an array of edges
    except InvalidInput:
        return
    index = np.unique(np.linspace(0, cells - 1, 200).astype(np.int64))
    edges = axis.low + index * axis.step
    below = np.nextafter(edges[1:], -np.inf)
    assert (axis.locate(edges) == index).all()
    assert (axis.locate(below) == index[1:] - 1).all()


def test_a_grid_numbers_its_cells_in_c_order() -> None:
    grid = Grid(bounds=(0, 0, 2, 3), shape=(2, 3))
    points = [(0.5, 0.5), (0.5, 2.5), (1.5, 0.5), (1.5, 1.5)]
    assert grid.locate(points).tolist() == [0, 2, 3, 4]
    assert grid.locate(tuple(np.array(points).T)).tolist() == [0, 2, 3, 4]


@pytest.mark.parametrize("count", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_chunks_leave_no_seam(count: int) -> None:
    grid = Grid(bounds=(-1, 2, 1, 9, 5, 10), shape=(3, 7, 11))
    points = np.random.default_rng(0).uniform((-2, 2, 1), (9, 5, 11), (count, 3))
    expected = np.ravel_multi_index(
        tuple(oracle(axis, points[:, i]) for i, axis in enumerate(grid.intervals)), grid.shape
    )
    assert (grid.locate(points) == expected).all()


def test_axes_of_different_kinds_locate_together() -> None:
    domain = Domain((Interval("hour", 0, 24, 24), Labels("age", ("young", "old"))))
    hours, ages = np.array([0.5, 23.5]), np.array(["old", "young"])
    assert domain.locate((hours, ages)).tolist() == [1, 46]


def test_ravel_and_unravel_are_inverse() -> None:
    grid = Grid(bounds=(0, 0, 1, 1), shape=(4, 6))
    cells = np.arange(24)
    assert (grid.ravel(grid.unravel(cells)) == cells).all()
    assert grid.ravel((3, 5)) == 23


def test_cell_coordinates_are_exact_on_edges_and_linear_between() -> None:
    grid = Grid(bounds=(-74.3, 0, -73.7, 4), shape=(1000, 4))
    axis = grid.intervals[0]
    edges = np.column_stack([axis.edges, np.zeros(1001), axis.edges, np.full(1001, 1.25)])
    low, high = grid.fractional(edges)
    assert low[:, 0].tolist() == list(range(1001)) == high[:, 0].tolist()
    assert (high[:, 1] == 1.25).all()


def test_cell_coordinates_are_clipped_to_the_box() -> None:
    low, high = Line(0, 4, cells=8).fractional([[-1.0, 0.25], [3.75, np.inf], [4.0, 4.0]])
    assert low.tolist() == [[0.0], [7.5], [8.0]]
    assert high.tolist() == [[0.5], [8.0], [8.0]]


@given(axes(), st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2))
def test_cell_coordinates_lie_in_the_cell_and_keep_the_order(axis: Interval, pair: list[float]) -> None:
    pair = sorted(min(max(value, axis.low), axis.high) for value in pair)
    coordinates, cells = axis.coordinate(pair), axis.locate(pair)
    assert coordinates[0] <= coordinates[1]
    assert ((cells <= coordinates) & (coordinates <= cells + 1)).all()


def test_nan_is_refused_without_being_shown() -> None:
    with pytest.raises(InvalidInput) as refusal:
        Line(0, 1, cells=2).locate([0.25, np.nan, 0.75])
    assert str(refusal.value) == (
        "Axis 'x': some values are NaN, which has no place on the axis. Nothing was counted. "
        "Remove them first; sf.count leaves them out by itself."
    )


def test_values_that_are_no_numbers_are_refused_without_being_shown() -> None:
    with pytest.raises(InvalidInput) as refusal:
        Line(0, 1, cells=2).locate(["secret"])
    assert str(refusal.value) == (
        "Axis 'x': values of type <U6 are not numbers. Nothing was counted. Convert them to float64 first."
    )


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (
            np.zeros((3, 3)),
            "points has 2 dimensions of the wrong sizes. Expected an array of shape (n, 2) or a tuple of 2 arrays of "
            "equal length.",
        ),
        (
            (np.zeros(3), np.zeros(4)),
            "points is a tuple of 2, not of matching columns. Expected an array of shape (n, 2) or a tuple of 2 arrays "
            "of equal length.",
        ),
    ],
)
def test_points_of_another_shape_are_refused(points: object, message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Grid(bounds=(0, 0, 1, 1), shape=(2, 2)).locate(points)  # type: ignore[arg-type]
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([1.0, 0.0], "ranges must not be NaN nor end before they begin. Give (lo…, hi…) with lo ≤ hi on each axis."),
        ([0.0, np.nan], "ranges must not be NaN nor end before they begin. Give (lo…, hi…) with lo ≤ hi on each axis."),
        (
            [[0.0, 1.0, 2.0]],
            "ranges of shape (1, 3) do not end in 2 numbers. Give (lo…, hi…): 1 lower ends, then 1 upper ends.",
        ),
    ],
)
def test_ranges_that_mean_nothing_are_refused(ranges: object, message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Line(0, 1, cells=2).fractional(ranges)  # type: ignore[arg-type]
    assert str(refusal.value) == message


def test_cells_beyond_the_domain_are_refused() -> None:
    grid = Grid(bounds=(0, 0, 1, 1), shape=(2, 2))
    with pytest.raises(InvalidInput) as refusal:
        grid.unravel(4)
    assert str(refusal.value) == "cells must be whole numbers from 0 to 3."
    with pytest.raises(InvalidInput) as refusal:
        grid.ravel((2, 0))
    assert str(refusal.value) == "index does not lie in the shape (2, 2) of the domain."
