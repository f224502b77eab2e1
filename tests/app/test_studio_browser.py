"""The studio in a real browser: from a file to an explored release, by hand and by keys, and against whoever means ill.

Nothing here waits for a length of time: for what is on the page, or for good (`PATIENCE`). With SFUMATO_PICTURES set to
a folder the pictures of docs/studio.md are written there.
"""

from __future__ import annotations

import http.server
import os
import re
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from studio_browser import PATIENCE, running

import sfumato as sf

pytest.importorskip("starlette", reason="needs sfumato[studio]")
pytest.importorskip("uvicorn", reason="needs sfumato[studio]")
api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
pytestmark = pytest.mark.slow  # a browser that draws without a graphics card

HERE = Path(__file__).resolve().parent
SPEC = """\
hide = 'move("500 m")'
ask = "ranges()"
epsilon = 1
max_per_entity = 1

[domain.place]
bounds = [-74.1, 40.6, -73.9, 40.8]
shape = [32, 32]
crs = "EPSG:4326"

[data]
path = "visits.csv"
columns = { x = "lon", y = "lat" }
entity = "person"

[account]
ledger = "budget.db"

[output]
file = "visits.sfumato"
"""
SECRET = 7_391_246_815  # a value of the data that stands nowhere else


@pytest.fixture
def folder(tmp_path):
    """Visits of made-up people, most of them in three places."""
    rng = np.random.default_rng(3)
    homes = np.array([[-74.0, 40.72], [-73.96, 40.77], [-74.05, 40.65]])
    points = homes[rng.integers(0, 3, 4000)] + rng.normal(0, 0.012, (4000, 2))
    rows = [f"{SECRET + i // 2},{x:.6f},{y:.6f}" for i, (x, y) in enumerate(points)]
    (tmp_path / "visits.csv").write_text("\n".join(["person,lon,lat", *rows]) + "\n")
    return tmp_path


@pytest.fixture
def described(folder):
    """The same, with a publication file and an account."""
    (folder / "visits.toml").write_text(SPEC)
    sf.Ledger.create(folder / "budget.db", epsilon=3)
    return folder


class Watched:
    """A page, and all that it asked for, was told, and complained of."""

    def __init__(self, chromium, studio, **more):
        self.context = chromium.new_context(**({"viewport": {"width": 1400, "height": 950}} | more))
        self.context.set_default_timeout(PATIENCE)
        self.studio, self.asked, self.told, self.complaints = studio, [], [], []
        self.page = self.open(studio.link)

    def open(self, link):
        page = self.context.new_page()
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("response", self._keep)
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(link)
        return page

    def _keep(self, response):
        if "/api/" in response.url:
            self.told.append(response)

    def require_clean(self):
        """Nothing was complained of, nobody else was asked, and no value of the data was told."""
        assert self.complaints == []
        foreign = [url for url in self.asked if not url.startswith((self.studio.origin, "blob:", "data:"))]
        assert foreign == []
        texts = []
        for response in self.told:
            try:
                texts.append(response.text())
            except api.Error:  # a wish that was cancelled has no body
                continue
        assert texts and not [text for text in texts if str(SECRET)[:6] in text]

    def close(self):
        self.context.close()


@contextmanager
def watched(chromium, studio, **more):
    found = Watched(chromium, studio, **more)
    try:
        yield found
    finally:
        found.close()


def go(page, name):
    page.get_by_role("navigation").get_by_role("button", name=name).click()
    page.get_by_role("main", name=name).wait_for()


def drawn(page):
    """Wait until the map has drawn itself."""
    page.locator(".map[data-ready=yes]").first.wait_for()


def middle_of(thing):
    thing.scroll_into_view_if_needed()
    box = thing.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def picture(page, name):
    folder = os.environ.get("SFUMATO_PICTURES")
    if folder:
        page.mouse.move(0, 0)
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_load_state("networkidle")
        page.screenshot(path=Path(folder) / f"studio-{name}.png")


def left(folder):
    return sf.Ledger(folder / "budget.db").remaining


def test_from_a_file_to_an_explored_release(chromium, folder):
    with running(folder, "visits.csv") as studio, watched(chromium, studio) as seen:
        page = seen.page
        assert "token" not in page.url
        page.get_by_label("Column of x (longitude)").wait_for()
        assert page.get_by_label("Column of x (longitude)").input_value() == "lon"
        assert page.get_by_label("Whose record it is").input_value() == "person"
        page.get_by_label("Bounds: west, south, east, north").fill("-74.1, 40.6, -73.9, 40.8")
        page.keyboard.press("Enter")
        page.get_by_label("Cells across, cells up").fill("32, 32")
        page.keyboard.press("Enter")
        page.get_by_text("1,024 cells (32 × 32)").wait_for()
        drawn(page)
        picture(page, "describe")

        go(page, "Plan")
        page.get_by_text("A street corner: one cell").wait_for()
        page.get_by_text("Nothing of your data is drawn.").wait_for()
        before = page.get_by_role("row", name=re.compile("The city as a whole")).inner_text()
        page.get_by_label("ε: the budget of this release", exact=True).focus()
        page.keyboard.press("ArrowLeft")
        page.get_by_role("row", name=re.compile("The city as a whole")).filter(has_not_text=before).wait_for()
        page.get_by_label("ε: the budget of this release, as a number").fill("1")
        page.keyboard.press("Enter")
        page.get_by_text("In terms of standard differential privacy").wait_for()
        page.locator(".legend").wait_for()
        picture(page, "plan")

        go(page, "Publish")
        page.get_by_label("Ledger", exact=True).fill("budget.db")
        page.keyboard.press("Tab")
        page.get_by_label("Total of a new account").fill("3")
        page.get_by_role("button", name="Make this account").click()
        page.get_by_text("of 3 left").wait_for()
        page.get_by_label("File of the release").fill("visits.sfumato")
        page.keyboard.press("Tab")
        page.get_by_role("button", name="Look at the data").click()
        page.get_by_text("In order: coordinates are there").wait_for()
        page.get_by_text("Left afterwards").wait_for()
        assert left(folder) == 3
        picture(page, "publish")
        page.get_by_role("button", name="Publish …").click()
        page.get_by_role("dialog").get_by_text("is charged ε 1; 2 is left").wait_for()
        page.get_by_role("dialog").get_by_role("button", name="Not now").click()
        assert left(folder) == 3
        page.get_by_role("button", name="Publish …").click()
        page.get_by_role("dialog").get_by_role("button", name="Publish").click()
        page.get_by_text("Published visits.sfumato.").wait_for()
        assert left(folder) == 2
        page.get_by_role("button", name="Explore it").click()

        release = sf.load(folder / "visits.sfumato")
        page.get_by_text(re.compile(r"\(estimated\)|\(exact\)")).wait_for()
        page.locator(".legend").wait_for()
        drawn(page)
        middle = middle_of(page.locator(".map"))
        page.mouse.move(*middle)
        page.locator(".readout b").wait_for()

        def rectangle():
            page.get_by_role("button", name="Rectangle", exact=True).click()
            page.mouse.move(middle[0] - 60, middle[1] - 60)
            page.mouse.down()
            page.mouse.move(middle[0] + 70, middle[1] + 50, steps=4)
            page.mouse.up()

        until(rectangle, page.locator(".answer").first)
        drawn_by_hand = page.locator(".answer").count()
        page.get_by_label("A rectangle: west, south, east, north").fill("-74.03, 40.7, -73.97, 40.75")
        page.keyboard.press("Enter")
        page.locator(".answer").nth(drawn_by_hand).wait_for()
        there = release.answer((-74.03, 40.7, -73.97, 40.75))
        said = page.locator(".answer").nth(drawn_by_hand).inner_text()
        numbers = [float(one.replace(",", "")) for one in re.findall(r"[\d,]*\d(?:\.\d+)?", said)]
        assert numbers == pytest.approx([there.value, there.low, there.high], rel=5e-4)

        def polygon():
            page.get_by_role("button", name="Polygon", exact=True).click()
            middle = middle_of(page.locator(".map"))
            for dx, dy in ((-80, 80), (0, -90), (90, 60)):
                page.mouse.click(middle[0] + dx, middle[1] + dy)
            page.keyboard.press("Enter")

        until(polygon, page.locator(".answer").nth(drawn_by_hand + 1))
        page.get_by_role("radio", name="Both").check()
        page.get_by_text("Uncertainty: the standard error of every cell").wait_for()
        page.locator(".legend").nth(1).wait_for()
        drawn(page)
        picture(page, "explore")

        page.get_by_label("Leave out figures below").fill("10")
        page.keyboard.press("Enter")
        page.get_by_text("figures are shown (below 10").wait_for()

        go(page, "Budget")
        page.get_by_role("heading", name="default: ε 2 of 3 left").wait_for()
        page.get_by_role("cell", name="account opened").wait_for()
        with page.expect_download() as loading:
            page.get_by_role("button", name="Download the statement").click()
        assert loading.value.suggested_filename == "statement-default.html"
        assert "default" in Path(loading.value.path()).read_text(encoding="utf-8")
        seen.require_clean()


def until(act, wanted, tries=8):
    """Do it again until what is wanted is there: a page drawn without a graphics card may be late for a hand."""
    from playwright.sync_api import TimeoutError as Late

    for _ in range(tries):
        act()
        try:
            wanted.wait_for(timeout=20_000)
        except Late:
            continue
        return
    wanted.wait_for()


def tab_to(page, name, most=200):
    """Press Tab until what has the focus is called so; gives what kind of thing it is."""
    for _ in range(most):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => { const one = document.activeElement;
                const label = one.labels?.[0]?.innerText ?? one.getAttribute('aria-label') ?? one.innerText ?? '';
                return [label.trim(), getComputedStyle(one).outlineStyle, one.matches(':focus-visible')] }"""
        )
        if found[0] == name:
            assert found[1:] == ["solid", True] or page.evaluate("document.activeElement.type") == "radio", found
            return
    raise AssertionError(f"{name} is not reached by Tab")


def test_by_keys_alone(chromium, described):
    with running(described, "visits.toml") as studio, watched(chromium, studio) as seen:
        page = seen.page
        page.get_by_text("1,024 cells").wait_for()
        tab_to(page, "Publish")
        page.keyboard.press("Enter")
        page.get_by_text("of 3 left").wait_for()
        tab_to(page, "Look at the data")
        page.keyboard.press("Space")
        page.get_by_text("Left afterwards").wait_for()
        tab_to(page, "Publish …")
        page.keyboard.press("Enter")
        page.get_by_role("dialog").wait_for()
        tab_to(page, "Publish")  # the dialog holds the focus
        page.keyboard.press("Enter")
        page.get_by_text("Published visits.sfumato.").wait_for()
        tab_to(page, "Explore it")
        page.keyboard.press("Enter")
        page.locator(".legend").wait_for()
        drawn(page)

        def rectangle():
            tab_to(page, "Rectangle")
            page.keyboard.press("Space")
            page.locator(".readout b").wait_for()  # the map has the focus, and tells of its middle
            page.keyboard.press("Space")
            for key in ("ArrowRight", "ArrowUp"):
                before = page.locator(".readout").inner_text()
                page.keyboard.press(key)
                page.locator(".readout").filter(has_not_text=before).wait_for()
            page.keyboard.press("Space")

        until(rectangle, page.locator(".answer").first)
        assert left(described) == 2
        seen.require_clean()


def press(page):
    page.get_by_role("button", name="Publish …").click()
    page.get_by_role("dialog").get_by_role("button", name="Publish").click()


def test_reloaded_while_it_publishes_and_pressed_in_another_tab_it_is_charged_once(chromium, described):
    with running(described, "visits.toml", waits=True) as studio, watched(chromium, studio) as seen:
        page = seen.page
        go(page, "Publish")
        page.get_by_text("of 3 left").wait_for()
        other = seen.open(studio.origin + "/#publish")
        other.get_by_text("of 3 left").wait_for()
        press(page)
        page.get_by_text("Charging the account").wait_for()
        page.reload()
        page.get_by_text("Charging the account").wait_for()  # found again
        assert page.get_by_role("button", name="Publish …").is_disabled()
        press(other)
        other.get_by_text("Charging the account").wait_for()
        (described / "go").touch()
        for tab in (page, other):
            tab.get_by_text("Published visits.sfumato.").wait_for()
        assert left(described) == 2
        charged = [one for one in sf.Ledger(described / "budget.db").history() if one.kind == "release"]
        assert [one.release_id for one in charged] == [sf.load(described / "visits.sfumato").id]
        seen.require_clean()


def test_a_killed_studio_leaves_the_ledger_whole_and_is_gone_on_with(chromium, described):
    with running(described, "visits.toml", waits=True) as studio, watched(chromium, studio) as seen:
        page = seen.page
        go(page, "Publish")
        page.get_by_text("of 3 left").wait_for()
        press(page)
        page.get_by_text("Charging the account").wait_for()
        studio.kill()
        page.get_by_text("The studio does not answer").first.wait_for()
    ledger = sf.Ledger(described / "budget.db")
    ledger.check()
    assert ledger.spent == 0 and not (described / "visits.sfumato").exists()
    with running(described, "visits.toml") as studio, watched(chromium, studio) as seen:
        go(seen.page, "Publish")
        press(seen.page)
        seen.page.get_by_text("Published visits.sfumato.").wait_for()
    assert ledger.spent == 1 and sf.load(described / "visits.sfumato").private


ATTACK = """<!doctype html><title>another page</title><script>
const studio = "%s";
const tries = [
  fetch(studio + "/api/publish", {method: "POST", mode: "no-cors", credentials: "include", body: "{}"}),
  fetch(studio + "/api/publish", {method: "POST", credentials: "include", body: "{}",
    headers: {"content-type": "application/json"}}),
  fetch(studio + "/api/start", {credentials: "include"}),
];
Promise.allSettled(tries).then(async (found) => {
  const read = [];
  for (const one of found) read.push(one.status === "fulfilled" ? one.value.type + (await one.value.text()) : "failed");
  document.title = JSON.stringify(read);
});
</script>"""


@contextmanager
def another_site(page):
    """A page of another origin on this machine."""

    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_wrong_tokens_other_sites_and_other_names_are_told_nothing(chromium, described):
    with running(described, "visits.toml") as studio, watched(chromium, studio) as seen:
        seen.page.get_by_text("1,024 cells").wait_for()
        stranger = chromium.new_context()  # knows the link, which was used
        page = stranger.new_page()
        for link in (studio.link, studio.origin + "/?token=guess", studio.origin + "/"):
            answer = page.goto(link)
            assert answer.status == 403 and "This link was used before" in page.content()
        stranger.close()
        with another_site(ATTACK % studio.origin) as site:  # in the operator's own browser, with the cookie
            evil = seen.context.new_page()
            evil.goto(site)
            evil.wait_for_function("document.title.startsWith('[')")
            assert evil.title() == '["failed","failed","failed"]'
            answer = evil.goto(studio.origin.replace("127.0.0.1", "localhost"))  # a name of this machine, no cookie
            assert answer.status == 403
        assert left(described) == 3 and not (described / "visits.sfumato").exists()


def test_what_is_refused_is_said_beside_its_field(chromium, described):
    with running(described, "visits.toml") as studio, watched(chromium, studio) as seen:
        page = seen.page
        bounds = page.get_by_label("Bounds: west, south, east, north")
        bounds.fill("-74.1, 40.8, -73.9, 40.6")
        page.keyboard.press("Enter")
        field = page.locator("[data-field='domain.place.bounds']")
        field.get_by_role("alert").wait_for()
        assert bounds.get_attribute("aria-invalid") == "true"
        assert bounds.get_attribute("aria-describedby").split()[0] == field.get_by_role("alert").get_attribute("id")
        said = field.get_by_role("alert").inner_text()
        with pytest.raises(sf.InvalidInput) as refused:
            sf.Grid(bounds=(-74.1, 40.8, -73.9, 40.6), shape=(32, 32), crs="EPSG:4326")
        assert said == str(refused.value)  # the library's own words
        bounds.fill("-74.1, 40.6, -73.9, 40.8")
        page.keyboard.press("Enter")
        field.get_by_role("alert").wait_for(state="detached")
        written = page.get_by_label("As it is written")
        written.fill("mve(3)")
        page.keyboard.press("Enter")
        page.locator("[data-field=hide]").get_by_text("Did you mean 'move'?").wait_for()
        assert [url for url in seen.asked if not url.startswith((studio.origin, "blob:", "data:"))] == []


FACES = ("Describe", "Plan", "Publish", "Explore", "Budget")


@pytest.mark.parametrize(
    ("scheme", "width", "height"), [("light", 1400, 950), ("dark", 390, 844)], ids=["wide-light", "narrow-dark"]
)
def test_nothing_is_wrong_for_those_who_see_or_hear_otherwise(chromium, described, scheme, width, height):
    publication = sf.load_publication(described / "visits.toml")
    publication.publish().save(described / "visits.sfumato")
    more = {"color_scheme": scheme, "viewport": {"width": width, "height": height}}
    with running(described, "visits.toml") as studio, watched(chromium, studio, **more) as seen:
        page = seen.page
        page.get_by_text("1,024 cells").wait_for()
        tools = (HERE / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
        for name in FACES:
            go(page, name)
            if name in ("Plan", "Explore"):
                page.locator(".legend").wait_for()
            if name in ("Describe", "Plan", "Explore"):
                drawn(page)
            page.evaluate(tools)  # as the developer tools run it: the page's own policy lets no script in
            found = page.evaluate("axe.run({resultTypes: ['violations']})")
            told = [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found["violations"]]
            assert told == [], name
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{name} is wider than the screen"
            if width < 500:
                picture(page, f"{name.lower()}-narrow")
        seen.require_clean()
