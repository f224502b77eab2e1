"""A domain: the product of its axes, with cells numbered in C order."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain.axis import Axis
from sfumato.domain.bins import Bins
from sfumato.domain.factor import PLACE, Factor, checked_factors, default_names, usual_factors
from sfumato.domain.interval import CHUNK, Interval, listed, numbers, plain
from sfumato.domain.ordered import Ordered
from sfumato.domain.ranges import refuse_outside
from sfumato.errors import InvalidInput

_MAX_CELLS = 1 << 62


@dataclass(frozen=True, eq=False, repr=False)
class Domain:
    """A product of named axes, which belong together in factors. Two domains are equal when their axes and factors are,
    however they were built. Domains are multiplied with ``*``.

    >>> sf.Domain((sf.Interval("hour", 0, 24, 24), sf.Labels("mode", ("bus", "bike")))).shape
    (24, 2)
    >>> (sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 4)) * sf.Categories(["bus", "bike"], name="mode")).names
    ('x', 'y', 'mode')
    """

    axes: tuple[Axis, ...]
    factors: tuple[Factor, ...] = ()

    def __post_init__(self) -> None:
        axes = tuple(self.axes) if isinstance(self.axes, Iterable) else ()
        if not axes or not all(isinstance(axis, Axis) for axis in axes):
            raise InvalidInput("axes must be one or more axes, such as sf.Interval or sf.Labels.")
        names = [axis.name for axis in axes]
        if len(set(names)) < len(names):
            raise InvalidInput(f"axes are named {', '.join(map(repr, names))}. Give each axis a name of its own.")
        if math.prod(axis.cells for axis in axes) > _MAX_CELLS:
            raise InvalidInput(
                f"axes of {' × '.join(str(axis.cells) for axis in axes)} cells have more cells together "
                "than a 64-bit number can count. Use fewer cells."
            )
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "factors", checked_factors(axes, self.factors or usual_factors(axes)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        return (self.axes, self.factors) == (other.axes, other.factors)

    def __hash__(self) -> int:
        return hash((self.axes, self.factors))

    def __repr__(self) -> str:
        return " * ".join(self._face(factor) for factor in self.factors)

    def __mul__(self, other: object) -> Domain:
        """The product: one cell for every cell of this domain and every cell of the other one."""
        if not isinstance(other, Domain):
            return NotImplemented
        after = tuple(Factor(f.name, tuple(self.ndim + i for i in f.positions)) for f in other.factors)
        return Domain(self.axes + other.axes, self.factors + after)

    def part(self, *names: str) -> Domain:
        """The product of some of the factors alone, in the domain's order.

        >>> (sf.Line(0, 24, cells=24, name="hour") * sf.Categories(["bus", "bike"], name="mode")).part("mode").shape
        (2,)
        """
        for name in names:
            self.factor(name)
        kept = [factor for factor in self.factors if factor.name in names]
        positions = [i for factor in kept for i in factor.positions]
        place = {old: new for new, old in enumerate(positions)}
        return Domain(
            tuple(self.axes[i] for i in positions),
            tuple(Factor(f.name, tuple(place[i] for i in f.positions)) for f in kept),
        )

    def along(self, axes: Sequence[int]) -> Domain:
        """The product of some of the axes alone, given by their positions, rising; of a factor what is left of it."""
        place = {old: new for new, old in enumerate(axes)}
        kept = [Factor(f.name, tuple(place[i] for i in f.positions if i in place)) for f in self.factors]
        return Domain(tuple(self.axes[i] for i in axes), tuple(factor for factor in kept if factor.positions))

    def factor(self, name: str) -> Factor:
        """The factor of a name, or the one that an axis of this name belongs to."""
        for factor in self.factors:
            if factor.name == name:
                return factor
        for factor in self.factors:
            if any(self.axes[i].name == name for i in factor.positions):
                return factor
        known = ", ".join(repr(factor.name) for factor in self.factors)
        raise InvalidInput(f"{name!r} is no factor of this domain, whose factors are {known}.")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis: the shape of an array of counts."""
        return tuple(axis.cells for axis in self.axes)

    @cached_property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(axis.name for axis in self.axes)

    @property
    def intervals(self) -> tuple[Interval | Bins, ...]:
        """The axes that are intervals of numbers, cut into equal cells or at given edges."""
        return tuple(axis for axis in self.axes if isinstance(axis, (Interval, Bins)))

    @property
    def equal(self) -> tuple[Interval, ...]:
        """The axes that are intervals of numbers, cut into equal cells."""
        return tuple(axis for axis in self.axes if isinstance(axis, Interval))

    @property
    def is_spatial(self) -> bool:
        """Whether every axis is an interval of numbers, so that distance means something."""
        return len(self.intervals) == self.ndim

    @property
    def is_ordered(self) -> bool:
        """Whether the cells of every axis have an order, so that ranges mean something."""
        return all(axis.ordered for axis in self.axes)

    @property
    def bounds(self) -> tuple[float, ...]:
        """``(lo…, hi…)`` of the interval axes, as :class:`Grid` takes them."""
        return tuple(a.low for a in self.intervals) + tuple(a.high for a in self.intervals)

    def spec(self) -> dict[str, Any]:
        """The domain as plain data that JSON can hold; :func:`domain_from_spec` reads it back."""
        return self._described([axis.spec() for axis in self.axes])

    def identity(self) -> dict[str, Any]:
        """The description without what may differ between equal domains: the outlines of regions that have a digest,
        and the versions of packages that read them.
        """
        return self._described([axis.identity() for axis in self.axes])

    def _described(self, axes: list[dict[str, Any]]) -> dict[str, Any]:
        spec: dict[str, Any] = {"axes": axes}
        if self.factors != usual_factors(self.axes):  # descriptions of earlier versions stay what they were
            spec["factors"] = [{"name": f.name, "axes": list(f.positions)} for f in self.factors]
        return spec

    @property
    def apart(self) -> bool:
        """Whether elsewhere stands beside the cells, so that a record may be in none of them."""
        return any(axis.apart for axis in self.axes)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the description: equal for equal domains, on every machine."""
        canonical = json.dumps(self.identity(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def locate(self, points: ArrayLike | Sequence[ArrayLike]) -> NDArray[np.int64]:
        """The cell number of each point, in C order; coordinates outside are clamped to the box. On a grid with a CRS
        such a place is elsewhere, which is no cell: -1.

        Points are an array with one row each, or a tuple with one array for each axis. On a single axis a
        plain array of values will do.

        >>> sf.Grid(bounds=(0, 0, 4, 4), shape=(4, 4)).locate([(0.5, 0.5), (3.9, 0.0)]).tolist()
        [0, 12]
        """
        columns = self.columns(points)
        cells = np.zeros(len(columns[0]), dtype=np.int64)
        # One cache-sized block through all axes, then the next: a row-major array of points is then read
        # once.
        for start in range(0, len(cells), CHUNK):
            block = slice(start, start + CHUNK)
            out = cells[block]
            for axis, column in zip(self.axes, columns, strict=True):
                axis.accumulate(column[block], out)
            for axis, column in zip(self.axes, columns, strict=True):
                if axis.apart:
                    out[axis.outside(column[block])] = -1
        return cells

    def columns(self, points: ArrayLike | Sequence[ArrayLike]) -> list[NDArray[Any]]:
        """Points as one array for each axis, without a copy where they are arrays already."""
        wide = sum(axis.arity for axis in self.axes)
        expected = f"Expected an array of shape (n, {wide}) or a tuple of {self.ndim} arrays of equal length"
        if isinstance(points, tuple):
            columns = [np.asarray(column) for column in points]
            if len(columns) != self.ndim or not all(map(_holds, self.axes, columns)) or len(set(map(len, columns))) > 1:
                raise InvalidInput(f"points is a tuple of {len(points)}, not of matching columns. {expected}.")
            return columns
        array = np.asarray(points)
        if wide == 1 and array.ndim == 1:
            return [array]
        if array.ndim != 2 or array.shape[1] != wide:
            raise InvalidInput(f"points has {array.ndim} dimensions of the wrong sizes. {expected}.")
        if wide == self.ndim:
            return list(array.T)
        ends = np.cumsum([axis.arity for axis in self.axes])
        parts = [array[:, end - axis.arity : end] for axis, end in zip(self.axes, ends, strict=True)]
        return [part if axis.arity > 1 else part[:, 0] for axis, part in zip(self.axes, parts, strict=True)]

    def ravel(self, index: tuple[ArrayLike, ...]) -> NDArray[np.int64]:
        """Cell numbers from one index for each axis."""
        try:
            cells = np.ravel_multi_index(index, self.shape)  # type: ignore[arg-type]
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"index does not lie in the shape {self.shape} of the domain.") from error
        return np.asarray(cells, dtype=np.int64)

    def unravel(self, cells: ArrayLike) -> tuple[NDArray[np.int64], ...]:
        """One index for each axis from cell numbers."""
        try:
            index = np.unravel_index(np.asarray(cells), self.shape)
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"cells must be whole numbers from 0 to {self.size - 1}.") from error
        return tuple(np.asarray(i, dtype=np.int64) for i in index)

    def fractional(self, ranges: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ranges in units as (low, high) in cell coordinates 0 … cells.

        A range is ``(lo…, hi…)`` along the last dimension, each end of the kind that its axis takes: a number, a time.
        Coordinates are clipped to the box and
        linear between the edges, exact on them: a cell cut by a range counts in proportion. A range wholly outside
        the bounds is refused; see `sfumato.domain.ranges`.
        """
        axes = self._ordered()
        low, high = self._ends(ranges)
        if not all((a <= b).all() for a, b in zip(low, high, strict=True)):  # false for NaN as well
            raise InvalidInput(
                "ranges must not be NaN nor end before they begin. Give (lo…, hi…) with lo ≤ hi on each axis."
            )
        refuse_outside(axes, low, high)
        return (
            np.stack([axis.place(end) for axis, end in zip(axes, low, strict=True)], axis=-1),
            np.stack([axis.place(end) for axis, end in zip(axes, high, strict=True)], axis=-1),
        )

    def covered(self, ranges: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(inside, touched) of ranges as `fractional` takes them: boxes of whole cells, their first cells and those
        after the last, of shape (…, 2, axes). An end on an edge cuts nothing, one beside it cuts a cell.
        """
        boxes = [axis.cover(a, b) for axis, a, b in zip(self._ordered(), *self._ends(ranges), strict=True)]
        inside, touched = (np.stack(parts, axis=-1) for parts in zip(*boxes, strict=True))
        return inside, touched

    def _ordered(self) -> tuple[Ordered, ...]:
        axes = tuple(axis for axis in self.axes if isinstance(axis, Ordered))
        if len(axes) < self.ndim:
            raise InvalidInput("ranges need a domain whose axes are all intervals; this one has labels.")
        return axes

    def _ends(self, ranges: ArrayLike) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """The lower ends of ranges and the upper ones, on the scale of each axis."""
        # Ends of several kinds stay what they are: as one array of NumPy all would become text.
        array = numbers(ranges, "ranges") if self.is_spatial else np.asarray(ranges, dtype=object)
        if array.ndim == 0 or array.shape[-1] != 2 * self.ndim:
            raise InvalidInput(
                f"ranges of shape {array.shape} do not end in {2 * self.ndim} numbers. "
                f"Give (lo…, hi…): {self.ndim} lower ends, then {self.ndim} upper ends."
            )
        axes = self._ordered()
        scaled = [axes[i % self.ndim].scale(array[..., i]) for i in range(2 * self.ndim)]
        return scaled[: self.ndim], scaled[self.ndim :]

    def _face(self, factor: Factor) -> str:
        """One factor, as one writes it."""
        axes = [self.axes[i] for i in factor.positions]
        if len(axes) == 1:
            return axes[0].face()
        intervals = [axis for axis in axes if isinstance(axis, (Interval, Bins))]
        own = tuple(axis.name for axis in axes)
        names = "" if own == default_names(len(axes), factor.name) else f", names={own!r}"
        name = "" if factor.name == PLACE else f", name={factor.name!r}"
        if any(isinstance(axis, Bins) for axis in intervals):
            return f"Grid(edges=({', '.join(listed(axis.edges.tolist()) for axis in intervals)}){names}{name})"
        bounds = ", ".join(plain(end) for end in (*(a.low for a in intervals), *(a.high for a in intervals)))
        crs = "".join(f", crs={axis.entry()['crs']!r}" for axis in axes[:1] if axis.apart)
        return f"Grid(bounds=({bounds}), shape={tuple(axis.cells for axis in axes)!r}{names}{crs}{name})"


def _holds(axis: Axis, column: NDArray[Any]) -> bool:
    """Whether an array has a value of the axis in every row."""
    return column.shape[1:] == (() if axis.arity == 1 else (axis.arity,)) and column.ndim > 0
