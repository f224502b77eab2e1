"""Several panels on one sheet: their places and titles, one scale of colours for all, and true distances on maps."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._types import Floats
from sfumato.domain import Axis
from sfumato.errors import InvalidInput
from sfumato.reading import visible
from sfumato.release.canvas import INK, LITERAL, blank, quiet
from sfumato.release.colours import ERRORS, colour_bar, scale_of
from sfumato.release.keys import Key
from sfumato.release.proportions import Proportions
from sfumato.release.table import Table

if TYPE_CHECKING:
    from sfumato.release.release import Release

_OFFSET = re.compile(r"(Z|[+-][0-9]{2}:[0-9]{2})$")
_SAME = 1.25
"""Errors that vary less than this over the cells are a number, not a map."""
_BAR = 0.25
"""The share of a map's width that its scale bar takes at most."""
UNKNOWN = "the error of these estimates depends on the data and is not stated"


def counted_by(release: Release) -> str:
    """What the figures of a release are, in words: records, or what was summed or counted in their place."""
    return "records" if release.values is None else release.values.what


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


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure, and what is to be said below it; of maps their panels, their CRS and their ends (x0, y0, x1, y1)."""

    figure: Any
    note: str
    maps: list[Any] = field(default_factory=list)
    crs: str | None = None
    bounds: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, eq=False)
class Drawn:
    """One map of a picture: its title, its values, and whether they are errors."""

    title: str
    values: Floats
    error: bool = False


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

    def maps(
        self, drawn: Sequence[Drawn], draw: Callable[..., Any], colormap: str, counted: str, what: str, on: Proportions
    ) -> None:
        """Each of them with `draw`; the estimates with one scale of colours, and their errors with one of their own."""
        for error, label in ((False, f"estimated {counted} per {what}"), (True, f"standard error of a {what}")):
            panels = [(one, ax) for one, ax in zip(drawn, self.axes, strict=True) if one.error is error]
            if not panels:
                continue
            values = np.concatenate([np.ravel(one.values) for one, _ in panels])
            norm = scale_of(values, 1e-9 if error else 1.0)
            for one, ax in panels:
                image = draw(ax, one.values, ERRORS if error else colormap, norm)
                ax.locator_params(nbins=8 if len(drawn) == 1 else 4)
                named(ax, one.title)
                quiet(ax)
                if on.metres is not None:
                    scale_bar(ax, on.metres[0])
            colour_bar(self.figure, [ax for _, ax in panels], image, values, visible(label))

    def label(self, across: str, up: str) -> None:
        """What is along the sides, at the outer panels alone."""
        for i, ax in enumerate(self.axes):
            low, left = i + self.columns >= len(self.axes), i % self.columns == 0
            ax.tick_params(labelbottom=low, labelleft=left)
            ax.set_xlabel(visible(across) if low else "", size=9, color=INK, **LITERAL)
            ax.set_ylabel(visible(up) if left else "", size=9, color=INK, **LITERAL)


def drawn_of(table: Table, keys: Sequence[Key], uncertainty: bool | None) -> list[Drawn]:
    """The maps of a table, one a group; and beside a single one that of its errors, where it is asked for, or where it
    is not told and they differ from cell to cell.
    """
    groups, lead = panels_of(keys), (slice(None),) * (table.value.ndim - len(keys))
    found = [Drawn(title, table.value[(*lead, *at)]) for at, title in groups]
    known = not np.isnan(table.stderr).any()
    if uncertainty:
        require_known(known)
        if len(found) > 1:
            raise InvalidInput(
                f"uncertainty=True draws one map and its errors beside it, and this picture has {len(found)} maps. "
                "Nothing was drawn. Ask for one of them with where=."
            )
    if len(found) == 1 and known and (error_varies(table.stderr) if uncertainty is None else uncertainty):
        found.append(Drawn("", table.stderr[(*lead, *groups[0][0])], error=True))
    return found


def told_error(stderr: Floats, what: str) -> str:
    """The error of a cell in words; from the smallest to the largest where they differ."""
    if not error_varies(stderr):
        return f"standard error of a {what}: ±{number(float(np.median(stderr)))}"
    return f"standard error of a {what}: from ±{number(float(stderr.min()))} to ±{number(float(stderr.max()))}"


def require_known(known: bool) -> None:
    """Refuse a map of errors that nobody knows."""
    if not known:
        raise InvalidInput(f"uncertainty=True cannot be drawn: {UNKNOWN}. Nothing was drawn. Leave it out.")


def error_varies(stderr: Floats) -> bool:
    """Whether the error is worth a map of its own; at the border alone it is not."""
    low, high = np.quantile(stderr, [0.1, 0.9]) if stderr.size else (0.0, 0.0)
    return bool(high > _SAME * low)


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
    from matplotlib.patheffects import withStroke

    rim = [withStroke(linewidth=4.2, foreground="white", alpha=0.85)]  # seen on dark cells too
    line = {"transform": ax.transAxes, "color": INK, "clip_on": False, "solid_capstyle": "butt", "path_effects": rim}
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
