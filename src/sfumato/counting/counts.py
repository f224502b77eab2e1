"""What counting hands on: the exact, private counts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.report import CountReport
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.exact import positive_int
from sfumato.linear.tables import Tables
from sfumato.values import Values

__all__ = ["CountReport", "Counts"]


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """Exact counts in the shape of the domain: private, to be given to ``plan.publish`` and to nobody else.

    Of a product too large to hold they are those of ``tables`` of some of its factors, one after the other in
    ``values``.

    ``max_per_entity`` is the most records that one entity has among them, or None when nothing bounds it: a
    promise made from such counts speaks of one record. ``dropped`` says that records outside the bounds were left
    out, which not every policy hides; ``private`` is False when the records of an entity were chosen by seeded
    randomness. ``counted`` says what they are where they are no numbers of records: sums in whole steps of a value, or
    distinct people; ``numbers`` of how many records each is the sum. Printing shows neither the counts nor the report,
    since what is printed ends up in logs.

    >>> sf.Counts(np.array([3, 0, 5, 1]), sf.Line(0, 4, cells=4))
    Counts(Line(0, 4, cells=4))
    """

    values: NDArray[np.int64]
    domain: Domain
    max_per_entity: int | None = None
    report: CountReport = field(default_factory=CountReport)
    dropped: bool = False
    private: bool = True
    tables: Tables | None = None
    counted: Values | None = None
    numbers: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        shape = self.domain.shape if self.tables is None else (self.tables.length,)
        if values.dtype.kind not in "iu" or values.shape != shape:
            raise InvalidInput(
                f"values of type {values.dtype} and shape {values.shape} are not counts on this domain. "
                f"Give whole numbers (int64) in the shape {shape}. Nothing was drawn or recorded."
            )
        if self.tables is not None and self.tables.shape != self.domain.shape:
            raise InvalidInput("tables are those of another domain. Nothing was drawn or recorded.")
        if values.dtype == np.uint64 and (values > np.iinfo(np.int64).max).any():
            raise InvalidInput("values hold a count beyond the range of int64. Nothing was drawn or recorded.")
        if self.max_per_entity is not None:
            positive_int(self.max_per_entity, "max_per_entity")
        values = values.astype(np.int64)  # a copy: nobody else can change it
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        if self.numbers is not None:
            numbers = Counts(self.numbers, self.domain, tables=self.tables).values
            object.__setattr__(self, "numbers", numbers)

    def __repr__(self) -> str:
        bound = "" if self.max_per_entity is None else f", max_per_entity={self.max_per_entity}"
        tables = "" if self.tables is None else f", {len(self.tables.sets)} tables"
        counted = "" if self.counted is None else f", values={self.counted.to_text()}"
        return f"Counts({self.domain!r}{bound}{tables}{counted})"
