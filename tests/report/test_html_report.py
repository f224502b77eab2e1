"""The page of a release as a file: what it holds, that it asks for nothing, and that no word in it becomes markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_data import DATA, MAP, NASTY, count, data_of, figures, published, unpacked

import sfumato as sf
from sfumato.report import html_of, views
from sfumato.report.packing import packed, packed_ends

MODES = sf.Categories(NASTY, name="</title><b>mode")
HOURS = sf.Cycle("hour of day", name="hour")
PRODUCT = published(MAP * HOURS * MODES)


class Tags(HTMLParser):
    """What a browser would make of a page: its elements, their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


# ------------------------------------------------------------------------------------------- what it holds


@pytest.mark.parametrize("beside", [[], [0], [1], [0, 1]])
def test_figures_are_the_answers_of_the_release(beside: list[int]) -> None:
    view = data_of(html_of(PRODUCT))["views"][0]
    assert [axis["name"] for axis in view["beside"]] == ["hour", "</title><b>mode"]
    table = PRODUCT.answer(by=("x", "y", *[("hour", MODES.names[0])[i] for i in beside]))
    found = figures(view, beside)
    for name in ("value", "stderr", "low", "high"):
        wanted = np.moveaxis(getattr(table, name), (0, 1), (-2, -1))
        assert found[name] == pytest.approx(wanted, rel=1e-6, abs=1e-4)
    assert (found["low"] <= np.moveaxis(table.low, (0, 1), (-2, -1))).all()
    assert (found["high"] >= np.moveaxis(table.high, (0, 1), (-2, -1))).all()


def test_an_ordered_factor_beside_a_map_has_a_curve_of_its_own() -> None:
    held = data_of(html_of(PRODUCT))["views"]
    assert [(view["kind"], view["name"]) for view in held] == [
        ("grid", "place, hour, </title><b>mode"),
        ("curve", "hour"),
    ]
    assert figures(held[1], [])["value"] == pytest.approx(PRODUCT.answer(by="hour").value, rel=1e-6)
    assert held[1]["said"] == ["summed over place, </title><b>mode"]


def test_by_and_where_choose_what_is_shown() -> None:
    view = data_of(html_of(PRODUCT, by="hour", where={MODES.names[0]: "=cmd()"}, confidence=0.8))["views"]
    assert [one["kind"] for one in view] == ["curve"]
    wanted = PRODUCT.answer(by="hour", where={MODES.names[0]: "=cmd()"}, confidence=0.8)
    assert figures(view[0], [])["high"] == pytest.approx(wanted.high, rel=1e-6)


def test_a_map_knows_where_it_lies() -> None:
    ground = data_of(html_of(published(MAP)))["views"][0]["ground"]
    assert ground["bounds"] == [-74.1, 40.55, -73.7, 40.92] and ground["unit"] == "degrees"
    assert ground["aspect"] == pytest.approx(1 / np.cos(np.radians(40.735)))
    assert ground["metres"] == pytest.approx(111_320 * np.cos(np.radians(40.735)), rel=3e-3)
    plain = data_of(html_of(published(sf.Grid(bounds=(0, 0, 1, 1), shape=(3, 3)))))["views"][0]["ground"]
    assert plain["metres"] is None and plain["aspect"] == 1 and plain["unit"] == ""


def test_regions_and_their_levels_are_drawn_by_their_outlines() -> None:
    geopandas = pytest.importorskip("geopandas", reason="needs sfumato[geo]")
    import shapely

    boxes = [shapely.box(x, 40, x + 1, 42) for x in range(3)]
    tracts = geopandas.GeoDataFrame({"id": list("abc"), "county": ["w", "w", "e"]}, geometry=boxes, crs="EPSG:4326")
    release = published(sf.Regions(tracts, id="id", levels=["county"]))
    for by, rows in ((None, ["a", "b", "c", "elsewhere"]), ("county", ["w", "e", "elsewhere"])):
        (view,) = data_of(html_of(release, by=by))["views"]
        assert view["kind"] == "shapes" and view["along"][0]["names"] == rows
        assert view["rows"] == list(range(len(rows) - 1))
        points = np.frombuffer(base64.b64decode(view["shapes"]["points"]), "<i2").reshape(-1, 2)
        groups = np.frombuffer(base64.b64decode(view["shapes"]["groups"]), "<u4")
        lines = np.frombuffer(base64.b64decode(view["shapes"]["lines"]), "<u4")
        assert len(groups) == len(rows) - 1 and lines.sum() == len(points)
        x = view["ground"]["bounds"][0] + points[:, 0] * view["shapes"]["step"]
        assert (x.min(), x.max()) == pytest.approx((0, 3), abs=view["shapes"]["step"])


def test_what_has_many_names_is_a_table_and_what_has_few_are_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    release = published(sf.Categories([f"n{i}" for i in range(9)], name="kind"))
    assert data_of(html_of(release))["views"][0]["kind"] == "bars"
    monkeypatch.setattr(views, "MOST_BARS", 8)
    assert data_of(html_of(release))["views"][0]["kind"] == "table"


def test_releases_of_tables_show_every_table() -> None:
    space = (
        sf.Categories(list("abc"), name="u") * sf.Categories(list("de"), name="v") * sf.Line(0, 4, cells=4, name="w")
    )
    ask = sf.marginals(("u", "v"), ("v", "w"))
    release = sf.plan(sf.unbounded(space), ask, epsilon=1, mechanism="marginals").publish(np.full(space.shape, 40))
    found = data_of(html_of(release))["views"]
    assert {view["name"] for view in found} == {"u, v", "w, v"}
    for view in found:
        names = [axis["name"] for axis in (*view["along"], *view["beside"])]
        wanted = release.marginal(*names)
        assert figures(view, [0])["value"] == pytest.approx(np.moveaxis(wanted.value, 0, -1), rel=1e-6)
    assert "<svg" not in release._repr_html_()


def test_tables_beyond_what_a_page_shows_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    space = (
        sf.Categories(list("abc"), name="u") * sf.Categories(list("de"), name="v") * sf.Line(0, 4, cells=4, name="w")
    )
    ask = sf.marginals(("u", "v"), ("v", "w"))
    release = sf.plan(sf.unbounded(space), ask, epsilon=1, mechanism="marginals").publish(np.full(space.shape, 40))
    monkeypatch.setattr(views, "MOST_VIEWS", 1)
    (view,) = data_of(html_of(release))["views"]
    assert view["said"][-1] == "2 tables, of which 1 are here; by= asks for others"


def test_a_page_of_a_grid_needs_no_package_beyond_the_core(tmp_path: Path) -> None:
    """No Matplotlib, no package of geography, no frame of any kind."""
    missing = ["matplotlib", "geopandas", "shapely", "pyproj", "h3", "pandas", "polars", "xarray", "networkx"]
    code = (
        f"import sys\nfor name in {missing}: sys.modules[name] = None\n"
        "import warnings, numpy as np, sfumato as sf\n"
        "warnings.simplefilter('ignore', sf.NoLedgerWarning)\n"
        "grid = sf.Grid(bounds=(-74, 40, -73, 41), shape=(4, 4), crs='EPSG:4326')\n"
        "release = sf.plan(sf.unbounded(grid), sf.histogram(), epsilon=1).publish(np.ones((4, 4), int))\n"
        "release.to_html(sys.argv[1], outlines=sys.argv[2]); release._repr_html_()\n"
    )
    lines = tmp_path / "lines.geojson"
    lines.write_text('{"type": "LineString", "coordinates": [[-74, 40], [-73, 41]]}')
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "a.html"), str(lines)]
    subprocess.run(command, check=True)
    points = data_of((tmp_path / "a.html").read_text("utf-8"))["views"][0]["lines"]
    assert np.frombuffer(base64.b64decode(points["points"]), "<i2").tolist() == [0, 0, 10_000, 10_000]


@pytest.mark.parametrize(("mechanism", "known"), [("consistent", False), ("dawa", True)])
def test_errors_that_nobody_knows_are_not_told(mechanism: str, known: bool) -> None:
    release = published(sf.Line(0, 8, cells=8), mechanism=mechanism)
    (table,) = data_of(html_of(release))["views"][0]["tables"]
    assert table["stderr"] is None
    assert (table["low"] is not None) == (table["high"] is not None) == known


# -------------------------------------------------------------------------------------- what is too much


def test_128_by_128_cells_are_far_less_than_three_megabytes(tmp_path: Path) -> None:
    """With an error of its own for every cell, and with one for all."""
    grid = sf.Grid(bounds=(-74.1, 40.55, -73.7, 40.92), shape=(128, 128))
    counts = np.random.default_rng(0).poisson(300, grid.shape)
    for policy, ask in ((sf.within(grid, delta=0.01), sf.ranges()), (sf.unbounded(grid), sf.histogram())):
        release = sf.plan(policy, ask, epsilon=1).publish(counts)
        assert release.to_html(tmp_path / "a.html").stat().st_size < 1_000_000
        found = figures(data_of((tmp_path / "a.html").read_text("utf-8"))["views"][0], [])
        assert found["value"] == pytest.approx(release.counts, rel=1e-6, abs=1e-4)
        assert (found["low"] <= found["value"] + 1e-3).all()


def test_a_grid_that_a_page_does_not_hold_is_shown_in_blocks_whose_intervals_hold() -> None:
    grid = sf.Grid(bounds=(0, 0, 1, 1), shape=(1000, 1050))
    release = published(grid, mechanism="identity", mean=2.0)
    page = data_of(html_of(release))
    view = page["views"][0]
    assert view["what"] == "block of 2 × 2 cells"
    assert view["said"] == [
        "a page does not hold the 1,000 × 1,050 cells of this release: every value is that of a block of 2 × 2 cells"
    ]
    assert [count(axis) for axis in view["along"]] == [500, 525]
    found = figures(view, [])
    assert found["value"] == pytest.approx(release.counts.reshape(500, 2, 525, 2).sum(axis=(1, 3)), abs=1e-3)
    x, y = (axis["edges"] for axis in view["along"])
    wanted = release.answer((x[3], y[4], x[4], y[5]))
    assert (found["low"][3, 4], found["high"][3, 4]) == pytest.approx((wanted.low, wanted.high), rel=1e-5)


def test_a_long_line_is_shown_in_blocks_with_a_shorter_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MOST_STEPS", 30)
    release = published(sf.Line(0, 100, cells=100))
    (view,) = data_of(html_of(release))["views"]
    assert view["what"] == "block of 4 cells" and count(view["along"][0]) == 25
    monkeypatch.setattr(views, "MOST_STEPS", 15)
    (view,) = data_of(html_of(release))["views"]
    assert view["along"][0]["edges"][-2:] == [98, 100]
    assert figures(view, [])["value"][-1] == pytest.approx(release.counts[98:].sum())


def test_factors_that_a_page_does_not_hold_are_summed_over_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MOST", 12 * 9 * 6)
    view = data_of(html_of(PRODUCT))["views"][0]
    assert [axis["name"] for axis in view["beside"]] == ["</title><b>mode"] and view["said"] == ["summed over hour"]
    with pytest.raises(sf.TooLarge) as refusal:
        html_of(PRODUCT, by=("place", "hour"))
    assert str(refusal.value) == (
        "x × y × hour has 2,700 figures, sums over each factor included; a page has at most 648, and "
        "3 factors beside what is drawn. Nothing was written. Name fewer in by=, or ask for a part with where=."
    )


def test_names_that_a_page_does_not_hold_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(views, "MOST", 5)
    release = published(sf.Categories([f"n{i}" for i in range(9)], name="kind"))
    with pytest.raises(sf.TooLarge) as refusal:
        release.to_html(tmp_path / "a.html")
    assert str(refusal.value) == (
        "9 cells are more than a page holds (at most 5). Nothing was written. Ask for a part with where=, or use "
        "to_parquet."
    )
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e9])
def test_packed_intervals_are_never_narrower(scale: float) -> None:
    rng = np.random.default_rng(3)
    value = rng.normal(0, 100, 5000) * scale
    for margin in (17.3 * scale, rng.gamma(2, 10, 5000) * scale):
        low, high = np.maximum(value - margin, 0), np.maximum(value + margin, 0)
        shown = unpacked(packed(value), 5000)
        ends = packed_ends(value, low, high)
        held = {name: unpacked(ends[name], 5000, shown) for name in ("low", "high")}
        assert (held["low"] <= low).all() and (held["high"] >= high).all()
        slack = 3e-6 * max(np.abs(value).max(), 1.0)
        assert (low - held["low"] <= slack).all() and (held["high"] - high <= slack).all()
        assert shown == pytest.approx(value, rel=1e-7)


def test_one_number_stands_for_all_that_are_the_same() -> None:
    assert packed(np.full(9, 2.5)) == {"all": 2.5} and packed(np.array([1.0, np.nan])) is None
    value = np.array([1.0, 5.0, 100.0])
    ends = packed_ends(value, np.maximum(value - 4, 0), value + 4)
    assert ends == {"low": {"less": 4.0}, "high": {"more": 4.0}}


# --------------------------------------------------------------------------------------- what it may do


def test_a_page_asks_for_nothing_and_says_so_to_the_browser() -> None:
    page = html_of(PRODUCT, title="Visits")
    tags = Tags(page).found
    assert not [tag for tag, _ in tags if tag in ("link", "img", "iframe", "object", "embed", "base", "form", "a")]
    assert not [told for _, told in tags if {"src", "href", "action", "style"} & set(told)]
    assert not [name for _, told in tags for name in told if name.startswith("on")]
    (policy,) = [told["content"] for _, told in tags if told.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    body = page.split("<body>")[1].split(DATA.search(page)[0])[1]
    for kind, text in (("script", re.search(r"<script>(.*?)</script>", body, re.DOTALL)[1]), ("style", styled(page))):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "url(" not in styled(page) and "@import" not in styled(page)


def styled(page: str) -> str:
    return re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]


def test_no_word_of_a_stranger_becomes_markup() -> None:
    page = html_of(PRODUCT, title="</title><script>alert(2)</script>")
    tags = [tag for tag, _ in Tags(page).found]
    assert tags.count("script") == 2 and tags.count("title") == 1 and "img" not in tags and "b" not in tags
    held = DATA.search(page)[1]
    assert not set("<>&") & set(held) and held.isascii()
    names = data_of(page)["views"][0]["beside"][1]["names"]
    assert names[:3] == NASTY[:3]
    assert "\u202e" not in json.dumps(names, ensure_ascii=False) and names[3] == "\\u202eevil"
    assert Tags(DATA.sub("", page)).text.count("alert(2)") == 2  # in the title and in the heading, as text


def test_what_is_not_hidden_is_said_before_what_is_promised() -> None:
    page = html_of(published(MAP))
    first, second, third = (page.index(words) for words in ("What is not hidden", "What is promised", 'id="report"'))
    assert first < second < third
    line = sf.Line(0, 8, cells=8)
    release = sf.plan(sf.within(line, delta=1), sf.histogram(), epsilon=1).publish(np.zeros(8, int))
    text = Tags(html_of(release)).text
    assert "The total number of records is public" in text.split("What is promised")[0]
    assert str(release.guarantee) in text


def test_a_seeded_release_says_loudly_that_it_is_not_private() -> None:
    loud = "Not private: made with seeded randomness"
    page = html_of(published(MAP, seed=1))
    assert page.index(loud) < page.index("What is not hidden") and data_of(page)["private"] is False
    assert loud not in html_of(published(MAP)) and "NOT PRIVATE" in published(MAP, seed=1)._repr_html_()


def test_the_same_release_gives_the_same_bytes(tmp_path: Path) -> None:
    release = published(MAP)
    release.save(tmp_path / "r.sfumato")
    one, other = release.to_html(tmp_path / "a.html"), sf.load(tmp_path / "r.sfumato").to_html(tmp_path / "b.html")
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"title": 7}, "title=7 must be a text. Nothing was written."),
        ({"confidence": 1.5}, "confidence=1.5"),
        ({"by": "nothing"}, "'nothing' is no factor and no axis"),
        ({"by": ()}, "by=() names nothing to draw."),
        ({"where": {"x": (7, 8)}}, "outside the bounds"),
        ({"outlines": "no.geojson"}, "is no file"),
        ({"by": "hour", "outlines": "no.geojson"}, "outlines= are drawn on maps, and this page has none."),
    ],
)
def test_what_cannot_be_shown_is_refused(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(sf.InvalidInput) as refusal:
        PRODUCT.to_html(tmp_path / "a.html", **options)
    assert words in str(refusal.value)
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------ in a notebook


@pytest.mark.parametrize(
    ("domain", "drawn"),
    [
        (MAP, "path"),
        (MAP * MODES, "path"),
        (sf.Line(0, 8, cells=800), "polyline"),
        (HOURS, "polyline"),
        (MODES, "rect"),
        (sf.Grid(bounds=(0, 0, 1, 1), shape=(600, 700)), "path"),
    ],
)
def test_a_notebook_shows_a_small_picture_and_the_promise(domain: sf.Domain, drawn: str) -> None:
    release = published(domain)
    html = release._repr_html_()
    tags = Tags(html)
    assert drawn in [tag for tag, _ in tags.found] and len(html) < 60_000
    assert not {"script", "img", "b", "iframe"} & {tag for tag, _ in tags.found}
    assert str(release.guarantee) in tags.text and "What is not promised" in tags.text
    assert html.count("<svg") == 1 and 'role="img" aria-label=' in html


def test_the_small_map_is_the_right_way_up() -> None:
    counts = np.zeros((4, 3), int)
    counts[3, 0] = 1000  # right, bottom
    grid = sf.Grid(bounds=(0, 0, 4, 3), shape=(4, 3))
    release = sf.plan(sf.unbounded(grid), sf.histogram(), epsilon=50).publish(counts)
    assert '<path fill="#180f3d" d="M3 2h1v1h-1z"/>' in release._repr_html_()


# --------------------------------------------------------------------------------- sums, and distinct people


def test_sums_are_called_sums_and_their_lower_ends_may_be_negative() -> None:
    gains = sf.amounts("gain", clip=(-50, 100), step=0.5)
    line = sf.Line(0, 6, cells=6, name="hour")
    rng = np.random.default_rng(2)
    trips = {"hour": rng.uniform(0, 6, 400), "gain": rng.normal(0, 30, 400)}
    plan = sf.plan(sf.unbounded(line), sf.histogram(), epsilon=1, values=gains)
    release = plan.publish(sf.count(trips, line, values=gains))
    page = data_of(html_of(release))
    assert page["counted"] == "sum of 'gain'"
    found, answer = figures(page["views"][0], []), release.answer(by="hour")
    assert found["value"] == pytest.approx(release.counts, rel=1e-6) and (answer.low < 0).any()
    assert found["low"] == pytest.approx(answer.low, rel=1e-6) and (found["low"] <= answer.low).all()
    assert found["high"] == pytest.approx(answer.high, rel=1e-6) and (found["high"] >= answer.high).all()
    drawn = release.plot().axes[0]
    assert drawn.get_ylabel() == "estimated sum of 'gain' per cell"
    assert data_of(html_of(published(line)))["counted"] == "records"
