"""Figures that are shown hold the truth given that they are shown; what is not shown says why."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from coverage_oracle import Law
from released import GRID, LINE, known, sample

import sfumato as sf
from sfumato.figures.law import joint
from sfumato.figures.reading import Reading
from sfumato.figures.selected import Selected
from sfumato.figures.tails import Tail, at_most
from sfumato.noise import DiscreteLaplace

ONE = DiscreteLaplace(Fraction(1))
FEW = DiscreteLaplace(Fraction(2))


def tail(*terms: tuple[list[float], list[float], DiscreteLaplace]) -> Tail:
    return Tail.of([(np.array(c), np.array(n, dtype=float), noise) for c, n, noise in terms])


def test_the_figures_of_the_rule() -> None:
    """ε = 1, τ = 10: [0, 12] to [0, 16] for 10 to 13, then [11, 17], and the plain interval of ±3 from there on."""
    low, high = Selected(tail(([1], [1], ONE)), 10, 0.95).intervals(np.arange(10.0, 40.0))
    assert list(zip(low[:5].tolist(), high[:5].tolist(), strict=True)) == [(0, 12), (0, 14), (0, 15), (0, 16), (11, 17)]
    assert (low[4:] == np.arange(11, 37)).all() and (high[4:] == np.arange(17, 43)).all()


@pytest.mark.parametrize("threshold", [0.5, 3, 10, 40])
@pytest.mark.parametrize("terms", [[([1], [1], ONE)], [([1], [3], FEW)], [([1, 2], [2, 1], FEW), ([1], [1], ONE)]])
def test_the_interval_holds_given_that_a_figure_is_shown(threshold: float, terms: Any) -> None:
    """Exactly, for every truth from 0 to beyond the threshold, by the law written out; a tenth less noise would not."""
    law = tail(*terms)
    draws = np.arange(-150, 151)
    chance = law.most(draws) - law.most(draws + 1)
    assert chance.sum() == pytest.approx(1, abs=1e-9)
    wrong = tail(*[([0.9 * c for c in sizes], n, noise) for sizes, n, noise in terms])
    short = []
    for truth in range(int(threshold) + 25):
        shown = draws + truth >= threshold
        if chance[shown].sum() < 1e-9:
            continue
        values = (draws + truth)[shown].astype(float)
        for one, found in ((law, None), (wrong, short)):
            low, high = Selected(one, threshold, 0.95).intervals(values)
            held = chance[shown][(low <= truth) & (truth <= high)].sum() / chance[shown].sum()
            if found is None:
                assert held >= 0.95 - 1e-6, (truth, held)
            else:
                found.append(held)
    assert min(short) < 0.95


def test_the_plain_interval_would_not_hold() -> None:
    """What this is about: given that it is shown, small truths are in none of the plain intervals."""
    values = np.arange(10.0, 60.0)
    chance = ONE.pmf(values - 2)
    plain = np.abs(values - 2) <= 3
    low, _ = Selected(tail(([1], [1], ONE)), 10, 0.95).intervals(values)
    assert chance[plain].sum() == 0
    assert chance[low <= 2].sum() / chance.sum() >= 0.95


@pytest.mark.parametrize(
    "terms",
    [
        [([1], [5], ONE)],
        [([1, 3], [2, 1], ONE), ([0.5], [4], FEW)],
        [([0.337, 1.0, 0.71], [3, 1, 9], DiscreteLaplace(Fraction(1, 40)))],
        [(np.linspace(0.1, 1, 700).tolist(), [1] * 700, FEW)],
    ],
)
def test_the_tail_is_bounded_on_both_sides(terms: Any) -> None:
    """By a law that knows nothing of it, and by simulation: 400,000 draws, within six deviations of a share."""
    law = tail(*terms)
    rng = np.random.default_rng(1)
    drawn = np.zeros(400_000)
    for sizes, counts, noise in terms:
        p = -math.expm1(-float(noise.rate))
        for size, count in zip(sizes, counts, strict=True):
            for _ in range(int(count)):
                if len(sizes) < 100:
                    drawn += size * (rng.geometric(p, len(drawn)) - rng.geometric(p, len(drawn)))
    truth = Law([(np.repeat(np.array(c, dtype=float), np.array(n)), noise) for c, n, noise in terms])
    assert law.deviation == pytest.approx(truth.deviation)
    for share in (-1.7, -0.5, 0.0, 0.3, 1.0, 2.2, 4.0):
        x = np.array(share * law.deviation)
        least, most = float(law.least(x)), float(law.most(x))
        assert 0 <= least <= most <= 1
        assert most - least <= 0.08
        if len(terms[0][0]) < 100:
            seen = float((drawn >= x - 1e-9).mean())
            assert least - 6 * 0.5 / 632 <= seen <= most + 6 * 0.5 / 632
        if share > 0:
            outside = (1 - truth.holds(float(x))) / 2  # P[N > x], which both bounds are about but for an atom
            assert float(law.least_beyond(x)) <= outside + 1e-3 and outside <= most + 1e-3
            groups = [(np.array(c), np.array(n, dtype=float), noise) for c, n, noise in terms]
            assert most <= at_most(groups, float(x)) + 1e-9


def test_reasons_for_every_gap_and_intervals_for_the_rest() -> None:
    release = known(LINE, [0, 4, 9, 10, 13, 14, 60, 200])
    table = release.suppress(below=10, off_by=0.1)
    assert table.reason.tolist() == [
        *["below 10; off by more than ±0.1 of itself with a chance above 0.05"] * 3,
        *["off by more than ±0.1 of itself with a chance above 0.05"] * 3,
        "",
        "",
    ]
    assert np.isnan(table.value[:6]).all() and np.isnan(table.low[:6]).all() and np.isnan(table.high[:6]).all()
    assert table.value[6:].tolist() == [60, 200] and table.low[7] == 197 and table.high[7] == 203
    frame = table.to_frame("pandas")
    assert frame.columns.tolist() == ["x_low", "x_high", "value", "low", "high", "reason"]
    assert frame["value"].isna().tolist() == [True] * 6 + [False] * 2 and frame["reason"].isna().sum() == 2
    assert (table.shown, table.all) == (2, 8)
    alone = release.suppress(below=10)
    assert list(zip(alone.low[3:6].tolist(), alone.high[3:6].tolist(), strict=True)) == [(0, 12), (0, 16), (11, 17)]
    assert "5 of 8 figures are shown (below 10). Each interval holds at least 95% of the times" in repr(alone)
    assert alone.empty == pytest.approx(8 * float(ONE.cdf(-10)) / 5)
    assert release.suppress(relative_error=0.15).reason.tolist()[:3] == ["relative error above 0.15"] * 3


def test_the_empty_ones_that_are_shown_are_no_more_than_is_said() -> None:
    """Of 20,000 empty cells noise lifts so many over the threshold, within five standard errors."""
    cells = sf.Line(0, 20_000, cells=20_000)
    plan = sf.plan(sf.unbounded(cells), sf.histogram(), epsilon=1, mechanism="identity")
    table = plan.publish(np.zeros(20_000, int), source=sf.SeededSource(5)).suppress(below=4)
    expected = 20_000 * float(ONE.cdf(-4))
    assert abs(table.shown - expected) < 5 * math.sqrt(expected)
    assert table.empty * table.shown == pytest.approx(min(expected, table.shown), rel=1e-6)


@pytest.mark.slow  # intervals for every law that occurs
@pytest.mark.parametrize("name", ["unbounded hats", "bounded identity", "within edges", "threshold prefix"])
def test_every_mechanism_holds_given_that_is_shown(name: str) -> None:
    """By the mechanism's own law of every cell: the chance to be shown and missed, for truths around the threshold."""
    release = sample(name)
    law = joint([(Reading.of_cells(release), "value")], slice(None))
    rng = np.random.default_rng(2)
    for row in rng.choice(release.domain.size, 2, replace=False):
        groups = [(t.coefficients[row, 0], t.counts[row], t.noise) for t in law.terms]
        one = Tail.of(groups)
        threshold = 2 * one.deviation
        for truth in (0, int(threshold), int(3 * threshold)):
            source, drawn = sf.SeededSource(int(row) + truth), np.zeros(40_000)
            for c, n, noise in groups:
                for size, often in zip(c[n > 0], n[n > 0], strict=True):
                    drawn += size * noise.sample((40_000, int(often)), source).sum(axis=1)
            values = truth + drawn
            values = values[values >= threshold]
            if len(values) < 500:
                continue
            low, high = Selected(one, threshold, 0.95).intervals(values)
            held = ((low <= truth) & (truth <= high)).mean()
            assert held >= 0.95 - 5 * math.sqrt(0.05 * 0.95 / len(values)), (name, row, truth)


def test_groups_and_parts() -> None:
    kind = sf.Categories(["a", "b"], name="kind")
    release = known(LINE * kind, np.arange(16).reshape(8, 2) * 5)
    assert release.suppress(below=20, by="kind").value.tolist() == [280, 320]
    part = release.suppress(below=20, by=("kind", "x"), where={"x": (2, 6)})
    assert part.value.shape == (2, 4) and part.by == ("kind", "x")
    np.testing.assert_array_equal(release.suppress(below=20).value, release.suppress(below=20, by=("x", "kind")).value)
    with pytest.raises(sf.InvalidInput, match="where cuts cells"):
        release.suppress(below=20, by="kind", where={"x": (0.5, 6)})


def test_areas_are_on_the_ground() -> None:
    grid = sf.Grid(bounds=(-74.05, 40.70, -73.95, 40.80), shape=(3, 2), crs="EPSG:4326")
    release = known(grid * sf.Categories(["bus", "bike"], name="mode"), np.full((3, 2, 2), 100))
    table = release.suppress(min_area="10 km2", by=("place", "mode"))
    assert table.reason.ravel().tolist() == [""] * 12
    none = release.suppress(min_area="16 km2", by=("mode", "place"), below=5)
    assert set(none.reason.ravel()) == {"area below 16 km²"} and none.shown == 0
    assert none.summary.startswith("Nothing is shown: all 12 figures are suppressed (below 5, area below 16 km²)")
    hexagons = sf.H3(8, cover=(-74.02, 40.72, -73.97, 40.77), levels=[7])
    found = known(hexagons, np.full(hexagons.size, 50))
    assert found.suppress(min_area="1 km2").shown == 1  # elsewhere has no area that could be too small
    whole = found.suppress(min_area="100 ha", by="place_7" if "place_7" in _levels(found) else _levels(found)[0])
    assert whole.shown >= 2


def _levels(release: sf.Release) -> list[str]:
    return [level.name for level in release.domain.axes[0].coarser]


def test_rules_that_look_at_all_figures_have_the_false_coverage_rate() -> None:
    release = known(LINE, [10, 4, 90, 10, 13, 14, 60, 200])
    table = release.suppress(largest=2)
    assert table.shown == 2 and table.reason[0] == "not among the 2 largest" and table.reason[7] == ""
    assert table.level == pytest.approx(1 - 0.05 * 2 / 8)
    assert "false coverage rate" in table.summary
    wide = release.answer((7, 8), confidence=table.level)
    assert (table.low[7], table.high[7]) == (wide.low, wide.high)
    chosen = release.suppress(below=50, intervals="false coverage")
    assert chosen.level == pytest.approx(1 - 0.05 * 3 / 8)
    shared = sample("bounded identity").suppress(largest=3)  # the public total ties all noises together
    assert shared.level == pytest.approx(1 - 0.05 * 3 / 8 / sum(1 / i for i in range(1, 9)))


def test_the_false_coverage_rate_is_kept() -> None:
    """2,000 cells, a tenth of them shown: the share of intervals shown that miss is at most 5 %, give or take."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(rng.gamma(0.5, 8, 2000))
    cells = sf.Line(0, 2000, cells=2000)
    plan = sf.plan(sf.unbounded(cells), sf.histogram(), epsilon="1/2", mechanism="identity")
    table = plan.publish(counts, source=sf.SeededSource(3)).suppress(largest=200)
    there = ~np.isnan(table.value)
    missed = ((table.low > counts) | (counts > table.high))[there]
    assert missed.mean() <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / 200)


def test_tables_are_suppressed_by_their_own_law() -> None:
    space = sf.Categories(["a", "b", "c"], name="one") * LINE * sf.Categories(["x", "y"], name="two")
    plan = sf.plan(sf.unbounded(space), sf.marginals(("two", "one"), ("x",)), epsilon=1)
    release = plan.publish(np.full(space.shape, 20), source=sf.SeededSource(4))
    table = release.suppress(below=50, by=("two", "one"))
    assert table.value.shape == (2, 3) and table.shown == 6
    found = release.answer(by=("two", "one"))
    np.testing.assert_allclose(table.value, found.value)
    assert (np.abs((table.high - table.low) - (found.high - found.low)) <= 2).all()
    with pytest.raises(sf.InvalidInput, match="this release has tables of some factors each"):
        release.suppress(below=50)


def test_nothing_is_said_of_empty_figures_where_no_rule_looks_at_them() -> None:
    assert "empty" not in known(LINE, np.arange(8)).suppress(largest=2).summary


def test_what_is_public_is_shown_as_it_is() -> None:
    kind = sf.Categories(["a", "b"], name="kind")
    policy = sf.policy(LINE * kind, hide=sf.change("kind"), public=["x"])
    release = sf.plan(policy, sf.histogram(), epsilon=1).publish(np.arange(16).reshape(8, 2))
    table = release.suppress(below=10, by="x")
    assert table.reason.tolist()[:3] == ["below 10", "below 10", "below 10"][:3]
    assert table.value[3:].tolist() == table.low[3:].tolist() == table.high[3:].tolist() == [13, 17, 21, 25, 29]


def test_refusals() -> None:
    release = known(LINE, np.arange(8))
    said: list[tuple[dict[str, Any], str]] = [
        ({}, r"suppress\(\) needs a rule"),
        ({"below": -1}, "below=-1 must not be negative"),
        ({"below": float("nan")}, "below=nan is not a finite number"),
        ({"relative_error": 0}, "relative_error=0 must be above zero"),
        ({"off_by": -0.1}, "off_by=-0.1 must be above zero"),
        ({"off_by": 0.1, "chance": 1}, "chance=1 must lie between 0 and 1"),
        ({"below": 5, "chance": 0.1}, "chance=0.1 belongs to off_by"),
        ({"min_area": "3 miles"}, "min_area='3 miles' is no area"),
        ({"min_area": "3 km2"}, "min_area is about the area of what is grouped by"),
        ({"largest": 0}, "largest=0 must be a whole number of at least 1"),
        ({"largest": 3, "intervals": "given shown"}, "largest looks at all figures together"),
        ({"below": 3, "intervals": "all"}, "intervals='all' must be one of 'given shown', 'false coverage'"),
        ({"below": 3, "by": "y"}, "'y' is no factor"),
        ({"below": 3, "confidence": 2}, "confidence=2 must lie"),
    ]
    for arguments, message in said:
        with pytest.raises(sf.InvalidInput, match=message):
            release.suppress(**arguments)
    with pytest.raises(sf.InvalidInput, match="min_area needs to know where the grid lies"):
        known(GRID, np.zeros(GRID.shape)).suppress(min_area="3 km2")
    with pytest.raises(sf.InvalidInput, match="misses the truth by more than noise of a known law"):
        sample("unbounded dawa").suppress(below=5)
