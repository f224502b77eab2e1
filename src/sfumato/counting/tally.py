"""One number for each cell, and raw points counted into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.counting.counts import Counts
from sfumato.counting.report import CountReport
from sfumato.domain import Domain
from sfumato.domain.order import other_box
from sfumato.errors import TooLarge
from sfumato.linear.tables import Tables

MAX_CELLS = 1 << 28
"""A dense array of more cells than this (2 GB) is refused before anything is read."""

MISSING, UNREADABLE = -1, -2
"""In the place of the cells of rows that are no records: a coordinate is null or NaN, or cannot be read."""

_BLOCK = 1 << 17


def empty_tally(domain: Domain, tables: Tables | None = None) -> NDArray[np.int64]:
    """A flat array of zeros, one for each cell of the domain or of its tables, or a refusal when it could not be
    held.
    """
    if tables is not None:
        if tables.length > MAX_CELLS:
            raise TooLarge(
                f"The tables have {tables.length} cells together; counting holds one number for each and allows "
                f"{MAX_CELLS}. Nothing was read. Ask for tables of fewer factors."
            )
        return np.zeros(tables.length, dtype=np.int64)
    if domain.size > MAX_CELLS:
        several = " Or count tables of a few factors each: sf.count(…, tables=sf.marginals(2))."
        raise TooLarge(
            f"The domain has {domain.size} cells; counting holds one number for each and allows {MAX_CELLS}. "
            f"Nothing was read. Use fewer cells.{several if len(domain.factors) > 1 else ''}"
        )
    return np.zeros(domain.size, dtype=np.int64)


def count_points(points: ArrayLike | Sequence[ArrayLike], domain: Domain) -> Counts:
    """Count raw points: an array with one row each, or a tuple with one array for each axis.

    Infinities and points outside are clamped to the box. NaN is refused: an array of points has a place for
    every record, so a missing one is a mistake. Memory beyond the points does not grow with their number.
    """
    tally, outside = empty_tally(domain), 0
    columns = domain.columns(points)
    for start in range(0, len(columns[0]), _BLOCK):
        block = tuple(c[start : start + _BLOCK] for c in columns)
        cells = domain.locate(block)
        np.add.at(tally, cells[cells >= 0] if domain.apart else cells, 1)
        outside += _outside(block, domain)
    report = CountReport(rows=len(columns[0]), outside=outside if any(axis.ordered for axis in domain.axes) else None)
    return Counts(tally.reshape(domain.shape), domain, report=replace(report, in_other_box=in_other_box(tally, domain)))


def in_other_box(tally: NDArray[np.int64], domain: Domain) -> Fraction | None:
    """The share of the records in the cells of the box that the bounds describe when read in the other order.

    None where that reading makes no sense, or where its box is no small part of the domain: nothing follows from it.
    """
    box = other_box(domain)
    total = int(tally.sum())
    if box is None or total == 0:
        return None
    return Fraction(int(tally.reshape(domain.shape)[box].sum()), total)


def _outside(columns: tuple[NDArray[Any], ...], domain: Domain) -> int:
    """How many points lie beyond the bounds of an axis."""
    beyond = np.zeros(len(columns[0]), np.bool_)
    for axis, column in zip(domain.axes, columns, strict=True):
        beyond |= axis.outside(column)
    return int(np.count_nonzero(beyond))
