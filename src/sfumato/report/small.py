"""A release in a notebook: a small picture without a script, and what is promised.

It is made in a blink: of large grids blocks are drawn.
"""

from __future__ import annotations

import math
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sfumato._types import Floats
from sfumato.domain.on_maps import places
from sfumato.domain.ordered import Ordered
from sfumato.reading import visible
from sfumato.release.proportions import proportions
from sfumato.release.sheets import crs_of_axes

if TYPE_CHECKING:
    from sfumato.release.release import Release

_SIDE = 48
"""Blocks along a side of a small map."""
_WIDE = 320
_SHADES = ("#fcfdbf", "#feca8d", "#fd9668", "#f1605d", "#cd4071", "#9e2f7f", "#721f81", "#440f76", "#180f3d")
_BARS = 12


def small(release: Release) -> str:
    """HTML that is safe to show: a picture, the figures' frame, and the promise."""
    loud = "" if release.private else '<p style="color:#c1121f"><strong>NOT PRIVATE: seeded randomness</strong></p>'
    size = " × ".join(f"{n:,}" for n in release.domain.shape)
    names = " × ".join(visible(name) for name in release.domain.names)
    head = f"{size} cells of {names}; {release.mechanism.name}"
    whole = "".join(
        f"<p>{'<br>'.join(escape(line) for line in part.splitlines())}</p>"
        for part in release.guarantee.describe().split("\n\n")
    )
    return (
        f'<div style="max-width:40em">{loud}{_picture(release)}<p><strong>Release</strong> {escape(head)}<br>'
        f"{escape(str(release.guarantee))}</p><details><summary>Promise and limits</summary>{whole}</details></div>"
    )


def _picture(release: Release) -> str:
    """A map, a curve or bars of the estimates, everything else summed over; nothing where no cells are known."""
    if release.mechanism.by_tables is not None:
        return ""
    domain, counts = release.domain, np.asarray(release.counts)
    grids = [axes for axes in places(domain) if len(axes) == 2]
    along = grids[0] if grids else (max(range(domain.ndim), key=lambda i: (domain.axes[i].ordered, domain.shape[i])),)
    values = counts.sum(axis=tuple(i for i in range(domain.ndim) if i not in along))
    axes = [domain.axes[i] for i in along]
    if len(along) == 2:
        edges = [np.asarray(cast(Ordered, axis).edges, dtype=np.float64) for axis in axes]
        ends = float(edges[0][0]), float(edges[1][0]), float(edges[0][-1]), float(edges[1][-1])
        shape = proportions(crs_of_axes(axes), ends, (axes[0].name, axes[1].name))
        tall = (ends[3] - ends[1]) / (ends[2] - ends[0]) * shape.aspect
        return _map(_blocks(values), min(max(tall, 0.2), 2.0), "Map of the estimates")
    if axes[0].ordered:
        return _curve(values, f"Curve of the estimates along {visible(axes[0].name)}")
    top = np.argsort(-values, kind="stable")[:_BARS]
    names = axes[0].cell_names()
    return _bars([visible(names[i]) for i in top], values[top], len(values))


def _blocks(values: Floats) -> Floats:
    """Sums of blocks, so that there are few enough to draw."""
    for axis in (0, 1):
        each = math.ceil(values.shape[axis] / _SIDE)
        values = np.add.reduceat(values, np.arange(0, values.shape[axis], each), axis=axis)
    return values


def _map(values: Floats, tall: float, label: str) -> str:
    """One path a shade: the blocks of a row that follow each other are one rectangle."""
    nx, ny = values.shape
    top = max(float(np.quantile(values, 0.995)), 1.0)
    shades = np.clip(np.floor(values / top * len(_SHADES)), 0, len(_SHADES) - 1).astype(int)
    paths: dict[int, list[str]] = {}
    for y in range(ny):
        row = shades[:, y]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(row)) + 1, [nx]]).tolist()
        for a, b in pairwise(starts):
            paths.setdefault(int(row[a]), []).append(f"M{a} {ny - 1 - y}h{b - a}v1h{a - b}z")
    drawn = "".join(f'<path fill="{_SHADES[shade]}" d="{"".join(paths[shade])}"/>' for shade in sorted(paths))
    high = round(_WIDE * tall)
    return _svg(f"0 0 {nx} {ny}", high, label, drawn, more=' preserveAspectRatio="none" shape-rendering="crispEdges"')


def _curve(values: Floats, label: str) -> str:
    each = math.ceil(len(values) / 160)
    means = np.add.reduceat(values, np.arange(0, len(values), each)) / each
    low, high = min(float(means.min()), 0.0), max(float(means.max()), 1.0)
    at = [
        f"{_WIDE * i / len(means):.1f},{118 - 112 * (value - low) / (high - low):.1f}" for i, value in enumerate(means)
    ]
    last = f"{_WIDE},{at[-1].split(',')[1]}"
    line = f'<polyline fill="none" stroke="#8a4fbf" stroke-width="1.5" points="{" ".join([*at, last])}"/>'
    return _svg(f"0 0 {_WIDE} 120", 120, label, line)


def _bars(names: list[str], values: Floats, count: int) -> str:
    high, top = 18 * len(names), max(float(values.max()), 1.0)
    rows = [
        f'<rect x="130" y="{18 * i + 2}" width="{max(180 * value / top, 0):.1f}" height="13" fill="#8a4fbf"/>'
        f'<text x="125" y="{18 * i + 13}" text-anchor="end" font-size="11" fill="currentColor">'
        f"{escape(name if len(name) <= 20 else name[:19] + '…')}</text>"
        for i, (name, value) in enumerate(zip(names, values.tolist(), strict=True))
    ]
    of = "" if count == len(names) else f", the largest {len(names)} of {count}"
    return _svg(f"0 0 {_WIDE} {high}", high, f"Bars of the estimates{of}", "".join(rows))


def _svg(box: str, high: int, label: str, inner: Any, more: str = "") -> str:
    return (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="{box}" width="{_WIDE}" height="{high}"{more} '
        f'style="max-width:100%">{inner}</svg>'
    )
