"""The cell of a record as one chain of expressions that every engine runs.

It is the rule of the axes word for word; `sfumato.counting.stages` has the steps of each kind. On numbers each step is
one IEEE operation on doubles, so every engine gives the same cell for every double, infinities included. A guess is
rounded down with ``floor``: turning a double into an integer truncates on some engines and rounds on others (DuckDB),
and happens only to numbers that are whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw

from sfumato.counting.columns import UNREADABLE as UNREADABLE_COLUMN
from sfumato.counting.place import representable
from sfumato.counting.stages import steps_of
from sfumato.counting.tally import MISSING, UNREADABLE
from sfumato.domain import Axis, Domain, Labels

if TYPE_CHECKING:
    from sfumato.counting.inputs import Frame


_RANGES: dict[object, tuple[int, int]] = {
    kind: (0 if unsigned else -(1 << (bits - 1)), (1 << (bits - (not unsigned))) - 1)
    for kinds, unsigned in (
        ((nw.Int8, nw.Int16, nw.Int32, nw.Int64), False),
        ((nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64), True),
    )
    for kind, bits in zip(kinds, (8, 16, 32, 64), strict=True)
}
"""What a column of a type can hold: a label beyond it is not in the column, and some engines choke on it."""


def record_keys(frame: Frame, domain: Domain, *, unreadable: bool) -> Any:
    """A frame with one whole number for each row, so that a single group-by yields the counts and the report.

    ``UNREADABLE`` where a coordinate cannot be read, ``MISSING`` without coordinates; the cell number inside the
    bounds; ``size`` more when the record was clamped or put under ``other``; and ``2 * size`` when a label is unknown
    and the axis has no place for it. The steps are columns of their own (value v, clamped c, guess g), or engines would
    compute each as often as it is mentioned.
    """
    schema = frame.collect_schema()
    values = [_value(axis, f"c{i}", schema[f"c{i}"], frame).alias(f"v{i}") for i, axis in enumerate(domain.axes)]
    rows: Any = frame.select(*values, *([nw.col(UNREADABLE_COLUMN)] if unreadable else []))
    stages = {i: steps_of(axis, i) for i, axis in enumerate(domain.axes) if axis.ordered}
    for nth in range(max((len(columns) for columns, _, _ in stages.values()), default=0)):
        rows = rows.with_columns(
            *(each for columns, _, _ in stages.values() for step in columns[nth : nth + 1] for each in step)
        )
    flat, outside = nw.lit(0.0), nw.lit(False)
    missing, unknown = nw.lit(False), nw.lit(False)
    for i, axis in enumerate(domain.axes):
        value = nw.col(f"v{i}")
        missing = missing | (value.is_null() if axis.reads == "times" else value.is_null() | value.is_nan())
        if i in stages:
            _, cell, beyond = stages[i]
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
    if unreadable:
        key = nw.when(nw.col(UNREADABLE_COLUMN)).then(nw.lit(float(UNREADABLE))).otherwise(key)
    return rows.select(key.cast(nw.Int64).alias("key"))


def _value(axis: Axis, column: str, kind: nw.dtypes.DType, frame: Frame) -> nw.Expr:
    """A coordinate, or the position of a label with -1 for an unknown one; null where there is none."""
    value = nw.col(column)
    if axis.reads == "times":
        return value.cast(nw.Int64)
    if not isinstance(axis, Labels) or isinstance(kind, nw.Float64):  # on Spark a join has found the positions
        return value.cast(nw.Float64)
    if axis.kind is str:
        value = value.cast(nw.String)
    low, high = _RANGES.get(type(kind), (None, None))
    labels, positions = representable(axis.labels, low, high)
    if any(isinstance(label, int) and label >= 1 << 63 for label in labels):  # which some engines take for doubles
        value, labels = value.cast(nw.String), [str(label) for label in labels]
    if frame.implementation.is_dask() or frame.implementation.is_ibis():  # these have no way to replace
        known = value.is_null().cast(nw.Float64) * 0.0 - 1.0
        for label, place in zip(labels, positions, strict=True):
            known = known + (value == label).cast(nw.Float64) * (place + 1.0)
    elif labels:
        known = value.replace_strict(labels, positions, default=-1.0, return_dtype=nw.Float64)
    else:
        known = nw.lit(-1.0)
    return nw.when(~value.is_null()).then(known)
