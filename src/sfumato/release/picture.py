"""A release as a picture: a map, a curve with its band, or bars with their errors, and the guarantee in one line below.

Drawing is post-processing and costs no privacy. matplotlib is imported when something is drawn, and only its figures:
nothing global is touched, so a picture can be made in a server or a notebook alike.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sfumato.domain import Axis, Interval, Labels
from sfumato.errors import InvalidInput
from sfumato.files import replacing
from sfumato.reading import visible
from sfumato.release.canvas import ACCENT, INK, LITERAL, SOFT, blank, file_kind, quiet
from sfumato.release.intervals import check_confidence
from sfumato.release.panels import draw, needs_panels
from sfumato.release.points import distribution_knots, groups, sorted_points
from sfumato.release.sheets import crs_of_axes, metres_of, scale_bar

if TYPE_CHECKING:
    from sfumato.release.release import Release

_ALARM = "#c1121f"
_PER_CELL = "estimated records per cell"
_UNKNOWN = "the error of these estimates depends on the data and is not stated"
# Beyond this many bars nobody reads their names.
_MOST_BARS = 200
# Errors that vary less than this over the cells are a number, not a map.
_SAME = 1.25


def plot(
    release: Release,
    path: str | Path | None = None,
    *,
    title: str | None = None,
    confidence: float = 0.95,
    colormap: str = "magma_r",
    by: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
) -> Any:
    """Draw a release and return the matplotlib Figure; with a path, also write it (.png, .svg or .pdf).

    Two axes give a map, with a second one of the standard error where that differs between cells; one interval gives
    a curve with the band of its intervals; labels give bars. Products, and what `by` and `where` ask, are drawn as
    `sfumato.release.panels` says. A release from seeded randomness says so in red.
    """
    kind = file_kind(path)
    domain = release.domain
    if by is not None or where is not None or needs_panels(domain):
        figure, note = draw(release, by, where, check_confidence(confidence), colormap)
    else:
        figure, note = _plain(release, confidence, colormap)
    _frame(figure, release, title, note)
    if path is not None:
        with replacing(path) as file:
            figure.savefig(file, format=kind, dpi=200)
    return figure


def _plain(release: Release, confidence: float, colormap: str) -> tuple[Any, str]:
    """A line, a grid or labels: every cell as it is."""
    domain, figure = release.domain, blank(_size(release), "compressed", "Drawing a release")
    if domain.ndim == 2:
        return figure, _draw_map(figure, release, colormap)
    if domain.axes[0].named:
        return figure, _draw_bars(figure, release, cast(Labels, domain.axes[0]), confidence)
    return figure, _draw_curve(figure, release, confidence)


def _size(release: Release) -> tuple[float, float]:
    axis, domain = release.domain.axes[0], release.domain
    if domain.ndim == 1:
        return (7.6, max(3.0, 1.6 + 0.28 * axis.cells)) if axis.named else (8.4, 4.0)
    varies = _error_varies(release)
    tall = (4.6 if varies else 5.4) / _ratio(release) if _equal_units(release) else 4.6
    return (11.6 if varies else 6.8), min(max(tall, 2.4), 8.0) + 1.2


def _ratio(release: Release) -> float:
    (left, right), (bottom, top) = map(_extent, release.domain.axes)
    return (right - left) / (top - bottom) / _true(release)


def _on_the_ground(release: Release) -> tuple[float, float] | None:
    """How many metres a unit along each axis is; None where nobody knows."""
    axes = release.domain.axes
    return metres_of(crs_of_axes(axes), *_extent(axes[1]))


def _true(release: Release) -> float:
    """How much longer a unit of y is than one of x."""
    metres = _on_the_ground(release)
    return 1.0 if metres is None else metres[1] / metres[0]


def _equal_units(release: Release) -> bool:
    """Whether both axes are drawn to one scale: not where that would leave a ribbon."""
    return release.domain.is_spatial and (_on_the_ground(release) is not None or 0.25 <= _ratio(release) <= 4)


def _error_varies(release: Release) -> bool:
    """Whether the error is worth a map of its own; at the border alone it is not."""
    low, high = np.quantile(release.cells().stderr, [0.1, 0.9])
    return bool(high > _SAME * low)


def _draw_map(figure: Any, release: Release, colormap: str) -> str:
    errors = release.cells().stderr
    varies = _error_varies(release)
    panels = figure.subplots(1, 2 if varies else 1, squeeze=False, sharex=True, sharey=True)[0]
    if sorted_points(release) is not None:
        return _draw_cloud(panels[0], release)
    top = max(float(np.quantile(release.counts, 0.998)), 1.0)  # a few peaks must not bleach the rest
    _panel(figure, panels[0], release, release.counts, colormap, top, _PER_CELL)
    if varies:
        _panel(figure, panels[1], release, errors, "cividis", float(errors.max()), "standard error of a cell")
        panels[1].set_ylabel("")
        return ""
    return _UNKNOWN if _no_errors(errors) else f"standard error of a cell: ±{_number(float(np.median(errors)))}"


def _draw_cloud(ax: Any, release: Release) -> str:
    """An adaptive map: one dot for every group, all of about the same weight, dense where the records are many."""
    middles, sizes = groups(release)
    x, y = release.domain.intervals
    dot = float(np.clip(40_000 / max(len(middles), 1), 1.0, 60.0))
    ax.scatter(*middles.T, s=dot, color=ACCENT, alpha=0.55, linewidths=0)
    ax.set(xlim=(x.low, x.high), ylim=(y.low, y.high), aspect=_true(release) if _equal_units(release) else "auto")
    ax.set_xlabel(visible(x.name), size=9, color=INK, **LITERAL)
    ax.set_ylabel(visible(y.name), size=9, color=INK, **LITERAL)
    quiet(ax)
    return f"every dot stands for about {_number(float(np.mean(sizes)) if len(sizes) else 0.0)} records; {_UNKNOWN}"


def _no_errors(errors: Any) -> bool:
    """Whether the mechanism's error depends on the data, so that none is stated."""
    return bool(np.isnan(errors).any())


def _panel(figure: Any, ax: Any, release: Release, values: Any, colormap: str, top: float, label: str) -> None:
    x, y = release.domain.axes
    image = ax.imshow(
        values.T,  # axis 0 is x and runs to the right
        origin="lower",
        extent=(*_extent(x), *_extent(y)),
        aspect=_true(release) if _equal_units(release) else "auto",
        cmap=colormap,
        vmin=0.0,
        vmax=top,
        interpolation="antialiased",
    )
    beyond = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    extend = beyond[bool(values.min() < 0), bool(values.max() > top)]
    bar = figure.colorbar(image, ax=ax, extend=extend, fraction=0.05, aspect=28, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=SOFT, length=2)
    bar.set_label(label, size=9, color=INK)
    ax.set_xlabel(visible(x.name), size=9, color=INK, **LITERAL)
    ax.set_ylabel(visible(y.name), size=9, color=INK, **LITERAL)
    quiet(ax)
    metres = _on_the_ground(release)
    if metres is not None:
        scale_bar(ax, metres[0])
    for axis, place in ((x, ax.xaxis), (y, ax.yaxis)):
        if axis.named:
            shown, names = range(0, axis.cells, max(1, axis.cells // 12)), axis.cell_names()
            place.set_ticks(list(shown), labels=[visible(names[i]) for i in shown], **LITERAL)


def _draw_curve(figure: Any, release: Release, confidence: float) -> str:
    (axis,) = release.domain.intervals
    answer = release.cells(confidence=confidence)
    ax = figure.subplots()
    quiet(ax)
    if sorted_points(release) is not None:
        return _draw_groups(ax, release)
    ax.axhline(0, color=SOFT, linewidth=0.6, zorder=1)
    if not _no_errors(answer.low):
        ends = [np.append(values, values[-1]) for values in (answer.low, answer.high)]
        band = {"color": ACCENT, "alpha": 0.22, "linewidth": 0, "label": _interval(confidence)}
        ax.fill_between(axis.edges, *ends, step="post", **band)
    ax.stairs(release.counts, axis.edges, color=ACCENT, linewidth=1.3, baseline=None, label="estimate")
    ax.set_xlim(axis.low, axis.high)
    ax.set_xlabel(visible(axis.name), size=9, color=INK, **LITERAL)
    ax.set_ylabel(_PER_CELL, size=9, color=INK)
    ax.legend(loc="best", fontsize=8, frameon=False, labelcolor=INK)
    return _UNKNOWN if _no_errors(answer.low) else ""


def _draw_groups(ax: Any, release: Release) -> str:
    """An adaptive histogram: bars of equal weight, narrow where the records are many."""
    (axis,) = release.domain.intervals
    places, records = distribution_knots(release)
    share = np.linspace(0, float(records[-1]), min(max(len(np.unique(records)), 2), _MOST_BARS) + 1)
    ends = np.unique(np.interp(np.interp(share, records, places), np.arange(len(axis.edges)), axis.edges))
    edges = np.unique(np.concatenate([[axis.low], ends, [axis.high]]))
    below = np.interp(np.interp(edges, axis.edges, np.arange(len(axis.edges))), places, records)
    ax.stairs(np.diff(below) / np.diff(edges), edges, color=ACCENT, fill=True, alpha=0.75)
    ax.set_xlim(axis.low, axis.high)
    ax.set_xlabel(visible(axis.name), size=9, color=INK, **LITERAL)
    ax.set_ylabel("estimated records per unit", size=9, color=INK)
    return f"bars of about equal weight; {_UNKNOWN}"


def _draw_bars(figure: Any, release: Release, axis: Labels, confidence: float) -> str:
    if axis.cells > _MOST_BARS:
        raise InvalidInput(
            f"{axis.cells} labels are too many bars for one picture (at most {_MOST_BARS}). Nothing was drawn. "
            "Draw a part of release.cells() yourself."
        )
    answer = release.cells(confidence=confidence)
    ax = figure.subplots()
    quiet(ax)
    at = np.arange(axis.cells)[::-1]  # the first label on top
    ax.barh(at, release.counts, height=0.68, color=ACCENT, alpha=0.82, linewidth=0)
    known = not _no_errors(answer.low)
    if known:
        whisker = np.stack([release.counts - answer.low, answer.high - release.counts])
        ax.errorbar(release.counts, at, xerr=whisker, fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.5)
    ax.axvline(0, color=SOFT, linewidth=0.6)
    ax.set_yticks(at, labels=[visible(str(label)) for label in axis.labels], **LITERAL)
    ax.set_ylim(-0.7, axis.cells - 0.3)
    ax.set_xlabel("estimated records", size=9, color=INK)
    return f"bars: estimates; whiskers: {_interval(confidence)}s" if known else _UNKNOWN


def _frame(figure: Any, release: Release, title: str | None, note: str) -> None:
    """The title above, the guarantee below; what is not private says so before anything else."""
    width = int(figure.get_figwidth() * 17)
    lines = textwrap.wrap(str(release.guarantee), width)
    words = "\n".join([note, *lines] if note else lines)
    figure.supxlabel(words, x=0.015, ha="left", size=7.5, color=SOFT, **LITERAL)
    above = [] if release.private else ["NOT PRIVATE: seeded randomness, do not publish"]
    if title and figure.axes[0].get_title(loc="left"):  # a panel has a name of its own
        above.append(visible(title))
    elif title:
        figure.axes[0].set_title(visible(title), loc="left", size=12, weight="bold", color=INK, pad=10, **LITERAL)
    if above:
        told = {"color": INK if release.private else _ALARM, **LITERAL}
        figure.suptitle("\n".join(above), x=0.015, ha="left", size=14, weight="bold", **told)


def _extent(axis: Axis) -> tuple[float, float]:
    return (axis.low, axis.high) if isinstance(axis, Interval) else (-0.5, axis.cells - 0.5)


def _interval(confidence: float) -> str:
    return f"{100 * confidence:g} % interval"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
