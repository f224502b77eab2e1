"""Several panels on one sheet: their places and titles, one scale of colours for all, and true distances on maps."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from sfumato._types import Floats
from sfumato.domain import Axis
from sfumato.domain.ground import WGS84
from sfumato.reading import visible
from sfumato.release.canvas import INK, LITERAL, SOFT, blank
from sfumato.release.keys import Key

_OFFSET = re.compile(r"(Z|[+-][0-9]{2}:[0-9]{2})$")
_DEGREE = 111_195.0
"""Metres of a degree of latitude, to a third of a per cent anywhere."""
_BAR = 0.25
"""The share of a map's width that its scale bar takes at most."""
UNKNOWN = "the error of these estimates depends on the data and is not stated"


def panels_of(keys: Sequence[Key]) -> list[tuple[tuple[int, ...], str]]:
    """The place of every panel in the table, and its title."""
    named = [_titles(key) for key in keys]
    cells = product(*(range(len(names)) for names in named))
    return [(at, ", ".join(names[i] for names, i in zip(named, at, strict=True))) for at in cells]


def _titles(key: Key) -> list[str]:
    """What the cells are called above a panel; times as short as they may be."""
    if key.axis.reads != "times" or key.axis.winds:
        return key.names
    begins = [_OFFSET.sub("", name) for name in key.short_names]
    for needless in ("T00:00:00", "T00:00"):
        if all(name.endswith(needless) for name in begins):
            return [name.removesuffix(needless).replace("T", " ") for name in begins]
    return [name.replace("T", " ") for name in begins]


@dataclass(frozen=True)
class Sheet:
    """A figure with panels, some four a row, that share their scales."""

    figure: Any
    axes: list[Any]
    columns: int

    @classmethod
    def of(cls, count: int, wide: float, tall: float) -> Sheet:
        """An empty one with so many panels."""
        columns = 3 if count in (5, 6, 9) else min(count, 4)
        rows = -(-count // columns)
        size = (max(wide * columns + 1.2, 6.0), tall * rows + 1.2)
        figure = blank(size, "compressed", "Drawing a release")
        every = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel())
        for empty in every[count:]:
            empty.set_visible(False)
        return cls(figure, every[:count], columns)

    def label(self, across: str, up: str) -> None:
        """What is along the sides, at the outer panels alone."""
        for i, ax in enumerate(self.axes):
            low, left = i + self.columns >= len(self.axes), i % self.columns == 0
            ax.tick_params(labelbottom=low, labelleft=left)
            ax.set_xlabel(visible(across) if low else "", size=9, color=INK, **LITERAL)
            ax.set_ylabel(visible(up) if left else "", size=9, color=INK, **LITERAL)


def colours(sheet: Sheet, image: Any, values: Floats, top: float, label: str) -> None:
    """The scale of colours of all panels."""
    beyond = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    extend = beyond[bool((values < 0).any()), bool((values > top).any())]
    bar = sheet.figure.colorbar(image, ax=sheet.axes, extend=extend, fraction=0.05, aspect=28, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=SOFT, length=2)
    bar.set_label(label, size=9, color=INK)


def topmost(values: Floats) -> float:
    """Where the scale of colours ends: a few peaks must not bleach the rest."""
    return max(float(np.quantile(values, 0.998)), 1.0) if values.size else 1.0


def metres_of(crs: str | None, low: float, high: float) -> tuple[float, float] | None:
    """How many metres a unit of x and one of y are, in the middle between two latitudes; None where nobody knows."""
    if crs is None:
        return None
    if crs in WGS84:
        return _DEGREE * max(math.cos(math.radians((low + high) / 2)), 0.01), _DEGREE
    return _metres_elsewhere(crs, low, high)


def _metres_elsewhere(crs: str, low: float, high: float) -> tuple[float, float] | None:
    try:
        import pyproj
    except ImportError:
        return None
    known = pyproj.CRS.from_user_input(crs)
    if known.is_geographic:
        return metres_of("EPSG:4326", low, high)
    unit = known.axis_info[0].unit_conversion_factor if known.axis_info else 0.0
    return (unit, unit) if unit else None


def crs_of_axes(axes: Sequence[Axis]) -> str | None:
    """The CRS of a grid on the ground."""
    return axes[0].entry().get("crs") if axes[0].apart else None


def scale_bar(ax: Any, metres: float) -> None:
    """A bar of a round length at the lower left, for a map of so many metres a unit of x."""
    left, right = ax.get_xlim()
    most = _BAR * (right - left) * metres
    if not 0 < most < 4e7:
        return
    power = 10.0 ** math.floor(math.log10(most))
    length = next(step * power for step in (5, 2, 1) if step * power <= most)
    share = length / metres / (right - left)
    words = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    line = {"transform": ax.transAxes, "color": INK, "clip_on": False, "solid_capstyle": "butt"}
    ax.plot([0.03, 0.03 + share], [0.035, 0.035], linewidth=2.2, zorder=6, **line)
    box = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1.0}
    place = {"transform": ax.transAxes, "ha": "center", "va": "bottom", "zorder": 6, "bbox": box}
    ax.text(0.03 + share / 2, 0.05, words, size=7.5, color=INK, **place)


def named(ax: Any, title: str) -> None:
    """Put a title above a panel."""
    if title:
        ax.set_title(visible(title), loc="left", size=9, color=INK, pad=4, **LITERAL)


def number(value: float) -> str:
    """A number as short as it may be."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
