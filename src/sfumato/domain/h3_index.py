"""Indices of H3 as numbers of 64 bits: which are cells, of what resolution, and inside which coarser cell.

Bits, from the highest: one zero, four of the mode (1: a cell), three zeros, four of the resolution, seven of the base
cell (0 to 121), then three for the child taken at each of fifteen resolutions, 7 at those finer than its own. A
pentagon has no child 1. All is arithmetic on arrays; no package is needed.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.uint64]

FINEST = 15
_BASES = 122
_PENTAGONS = np.array([4, 14, 24, 38, 49, 58, 63, 72, 83, 97, 107, 117], np.uint64)
_WRITTEN = re.compile(r"\s*(?:([0-9]{18,19})|(?:0[xX])?([0-9a-fA-F]{1,16}))\s*")
"""In hexadecimal, 15 digits for every cell, or as a decimal number, of which every cell has 18 or 19."""


def resolutions(cells: Indices) -> NDArray[np.int64]:
    """What the four bits of the resolution say."""
    return ((cells >> np.uint64(52)) & np.uint64(15)).astype(np.int64)


def are_cells(cells: Indices) -> NDArray[np.bool_]:
    """Which numbers are cells of H3, of whatever resolution."""
    own = resolutions(cells)
    base = (cells >> np.uint64(45)) & np.uint64(127)
    good: NDArray[np.bool_] = (cells >> np.uint64(56) == 8) & (base < _BASES)  # one zero, the mode 1, three zeros
    leading = np.isin(base, _PENTAGONS)  # no child so far but the middle one of a pentagon
    for resolution in range(1, FINEST + 1):
        child = (cells >> np.uint64(3 * (FINEST - resolution))) & np.uint64(7)
        inside = resolution <= own
        good &= np.where(inside, child != 7, child == 7)
        good &= ~(leading & inside & (child == 1))
        leading &= child == 0
    return good


def parents_at(cells: Indices, resolution: int) -> Indices:
    """The cell of this resolution of which each one is a part by its index; of none finer than this one."""
    finer = np.uint64((1 << (3 * (FINEST - resolution))) - 1)
    kept = cells & ~np.uint64(15 << 52)
    return (kept | finer) | np.uint64(resolution << 52)


def written(cells: Indices) -> list[str]:
    """As H3 writes them: in hexadecimal."""
    return [format(cell, "x") for cell in cells.tolist()]


def read_texts(texts: list[Any]) -> Indices:
    """Numbers of texts in hexadecimal, or decimal; 0, which is no cell, of anything else."""
    found = np.zeros(len(texts), np.uint64)
    for i, text in enumerate(texts):
        match = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
        if match is not None:
            found[i] = int(match[1]) if match[1] else int(match[2], 16)
    return found
