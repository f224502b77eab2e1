"""Counting inside the engine of the frame:
one expression, one group-by, and only the grouped result comes here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.hushing import hushed
from sfumato.counting.place import fixed_width
from sfumato.counting.report import CountReport
from sfumato.counting.summed import Summed, require_few
from sfumato.counting.tally import MISSING, UNREADABLE, empty_tally
from sfumato.domain import Domain
from sfumato.domain.labels import unknown_label
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.counting.tables import View


MOST_COMPARISONS = 512
"""Edges, runs of steps or changes of clocks of one axis beyond which no expression is made."""


def is_dear(domain: Domain) -> bool:
    """Whether an expression would compare every value with too many edges."""
    return any(axis.reads == "places" or axis.apart or axis.comparisons > MOST_COMPARISONS for axis in domain.axes)


def refuse_dear(domain: Domain) -> None:
    """Say so."""
    for axis in domain.axes:
        if axis.reads == "places" or axis.apart:
            raise InvalidInput(
                f"engine='native' has no expression for the {axis.what} of axis {axis.name!r}. Nothing was counted. "
                "Leave engine= out: the needed columns are then brought here, batch by batch."
            )
        if axis.comparisons > MOST_COMPARISONS:
            raise InvalidInput(
                f"engine='native' would compare every value with {axis.comparisons:,} edges of axis {axis.name!r}, "
                f"and an expression holds at most {MOST_COMPARISONS}. Nothing was counted. Leave engine= out: the "
                "needed columns are then brought here, batch by batch."
            )


def count_native(
    view: View, domain: Domain, *, drop: bool, summed: Summed | None = None
) -> tuple[NDArray[np.int64], CountReport]:
    """The flat counts or sums, and the report. A lazy frame stays lazy until its group-by is collected.

    Where a value is summed, `domain` is the one that records are placed in, and the group-by tells cell and value.
    """
    _zeros(domain, summed)  # or a refusal
    grouped = hushed("The records could not be counted", lambda: grouped_keys(view, domain), view.advice)
    return from_keys(grouped, view, domain, drop=drop, summed=summed)


def from_keys(
    grouped: Any, view: View, domain: Domain, *, drop: bool, summed: Summed | None = None
) -> tuple[NDArray[np.int64], CountReport]:
    """The same of a table of keys and how many rows have them."""
    tally = _zeros(domain, summed)
    keys, records = _whole_numbers(grouped["key"]), _whole_numbers(grouped["records"])
    if (keys == 2 * domain.size).any() and not drop:
        raise InvalidInput(unknown_label(" or ".join(a.name for a in domain.axes if a.reads == "labels")))
    unreadable = int(records[keys == UNREADABLE].sum()) if view.unreadable else None
    here = (keys >= 0) & (keys < domain.size)
    clamped = (keys >= domain.size) & (keys < 2 * domain.size)
    _add(tally, keys[here], records[here], summed)
    if not drop:
        _add(tally, keys[clamped] - domain.size, records[clamped], summed)
    require_few(int(records.sum()))
    return tally, CountReport(
        rows=int(records.sum()),
        without_coordinates=int(records[keys == MISSING].sum()),
        unreadable=unreadable,
        outside=int(records[keys >= domain.size].sum()),
    )


def grouped_keys(view: View, domain: Domain) -> Any:
    """An Arrow table of keys and how many rows have them."""
    import narwhals as nw

    from sfumato.counting.expression import record_keys

    grouped = record_keys(view.frame, domain, unreadable=view.unreadable).group_by("key").agg(nw.len().alias("records"))
    return (grouped.collect("pyarrow") if isinstance(grouped, nw.LazyFrame) else grouped).to_arrow()


def _add(tally: NDArray[np.int64], keys: NDArray[np.int64], records: NDArray[np.int64], summed: Summed | None) -> None:
    """So many records of each key into their cells: one each, or their value."""
    if summed is None:
        np.add.at(tally, keys, records)
        return
    cells, weights = summed.parted(keys)
    half = len(tally) // 2
    np.add.at(tally[:half], cells, records * weights)
    np.add.at(tally[half:], cells, records)


def _whole_numbers(column: Any) -> NDArray[np.int64]:
    return fixed_width(column.cast("int64").combine_chunks(), np.int64)


def _zeros(domain: Domain, summed: Summed | None) -> NDArray[np.int64]:
    return empty_tally(domain) if summed is None else summed.tally()
