"""Pictures: what is drawn, what is said on it, and that nothing global is touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from released import CUBE, GRID, LINE, MEANS, MIXED, known, sample

import sfumato as sf
from sfumato.release import picture


def texts(figure: Any) -> str:
    import matplotlib.text

    return "\n".join(t.get_text() for t in figure.findobj(matplotlib.text.Text))


@pytest.mark.parametrize("domain", [LINE, GRID, MEANS, MIXED])
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_every_drawable_domain_is_written_in_every_format(domain: sf.Domain, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    figure = known(domain, range(domain.size)).plot(path, title="Visits")
    assert type(figure).__name__ == "Figure"
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(start)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_picture_says_its_guarantee_and_its_title() -> None:
    shown = texts(known(LINE, range(8)).plot(title="Visits by hour"))
    assert "Visits by hour" in shown
    assert "ε = 1 per record; policy 'unbounded'" in shown.replace("\n", " ")
    assert "estimated records per cell" in shown
    assert "95 % interval" in shown
    assert "NOT PRIVATE" not in shown


@pytest.mark.parametrize("name", ["within edges", "threshold edges", "unbounded labels"])
def test_a_seeded_release_says_loudly_that_it_is_not_private(name: str) -> None:
    figure = sample(name).plot()
    (loud,) = [t for t in figure.texts if t.get_text() == "NOT PRIVATE: seeded randomness, do not publish"]
    assert loud.get_color() == "#c1121f"
    assert loud.get_fontweight() == "bold"


def test_a_map_shows_x_to_the_right_and_y_upwards() -> None:
    counts = np.zeros(GRID.shape)
    counts[5, 0] = 100  # right, bottom
    (image,) = known(GRID, counts).plot().axes[0].images
    assert image.get_extent() == [-1.0, 1.0, 40.5, 41.0]
    assert image.origin == "lower"
    assert image.get_array()[0, 5] == 100


def test_an_error_that_is_the_same_everywhere_is_a_number_and_one_that_varies_a_second_map() -> None:
    same = known(GRID, range(30)).plot()
    assert len(same.axes) == 2  # the map and its colour bar
    assert "standard error of a cell: ±1.4" in texts(same)
    denser = sf.graph(GRID, [(i, i + 1) for i in range(29)] + [(i, i + 2) for i in range(14)])
    varies = sf.plan(denser, sf.histogram(), 1, mechanism="edges").publish(np.zeros((6, 5), int)).plot()
    assert len(varies.axes) == 4
    assert "standard error of a cell" in texts(varies)


def test_one_peak_neither_bleaches_the_map_nor_is_cut_off() -> None:
    counts = np.full((100, 100), 10.0)
    counts[3, 3], counts[4, 4] = 1e6, 2e3
    figure = known(sf.Grid(bounds=(0, 0, 1, 1), shape=(100, 100)), counts).plot()
    (image,) = figure.axes[0].images
    assert image.get_clim() == (0, 1e6)
    shares = np.asarray(image.norm(np.array([0.0, 5.0, 10.0, 2e3, 1e6])))
    assert shares[:3] == pytest.approx([0, 0.4, 0.8]) and shares[4] == pytest.approx(1)
    assert 0.82 < shares[3] < 0.98
    assert np.allclose(image.norm.inverse(shares), [0.0, 5.0, 10.0, 2e3, 1e6])
    assert "(colours above 10 are stretched)" in texts(figure) and "1,000,000" in texts(figure)


def test_a_scale_of_colours_is_even_where_no_peak_stands_out_and_reaches_to_the_largest_value() -> None:
    counts = np.arange(30.0)
    (image,) = known(GRID, counts).plot().axes[0].images
    assert image.get_clim() == (0, 29)
    assert float(image.norm(14.5)) == pytest.approx(0.5)


def test_the_band_of_a_curve_is_its_interval() -> None:
    release = known(LINE, range(8))
    ax = release.plot(confidence=0.8).axes[0]
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    cells = release.cells(confidence=0.8)
    assert (heights.min(), heights.max()) == (cells.low.min(), cells.high.max())
    assert "80 % interval" in texts(ax.figure)


def test_an_error_that_is_unknown_is_not_drawn() -> None:
    said = "the error of these estimates depends on the data and is not stated"
    line = sample("threshold consistent").plot()
    assert said in texts(line)
    assert not line.axes[0].collections
    for domain in (GRID, MEANS):
        release = sf.plan(sf.unbounded(domain), sf.histogram(), 1, mechanism="dawa").publish(
            np.zeros(domain.shape, int)
        )
        assert said in texts(release.plot())


def test_drawing_leaves_pyplot_alone() -> None:
    code = (
        "import sys, numpy as np, sfumato as sf;"
        "assert 'matplotlib' not in sys.modules;"
        "plan = sf.plan(sf.unbounded(sf.Line(0, 1, cells=4)), sf.histogram(), 1);"
        "r = plan.publish(np.zeros(4, int), source=sf.SeededSource(1));"
        "r.plot();"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


# ---------------------------------------------------------------------------------------------- refusals


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in [m for m in sys.modules if m.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(sf.MissingExtra) as refusal:
        known(LINE, range(8)).plot(tmp_path / "a.png")
    assert str(refusal.value) == (
        "Drawing a release needs the package 'matplotlib', which is not installed. "
        "Install it with: pip install 'sfumato[plot]'"
    )
    assert isinstance(refusal.value, ImportError)
    assert list(tmp_path.iterdir()) == []


def test_three_axes_are_refused() -> None:
    with pytest.raises(sf.InvalidInput) as refusal:
        known(CUBE, range(24)).plot()
    assert str(refusal.value) == (
        "a picture has at most two axes; this release has 3 (x, y, z). Nothing was drawn. "
        "Say which in by=, such as by=('x', 'y'): what is left out is summed over."
    )


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.gif"
    with pytest.raises(sf.InvalidInput) as refusal:
        known(LINE, range(8)).plot(path)
    assert str(refusal.value) == f"path={str(path)!r} must end in .png, .svg, .pdf. Nothing was written."
    assert list(tmp_path.iterdir()) == []


def test_too_many_labels_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "_MOST_BARS", 2)
    with pytest.raises(sf.InvalidInput) as refusal:
        known(MEANS, range(3)).plot()
    assert str(refusal.value) == (
        "3 labels are too many bars for one picture (at most 2). Nothing was drawn. "
        "Draw a part of release.cells() yourself."
    )
