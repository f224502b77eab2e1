"""The cell of every record, one by one, for what needs more than counts; on the engines that counting takes.

Memory grows with the number of records, eight bytes each. A value that an axis of labels does not have, and has no
place for, is no refusal here: such a record lies in none of the cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.counting.batches import Batches
from sfumato.counting.choice import choose_columns
from sfumato.counting.inputs import Database, open_view
from sfumato.counting.place import Placer
from sfumato.counting.report import CountReport
from sfumato.domain import Axis, Domain, Labels
from sfumato.errors import InvalidInput
from sfumato.naming import nearest

NOWHERE = -1
"""The cell of a record that lies in none."""


def locate_records(
    data: Any, domain: Domain, columns: Mapping[str, str] | None = None
) -> tuple[NDArray[np.int64], CountReport]:
    """The flat cell of every record that has values, NOWHERE included, and the report.

    A column has the name of its axis unless `columns` says otherwise.
    """
    given = dict(columns or {})
    for axis in given:
        if axis not in domain.names:
            raise InvalidInput(
                f"columns={given!r} names the axis {axis!r}; the axes are {', '.join(map(repr, domain.names))}."
                f"{nearest(axis, domain.names)} Nothing was drawn or recorded."
            )
    chosen = choose_columns(domain, (None, None, None), given, None)
    open_ended = widened(domain)
    cells: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    rows = missing = outside = 0
    with closing(Database()) as database:
        view = open_view(data, chosen.fields(open_ended), database)
        placer = Placer(open_ended, drop=False)
        for batch in Batches(view, open_ended, database, entity=None):
            placed, _, beyond = placer(batch)
            rows, missing, outside = rows + len(batch), missing + len(batch) - len(placed), outside + beyond
            cells.append(_narrowed(placed, open_ended, domain))
    return np.concatenate(cells), CountReport(rows=rows, without_coordinates=missing, outside=outside)


def locate_values(values: ArrayLike | Sequence[ArrayLike], domain: Domain) -> NDArray[np.int64]:
    """The same for arrays: one for each axis in a tuple, or a plain one on a single axis."""
    open_ended = widened(domain)
    return _narrowed(open_ended.locate(values), open_ended, domain)


def widened(domain: Domain) -> Domain:
    """The domain with one more label on every axis of labels that has no place for the rest."""
    return Domain(tuple(map(_with_rest, domain.axes)), domain.factors)


def _with_rest(axis: Axis) -> Axis:
    if not isinstance(axis, Labels) or not axis.leaves_out:
        return axis
    numbers = iter(range(axis.cells + 1))
    free: dict[type, Any] = {str: map("rest {}".format, numbers), int: numbers, bool: iter((False, True))}
    rest = next((label for label in free[axis.kind] if label not in axis.labels), None)
    return axis if rest is None else Labels(axis.name, (*axis.labels, rest), other=rest)


def _narrowed(cells: NDArray[np.int64], open_ended: Domain, domain: Domain) -> NDArray[np.int64]:
    """Cells of the domain itself, NOWHERE for those that only the wider one has."""
    if open_ended == domain:
        return cells
    index = np.unravel_index(np.maximum(cells, 0), open_ended.shape)
    inside = (cells >= 0) & np.logical_and.reduce([i < n for i, n in zip(index, domain.shape, strict=True)])
    own = np.ravel_multi_index([np.minimum(i, n - 1) for i, n in zip(index, domain.shape, strict=True)], domain.shape)
    return np.where(inside, own, NOWHERE)
