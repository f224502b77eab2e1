"""Pictures of products: what is drawn are the answers, panels have the names of what they show, and limits are said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.app.cli import app

PLACE = sf.Grid(bounds=(-74, 40, -73, 41), shape=(4, 5))
DAYS = sf.Times("2026-03-07", "2026-03-10", every="1 day", name="t", tz="America/New_York")
MODES = sf.Categories(["bus", "$bike_%", "_car"], name="mode")


def released(domain: sf.Domain, mechanism: str = "identity") -> sf.Release:
    plan = sf.plan(sf.unbounded(domain), sf.histogram(), epsilon=1, mechanism=mechanism)
    return plan.publish(np.arange(domain.size).reshape(domain.shape) % 97)


PRODUCT = released(PLACE * DAYS * MODES)


def panels(figure: Any) -> dict[str, Any]:
    """The panels by their titles, without the colour bar."""
    return {ax.get_title(loc="left"): ax for ax in figure.axes if ax.get_visible() and ax.get_label() != "<colorbar>"}


def texts(figure: Any) -> str:
    import matplotlib.text

    return "\n".join(t.get_text() for t in figure.findobj(matplotlib.text.Text))


def maps(figure: Any) -> dict[str, Any]:
    return {title: ax.collections[0] for title, ax in panels(figure).items()}


def test_a_map_for_each_label_with_one_scale_of_colours():
    figure = PRODUCT.plot(title="Visits")
    drawn = maps(figure)
    assert list(drawn) == ["bus", "$bike_%", "_car"]
    table = PRODUCT.answer(by=("place", "mode"))
    for i, mesh in enumerate(drawn.values()):
        assert np.array_equal(np.asarray(mesh.get_array()).reshape(5, 4), table.value[:, :, i].T)
        assert mesh.get_clim() == (0, table.value.max())
        corners = mesh.get_coordinates().reshape(-1, 2)
        assert (corners.min(axis=0).tolist(), corners.max(axis=0).tolist()) == ([-74, 40], [-73, 41])
    said = texts(figure)
    assert "summed over t" in said and "Visits" in said and "ε = 1 per record" in said
    assert f"standard error of a cell: ±{np.median(table.stderr):.2g}" in said


def test_where_chooses_and_by_names_what_is_drawn():
    figure = PRODUCT.plot(by=("place", "t"), where={"mode": ["bus", "_car"], "t": ("2026-03-07", "2026-03-09")})
    drawn = maps(figure)
    assert list(drawn) == ["2026-03-07", "2026-03-08"]
    table = PRODUCT.answer(by=("x", "y", "t"), mode=["bus", "_car"], t=("2026-03-07", "2026-03-09"))
    assert np.array_equal(np.asarray(drawn["2026-03-08"].get_array()).reshape(5, 4), table.value[:, :, 1].T)
    assert "mode = ['bus', '_car']" in texts(figure)


def test_a_curve_over_time_has_the_band_of_its_intervals():
    figure = PRODUCT.plot(by="t", where={"mode": "bus"}, confidence=0.9)
    (ax,) = panels(figure).values()
    table = PRODUCT.answer(by="t", mode="bus", confidence=0.9)
    (stairs,) = ax.patches
    assert np.array_equal(stairs.get_data().values, table.value)
    days = np.asarray(DAYS.axes[0].edges) / 86_400e6
    assert np.array_equal(stairs.get_data().edges, days)
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (table.low.min(), table.high.max())
    assert "bands: 90 % intervals; mode = bus; summed over place" in texts(figure).replace("\n", " ")


def test_ticks_of_time_are_those_of_the_zone_s_clocks():
    """Its days begin at midnight there, also after the clocks are put forward on the eighth."""
    figure = PRODUCT.plot(by="t")
    (ax,) = panels(figure).values()
    figure.canvas.draw()
    days = np.asarray(DAYS.axes[0].edges) / 86_400e6
    labels = [tick.get_text() for tick in ax.get_xticklabels()]
    assert set(days) <= set(ax.get_xticks()) and "08" in " ".join(labels)


def test_few_groups_are_curves_in_one_panel_and_more_have_one_each():
    few = PRODUCT.plot(by=("t", "mode"))
    (ax,) = panels(few).values()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["bus", "$bike_%", "_car"]
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())
    more = released(sf.Cycle("hour of day", name="hour") * sf.Categories(list("abcdef"), name="g")).plot()
    assert list(panels(more)) == list("abcdef")
    more.canvas.draw()
    low = list(panels(more).values())[-1]
    assert [tick.get_text() for tick in low.get_xticklabels()] == ["00:00", "06:00", "12:00", "18:00"]


def test_labels_are_bars_with_whiskers():
    figure = PRODUCT.plot(by="mode")
    (ax,) = panels(figure).values()
    assert [bar.get_width() for bar in ax.patches] == PRODUCT.answer(by="mode").value.tolist()
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["bus", "$bike_%", "_car"]
    assert "whiskers: 95 % intervals; summed over place, t" in texts(figure)


def test_bins_and_times_alone_are_drawn_at_their_edges():
    fares = released(sf.Line(edges=[0, 5, 20, 100], name="fare"))
    (ax,) = panels(fares.plot()).values()
    assert ax.patches[0].get_data().edges.tolist() == [0, 5, 20, 100]
    (ax,) = panels(released(DAYS).plot()).values()
    assert len(ax.patches[0].get_data().values) == 3


def test_a_grid_with_uneven_edges_is_a_map_of_them():
    grid = sf.Grid(edges=([0, 1, 5], [0, 0.5, 2]), name="place")
    (mesh,) = maps(released(grid).plot()).values()
    assert sorted(set(mesh.get_coordinates()[:, :, 0].ravel())) == [0, 1, 5]


def test_an_error_that_is_unknown_is_not_drawn():
    figure = released(sf.Line(0, 8, cells=8) * MODES, "dawa").plot(by=("x", "mode"))
    assert "depends on the data and is not stated" in texts(figure) or "bands" in texts(figure)


def test_what_is_not_private_says_so_above_the_title():
    plan = sf.plan(sf.unbounded(PLACE * MODES), sf.histogram(), epsilon=1, mechanism="identity")
    release = plan.publish(np.zeros((4, 5, 3), int), source=sf.SeededSource(1))
    assert "NOT PRIVATE: seeded randomness, do not publish\nVisits" in texts(release.plot(title="Visits"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": ("place", "t", "mode")}, None),
        ({"by": "tt"}, "'tt' is no factor and no axis of this release"),
        ({"by": ()}, "by=() names nothing to draw."),
        ({"where": {"mod": "bus"}}, "'mod' is no factor and no axis of this release"),
        ({"where": "bus"}, "must map names to what is asked of them"),
        ({"by": "t", "confidence": 2}, "confidence"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, words, tmp_path):
    if words is None:
        assert len(panels(PRODUCT.plot(**options))) == 9
        return
    with pytest.raises(sf.InvalidInput) as refusal:
        PRODUCT.plot(tmp_path / "a.png", **options)
    assert words in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_too_many_panels_and_bars_are_refused():
    hours = released(PLACE * sf.Cycle("hour of day", name="hour"))
    with pytest.raises(sf.InvalidInput, match=r"'hour' \(24\) would be 24 panels; a picture has at most 12"):
        hours.plot(by=("place", "hour"))
    assert len(panels(hours.plot(by=("place", "hour"), where={"hour": ("06:00", "09:00")}))) == 3
    assert len(panels(hours.plot())) == 1  # summed over
    many = released(sf.Categories([str(i) for i in range(80)], name="kind") * DAYS)
    with pytest.raises(sf.InvalidInput, match="80 labels of 'kind' are too many bars"):
        many.plot(by="kind")


def test_the_command_draws_by_name(tmp_path: Path):
    file = PRODUCT.save(tmp_path / "r.sfumato")
    picture = tmp_path / "map.png"
    typed = [
        "plot",
        str(file),
        "--out",
        str(picture),
        "--by",
        "place",
        "--by",
        "mode",
        "--where",
        "t=2026-03-07/2026-03-09",
    ]
    told = CliRunner().invoke(app, typed)
    assert told.exit_code == 0, told.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    wrong = CliRunner().invoke(app, ["plot", str(file), "--out", str(picture), "--by", "hour"])
    assert wrong.exit_code == 2 and "--by 'hour': 'hour' is no factor and no axis" in wrong.stderr
