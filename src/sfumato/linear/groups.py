"""Cells in groups, given as the group of every cell: their sums, and the runs of cells that they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Integers


def summed(values: NDArray[Any], of: Integers) -> NDArray[Any]:
    """The sums over the groups 0, 1, … along the last axis."""
    order = None if (np.diff(of) >= 0).all() else np.argsort(of, kind="stable")
    along = of if order is None else of[order]
    first = np.flatnonzero(np.concatenate([[True], np.diff(along) > 0]))
    return np.add.reduceat(values if order is None else values[..., order], first, axis=-1)


def runs_of(of: Integers) -> tuple[Integers, Integers]:
    """The first cell of every run of cells of one group, and that after the last: in the order of the cells."""
    first = np.flatnonzero(np.concatenate([[True], np.diff(of) != 0]))
    return first, np.append(first[1:], len(of))


def some_groups(count: int, most: int) -> Integers:
    """At most so many of the groups, spread evenly by a rule that knows nothing but their number."""
    return np.arange(count) if count <= most else np.arange(most) * count // most
