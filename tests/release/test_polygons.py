"""Answers for polygons: those of ranges where a polygon is one, and intervals that hold on either side of a cut."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from coverage_oracle import Law, moved_by_noise
from maps import frame, geopandas, hard, shapely
from released import known

import sfumato as sf
from sfumato.domain.cutting import cut_grid
from sfumato.mechanism.base import LinearMechanism

MODES = sf.Categories(["bus", "bike", "car"], name="mode")
FIELDS = ("value", "stderr", "low", "high", "cut_share")
TRIANGLE = shapely.Polygon([(0.7, 0.4), (5.2, 1.1), (2.3, 3.6)])


def grid(shape: tuple[int, int] = (6, 4), **options: Any) -> sf.Grid:
    return sf.Grid(bounds=(0, 0, 6, 4), shape=shape, **options)


def regions() -> sf.Regions:
    county = [f"c{i % 3}" for i in range(len(hard()))]
    return sf.Regions(frame(hard(), county=county), id="id", levels=["county"])


def published(policy: sf.Policy, mechanism: str | None = None, seed: int = 0, **options: Any) -> sf.Release:
    named = {} if mechanism is None else {"mechanism": mechanism}
    plan = sf.plan(policy, sf.histogram(), epsilon=1, **named, **options)
    counts = np.random.default_rng(seed).integers(0, 60, policy.domain.shape)
    return plan.publish(counts, source=sf.SeededSource(seed))


def same(one: sf.Answer, other: sf.Answer, fields: tuple[str, ...] = FIELDS, **tolerance: float) -> bool:
    pairs = [(np.ravel(getattr(one, name)), np.ravel(getattr(other, name))) for name in fields]
    return all(np.allclose(a, b, equal_nan=True, **tolerance) for a, b in pairs)


# ------------------------------------------------------------------------------------------------ by hand


def test_by_hand() -> None:
    """Known counts without noise of note: the cells inside, and those touched."""
    release = known(grid((2, 2)), np.array([[100, 200], [400, 800]]))
    answer = release.answer(shapely.Polygon([(0, 0), (3, 0), (3, 4), (0, 4)]))  # the left half
    assert (answer.value, answer.cut_share) == (300, 0)
    assert same(answer, release.answer((0, 0, 3, 4)))
    cut = release.answer(shapely.Polygon([(0, 0), (6, 0), (6, 2), (3, 2), (3, 4), (0, 4)]))
    assert cut.value == 700 and cut.cut_share == 0
    more = release.answer(shapely.Polygon([(0, 0), (4.5, 0), (4.5, 2), (3, 4), (0, 4)]))
    assert more.value == pytest.approx(300 + 400 * 0.5 + 800 * 0.25)
    assert more.low == release.answer((0, 0, 3, 4)).low and more.high == release.answer((0, 0, 6, 4)).high


@pytest.mark.parametrize("mechanism", ["identity", "hierarchy", "levels", "edges", "dawa", "adaptive-grid", "sorted"])
@pytest.mark.parametrize("public", [True, False])
def test_a_polygon_that_is_a_range_has_the_answer_of_the_range(mechanism: str, public: bool) -> None:
    """Also by the parts of mechanisms that smooth, and where the whole is public."""
    domain = grid((12, 8))
    release = published((sf.bounded if public else sf.unbounded)(domain), mechanism)
    ranges = [(0.3, 0.2, 4.1, 3.3), (1, 1, 3, 3), (0, 0, 6, 4), (0.1, 0.1, 0.2, 3.9), (-1, -1, 7, 2)]
    one, other = release.answer([shapely.box(*asked) for asked in ranges]), release.answer(ranges)
    assert same(one, other, ("value", "stderr", "cut_share"))
    assert same(one, other, ("low", "high"), atol=0.5, rtol=0.01)
    part = [release.answer(shapely.box(*asked), cut="proportion") for asked in ranges]
    for left, right in zip(part, release.answer(ranges, cut="proportion").value, strict=True):
        assert left.value == pytest.approx(right)
    values = [release.answer(what, estimate="nonnegative").value for what in (shapely.box(*ranges[0]), ranges[0])]
    assert values[0] == pytest.approx(values[1])


@pytest.mark.parametrize("mechanism", ["shifted", "shifted-edges"])
def test_shifted_grids_bracket_by_the_bins_of_one(mechanism: str) -> None:
    release = published(sf.within(grid((24, 16)), delta=0.5), mechanism)
    box = (0.3, 0.2, 4.1, 3.3)
    one, other = release.answer(shapely.box(*box)), release.answer(box)
    assert one.value == pytest.approx(other.value) and same(one, other, ("low", "high"), rtol=0.02)


# ---------------------------------------------------------------------------------- the law of the noise


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize(
    ("policy", "mechanism"),
    [
        (sf.unbounded(grid()), "identity"),
        (sf.bounded(grid()), "identity"),
        (sf.bounded(grid()), "hierarchy"),
        (sf.bounded(grid()), "levels"),
        (sf.within(grid(), delta=0.4), "edges"),
        (sf.within(grid(), delta=0.4), "edge-haar"),
        (sf.unbounded(grid() * MODES), "identity"),
        (sf.policy(grid() * MODES, hide=sf.move(0.4) | sf.change("mode")), "edges"),
    ],
)
def test_both_ends_hold_under_the_exact_law(policy: sf.Policy, mechanism: str, confidence: float) -> None:
    """Below the cells inside and above those touched, each with half of what may be missed; the law is written out from
    the mechanism's own estimator.
    """
    release = published(policy, mechanism)
    assert isinstance(release.mechanism, LinearMechanism)
    x, y = (np.asarray(axis.edges) for axis in policy.domain.axes[:2])
    cut, moved = cut_grid(x, y, TRIANGLE, turns=False), moved_by_noise(release.mechanism)
    rest = policy.domain.shape[2:]
    some = {"mode": ["bus", "car"]} if rest else {}
    other = np.array([1.0, 0.0, 1.0]) if rest else np.ones(1)
    answer = release.answer(TRIANGLE, confidence=confidence, **some)
    counts = release.counts.ravel()
    weight = np.zeros(len(x[1:]) * len(y[1:]))
    ends = []
    for cells, share in ((cut.inside, 1.0), (cut.cut, 1.0), (cut.cut, cut.share - 1.0)):
        weight[cells] += share
        query = np.multiply.outer(weight, other).ravel()
        ends.append((query @ counts, Law([(query @ cells_by_noise, law) for cells_by_noise, law in moved])))
    (inner, below), (outer, above), (value, noise) = ends
    assert len(cut.inside) and answer.value == pytest.approx(value)
    assert answer.stderr == pytest.approx(noise.deviation)
    if answer.low > 0:  # at zero it cannot be missed
        assert below.holds(inner - answer.low) >= confidence - 1e-9
    if not (policy.total_is_public and answer.high >= release.total):
        assert above.holds(answer.high - outer) >= confidence - 1e-9
    plain = release.answer(TRIANGLE, confidence=confidence, cut="proportion", **some)
    assert plain.value - plain.low <= 1e-9 + plain.value or plain.low == 0
    if plain.low > 0:
        assert noise.holds(plain.value - plain.low) >= confidence - 1e-9


def test_intervals_hold_what_is_there_on_whichever_side_of_the_cut() -> None:
    """Of 800 releases of heaped points, with all records of cut cells inside and with none: fewer than 5 % miss, at
    4.9 standard errors, and hardly fewer than 2.5 % do, so that the ends are not idle.
    """
    domain = grid((8, 8))
    x, y = (np.asarray(axis.edges) for axis in domain.axes)
    cut = cut_grid(x, y, TRIANGLE, turns=False)
    counts = np.random.default_rng(1).integers(50, 90, domain.shape)
    few, many = (int(counts.ravel()[cells].sum()) for cells in (cut.inside, np.concatenate([cut.inside, cut.cut])))
    plan = sf.plan(sf.unbounded(domain), sf.histogram(), epsilon=1, mechanism="identity")
    missed = np.zeros(2)
    for seed in range(800):
        estimates = plan.publish(counts, source=sf.SeededSource(seed)).counts.ravel()
        if not seed:
            first = plan.publish(counts, source=sf.SeededSource(seed))
            answer = first.answer(TRIANGLE)
            below = float(estimates[cut.inside].sum()) - answer.low
            above = answer.high - float(estimates[np.concatenate([cut.inside, cut.cut])].sum())
        missed += [
            estimates[cut.inside].sum() - below > few,
            estimates[np.concatenate([cut.inside, cut.cut])].sum() + above < many,
        ]
    assert (missed / 800 < 0.025 + 4.9 * np.sqrt(0.025 * 0.975 / 800)).all() and (missed > 5).all()


# ------------------------------------------------------------------------------------ regions and hexagons


def test_unions_of_regions_are_answered_as_their_names_are() -> None:
    domain = regions() * MODES
    release = published(sf.policy(domain, hide=sf.move("500 m") | sf.change("mode")))
    union = shapely.union_all([hard()[0], hard()[3], hard()[5]])
    asked = release.answer(union, by="mode")
    assert asked.by == ("mode",) and asked.value.shape == (3,)
    assert same(asked, release.answer(place=["r0", "r3", "r5"], by="mode"), atol=0.5)
    assert same(release.answer(place=union, mode="bus"), release.answer(place=["r0", "r3", "r5"], mode="bus"), atol=0.5)


def test_a_polygon_beyond_the_regions_may_hold_all_that_is_elsewhere() -> None:
    domain = regions()
    counts = np.full(domain.shape, 10)
    counts[-1] = 5000
    release = sf.plan(sf.unbounded(domain), sf.histogram(), epsilon=1).publish(counts, source=sf.SeededSource(0))
    beyond = release.answer(shapely.box(-0.5, 0, 0.2, 1))
    inside = release.answer(shapely.box(0.05, 0.4, 0.2, 0.6))
    assert beyond.high > 5000 > 1000 > inside.high and beyond.value < 1000
    away = release.answer(shapely.box(8, 8, 9, 9))
    assert (away.value, away.low) == (0, 0) and away.high > 4900


def test_hexagons_by_group_level_and_time() -> None:
    pytest.importorskip("h3", reason="needs sfumato[h3]")
    place = sf.H3(6, cover=(-74.3, 40.5, -73.7, 40.95), levels=[4])
    domain = (
        place
        * sf.Cycle("weekday", name="t")
        * sf.Categories(["bus", "tram", "car"], name="mode", levels={"kind": ["public", "public", "own"]})
    )
    policy = sf.policy(domain, hide=sf.move("500 m") | sf.change("mode") | sf.move("1 day", of="t"))
    release = published(policy)
    areas = [shapely.box(-74.2, 40.6, -74.0, 40.8), shapely.Point(-73.9, 40.7).buffer(0.15)]
    table = release.answer(areas, by=["kind", "t"])
    assert table.value.shape == (2, 2, 7) and table.to_frame().num_rows == 28
    for i, area in enumerate(areas):
        alone = release.answer(area, kind="public", t="Monday")
        assert alone.value == pytest.approx(table.value[i, 0, 0])
        assert alone.stderr == pytest.approx(table.stderr[i, 0, 0])
        both = release.answer(area, t=["Monday", "Wednesday"])
        assert both.value == pytest.approx(table.value[i, :, [0, 2]].sum())
    steps = release.answer(areas, t=[("Monday", "Tuesday"), ("Tuesday", "Thursday")])  # in step
    assert steps.value[1] == pytest.approx(table.value[1, :, [1, 2]].sum())


def test_two_places_each_with_its_polygon() -> None:
    space = grid((3, 2), name="origin") * grid((2, 2), name="destination")
    release = published(sf.unbounded(space), "identity")
    west, south = shapely.box(0, 0, 2, 4), shapely.box(0, 0, 6, 2)
    answer = release.answer(origin=west, destination=south)
    assert answer.value == pytest.approx(release.counts[0, :, :, 0].sum())
    assert same(answer, release.answer(origin=(0, 0, 2, 4), destination=(0, 0, 6, 2)))
    many = release.answer(origin=[west, shapely.box(2, 0, 4, 4)], destination=[south, south])
    assert many.value.tolist() == pytest.approx([release.counts[i, :, :, 0].sum() for i in (0, 1)])


def test_releases_of_tables_answer_polygons_from_the_table_of_the_place() -> None:
    space = regions() * MODES
    ask = sf.marginals("place", "mode")
    plan = sf.plan(sf.unbounded(space), ask, epsilon=1, mechanism="marginals")
    release = plan.publish(np.full(space.shape, 20), source=sf.SeededSource(0))
    assert same(release.answer(hard()[3]), release.answer(place="r3"), atol=1.0)


def test_a_public_place_is_known_exactly() -> None:
    release = published(sf.policy(regions() * MODES, hide=sf.change("mode"), public=["place"]))
    answer = release.answer(shapely.union_all([hard()[0], hard()[3]]))
    assert answer.stderr == 0 and answer.low == answer.value == answer.high
    cut = release.answer(shapely.box(0.05, 0.4, 0.2, 0.6))
    assert cut.low < cut.value < cut.high and cut.high == np.rint(cut.high)


# ------------------------------------------------------------------------------------------ what is asked


def test_frames_are_transformed_and_answered_row_by_row() -> None:
    release = published(sf.policy(regions(), hide=sf.move("500 m")))
    rows = frame([hard()[3], hard()[5]])
    there = release.answer(rows.to_crs("EPSG:3035"))
    assert same(there, release.answer(rows), atol=0.5) and there.range is not rows
    assert same(release.answer(rows.geometry), release.answer(["r3", "r5"]), atol=0.5)
    assert same(release.answer(np.asarray(rows.geometry)), there, atol=0.5)


def test_snap_answers_the_cells_that_lie_in_it_by_half_and_names_them() -> None:
    release = published(sf.unbounded(regions()), "identity")
    answer = release.answer(shapely.union_all([hard()[3], hard()[5]]).buffer(0.01), cut="snap")
    assert answer.range == ("r3", "r5") and same(answer, release.answer(place=["r3", "r5"]), atol=0.5)
    plain = published(sf.unbounded(grid()), "identity")
    assert plain.answer(shapely.box(0.8, 0.9, 2.1, 2.2), cut="snap").range.tolist() == [[1, 1]]


def test_a_loaded_release_answers_polygons_alike(tmp_path: Any) -> None:
    release = published(sf.policy(regions(), hide=sf.move("500 m")))
    found = sf.load(release.save(tmp_path / "map.sfumato"))
    assert same(found.answer(TRIANGLE), release.answer(TRIANGLE))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (frame([TRIANGLE]).set_crs(None, allow_override=True), "has no CRS"),
        (shapely.Point(1, 1), "no polygon: number 0"),
        ([TRIANGLE, shapely.Polygon()], "without a polygon: number 1"),
        (shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]), "invalid polygons: number 0"),
    ],
)
def test_what_is_no_polygon_is_refused(asked: Any, said: str) -> None:
    with pytest.raises(sf.InvalidInput, match=said):
        published(sf.unbounded(regions())).answer(asked)


def test_refusals_of_places() -> None:
    release = published(sf.unbounded(grid() * MODES))
    with pytest.raises(sf.InvalidInput, match="grid of plain numbers"):
        release.answer(frame([TRIANGLE]))
    with pytest.raises(sf.InvalidInput, match="lie outside the bounds of the grid \\(number 1\\)"):
        release.answer([TRIANGLE, shapely.box(8, 8, 9, 9)])
    with pytest.raises(sf.InvalidInput, match="is no place of this release, whose places are: 'place'"):
        release.answer(mode=TRIANGLE)
    with pytest.raises(sf.InvalidInput, match="and by= groups by it"):
        release.answer(place=TRIANGLE, by="place")
    with pytest.raises(sf.InvalidInput, match="none that nothing else speaks of"):
        release.answer(TRIANGLE, by="x")
    with pytest.raises(sf.InvalidInput, match="do not go together"):
        published(sf.unbounded(grid() * sf.Line(0, 8, cells=8, name="t"))).answer([TRIANGLE] * 2, t=[(0, 1)] * 3)


def test_without_the_extra_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    release = published(sf.unbounded(grid()))
    monkeypatch.setitem(sys.modules, "shapely", None)
    with pytest.raises(sf.MissingExtra, match="pip install 'sfumato\\[geo\\]'"):
        release.answer(geopandas.GeoSeries([TRIANGLE]))
