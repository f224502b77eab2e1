"""Bins with given edges: a cell comes from comparison with the edges, and nothing is told of equal widths."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.domain import Bins, Categories, Domain, Grid, Line
from sfumato.errors import InvalidInput, TooLarge

FARES = Line(edges=[0, 5, 10, 20, 50, 200], name="fare")


@st.composite
def axes(draw: st.DrawFn) -> Bins:
    """Edges of all sizes, close together and far apart."""
    cuts = draw(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=30, unique=True))
    return Bins("x", tuple(sorted(set(np.array(cuts) + 0.0))))


@given(axes())
def test_every_double_lies_where_the_edges_say(axis: Bins) -> None:
    edges = axis.edges
    near = [np.nextafter(edges, direction) for direction in (-np.inf, np.inf)]
    values = np.concatenate([edges, *near, (edges[1:] + edges[:-1]) / 2, [np.inf, -np.inf, 0.0, -0.0]])
    cells = axis.locate(values)
    inside = (values >= axis.low) & (values <= axis.high)
    assert ((edges[cells] <= values) & (values <= edges[cells + 1]))[inside].all()
    assert (values < edges[cells + 1])[inside & (values < axis.high)].all()  # half-open, the last one closed
    assert (cells[values < axis.low] == 0).all() and (cells[values >= axis.high] == axis.cells - 1).all()
    assert (axis.outside(values) == ~inside).all()


def test_a_line_with_edges_by_hand() -> None:
    assert FARES.shape == (5,)
    assert FARES.locate([-1, 0, 4.99, 5, 19.99, 20, 200, 1e9]).tolist() == [0, 0, 0, 1, 2, 3, 4, 4]
    axis = FARES.intervals[0]
    assert axis.coordinate([0, 2.5, 5, 15, 200, 999]).tolist() == [0, 0.5, 1, 2.5, 5, 5]
    inside, touched = axis.covered([5.0, 6.0], [50.0, 60.0])
    assert inside.tolist() == [[1, 4], [2, 4]]
    assert touched.tolist() == [[1, 4], [1, 5]]
    assert axis.cell_names()[0] == "[0, 5)"
    assert FARES.is_spatial and FARES.is_ordered and FARES.bounds == (0, 200)


def test_a_grid_with_edges_numbers_its_cells_in_c_order() -> None:
    grid = Grid(edges=([0, 1, 10], [0, 5, 6, 7]), name="origin")
    assert (grid.names, grid.shape) == (("origin_x", "origin_y"), (2, 3))
    assert grid.locate([(0.5, 5.5), (2, 6.5)]).tolist() == [1, 5]
    assert [factor.name for factor in grid.factors] == ["origin"]
    low, high = grid.fractional([(0.5, 5, 10, 6.5)])
    assert low.tolist() == [[0.5, 1.0]] and high.tolist() == [[2.0, 2.5]]


def test_near_by_hand() -> None:
    """Between the bins [0, 5) and [10, 20) lie 5: a move by less than 5 never leads from the one to the other."""
    axis = FARES.axes[0]
    touching = [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert axis.near(5).tolist() == touching
    assert axis.near(5.0001).tolist() == [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]]
    assert axis.near(1e-9).tolist() == touching
    assert len(axis.near(1000)) == 10


@given(axes(), st.floats(1e-6, 1e300))
def test_near_is_exact(axis: Bins, delta: float) -> None:
    exact = [Fraction(edge) for edge in axis.cuts]
    limit = Fraction(repr(delta))
    wanted = {
        (i, j)
        for i in range(axis.cells)
        for j in range(i + 1, axis.cells)
        if j == i + 1 or exact[j] - exact[i + 1] < limit
    }
    assert {tuple(pair) for pair in axis.near(delta).tolist()} == wanted


@given(axes(), st.floats(1e-6, 1e300))
def test_the_smallest_gap_is_that_of_some_pair(axis: Bins, limit: float) -> None:
    apart = np.arange(axis.cells + 1)
    gaps = axis.gap(apart)
    for k in range(axis.cells + 1):
        pairs = [axis.edges[i + k] - axis.edges[i + 1] for i in range(axis.cells - k)]
        assert gaps[k] == (0.0 if k <= 1 else min(pairs, default=math.inf))
    near = np.flatnonzero(gaps[: axis.cells] < limit)
    assert axis.farthest(limit) == near[-1]


def test_layers_along_the_ends_are_as_deep_at_both() -> None:
    axis = Bins("x", (0.0, 1.0, 3.0, 10.0, 14.0))
    assert axis.depths.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_sizes_in_words() -> None:
    assert FARES.axes[0].size(1) == "5 to 150"
    assert FARES.axes[0].size(5) == "200"
    assert Bins("x", (0.0, 1.0, 2.0)).size(1) == "1"


def test_too_many_near_pairs_are_refused_before_they_are_made() -> None:
    with pytest.raises(TooLarge) as refusal:
        Line(0, 1, cells=20_000).axes[0].near(0.5)
    assert str(refusal.value).startswith("Axis 'x': 149,9")
    assert "too many to list (at most 50,000,000). Use a smaller delta, or fewer cells." in str(refusal.value)


def test_equal_cells_have_exact_near_pairs_too() -> None:
    axis = Line(0, 1, cells=10).axes[0]
    exact = [Fraction(edge) for edge in axis.edges.tolist()]  # type: ignore[attr-defined]
    wanted = [
        [i, j] for i in range(10) for j in range(i + 1, 10) if j == i + 1 or exact[j] - exact[i + 1] < Fraction(1, 5)
    ]
    assert axis.near("0.2").tolist() == wanted


def test_labels_have_no_distance() -> None:
    with pytest.raises(InvalidInput) as refusal:
        Categories(["a", "b"]).axes[0].near(1)
    assert str(refusal.value) == (
        "Axis 'category': no distance is known between its cells, so delta=1 says nothing of them. Use sf.graph, and "
        "say which cells are neighbours."
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("Line(edges=[0])", "Axis 'x': edges has 1 numbers. Give at least two, for one bin, and at most 1,048,576."),
        (
            "Line(edges=[0, 2, 2, 3], name='fare')",
            "Axis 'fare': edges must rise, and edges[1]=2 is not below edges[2]=2. Give each edge once, from the "
            "lowest to the highest.",
        ),
        ("Line(edges=[0, float('nan'), 1])", "Axis 'x': edges[1]=nan is not a finite number."),
        ("Line(edges=[0, float('inf')])", "Axis 'x': edges[1]=inf is not a finite number."),
        ("Line(edges=[0, '5'])", "Axis 'x': edges[1]='5' is not a finite number."),
        ("Line(edges=7)", "Axis 'x': edges=7 is not a list of numbers."),
        ("Line(edges='abc')", "Axis 'x': edges='abc' is not a list of numbers."),
        (
            "Line(edges=[-1.7e308, 1.7e308])",
            "Axis 'x': the distance from edges[0]=-1.7e+308 to edges[1]=1.7e+308 is not a finite double. Use edges "
            "closer to each other.",
        ),
        (
            "Line(0, 1, edges=[0, 1])",
            "edges goes without low=0, high=1: they say the same. Leave one of them out.",
        ),
        ("Line(0, 1)", "cells must be given as well: sf.Line(low, high, cells=…), or sf.Line(edges=[…])."),
        ("Grid(bounds=(0, 1))", "shape must be given as well: sf.Grid(bounds, shape), or sf.Grid(edges=([…], […]))."),
        (
            "Grid((0, 0, 1, 1), edges=([0, 1], [0, 1]))",
            "edges goes without bounds and shape: they say the same. Leave one of them out.",
        ),
        ("Grid(edges=([0, 1],))", "edges has the edges of 1 axes, and a grid has at least two. Use sf.Line for one."),
        ("Grid(edges=5)", "edges=5 is not a sequence."),
    ],
)
def test_bins_that_cannot_be_are_refused(call: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        eval(call, {"Line": Line, "Grid": Grid})
    assert str(refusal.value) == message


def test_nan_has_no_bin() -> None:
    with pytest.raises(InvalidInput, match="some values are NaN, which has no place on the axis"):
        FARES.locate([1.0, math.nan])


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (FARES, "Line(edges=[0, 5, 10, 20, 50, 200], name='fare')"),
        (Line(edges=range(20)), "Line(edges=[0, 1, 2, …, 19] (19 bins))"),
        (Grid(edges=([0, 1, 3], [0, 2])), "Grid(edges=([0, 1, 3], [0, 2]))"),
        (
            Grid(edges=([0, 1, 3], [0, 2]), name="origin") * FARES,
            "Grid(edges=([0, 1, 3], [0, 2]), name='origin') * Line(edges=[0, 5, 10, 20, 50, 200], name='fare')",
        ),
        (Domain((Bins("a", (0.0, 1.0)), Bins("b", (0.0, 1.0)))), "Grid(edges=([0, 1], [0, 1]), names=('a', 'b'))"),
    ],
)
def test_printing_is_short(domain: Domain, text: str) -> None:
    assert repr(domain) == text


def test_more_gaps_than_can_be_compared_are_refused() -> None:
    many = Bins("x", tuple(range((1 << 18) + 1)))
    with pytest.raises(TooLarge, match="Nothing was built"):
        many.gap(np.arange(1 << 17))
    assert many.gap(np.arange(3)).tolist() == [0.0, 0.0, 1.0]
