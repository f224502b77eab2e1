"""From a batch of Arrow columns to the cells of its records."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Axis, Domain, Labels, Ordered, Places
from sfumato.domain.labels import unknown_label
from sfumato.domain.timed import NO_TIME
from sfumato.errors import InvalidInput

_Number = TypeVar("_Number", bound=np.generic)

DROPPED = -1
"""The cell of a record that lies outside and is to be left out, after it took part in the choice by entity."""


class Placer:
    """From a batch of columns to the cells of its records."""

    def __init__(self, domain: Domain, *, drop: bool) -> None:
        self.domain, self.drop = domain, drop

    def __call__(self, batch: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None, int]:
        """The cells of the records, which rows are records (None: all), and how many of them lie outside."""
        columns = self._columns(batch)
        absent = [missing for column in columns if (missing := _missing(column)) is not None]
        present = ~np.logical_or.reduce(absent) if absent else None
        if present is not None:
            columns = [column[present] for column in columns]
        cells = np.zeros(len(columns[0]), np.int64)
        outside, away = np.zeros(len(cells), np.bool_), np.zeros(len(cells), np.bool_)
        for axis, column in zip(self.domain.axes, columns, strict=True):
            if isinstance(axis, Ordered):
                beyond = axis.take(column, cells)
                outside |= beyond
                if axis.apart:
                    away |= beyond
            elif axis.reads == "places":
                outside |= cast(Places, axis).take(column, cells)
            else:
                self._accumulate_labels(axis, column, cells, outside)
        cells[outside if self.drop else away] = DROPPED
        return cells, present, int(np.count_nonzero(outside))

    def _columns(self, batch: Any) -> list[NDArray[Any]]:
        """The values along every axis; places as rows of two coordinates."""
        found, at = [], 0
        for axis in self.domain.axes:
            parts = [self._column(axis, batch.column(at + i)) for i in range(axis.arity)]
            found.append(parts[0] if len(parts) == 1 else np.stack(parts, axis=-1))
            at += axis.arity
        return found

    def _column(self, axis: Axis, values: Any) -> NDArray[Any]:
        """Coordinates, or positions of labels with -1 for an unknown one, NaN where there is none; or times in
        microseconds, with NO_TIME.
        """
        if axis.reads == "times":
            return fixed_width(values, np.int64)
        if isinstance(axis, Labels):
            import pyarrow as pa
            import pyarrow.compute as pc

            if pa.types.is_null(values.type):  # nothing but missing labels, of a type that nobody named
                return np.full(len(values), np.nan)
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            low, high = _range(values.type)
            labels, positions = representable(axis.labels, low, high)
            found = pc.fill_null(pc.index_in(values, value_set=pa.array(labels, values.type)), len(labels))
            places = pa.array([*positions, -1.0], pa.float64()).take(found)
            values = pc.if_else(values.is_null(), np.nan, places)
        return fixed_width(values, np.float64)

    def _accumulate_labels(
        self, axis: Axis, positions: NDArray[np.float64], cells: NDArray[np.int64], outside: NDArray[np.bool_]
    ) -> None:
        unknown = positions < 0
        if isinstance(axis, Labels) and unknown.any():
            if axis.other is None and not self.drop:
                raise InvalidInput(unknown_label(axis.name))
            outside |= unknown
            rest = 0 if axis.other is None else axis.labels.index(axis.other)
            positions = np.where(unknown, rest, positions)
        np.multiply(cells, axis.cells, out=cells)
        np.add(cells, positions, out=cells, casting="unsafe")


def _missing(column: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Which rows have no value, or None where all have one; a minimum is NaN when a value is."""
    if column.dtype.kind == "i":
        return column == NO_TIME if column.min(initial=0) == NO_TIME else None
    if column.ndim > 1:
        return np.isnan(column).any(axis=1) if np.isnan(column.min(initial=0.0)) else None
    return np.isnan(column) if np.isnan(column.min(initial=0.0)) else None


def representable(labels: tuple[Any, ...], low: int | None, high: int | None) -> tuple[list[Any], list[float]]:
    """The labels that a column can hold, whole numbers from low to high where it has such bounds, and their places."""
    kept = [(x, float(i)) for i, x in enumerate(labels) if low is None or high is None or low <= x <= high]
    return [label for label, _ in kept], [place for _, place in kept]


def _range(kind: Any) -> tuple[int | None, int | None]:
    """The smallest and largest number of an Arrow type of integers."""
    import pyarrow as pa

    if not pa.types.is_integer(kind):
        return None, None
    signed = pa.types.is_signed_integer(kind)
    return (-(1 << (kind.bit_width - 1)) if signed else 0), (1 << (kind.bit_width - signed)) - 1


def fixed_width(values: Any, dtype: type[_Number]) -> NDArray[_Number]:
    """An Arrow array of numbers without nulls as NumPy sees it, without a copy.

    The array's own ``to_numpy`` would import pandas wherever it is installed, half a second for nothing.
    """
    size = np.dtype(dtype).itemsize
    return np.frombuffer(values.buffers()[1] or b"", dtype, len(values), values.offset * size)
