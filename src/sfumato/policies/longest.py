"""How many moves of one kind the longest move of another kind takes, on the same cells.

Exact where both follow rules on a line or a grid, and where cells are few enough to search. Elsewhere it is what the
longest way of all takes: too high, never too low.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import TooLarge
from sfumato.linear import distinct_rows
from sfumato.policies.distance import search
from sfumato.policies.listed_moves import SEARCHED, Explicit
from sfumato.policies.moves import Moves

if TYPE_CHECKING:
    from sfumato.policies.policy import Policy

MOST_LOOKED_AT = 100_000_000  # cells, over all steps along a line
MOST_SEARCHED = 2_000_000  # edges


def longest_way(asked: Moves, given: Moves, shape: tuple[int, ...]) -> float:
    """The most moves of `given` that lead from one end of a move of `asked` to the other; infinite where none do."""
    if math.prod(shape) == 1 or not asked.exist:
        return 0.0
    if given.join_all:
        return 1.0
    if asked.join_all or not given.exist:
        return given.across(shape)
    by_offset = None if asked.stencil is None else given.stencil
    if by_offset is not None:
        try:
            return max((by_offset.steps(offset) for offset in longest_offsets(asked.sizes(shape))), default=0.0)
        except TooLarge:
            return given.across(shape)
    there, ahead = asked.ahead(shape), given.ahead(shape)
    if there is not None and ahead is not None:
        found = _along(there, ahead)
        return given.across(shape) if found is None else found
    return _searched(asked, given, shape)


def between_ends(asked: Moves, release: Policy) -> float:
    """The same for a whole policy whose cells move as one; ways through ⊥ count where they are found."""
    moves, shape = release.moves, release.domain.shape
    if not asked.exist or release.domain.size == 1:
        return 0.0
    if not moves.listed:
        rows = longest_offsets(asked.sizes(shape))
        return max((moves.direct(shape, 0, int(np.ravel_multi_index(tuple(row), shape))) for row in rows), default=0.0)
    if release.domain.size > SEARCHED:
        return release.diameter
    pairs = asked.edges(shape)
    table = search(release, list(range(release.domain.size)))
    return float(table[pairs[:, 0], pairs[:, 1]].max(initial=0))


def longest_offsets(offsets: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The offsets that no other one exceeds along every axis: the others are reached no later."""
    kept: list[NDArray[np.int64]] = []
    rows = distinct_rows(np.abs(offsets))
    if len(rows):  # of those that differ along the last axis alone the longest
        rows = rows[np.lexsort(rows.T[::-1])]
        rows = rows[np.append((rows[1:, :-1] != rows[:-1, :-1]).any(axis=1), True)]
    for offset in rows[np.argsort(-rows.sum(axis=1), kind="stable")]:
        if not any((other >= offset).all() for other in kept):
            kept.append(offset)
    return kept


def _along(there: NDArray[np.int64], ahead: NDArray[np.int64]) -> float | None:
    """How often the longest move ahead is made until everybody is there; None after very many."""
    at, left = np.arange(len(ahead)), there > np.arange(len(ahead))
    for count in range(max(1, MOST_LOOKED_AT // len(ahead))):
        if not left.any():
            return float(count)
        if (ahead[at[left]] == at[left]).any():
            return math.inf
        at = ahead[at]
        left = at < there
    return None


def _searched(asked: Moves, given: Moves, shape: tuple[int, ...]) -> float:
    size = math.prod(shape)
    try:
        pairs, ways = asked.edges(shape), given.edges(shape)
    except TooLarge:
        return given.across(shape)
    if size > SEARCHED or max(len(pairs), len(ways)) > MOST_SEARCHED:
        return given.across(shape)
    if len(pairs) == 0:
        return 0.0
    table = Explicit(ways).between(shape)
    return float(table[pairs[:, 0], pairs[:, 1]].max())
