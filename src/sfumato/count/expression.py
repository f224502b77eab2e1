"""The cell of a record as one expression that every engine runs.

It is the rule of `sfumato.domain.interval` word for word: clamp, guess, compare with the two edges, correct
by one, clip. Each step is one IEEE operation on doubles, so every engine gives the same cell for every
double, infinities included. The guess is rounded down with ``floor``: turning a double into an integer
truncates on some engines and rounds on others (DuckDB), and happens here only to numbers that are whole.
"""

from __future__ import annotations

import narwhals as nw

from sfumato.count.columns import Columns
from sfumato.domain import Axis, Domain, Interval, Labels

MISSING = -1
"""The key of a row in which a coordinate is null or NaN: no record."""


def record_key(domain: Domain, columns: Columns) -> nw.Expr:
    """One whole number for each row, so that a single group-by yields the counts and the report.

    ``MISSING`` without coordinates; the cell number inside the bounds; ``size`` more when the record was
    clamped or put under ``other``; and ``2 * size`` when a label is unknown and the axis has no place for it.
    """
    flat, outside = nw.lit(0.0), nw.lit(False)
    missing, unknown = nw.lit(False), nw.lit(False)
    for axis, column in zip(domain.axes, columns.axes, strict=True):
        if isinstance(axis, Interval):
            x = nw.col(column).cast(nw.Float64)
            cell, beyond = _interval_cell(axis, x), (x < axis.low) | (x > axis.high)
            missing = missing | x.is_null() | x.is_nan()
        else:
            cell = _label_cell(axis, column)
            beyond = cell < 0
            if isinstance(axis, Labels) and axis.other is not None:
                cell = nw.when(beyond).then(nw.lit(float(axis.labels.index(axis.other)))).otherwise(cell)
            else:
                unknown = unknown | beyond
            missing = missing | nw.col(column).is_null()
        flat, outside = flat * float(axis.cells) + cell, outside | beyond
    located = flat + outside.cast(nw.Float64) * float(domain.size)
    placed = nw.when(unknown).then(nw.lit(2.0 * domain.size)).otherwise(located)
    return nw.when(missing).then(nw.lit(float(MISSING))).otherwise(placed).cast(nw.Int64)


def _interval_cell(axis: Interval, x: nw.Expr) -> nw.Expr:
    low, step, last = axis.low, axis.step, float(axis.cells - 1)
    x = x.clip(low, axis.high)
    guess = ((x - low) / step).floor().clip(0.0, last)
    below = (x < guess * step + low).cast(nw.Float64)
    above = (x >= (guess + 1.0) * step + low).cast(nw.Float64)
    return (guess - below + above).clip(0.0, last)


def _label_cell(axis: Axis, column: str) -> nw.Expr:
    """The position of a label as a double, -1 for one that is not in the list."""
    labels = list(axis.labels) if isinstance(axis, Labels) else []
    positions = [float(i) for i in range(len(labels))]
    values = nw.col(column)
    if labels and isinstance(labels[0], str):
        values = values.cast(nw.String)
    return values.replace_strict(labels, positions, default=-1.0, return_dtype=nw.Float64)
