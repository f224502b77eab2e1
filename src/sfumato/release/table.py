"""A table of answers: one for every group, in the declared order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        head = ["value", "stderr", f"{self.confidence:.0%} interval"]

        def told(row: tuple[int, ...]) -> list[str]:
            value, stderr, low, high = (float(a[row]) for a in (self.value, self.stderr, self.low, self.high))
            inside = "unknown" if np.isnan(low) else f"[{low:,.1f}, {high:,.1f}]"
            return [f"{value:,.1f}", "unknown" if np.isnan(stderr) else f"{stderr:,.2f}", inside]

        lines, more = listed_rows(self.keys, np.shape(self.value), head, told)
        return "\n".join([*in_columns(lines, 3), *more])


def listed_rows(
    keys: Sequence[Key], shape: tuple[int, ...], head: Sequence[str], told: Callable[[tuple[int, ...]], list[str]]
) -> tuple[list[list[str]], list[str]]:
    """(the first rows of a table in words, what is said of all others): names of groups, and what is told of each."""
    count, lead = int(np.prod(shape)), len(shape) - len(keys)
    places = np.unravel_index(np.arange(min(count, _SHOWN)), shape) if count and shape else ()
    named = [key.names for key in keys]
    first = [*(["range"] if lead else []), *(key.axis.name for key in keys)]
    lines = [[visible(str(word)) for word in (*first, *head)]]
    for row in zip(*(part.tolist() for part in places), strict=True) if shape else [()]:
        words = [",".join(map(str, row[:lead]))] if lead else []
        words += [visible(names[cell]) for names, cell in zip(named, row[lead:], strict=True)]
        lines.append([*words, *told(row)])
    return lines, [f"… {count - _SHOWN:,} more rows"] if count > _SHOWN else []


def in_columns(lines: Sequence[Sequence[str]], numbers: int, words: int = 0) -> list[str]:
    """Rows of words in columns of one width: names first, then so many columns of numbers, and of words."""
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = ["<"] * (len(wide) - numbers - words) + [">"] * numbers + ["<"] * words
    return [
        "  ".join(f"{word:{side}{n}}" for word, side, n in zip(line, sides, wide, strict=True)).rstrip()
        for line in lines
    ]
