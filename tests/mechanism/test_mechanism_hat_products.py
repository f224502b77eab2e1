"""Products of hats and cells: what a plan makes of them, how much noise they have, and what they refuse."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mechanism_oracle import box

import sfumato as sf
from sfumato.mechanism import build
from sfumato.mechanism.cells.hat_product_tuning import _outermost, best_hat_products

SMALL = Fraction(1, 1000)


@pytest.mark.parametrize(
    ("policy", "most"),
    [
        (lambda: sf.unbounded(box((32, 32))), 180),
        (lambda: sf.unbounded(box((64, 64))), 450),
        (lambda: sf.bounded(box((64, 64))), 1_660),
        (lambda: sf.within(box((64, 64)), 2 / 64), 1_100),
        (lambda: sf.within(box((64, 64)), 4 / 64), 1_390),
        (lambda: sf.within(box((256, 256)), 4 / 256), 6_000),
        (lambda: sf.within(box((256, 256)), 8 / 256), 7_100),
        (lambda: sf.within(box((256, 256)), 16 / 256), 8_250),
    ],
)
def test_a_plan_takes_them_for_ranges_of_grids(policy, most):
    plan = sf.plan(policy(), sf.ranges(), 1)
    assert plan.mechanism.name == "hat-products"
    assert plan.expected_error <= most
    assert plan.mechanism.privacy_loss == 1


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        (sf.within(box((14, 11)), 0.2), sf.ranges()),
        (sf.unbounded(box((14, 11))), sf.scales()),
        (sf.bounded(box((6, 7, 8))), sf.prefixes()),
    ],
)
def test_what_is_expected_is_the_error_of_the_matrix(policy, asked):
    mechanism = sf.plan(policy, asked, SMALL, mechanism="hat-products").mechanism
    (block,) = mechanism.model.blocks
    written = block.estimator.dense()
    columns = np.concatenate([mechanism.strategy.dense(), np.zeros((block.estimator.cols, 1), dtype=np.int64)], axis=1)
    edges = policy.edges()
    assert block.noise.rate == SMALL / int(np.abs(columns[:, edges[:, 0]] - columns[:, edges[:, 1]]).sum(axis=0).max())
    expected = float((asked.gram(policy.domain) * (block.noise.variance * written @ written.T)).sum())
    assert mechanism.model.expected_error(asked, policy.domain) == pytest.approx(expected)


def test_weights_and_widths_are_the_best_nearby():
    policy, asked = sf.within(box((48, 48)), 3.5 / 48), sf.ranges()
    hats, height, weights = best_hat_products(policy, asked)
    best = build("hat-products", policy, SMALL, hats=hats, height=height, weights=weights)
    error = best.model.expected_error(asked, policy.domain)
    for change in ((2, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 5, 0)):
        other = [max(w + d * max(w // 4, 1), 0) for w, d in zip(weights, (0, change[1], change[2]), strict=True)]
        near = [hats[0] + change[0]] * 2
        made = build("hat-products", policy, SMALL, hats=near, height=height, weights=[weights[0], *other[1:]])
        assert made.model.expected_error(asked, policy.domain) > error * 0.99, change


def test_the_longest_moves_are_those_that_no_other_exceeds():
    sizes = np.array([(0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)])
    assert sorted(map(tuple, _outermost(sizes))) == [(0, 2), (1, 2), (2, 0), (2, 1)]


def test_releases_are_read_again_and_keep_the_total(tmp_path):
    policy = sf.within(box((20, 16)), 0.2)
    counts = np.random.default_rng(1).integers(0, 90, (20, 16))
    release = sf.plan(policy, sf.ranges(), 1, mechanism="hat-products").publish(counts, source=sf.SeededSource(4))
    assert release.counts.sum() == counts.sum()
    release.save(tmp_path / "places.sfumato")
    again = sf.load(tmp_path / "places.sfumato")
    assert np.array_equal(again.counts, release.counts)
    asked, told = (one.answer((0.1, 0.2, 0.7, 0.9)) for one in (release, again))
    assert (asked.value, asked.stderr, asked.low) == (told.value, told.stderr, told.low)


def test_a_plan_tries_them_where_sums_over_cells_of_a_grid_are_asked():
    def tried(policy, asked):
        return any(other.name == "hat-products" and other.error for other in sf.plan(policy, asked, 1).alternatives)

    assert tried(sf.threshold(box((12, 12)), 2), sf.ranges())
    assert tried(sf.unbounded(box((6, 7, 8))), sf.prefixes())
    assert not tried(sf.threshold(box((12, 12)), 2), sf.histogram())
    assert not tried(sf.unbounded(box((40,))), sf.ranges())  # hats of several widths are better on lines
    assert not tried(sf.unbounded(box((5, 4))), sf.ranges())


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        (sf.unbounded(box((9, 9))), {"hats": [3, 3]}, "needs all of hats, height and weights, or none of them"),
        (sf.unbounded(box((9, 9))), {"hats": [3], "height": 2, "weights": [1, 1]}, "must have a number for each of 2"),
        (sf.unbounded(box((9, 9))), {"hats": [3, -1], "height": 2, "weights": [1, 1]}, "must be whole numbers"),
        (sf.unbounded(box((9, 9))), {"hats": 3, "height": 2.5, "weights": [1, 1, 1]}, "must be whole numbers"),
        (sf.unbounded(box((9, 9))), {"width": 2}, "takes no option width"),
        (sf.unbounded(box((5, 4))), {}, "needs an axis in order of at least 6 cells"),
        (sf.graph(box((9,)), [(0, 1), (2, 3)], publish_component_totals=True), {}, "needs a connected policy"),
    ],
)
def test_refusals(policy, options, message):
    with pytest.raises(sf.InvalidInput, match=message):
        build("hat-products", policy, Fraction(1), **options)


def test_exact_totals_of_public_factors_are_for_others():
    space = sf.Grid(bounds=(0, 0, 1, 1), shape=(8, 8)) * sf.Categories(["a", "b"], name="kind")
    policy = sf.policy(space, hide=sf.move(0.3), public=["kind"])
    with pytest.raises(sf.InvalidInput, match="knows one exact total at the most"):
        build("hat-products", policy, Fraction(1), hats=[3, 3, 0], height=4, weights=[3, 1, 1])
    assert sf.plan(policy, sf.ask(place=sf.ranges()), 1).mechanism.name != "hat-products"
