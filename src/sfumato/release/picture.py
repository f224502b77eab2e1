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
from sfumato.domain.on_maps import places
from sfumato.errors import InvalidInput
from sfumato.files import replacing
from sfumato.reading import visible
from sfumato.release.canvas import ACCENT, INK, LITERAL, SOFT, blank, file_kind, quiet
from sfumato.release.colours import ERRORS, ESTIMATES, colour_bar, scale_of
from sfumato.release.intervals import check_confidence
from sfumato.release.overlay import draw_lines, lines_on
from sfumato.release.panels import draw, needs_panels
from sfumato.release.points import distribution_knots, groups, sorted_points
from sfumato.release.proportions import Proportions, proportions
from sfumato.release.sheets import (
    UNKNOWN,
    Picture,
    counted_by,
    crs_of_axes,
    error_varies,
    number,
    require_known,
    scale_bar,
)

if TYPE_CHECKING:
    from sfumato.release.release import Release

_ALARM = "#c1121f"
# Beyond this many bars nobody reads their names.
_MOST_BARS = 200


def plot(
    release: Release,
    path: str | Path | None = None,
    *,
    title: str | None = None,
    confidence: float = 0.95,
    colormap: str = ESTIMATES,
    by: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    outlines: Any = None,
    uncertainty: bool | None = None,
) -> Any:
    """Draw a release and return the matplotlib Figure; with a path, also write it (.png, .svg or .pdf).

    Two axes give a map, with a second one of the standard error where that differs between cells, or where
    `uncertainty` asks for it; one interval gives a curve with the band of its intervals; labels give bars. Products,
    and what `by` and `where` ask, are drawn as `sfumato.release.panels` says. `outlines` are lines to be drawn on
    maps, as `sfumato.release.overlay` reads them. A release from seeded randomness says so in red.
    """
    kind = file_kind(path)
    domain = release.domain
    if by is not None or where is not None or needs_panels(domain):
        drawn = draw(release, by, where, check_confidence(confidence), colormap, uncertainty)
    else:
        drawn = _plain(release, confidence, colormap, uncertainty)
    if outlines is not None:
        if drawn.bounds is None:
            raise InvalidInput(
                "outlines= are drawn on maps, and this picture is none. Nothing was drawn. Leave them out, or name the "
                "place in by=."
            )
        draw_lines(drawn.maps, lines_on(outlines, drawn.crs, drawn.bounds))
    figure = drawn.figure
    _frame(figure, release, title, drawn.note)
    if path is not None:
        with replacing(path) as file:
            figure.savefig(file, format=kind, dpi=200)
    return figure


def _plain(release: Release, confidence: float, colormap: str, uncertainty: bool | None) -> Picture:
    """A line, a grid or labels: every cell as it is."""
    domain = release.domain
    if domain.ndim == 2:
        return _draw_map(release, colormap, uncertainty)
    size = (7.6, max(3.0, 1.6 + 0.28 * domain.axes[0].cells)) if domain.axes[0].named else (8.4, 4.0)
    figure = blank(size, "compressed", "Drawing a release")
    if domain.axes[0].named:
        return Picture(figure, _draw_bars(figure, release, cast(Labels, domain.axes[0]), confidence))
    return Picture(figure, _draw_curve(figure, release, confidence))


def _draw_map(release: Release, colormap: str, uncertainty: bool | None) -> Picture:
    domain, errors = release.domain, release.cells().stderr
    known = not _no_errors(errors)
    if uncertainty:
        require_known(known)
    beside = known and (error_varies(errors) if uncertainty is None else uncertainty)
    (left, right), (bottom, top) = map(_extent, domain.axes)
    shape, crs = Proportions(None, 1.0), None
    if places(domain):  # not of hours by weekdays
        crs = crs_of_axes(domain.axes)
        shape = proportions(crs, (left, bottom, right, top), (domain.axes[0].name, domain.axes[1].name))
    ratio = (right - left) / (top - bottom) / shape.aspect
    equal = domain.is_spatial and (shape.metres is not None or 0.25 <= ratio <= 4)  # else it would be a ribbon
    aspect = shape.aspect if equal else "auto"
    tall = (4.6 if beside else 5.4) / ratio if equal else 4.6
    figure = blank(((11.6 if beside else 6.8), min(max(tall, 2.4), 8.0) + 1.2), "compressed", "Drawing a release")
    panels = list(figure.subplots(1, 2 if beside else 1, squeeze=False, sharex=True, sharey=True)[0])
    if sorted_points(release) is not None:
        notes = [_draw_cloud(panels[0], release)]
    else:
        _panel(figure, panels[0], release, release.counts, colormap, f"estimated {counted_by(release)} per cell")
        notes = (
            [] if beside else [f"standard error of a cell: ±{number(float(np.median(errors)))}" if known else UNKNOWN]
        )
        if beside:
            _panel(figure, panels[1], release, errors, ERRORS, "standard error of a cell", least=1e-9)
    for ax in panels:
        ax.set_aspect(aspect)
        ax.set_xlabel(visible(shape.label(domain.axes[0].name)), size=9, color=INK, **LITERAL)
        quiet(ax)
        if shape.metres is not None:
            scale_bar(ax, shape.metres[0])
    panels[0].set_ylabel(visible(shape.label(domain.axes[1].name)), size=9, color=INK, **LITERAL)
    bounds = (left, bottom, right, top) if domain.is_spatial else None
    return Picture(figure, "; ".join(filter(None, [*notes, shape.note if equal else ""])), panels, crs, bounds)


def _draw_cloud(ax: Any, release: Release) -> str:
    """An adaptive map: one dot for every group, all of about the same weight, dense where the records are many."""
    middles, sizes = groups(release)
    x, y = release.domain.intervals
    dot = float(np.clip(40_000 / max(len(middles), 1), 1.0, 60.0))
    ax.scatter(*middles.T, s=dot, color=ACCENT, alpha=0.55, linewidths=0)
    ax.set(xlim=(x.low, x.high), ylim=(y.low, y.high))
    return f"every dot stands for about {number(float(np.mean(sizes)) if len(sizes) else 0.0)} records; {UNKNOWN}"


def _no_errors(errors: Any) -> bool:
    """Whether the mechanism's error depends on the data, so that none is stated."""
    return bool(np.isnan(errors).any())


def _panel(figure: Any, ax: Any, release: Release, values: Any, colormap: str, label: str, least: float = 1.0) -> None:
    x, y = release.domain.axes
    image = ax.imshow(
        values.T,  # axis 0 is x and runs to the right
        origin="lower",
        extent=(*_extent(x), *_extent(y)),
        cmap=colormap,
        norm=scale_of(values, least),
        interpolation="antialiased",
    )
    colour_bar(figure, ax, image, values, visible(label))
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
    ax.set_ylabel(visible(f"estimated {counted_by(release)} per cell"), size=9, color=INK, **LITERAL)
    ax.legend(loc="best", fontsize=8, frameon=False, labelcolor=INK)
    return UNKNOWN if _no_errors(answer.low) else ""


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
    return f"bars of about equal weight; {UNKNOWN}"


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
    ax.set_xlabel(visible(f"estimated {counted_by(release)}"), size=9, color=INK, **LITERAL)
    return f"bars: estimates; whiskers: {_interval(confidence)}s" if known else UNKNOWN


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
