"""What a page shows of a release: a map, a curve or bars, for every choice of the factors beside it.

All figures are answers of the release, as `release.answer(by=…)` gives them, with their intervals: also the sums over
the factors beside, each a table of its own, since intervals do not add up. What would be more than a page holds is
taken together, in blocks of cells or over whole factors, and said in words; nothing is left out in silence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sfumato._types import Floats
from sfumato.domain import Domain
from sfumato.domain.ordered import Ordered
from sfumato.domain.places import Places
from sfumato.errors import InvalidInput, TooLarge
from sfumato.reading import visible
from sfumato.release.asking import asked, positions
from sfumato.release.keys import Key
from sfumato.release.maps import outlines_of_rows
from sfumato.release.overlay import lines_on
from sfumato.release.panels import axes_asked, layout_of, levels_asked, said_of
from sfumato.release.proportions import proportions
from sfumato.release.sheets import crs_of_axes
from sfumato.report.axes import described
from sfumato.report.outlines import packed_lines, packed_outlines
from sfumato.report.packing import packed, packed_ends

if TYPE_CHECKING:
    from sfumato.release.release import Release

MOST = 524_288
"""Figures of a page, each with its interval: a map of 128 × 128 cells for every hour, and for all together."""
MOST_STEPS = 65_536
"""Cells along one order: a screen has a fiftieth of them."""
MOST_VIEWS = 12
MOST_BARS = 400
MOST_BESIDE = 3
"""Factors beside what is drawn: every one doubles the tables."""


@dataclass(frozen=True, eq=False)
class Shown:
    """One view: what its figures are grouped by, in the words of `answer`, and of these how many are drawn along."""

    release: Release
    names: tuple[str, ...]
    axes: tuple[int, ...]
    along: int
    where: Mapping[str, Any]
    confidence: float
    blocks: tuple[int, ...] = ()
    """How many cells along each drawn axis are taken together, where some are."""

    @property
    def keys(self) -> tuple[Key, ...]:
        """The cells along every axis, before they are taken together."""
        return asked(self.release.domain, None, {}, dict(self.where), self.names, "bracket").keys

    def tables(self) -> list[tuple[list[int], list[Floats]]]:
        """For every set of the factors beside: which, and value, stderr, low and high, those beside in front."""
        beside = range(self.along, len(self.names))
        found = []
        for size in range(len(beside) + 1):
            for chosen in combinations(beside, size):
                parts = self._figures(chosen)
                front = [np.moveaxis(part, range(self.along), range(-self.along, 0)) for part in parts]
                found.append(([i - self.along for i in chosen], front))
        return found

    def _figures(self, chosen: tuple[int, ...]) -> list[Floats]:
        """Value, stderr, low and high of what is drawn, for every cell of some factors beside."""
        names = [self.names[i] for i in (*range(self.along), *chosen)]
        if not self.blocks:
            answer = self.release.answer(by=names, where=self.where or None, confidence=self.confidence)
            return [answer.value, answer.stderr, answer.low, answer.high]
        ranges, shape, factor = self._ranges()
        where = {**self.where, factor: ranges}
        answer = self.release.answer(by=names[self.along :] or None, where=where, confidence=self.confidence)
        parts = (answer.value, answer.stderr, answer.low, answer.high)
        return [np.reshape(part, (*shape, *np.shape(part)[1:])) for part in parts]

    def _ranges(self) -> tuple[Floats, tuple[int, ...], str]:
        """The blocks as ranges, in C order, and the factor whose ranges they are."""
        ends = self.edges()
        low = np.stack(np.meshgrid(*(edges[:-1] for edges in ends), indexing="ij"), axis=-1)
        high = np.stack(np.meshgrid(*(edges[1:] for edges in ends), indexing="ij"), axis=-1)
        ranges = np.concatenate([low, high], axis=-1).reshape(-1, 2 * self.along)
        factor = next(one for one in self.release.domain.factors if self.axes[0] in one.positions)
        return ranges, low.shape[:-1], factor.name

    def edges(self) -> list[Any]:
        """The edges of what is drawn along, where it has any."""
        found = []
        for i, key in enumerate(self.keys[: self.along]):
            edges = np.asarray(cast(Ordered, key.axis).edges)[int(key.cells[0]) : int(key.cells[-1]) + 2]
            if self.blocks and self.blocks[i] > 1:
                edges = np.append(edges[: -1 : self.blocks[i]], edges[-1])
            found.append(edges)
        return found


def views_of(
    release: Release,
    by: str | Iterable[str] | None,
    where: Mapping[str, Any] | None,
    outlines: Any,
    confidence: float,
) -> list[dict[str, Any]]:
    """Every view as plain data; or a refusal."""
    domain, chosen = release.domain, dict(where or {})
    listed = [by] if isinstance(by, str) else None if by is None else list(by)
    questions = [_named(domain, listed)] if listed is not None else _usual(release, chosen)
    shown = [
        _fitting(release, axes, levels, chosen, confidence, strict=listed is not None) for axes, levels in questions
    ]
    found = [_told(one, outlines) for one in shown]
    tables = release.mechanism.by_tables
    if listed is None and tables is not None and len(tables.tables.sets) > MOST_VIEWS:
        found[0]["said"].append(
            f"{len(tables.tables.sets)} tables, of which {len(found)} are here; by= asks for others"
        )
    if outlines is not None and not any("ground" in one for one in found):
        raise InvalidInput(
            "outlines= are drawn on maps, and this page has none. Nothing was written. Leave them out, or name the "
            "place in by=."
        )
    return found


def _named(domain: Domain, by: list[str]) -> tuple[tuple[int, ...], dict[int, str]]:
    return axes_asked(domain, by), levels_asked(domain, by)


def _usual(release: Release, where: dict[str, Any]) -> list[tuple[tuple[int, ...], dict[int, str]]]:
    """All that is not asked for, and after it every ordered factor of a product by itself; of a release of tables every
    table.
    """
    domain, by_tables = release.domain, release.mechanism.by_tables
    fixed = {axis for name in where for axis in positions(domain, name)}
    if by_tables is not None:
        return [(axes, {}) for axes in by_tables.tables.sets[:MOST_VIEWS] if axes]
    free = tuple(i for i in range(domain.ndim) if i not in fixed) or tuple(range(domain.ndim))
    found = [free]
    drawn = layout_of(domain, free).along
    found += [(i,) for i in free if i not in drawn and domain.axes[i].ordered]
    return [(axes, {}) for axes in found[:MOST_VIEWS]]


def _fitting(
    release: Release,
    axes: tuple[int, ...],
    levels: dict[int, str],
    where: dict[str, Any],
    confidence: float,
    *,
    strict: bool,
) -> Shown:
    """A view that a page holds: the largest factors beside are summed over, and blocks of cells taken together."""
    domain = release.domain
    layout = layout_of(domain, axes)
    beside = list(layout.panels)

    def shown(beside: list[int], blocks: tuple[int, ...] = ()) -> Shown:
        order = (*layout.along, *beside)
        names = tuple(levels.get(i, domain.names[i]) for i in order)
        return Shown(release, names, order, len(layout.along), where, confidence, blocks)

    while True:
        found = shown(beside)
        counts = [len(key.cells) for key in found.keys]
        drawn, held = math.prod(counts[: found.along]), math.prod(n + 1 for n in counts[found.along :])
        first = found.keys[0].axis
        most = MOST_STEPS if found.along == 1 and first.ordered else MOST
        if drawn <= most and drawn * held <= MOST and len(beside) <= MOST_BESIDE:
            return found
        if not beside:
            return shown([], _blocks(found, counts, most))
        if strict:
            raise TooLarge(
                f"{' × '.join(found.names)} has {drawn * held:,} figures, sums over each factor included; a page has "
                f"at most {MOST:,}, and {MOST_BESIDE} factors beside what is drawn. Nothing was written. Name fewer in "
                "by=, or ask for a part with where=."
            )
        beside.remove(max(beside, key=lambda i: counts[found.axes.index(i)]))


def _blocks(found: Shown, counts: list[int], most: int) -> tuple[int, ...]:
    """How many cells are taken together along each axis, so that a page holds them."""
    domain = found.release.domain
    first = domain.axes[found.axes[0]]
    factor = next(one for one in domain.factors if found.axes[0] in one.positions)
    spoken = {axis for name in found.where for axis in positions(domain, name)}
    if first.reads != "numbers" or len(factor.positions) != found.along or spoken & set(found.axes):
        levels = " or ".join(f"by={level.name!r}" for level in first.coarser)
        raise TooLarge(
            f"{math.prod(counts):,} {first.what} are more than a page holds (at most {most:,}). Nothing was written. "
            f"Ask for {levels or 'a part with where='}, or use to_parquet."
        )
    each = math.ceil((math.prod(counts) / most) ** (1 / found.along))
    while math.prod(math.ceil(n / each) for n in counts) > most:
        each += 1
    return (each,) * found.along


def _told(shown: Shown, outlines: Any) -> dict[str, Any]:
    """A view as plain data."""
    domain, keys = shown.release.domain, shown.keys
    along = keys[: shown.along]
    what = "cell" if along[0].axis.reads != "places" else cast(Places, domain.axes[shown.axes[0]]).what[:-1]
    level = shown.names[0] if shown.names[0] != domain.names[shown.axes[0]] else None
    spoken = {axis for name in shown.where for axis in positions(domain, name)} | set(shown.axes)
    said = said_of(domain, shown.where or None, spoken)
    if shown.blocks:
        many = " × ".join(str(each) for each in shown.blocks)
        what, size = f"block of {many} cells", " × ".join(f"{len(key.cells):,}" for key in along)
        said.insert(0, f"a page does not hold the {size} cells of this release: every value is that of a {what}")
    found: dict[str, Any] = {
        "name": visible(
            ", ".join(dict.fromkeys(_called(domain, i, name) for i, name in zip(shown.axes, shown.names, strict=True)))
        ),
        "what": visible(level or what),
        "along": [described(key, edges) for key, edges in zip(along, _edges_of(shown), strict=True)],
        "beside": [described(key) for key in keys[shown.along :]],
        "said": said,
    }
    if shown.along == 2 or domain.axes[shown.axes[0]].reads == "places":
        found |= _map(shown, level, outlines)
    elif along[0].axis.ordered:
        found["kind"] = "curve"
    else:
        found["kind"] = "bars" if len(along[0].cells) <= MOST_BARS else "table"
    found["tables"] = [
        {"beside": beside, "value": packed(value), "stderr": packed(stderr), **packed_ends(value, low, high)}
        for beside, (value, stderr, low, high) in shown.tables()
    ]
    return found


def _called(domain: Domain, axis: int, name: str) -> str:
    """The factor of an axis, or the level of it that is asked for."""
    return next(one.name for one in domain.factors if axis in one.positions) if name == domain.names[axis] else name


def _edges_of(shown: Shown) -> list[Any]:
    axes = [key.axis for key in shown.keys[: shown.along]]
    return list(shown.edges()) if all(axis.ordered and not axis.winds for axis in axes) else [None] * shown.along


def _map(shown: Shown, level: str | None, outlines: Any) -> dict[str, Any]:
    """What a map has beside its figures: its outlines, proportions, and lines of others."""
    domain = shown.release.domain
    if shown.along == 2:
        axes, edges = [domain.axes[i] for i in shown.axes[:2]], shown.edges()
        crs = crs_of_axes(axes)
        bounds = float(edges[0][0]), float(edges[1][0]), float(edges[0][-1]), float(edges[1][-1])
        found: dict[str, Any] = {"kind": "grid"}
        ground = proportions(crs, bounds, (axes[0].name, axes[1].name))
    else:
        place, key = cast(Places, domain.axes[shown.axes[0]]), shown.keys[0]
        located, shapes = outlines_of_rows(place, key, level)
        crs, bounds = place.crs, shapes.bounds
        margin = 0.02 * max(bounds[2] - bounds[0], bounds[3] - bounds[1], 1e-9)
        bounds = (bounds[0] - margin, bounds[1] - margin, bounds[2] + margin, bounds[3] + margin)
        found = {"kind": "shapes", "shapes": packed_outlines(shapes, bounds), "rows": np.flatnonzero(located).tolist()}
        ground = proportions(crs, bounds)
    found["ground"] = {
        "bounds": list(bounds),
        "aspect": ground.aspect,
        "metres": None if ground.metres is None else ground.metres[0],
        "unit": ground.unit,
        "note": ground.note,
    }
    if outlines is not None:
        found["lines"] = packed_lines(lines_on(outlines, crs, bounds), bounds)
    return found
