"""One number for each cell, and raw points counted into it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.counting.counts import CountReport, Counts
from sfumato.domain import Domain
from sfumato.errors import TooLarge

MAX_CELLS = 1 << 28
"""A dense array of more cells than this (2 GB) is refused before anything is read."""

_BLOCK = 1 << 17


def empty_tally(domain: Domain) -> NDArray[np.int64]:
    """A flat array of zeros, or a refusal when it could not be held."""
    if domain.size > MAX_CELLS:
        raise TooLarge(
            f"The domain has {domain.size} cells; counting holds one number for each and allows {MAX_CELLS}. "
            "Nothing was read. Use fewer cells."
        )
    return np.zeros(domain.size, dtype=np.int64)


def count_points(points: ArrayLike | Sequence[ArrayLike], domain: Domain) -> Counts:
    """Count raw points: an array with one row each, or a tuple with one array for each axis.

    Infinities and points outside are clamped to the box. NaN is refused: an array of points has a place for
    every record, so a missing one is a mistake. Memory beyond the points does not grow with their number.
    """
    tally = empty_tally(domain)
    columns = domain.columns(points)
    for start in range(0, len(columns[0]), _BLOCK):
        np.add.at(tally, domain.locate(tuple(c[start : start + _BLOCK] for c in columns)), 1)
    return Counts(tally.reshape(domain.shape), domain, report=CountReport(rows=len(columns[0])))
