"""Regions and hexagons as a map: every one with its outline, in the colour of its estimate, at true proportions.

Outlines are public, as the domain is. Elsewhere lies nowhere, and is told in words below.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain.outlines import Outlines
from sfumato.domain.paths import Paths
from sfumato.domain.places import Places
from sfumato.reading import visible
from sfumato.release.canvas import SOFT
from sfumato.release.maps import outlines_of_rows
from sfumato.release.proportions import proportions
from sfumato.release.sheets import UNKNOWN, Picture, Sheet, drawn_of, number, panels_of, told_error
from sfumato.release.table import Table

_MOVE, _LINE, _CLOSE = 1, 2, 79  # what matplotlib calls the corners of a path
# Beyond so many shapes their borders would be all that is seen.
_FEW, _MANY = 400, 4000


def outlined(
    table: Table, place: Places, level: str | None, colormap: str, counted: str, uncertainty: bool | None
) -> Picture:
    """A map for every panel, of the cells or of the groups of a level, all with one scale of colours, or a single one
    and its errors; and what is to be said below.
    """
    first, *rest = table.keys
    there, outlines = outlines_of_rows(place, first, level)
    located, what = np.flatnonzero(there), place.what[:-1] if level is None else level
    bounds = x0, y0, x1, y1 = outlines.bounds
    shape = proportions(place.crs, bounds)
    ratio = float(np.clip((x1 - x0) / max(y1 - y0, 1e-300) / shape.aspect, 0.2, 5.0))
    on_map = replace(table, **{name: getattr(table, name)[located] for name in ("value", "stderr", "low", "high")})
    drawn = drawn_of(on_map, rest, uncertainty)
    size = 5.4 if len(panels_of(rest)) == 1 else 2.9
    tall = 4.3 if drawn[-1].error else size  # two scales of colours take of the width
    sheet = Sheet.of(len(drawn), size, min(max(tall / ratio, 1.8), 7.0))
    paths = paths_of(cast(Outlines, outlines)) if outlines.closed else lines_of(cast(Paths, outlines))

    def shapes(ax: Any, values: Floats, colours: str, norm: Any) -> Any:
        image = (fill if outlines.closed else stroke)(ax, paths, values, colours, norm)
        margin = 0.02 * (x1 - x0), 0.02 * (y1 - y0)
        ax.set(xlim=(x0 - margin[0], x1 + margin[0]), ylim=(y0 - margin[1], y1 + margin[1]))
        ax.set_aspect(shape.aspect)
        return image

    sheet.maps(drawn, shapes, colormap, counted, what, shape)
    names = ("longitude", "latitude") if shape.degrees else ("x", "y")
    sheet.label(*map(shape.label, names))
    told = _told(table, there, visible(what), beside=drawn[-1].error)
    return Picture(sheet.figure, "; ".join(told), sheet.axes, place.crs, bounds)


def paths_of(outlines: Outlines) -> list[Any]:
    """One path a region; its holes run the other way, and stay empty."""
    from matplotlib.path import Path

    turned = outlines.oriented
    codes = np.full(len(turned.points), _LINE, np.uint8)
    codes[turned.rings[:-1]], codes[turned.rings[1:] - 1] = _MOVE, _CLOSE
    starts: Integers = turned.rings[turned.parts[turned.regions]]
    ends = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    return [Path(turned.points[a:b], codes[a:b], closed=False) for a, b in ends]


def lines_of(drawn: Paths) -> list[Any]:
    """One path a segment or group of segments."""
    from matplotlib.path import Path

    codes = np.full(len(drawn.points), _LINE, np.uint8)
    codes[drawn.lines[:-1]] = _MOVE
    starts = drawn.lines[drawn.groups]
    ends = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    return [Path(drawn.points[a:b], codes[a:b], closed=False) for a, b in ends]


def stroke(ax: Any, paths: list[Any], values: Floats, colormap: str, norm: Any) -> Any:
    """Roads in the colours of their values."""
    from matplotlib.collections import PathCollection

    wide = 2.0 if len(paths) <= _FEW else 1.0 if len(paths) <= _MANY else 0.4
    shapes = PathCollection(paths, cmap=colormap, norm=norm, facecolors="none", linewidths=wide)
    shapes.set_array(np.asarray(values))
    shapes.set_rasterized(len(paths) > _MANY)
    ax.add_collection(shapes, autolim=False)
    return shapes


def fill(ax: Any, paths: list[Any], values: Floats, colormap: str, norm: Any) -> Any:
    """The shapes in the colours of their values, with thin borders where they are few enough to be seen."""
    from matplotlib.collections import PathCollection

    many = len(paths)
    edge, wide = (SOFT, 0.5) if many <= _FEW else ((1, 1, 1, 0.5), 0.2) if many <= _MANY else ("face", 0.15)
    shapes = PathCollection(paths, cmap=colormap, norm=norm, edgecolors=edge, linewidths=wide)
    shapes.set_array(np.asarray(values))
    shapes.set_rasterized(many > _MANY)
    ax.add_collection(shapes, autolim=False)
    return shapes


def _told(table: Table, located: NDArray[np.bool_], what: str, *, beside: bool) -> list[str]:
    """The error of what is drawn, unless it is drawn beside it, and what is elsewhere."""
    found = [] if beside else [UNKNOWN if np.isnan(table.stderr).any() else told_error(table.stderr[located], what)]
    away = table.value[~located]
    if away.size:
        found.append(f"elsewhere, and not drawn: {number(max(float(away.sum()), 0.0))}")
    return found
