"""Regions: which cell a place is in, what is refused of a map, and what a file says of one."""

from __future__ import annotations

import json
import re
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from maps import border_points, frame, geopandas, hard, shapely, voronoi

import sfumato as sf
from sfumato.domain import domain_from_spec
from sfumato.domain.crossings import Lookup, right_of


def regions(shapes, **options):
    return sf.Regions(frame(shapes), id="id", **options)


def squares():
    return [shapely.box(x, y, x + 1, y + 1) for x in (0, 1) for y in (0, 1)]


# ------------------------------------------------------------------ by hand


def test_two_halves_and_what_is_nowhere():
    halves = regions([shapely.box(0, 0, 1, 2), shapely.box(1, 0, 2, 2)])
    assert halves.shape == (3,)
    assert halves.axes[0].labels == ("r0", "r1", "elsewhere")
    assert halves.locate([(0.5, 1), (1.5, 1), (3, 1), (0.5, 2.5), (-0.5, 1)]).tolist() == [0, 1, 2, 2, 2]


def test_a_point_on_a_border_is_in_one_region():
    """Half-open: the lower and the left border belong to a square, the upper and the right one to the next."""
    four = regions(squares())
    assert four.locate([(1, 0.5), (0.5, 1), (1, 1), (0, 0), (2, 0.5), (0.5, 2), (0, 1)]).tolist() == [
        2,
        1,
        3,
        0,
        4,
        4,
        1,
    ]


def test_holes_islands_and_parts():
    island = regions([shapely.multipolygons([shapely.box(0, 0, 1, 1), shapely.box(5, 5, 6, 6)])])
    assert island.locate([(0.5, 0.5), (5.5, 5.5), (3, 3)]).tolist() == [0, 0, 1]
    inner = shapely.box(0.4, 0.4, 0.6, 0.6)
    lake = regions([shapely.box(0, 0, 1, 1) - inner])
    assert lake.locate([(0.5, 0.5), (0.2, 0.5)]).tolist() == [1, 0]
    town = regions([shapely.box(0, 0, 1, 1) - inner, inner])
    assert town.locate([(0.5, 0.5), (0.2, 0.5)]).tolist() == [1, 0]


def test_longitudes_are_taken_modulo_360():
    strip = regions([shapely.box(-180, 0, -170, 10), shapely.box(170, 0, 180, 10)])
    assert strip.locate([(-175, 5), (185, 5), (545, 5), (175, 5), (-185, 5), (180, 5), (-180, 5)]).tolist() == [
        0, 0, 0, 1, 1, 0, 0,
    ]  # fmt: skip
    pacific = regions([shapely.box(170, 0, 190, 10)])
    assert pacific.locate([(175, 5), (-175, 5), (185, 5), (0, 5)]).tolist() == [0, 0, 0, 1]


def test_infinite_places_are_elsewhere_and_missing_ones_are_refused():
    four = regions(squares())
    assert four.locate([(np.inf, 0.5), (0.5, -np.inf), (1e300, 0.5)]).tolist() == [4, 4, 4]
    with pytest.raises(sf.InvalidInput, match="some places are NaN"):
        four.locate([(np.nan, 0.5)])
    with pytest.raises(sf.InvalidInput, match="two columns, x and y"):
        four.axes[0].locate([1.0, 2.0])


def test_a_product_takes_places_beside_other_values():
    space = regions(squares()) * sf.Line(0, 24, cells=4, name="hour")
    assert space.shape == (5, 4)
    rows = [(0.5, 0.5, 13.0), (1.5, 0.5, 0.0), (9, 9, 23)]
    assert space.locate(rows).tolist() == [2, 8, 19]
    assert space.locate((np.array(rows)[:, :2], np.array(rows)[:, 2])).tolist() == [2, 8, 19]
    with pytest.raises(sf.InvalidInput, match="shape \\(n, 3\\)"):
        space.locate([(0.5, 0.5)])


# ------------------------------------------------------------------ the oracle


def inside(outlines, region, x, y):
    """Parity of crossings over all segments of a region, in fractions."""
    segments, owner = outlines.segments()
    x, y = Fraction(float(x)), Fraction(float(y))
    odd = False
    for x0, y0, x1, y1 in segments[owner == region].tolist():
        if y0 > y1:
            x0, y0, x1, y1 = x1, y1, x0, y0
        if Fraction(y0) <= y < Fraction(y1):
            crossing = Fraction(x0) + (y - Fraction(y0)) * (Fraction(x1) - Fraction(x0)) / (Fraction(y1) - Fraction(y0))
            odd ^= crossing <= x
    return odd


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("side", [4, 2048])
def test_location_is_exact_parity(seed, side):
    domain = regions(hard(seed))
    outlines, n = domain.axes[0].outlines, domain.size - 1
    rng = np.random.default_rng(seed)
    on, _ = border_points(outlines, 2, seed)
    points = np.concatenate([rng.random((150, 2)) * [1.7, 1.1] - 0.05, on, outlines.points])
    found = Lookup.of(outlines, side)(points)
    for point, cell in zip(points, found, strict=True):
        holding = [region for region in range(n) if inside(outlines, region, *point)]
        assert (holding or [-1])[0] == cell  # the first, where rounded borders overlap


def test_every_point_of_a_border_is_in_one_of_its_regions():
    """Also where one side has a point that the other has not, and rounding leaves slivers between them."""
    long = shapely.box(0.1, 0.1, 1 / 3, 0.7)
    middle = [0.1 + 0.6 * k / 7 for k in range(8)]
    right = [shapely.Polygon([(1 / 3, a), (0.9, a), (0.9, b), (1 / 3, b)]) for a, b in pairwise(middle)]
    slant = shapely.affinity.rotate(shapely.union_all([long]), 17, origin=(0, 0))
    others = [shapely.affinity.rotate(part, 17, origin=(0, 0)) for part in right]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.DeclarationWarning)
        domain = regions([slant, *others])
    points, _ = border_points(domain.axes[0].outlines, 200)
    cells = domain.locate(points)
    near = shapely.dwithin(np.array([slant, *others, None])[cells], shapely.points(points), 1e-12)
    assert near[cells < domain.size - 1].all()


def test_orientation_is_exact_where_doubles_are_not():
    segment = np.array([[0.1, 0.1, 0.7, 0.7]])
    for x, expected in ((0.3, True), (np.nextafter(0.3, 0), False), (np.nextafter(0.3, 1), True)):
        assert right_of(segment, np.array([x]), np.array([0.3]))[0] == expected


def test_location_agrees_with_shapely_away_from_borders():
    shapes = voronoi(400)
    domain = regions(shapes)
    points = np.random.default_rng(1).random((20_000, 2)) * 1.2 - 0.1
    at, region = shapely.STRtree(shapes).query(shapely.points(points), predicate="intersects")
    expected = np.full(len(points), 400)
    expected[at] = region
    assert (domain.locate(points) == expected).all()


# ------------------------------------------------------------------ what is refused


def refused(match, areas, **options):
    with pytest.raises(sf.InvalidInput, match=match) as error:
        sf.Regions(areas, **{"id": "id"} | options)
    assert "Nothing was built" in str(error.value) or "Rename" in str(error.value)


def test_a_map_without_a_crs_or_with_one_of_metres_is_refused():
    refused("has no CRS", frame(squares(), crs=None))
    refused(re.escape("areas.to_crs('EPSG:4326')"), frame(squares(), crs="EPSG:3857"))


def test_names_are_complete_and_different():
    refused("'name', which is no column of areas: 'id'", frame(squares()), id="name")
    refused("have the same name: 'a'", frame(squares(), name=["a", "a", "b", "c"]), id="name")
    refused("rows without a value", frame(squares(), name=["a", None, "b", "c"]), id="name")
    refused("'elsewhere' is the cell", frame(squares(), name=["a", "elsewhere", "b", "c"]), id="name")
    refused("must be a list of columns", frame(squares()), levels="id")
    refused("no rows", frame(squares()).iloc[:0])


def test_polygons_are_refused_by_name():
    tie = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])
    refused("invalid polygons: 'r1'", frame([shapely.box(2, 2, 3, 3), tie]))
    refused("overlap: 'r0' and 'r1'", frame([shapely.box(0, 0, 1, 1), shapely.box(0.9, 0, 2, 1)]))
    refused("overlap: 'r0' and 'r1'", frame([shapely.box(0, 0, 1, 1), shapely.box(0.4, 0.4, 0.6, 0.6)]))
    refused("no polygons: 'r0'", frame([shapely.LineString([(0, 0), (1, 1)])]))
    refused("without a geometry: 'r1'", frame([shapely.box(0, 0, 1, 1), None]))
    refused("wider than 180°: 'r0'", frame([shapely.Polygon([(-179, 0), (179, 0), (179, 5), (-179, 5)])]))
    refused("beyond the poles", frame([shapely.box(40, -74, 41, 95)]))


def test_what_is_no_map_is_refused(tmp_path):
    refused("does not exist", tmp_path / "none.geojson")
    (tmp_path / "bad.geojson").write_text("{}", encoding="utf-8")
    refused("could not be read", tmp_path / "bad.geojson")
    refused("must be a GeoDataFrame", [shapely.box(0, 0, 1, 1)])


def test_repair_mends_and_gives_what_is_shared_to_the_first():
    tie = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])
    domain = regions([tie, shapely.box(0.9, -1, 2, 2)], repair=True)
    assert domain.locate([(0.95, 0.5), (0.2, 0.5), (0.5, 0.1), (0.95, -0.5), (1.5, 0.5)]).tolist() == [0, 0, 2, 1, 1]


def test_narrow_gaps_are_warned_of_and_are_elsewhere():
    ring = shapely.box(0, 0, 1, 1) - shapely.box(0.5, 0.2, 0.5 + 1e-6, 0.8)
    with pytest.warns(sf.DeclarationWarning, match="1 gap narrower than about a metre"):
        domain = regions([ring])
    assert domain.locate([(0.5 + 5e-7, 0.5)]).tolist() == [1]


def test_a_wide_gap_is_no_mistake():
    regions([shapely.box(0, 0, 1, 1) - shapely.box(0.4, 0.4, 0.6, 0.6)])  # warnings fail tests


# ------------------------------------------------------------------ files


def test_files_of_maps_are_read(tmp_path):
    # coordinates that GeoJSON writes in full
    map_ = frame(squares(), county=["a", "a", "b", "b"])
    expected = sf.Regions(map_, id="id", levels=["county"])
    map_.to_parquet(tmp_path / "map.parquet")
    map_.to_file(tmp_path / "map.geojson")
    for name in ("map.parquet", "map.geojson"):
        assert sf.Regions(tmp_path / name, id="id", levels=["county"]) == expected
    assert expected.axes[0].levels[0].of == ("a", "a", "b", "b")


def test_a_description_is_read_back():
    domain = sf.Regions(frame(hard(1)), id="id") * sf.Categories(["bus", "bike"], name="mode")
    spec = json.loads(json.dumps(domain.spec()))
    read = domain_from_spec(spec)
    assert read == domain and read.fingerprint == domain.fingerprint
    points = np.random.default_rng(2).random((500, 2)) * 1.6
    assert (read.axes[0].locate(points) == domain.axes[0].locate(points)).all()
    assert type(domain_from_spec(json.loads(json.dumps(domain.part("place").spec())))) is sf.Regions
    assert {"geopandas", "shapely", "pyproj", "geos"} == set(spec["axes"][0]["made"])


def test_outlines_may_be_left_out_of_a_description():
    domain = regions(hard(1))
    spec = domain.spec()
    spec["axes"][0] |= {"outlines": None, "made": {}}
    read = domain_from_spec(spec)
    assert read == domain and read.fingerprint == domain.fingerprint
    assert repr(read) == "Regions(['r0', 'r1', 'r2', …, 'r10'] (11 labels), crs='EPSG:4326')"
    with pytest.raises(sf.InvalidInput, match="read without the outlines"):
        read.locate([(0.5, 0.5)])


def test_forged_outlines_are_refused():
    domain = regions(squares())
    for change in (
        {"digest": "0" * 64},
        {"outlines": domain.spec()["axes"][0]["outlines"] | {"rings": "AAAA"}},
        {"outlines": domain.spec()["axes"][0]["outlines"] | {"points": 7}},
        {"outlines": regions(hard(1)).spec()["axes"][0]["outlines"]},
        {"ids": ["r0", "r1", "r2"]},
        {"ids": ["r0", "r1", "r2", "r2"]},
        {"ids": "abcd"},
        {"made": 1},
        {"degrees": 1},
    ):
        spec = domain.spec()
        spec["axes"][0] |= change
        with pytest.raises(sf.InvalidInput):
            domain_from_spec(spec)


def test_outlines_that_pack_too_well_are_refused():
    import base64
    import zlib

    from sfumato.domain.outlines import outlines_from_spec

    spec = regions(squares()).axes[0].outlines.spec()
    spec["points"] = base64.b64encode(zlib.compress(zlib.compress(bytes(1 << 26)))).decode()
    with pytest.raises(sf.InvalidInput, match="damaged"):
        outlines_from_spec(spec)


def test_other_outlines_make_another_domain():
    one, other = regions(voronoi(5)), regions(voronoi(5, seed=1))
    assert one != other and one.fingerprint != other.fingerprint
    assert one == regions(voronoi(5)) and hash(one) == hash(regions(voronoi(5)))


def test_names_that_are_numbers_become_text():
    domain = sf.Regions(geopandas.GeoDataFrame({"n": [7, 8, 9, 10]}, geometry=squares(), crs=4326), id="n")
    assert domain.axes[0].ids == ("7", "8", "9", "10")
