"""A release on a product as a picture: a map for each value of a factor, a curve over time, or bars by label.

What is drawn are answers, as `release.answer(by=…, where=…)` gives them: what is neither drawn nor asked is summed
over. All maps of a picture have one scale of colours, and all its curves one scale of records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.domain import Domain, Interval
from sfumato.domain.factor import PLACE
from sfumato.domain.instants import Instants
from sfumato.domain.on_maps import places as drawable
from sfumato.domain.ordered import Ordered
from sfumato.domain.places import Places
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.reading import visible
from sfumato.release.asking import asked, positions
from sfumato.release.by_level import level_of
from sfumato.release.canvas import ACCENT, INK, LITERAL, SOFT, quiet
from sfumato.release.cartography import outlined
from sfumato.release.colours import LINES
from sfumato.release.keys import Key
from sfumato.release.proportions import proportions
from sfumato.release.sheets import (
    UNKNOWN,
    Picture,
    Sheet,
    counted_by,
    crs_of_axes,
    drawn_of,
    named,
    panels_of,
    told_error,
)
from sfumato.release.table import Table

if TYPE_CHECKING:
    from sfumato.release.release import Release

MOST_PANELS = 12
MOST_LINES = 4  # curves in one panel, each with its band
MOST_BARS = 60  # in one panel


@dataclass(frozen=True)
class Layout:
    """Which axes are drawn along, and which tell the panels apart."""

    along: tuple[int, ...]
    panels: tuple[int, ...]


def needs_panels(domain: Domain) -> bool:
    """Whether a release on it is drawn as answers: more than two axes, or one of regions, times or bins."""
    return domain.ndim > 2 or any(
        axis.reads == "places" or (axis.ordered and not isinstance(axis, Interval)) for axis in domain.axes
    )


def draw(release: Release, by: Any, where: Any, confidence: float, colormap: str, uncertainty: bool | None) -> Picture:
    """The figure, and what is to be said below it."""
    domain = release.domain
    named = tuple(where) if isinstance(where, Mapping) else ()
    layout = layout_of(domain, axes_asked(domain, by) if by is not None else _usual(domain, named))
    levels = levels_asked(domain, by)
    names = [levels.get(i, domain.names[i]) for i in (*layout.along, *layout.panels)]
    _require_few(asked(domain, None, {}, where, names, "bracket").keys, layout)
    table = cast(Table, release.answer(by=names, where=where, confidence=confidence))
    place, counted = domain.axes[layout.along[0]], counted_by(release)
    if len(layout.along) == 2:
        drawn = _maps(table, colormap, counted, uncertainty)
    elif place.reads == "places":
        drawn = outlined(table, cast(Places, place), levels.get(layout.along[0]), colormap, counted, uncertainty)
    elif table.keys[0].axis.ordered:
        drawn = _curves(table, counted)
    else:
        drawn = _bars(table, counted)
    spoken = {axis for name in named for axis in positions(domain, name)} | {*layout.along, *layout.panels}
    return replace(drawn, note="; ".join(filter(None, [drawn.note, *said_of(domain, where, spoken)])))


# ------------------------------------------------------------------------------------------- what is drawn


def axes_asked(domain: Domain, by: Any) -> tuple[int, ...]:
    """The axes that names speak of, each once."""
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names:
        raise InvalidInput("by=() names nothing to draw. Nothing was drawn. Name axes or factors, or leave it out.")
    return tuple(dict.fromkeys(axis for name in names for axis in positions(domain, name)))


def levels_asked(domain: Domain, by: Any) -> dict[int, str]:
    """The levels among the names, by the axes that they are of."""
    names = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    found = {name: level_of(domain, name) for name in names}
    return {level[0]: name for name, level in found.items() if level is not None}


def _usual(domain: Domain, named: Sequence[str]) -> tuple[int, ...]:
    """The place and one factor with few values; without a place the first order, of time rather, and one such."""
    asked = {axis for name in named for axis in positions(domain, name)}
    factors = [factor for factor in domain.factors if not asked & set(factor.positions)] or list(domain.factors)
    places = [factor for factor in factors if factor.positions in drawable(domain)]
    ordered = [factor for factor in factors if len(factor.positions) == 1 and domain.axes[factor.positions[0]].ordered]
    times = [factor for factor in ordered if domain.axes[factor.positions[0]].reads == "times"]
    first = [*(place for place in places if place.name == PLACE), *places, *times, *ordered, *factors][0]
    if len(first.positions) > 2:
        names = tuple(domain.names[i] for i in first.positions)
        raise InvalidInput(
            f"a picture has at most two axes; this release has {domain.ndim} ({', '.join(domain.names)}). Nothing was "
            f"drawn. Say which in by=, such as by={names[:2]!r}: what is left out is summed over."
        )
    few = [factor for factor in factors if factor is not first and len(factor.positions) == 1]
    few = [factor for factor in few if domain.axes[factor.positions[0]].cells <= MOST_PANELS]
    few.sort(key=lambda factor: domain.axes[factor.positions[0]].reads != "labels")
    return (*first.positions, *(few[0].positions if few else ()))


def layout_of(domain: Domain, axes: tuple[int, ...]) -> Layout:
    """Two axes of numbers of one factor are a map; else one axis is drawn along, in its order if one has an order."""
    for factor in domain.factors:
        pair = tuple(i for i in factor.positions if i in axes and domain.axes[i].reads == "numbers")[:2]
        if len(pair) == 2:
            return Layout(pair, tuple(axis for axis in axes if axis not in pair))
    outlines = [axis for axis in axes if domain.axes[axis].reads == "places"]
    ordered = outlines or [axis for axis in axes if domain.axes[axis].ordered]
    along = max(ordered or axes, key=lambda axis: (domain.axes[axis].reads == "times", domain.axes[axis].cells))
    return Layout((along,), tuple(axis for axis in axes if axis != along))


def _require_few(keys: Sequence[Key], layout: Layout) -> None:
    """Refuse more panels, or bars, than anybody looks at."""
    first, panels = keys[0], keys[len(layout.along) :]
    count = math.prod(len(key.cells) for key in panels)
    if count > MOST_PANELS:
        names = " × ".join(f"{key.axis.name!r} ({len(key.cells)})" for key in panels)
        raise InvalidInput(
            f"{names} would be {count:,} panels; a picture has at most {MOST_PANELS}. Nothing was drawn. Ask for fewer "
            "with where=, or name other axes in by=."
        )
    bars = len(layout.along) == 1 and not first.axis.ordered and first.axis.reads != "places"
    if bars and len(first.cells) > MOST_BARS:
        raise InvalidInput(
            f"{len(first.cells)} labels of {first.axis.name!r} are too many bars for one panel (at most {MOST_BARS}). "
            "Nothing was drawn. Ask for fewer with where=."
        )


def said_of(domain: Domain, where: Mapping[str, Any] | None, spoken: set[int]) -> list[str]:
    """What is asked, and what is summed over."""
    told = [f"{name} = {value if isinstance(value, str) else shown(value)}" for name, value in (where or {}).items()]
    over = dict.fromkeys(factor.name for factor in domain.factors for axis in factor.positions if axis not in spoken)
    return [visible(one) for one in told] + ([visible(f"summed over {', '.join(over)}")] if over else [])


# ------------------------------------------------------------------------------------------- how it is drawn


def _maps(table: Table, colormap: str, counted: str, uncertainty: bool | None) -> Picture:
    """A map for every panel, all with one scale of colours; or a single one and its errors."""
    across, up, *rest = table.keys
    ends = [_edges(key) for key in (across, up)]
    bounds = float(ends[0][0]), float(ends[1][0]), float(ends[0][-1]), float(ends[1][-1])
    crs = crs_of_axes([across.axis])
    shape = proportions(crs, bounds, (across.axis.name, up.axis.name))
    ratio = (bounds[2] - bounds[0]) / (bounds[3] - bounds[1]) / shape.aspect
    alike = shape.metres is not None or 0.25 <= ratio <= 4
    drawn = drawn_of(table, rest, uncertainty)
    size = 5.4 if len(panels_of(rest)) == 1 else 2.9
    tall = 4.3 if drawn[-1].error else size  # two scales of colours take of the width
    sheet = Sheet.of(len(drawn), size, min(max(tall / ratio if alike else tall, 1.8), 6.0))

    def mesh(ax: Any, values: Floats, colours: str, norm: Any) -> Any:
        image = ax.pcolormesh(*ends, values.T, cmap=colours, norm=norm, rasterized=True)
        ax.set_aspect(shape.aspect if alike else "auto")
        return image

    sheet.maps(drawn, mesh, colormap, counted, "cell", shape)
    sheet.label(shape.label(across.axis.name), shape.label(up.axis.name))
    note = [] if drawn[-1].error else [UNKNOWN if np.isnan(table.stderr).any() else told_error(table.stderr, "cell")]
    note += [shape.note] if alike else []
    return Picture(sheet.figure, "; ".join(filter(None, note)), sheet.axes, crs, bounds)


def _curves(table: Table, counted: str) -> Picture:
    """A curve with the band of its intervals for every group: together where they are few, else a panel each."""
    along, *rest = table.keys
    groups = panels_of(rest)
    together = len(groups) <= MOST_LINES
    count = 1 if together else len(groups)
    sheet = Sheet.of(count, 8.4 if count == 1 else 3.2, 4.0 if count == 1 else 2.2)
    edges, known = _edges(along), not np.isnan(table.low).any()
    for i, (at, title) in enumerate(groups):
        ax, (colour, stroke) = sheet.axes[0 if together else i], LINES[i if together else 0]
        value, low, high = (array[(slice(None), *at)] for array in (table.value, table.low, table.high))
        if known:
            ends = [np.append(array, array[-1]) for array in (low, high)]
            ax.fill_between(edges, *ends, step="post", color=colour, alpha=0.2, linewidth=0)
        line = {"color": colour, "linewidth": 1.3, "linestyle": stroke}
        ax.stairs(value, edges, baseline=None, label=f"group {i}", **line)
        named(ax, "" if together else title)
    for ax in sheet.axes:
        ax.axhline(0, color=SOFT, linewidth=0.6, zorder=1)
        ax.set_xlim(edges[0], edges[-1])
        _ticks(ax, along, few=count > 1)
        quiet(ax)
    zone = cast(Instants, along.axis).tz if along.axis.reads == "times" else None
    sheet.label(f"{along.axis.name} ({zone})" if zone else along.axis.name, f"estimated {counted} in each cell")
    if together and len(groups) > 1:
        words = sheet.axes[0].legend(loc="best", fontsize=8, frameon=False, labelcolor=INK).get_texts()
        for text, (_, title) in zip(words, groups, strict=True):
            text.set(text=visible(title), **LITERAL)
    return Picture(sheet.figure, f"bands: {100 * table.confidence:g} % intervals" if known else UNKNOWN)


def _bars(table: Table, counted: str) -> Picture:
    """Bars with whiskers, a panel for every group."""
    along, *rest = table.keys
    panels = panels_of(rest)
    tall = max(1.4, 0.6 + 0.24 * len(along.cells))
    sheet = Sheet.of(len(panels), 6.4 if len(panels) == 1 else 2.9, tall)
    at, known = np.arange(len(along.cells))[::-1], not np.isnan(table.low).any()  # the first label on top
    for (place, title), ax in zip(panels, sheet.axes, strict=True):
        value, low, high = (array[(slice(None), *place)] for array in (table.value, table.low, table.high))
        ax.barh(at, value, height=0.68, color=ACCENT, alpha=0.82, linewidth=0)
        if known:
            whisker = np.stack([np.maximum(value - low, 0), np.maximum(high - value, 0)])
            ax.errorbar(value, at, xerr=whisker, fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.5)
        ax.axvline(0, color=SOFT, linewidth=0.6)
        ax.set_yticks(at, labels=[visible(name) for name in along.names], **LITERAL)
        named(ax, title)
        quiet(ax)
    sheet.label(f"estimated {counted}", along.axis.name)
    told = f"bars: estimates; whiskers: {100 * table.confidence:g} % intervals" if known else UNKNOWN
    return Picture(sheet.figure, told)


def _edges(key: Key) -> NDArray[np.float64]:
    """The ends of the cells as a picture has them: numbers, days since 1970, or places of cells that have names."""
    axis, first, last = key.axis, int(key.cells[0]), int(key.cells[-1])
    if axis.winds or not axis.ordered:
        return np.arange(len(key.cells) + 1, dtype=np.float64)
    edges = np.asarray(cast(Ordered, axis).edges)[first : last + 2]
    return edges / 86_400e6 if axis.reads == "times" else edges.astype(np.float64)


def _ticks(ax: Any, key: Key, *, few: bool) -> None:
    """Times on their own clocks, and the names of cells."""
    axis = key.axis
    if axis.winds or not axis.ordered:
        names = key.names
        step = max(1, -(-len(names) // (4 if few else 12)))
        ticks = range(0, len(names), step)
        ax.set_xticks([i + 0.5 for i in ticks], labels=[visible(names[i]) for i in ticks], **LITERAL)
    elif axis.reads == "times":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        clock = _clock(cast(Instants, axis).tz)
        locator = AutoDateLocator(tz=clock, maxticks=4 if few else 9)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=clock))


def _clock(name: str | None) -> tzinfo | None:
    """The clocks of a zone as Python has them."""
    if name is None or name == "UTC":
        return UTC
    return datetime.strptime(name, "%z").tzinfo if name[0] in "+-" else ZoneInfo(name)
