"""The page of a release in a real browser, from disk: drawn, spoken, moved in by keyboard alone, and quiet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_data import MAP, NASTY, published
from PIL import Image

import sfumato as sf

pytestmark = pytest.mark.slow  # a browser starts
HOURS = sf.Cycle("hour of day", name="hour")
MODES = sf.Categories(NASTY, name="mode")
AXE = "(async () => (await axe.run()).violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html).join(' | ')))()"


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> tuple[sf.Release, Path]:
    release = published(MAP * HOURS * MODES)
    file = tmp_path_factory.mktemp("pages") / "product.html"
    return release, release.to_html(file, title="Visits <b>by hour</b>")


def rows(page: Any) -> list[list[str]]:
    """The words of the table's body."""
    return page.eval_on_selector_all(
        "tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def colours(page: Any) -> set[tuple[int, ...]]:
    """The colours of the drawing on the screen."""
    picture = Image.open(io.BytesIO(page.locator("canvas").first.screenshot())).convert("RGB")
    return set(map(tuple, np.asarray(picture).reshape(-1, 3).tolist()))


# ------------------------------------------------------------------------------------------------ what it shows


def test_it_opens_from_disk_and_asks_for_nothing(product: Any, opened: Callable[..., Any]) -> None:
    page = opened(product[1]).page
    assert page.title() == page.inner_text("h1") == "Visits <b>by hour</b>"
    assert page.locator("h1 b, td b, th b, option b, script[src]").count() == 0
    assert len(colours(page)) > 20
    assert page.inner_text("#hidden") == "What is not hidden"


def test_the_table_has_the_figures_of_the_release_a_page_at_a_time(product: Any, opened: Callable[..., Any]) -> None:
    release, file = product
    page = opened(file).page
    table = release.answer(by=("x", "y"))
    shown = rows(page)
    assert len(shown) == 25 and "Rows 1 to 25 of 108" in page.inner_text("nav")
    for line, value, low, high in zip(shown, table.value.ravel(), table.low.ravel(), table.high.ravel(), strict=False):
        assert number(line[2]) == pytest.approx(value, abs=0.51)
        assert low - 1 <= number(line[3]) <= low + 1e-6 and high - 1e-6 <= number(line[4]) <= high + 1
    page.get_by_role("button", name="Last").click()
    assert len(rows(page)) == 108 % 25 and page.get_by_role("button", name="Next").is_disabled()
    page.get_by_label("Rows", exact=True).select_option("largest")
    page.get_by_role("button", name="First").click()
    values = [number(line[2]) for line in rows(page)]
    assert values == sorted(values, reverse=True) and values[0] == pytest.approx(table.value.max(), abs=0.51)


def test_sliders_and_lists_choose_and_sums_have_their_own_intervals(product: Any, opened: Callable[..., Any]) -> None:
    release, file = product
    page = opened(file).page
    slider = page.get_by_role("slider", name="hour")
    slider.focus()
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "08:00"
    page.get_by_label("mode", exact=True).select_option(NASTY[2])
    wanted = release.answer(by=("x", "y"), hour="08:00", mode=NASTY[2])
    first = rows(page)[0]
    assert number(first[2]) == pytest.approx(wanted.value[0, 0], abs=0.06)
    assert number(first[4]) == pytest.approx(wanted.high[0, 0], abs=0.11)
    assert "hour: 08:00, mode: =cmd()" in page.inner_text("caption")
    page.keyboard.press("Home")
    slider.focus()
    page.keyboard.press("Home")
    summed = release.answer(by=("x", "y"), mode=NASTY[2])
    assert number(rows(page)[0][4]) == pytest.approx(summed.high[0, 0], abs=1)


def test_uncertainty_is_a_map_too(product: Any, opened: Callable[..., Any]) -> None:
    page = opened(product[1]).page
    before = colours(page)
    page.get_by_label("uncertainty").check()
    assert colours(page) != before and "standard error of a cell" in page.inner_text(".legend")


def test_pointing_shows_the_cell_below_the_pointer(product: Any, opened: Callable[..., Any]) -> None:
    release, file = product
    page = opened(file).page
    box = page.locator("canvas").first.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 30)  # the upper left cell
    tip = page.inner_text(".tip")
    assert "x −74.100 to" in tip and "to 40.920" in tip
    value = release.answer(by=("x", "y")).value[0, -1]
    assert number(tip.split(" records")[0]) == pytest.approx(value, abs=0.51)


def test_the_download_is_the_whole_table(product: Any, opened: Callable[..., Any]) -> None:
    release, file = product
    page = opened(file).page
    with page.expect_download() as waited:
        page.get_by_role("button", name="Download CSV").click()
    assert waited.value.suggested_filename == "Visits-b-by-hour-b-.csv"
    found = list(csv.DictReader(io.StringIO(Path(waited.value.path()).read_text(encoding="utf-8"))))
    frame = release.to_frame("pandas")
    assert len(found) == len(frame)
    for name in ("value", "stderr"):
        total = sum(float(row[name]) for row in found)
        assert total == pytest.approx(frame[name].sum(), rel=1e-5)
    assert {row["mode"] for row in found} >= {"'=cmd()", NASTY[0], NASTY[4]}
    one = next(row for row in found if row["mode"] == NASTY[0] and row["hour"] == "03:00")
    wanted = release.answer(
        hour="03:00", mode=NASTY[0], where={"x": (-74.1, float(one["x_high"])), "y": (40.55, float(one["y_high"]))}
    )
    assert float(one["value"]) == pytest.approx(wanted.value, abs=1e-4)
    assert float(one["low"]) <= wanted.low + 1e-4 and float(one["high"]) >= wanted.high - 1e-4


# --------------------------------------------------------------------------------------------- by keyboard alone


def test_everything_is_reached_by_keyboard_and_cells_are_spoken(product: Any, opened: Callable[..., Any]) -> None:
    release, file = product
    page = opened(file).page
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.tagName + (document.activeElement.type || '')"))
        if reached[-1] == "CANVAS":
            break
    assert reached == ["SUMMARY", "SELECTselect-one", "INPUTrange", "SELECTselect-one", "INPUTradio", "CANVAS"]
    page.keyboard.press("ArrowRight")  # the middle first
    status = page.locator(".readout[role=status]")
    table = release.answer(by=("x", "y"))
    for keys, cell in (((), (6, 4)), (("ArrowRight", "ArrowUp"), (7, 5)), (("Shift+ArrowLeft", "PageDown"), (0, 0))):
        for key in keys:
            page.keyboard.press(key)
        said = status.inner_text()
        assert number(said.split(": ")[1].split(" records")[0]) == pytest.approx(table.value[cell], abs=0.51)
        assert "95 % interval" in said
    page.keyboard.press("Escape")
    assert "move with the arrow keys" in status.inner_text()


# ---------------------------------------------------------------------------------------------- for everybody


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 1280])
def test_no_screen_reader_stumbles_and_nothing_is_wider_than_the_screen(
    width: int, dark: bool, product: Any, opened: Callable[..., Any], axe: str
) -> None:
    page = opened(product[1], width=width, dark=dark).page
    page.evaluate(axe)
    assert page.evaluate(AXE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


DAYS = sf.Times("2026-03-07", "2026-03-12", every="6h", name="t", tz="America/New_York")


def boxes() -> sf.Domain:
    geopandas = pytest.importorskip("geopandas", reason="needs sfumato[geo]")
    import shapely

    shapes = [shapely.box(x, 40, x + 1, 42) for x in range(3)]
    return sf.Regions(geopandas.GeoDataFrame({"id": NASTY[:3]}, geometry=shapes, crs="EPSG:4326"), id="id")


@pytest.mark.parametrize(
    ("domain", "mechanism", "words"),
    [
        (lambda: DAYS, None, "2026-03-07 00:00 to 06:00: "),
        (lambda: sf.Line(edges=[0, 5, 20, 100], name="fare"), None, "fare 0 to 5: "),
        (lambda: MODES, None, "</script><script>alert(1)</script>: "),
        (boxes, None, "<img src=x onerror=alert(1)>: "),
        (lambda: sf.Line(0, 8, cells=8), "consistent", "x 0 to 1: "),
        (lambda: sf.Line(0, 8, cells=8), "dawa", "x 0 to 1: "),
        (lambda: sf.H3(7, cover=(-74.05, 40.68, -73.9, 40.88)), None, "872a100"),
    ],
    ids=["times", "bins", "labels", "regions", "unknown errors", "unknown standard errors", "hexagons"],
)
def test_every_kind_of_release_is_drawn_spoken_and_accessible(
    domain: Any, mechanism: str | None, words: str, tmp_path: Path, opened: Callable[..., Any], axe: str
) -> None:
    release = published(domain(), mechanism=mechanism)
    page = opened(release.to_html(tmp_path / "a.html")).page
    page.locator("canvas").first.focus()
    page.keyboard.press("ArrowRight")
    said = page.inner_text(".readout")
    assert said.startswith(words)
    assert ("95 % interval" in said) == (mechanism != "consistent")
    if mechanism is not None:
        assert "depends on the data" in page.inner_text("ul.notes") and "not known" in page.inner_text("tbody")
    if mechanism == "consistent":
        assert said.endswith("records; the error depends on the data and is not stated.")
    if mechanism == "dawa":
        page.get_by_label("uncertainty").check()
    assert len(colours(page)) > 2
    page.evaluate(axe)
    assert page.evaluate(AXE) == []


def test_what_lies_elsewhere_is_said_below_the_map(tmp_path: Path, opened: Callable[..., Any]) -> None:
    release = published(boxes())
    page = opened(release.to_html(tmp_path / "a.html")).page
    value = release.answer(by="place").value[-1]
    away = page.inner_text("p.notes")
    assert away.startswith("Not on the map: elsewhere, ")
    assert number(away.split("elsewhere, ")[1].split(" records")[0]) == pytest.approx(value, abs=0.06)


def test_figures_that_are_public_are_called_exact(tmp_path: Path, opened: Callable[..., Any]) -> None:
    policy = sf.policy(HOURS * sf.Categories(["a", "b"], name="kind"), hide=sf.change("kind"), public=["hour"])
    release = sf.plan(policy, sf.histogram(), epsilon=1).publish(np.full((24, 2), 5))
    page = opened(release.to_html(tmp_path / "a.html", by="hour")).page
    page.locator("canvas").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".readout") == "00:00: 10 records, exactly: the policy makes it public."


def test_a_page_whose_script_was_changed_runs_none(product: Any, chromium: Any, tmp_path: Path) -> None:
    """The policy knows the script by its digest: what somebody put into it is not run."""
    text = product[1].read_text(encoding="utf-8")
    file = tmp_path / "changed.html"
    file.write_text(text.replace("<script>", "<script>document.title='run';", 1), encoding="utf-8")
    context = chromium.new_context()
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.title() == "Visits <b>by hour</b>" and page.locator("canvas").count() == 0
    context.close()


def test_without_scripts_the_promise_is_there(product: Any, opened: Callable[..., Any]) -> None:
    page = opened(product[1], java_script_enabled=False).page
    text = page.inner_text("main")
    assert "What is not hidden" in text and "need JavaScript" in text
