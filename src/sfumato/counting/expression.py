"""The cell of a record as one chain of expressions that every engine runs.

It is the rule of `sfumato.domain.interval` word for word: clamp, guess, compare with the two edges, correct by one,
clip. Each step is one IEEE operation on doubles, so every engine gives the same cell for every double, infinities
included. The guess is rounded down with ``floor``: turning a double into an integer truncates on some engines and
rounds on others (DuckDB), and happens here only to numbers that are whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw

from sfumato.counting.columns import Columns
from sfumato.domain import Axis, Domain, Interval, Labels

if TYPE_CHECKING:
    from sfumato.counting.inputs import Frame

MISSING = -1
"""The key of a row in which a coordinate is null or NaN: no record."""


def record_keys(frame: Frame, domain: Domain, columns: Columns) -> Any:
    """A frame with one whole number for each row, so that a single group-by yields the counts and the report.

    ``MISSING`` without coordinates; the cell number inside the bounds; ``size`` more when the record was clamped or put
    under ``other``; and ``2 * size`` when a label is unknown and the axis has no place for it. The steps are columns of
    their own (value v, clamped c, guess g), or engines would compute each as often as it is mentioned.
    """
    pairs = list(zip(domain.axes, columns.axes, strict=True))
    intervals = [(i, axis) for i, axis in enumerate(domain.axes) if isinstance(axis, Interval)]
    steps: Any = frame.select(*(_value(axis, column).alias(f"v{i}") for i, (axis, column) in enumerate(pairs)))
    if intervals:
        steps = steps.with_columns(*(nw.col(f"v{i}").clip(a.low, a.high).alias(f"c{i}") for i, a in intervals))
        steps = steps.with_columns(*(_guess(axis, nw.col(f"c{i}")).alias(f"g{i}") for i, axis in intervals))
    flat, outside = nw.lit(0.0), nw.lit(False)
    missing, unknown = nw.lit(False), nw.lit(False)
    for i, axis in enumerate(domain.axes):
        value = nw.col(f"v{i}")
        missing = missing | value.is_null() | value.is_nan()
        if isinstance(axis, Interval):
            cell = _corrected(axis, nw.col(f"c{i}"), nw.col(f"g{i}"))
            beyond = (value < axis.low) | (value > axis.high)
        else:
            cell, beyond = value, value < 0.0
            if isinstance(axis, Labels) and axis.other is not None:
                cell = nw.when(beyond).then(nw.lit(float(axis.labels.index(axis.other)))).otherwise(cell)
            else:
                unknown = unknown | beyond
        flat, outside = flat * float(axis.cells) + cell, outside | beyond
    located = flat + outside.cast(nw.Float64) * float(domain.size)
    placed = nw.when(unknown).then(nw.lit(2.0 * domain.size)).otherwise(located)
    key = nw.when(missing).then(nw.lit(float(MISSING))).otherwise(placed)
    return steps.select(key.cast(nw.Int64).alias("key"))


def _value(axis: Axis, column: str) -> nw.Expr:
    """A coordinate, or the position of a label with -1 for an unknown one; null where there is none."""
    value = nw.col(column)
    if not isinstance(axis, Labels):
        return value.cast(nw.Float64)
    if axis.kind is str:
        value = value.cast(nw.String)
    positions = [float(i) for i in range(axis.cells)]
    known = value.replace_strict(list(axis.labels), positions, default=-1.0, return_dtype=nw.Float64)
    return nw.when(~nw.col(column).is_null()).then(known)


def _guess(axis: Interval, clamped: nw.Expr) -> nw.Expr:
    return ((clamped - axis.low) / axis.step).floor().clip(0.0, float(axis.cells - 1))


def _corrected(axis: Interval, clamped: nw.Expr, guess: nw.Expr) -> nw.Expr:
    below = (clamped < guess * axis.step + axis.low).cast(nw.Float64)
    above = (clamped >= (guess + 1.0) * axis.step + axis.low).cast(nw.Float64)
    return (guess - below + above).clip(0.0, float(axis.cells - 1))
