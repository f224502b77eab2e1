"""Records that add a value to their cell, in whole steps.

The value is read as one more axis, in cells of a step each: so a null or NaN is no record, the bounds cut, rounding is
the same on every engine, and the choice by entity sees cell and value together. A number of a cell and a value is then
taken apart again: with 2²⁸ cells and 2²³ steps at most it fits doubles, in which some engines calculate. Sums are
64-bit integers, far from their end for any number of rows that is let in, none of which adds more than 2²² steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.tally import empty_tally
from sfumato.domain import Domain
from sfumato.domain.factor import Factor
from sfumato.errors import InvalidInput
from sfumato.linear.tables import Tables
from sfumato.values import Amounts, People, Values

MOST_ROWS = 1 << 40
"""Rows that may be added up, so that no sum leaves 64 bits: a cap that is declared, and far beyond any data."""


@dataclass(frozen=True)
class Summed:
    """What of every record is added to its cell."""

    domain: Domain
    amounts: Amounts

    def __post_init__(self) -> None:
        if self.amounts.name in (*self.domain.names, *(factor.name for factor in self.domain.factors)):
            raise InvalidInput(
                f"values sums {self.amounts.name!r}, and the domain has an axis of that name: nobody knows which "
                "column is meant. Nothing was counted. Give the axis another name."
            )

    @cached_property
    def read(self) -> Domain:
        """The domain that records are placed in: its last axis is the value."""
        factor = Factor(self.amounts.name, (self.domain.ndim,))
        return Domain((*self.domain.axes, self.amounts.axis), (*self.domain.factors, factor))

    def tally(self, tables: Tables | None = None) -> NDArray[np.int64]:
        """Zeros for the sums, and behind them for how many records each is the sum of."""
        return np.zeros(2 * len(empty_tally(self.domain, tables)), dtype=np.int64)

    def parted(self, numbers: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The cells of the domain, and what is added there."""
        cells, steps = np.divmod(numbers.astype(np.int64, copy=False), self.amounts.steps + 1)
        return cells, steps + self.amounts.least


def summed_by(domain: Domain, values: Values | None) -> Summed | None:
    """What is added up; None where records or people are counted."""
    if values is not None and not isinstance(values, (Amounts, People)):
        raise InvalidInput(
            f"values={type(values).__name__} are no values. Nothing was counted. Give sf.amounts('fare', clip=(0, 100),"
            " step=0.01) or sf.people('user', cells=3), or leave them out to count records."
        )
    return Summed(domain, values) if isinstance(values, Amounts) else None


def person_of(values: Values | None, entity: str | None, max_per_entity: int | None) -> tuple[str | None, int | None]:
    """The column that tells people apart, and the bound on what is counted of one."""
    if not isinstance(values, People):
        return entity, max_per_entity
    for name, given in (("entity", entity), ("max_per_entity", max_per_entity)):
        if given is not None:
            raise InvalidInput(
                f"{name}={given!r} and values={values.to_text()}: people are told apart by {values.column!r} and "
                f"bounded by {values.cells} cells. Nothing was counted. Leave {name} out."
            )
    return values.column, values.cells


def adder(
    tally: NDArray[np.int64], summed: Summed | None, tables: Tables | None
) -> Callable[[NDArray[np.integer]], None]:
    """What adds records to a tally, given by the numbers of their cells: one each; or their value, behind which the
    second half of the tally has one each.
    """

    def add_to(part: NDArray[np.int64], cells: NDArray[np.integer], weights: NDArray[np.int64] | int) -> None:
        if tables is None:
            np.add.at(part, cells, weights)
        else:
            tables.add(part, cells.astype(np.int64, copy=False), weights)

    def add(numbers: NDArray[np.integer]) -> None:
        if summed is None:
            add_to(tally, numbers, 1)
            return
        cells, weights = summed.parted(numbers)
        half = len(tally) // 2
        add_to(tally[:half], cells, weights)
        add_to(tally[half:], cells, 1)

    return add


def require_few(rows: int) -> None:
    """Refuse more rows than sums are laid out for."""
    if rows > MOST_ROWS:
        raise InvalidInput(
            f"more than {MOST_ROWS:,} rows are more than sums of whole numbers are laid out for. Nothing was counted. "
            "Count parts of the data, and publish each."
        )
