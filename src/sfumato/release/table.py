"""A table of answers: one for every group, in the declared order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.reading import visible
from sfumato.release.answer import Answer
from sfumato.release.keys import Key

_SHOWN = 12  # rows of a table that is printed


@dataclass(frozen=True, eq=False, repr=False)
class Table(Answer):
    """An answer for every group: arrays of the shape of the ranges, and then one dimension for every name in `by`.

    The groups are in their declared order: labels as they were listed, times from the first on.

    >>> space = sf.Line(0, 24, cells=4, name="hour") * sf.Categories(["bus", "bike"], name="mode")
    >>> plan = sf.plan(sf.unbounded(space), sf.histogram(), epsilon=1)
    >>> table = plan.publish(np.full((4, 2), 100)).answer(by="mode")
    >>> table.by, table.value.shape, table.to_frame().column_names
    (('mode',), (2,), ['mode', 'value', 'stderr', 'low', 'high'])
    """

    keys: tuple[Key, ...] = field(default=(), kw_only=True)

    @property
    def by(self) -> tuple[str, ...]:
        """The axes that the answers are grouped by."""
        return tuple(key.axis.name for key in self.keys)

    def to_frame(self, kind: str = "arrow") -> Any:
        """One row an answer: columns for what it is grouped by, then value, stderr, low and high. An Arrow table, or
        with ``"pandas"`` or ``"polars"`` a frame of theirs.

        An axis with edges has two columns, such as x_low and x_high; labels and cycles have one. Where several ranges
        were asked, a column `range` has their numbers.
        """
        from sfumato.release.frames import framed, measures, rows_of

        return framed(rows_of(self.keys, np.shape(self.value), measures(self)), kind)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table of `to_frame`, for whatever takes Arrow by its PyCapsule interface."""
        return self.to_frame().__arrow_c_stream__(requested_schema)

    def to_xarray(self) -> Any:
        """An `xarray.Dataset` with the variables value, stderr, low and high and one dimension a name in `by`."""
        from sfumato.release.frames import dataset, measures

        return dataset(self.keys, np.shape(self.value), measures(self))

    def __repr__(self) -> str:
        shape = np.shape(self.value)
        count = int(np.prod(shape))
        lead = len(shape) - len(self.keys)
        shown = np.unravel_index(np.arange(min(count, _SHOWN)), shape) if count else ()
        named = [key.names for key in self.keys]
        head = [*(["range"] if lead else []), *self.by, "value", "stderr", f"{self.confidence:.0%} interval"]
        lines = [[visible(str(word)) for word in head]]
        for row in zip(*(part.tolist() for part in shown), strict=True):
            words = [",".join(map(str, row[:lead]))] if lead else []
            words += [visible(names[cell]) for names, cell in zip(named, row[lead:], strict=True)]
            value, stderr, low, high = (float(a[row]) for a in (self.value, self.stderr, self.low, self.high))
            inside = "unknown" if np.isnan(low) else f"[{low:,.1f}, {high:,.1f}]"
            lines.append([*words, f"{value:,.1f}", "unknown" if np.isnan(stderr) else f"{stderr:,.2f}", inside])
        wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
        sides = ["<"] * (len(head) - 3) + [">"] * 3
        text = [
            "  ".join(f"{word:{side}{n}}" for word, side, n in zip(line, sides, wide, strict=True)) for line in lines
        ]
        more = [f"… {count - _SHOWN:,} more rows"] if count > _SHOWN else []
        return "\n".join([*text, *more])
