"""A table of figures that are no counts: one row a group, in the domain's order, with intervals and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import Floats
from sfumato.reading import visible
from sfumato.release.keys import Key
from sfumato.release.table import in_columns, listed_rows


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sheet:
    """Values and the ends of their intervals: arrays with one dimension a name in `by`, or plain numbers for one."""

    value: Any
    low: Any
    high: Any
    confidence: float
    keys: tuple[Key, ...]
    about: str
    """What the figures are, in words."""
    statement: str
    """What was promised where they come from, in words."""

    @property
    def by(self) -> tuple[str, ...]:
        """The axes that the figures are grouped by."""
        return tuple(key.axis.name for key in self.keys)

    def _figures(self) -> dict[str, Any]:
        """The columns of a frame behind those of the groups."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def _words(self) -> Mapping[str, Any]:
        """Columns of words, of the shape of the values."""
        return {}

    def to_frame(self, kind: str = "arrow") -> Any:
        """One row a group: columns for what it is grouped by, then the figures and what is said of each. An Arrow
        table, or with ``"pandas"`` or ``"polars"`` a frame of theirs. What is not known, or not shown, is null.
        """
        from sfumato.release.frames import framed, rows_of

        table = rows_of(self.keys, np.shape(self.value), {**self._figures()})
        for name, words in self._words().items():
            import pyarrow as pa

            told = [word or None for word in np.asarray(words, dtype=object).ravel().tolist()]
            while name in table.column_names:
                name += "_"
            table = table.append_column(name, pa.array(told, pa.string()))
        return framed(table.replace_schema_metadata({"about": self.about, "guarantee": self.statement}), kind)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table of `to_frame`, for whatever takes Arrow by its PyCapsule interface."""
        return self.to_frame().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        value, low, high = (np.asarray(part, dtype=np.float64) for part in (self.value, self.low, self.high))
        words = [np.asarray(part, dtype=object) for part in self._words().values()]
        head = ["value", f"{self.confidence:.0%} interval", *self._words()]

        def told(row: tuple[int, ...]) -> list[str]:
            inside = "" if np.isnan(low[row]) else f"[{number(low[row])}, {number(high[row])}]"
            return [number(value[row]), inside, *(visible(str(part[row])) for part in words)]

        lines, more = listed_rows(self.keys, value.shape, head, told)
        return "\n".join([visible(self.about), *in_columns(lines, 2, len(words)), *more])


def number(value: float) -> str:
    """A figure as people read it: some digits, and no more."""
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1000 or value == 0:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def shaped(values: Floats, shape: tuple[int, ...]) -> Any:
    """Numbers in the shape of the groups; a plain number for a single one."""
    found = np.asarray(values, dtype=np.float64).reshape(shape)
    return float(found) if shape == () else found
