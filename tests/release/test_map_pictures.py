"""Maps as pictures: proportions, bars of scale, units, outlines of others, errors beside estimates, and colours."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from released import GRID, LINE, known
from typer.testing import CliRunner

import sfumato as sf
from sfumato.app.cli import app
from sfumato.release.colours import ERRORS, ESTIMATES, LINES
from sfumato.release.proportions import proportions

NEW_YORK = (-74.3, 40.5, -73.7, 40.95)
TRUE = 1 / np.cos(np.radians(40.725))


def on(domain: sf.Domain, **options: Any) -> Any:
    return known(domain, np.arange(domain.size)).plot(**options)


def said(figure: Any) -> str:
    import matplotlib.text

    return "\n".join(one.get_text() for one in figure.findobj(matplotlib.text.Text))


def bar_of(ax: Any) -> tuple[float, float]:
    """How many units of x the bar is long, and how many metres it says."""
    (line,), (text,) = ax.lines, ax.texts
    left, right = ax.get_xlim()
    number, unit = text.get_text().split()
    return float(np.ptp(line.get_xdata())) * (right - left), float(number) * (1000 if unit == "km" else 1)


# ------------------------------------------------------------------------------------------- proportions


@pytest.mark.parametrize("names", [("x", "y"), ("lon", "lat"), ("Longitude", "Latitude")])
@pytest.mark.parametrize("crs", [None, "EPSG:4326"])
def test_new_york_is_not_too_wide(names: tuple[str, str], crs: str | None) -> None:
    ax = on(sf.Grid(bounds=NEW_YORK, shape=(6, 5), names=names, crs=crs)).axes[0]
    assert ax.get_aspect() == pytest.approx(TRUE) and TRUE > 1.3


def test_products_have_the_same_proportions() -> None:
    ax = on(sf.Grid(bounds=NEW_YORK, shape=(6, 5)) * sf.Categories(["a", "b"], name="kind")).axes[0]
    assert ax.get_aspect() == pytest.approx(TRUE)


@pytest.mark.parametrize("bounds", [(0, 0, 100, 60), (-10, -20, 10, 20), (0, 0, 1, 1), (200, 10, 260, 50)])
def test_plain_numbers_that_do_not_look_like_degrees_are_drawn_as_they_are(bounds: Any) -> None:
    ax = on(sf.Grid(bounds=bounds, shape=(6, 5))).axes[0]
    assert ax.get_aspect() == 1 and not ax.lines and ax.get_xlabel() == "x"


def test_a_guess_is_said_and_has_no_bar_of_scale() -> None:
    plain = on(sf.Grid(bounds=NEW_YORK, shape=(6, 5)))
    assert "drawn as degrees, which the bounds look like" in said(plain) and not plain.axes[0].lines
    named = on(sf.Grid(bounds=NEW_YORK, shape=(6, 5), names=("lon", "lat")))
    assert "look like" not in said(named) and not named.axes[0].lines
    assert named.axes[0].get_xlabel() == "lon (degrees)"


@pytest.mark.parametrize("latitude", [-60.0, 0.0, 40.7, 70.0])
def test_the_bar_is_right_at_the_map_s_middle_latitude(latitude: float) -> None:
    """Against the ellipsoid of pyproj, to a thousandth."""
    pyproj = pytest.importorskip("pyproj", reason="needs sfumato[geo]")
    bounds = (10, latitude - 2, 14, latitude + 2)
    length, told = bar_of(on(sf.Grid(bounds=bounds, shape=(6, 5), crs="EPSG:4326")).axes[0])
    _, _, metres = pyproj.Geod(ellps="WGS84").inv(12, latitude, 12 + length, latitude)
    assert metres == pytest.approx(told, rel=1e-3)


def test_the_bar_knows_the_scale_of_a_projection() -> None:
    """Web Mercator calls 0.76 of a metre one in New York."""
    pyproj = pytest.importorskip("pyproj", reason="needs sfumato[geo]")
    turn = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:3857", always_xy=True)
    (x0, y0), (x1, y1) = turn.transform(-74.3, 40.5), turn.transform(-73.7, 40.95)
    shape = proportions("EPSG:3857", (x0, y0, x1, y1))
    assert shape.metres == pytest.approx((1 / TRUE, 1 / TRUE), rel=0.01)
    assert shape.aspect == 1 and shape.label("x") == "x (m)"
    assert proportions("EPSG:32618", (580_000, 4_500_000, 600_000, 4_520_000)).metres == pytest.approx((1, 1), rel=1e-3)


def test_sides_have_names_and_units() -> None:
    ax = on(sf.Grid(bounds=NEW_YORK, shape=(6, 5), crs="EPSG:4326")).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x (degrees)", "y (degrees)")
    days = sf.Times("2026-03-07", "2026-03-10", every="1 day", name="t", tz="America/New_York")
    assert on(days).axes[0].get_xlabel() == "t (America/New_York)"


# ---------------------------------------------------------------------------------- errors beside estimates


def uneven() -> sf.Release:
    """A cell in the middle has more neighbours than one at the border."""
    denser = sf.graph(GRID, [(i, i + 1) for i in range(29)] + [(i, i + 2) for i in range(14)])
    return sf.plan(denser, sf.histogram(), 1, mechanism="edges").publish(np.zeros((6, 5), int))


def test_errors_are_drawn_beside_where_they_differ_or_are_asked_for() -> None:
    assert "standard error of a cell" in said(uneven().plot()) and len(uneven().plot().axes) == 4
    assert len(uneven().plot(uncertainty=False).axes) == 2
    assert len(known(GRID, range(30)).plot(uncertainty=True).axes) == 4
    product = sf.Grid(bounds=NEW_YORK, shape=(6, 5)) * sf.Categories(["a", "b"], name="kind")
    figure = on(product, by="place", uncertainty=True)
    estimates, errors = (ax.collections[0] for ax in figure.axes[:2])
    table = known(product, np.arange(product.size)).answer(by="place")
    assert np.array_equal(np.asarray(estimates.get_array()).reshape(5, 6), table.value.T)
    assert np.array_equal(np.asarray(errors.get_array()).reshape(5, 6), table.stderr.T)
    assert errors.get_clim() == pytest.approx((0, table.stderr.max()))


def test_errors_that_cannot_be_drawn_are_refused(tmp_path: Path) -> None:
    product = sf.Grid(bounds=NEW_YORK, shape=(6, 5)) * sf.Categories(["a", "b"], name="kind")
    with pytest.raises(sf.InvalidInput) as refusal:
        on(product, uncertainty=True, path=tmp_path / "a.png")
    assert str(refusal.value) == (
        "uncertainty=True draws one map and its errors beside it, and this picture has 2 maps. Nothing was drawn. "
        "Ask for one of them with where=."
    )
    plan = sf.plan(sf.unbounded(GRID), sf.histogram(), 1, mechanism="dawa")
    with pytest.raises(sf.InvalidInput) as refusal:
        plan.publish(np.zeros(GRID.shape, int)).plot(tmp_path / "a.png", uncertainty=True)
    assert str(refusal.value) == (
        "uncertainty=True cannot be drawn: the error of these estimates depends on the data and is not stated. "
        "Nothing was drawn. Leave it out."
    )
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------ outlines of others


def geojson(path: Path, *geometries: Any, **more: Any) -> Path:
    features = [{"type": "Feature", "properties": {}, "geometry": one} for one in geometries]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features, **more}))
    return path


RING = [[-74.2, 40.6], [-73.9, 40.6], [-73.9, 40.8], [-74.2, 40.6]]
POLYGON = {"type": "Polygon", "coordinates": [RING]}
PLACE = sf.Grid(bounds=NEW_YORK, shape=(6, 5), crs="EPSG:4326")


def test_lines_of_every_kind_are_drawn_on_every_map_and_move_no_end_of_it(tmp_path: Path) -> None:
    many = {"type": "MultiPolygon", "coordinates": [[RING], [RING]]}
    road = {"type": "LineString", "coordinates": [[-74.2, 40.6, 5.0], [-80, 41]]}
    nested = {"type": "GeometryCollection", "geometries": [road, {"type": "Point", "coordinates": [0, 0]}]}
    file = geojson(tmp_path / "a.geojson", POLYGON, many, nested, None)
    release = known(PLACE * sf.Categories(["a", "b"], name="kind"), range(60))
    for ax in release.plot(outlines=file).axes[:2]:
        _, rim, lines = ax.collections
        assert [len(one) for one in lines.get_segments()] == [4, 4, 4, 2]
        assert np.array_equal(lines.get_segments()[0], RING) and len(rim.get_segments()) == 4
        assert ax.get_xlim() == (-74.3, -73.7) and ax.get_ylim() == (40.5, 40.95)


def test_lines_go_where_the_map_is(tmp_path: Path) -> None:
    """Into another CRS, from a frame, and onto a grid without any."""
    geopandas = pytest.importorskip("geopandas", reason="needs sfumato[geo]")
    import pyproj

    file = geojson(tmp_path / "a.geojson", POLYGON)
    plane = sf.Grid((560_000, 4_480_000, 620_000, 4_540_000), cell="10 km", crs="EPSG:32618")
    (drawn,) = known(plane, range(plane.size)).plot(outlines=file).axes[0].collections[-1].get_segments()
    turn = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:32618", always_xy=True)
    assert np.allclose(drawn, np.stack(turn.transform(*np.array(RING).T), axis=-1))
    frame = geopandas.read_file(file).to_crs("EPSG:32618")
    for domain in (PLACE, sf.Grid(bounds=NEW_YORK, shape=(6, 5))):
        there = frame if domain is PLACE else frame.to_crs("EPSG:4326")
        (drawn,) = known(domain, range(30)).plot(outlines=there).axes[0].collections[-1].get_segments()
        assert np.allclose(np.sort(drawn, axis=0), np.sort(RING, axis=0), atol=1e-6)
    frame.to_parquet(tmp_path / "a.parquet")
    assert known(PLACE, range(30)).plot(outlines=tmp_path / "a.parquet").axes[0].collections


OLD_CRS = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::2263"}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "could not be read as GeoJSON (JSONDecodeError)"),
        ("[1, 2]", "could not be read as GeoJSON"),
        ('{"type": "FeatureCollection"}', "could not be read as GeoJSON"),
        ('{"type": "Polygon", "coordinates": [[[1, 2]]]}', "could not be read as GeoJSON (ValueError)"),
        ('{"type": "Polygon", "coordinates": [[["a", 2], [3, 4]]]}', "could not be read as GeoJSON"),
        ('{"type": "Nothing", "coordinates": []}', "could not be read as GeoJSON (KeyError)"),
        ("[" * 100 + "]" * 100, "could not be read as GeoJSON"),
        ('{"type": "LineString", "coordinates": [[1e999, 2], [3, 4]]}', "no longitudes and latitudes"),
        ('{"type": "FeatureCollection", "features": []}', "holds no line and no polygon. Nothing was drawn."),
        ('{"type": "LineString", "coordinates": [[590000, 4500000], [3, 4]]}', "no longitudes and latitudes"),
        (json.dumps({**POLYGON, "crs": OLD_CRS}), "names a CRS other than WGS84. Nothing was drawn."),
        (json.dumps({"type": "LineString", "coordinates": [[10, 50], [11, 51]]}), "lies on the map, which is from"),
    ],
)
def test_files_of_outlines_that_say_nothing_are_refused(content: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "a.geojson"
    file.write_text(content)
    with pytest.raises(sf.InvalidInput) as refusal:
        known(PLACE, range(30)).plot(tmp_path / "a.png", outlines=file)
    assert words in str(refusal.value) and "Nothing was drawn" in str(refusal.value)
    assert "outlines=" in str(refusal.value)
    assert [one.name for one in tmp_path.iterdir()] == ["a.geojson"]


def test_outlines_that_are_no_file_and_pictures_that_are_no_map_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sf.InvalidInput, match=r"nothing\.geojson' is no file\. Nothing was drawn\. Check the path\."):
        known(PLACE, range(30)).plot(outlines=tmp_path / "nothing.geojson")
    with pytest.raises(sf.InvalidInput) as refusal:
        known(LINE, range(8)).plot(outlines=geojson(tmp_path / "a.geojson", POLYGON))
    assert str(refusal.value) == (
        "outlines= are drawn on maps, and this picture is none. Nothing was drawn. Leave them out, or name the place "
        "in by=."
    )
    with pytest.raises(sf.InvalidInput, match="outlines of type int must be a GeoDataFrame"):
        known(PLACE, range(30)).plot(outlines=7)


def test_the_command_draws_lines_and_errors(tmp_path: Path) -> None:
    release, file = known(PLACE, range(30)).save(tmp_path / "a.sfumato"), geojson(tmp_path / "a.geojson", POLYGON)
    typed = ["plot", str(release), "--out", str(tmp_path / "a.png"), "--uncertainty", "--outlines"]
    told = CliRunner().invoke(app, [*typed, str(file)])
    assert told.exit_code == 0 and (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG"), told.output
    wrong = CliRunner().invoke(app, [*typed, str(tmp_path / "b.geojson"), "--json"])
    assert wrong.exit_code == 2 and "is no file. Nothing was drawn." in json.loads(wrong.stdout)["error"]["message"]


# ------------------------------------------------------------------------------------------------- colours

# What is left of red, green and blue, each made linear, for those without long, middle and short cones (Machado,
# Oliveira and Fernandes 2009, severity 1).
BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour: Any, seen: Any = None) -> Any:
    """CIELAB of a colour, as somebody with such eyes sees it."""
    rgb = np.asarray(colour, float)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    if seen is not None:
        linear = np.clip(np.asarray(seen) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eyes", [None, *BLIND])
@pytest.mark.parametrize("name", [ESTIMATES, ERRORS])
def test_maps_grow_darker_evenly_for_all_eyes(name: str, eyes: str | None) -> None:
    from matplotlib import colormaps

    light = [lab(colormaps[name](share)[:3], BLIND.get(eyes or ""))[0] for share in np.linspace(0, 1, 33)]
    steps = -np.diff(light)
    assert (steps > 0).all() and light[0] - light[-1] > 60


@pytest.mark.parametrize("eyes", [None, *BLIND])
def test_curves_in_one_panel_are_told_apart_by_all_eyes(eyes: str | None) -> None:
    from matplotlib.colors import to_rgb

    seen = [lab(to_rgb(colour), BLIND.get(eyes or "")) for colour, _ in LINES]
    assert all(np.linalg.norm(one - other) > 15 for one, other in combinations(seen, 2))
    assert len({stroke for _, stroke in LINES}) == len(LINES)
