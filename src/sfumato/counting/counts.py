"""What counting hands on: the exact, private counts, and what the operator may want to know about them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.exact import positive_int


@dataclass(frozen=True, kw_only=True)
class CountReport:
    """What happened to the records. For the operator's eyes: exact, private, and never part of a release.

    ``rows`` were read; ``without_coordinates`` had a missing value (null or NaN) and were no records, nor
    were those with one written in a way that is ``unreadable`` (in files of text; None where types say what a value
    is), nor those ``without_entity`` where contributions are bounded;
    ``outside`` lay beyond the bounds or were not among the labels, and were clamped, put under the axis's
    ``other``, or dropped; ``cut`` were left out because their entity, one of ``entities_cut``, had more than
    its share. A count that is not known is None.
    """

    rows: int | None = None
    without_coordinates: int | None = None
    unreadable: int | None = None
    without_entity: int | None = None
    outside: int | None = None
    cut: int | None = None
    entities_cut: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """Exact counts in the shape of the domain: private, to be given to ``plan.publish`` and to nobody else.

    ``max_per_entity`` is the most records that one entity has among them, or None when nothing bounds it: a
    promise made from such counts speaks of one record. ``dropped`` says that records outside the bounds were left
    out, which not every policy hides; ``private`` is False when the records of an entity were chosen by seeded
    randomness. Printing shows neither the counts nor the report,
    since what is printed ends up in logs.
    """

    values: NDArray[np.int64]
    domain: Domain
    max_per_entity: int | None = None
    report: CountReport = field(default_factory=CountReport)
    dropped: bool = False
    private: bool = True

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        if values.dtype.kind not in "iu" or values.shape != self.domain.shape:
            raise InvalidInput(
                f"values of type {values.dtype} and shape {values.shape} are not counts on this domain. "
                f"Give whole numbers (int64) in the shape {self.domain.shape}. Nothing was drawn or recorded."
            )
        if values.dtype == np.uint64 and (values > np.iinfo(np.int64).max).any():
            raise InvalidInput("values hold a count beyond the range of int64. Nothing was drawn or recorded.")
        if self.max_per_entity is not None:
            positive_int(self.max_per_entity, "max_per_entity")
        values = values.astype(np.int64)  # a copy: nobody else can change it
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        bound = "" if self.max_per_entity is None else f", max_per_entity={self.max_per_entity}"
        return f"Counts({self.domain!r}{bound})"
