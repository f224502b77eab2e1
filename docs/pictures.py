"""Makes the pictures of the documentation, from a made-up city and, where they are, real pickups and counties:
`python docs/pictures.py [folder of data]`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

import sfumato as sf
from sfumato.app.city import BOUNDS, make_city

HERE = Path(__file__).parent / "img"
SHAPE = (64, 64)
INK, GREY, BLUE, RED = "#22223b", "#8d99ae", "#1f6f8b", "#c8553d"


def city_picture() -> None:
    """The private counts, what was published of them, and the error of a range under two neighbour relations."""
    city = make_city(people=60_000, visits_each=3.0, seed=7)
    grid = sf.Grid(bounds=BOUNDS, shape=SHAPE)
    points = np.stack([city.lon, city.lat], axis=-1)
    # Seeded, so that the picture does not change from run to run: allowed since the city does not exist.
    source = sf.SeededSource(11)
    plans = {
        "replace-one": sf.plan(sf.bounded(grid), sf.ranges(), epsilon=0.2),
        "within 0.007°": sf.plan(sf.within(grid, delta=0.007), sf.ranges(), epsilon=0.2),
    }
    usual, tuned = (plan.publish(points=points, source=source) for plan in plans.values())
    truth = np.bincount(grid.locate(points), minlength=grid.size).reshape(SHAPE)

    figure = Figure(figsize=(12.4, 3.7), dpi=160, layout="constrained")
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 1, 1.12])
    norm = PowerNorm(0.5, 0, float(np.quantile(truth, 0.997)))
    extent = (BOUNDS[0], BOUNDS[2], BOUNDS[1], BOUNDS[3])
    true = 1 / np.cos(np.radians((BOUNDS[1] + BOUNDS[3]) / 2))
    panels = [
        (truth, "private counts\n(a synthetic city)"),
        (usual.counts, f"published, replace-one\n{usual.mechanism.name}, ε = 0.2"),
        (tuned.counts, f"published, moves within 600 m\n{tuned.mechanism.name}, ε = 0.2"),
    ]
    for ax, (values, title) in zip(axes, panels, strict=False):
        ax.imshow(values.T, origin="lower", extent=extent, norm=norm, cmap="GnBu", aspect=true)
        ax.set_title(title, fontsize=9, color=INK)
        ax.set_xticks([])
        ax.set_yticks([])
        for side in ax.spines.values():
            side.set_color(GREY)
    last = axes[3]
    sides = np.array([1, 2, 4, 8, 16, 24, 32, 48])
    rng = np.random.default_rng(0)
    for (name, _), release, colour in zip(plans.items(), (usual, tuned), (RED, BLUE), strict=True):
        widths = []
        for side in sides:
            low = rng.integers(0, SHAPE[0] - side + 1, (400, 2)).astype(float)
            variance, _ = release.mechanism.model.range_cumulants(low, low + side)
            widths.append(1.96 * np.sqrt(variance).mean())
        last.plot(sides, widths, color=colour, lw=2, marker="o", ms=3.5)
        last.annotate(
            name, (sides[-1], widths[-1]), (-30, -26), textcoords="offset points", ha="left", color=colour, fontsize=9
        )
    last.set_title("error of a range at the same ε\n(± at 95 %)", fontsize=9, color=INK)
    last.set_xlabel("side of the range, in cells", fontsize=8, color=INK)
    last.set_ylim(0)
    last.set_xlim(0, 58)
    last.tick_params(labelsize=8, colors=INK)
    for side in ("top", "right"):
        last.spines[side].set_visible(False)
    figure.savefig(HERE / "city.png")


def places_picture(data: Path) -> None:
    """Pickups of public record, by hexagon and by county, as they would be published."""
    import geopandas

    from sfumato.release.cartography import fill, paths_of

    pickups = data / "uber_nyc_2014_04.parquet"
    counties = geopandas.read_parquet(data / "maps" / "us_counties_10m.parquet")
    west, south, east, north = box = (-74.1, 40.55, -73.7, 40.92)
    near = counties[counties.id.str[:2].isin(["34", "36"])].cx[west - 0.3 : east + 0.3, south - 0.2 : north + 0.2]
    hexagons = sf.H3(8, cover=box)
    regions = sf.Regions(near, id="id", repair=True)
    figure = Figure(figsize=(11.6, 4.6), dpi=160, layout="constrained")
    titles = {"pickups in a hexagon": hexagons, "pickups on a square kilometre": regions}
    for ax, (title, place) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        plan = sf.plan(sf.policy(place, hide=sf.move("500 m")), sf.histogram(), epsilon=1.0)
        # Seeded, so that the picture does not change: the pickups are a public record.
        release = plan.publish(sf.count(pickups, place, lon="lon", lat="lat"), source=sf.SeededSource(11))
        frame = release.to_geopandas(density=True).iloc[:-1]
        values = frame["value" if place is hexagons else "density"].to_numpy()
        outlines = place.axes[0].outlined
        norm = PowerNorm(0.5, 0, float(np.quantile(values, 0.997)))
        image = fill(ax, paths_of(outlines), values, "GnBu", norm)
        error = float(np.median(frame["stderr"]))
        ax.set_title(f"{title}: {plan.mechanism.name}, ε = 1, ±{error:.1f} of each", fontsize=9, color=INK)
        ax.set(xlim=(west, east), ylim=(south, north), xticks=[], yticks=[])
        ax.set_aspect(1 / np.cos(np.radians((south + north) / 2)))
        for side in ax.spines.values():
            side.set_color(GREY)
        bar = figure.colorbar(image, ax=ax, fraction=0.05, aspect=30, pad=0.02, extend="max")
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8, colors=INK)
    figure.savefig(HERE / "places.png")


def page_pictures() -> None:
    """The page of a release of the made-up city: on a wide screen, and on a phone at night."""
    import io
    import shutil
    import tempfile

    import pandas
    from PIL import Image
    from playwright.sync_api import sync_playwright

    city = make_city(people=60_000, visits_each=3.0, seed=7)
    visits = pandas.DataFrame({"lon": city.lon, "lat": city.lat, "hour": city.hour % 24 + 0.5})
    space = sf.Grid(bounds=BOUNDS, cell="1 km") * sf.Line(0, 24, cells=24, name="hour")
    policy = sf.policy(space, hide=sf.move("500 m"), public=["hour"])
    plan = sf.plan(policy, sf.ask(place=sf.ranges(), hour=sf.histogram()), epsilon=1.0)
    release = plan.publish(sf.count(visits, space, lon="lon", lat="lat", hour="hour"))
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        file = release.to_html(Path(folder) / "visits.html", title="Visits in a city that does not exist")
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        for name, wide, scheme in (("report-wide", 920, "light"), ("report-phone", 390, "dark")):
            context = browser.new_context(viewport={"width": wide, "height": 640}, color_scheme=scheme)
            page = context.new_page()
            page.goto(file.as_uri())
            for _ in range(14):
                page.get_by_role("slider").press("ArrowRight")
            page.locator("canvas").first.focus()
            page.keyboard.press("ArrowRight")
            page.evaluate("scrollTo(0, 0)")
            end = page.get_by_role("heading", name="Table").bounding_box()
            clip = {"x": 0, "y": 0, "width": wide, "height": end["y"]}
            picture = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=clip)))
            picture.convert("RGB").save(HERE / f"{name}.png", optimize=True)
            context.close()
        browser.close()


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    given = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    city_picture()
    page_pictures()
    if given.exists():
        places_picture(given)
