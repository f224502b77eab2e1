"""What is asked along some axes, as ends in cell coordinates and the cells that these hold and touch.

Times without a zone are read on the clocks of the axis's zone, where it has one, as its start and stop are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.domain import Axis, Domain, Labels
from sfumato.domain.instants import Instants
from sfumato.domain.interval import numbers
from sfumato.domain.labels import shorten
from sfumato.domain.moments import times
from sfumato.domain.ordered import Ordered
from sfumato.domain.ranges import refuse_outside
from sfumato.errors import InvalidInput
from sfumato.exact import shown
from sfumato.naming import nearest
from sfumato.release.brackets import snapped


@dataclass(frozen=True, eq=False)
class Span:
    """From one place to another along an axis, or many such, in arrays of one shape."""

    low: Floats
    high: Floats
    inner_low: Integers
    inner_high: Integers
    outer_low: Integers
    outer_high: Integers

    @classmethod
    def of(cls, axis: Ordered, low: NDArray[Any], high: NDArray[Any]) -> Span:
        """Between places on the scale of an axis."""
        inside, touched = axis.cover(low, high)
        return cls(axis.place(low), axis.place(high), inside[..., 0], inside[..., 1], touched[..., 0], touched[..., 1])

    @classmethod
    def between(cls, start: Any, stop: Any) -> Span:
        """Of whole cells, from the first to the one after the last."""
        first, after = np.asarray(start, dtype=np.int64), np.asarray(stop, dtype=np.int64)
        return cls(first.astype(np.float64), after.astype(np.float64), first, after, first, after)

    @classmethod
    def whole(cls, cells: int) -> Span:
        """Everything."""
        return cls.between(0, cells)

    @classmethod
    def cells(cls, cells: Integers) -> Span:
        """Single cells."""
        return cls.between(cells, cells + 1)

    @classmethod
    def run(cls, cells: Integers) -> Span:
        """Cells that follow one another, or none."""
        return cls.between(cells.min(), cells.max() + 1) if len(cells) else cls.between(0, 0)

    def within(self, other: Span | None) -> Span:
        """What lies in another span as well, which is one."""
        if other is None:
            return self
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        start, stop = np.maximum(self.inner_low, other.inner_low), np.minimum(self.inner_high, other.inner_high)
        first, after = np.maximum(self.outer_low, other.outer_low), np.minimum(self.outer_high, other.outer_high)
        held = np.clip(start, first, after)
        return Span(low, np.maximum(low, high), held, np.maximum(held, stop), first, after)

    def reshaped(self, shape: Sequence[int]) -> Span:
        """In another shape."""
        return Span(
            np.reshape(self.low, shape),
            np.reshape(self.high, shape),
            np.reshape(self.inner_low, shape),
            np.reshape(self.inner_high, shape),
            np.reshape(self.outer_low, shape),
            np.reshape(self.outer_high, shape),
        )

    def at(self, number: int) -> Span:
        """One of many."""
        return Span(
            self.low[number],
            self.high[number],
            self.inner_low[number],
            self.inner_high[number],
            self.outer_low[number],
            self.outer_high[number],
        )

    def snapped(self, cells: int) -> Span:
        """The nearest whole cells."""
        low, high = snapped(self.low[..., None], self.high[..., None], (cells,))
        return Span.between(low[..., 0], high[..., 0])


@dataclass(frozen=True, eq=False)
class Choice:
    """What is asked along some axes: spans, or cells taken together, and the ranges as the answer tells them."""

    spans: Mapping[int, Span]
    sets: Mapping[int, Integers]
    ranges: Any


def chosen(domain: Domain, axes: tuple[int, ...], value: Any, cut: str, name: str) -> Choice:
    """What a keyword asks: along one axis labels, names of cells or ranges; along several, ranges."""
    axis = domain.axes[axes[0]]
    if len(axes) == 1 and not axis.ordered:
        cells = _labelled(axis, value, name)
        return Choice({}, {axes[0]: np.unique(cells)}, value)
    if len(axes) == 1 and axis.winds:
        found = _round(cast(Ordered, axis), value, name)
        if found is not None:
            return Choice({}, {axes[0]: found}, value)
    return ranges_along(domain, axes, value, cut, name)


def in_front(domain: Domain, axes: tuple[int, ...], value: Any, cut: str, name: str) -> Choice:
    """The same of what has no name: a list of labels is then an answer for each."""
    axis = domain.axes[axes[0]]
    if len(axes) == 1 and not axis.ordered:
        return Choice({axes[0]: Span.cells(_labelled(axis, value, name))}, {}, value)
    return chosen(domain, axes, value, cut, name)


def ranges_along(domain: Domain, axes: tuple[int, ...], value: Any, cut: str, name: str) -> Choice:
    """Ranges ``(lo…, hi…)`` along the last dimension."""
    along = [domain.axes[i] for i in axes]
    if not all(axis.ordered for axis in along):
        raise InvalidInput("ranges need a domain whose axes are all intervals; this one has labels.")
    ordered = [cast(Ordered, axis) for axis in along]
    low, high = _ends(ordered, value, name)
    spans = {i: Span.of(axis, a, b) for i, axis, a, b in zip(axes, ordered, low, high, strict=True)}
    if cut != "snap":
        return Choice(spans, {}, _told(ordered, value))
    spans = {i: span.snapped(domain.shape[i]) for i, span in spans.items()}
    ends = [axis.edges[spans[i].outer_low] for i, axis in zip(axes, ordered, strict=True)]
    ends += [axis.edges[spans[i].outer_high] for i, axis in zip(axes, ordered, strict=True)]
    if any(axis.reads == "times" and not axis.winds for axis in ordered):
        written = [
            np.vectorize(axis.written, otypes=[object])(end) for axis, end in zip(ordered * 2, ends, strict=True)
        ]
        return Choice(spans, {}, _plain(np.stack(written, axis=-1)))
    return Choice(spans, {}, _plain(np.stack([end.astype(np.float64) for end in ends], axis=-1)))


def _told(axes: list[Ordered], value: Any) -> Any:
    """Ranges as they were asked: numbers as numbers, everything else as it came."""
    if all(axis.reads == "numbers" for axis in axes):
        return _plain(np.array(value, dtype=np.float64))
    return value


def _plain(array: NDArray[Any]) -> Any:
    return tuple(array.tolist()) if array.ndim == 1 else array


def _ends(axes: list[Ordered], value: Any, name: str) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """The lower and upper ends along every axis, on its scale, or a refusal."""
    d = len(axes)
    array = _array(axes, value, name)
    if array.ndim == 0 or array.shape[-1] != 2 * d:
        said = shown(value) if array.ndim == 0 else f"{name} of shape {array.shape}"
        said = said if array.ndim else f"{name}={said}"
        many = "2 numbers" if d == 1 else f"{2 * d} numbers"
        one = "1 lower end" if d == 1 else f"{d} lower ends"
        other = "1 upper end" if d == 1 else f"{d} upper ends"
        raise InvalidInput(f"{said} do not end in {many}. Give (lo…, hi…): {one}, then {other}.")
    scaled = [_scaled(axes[i % d], array[..., i]) for i in range(2 * d)]
    low, high = scaled[:d], scaled[d:]
    if not all((a <= b).all() for a, b in zip(low, high, strict=True)):  # false for NaN as well
        raise InvalidInput(
            f"{name} must not be NaN nor end before they begin. Give (lo…, hi…) with lo ≤ hi on each axis."
        )
    refuse_outside(tuple(axes), low, high)
    return low, high


def _array(axes: list[Ordered], value: Any, name: str) -> NDArray[Any]:
    """Ranges as an array; ends of several kinds stay what they are."""
    if all(axis.reads == "numbers" for axis in axes):
        return numbers(value, name)
    array = np.asarray(value)
    return array if array.dtype.kind == "M" else np.asarray(value, dtype=object)


def _scaled(axis: Ordered, values: NDArray[Any]) -> NDArray[Any]:
    """Places on the scale of an axis; times without a zone are readings of the clocks of the axis's."""
    if axis.reads != "times" or axis.winds:
        return axis.scale(values)
    ticks, zoned = times(values, axis.name)
    where = cast(Instants, axis).zone
    if where is not None and not zoned:
        return where.instants(ticks)
    return axis.scale(values) if zoned and where is None else ticks


def _labelled(axis: Axis, value: Any, name: str) -> Integers:
    """The cells of labels: one, or those of a list."""
    labels = cast(Labels, axis)
    single = isinstance(value, (str, int, bool, np.generic))
    if not single and not isinstance(value, Iterable):
        raise InvalidInput(f"{name}={shown(value)} must be a label of the domain, or a list of labels.")
    place = {label: cell for cell, label in enumerate(labels.labels)}
    cells = []
    for given in [value] if single else value:
        label = given.item() if isinstance(given, np.generic) else given
        if type(label) is not labels.kind or label not in place:
            near = nearest(label, [str(known) for known in labels.labels]) if isinstance(label, str) else ""
            raise InvalidInput(
                f"{name} names {label!r}, which is not a label of the domain. Known: {shorten(labels.labels)}.{near}"
            )
        cells.append(place[label])
    return np.array(cells[0] if single else cells, dtype=np.int64)


def _round(axis: Ordered, value: Any, name: str) -> Integers | None:
    """The cells of a cycle by their names, or of a range that goes round; None of any other range."""
    names = axis.cell_names()
    if isinstance(value, str) or (isinstance(value, list) and value and all(isinstance(v, str) for v in value)):
        given = [value] if isinstance(value, str) else value
        for one in given:
            if one not in names:
                raise InvalidInput(
                    f"{name} names {shown(one)}, which is none of the cells of {axis.name!r}, {names[0]!r} to "
                    f"{names[-1]!r}.{nearest(one, names)} Nothing was answered. Give names of cells, or a range."
                )
        return np.unique([names.index(one) for one in given])
    array = np.asarray(value, dtype=object)
    if array.shape != (2,):
        return None
    low, high = (float(end) for end in axis.scale(array))
    if not low > high:
        return None
    if low != round(low) or high != round(high) or not 0 <= high < low <= axis.cells:
        raise InvalidInput(
            f"{name}={shown(value)} goes round, and cuts cells or leaves the cycle. Nothing was answered. Give names "
            "of cells, or whole numbers of them."
        )
    return np.unique([*range(int(low), axis.cells), *range(int(high))])
