"""Questions of products: a query along every factor, sums over the others, tables, scales, levels, and unions."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp
from workload_oracle import blocks, cells, prefixes, rows, spans, total, weighted_gram

import sfumato as sf
from sfumato.linear.estimator import box_weights
from sfumato.workload import CELLS, RANGES, TOTAL, Blocks, Part

PLACE = sf.Grid(bounds=(0, 0, 3, 4), shape=(3, 4))
TIME = sf.Line(0, 5, cells=5, name="t")
MODE = sf.Categories(["bus", "bike"], name="mode")
SPACE = PLACE * MODE * TIME
SHAPE = (3, 4, 2, 5)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_numbers_of_queries_by_hand():
    assert sf.ask(place=sf.ranges(), mode=sf.histogram(), t=sf.prefixes()).count(SPACE) == 6 * 10 * 2 * 5
    assert sf.ask(place=sf.ranges()).count(SPACE) == 60
    assert sf.ask(x=sf.ranges()).count(SPACE) == 6
    assert sf.ask().count(SPACE) == 1
    assert sf.marginals("mode", ("t", "mode"), "x").count(SPACE) == 2 + 10 + 3
    assert sf.marginals(2).count(SPACE) == 12 * 2 + 12 * 5 + 2 * 5
    assert sf.scales().count(PLACE) == 12 + 1
    assert sf.levels().count(PLACE) == 12 + 4 + 1
    assert sf.levels().count(MODE) == 2 + 1
    assert (sf.ask(place=sf.ranges()) + 2 * sf.marginals("mode")).count(SPACE) == 62


def test_what_is_left_out_is_summed_over():
    assert sf.ask(t=sf.ranges()).parts(SPACE) == (Part(Fraction(1), (TOTAL, TOTAL, TOTAL, RANGES)),)
    assert sf.ask(y=sf.histogram()).parts(SPACE) == (Part(Fraction(1), (TOTAL, CELLS, TOTAL, TOTAL)),)


def test_the_order_of_names_does_not_matter():
    one, other = sf.ask(place=sf.ranges(), t=sf.histogram()), sf.ask(t=sf.histogram(), place=sf.ranges())
    assert one.parts(SPACE) == other.parts(SPACE)


def test_every_scale_counts_alike():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(64, 20))
    parts = sf.scales().parts(grid)
    assert [part.kinds for part in parts] == [
        (CELLS, CELLS),
        (Blocks(4), Blocks(4)),
        (Blocks(16), Blocks(16)),
        (TOTAL, TOTAL),
    ]
    shares = [part.weight * part.count(grid.shape) for part in parts]
    assert set(shares) == {Fraction(sf.scales().count(grid), 4)}
    assert sf.scales().weight(grid) == sf.scales().count(grid)


def test_an_axis_that_is_no_longer_than_a_scale_is_summed_over():
    long = sf.Grid(bounds=(0, 0, 1, 1), shape=(64, 3))
    assert [part.kinds for part in sf.scales().parts(long)][1:3] == [(Blocks(4), TOTAL), (Blocks(16), TOTAL)]


def test_one_cell_has_one_scale():
    assert sf.scales().count(sf.Line(0, 1, cells=1)) == sf.levels().count(sf.Categories(["all"])) == 1


def test_levels_are_halves_of_grids_and_lines_and_the_labels_with_their_whole():
    kinds = [part.kinds for part in sf.levels().parts(sf.Line(0, 1, cells=12))]
    assert kinds == [(CELLS,), (Blocks(2),), (Blocks(4),), (Blocks(8),), (TOTAL,)]
    assert [part.kinds for part in sf.levels().parts(MODE)] == [(CELLS,), (TOTAL,)]


def test_workloads_say_themselves():
    union = sf.ask(place=sf.ranges(), mode=sf.histogram()) + 2 * sf.marginals("mode", ("t", "mode"))
    assert union.describe() == "all ranges of place × single cells of mode + 2 × the tables of mode, t × mode"
    assert (0.5 * sf.scales() + sf.levels()).describe() == "0.5 × every scale alike + every level alike"
    assert sf.marginals(2).describe() == "the tables of every 2 factors"
    assert sf.marginals(1).describe() == "the table of every factor"
    assert sf.marginals("mode").describe() == "the table of mode"
    assert sf.ask().describe() == "the total"
    assert union.spec() == {
        "kind": "union",
        "terms": [
            {
                "weight": "1",
                "workload": {"kind": "ask", "along": {"place": {"kind": "ranges"}, "mode": {"kind": "cells"}}},
            },
            {"weight": "2", "workload": {"kind": "marginals", "tables": [["mode"], ["t", "mode"]]}},
        ],
    }
    assert sf.marginals(2).spec() == {"kind": "marginals", "ways": 2}
    assert (sf.scales().spec(), sf.levels().spec()) == ({"kind": "scales"}, {"kind": "levels"})


def test_workloads_are_values():
    assert sf.ask(place=sf.ranges()) + sf.scales() == sf.ask(place=sf.ranges()) + sf.scales()
    assert 3 * (2 * sf.ranges() + sf.histogram()) == 6 * sf.ranges() + 3 * sf.histogram()
    assert np.float64(2) * sf.ranges() == sf.ranges() * 2


# --- oracle -----------------------------------------------------------------------------------------------------------

BOXES = [(0, 0, 2, 3), (0.5, 1, 3, 4), (1, 0, 1.5, 0.5)]
HOURS = [(0, 2), (1.5, 5)]


def boxes(shape, given):
    """Given boxes, one row each."""
    low, high = np.split(np.array(given, dtype=float), 2, axis=1)
    return box_weights(shape, low, high)


def times(*tables):
    """All products of a row of each."""
    return reduce(np.kron, tables)


PLACES, TIMES, EVERY_MODE, EVERY_HOUR = boxes((3, 4), BOXES), boxes((5,), HOURS), np.ones((1, 2)), np.ones((1, 5))
WEIGHED = np.arange(480.0).reshape(4, 120) / 100
CASES = {
    "ranges and cells": (
        sf.ask(place=sf.ranges(), mode=sf.histogram()),
        [(1, rows(SHAPE, spans, spans, cells, total))],
    ),
    "axes": (sf.ask(y=sf.prefixes(), t=sf.ranges()), [(1, rows(SHAPE, total, prefixes, total, spans))]),
    "given boxes": (sf.ask(place=sf.ranges(BOXES)), [(1, times(PLACES, EVERY_MODE, EVERY_HOUR))]),
    "given boxes and hours": (
        sf.ask(t=sf.ranges(HOURS), mode=sf.histogram(), place=sf.ranges(BOXES)),
        [(1, times(PLACES, np.eye(2), TIMES))],
    ),
    "a given axis": (
        sf.ask(y=sf.ranges([(1, 3.5)]), x=sf.ranges()),
        [(1, times(rows((3,), spans), boxes((4,), [(1, 3.5)]), EVERY_MODE, EVERY_HOUR))],
    ),
    "union": (
        sf.ask(place=sf.ranges()) + 2 * sf.marginals("mode", ("t", "mode")),
        [
            (1, rows(SHAPE, spans, spans, total, total)),
            (2, rows(SHAPE, total, total, cells, total)),
            (2, rows(SHAPE, total, total, cells, cells)),
        ],
    ),
    "everything": (
        sf.histogram() + 0.5 * sf.ask(place=sf.ranges(BOXES)) + 3 * sf.queries(WEIGHED),
        [(1, np.eye(120)), (0.5, times(PLACES, EVERY_MODE, EVERY_HOUR)), (3, WEIGHED)],
    ),
    "scales": (  # 5 hours, 2 blocks of up to 4 and the whole count alike
        sf.ask(t=sf.scales(), mode=sf.histogram()),
        [
            (1 / 5, rows(SHAPE, total, total, cells, cells)),
            (1 / 2, rows(SHAPE, total, total, cells, blocks(4))),
            (1 / 1, rows(SHAPE, total, total, cells, total)),
        ],
    ),
    "levels": (  # 12 cells, 4 blocks of 2 × 2 and the whole; 2 modes and both
        sf.ask(place=sf.levels(), mode=sf.levels()),
        [
            (1 / (12 * 2), rows(SHAPE, cells, cells, cells, total)),
            (1 / 12, rows(SHAPE, cells, cells, total, total)),
            (1 / (4 * 2), rows(SHAPE, blocks(2), blocks(2), cells, total)),
            (1 / 4, rows(SHAPE, blocks(2), blocks(2), total, total)),
            (1 / 2, rows(SHAPE, total, total, cells, total)),
            (1, rows(SHAPE, total, total, total, total)),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_grams_are_weighted_means_over_all_queries(name):
    workload, terms = CASES[name]
    workload.check(SPACE)
    assert workload.count(SPACE) == sum(len(table) for _, table in terms)
    assert np.allclose(workload.gram(SPACE), weighted_gram(*terms))


@pytest.mark.parametrize("name", CASES)
def test_mean_squares_are_weighted_means_over_all_queries(name):
    workload, terms = CASES[name]
    values = np.random.default_rng(1).normal(size=SHAPE)
    want = values.ravel() @ weighted_gram(*terms) @ values.ravel()
    assert workload.mean_square(values, SPACE) == pytest.approx(want)


def test_workloads_of_several_kinds_count_with_their_weights():
    union = sf.ranges() + 3 * sf.queries(sp.eye(5).tocsr()[:2])
    assert union.count(TIME) == 17 and union.weight(TIME) == 15 + 6 and union.parts(TIME) is None


# --- refusals ---------------------------------------------------------------------------------------------------------

KNOWN = "which has 'place' (x, y), 'mode', 't'"
ONE = "'place' and 'x' both stand for axis 'x'"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: sf.ask(plaec=sf.ranges()).check(SPACE),
            f"'plaec' is no factor and no axis of this domain, {KNOWN}. Did you mean 'place'? Nothing was computed.",
        ),
        (
            lambda: sf.ask(weather=sf.ranges()).check(SPACE),
            f"'weather' is no factor and no axis of this domain, {KNOWN}. Nothing was computed.",
        ),
        (
            lambda: sf.ask(place=sf.ranges(), x=sf.ranges()).check(SPACE),
            f"{ONE} in sf.ask(…). Nothing was computed. Give one of them.",
        ),
        (
            lambda: sf.ask(mode=sf.ranges()).check(SPACE),
            "mode=…: all ranges need an order, and the labels of axis 'mode' have none. Nothing was computed. "
            "Use sf.histogram() or sf.queries(matrix).",
        ),
        (
            lambda: sf.ranges().check(SPACE),
            "all ranges need an order, and the labels of axis 'mode' have none. Nothing was computed. "
            "Use sf.histogram() along it, as in sf.ask(…, mode=sf.histogram()), or sf.queries(matrix).",
        ),
        (
            lambda: sf.ask(place=sf.ranges([(0, 1)])).check(SPACE),
            "place=…: ranges of shape (1, 2) do not end in 4 numbers. Give (lo…, hi…): 2 lower ends, then 2 upper "
            "ends.",
        ),
        (
            lambda: sf.ask(mode=sf.queries(np.eye(2))).check(SPACE),
            "mode=…: 2 given linear queries cannot be multiplied with queries along other factors: a matrix has one "
            "column for every cell of the whole domain. Nothing was computed. Add it up instead: sf.ask(…) + "
            "sf.queries(matrix).",
        ),
        (
            lambda: sf.ask(place="ranges"),
            "place='ranges' is not a workload. Nothing was computed. Use sf.ranges(), sf.histogram(), sf.prefixes(), "
            "sf.scales() or sf.levels().",
        ),
        (
            lambda: sf.scales().check(SPACE),
            "sf.scales() is for one factor, and this domain has 'place', 'mode', 't'. Nothing was computed. Say along "
            "which: sf.ask(place=sf.scales(), …).",
        ),
        (
            lambda: sf.ask(mode=sf.scales()).check(SPACE),
            "mode=…: scales need an order, and the labels of axis 'mode' have none. Nothing was computed. Use "
            "sf.levels(), which takes labels and their whole, or sf.histogram().",
        ),
        (
            lambda: sf.levels().check(SPACE),
            "sf.levels() is for one factor, and this domain has 'place', 'mode', 't'. Nothing was computed. Say along "
            "which: sf.ask(place=sf.levels(), …).",
        ),
        (
            lambda: sf.marginals(4).check(SPACE),
            "sf.marginals(4) asks for tables of 4 factors, and this domain has 3. Nothing was computed. Use at most "
            "sf.marginals(3).",
        ),
        (
            lambda: sf.marginals("mod").check(SPACE),
            f"'mod' is no factor and no axis of this domain, {KNOWN}. Did you mean 'mode'? Nothing was computed.",
        ),
        (
            lambda: sf.marginals(("place", "x")).check(SPACE),
            f"{ONE} in one table. Nothing was computed. Give one of them.",
        ),
        (
            lambda: sf.marginals(("t", "mode"), ("mode", "t")),
            "sf.marginals(…) names the table 'mode' × 't' twice. Nothing was computed. To make it count more, add it "
            "up: sf.marginals(…) + 2 * sf.marginals(…).",
        ),
        (
            lambda: sf.marginals(),
            "sf.marginals(…) takes the names of factors, tuples of them for tables of several, or one whole number; "
            "none was given. Nothing was computed. Write sf.marginals('mode', ('t', 'mode')) or sf.marginals(2).",
        ),
        (
            lambda: sf.marginals("mode", 3),
            "sf.marginals(…) takes the names of factors, tuples of them for tables of several, or one whole number; "
            "3 is no such table. Nothing was computed. Write sf.marginals('mode', ('t', 'mode')) or sf.marginals(2).",
        ),
        (
            lambda: sf.marginals(()),
            "sf.marginals(…) takes the names of factors, tuples of them for tables of several, or one whole number; "
            "a table without a name is the total alone. Nothing was computed. Write sf.marginals('mode', ('t', "
            "'mode')) or sf.marginals(2).",
        ),
        (lambda: sf.marginals(0), "ways=0 must be a whole number of at least 1."),
        (lambda: sf.marginals(True), "ways=True must be a whole number of at least 1."),
        (
            lambda: 0 * sf.ranges(),
            "the weight of a workload=0 must be greater than zero. Nothing was drawn or recorded.",
        ),
        (
            lambda: sf.ranges() * sf.ranges(),
            "workloads are added up with +, or multiplied with a positive number. For a query along one factor times "
            "one along another write sf.ask(place=…, mode=…). Nothing was computed.",
        ),
    ],
)
def test_questions_that_make_no_sense_are_refused(build, message):
    with pytest.raises(sf.InvalidInput) as refusal:
        build()
    assert str(refusal.value) == message


def test_other_things_do_not_add_up():
    with pytest.raises(TypeError):
        sf.ranges() + 1
