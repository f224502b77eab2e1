"""What is asked of a release, by the names of its axes and factors: ranges, labels, times, and what to group by.

A tuple is a range, half-open as everywhere. A list of labels, or of names of cells, are these taken together. Many
ranges in an array are many questions. Whatever is not named is summed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Integers
from sfumato.domain import Domain, Labels
from sfumato.domain.coarser import Coarse
from sfumato.domain.cutting import are_polygons
from sfumato.domain.factor import PLACE
from sfumato.errors import InvalidInput, TooLarge
from sfumato.exact import shown
from sfumato.naming import nearest
from sfumato.release.areas import Pieces, pieces_of, place_of
from sfumato.release.brackets import Cover
from sfumato.release.by_level import cells_of, level_names, level_of
from sfumato.release.keys import Key
from sfumato.release.spans import Span, chosen, in_front
from sfumato.release.view import Boxes
from sfumato.workload.names import known

# Rows of a table beyond which it is refused: release.cells() and release.counts are for all cells.
MOST_ROWS = 1 << 22

_KEYWORDS = ("by", "where", "confidence", "cut", "estimate")


@dataclass(frozen=True, eq=False)
class Asked:
    """Spans along every axis, of one shape after broadcasting; cells taken together; the cells of each axis that is
    grouped by; and what the answer shall call its range.
    """

    domain: Domain
    spans: Mapping[int, Span]
    sets: Mapping[int, Integers]
    keys: tuple[Key, ...]
    ranges: Any
    levels: Mapping[int, Integers] = field(default_factory=dict)  # the group of every cell, where groups are asked by
    areas: tuple[Pieces, ...] = ()  # what polygons hold and cut

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the ranges, then that of the groups."""
        return (*self._many, *(len(key.cells) for key in self.keys))

    @property
    def _many(self) -> tuple[int, ...]:
        areas = (pieces.shape for pieces in self.areas)
        return np.broadcast_shapes(*(np.shape(span.low) for span in self.spans.values()), *areas, ())

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are spoken of; all others are summed over."""
        areas = (axis for pieces in self.areas for axis in pieces.axes)
        return tuple(sorted({*self.spans, *self.sets, *(key.position for key in self.keys), *areas}))

    def along(self, axes: tuple[int, ...]) -> Asked:
        """The same of a domain that has these axes alone."""
        place = {axis: at for at, axis in enumerate(axes)}
        return Asked(
            self.domain.along(axes),
            {place[axis]: span for axis, span in self.spans.items()},
            {place[axis]: cells for axis, cells in self.sets.items()},
            tuple(replace(key, position=place[key.position]) for key in self.keys),
            self.ranges,
            {place[axis]: of for axis, of in self.levels.items()},
            tuple(pieces.along(place) for pieces in self.areas),
        )

    def boxes(self) -> Boxes:
        """All combinations of ranges and groups, one row each, in C order."""
        rows = int(np.prod(self.shape, dtype=np.float64))
        if rows > MOST_ROWS:
            raise TooLarge(
                f"{rows:,} answers are too many for one table (at most {MOST_ROWS:,}). Nothing was answered. Ask for "
                "fewer groups or ranges, or take release.counts and release.cells(), which hold every cell."
            )
        along = [self._along(axis) for axis in range(self.domain.ndim)]
        low, high = (np.stack([self._flat(span, end) for span in along], axis=-1) for end in ("low", "high"))
        ends = [
            np.stack([self._flat(span, end) for span in along], axis=-1)
            for end in ("inner_low", "inner_high", "outer_low", "outer_high")
        ]
        return Boxes(low, high, Cover(*ends))

    def _along(self, axis: int) -> Span:
        """The spans along an axis, with as many dimensions as the answer."""
        of_key = [place for place, key in enumerate(self.keys) if key.position == axis]
        if of_key:
            shape = [-1 if place == of_key[0] else 1 for place in range(len(self.keys))]
            cells = self.keys[of_key[0]].cells
            return Span.cells(cells).within(self.spans.get(axis)).reshaped([1] * len(self._many) + shape)
        span = self.spans.get(axis, Span.whole(self.domain.shape[axis]))
        lead = len(self._many) - np.ndim(span.low)
        return span.reshaped([1] * lead + list(np.shape(span.low)) + [1] * len(self.keys))

    def _flat(self, span: Span, end: str) -> NDArray[Any]:
        return np.broadcast_to(getattr(span, end), self.shape).reshape(-1)


def asked(
    domain: Domain, ranges: Any, named: Mapping[str, Any], where: Any, by: str | Iterable[str] | None, cut: str
) -> Asked:
    """What a call of `release.answer` asks."""
    wanted = _joined(named, where)
    groups, levels = _groups(domain, by)
    spans: dict[int, Span] = {}
    sets: dict[int, Integers] = {}
    told: dict[str, Any] = {}
    taken = _claimed(domain, [*wanted])
    answered: Any = None
    areas: list[Pieces] = []
    if are_polygons(ranges):
        pieces, answered = pieces_of(domain, place_of(domain, {*taken, *groups}, None), ranges, cut, "ranges")
        told["ranges"] = answered
        areas.append(pieces)
    elif ranges is not None:
        axes, label = _positional(domain, ranges, taken, bool(wanted or groups))
        found = in_front(domain, axes, ranges, cut, label)
        spans |= found.spans
        sets |= found.sets
        answered = told[label] = found.ranges
    for name, value in wanted.items():
        if are_polygons(value):
            pieces, told[name] = pieces_of(domain, place_of(domain, set(groups), name), value, cut, name)
            areas.append(pieces)
            continue
        level = level_of(domain, name)
        if level is not None:
            sets[level[0]] = cells_of(level[1], value, name)
            told[name] = value
            continue
        choice = chosen(domain, positions(domain, name), value, cut, name)
        spans |= choice.spans
        sets |= choice.sets
        told[name] = choice.ranges
    twice = [domain.names[axis] for axis in levels if axis in spans or axis in sets]
    if twice:
        raise InvalidInput(
            f"by groups {twice[0]!r} by a level, and a part of it is asked as well. Nothing was answered. Leave one of "
            "them out."
        )
    keys = tuple(_key(domain, axis, spans, sets, levels) for axis in groups)
    apart = {axis: cells for axis, cells in sets.items() if axis not in groups}
    spans |= {axis: Span.run(cells) for axis, cells in apart.items() if _follow(cells)}
    apart = {axis: cells for axis, cells in apart.items() if not _follow(cells)}
    _require_step([*(np.shape(span.low) for span in spans.values()), *(pieces.shape for pieces in areas)])
    of = {axis: level.of for axis, level in levels.items()}
    return Asked(domain, spans, apart, keys, told if wanted else answered, of, tuple(areas))


def positions(domain: Domain, name: str) -> tuple[int, ...]:
    """The axes of the factor of a name, or the one axis of this name; an unknown name is refused with the nearest."""
    found = known(domain, name)
    if found is not None:
        return found
    level = level_of(domain, name)
    if level is not None:
        return (level[0],)
    names = list(dict.fromkeys([*(factor.name for factor in domain.factors), *domain.names, *level_names(domain)]))
    raise InvalidInput(
        f"{shown(name)} is no factor and no axis of this release, which has {', '.join(map(repr, names))}."
        f"{nearest(str(name), [*names, *_KEYWORDS])} Nothing was answered."
    )


def _joined(named: Mapping[str, Any], where: Any) -> dict[str, Any]:
    """The keywords of the call and those in `where`."""
    if where is None:
        return dict(named)
    if not isinstance(where, Mapping) or not all(isinstance(name, str) for name in where):
        raise InvalidInput(
            f"where={shown(where)} must map names to what is asked of them, such as where={{'mode': 'bike'}}."
        )
    twice = [name for name in where if name in named]
    if twice:
        raise InvalidInput(f"{shown(twice[0])} is given twice, as a keyword and in where. Give it once.")
    return {**named, **where}


def _claimed(domain: Domain, names: Sequence[str]) -> dict[int, str]:
    """Which name stands for each axis; two for one axis are refused."""
    found: dict[int, str] = {}
    for name in names:
        for axis in positions(domain, name):
            if axis in found:
                raise InvalidInput(
                    f"{shown(found[axis])} and {shown(name)} both stand for axis {domain.names[axis]!r}. Nothing was "
                    "answered. Give one of them."
                )
            found[axis] = name
    return found


def _groups(domain: Domain, by: Any) -> tuple[tuple[int, ...], dict[int, Coarse]]:
    """The axes to group by, in the order in which they were named; and by which level where one was named."""
    names = () if by is None else (by,) if isinstance(by, str) or not isinstance(by, Iterable) else tuple(by)
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"by={shown(by)} must be a name, or a list of names, of axes or factors.")
    found = _claimed(domain, names)
    levels = {axis: level_of(domain, name) for axis, name in found.items()}
    return tuple(found), {axis: level[1] for axis, level in levels.items() if level is not None}


def _positional(domain: Domain, ranges: Any, taken: Mapping[int, str], named: bool) -> tuple[tuple[int, ...], str]:
    """Which axes the first argument speaks of, and what it is called: all of them, where it has ends for all; else the
    place, or the one factor that nothing else speaks of.
    """
    everything = tuple(range(domain.ndim))
    if len(domain.factors) == 1 and not taken:
        return everything, "ranges"
    if not named and domain.is_ordered:
        last = np.shape(np.asarray(ranges, dtype=object))[-1:]
        if last == (2 * domain.ndim,):
            return everything, "ranges"
    free = [factor for factor in domain.factors if not set(factor.positions) & set(taken)]
    place = [factor for factor in free if factor.name == PLACE] or (free if len(free) == 1 else [])
    if place:
        return place[0].positions, "ranges"
    names = ", ".join(repr(factor.name) for factor in domain.factors)
    if PLACE in [factor.name for factor in domain.factors]:
        raise InvalidInput(
            "the range in front is that of the place, which a keyword speaks of as well. Nothing was answered. Give "
            "one of them."
        )
    ends = f", or give {2 * domain.ndim} ends, (lo…, hi…), for all axes" if domain.is_ordered else ""
    raise InvalidInput(
        f"a range without a name could be that of any of {names}. Nothing was answered. Name it, as in "
        f"where={{{domain.factors[0].name!r}: …}}{ends}."
    )


def _key(
    domain: Domain,
    axis: int,
    spans: Mapping[int, Span],
    sets: Mapping[int, Integers],
    levels: Mapping[int, Coarse],
) -> Key:
    """What of an axis to group by: the cells that were asked for, in their declared order, or the groups of a level."""
    if axis in levels:
        level = levels[axis]
        return Key(axis, Labels(level.name, level.names), np.arange(len(level.names), dtype=np.int64))
    if axis in sets:
        return Key(axis, domain.axes[axis], np.sort(sets[axis]))
    span = spans.get(axis, Span.whole(domain.shape[axis]))
    if np.ndim(span.low):
        raise InvalidInput(
            f"by names {domain.names[axis]!r}, of which several ranges are asked. Nothing was answered. Give one range "
            "along what is grouped by, or ask range by range."
        )
    return Key(axis, domain.axes[axis], np.arange(int(span.outer_low), int(span.outer_high), dtype=np.int64))


def _require_step(given: Iterable[tuple[int, ...]]) -> None:
    """Many ranges under several names go in step, and polygons with them."""
    shapes = set(given)
    try:
        np.broadcast_shapes(*shapes, ())
    except ValueError:
        listed = " and ".join(str(shape) for shape in sorted(shapes) if shape)
        raise InvalidInput(
            f"ranges in arrays of the shapes {listed} do not go together. Nothing was answered. Give as many ranges "
            "under each name, or one."
        ) from None


def _follow(cells: Integers) -> bool:
    """Whether cells follow one another, and are a range."""
    return len(cells) == 0 or int(cells.max() - cells.min()) + 1 == len(cells)
