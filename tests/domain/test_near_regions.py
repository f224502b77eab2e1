"""Which regions are nearer than δ: no pair is missed, judged by points on borders and geodesics of the ellipsoid."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from maps import WGS84, border_points, frame, hard, shapely, voronoi, witnesses

import sfumato as sf
from sfumato.domain.near_regions import scales


def near(shapes, delta):
    axis = sf.Regions(frame(shapes), id="id").axes[0]
    return axis, {tuple(pair) for pair in axis.near(delta).tolist()}


# ------------------------------------------------------------------ by hand


def test_three_boxes_in_a_row():
    """A hundredth of a degree along the equator is 1,113 m; whoever has a side of his own is beside elsewhere."""
    _, pairs = near([shapely.box(x, 0, x + 0.01, 0.01) for x in (0, 0.01, 0.03)], 500)
    assert pairs == {(0, 1), (0, 3), (1, 3), (2, 3)}
    _, pairs = near([shapely.box(x, 0, x + 0.01, 0.01) for x in (0, 0.01, 0.03)], 1114)
    assert pairs == {(0, 1), (1, 2), (0, 3), (1, 3), (2, 3)}


def test_the_last_metre_counts():
    gap = WGS84.inv(0.01, 0.005, 0.02, 0.005)[2]  # no two points are nearer than on the side towards the pole
    top = WGS84.inv(0.01, 0.01, 0.02, 0.01)[2]
    boxes = [shapely.box(0, 0, 0.01, 0.01), shapely.box(0.02, 0, 0.03, 0.01)]
    assert top < gap
    assert (0, 1) in near(boxes, Fraction(top) + Fraction(1, 100))[1]
    assert (0, 1) not in near(boxes, Fraction(top) - Fraction(1))[1]


def test_a_region_that_another_one_surrounds_is_far_from_elsewhere():
    inner = shapely.box(0.4, 0.4, 0.6, 0.6)
    _, pairs = near([shapely.box(0, 0, 1, 1) - inner, inner], 1000)
    assert pairs == {(0, 1), (0, 2)}
    _, pairs = near([shapely.box(0, 0, 1, 1) - inner, inner], 50_000)
    assert pairs == {(0, 1), (0, 2), (1, 2)}


def test_the_date_line_is_no_border():
    boxes = [
        shapely.box(-180, 60, -179.99, 60.01),
        shapely.box(179.99, 60, 180, 60.01),
        shapely.box(179, 60, 179.9, 60.01),
    ]
    assert (0, 1) in near(boxes, 5)[1] and (0, 2) not in near(boxes, 5)[1]
    away = [shapely.box(-179.995, 0, -179.9, 0.01), shapely.box(179.9, 0, 179.995, 0.01)]
    assert (0, 1) in near(away, 1114)[1] and (0, 1) not in near(away, 1112)[1]


def test_regions_that_meet_over_a_pole_are_near():
    slices = [shapely.box(lon, 89.99, lon + 90, 90) for lon in (-180, -90, 0, 90)]
    assert {(a, b) for a in range(4) for b in range(a + 1, 4)} <= near(slices, 5)[1]


def test_regions_that_cover_the_earth_are_all_beside_elsewhere():
    _, pairs = near([shapely.box(-180, -90, 0, 90), shapely.box(0, -90, 180, 90)], 5)
    assert pairs == {(0, 1), (0, 2), (1, 2)}


def test_more_than_half_of_the_earth_is_everywhere():
    assert len(near(voronoi(5), 30_000_000)[1]) == 15


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr("sfumato.domain.near_regions.MOST_EDGES", 10)
    with pytest.raises(sf.TooLarge, match="too many to list"):
        near(voronoi(20), 500)


# ------------------------------------------------------------------ the oracle


@pytest.mark.slow  # all pairs of points by brute force
@pytest.mark.parametrize("delta", [200, 3_000, 40_000])
@pytest.mark.parametrize(
    "bounds",
    [
        (0, -0.5, 1, 0.5),
        (-74.3, 40.5, -73.3, 41.5),
        (10, 59.5, 11, 61.2),
        (20, 85.5, 50, 86.5),
        (-180, 88.5, 170, 89.9),
    ],
)
def test_no_near_pair_is_missed(bounds, delta):
    """Points on borders with a geodesic below δ: on a hundred segments and more, some on each."""
    axis, pairs = near(voronoi(40, bounds, seed=delta), delta)
    seen = witnesses(axis.outlines, delta, each=12 if delta < 10_000 else 4)
    assert seen and not seen - pairs


@pytest.mark.parametrize("delta", [500, 9_000])
def test_no_near_pair_is_missed_across_the_date_line(delta):
    east = voronoi(30, (179, 50, 180, 51), seed=1)
    west = voronoi(30, (-180, 50, -179, 51), seed=2)
    axis, pairs = near([*east, *west], delta)
    seen = witnesses(axis.outlines, delta, each=10)
    assert any(a < 30 <= b for a, b in seen) and not seen - pairs


@pytest.mark.parametrize("seed", range(2))
def test_holes_parts_and_islands(seed):
    axis, pairs = near(hard(seed), 3_000)
    seen = witnesses(axis.outlines, 3_000, each=40)
    assert seen and not seen - pairs


@pytest.mark.slow  # all pairs by brute force
def test_few_pairs_are_superfluous():
    """Within a tenth of a per cent of δ all pairs but those at the edge have witnesses."""
    axis, pairs = near(voronoi(30, (-74.3, 40.5, -73.7, 40.95), seed=5), 500)
    seen = witnesses(axis.outlines, 510, each=100)
    inner = {pair for pair in pairs if pair[1] < 30}
    assert len(inner - seen) <= 2


def test_elsewhere_is_near_whatever_borders_on_it():
    """Steps of δ over a border from points that lie beside it: both ends' cells are one, or a pair."""
    domain = sf.Regions(frame(hard(3)), id="id")
    pairs = {tuple(pair) for pair in domain.axes[0].near(2_000).tolist()}
    on, _ = border_points(domain.axes[0].outlines, 30)
    rng = np.random.default_rng(0)
    lon, lat, _ = WGS84.fwd(*on.T, rng.random(len(on)) * 360, rng.random(len(on)) * 1_000)
    to_lon, to_lat, _ = WGS84.fwd(lon, lat, rng.random(len(on)) * 360, rng.random(len(on)) * 1_999)
    one, other = domain.locate(np.stack([lon, lat], 1)), domain.locate(np.stack([to_lon, to_lat], 1))
    met = {tuple(sorted(pair)) for pair in zip(one.tolist(), other.tolist(), strict=True) if pair[0] != pair[1]}
    assert any(pair[1] == domain.size - 1 for pair in met) and not met - pairs


def test_the_plane_of_a_band_never_lengthens():
    """The least metres a degree, against geodesics along and across the band."""
    for south, north in ((0, 1), (-1, 1), (40, 41.5), (-61, -60), (88, 89)):
        across, along = scales(south, north)
        for lat in np.linspace(south + 1e-3, north - 1e-3, 7):
            assert WGS84.inv(0, lat, 1e-3, lat)[2] >= across * 1e-3 * (1 - 1e-9)
            assert WGS84.inv(0, lat, 0, lat + 1e-3)[2] >= along * 1e-3 * (1 - 1e-9)
