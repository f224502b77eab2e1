"""Estimates made to look like counts: non-negative, whole, still summing to a public total. Convenient, and biased."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.errors import InvalidInput

_ROUNDED = "estimates were rounded to whole numbers"
_NO_ERRORS = "the release's standard errors no longer apply"


@dataclass(frozen=True, eq=False)
class Adjusted:
    """Adjusted counts and what the adjustment did to them."""

    counts: NDArray[np.float64]
    note: str

    def __repr__(self) -> str:
        return f"Adjusted({' × '.join(map(str, self.counts.shape))} cells: {self.note})"


def without_negative(counts: Floats, *, total_known: bool, integers: bool) -> Adjusted:
    """Counts that were made non-negative, from the whole downwards, and what that did."""
    kept = "the total is kept" if total_known else "the estimated total is kept"
    notes = [
        "negative estimates were removed, so empty cells and sums of them are biased upwards, and full cells "
        f"downwards, since {kept}",
        *([_ROUNDED] if integers else []),
        _NO_ERRORS,
    ]
    return Adjusted(counts, "; ".join(notes))


def rounded(counts: Floats, total: int | None, *, integers: bool) -> Adjusted:
    """The nearest whole numbers with the same public total."""
    if not integers:
        raise InvalidInput(
            "adjusted() needs non_negative=True or integers=True; release.counts are the estimates themselves."
        )
    flat = counts.ravel()
    flat = np.rint(flat) if total is None else _round_keeping(flat, total)
    return Adjusted(flat.reshape(counts.shape), f"{_ROUNDED}; {_NO_ERRORS}")


def _round_keeping(values: Floats, total: int) -> Floats:
    """Largest remainders: round down, then raise those that lost most."""
    floor = np.floor(values)
    missing = total - int(floor.sum())
    raised = np.argsort(floor - values, kind="stable")[: max(min(missing, len(values)), 0)]
    floor[raised] += 1
    return floor
