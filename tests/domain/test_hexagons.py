"""Hexagons: which cell a place is in, what covers an area, what is refused, and what a file says of them."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from maps import frame, geopandas, shapely

import sfumato as sf
from sfumato.domain import domain_from_spec
from sfumato.domain.h3_index import are_cells, parents_at, read_texts, resolutions, written

h3 = pytest.importorskip("h3.api.basic_int", reason="needs sfumato[h3]")

CENTRAL_PARK = (-73.9819, 40.7644, -73.9492, 40.8003)
NEW_YORK = (-74.05, 40.68, -73.9, 40.88)
PENTAGON = h3.get_pentagons(3)[0]


# ------------------------------------------------------------------ by hand


def test_one_cell_and_what_is_nowhere():
    cell = h3.latlng_to_cell(40.78, -73.97, 9)
    one = sf.H3(9, cover=[cell])
    assert one.shape == (2,) and one.axes[0].labels == (format(cell, "x"), "elsewhere")
    assert one.locate([(-73.97, 40.78), (-73.97, 41.78), (286.03, 40.78), (-433.97, 40.78)]).tolist() == [0, 1, 0, 0]


def test_places_beyond_the_poles_and_infinite_ones_are_elsewhere_and_missing_ones_are_refused():
    cap = sf.H3(2, cover=(-180, 80, 180, 90))
    last = cap.size - 1
    assert cap.locate([(0, 90.1), (np.inf, 85), (0, -np.inf), (1e300, 0)]).tolist() == [last] * 4
    assert cap.locate([(0, 90), (17, 90)])[0] < last
    with pytest.raises(sf.InvalidInput, match="some places are NaN"):
        cap.locate([(np.nan, 0.5)])


def test_location_is_that_of_the_library():
    domain = sf.H3(8, cover=NEW_YORK)
    points = np.random.default_rng(0).random((3_000, 2)) * [0.2, 0.25] + [-74.07, 40.66]
    cells = [h3.latlng_to_cell(lat, lon, 8) for lon, lat in points.tolist()]
    names = [format(cell, "x") for cell in cells]
    expected = [name if name in domain.axes[0].ids else "elsewhere" for name in names]
    assert [domain.axes[0].labels[cell] for cell in domain.locate(points)] == expected


def test_cells_stand_in_the_order_of_their_numbers_however_they_were_listed():
    cells = h3.grid_disk(h3.latlng_to_cell(40.78, -73.97, 7), 2)
    texts = [format(cell, "x") for cell in cells]
    domain = sf.H3(7, cover=cells)
    for other in (cells[::-1], np.array(cells, np.uint64), texts, [text.upper() for text in texts], [*texts, texts[0]]):
        assert sf.H3(7, cover=other) == domain
    assert list(domain.axes[0].ids) == sorted(texts)


# ------------------------------------------------------------------ indices


@pytest.mark.parametrize("resolution", [0, 1, 2, 7, 15])
def test_arithmetic_on_indices_is_that_of_the_library(resolution):
    rng = np.random.default_rng(resolution)
    points = np.degrees(np.arcsin(rng.uniform(-1, 1, 300))), rng.uniform(-180, 180, 300)
    cells = [h3.latlng_to_cell(lat, lon, resolution) for lat, lon in zip(*points, strict=True)]
    cells += [*h3.get_pentagons(resolution), h3.cell_to_center_child(PENTAGON, max(resolution, 3))]
    array = np.array(cells, np.uint64)
    assert are_cells(array).all() and resolutions(array).tolist() == [h3.get_resolution(cell) for cell in cells]
    for coarser in range(resolution + 1):
        mine = array[resolutions(array) >= coarser]
        expected = [h3.cell_to_parent(cell, coarser) for cell in mine.tolist()]
        assert parents_at(mine, coarser).tolist() == expected
    assert read_texts(written(array)).tolist() == cells and read_texts(list(map(str, cells))).tolist() == cells


def test_what_is_a_cell_is_what_the_library_says():
    """Cells with a bit or two turned, and children of pentagons that do not exist."""
    rng = np.random.default_rng(1)
    cells = np.array([*h3.get_pentagons(2), *h3.cell_to_children(PENTAGON, 5)][:400], np.uint64)
    flips = np.uint64(1) << rng.integers(0, 64, (40, len(cells))).astype(np.uint64)
    turned = np.concatenate([cells ^ flips[0], *(cells ^ a ^ b for a, b in pairwise(flips))])
    assert are_cells(turned).tolist() == [h3.is_valid_cell(cell) for cell in turned.tolist()]
    assert 100 < are_cells(turned).sum() < len(turned) - 100


def test_texts_that_are_no_numbers_are_no_cells():
    assert read_texts(["", None, "8_9", "-1", "zz", "0x", "1" * 20, 7]).tolist() == [0] * 8
    assert not are_cells(np.zeros(1, np.uint64)).any()


def test_parents_are_those_of_the_hierarchy():
    domain = sf.H3(8, cover=NEW_YORK)
    axis = domain.axes[0]
    level = axis.parents(6)
    assert level.name == "resolution 6"
    assert list(level.of) == [format(h3.cell_to_parent(int(cell, 16), 6), "x") for cell in axis.ids]
    for wrong in (8, 9, -1, 1.5):
        with pytest.raises(sf.InvalidInput, match="must be one coarser than 8"):
            axis.parents(wrong)


def test_levels_are_parents_with_elsewhere_by_itself():
    domain = sf.H3(8, cover=NEW_YORK, levels=[5, 7])
    coarse, fine = domain.axes[0].coarser
    assert (coarse.name, fine.name) == ("resolution 5", "resolution 7")
    for level, resolution in ((coarse, 5), (fine, 7)):
        expected = [*domain.axes[0].parents(resolution).of, "elsewhere"]
        assert [level.names[group] for group in level.of] == expected
    assert domain != sf.H3(8, cover=NEW_YORK) and domain_from_spec(json.loads(json.dumps(domain.spec()))) == domain
    plan = sf.plan(sf.policy(domain, hide=sf.move("500 m")), sf.levels(), epsilon=1)
    release = plan.publish(np.arange(domain.size))
    assert release.total == np.arange(domain.size).sum()
    for levels, words in (([7, 5], "rising"), ([8], "rising"), ([5, 5], "rising"), ([1.5], "rising"), ("7", "a list")):
        refused(words, resolution=8, cover=NEW_YORK, levels=levels)


# ------------------------------------------------------------------ covers


def test_a_cover_has_every_cell_with_a_part_of_the_area(tmp_path):
    box = shapely.box(*CENTRAL_PARK)
    expected = sf.H3(9, cover=CENTRAL_PARK)
    points = np.random.default_rng(2).uniform(CENTRAL_PARK[:2], CENTRAL_PARK[2:], (5_000, 2))
    assert (expected.locate(points) < expected.size - 1).all()
    park = frame([box])
    park.to_file(tmp_path / "park.geojson")
    park.to_parquet(tmp_path / "park.parquet")
    halves = [shapely.box(-73.9819, 40.7644, -73.96, 40.8003), shapely.box(-73.96, 40.7644, -73.9492, 40.8003)]
    for cover in (
        box,
        park,
        park.to_crs("OGC:CRS84"),
        park.geometry,
        shapely.multipolygons(halves),
        frame(halves),
        tmp_path / "park.geojson",
        str(tmp_path / "park.parquet"),
    ):
        assert sf.H3(9, cover=cover) == expected


def test_polygons_of_another_crs_are_transformed():
    there = frame([shapely.box(*CENTRAL_PARK)]).to_crs("EPSG:32618")
    near = sf.H3(9, cover=CENTRAL_PARK)
    ids = set(sf.H3(9, cover=there).axes[0].ids)
    assert len(ids ^ set(near.axes[0].ids)) <= 3  # straight lines there are none here


def test_holes_are_no_part_of_a_cover():
    ring = shapely.box(*NEW_YORK) - shapely.box(-74.02, 40.72, -73.93, 40.84)
    domain = sf.H3(8, cover=ring)
    assert domain.locate([(-73.975, 40.78), (-74.04, 40.7)])[0] == domain.size - 1
    assert domain.locate([(-74.04, 40.7)])[0] < domain.size - 1


def test_bounds_over_the_date_line_and_round_the_earth():
    fiji = sf.H3(4, cover=(176, -20, 184, -15))
    points = np.random.default_rng(3).uniform((176, -20), (184, -15), (3_000, 2))
    assert (fiji.locate(points) < fiji.size - 1).all() and fiji.size < 700
    assert sf.H3(4, cover=(-184, -20, -176, -15)) == fiji
    earth = sf.H3(1, cover=(-180, -90, 180, 90))
    assert earth.shape == (843,)


def refused(match, resolution=9, **options):
    with pytest.raises(sf.InvalidInput, match=match) as error:
        sf.H3(resolution, **options)
    assert "Nothing was built" in str(error.value)


def test_what_is_no_cover_is_refused(tmp_path):
    cell = format(h3.latlng_to_cell(40.78, -73.97, 9), "x")
    refused("from 0 to 15", resolution=16, cover=CENTRAL_PARK)
    refused("from 0 to 15", resolution=8.5, cover=CENTRAL_PARK)
    refused("no bounds", cover=(-73, 40, -74, 41))
    refused("no bounds", cover=(40.7, -173.9, 40.8, 91))
    refused("holds no cell", cover=[])
    refused("1 that are no cells of H3, the first of them 'nonsense'", cover=[cell, "nonsense"])
    refused("cells of resolution 9, and the domain is one of resolution 8", resolution=8, cover=[cell])
    refused("of type int is no area", cover=7)
    refused("of type 'LineString'", cover=shapely.LineString([(0, 0), (1, 1)]))
    refused("has no CRS", cover=frame([shapely.box(*CENTRAL_PARK)], crs=None))
    refused("wider than 180", resolution=2, cover=shapely.box(-179, 0, 179, 1))
    refused("beyond the poles", cover=shapely.box(40, -74, 41, 95))
    refused("cover='.*' does not exist", cover=tmp_path / "none.geojson")
    refused("holds no cell", cover=geopandas.GeoDataFrame({"id": []}, geometry=[], crs="EPSG:4326"))


def test_too_many_cells_are_refused_before_they_are_made():
    with pytest.raises(
        sf.TooLarge, match=r"about [0-9,]+ cells of resolution 15.*at most 4,194,304. Nothing was built"
    ):
        sf.H3(15, cover=NEW_YORK)


# ------------------------------------------------------------------ files


def test_a_description_is_read_back():
    space = sf.H3(8, cover=NEW_YORK) * sf.Categories(["bus", "bike"], name="mode")
    spec = json.loads(json.dumps(space.spec()))
    read = domain_from_spec(spec)
    assert read == space and read.fingerprint == space.fingerprint and hash(read) == hash(space)
    assert read.axes[0].made == space.axes[0].made and {"h3", "h3 (C)"} == set(spec["axes"][0]["made"])
    assert type(domain_from_spec(json.loads(json.dumps(space.part("place").spec())))) is sf.H3
    assert repr(sf.H3(8, cover=["882a100d25fffff"], name="home")) == "H3(8, cover=['882a100d25fffff'], name='home')"


def test_versions_have_no_part_in_a_fingerprint():
    domain = sf.H3(8, cover=NEW_YORK)
    spec = domain.spec()
    spec["axes"][0]["made"] = {}
    assert domain_from_spec(spec) == domain and domain_from_spec(spec).fingerprint == domain.fingerprint
    assert domain.fingerprint != sf.H3(8, cover=CENTRAL_PARK).fingerprint


def test_forged_descriptions_are_refused():
    domain, other = sf.H3(8, cover=NEW_YORK), sf.H3(8, cover=CENTRAL_PARK)
    for change in (
        {"digest": "0" * 64},
        {"cells": other.spec()["axes"][0]["cells"]},
        {"cells": "AAAA"},
        {"cells": 7},
        {"resolution": 7},
        {"resolution": "8"},
        {"rule": "h3-5"},
        {"levels": [9]},
        {"levels": 7},
        {"levels": [[7]]},
        {"made": 1},
    ):
        spec = domain.spec()
        spec["axes"][0] |= change
        with pytest.raises(sf.InvalidInput):
            domain_from_spec(spec)
