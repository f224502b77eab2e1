"""What cells, blocks and the whole will have: by hand, against dense covariances, and in words."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sfumato as sf
from sfumato.planning import by_scale
from sfumato.workload.scales import blocks_of

LINE = sf.Line(0, 1, cells=20)
GRID = sf.Grid(bounds=(0, 0, 1, 1), shape=(20, 6))
MODES = sf.Categories(["bus", "bike", "car"], name="mode")
UNIT = sf.plan(sf.unbounded(LINE), sf.histogram(), epsilon=1, mechanism="identity").expected_error


def planned(policy, mechanism="identity", workload=None):
    return sf.plan(policy, workload or sf.histogram(), epsilon=1, mechanism=mechanism)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_noise_on_counts_adds_up_with_the_cells():
    scales = planned(sf.unbounded(LINE)).by_scale
    assert [scale.size for scale in scales] == ["a cell", "4 cells", "16 cells", "the whole"]
    assert [scale.error / UNIT for scale in scales] == pytest.approx([1, 4, (16 + 4) / 2, 20])
    assert [scale.typical_error for scale in scales] == pytest.approx([1.96 * scale.error**0.5 for scale in scales])


def test_blocks_have_the_same_side_along_every_axis():
    scales = planned(sf.unbounded(GRID)).by_scale
    assert [scale.blocks for scale in scales] == [(1, 1), (4, 4), (16, 6), (20, 6)]
    assert [scale.error / UNIT for scale in scales] == pytest.approx([1, 4 * 3, 10 * 6, 120])


def test_other_factors_are_summed_over():
    scales = planned(sf.unbounded(LINE * MODES)).by_scale
    assert {scale.factor for scale in scales} == {"x"}  # labels lie in no order
    assert [scale.error / UNIT for scale in scales] == pytest.approx([3, 12, 30, 60])


def test_a_public_total_is_exact():
    for policy in (sf.bounded(GRID), sf.bounded(GRID * MODES), sf.threshold(GRID, theta=2)):
        assert planned(policy, "hierarchy").by_scale[-1].error == 0


# --- oracle -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism", ["identity", "haar", "hierarchy", "hats", "hat-products", "edges", "edge-hierarchy", "edge-hats"]
)
@pytest.mark.parametrize("policy", [sf.unbounded(GRID), sf.bounded(GRID), sf.threshold(GRID, theta=2)], ids=repr)
def test_errors_are_those_of_the_blocks(policy, mechanism):
    try:
        plan = planned(policy, mechanism)
    except sf.InvalidInput:
        pytest.skip("does not fit")
    for scale in plan.by_scale:
        low = [np.arange(0, n, side) for n, side in zip(GRID.shape, scale.blocks, strict=True)]
        boxes = np.stack(np.meshgrid(*low, indexing="ij"), axis=-1).reshape(-1, 2).astype(float)
        ends = np.minimum(boxes + scale.blocks, GRID.shape)
        variance, _ = plan.mechanism.model.range_cumulants(boxes, ends)
        assert scale.error == pytest.approx(variance.mean(), abs=1e-9)


# --- in words ---------------------------------------------------------------------------------------------------------


def test_a_plan_says_what_every_scale_will_have():
    assert "By scale   a cell ±2.66, 4 cells ±5.32, 16 cells ±8.41, the whole ±11.9\n" in str(
        planned(sf.unbounded(LINE))
    )
    assert "By scale   a cell ±5.35, 4 cells ±9.81, 16 cells ±9.81, the whole exact\n" in str(planned(sf.bounded(LINE)))
    of_both = str(planned(sf.unbounded(GRID * sf.Line(0, 1, cells=4, name="t"))))
    assert "By scale   place, all else summed over: a cell ±" in of_both
    assert "; t, all else summed over: a cell ±" in of_both
    assert "<b>By scale</b>: a cell ±2.66" in planned(sf.unbounded(LINE))._repr_html_()


def test_programs_get_numbers():
    plan = planned(sf.unbounded(LINE))
    told = json.loads(json.dumps(plan.to_dict()))["by_scale"]
    assert told[1]["factor"] == "x" and told[1]["blocks"] == [4]
    assert told[1]["expected_error"] == plan.by_scale[1].error
    assert told[1]["typical_error"] == plan.by_scale[1].typical_error


def test_nothing_is_said_where_the_error_depends_on_the_data_or_nothing_has_an_order():
    assert planned(sf.unbounded(LINE), "dawa").by_scale == ()
    assert planned(sf.unbounded(MODES)).by_scale == ()
    assert "By scale" not in str(planned(sf.unbounded(MODES)))


# --- what scales are for ----------------------------------------------------------------------------------------------


def test_a_plan_for_every_scale_is_better_there_than_one_for_ranges():
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(64, 64))
    policy = sf.unbounded(grid)
    scales, ranges = (sf.plan(policy, asked, epsilon=1) for asked in (sf.scales(), sf.ranges()))

    def mean(plan):
        return np.mean([scale.error for scale in plan.by_scale])

    assert scales.expected_error == pytest.approx(mean(scales))
    assert mean(scales) < 0.6 * mean(ranges)


@pytest.mark.parametrize("policy", [sf.unbounded, sf.bounded])
def test_long_lines_are_said_by_some_of_their_blocks_and_that_is_near_enough(policy, monkeypatch):
    """Words about a line of 65,536 cells took twenty seconds: one solution for every block."""
    monkeypatch.setattr(by_scale, "SOME_BLOCKS", 101)
    plan = sf.plan(policy(sf.Line(0, 1, cells=2048)), sf.ranges(), 1, mechanism="hats")
    exact = [plan.mechanism.model.error_of(blocks_of(scale.blocks[0], (2048,))) for scale in plan.by_scale]
    assert [scale.error for scale in plan.by_scale] == pytest.approx(exact, rel=0.03, abs=1e-9)
    (few,) = blocks_of(4, (2048,), 101)
    assert few.count(2048) == 512
    assert len(few.listed(2048)[0]) == 101
