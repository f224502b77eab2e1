"""Grids on the ground: a CRS, cells in metres, longitudes modulo 360, and elsewhere beside the cells."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from maps import WGS84, pyproj

import sfumato as sf
from sfumato.domain import domain_from_spec

NEW_YORK = (-74.3, 40.5, -73.7, 40.95)
PLANE = (560_000, 4_480_000, 620_000, 4_530_000)
UTM = "EPSG:32618"


def test_a_grid_without_a_crs_is_what_it_was():
    """Its description and fingerprint, and that it clamps."""
    grid = sf.Grid(NEW_YORK, (4, 4))
    assert grid.spec() == {
        "axes": [
            {"kind": "interval", "name": "x", "low": -74.3, "high": -73.7, "cells": 4},
            {"kind": "interval", "name": "y", "low": 40.5, "high": 40.95, "cells": 4},
        ]
    }
    assert not grid.apart
    assert grid.locate([(0, 0)]).tolist() == [12]
    assert grid != sf.Grid(NEW_YORK, (4, 4), crs="EPSG:4326")


def test_cells_are_about_as_large_as_is_said():
    for bounds, crs in ((NEW_YORK, None), ((10, -1, 11, 1), "OGC:CRS84"), ((20, 69, 22, 70), "EPSG:4326")):
        grid = sf.Grid(bounds, cell="500 m", crs=crs)
        middle = (bounds[1] + bounds[3]) / 2
        across = WGS84.inv(bounds[0], middle, bounds[0] + float(grid.axes[0].width), middle)[2]
        along = WGS84.inv(bounds[0], middle, bounds[0], middle + float(grid.axes[1].width))[2]
        assert abs(across / 500 - 1) < 0.01 and abs(along / 500 - 1) < 0.01
    assert sf.Grid(PLANE, cell="0.5 km", crs=UTM).shape == (120, 100)
    assert sf.Grid(NEW_YORK, cell="1000 km").shape == (1, 1)


def test_places_beyond_the_bounds_are_in_no_cell():
    grid = sf.Grid(NEW_YORK, (2, 2), crs="EPSG:4326")
    rows = [(-74.1, 40.7), (-73.7, 40.95), (-74.31, 40.7), (-74, 40.96), (-np.inf, 40.7), (-74, np.inf), (-74, 400)]
    assert grid.locate(rows).tolist() == [0, 3, -1, -1, -1, -1, -1]
    space = grid * sf.Line(0, 24, cells=2, name="h")
    assert space.apart and space.locate([(-73.8, 40.9, 30.0), (0, 0, 30.0)]).tolist() == [7, -1]
    with pytest.raises(sf.InvalidInput, match="some values are NaN"):
        grid.locate([(np.nan, 40.7)])


def test_longitudes_are_taken_modulo_360():
    grid = sf.Grid(NEW_YORK, (2, 2), crs="EPSG:4326")
    assert grid.locate([(285.9, 40.7), (-434.1, 40.7), (645.9, 40.9), (106, 40.7)]).tolist() == [0, 0, 1, -1]
    pacific = sf.Grid((170, -10, 190, 10), (2, 1), crs="EPSG:4326")
    assert pacific.locate([(175, 0), (-175, 0), (185, 0), (-185, 0), (0, 0)]).tolist() == [0, 1, 1, 0, -1]
    plane = sf.Grid((0, 0, 100, 100), (2, 2), crs=UTM)
    assert plane.locate([(10, 10), (370, 10)]).tolist() == [0, -1]
    earth = sf.Grid((-180, -90, 180, 90), (4, 2), crs="EPSG:4326")
    assert earth.locate([(180, 0), (-180, 0), (181, 0), (540.5, 89), (0, 90)]).tolist() == [7, 1, 1, 1, 5]


def test_raw_points_are_counted_without_those_elsewhere():
    grid = sf.Grid(NEW_YORK, (2, 2), crs="EPSG:4326")
    plan = sf.plan(sf.policy(grid, hide=sf.presence()), sf.histogram(), epsilon=200)
    release = plan.publish(points=np.array([(-74.1, 40.7)] * 7 + [(5.0, 40.7)] * 5))
    assert release.counts.tolist() == [[7, 0], [0, 0]]


def test_a_description_is_read_back():
    for grid in (
        sf.Grid(NEW_YORK, cell="1 km", name="home"),
        sf.Grid(PLANE, (7, 5), crs=UTM),
        sf.Grid(PLANE, (7, 5), crs=pyproj.CRS(UTM).to_wkt()) * sf.Line(0, 1, cells=2, name="h"),
    ):
        read = domain_from_spec(json.loads(json.dumps(grid.spec())))
        assert read == grid and type(read) is type(grid) and read.fingerprint == grid.fingerprint
        assert repr(read) == repr(grid)
    assert repr(sf.Grid(PLANE, (7, 5), crs=UTM)).endswith("shape=(7, 5), crs='EPSG:32618')")


def test_forged_descriptions_are_refused():
    for change in (
        {"crs": 5},
        {"degrees": 1},
        {"turns": None},
        {"scales": [[1]]},
        {"scales": [[1, "a"]]},
        {"scales": [[-1, 1]]},
        {"scales": 7},
        {"low": -1000},
    ):
        spec = sf.Grid(NEW_YORK, (2, 2), crs="EPSG:4326").spec()
        spec["axes"][0] |= change
        with pytest.raises(sf.InvalidInput):
            domain_from_spec(spec)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bounds": NEW_YORK, "cell": "100"}, "no length"),
        ({"bounds": NEW_YORK, "cell": 100}, "no length"),
        ({"bounds": NEW_YORK, "cell": "0 m"}, "no length"),
        ({"bounds": NEW_YORK, "crs": "EPSG:4326"}, "one of the two"),
        ({"bounds": NEW_YORK, "shape": (2, 2), "cell": "1 km"}, "one of the two"),
        ({"edges": ([0, 1], [0, 1]), "crs": "EPSG:4326"}, "one of the two"),
        ({"bounds": (0, 0, 0, 1, 1, 1), "shape": (2, 2, 2), "crs": "EPSG:4326"}, "has two"),
        ({"bounds": NEW_YORK, "shape": (2, 2), "crs": "nonsense"}, "is no CRS"),
        ({"bounds": PLANE, "shape": (2, 2), "crs": "EPSG:2263"}, "of metres on the earth"),
        ({"bounds": PLANE, "shape": (2, 2), "crs": "EPSG:4326"}, "no longitudes and latitudes"),
        ({"bounds": (40.5, -74.3, 40.9, 95), "cell": "1 km"}, "no longitudes and latitudes"),
    ],
)
def test_what_is_no_grid_on_the_ground_is_refused(options, words):
    with pytest.raises(sf.InvalidInput, match=words) as error:
        sf.Grid(**options)
    assert "Nothing was built" in str(error.value)


def test_scales_are_the_largest_within_the_margin():
    """Against the factors of PROJ at random places; UTM at the equator, three degrees off, is 1.00097."""
    rng = np.random.default_rng(0)
    for bounds, crs in (
        (PLANE, UTM),
        ((833_000, -1_000, 834_000, 1_000), "EPSG:32631"),
        ((400_000, 400_000, 600_000, 600_000), "EPSG:27700"),
        ((3_500_000, 2_500_000, 4_500_000, 3_500_000), "EPSG:3035"),
        ((600_000, 6_600_000, 700_000, 6_700_000), "EPSG:2154"),
    ):
        try:
            axis = sf.Grid(bounds, (2, 2), crs=crs).axes[0]
        except sf.InvalidInput:
            assert crs == "EPSG:27700"  # Airy's ellipsoid is none of the earth's
            continue
        plane = pyproj.Proj(crs)
        assert axis.scales
        for margin, scale in axis.scales:
            x = rng.uniform(bounds[0] - margin, bounds[2] + margin, 4_000)
            y = rng.uniform(bounds[1] - margin, bounds[3] + margin, 4_000)
            found = plane.get_factors(*plane(x, y, inverse=True)).tissot_semimajor.max()
            assert found <= scale <= found * 1.002
            assert axis.scale_within(Fraction(margin)) == scale
        with pytest.raises(sf.InvalidInput, match="farther from the bounds than scales are known for"):
            axis.scale_within(Fraction(10**6))
    three_off = sf.Grid((833_000, -1_000, 834_000, 1_000), (2, 2), crs="EPSG:32631").axes[0]
    assert 1.00097 <= three_off.scale_within(Fraction(500)) < 1.00105


def test_web_mercator_has_no_scale():
    axis = sf.Grid((-8_240_000, 4_960_000, -8_230_000, 4_970_000), (2, 2), crs="EPSG:3857").axes[0]
    assert axis.scales == ()
    with pytest.raises(sf.InvalidInput, match="are not metres on the ground"):
        axis.scale_within(Fraction(500))
