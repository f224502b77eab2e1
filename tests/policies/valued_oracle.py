"""What one change of a record does to sums, from the words of the relation alone: points and values are made up on a
fine lattice, changed by as much as the words allow, and rounded and located by rules written down here again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np


@dataclass(frozen=True)
class Change:
    """One term: how far the place moves, how far the value changes (infinite: to anything; None: not at all)."""

    place: float | None = None
    value: float | None = None


@dataclass(frozen=True)
class Words:
    """A relation in numbers."""

    terms: tuple[Change, ...] = ()
    presence: bool = False
    anything: bool = False


@cache
def differences(cells: int, clip: tuple[int, int], step: Fraction, words: Words) -> set[tuple[int, ...]]:
    """By which vectors sums (in steps, on a line of cells of width 1 from 0) differ when one record changes."""
    places = np.arange(0, cells * 4) / 4
    values = np.arange((clip[0] / step - 2) * 4, (clip[1] / step + 2) * 4 + 1) * float(step) / 4
    place, value = (part.ravel() for part in np.meshgrid(places, values, indexing="ij"))
    at = np.clip(np.floor(place), 0, cells - 1).astype(int)
    held = np.floor(np.clip(value, *map(float, clip)) / float(step) + 0.5).astype(int)
    found: set[tuple[int, ...]] = set()

    def add(pairs: np.ndarray) -> None:
        kinds = np.stack([at[pairs[0]], held[pairs[0]], at[pairs[1]], held[pairs[1]]], axis=-1)
        for u, v, there, after in np.unique(kinds, axis=0).tolist():
            d = [0] * cells
            d[u] -= v
            d[there] += after
            found.add(tuple(d))

    far, changed = abs(place[:, None] - place), abs(value[:, None] - value)
    for term in words.terms:
        moves = far == 0 if term.place is None else far < term.place
        changes = changed == 0 if term.value is None else changed < term.value
        add(np.stack(np.nonzero(moves & changes)))
    if words.anything:
        add(np.stack(np.nonzero(np.ones_like(far, dtype=bool))))
    if words.presence:
        for u, v in set(zip(at.tolist(), held.tolist(), strict=True)):
            found.add(tuple(v if i == u else 0 for i in range(cells)))
    return found


ANYTHING = math.inf
