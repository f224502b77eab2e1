"""Which hexagons are nearer than δ: no pair is missed, judged by points on their borders and geodesics of the earth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from maps import WGS84

import sfumato as sf
from sfumato.domain.near_hexagons import MAJOR, in_space, slack

h3 = pytest.importorskip("h3.api.basic_int", reason="needs sfumato[h3]")

PENTAGON = h3.get_pentagons(5)[0]


def around(lon, lat, resolution, rings):
    """The cells within so many rings of a place."""
    return h3.grid_disk(h3.latlng_to_cell(lat, lon, resolution), rings)


def near(cells, delta):
    axis = sf.H3(h3.get_resolution(cells[0]), cover=cells).axes[0]
    return axis, {tuple(pair) for pair in axis.near(delta).tolist()}


def arcs(cell, each):
    """Points on the border of a cell: on the arcs of great circles (of latitudes and longitudes) between corners."""
    corners = np.radians(h3.cell_to_boundary(cell))
    lat, lon = corners.T
    ends = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    share = np.linspace(0, 1, each, endpoint=False)[None, :, None]
    between = ends[:, None] * (1 - share) + np.roll(ends, -1, axis=0)[:, None] * share
    x, y, z = (between / np.linalg.norm(between, axis=2, keepdims=True)).reshape(-1, 3).T
    return np.degrees(np.stack([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))], axis=1))


def witnesses(axis, delta, each):
    """Pairs of hexagons with points on their borders less than delta apart; those around the cover are elsewhere."""
    from scipy.spatial import cKDTree

    own = axis.indices.tolist()
    outer = sorted({near for cell in own for near in h3.grid_disk(cell, 1)} - set(own))
    borders = [arcs(cell, each) for cell in [*own, *outer]]
    points = np.concatenate(borders)
    begins = np.cumsum([0, *map(len, borders)])
    space, found = in_space(points), set()
    for one in range(len(own)):  # the two points that are nearest in space, of this cell and every other one
        apart, at = cKDTree(space[begins[one] : begins[one + 1]]).query(space[begins[one] :])
        starts = begins[one:-1] - begins[one]
        least = np.minimum.reduceat(apart, starts)
        best = [int(start + np.argmax(apart[start:end] == low)) for start, end, low in
                zip(starts, [*starts[1:], len(apart)], least, strict=True)]  # fmt: skip
        ends = points[begins[one] :][best], points[begins[one] + at[best]]
        near = WGS84.inv(*ends[0].T, *ends[1].T)[2] < delta
        found |= {(one, min(int(one + k), len(own))) for k in np.flatnonzero(near) if k}
    return found


# ------------------------------------------------------------------ by hand


def test_one_hexagon_is_beside_elsewhere():
    assert near(around(-73.97, 40.78, 9, 0), 1)[1] == {(0, 1)}


def test_neighbours_touch_and_a_ring_surrounds_the_middle():
    axis, pairs = near(around(-73.97, 40.78, 7, 1), Fraction(1, 100))
    middle = axis.numbers_of(np.array([h3.latlng_to_cell(40.78, -73.97, 7)], np.uint64))[0]
    assert {pair for pair in pairs if middle in pair} == {tuple(sorted((middle, i))) for i in range(7) if i != middle}
    assert {(i, 7) for i in range(7) if i != middle} <= pairs and len(pairs) == 6 + 6 + 6


def test_the_last_metre_counts():
    """Two cells with one between them: the shortest way between their borders, a metre more and a metre less."""
    line = h3.grid_path_cells(h3.latlng_to_cell(40.78, -73.97, 9), h3.latlng_to_cell(40.79, -73.97, 9))[:3]
    one, other = arcs(line[0], 60), arcs(line[2], 60)
    lon, lat = (np.broadcast_to(a, (len(one), len(other))).ravel() for a in (one[:, None, 0], one[:, None, 1]))
    to_lon, to_lat = (
        np.broadcast_to(a, (len(one), len(other))).ravel() for a in (other[None, :, 0], other[None, :, 1])
    )
    gap = WGS84.inv(lon, lat, to_lon, to_lat)[2].min()
    ends = [line[0], line[2]]
    assert (0, 1) in near(ends, gap + 0.05)[1] and (0, 1) not in near(ends, gap - 1)[1]


def test_hexagons_that_cover_the_earth_are_all_beside_elsewhere():
    axis, pairs = near(h3.get_res0_cells(), 1000)
    assert {(i, 122) for i in range(122)} <= pairs
    assert {tuple(sorted(p)) for p in pairs if p[1] < 122} >= {
        tuple(sorted(axis.numbers_of(np.array([cell, other], np.uint64)).tolist()))
        for cell in h3.get_res0_cells()
        for other in h3.grid_disk(cell, 1)
        if other != cell
    }


def test_a_move_round_the_earth_joins_all():
    assert len(near(around(0, 0, 3, 1), 21_000_000)[1]) == 28


def test_too_many_pairs_are_refused_with_their_number(monkeypatch):
    cells = around(-73.97, 40.78, 9, 12)
    monkeypatch.setattr("sfumato.domain.near_hexagons.MOST_EDGES", 2_000)
    with pytest.raises(
        sf.TooLarge, match=r"^[0-9],[0-9]{3} pairs of hexagons or more are less than 500 m apart.*Nothing"
    ):
        near(cells, 500)
    with monkeypatch.context() as patch:  # before anything is compared
        patch.setattr("sfumato.domain.near_hexagons._candidates", None)
        with pytest.raises(sf.TooLarge):
            near(cells, 500)


# ------------------------------------------------------------------ the oracle

PLACES = [
    pytest.param(around(-73.97, 40.78, 9, 4), id="New York"),
    pytest.param(around(180, 66, 9, 4), id="date line"),
    pytest.param(around(0, 90, 9, 4), id="north pole"),
    pytest.param(around(0, -90, 8, 4), id="south pole"),
    pytest.param(h3.grid_disk(h3.cell_to_center_child(PENTAGON, 9), 4), id="pentagon"),
    pytest.param([*around(10, 0, 8, 3), *around(10.06, 0.03, 8, 3)], id="two parts"),
]


@pytest.mark.parametrize("delta", [3, 150, 700])
@pytest.mark.parametrize("cells", PLACES)
def test_no_near_pair_is_missed_and_few_are_superfluous(cells, delta):
    """Points on all borders with a geodesic below δ; within a hundredth more than δ nearly every pair has some."""
    axis, pairs = near(cells, delta)
    seen = witnesses(axis, delta, 12)
    assert len(seen) >= len(cells) and not seen - pairs
    if delta >= 700:
        assert len(pairs - witnesses(axis, delta * 1.02, 12)) <= 0.02 * len(pairs)


@pytest.mark.parametrize(
    ("cells", "delta"),
    [
        (around(-30, 20, 3, 3), 60_000),
        (around(180, -10, 3, 3), 200_000),
        (h3.grid_disk(h3.get_pentagons(2)[7], 2), 300_000),
        (h3.get_res0_cells()[:40], 500_000),
        (around(77, 89, 2, 1), 100_000),
    ],
)
def test_large_hexagons_too(cells, delta):
    """Their sides are bent: the slack is kilometres."""
    axis, pairs = near(list(cells), delta)
    seen = witnesses(axis, delta, 12)
    assert len(seen) > 10 and not seen - pairs


@pytest.mark.parametrize("resolution", [3, 7, 10])
def test_steps_over_borders_join_cells_that_are_pairs(resolution):
    """Records beside borders, moved by less than δ in all directions: both ends' cells are one, or a pair."""
    rng = np.random.default_rng(resolution)
    cells = around(179.9, 71, resolution, 3)
    domain = sf.H3(resolution, cover=cells)
    delta = h3.average_hexagon_edge_length(resolution, "m")
    pairs = {tuple(pair) for pair in domain.axes[0].near(Fraction(delta)).tolist()}
    on = np.repeat(np.concatenate([arcs(cell, 5) for cell in cells]), 30, axis=0)
    lon, lat, _ = WGS84.fwd(*on.T, rng.random(len(on)) * 360, rng.random(len(on)) * delta / 5)
    to_lon, to_lat, _ = WGS84.fwd(lon, lat, rng.random(len(on)) * 360, rng.random(len(on)) * delta * (1 - 1e-9))
    one, other = domain.locate(np.stack([lon, lat], 1)), domain.locate(np.stack([to_lon, to_lat], 1))
    met = {tuple(sorted(pair)) for pair in zip(one.tolist(), other.tolist(), strict=True) if pair[0] != pair[1]}
    assert any(pair[1] == domain.size - 1 for pair in met) and len(met) > 40 and not met - pairs


def test_cells_end_where_their_corners_say():
    """Places a millimetre inside the arcs between corners are in the cell, also of a pentagon and over the pole."""
    for cell in [*around(0, 90, 9, 2), *around(-73.97, 40.78, 9, 2), h3.cell_to_center_child(PENTAGON, 9)]:
        border = arcs(cell, 7)
        lat, lon = h3.cell_to_latlng(cell)
        toward = WGS84.inv(*border.T, np.full(len(border), lon), np.full(len(border), lat))[0]
        x, y, _ = WGS84.fwd(*border.T, toward, np.full(len(border), 1e-3))
        assert [h3.latlng_to_cell(b, a, 9) for a, b in zip(x, y, strict=True)] == [cell] * len(border)
        x, y, _ = WGS84.fwd(*border.T, toward + 180, np.full(len(border), 1e-3))
        assert cell not in [h3.latlng_to_cell(b, a, 9) for a, b in zip(x, y, strict=True)]


def test_the_slack_covers_how_far_arcs_are_from_straight_lines():
    for resolution, most in ((7, 0.06), (5, 3.0), (0, 60_000.0)):
        cells = around(12, 57, resolution, 1)
        for cell in cells:
            corners = np.array(h3.cell_to_boundary(cell))[:, ::-1]
            points = in_space(corners)
            said = slack(points[None])
            assert said < most
            curve = in_space(arcs(cell, 41)).reshape(len(corners), 41, 3)
            share = np.linspace(0, 1, 41, endpoint=False)[None, :, None]
            lines = points[:, None] * (1 - share) + np.roll(points, -1, axis=0)[:, None] * share
            along = np.roll(points, -1, axis=0) - points
            along /= np.linalg.norm(along, axis=1, keepdims=True)
            away = curve - lines
            away -= (away * along[:, None]).sum(axis=2, keepdims=True) * along[:, None]
            assert np.linalg.norm(away, axis=2).max() <= said


def test_the_ellipsoid_is_bent_as_little_as_is_said():
    rng = np.random.default_rng(0)
    start, side = rng.normal(size=(2, 200_000, 3))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    side -= (side * start).sum(axis=1, keepdims=True) * start
    side /= np.linalg.norm(side, axis=1, keepdims=True)

    def at(turn):
        x, y, z = (start * np.cos(turn) + side * np.sin(turn)).T
        return in_space(np.degrees(np.stack([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))], axis=1)))

    bent = np.linalg.norm(at(1e-3) - 2 * at(0.0) + at(-1e-3), axis=1) / 1e-6
    assert 1.003 * MAJOR < bent.max() < 1.01 * MAJOR
