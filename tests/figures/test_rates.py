"""Rates hold the truth as often as they say, over all draws of the noise, down to groups of a few people."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from released import GRID, known

import sfumato as sf
from sfumato.figures.bounds import by_law
from sfumato.figures.law import Joint, Term
from sfumato.figures.rates import MISSING, NOBODY, UNBOUNDED
from sfumato.figures.ratio import Bracketed, odds
from sfumato.figures.reading import Reading
from sfumato.noise import DiscreteLaplace

STATE = sf.Categories(["ill", "well"], name="state")
NOISE = DiscreteLaplace(Fraction(1))
REACH = 9  # beyond it there is noise in one of 7,500 draws of a pair, which are counted as missed
LOST = 1.4e-4
DRAWS = np.arange(-REACH, REACH + 1)
PAIRS = np.stack(np.meshgrid(DRAWS, DRAWS, indexing="ij"), axis=-1).reshape(-1, 2)
CHANCE = NOISE.pmf(PAIRS[:, 0]) * NOISE.pmf(PAIRS[:, 1])
TRUTHS = [(0, 1), (0, 4), (1, 1), (1, 2), (1, 9), (3, 3), (3, 6), (5, 1), (7, 50), (0, 80), (41, 77), (60, 3), (2, 700)]


def drawn(*truth: int) -> sf.Release:
    """One group for every draw of the noise of two figures."""
    groups = sf.Categories([str(i) for i in range(len(PAIRS))], name="group")
    return known(groups * STATE, np.array(truth) + PAIRS)


def covered(rates: Any, truth: float) -> float:
    """How often a true rate lies inside."""
    return float(CHANCE[(rates.low <= truth) & (truth <= rates.high)].sum())


@pytest.mark.parametrize(("ill", "well"), TRUTHS)
def test_a_share_is_held_as_often_as_is_said(ill: int, well: int) -> None:
    """Exactly, by all pairs of draws: at least 95 %, and not much more where counts are large."""
    rates = drawn(ill, well).rate(case="ill", by="group", per=100)
    found = covered(rates, 100 * ill / (ill + well))
    assert found >= 0.95 - LOST
    assert (rates.low >= 0).all() and not np.isnan(rates.low).any() and not np.isnan(rates.high).any()
    assert (rates.high[np.isfinite(rates.high)] <= 100).all()
    if ill >= 40 <= well:
        assert found <= 0.96  # beside what is missed for looking in finitely many places: hardly more than is said


@pytest.mark.parametrize(("ill", "well"), [(0, 3), (1, 2), (6, 3), (9, 80), (300, 2)])
def test_a_ratio_to_another_release_is_held_as_often(ill: int, well: int) -> None:
    groups = sf.Categories([str(i) for i in range(len(PAIRS))], name="group")
    cases, others = (known(groups, truth + PAIRS[:, i]) for i, truth in enumerate((ill, well)))
    object.__setattr__(others, "id", "another")
    rates = cases.rate(case={"group": list(groups.axes[0].labels)}, over=others)  # type: ignore[attr-defined]
    assert rates.low <= rates.value <= rates.high
    law = by_law(*(Reading.of(one, None, {}, None, "group", "bracket") for one in (cases, others)), 0.95, "bracket")
    assert covered(law, ill / well) >= 0.95 - LOST


def test_less_noise_than_there_is_would_be_seen() -> None:
    """The same check rejects intervals made for a tenth less noise."""
    ill, well = 40, 60
    ones = np.ones((len(PAIRS), 1))
    eye = [np.repeat(row[None], len(PAIRS), axis=0) for row in np.eye(2)]
    found = []
    for size in (1.0, 0.9):
        terms = tuple(Term(size * one[:, :, None], ones, NOISE) for one in eye)
        sides = [
            Bracketed(truth + PAIRS[:, i], truth + PAIRS[:, i], eye[i], eye[i]) for i, truth in enumerate((ill, well))
        ]
        found.append(odds(Joint(terms), *sides, 0.95))
    assert covered(found[0], ill / well) >= 0.95 - LOST
    assert covered(found[1], ill / well) < 0.95


@pytest.mark.parametrize("seed", range(3))
def test_no_odds_are_left_out_that_the_test_does_not_reject(seed: int) -> None:
    """Against a fine grid of odds, each tested by itself, on random laws with shared noise."""
    rng = np.random.default_rng(seed)
    rows = 6
    terms = tuple(
        Term(rng.integers(-3, 4, (rows, 2, 5)).astype(float), rng.integers(1, 4, (rows, 5)).astype(float), noise)
        for noise in (NOISE, DiscreteLaplace(Fraction(1, 3)))
    )
    law, eye = Joint(terms), [np.repeat(row[None], rows, axis=0) for row in np.eye(2)]
    values = rng.normal(60, 60, (2, rows))
    found = odds(law, *(Bracketed(v, v, one, one) for v, one in zip(values, eye, strict=True)), 0.95)
    for v in np.linspace(0, 1, 801):
        weights = (1 - v) * eye[0] - v * eye[1]
        agrees = np.abs((1 - v) * values[0] - v * values[1]) <= law.margins(weights, 0.95)[1]
        o = v / (1 - v) if v < 1 else np.inf
        assert (~agrees | ((found.low <= o * (1 + 1e-9)) & (o <= found.high * (1 + 1e-9)))).all(), v


@pytest.mark.parametrize("mechanism", ["identity", "hats", "edges", "haar", "hierarchy"])
def test_rates_of_every_mechanism_hold(mechanism: str) -> None:
    """Of 128 groups fewer than 104 are held, at 95 % and independent, with a chance below one in a million."""
    place = sf.Line(0, 128, cells=128)
    space = place * STATE
    counts = np.stack([np.arange(128) % 7, 5 + np.arange(128) % 60], axis=-1)
    policy = sf.unbounded(space)
    try:
        plan = sf.plan(policy, sf.histogram(), epsilon=1, mechanism=mechanism)
    except sf.SfumatoError:
        pytest.skip(f"{mechanism} is not for add/remove on a product")
    rates = plan.publish(counts, source=sf.SeededSource(7)).rate(case="ill", by="x")
    truth = counts[:, 0] / counts.sum(axis=1)
    assert int(((rates.low <= truth) & (truth <= rates.high)).sum()) >= 104


def test_ranges_that_cut_cells_bracket_both_parts() -> None:
    """All records of cut cells on one side, or on the other: the interval holds either."""
    space = sf.Line(0, 10, cells=10) * STATE
    counts = np.array([[50, 50]] * 10)
    release = sf.plan(sf.unbounded(space), sf.histogram(), epsilon=2).publish(counts, source=sf.SeededSource(1))
    rates = release.rate(case="ill", where={"x": (0.5, 5.5)})
    inside = counts[1:5].sum(axis=0)
    for ill in (0, 50, 100):
        for well in (0, 50, 100):
            truth = (inside[0] + ill) / (inside.sum() + ill + well)
            assert rates.low <= truth <= rates.high
    assert rates.low > 0.3 and rates.high < 0.7
    narrow = release.rate(case="ill", where={"x": (0.5, 5.5)}, cut="proportion")
    assert narrow.high - narrow.low < (rates.high - rates.low) / 2
    snapped = release.rate(case="ill", where={"x": (0.5, 5.5)}, cut="snap")
    assert snapped.high - snapped.low < (rates.high - rates.low) / 2


def test_a_public_denominator_is_exact() -> None:
    space = sf.Categories(["north", "south", "empty"], name="region") * STATE
    policy = sf.policy(space, hide=sf.change("state"), public=["region"])
    release = sf.plan(policy, sf.histogram(), epsilon=1).publish(np.array([[30, 970], [2, 3], [0, 0]]))
    rates, counts = release.rate(case="ill", by="region"), release.answer(state="ill", by="region")
    np.testing.assert_allclose(rates.low[:2], counts.low[:2] / [1000, 5])
    np.testing.assert_allclose(rates.high[:2], counts.high[:2] / [1000, 5])
    assert rates.note.tolist() == ["", "", NOBODY]
    assert np.isnan(rates.value[2]) and (rates.low[2], rates.high[2]) == (0, np.inf)


def test_a_denominator_that_may_be_zero_is_said_in_words() -> None:
    space = sf.Categories(["many", "few"], name="region") * STATE
    release = sf.plan(sf.unbounded(space), sf.histogram(), epsilon=1).publish(np.array([[300, 900], [0, 0]]))
    rates = release.rate(case="ill", by="region", per=100_000)
    assert rates.note.tolist() == ["", UNBOUNDED]
    assert rates.high[1] == np.inf and rates.low[1] == 0
    assert "∞" in repr(rates) and UNBOUNDED in repr(rates)
    assert rates.to_frame().to_pylist()[1]["note"] == UNBOUNDED


@pytest.mark.parametrize("kind", ["mapping", "numbers", "pandas", "arrow", "series"])
def test_a_public_table_is_matched_by_name(kind: str) -> None:
    import pandas as pd
    import pyarrow as pa

    region = sf.Categories(["north", "south"], name="region")
    release = known(region * STATE, [[30, 970], [2, 3]])
    people = {"south": 400, "north": 20_000}
    over: Any = {
        "mapping": people,
        "numbers": [20_000, 400],
        "pandas": pd.DataFrame({"region": list(people), "people": list(people.values())}),
        "arrow": pa.table({"people": list(people.values()), "region": list(people)}),
        "series": pd.Series(people),
    }[kind]
    rates = release.rate(case="ill", by="region", per=1000, over=over)
    assert rates.value.tolist() == [1.5, 5.0]
    assert rates.to_frame().to_pylist()[0] == {"region": "north", "value": 1.5, "low": 1.35, "high": 1.65, "note": None}


def test_elsewhere_needs_no_denominator() -> None:
    hexagons = sf.H3(7, cover=(-74.05, 40.68, -73.95, 40.78))
    space = hexagons * STATE
    release = known(space, np.full(space.shape, 20))
    names = hexagons.axes[0].cell_names()
    rates = release.rate(case="ill", by="place", over=dict.fromkeys(names[:-1], 1000))
    assert rates.note[-1] == MISSING and np.isnan(rates.value[-1]) and rates.high[-1] == np.inf
    assert (rates.value[:-1] == 0.02).all()


def test_several_labels_and_mappings_make_a_case() -> None:
    space = sf.Line(0, 24, cells=4, name="hour") * sf.Categories(["ill", "dead", "well"], name="state")
    release = known(space, np.full((4, 3), 100))
    assert release.rate(case=["ill", "dead"]).value == pytest.approx(2 / 3)
    assert release.rate(case={"state": ["ill", "dead"]}, by="hour").value.tolist() == pytest.approx([2 / 3] * 4)
    share = release.rate(case={"hour": (0, 12)}, by="state")
    assert share.value.tolist() == [0.5] * 3 and share.by == ("state",)
    both = release.rate(case={"hour": (0, 6), "state": "ill"})
    assert both.low < 1 / 12 < both.high < 0.1


def test_other_questions_about_the_denominator() -> None:
    """By several names, at a level, in a polygon's place, of tables."""
    regions = sf.Categories(["a", "b", "c"], name="district")
    space = regions * sf.Cycle("weekday", name="day") * STATE
    release = known(space, np.full(space.shape, 50))
    rates = release.rate(case="ill", by=("day", "district"))
    assert rates.value.shape == (7, 3) and rates.by == ("day", "district")
    assert rates.to_frame("pandas").shape == (21, 6)
    plan = sf.plan(sf.unbounded(space), sf.marginals(("district", "state"), ("day", "state")), epsilon=4)
    tables = plan.publish(np.full(space.shape, 50), source=sf.SeededSource(1))
    found = tables.rate(case="ill", by="district", confidence=0.9999)
    assert ((found.low < 0.5) & (found.high > 0.5)).all()


@pytest.mark.parametrize("mechanism", ["dawa", "adaptive-grid"])
def test_mechanisms_without_a_law_are_bracketed(mechanism: str) -> None:
    rng = np.random.default_rng(3)
    policy = sf.unbounded(sf.Line(0, 64, cells=64)) if mechanism == "dawa" else sf.within(GRID, delta=0.25)
    counts = rng.poisson(200, policy.domain.shape)
    plan = sf.plan(policy, sf.ranges(), epsilon=1, mechanism=mechanism)
    release = plan.publish(counts, source=sf.SeededSource(2))
    axis = policy.domain.names[0]
    low, high = (policy.domain.axes[0].edges[i] for i in (0, -1))  # type: ignore[attr-defined]
    rates = release.rate(case={axis: (low, (low + high) / 2)})
    truth = counts[: counts.shape[0] // 2].sum() / counts.sum()
    assert rates.low <= truth <= rates.high <= 1


def test_refusals() -> None:
    region = sf.Categories(["north", "south"], name="region")
    space = region * STATE
    release = known(space, [[30, 970], [2, 3]])
    said: list[tuple[dict[str, Any], str]] = [
        ({"case": "sick"}, "case='sick' is no label, nor a list of labels, of an attribute of this release"),
        ({"case": []}, "is no label"),
        ({"case": "ill", "by": "state"}, "case='ill' is a label of 'state', which by or where speaks of as well"),
        ({"case": {"region": "north"}, "by": "region"}, "case names 'region', which by or where speaks of as well"),
        ({"case": {}}, "must map names of factors to what makes a case"),
        ({"case": "ill", "per": 0}, "per=0 must be above zero"),
        ({"case": "ill", "per": float("nan")}, "per=nan is not a finite number"),
        ({"case": "ill", "confidence": 1}, "confidence=1 must lie between 0 and 1"),
        ({"case": "ill", "by": "region", "over": {"north": 5}}, "over has no denominator for 'south'"),
        ({"case": "ill", "by": "region", "over": {"north": 5, "south": 0}}, "over holds 0: a public denominator must"),
        ({"case": "ill", "by": "region", "over": {"north": 5, "south": -1}}, "over holds -1"),
        (
            {"case": "ill", "by": "region", "over": {"north": 5, "soth": 1}},
            "no group of this rate. Did you mean 'south'",
        ),
        ({"case": "ill", "by": "region", "over": {"north": 5, "south": float("nan")}}, "over gives nan for 'south'"),
        ({"case": "ill", "by": "region", "over": [1, 2, 3]}, r"over has the shape \(3,\), and the groups are 2"),
        ({"case": "ill", "by": "region", "over": [float("nan"), 2]}, "over holds nan"),
        ({"case": "ill", "by": "region", "over": "people"}, "over='people' is no denominator"),
        ({"case": "ill", "by": "region", "over": release.answer(by="region")}, "Give the release itself"),
        ({"case": "ill", "by": "region", "over": known(STATE, [3, 4])}, "'region' is no factor"),
    ]
    for arguments, message in said:
        with pytest.raises(sf.InvalidInput, match=message) as refusal:
            release.rate(**arguments)
        assert "Nothing was" in str(refusal.value) or "confidence" in arguments or "per=nan" in message
    with pytest.raises(sf.InvalidInput, match=r"case='a' is a label of 'one' and of 'two'"):
        twice = sf.Categories(["a", "b"], name="one") * sf.Categories(["a", "c"], name="two")
        known(twice, [[1, 2], [3, 4]]).rate(case="a")


def test_tables_with_wrong_keys_are_refused() -> None:
    import pyarrow as pa

    release = known(sf.Categories(["north", "south"], name="region") * STATE, [[30, 970], [2, 3]])
    for table, message in [
        ({"region": ["north", "south", "north"], "n": [1, 2, 3]}, "over has two denominators for 'north'"),
        ({"area": ["north", "south"], "n": [1, 2]}, "over has no column 'region'"),
        ({"region": ["north", "south"], "n": [1, 2], "m": [1, 2]}, "must have one column beside 'region'"),
        ({"region": ["north", "south"], "n": ["1", "2"]}, "over gives '1' for 'north', which is no number"),
        ({"region": ["north", "south"], "n": [1, None]}, "over gives None for 'south', which is no number"),
    ]:
        with pytest.raises(sf.InvalidInput, match=message):
            release.rate(case="ill", by="region", over=pa.table(table))


def test_groups_of_another_release_must_be_the_same() -> None:
    one = known(sf.Categories(["north", "south"], name="region") * STATE, [[30, 970], [2, 3]])
    other = sf.plan(sf.unbounded(sf.Categories(["south", "north"], name="region")), sf.histogram(), 1)
    with pytest.raises(sf.InvalidInput, match="over has other groups than this release"):
        one.rate(case="ill", by="region", over=other.publish(np.array([100, 200])))
    told = one.rate(case="ill", over=other.publish(np.array([100, 200])))
    assert "numerators" in told.statement and "denominators" in told.statement


def test_a_release_without_intervals_has_no_rates() -> None:
    plan = sf.plan(sf.bounded(sf.Line(0, 8, cells=8)), sf.ranges(), epsilon=1, mechanism="sorted")
    release = plan.publish(points=np.random.default_rng(0).uniform(0, 8, 500))
    with pytest.raises(sf.InvalidInput, match="no intervals for what is asked"):
        release.rate(case={"x": (0, 4)}, over=known(sf.Line(0, 8, cells=8), np.full(8, 10)))


def test_polygons_bracket_both_parts() -> None:
    """By hand: of a grid of unit cells a polygon holds one and touches nine, each with 10 ill of 40."""
    shapely = pytest.importorskip("shapely")
    grid = sf.Grid(bounds=(0, 0, 5, 4), shape=(5, 4))
    counts = np.stack([np.full((5, 4), 10), np.full((5, 4), 30)], axis=-1)
    polygon = shapely.box(0.5, 0.5, 2.5, 2.5)
    release = sf.plan(sf.unbounded(grid * STATE), sf.histogram(), 3).publish(counts, source=sf.SeededSource(2))
    rates = release.rate(case="ill", where={"place": polygon})
    assert rates.low <= 10 / (10 + 9 * 30) and (10 * 9) / (10 * 9 + 30) <= rates.high < 1
    several = release.rate(case="ill", where={"place": [polygon, shapely.box(0, 0, 2, 2)]})
    assert several.value.shape == (2,)
    assert several.low[0] == pytest.approx(rates.low) and several.high[0] == pytest.approx(rates.high)
    whole = release.rate(case="ill", where={"place": (0, 0, 2, 2)})
    assert several.low[1] == pytest.approx(whole.low) and several.high[1] == pytest.approx(whole.high)
    other = sf.plan(sf.bounded(grid), sf.histogram(), 3).publish(counts.sum(axis=-1), source=sf.SeededSource(3))
    ratio = release.rate(case="ill", where={"place": polygon}, over=other)
    assert ratio.low <= 10 / (9 * 40) and ratio.high >= 90 / 40
    change = sf.difference(release, other).answer(polygon)
    assert change.low <= 40 - 9 * 40 and change.high >= 9 * 40 - 40
