"""Regions and hexagons drawn: each once with its outline and its estimate, at true proportions, with a bar of scale."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from maps import frame, hard, shapely

import sfumato as sf
from sfumato.domain.geometries import outlines_of
from sfumato.domain.outlines import rectangles
from sfumato.domain.surface import square_metres

pytest.importorskip("matplotlib", reason="needs sfumato[plot]")
MODES = sf.Categories(["bus", "bike"], name="mode")


def regions(north: float = 0.0) -> sf.Regions:
    shapes = [shapely.affinity.translate(shape, 0, north) for shape in hard()]
    county = [f"c{i % 3}" for i in range(len(shapes))]
    return sf.Regions(frame(shapes, county=county), id="id", levels=["county"])


def published(domain: sf.Domain) -> sf.Release:
    plan = sf.plan(sf.unbounded(domain), sf.histogram(), epsilon=1)
    return plan.publish(np.arange(domain.size).reshape(domain.shape) * 10)


def maps_of(figure: Any) -> list[Any]:
    return [ax for ax in figure.axes if ax.get_visible() and ax.get_label() != "<colorbar>"]


def bar_of(ax: Any) -> tuple[float, str]:
    """How many units of x the bar is long, and what it says."""
    (line,), (text,) = ax.lines, ax.texts
    left, right = ax.get_xlim()
    return float(np.ptp(line.get_xdata())) * (right - left), text.get_text()


def test_every_region_is_drawn_once_in_the_colour_of_its_estimate(tmp_path: Any) -> None:
    release = published(regions())
    figure = release.plot(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 10_000
    (ax,) = maps_of(figure)
    (shapes,) = ax.collections
    assert shapes.get_array().tolist() == release.counts[:-1].tolist()
    for path, shape in zip(shapes.get_paths(), hard(), strict=True):
        filled = sum(shapely.Polygon(ring).area * sign for ring, sign in signed(path))
        assert filled == pytest.approx(shape.area)
    words = " ".join(text.get_text() for text in figure.texts)
    assert "elsewhere, and not drawn" in words and "standard error of a region" in words


def signed(path: Any) -> Any:
    """The rings of a path, and whether each adds or is a hole."""
    starts = [*np.flatnonzero(path.codes == 1), len(path.vertices)]
    for a, b in pairwise(starts):
        ring = path.vertices[a:b]
        x, y = ring.T
        yield ring, np.sign(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]))


@pytest.mark.parametrize("north", [0.0, 60.0])
def test_proportions_and_the_bar_are_those_of_the_ground(north: float) -> None:
    (ax,) = maps_of(published(regions(north)).plot())
    assert ax.get_aspect() == pytest.approx(1 / np.cos(np.radians(north + 0.5)), rel=0.01)
    length, words = bar_of(ax)
    number, unit = words.split()
    metres = float(number) * (1000 if unit == "km" else 1)
    assert length * 111_195 * np.cos(np.radians(north + 0.5)) == pytest.approx(metres, rel=0.01)
    left, right = ax.get_xlim()
    assert 0.05 * (right - left) < length <= 0.25 * (right - left)


def test_groups_of_a_level_are_drawn_joined_and_products_in_panels() -> None:
    release = published(regions() * MODES)
    panels = maps_of(release.plot())
    assert [ax.get_title(loc="left") for ax in panels] == ["bus", "bike"]
    assert panels[1].collections[0].get_array().tolist() == release.counts[:-1, 1].tolist()
    (level,) = maps_of(release.plot(by="county", where={"mode": "bus"}))
    wanted = release.answer(by="county", mode="bus").value[:-1]
    assert np.asarray(level.collections[0].get_array()) == pytest.approx(wanted)
    some = maps_of(release.plot(where={"place": "r1"}))  # what is asked of the place is not drawn
    assert some[0].get_ylabel() == "mode"


def test_hexagons_and_grids_on_the_ground() -> None:
    pytest.importorskip("h3", reason="needs sfumato[h3]")
    hexagons = sf.H3(7, cover=(-74.05, 40.68, -73.9, 40.88))
    (ax,) = maps_of(published(hexagons).plot())
    assert len(ax.collections[0].get_paths()) == hexagons.size - 1 and bar_of(ax)[1] == "2 km"
    grid = sf.Grid((10, 60, 11, 60.5), shape=(4, 4), crs="EPSG:4326")
    (ax,) = maps_of(published(grid).plot())
    assert ax.get_aspect() == pytest.approx(1 / np.cos(np.radians(60.25))) and bar_of(ax)[1] == "10 km"
    plane = sf.Grid((560_000, 4_480_000, 620_000, 4_530_000), cell="10 km", crs="EPSG:32618")
    assert bar_of(maps_of(published(plane).plot())[0])[1] == "10 km"
    plain = sf.Grid((0, 0, 1, 1), shape=(4, 4))
    assert not maps_of(published(plain).plot())[0].lines


# ------------------------------------------------------------------------------------------ how large


def test_areas_are_those_of_the_ellipsoid() -> None:
    """The whole earth by its known area, a box by its formula, a hole taken off."""
    whole = square_metres(rectangles(*(np.array([end], float) for end in (-180, -90, 180, 90))))
    assert whole[0] == pytest.approx(510_065_621_724_089, rel=1e-9)
    pyproj = pytest.importorskip("pyproj")
    box, hole = shapely.box(0, 40, 3, 43), shapely.box(1, 41, 2, 42)
    found = square_metres(outlines_of(np.array([box, hole, box - hole], dtype=object)))
    assert found[2] == pytest.approx(found[0] - found[1], rel=1e-12)
    small = shapely.box(-74.001, 40.7, -74.0, 40.701)
    known = pyproj.Geod(ellps="WGS84").geometry_area_perimeter(small)[0]
    assert square_metres(outlines_of(np.array([small], dtype=object)))[0] == pytest.approx(known, rel=1e-9)


def test_density_is_the_value_on_a_square_kilometre(tmp_path: Any) -> None:
    release = published(regions() * MODES)
    found = release.to_geopandas(density=True, by="mode")
    area = found["area"].to_numpy()
    assert np.isnan(area[-1]) and area[:-1] == pytest.approx(
        found.geometry[:-1].to_crs("EPSG:6933").area / 1e6, rel=1e-3
    )
    assert np.allclose(found["density_bus"][:-1], found["value_bus"][:-1] / area[:-1])
    groups = release.to_geopandas("county", density=True)
    assert groups["area"].sum() == pytest.approx(area[:-1].sum(), rel=1e-6)
    assert "density_bike" in release.to_geojson(tmp_path / "a.geojson", density=True, by="mode").read_text()
    plane = sf.Grid((560_000, 4_480_000, 620_000, 4_530_000), cell="10 km", crs="EPSG:32618")
    assert published(plane).to_geopandas(density=True)["area"].to_numpy() == pytest.approx(100, rel=2e-3)
    with pytest.raises(sf.InvalidInput, match="of plain numbers"):
        published(sf.Grid((0, 0, 1, 1), shape=(2, 2))).to_geopandas(density=True)


# ---------------------------------------------------------------------------------------- other tools


def test_whatever_takes_arrow_takes_a_release_and_a_table() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    release = published(regions() * MODES)
    assert pyarrow.table(release).equals(release.to_frame())
    assert pyarrow.RecordBatchReader.from_stream(release.answer(by="mode")).read_all().num_rows == 2


def test_hexagons_in_xarray_have_numbers_that_xdggs_reads_and_elsewhere_beside_them() -> None:
    pytest.importorskip("h3", reason="needs sfumato[h3]")
    pytest.importorskip("xarray", reason="needs sfumato[xarray]")
    hexagons = sf.H3(7, cover=(-74.05, 40.68, -73.9, 40.88))
    release = published(hexagons * MODES)
    found = release.to_xarray()
    assert found["cell_ids"].attrs == {"grid_name": "h3", "level": 7} and found["cell_ids"].dtype == np.uint64
    assert [f"{cell:x}" for cell in found["cell_ids"].values.tolist()] == found["place"].values.tolist()
    assert (found["value"].values == release.counts[:-1]).all()
    assert (found["value_elsewhere"].values == release.counts[-1]).all()
    there = sf.H3(4, cover=(-74.05, 40.68, -73.9, 40.88), name="origin")
    both = published(there * sf.H3(4, cover=(-74.05, 40.68, -73.9, 40.88), name="destination")).to_xarray()
    assert "cell_ids" not in both.coords and "elsewhere" in both["origin"].values


def test_a_map_needs_the_extra_of_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(sf.MissingExtra, match="pip install 'sfumato\\[plot\\]'"):
        published(regions()).plot()
