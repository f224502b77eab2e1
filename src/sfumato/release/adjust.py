"""Estimates made to look like counts: non-negative, whole, still summing to a public total. Convenient, and biased."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Adjusted:
    """Adjusted counts and what the adjustment did to them."""

    counts: NDArray[np.float64]
    note: str

    def __repr__(self) -> str:
        return f"Adjusted({' × '.join(map(str, self.counts.shape))} cells: {self.note})"


def adjusted(counts: NDArray[np.float64], total: int | None, *, non_negative: bool, integers: bool) -> Adjusted:
    """The nearest non-negative counts with the same public total, rounded so that it stays."""
    if not (non_negative or integers):
        raise InvalidInput(
            "adjusted() needs non_negative=True or integers=True; release.counts are the estimates themselves."
        )
    flat = counts.ravel()
    notes = []
    if non_negative:
        flat = np.maximum(flat, 0.0) if total is None else _onto_simplex(flat, total)
        others = "" if total is None else ", and full cells downwards, since the total is kept"
        notes.append(f"negative estimates were removed, so empty cells and sums of them are biased upwards{others}")
    if integers:
        flat = np.rint(flat) if total is None else _round_keeping(flat, total)
        notes.append("estimates were rounded to whole numbers")
    return Adjusted(flat.reshape(counts.shape), "; ".join(notes) + "; the release's standard errors no longer apply")


def _onto_simplex(values: NDArray[np.float64], total: int) -> NDArray[np.float64]:
    """The nearest point (least squares) with non-negative entries and the given sum: everything is lowered by one
    level.
    """
    falling = np.sort(values)[::-1]
    excess = np.cumsum(falling) - total
    index = np.arange(1, len(values) + 1)
    kept = np.flatnonzero(falling - excess / index > 0)
    level = excess[kept[-1]] / index[kept[-1]] if len(kept) else float(falling[0])
    nearest = np.maximum(values - level, 0.0)
    nearest[np.argmax(nearest)] += total - nearest.sum()  # what rounding lost, where it weighs least
    return nearest


def _round_keeping(values: NDArray[np.float64], total: int) -> NDArray[np.float64]:
    """Largest remainders: round down, then raise those that lost most."""
    floor = np.floor(values)
    missing = total - int(floor.sum())
    raised = np.argsort(floor - values, kind="stable")[: max(min(missing, len(values)), 0)]
    floor[raised] += 1
    return floor
