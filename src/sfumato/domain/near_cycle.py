"""Which cells of a cycle hold two times less than δ apart.

**Without a change of clocks** time runs along the cells: from the end of one to the beginning of another lies what is
between them. Cells of one length all tell the same; months are shortest where February has 28 days.

**Across changes** the clocks jump. Take an instant t₁ in the stretch of one offset that ends at E, and t₂ in a later
one that begins at B. With p = E - t₁ > 0 and q = t₂ - B ≥ 0 they are p + (B - E) + q apart, and read on their clocks
where p before the end of the first stretch and q after the beginning of the second fall. Going back from the one and
on from the other cell by cell, a pair can be less than δ apart exactly when the infima of p and q with which its cells
are entered leave room: p + q + (B - E) < δ, each stretch being long enough to be entered so far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.domain.durations import DAY
from sfumato.domain.zones import Zone

Integers = NDArray[np.int64]
_PLAIN_YEARS = (11_323 * DAY, 12_418 * DAY)  # 2001 to 2003, none of them a leap year


@dataclass(frozen=True, eq=False)
class Turn:
    """How readings of a clock become cells: the number of the stretch that a reading lies in, and where that begins."""

    cells: int
    number: Callable[[Integers], Integers]
    start: Callable[[Integers], Integers]
    even: tuple[int, int] | None = None
    """How long every stretch is and where one begins, in microseconds; None where they differ, as months do."""


@lru_cache(maxsize=64)
def near_pairs(turn: Turn, zone: Zone | None, delta: int) -> Integers:
    """Every pair of cells u < v in which two times less than delta apart may lie, touching cells always."""
    near = np.eye(turn.cells, dtype=bool)
    low, high = (int(number) for number in turn.number(np.array(_PLAIN_YEARS)))
    edges = turn.start(np.arange(low, high + 1))
    begins, ends = edges[:-1], edges[1:]
    last = np.maximum(np.searchsorted(begins, ends + delta, side="left"), np.arange(len(ends)) + 2)
    for first in range(turn.cells):  # one round, each cell with those after it
        reached = np.arange(first, min(int(last[first]), first + turn.cells))
        near[(low + first) % turn.cells, (low + reached) % turn.cells] = True
    near |= near.T
    if zone is not None:
        _add_across(near, turn, zone, delta)
    pairs = np.argwhere(np.triu(near | near.T, 1))
    pairs.flags.writeable = False
    return pairs


def _add_across(near: NDArray[np.bool_], turn: Turn, zone: Zone, delta: int) -> None:
    """Mark the pairs of cells that instants before and after some changes of the zone's clocks reach."""
    changes, offsets = zone.changes, zone.offsets
    endless = np.iinfo(np.int64).max
    lengths = np.concatenate([[endless], np.diff(changes), [endless]])  # of the stretches of one offset
    back = np.arange(turn.cells)
    for i, end in enumerate(changes):
        shown = end + offsets[i]
        before = turn.number(shown - 1) - back
        p = np.where(back == 0, 0, shown - turn.start(before + 1))
        for j in range(i + 1, len(offsets)):
            room = delta - int(changes[j - 1] - end)
            if room <= 0:
                break
            shown = changes[j - 1] + offsets[j]
            after = turn.number(shown) + back
            q = np.where(back == 0, 0, turn.start(after) - shown)
            joined = (p[:, None] + q < room) & (p < lengths[i])[:, None] & (q < lengths[j])
            near[np.ix_(before % turn.cells, after % turn.cells)] |= joined
        if near.all():
            return
