"""What a release under one policy costs an account that is kept under another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import PolicyMismatch
from sfumato.policies.distance import search, to_absent
from sfumato.policies.longest import longest_way

if TYPE_CHECKING:
    from sfumato.policies.policy import Policy


def exchange_rate(account: Policy, release: Policy) -> int:
    """The largest distance in the release's graph between the ends of an edge of the account's policy.

    A release that is ε-private under its own policy hides a change along a path of k of its edges at k·ε. An account
    promises something about each of *its* edges, and so pays ε times the longest such path: 1 where the release's
    policy contains the account's, `n - 1` for a line under replace-one. Where an edge of the account has no path at
    all (a record appears, and the release's policy does not hide that) there is no such price. Paths through ⊥ are
    not always looked for on large domains; the rate is then too high, never too low.
    """
    if account == release:
        return 1
    moves = account.moves
    universal = (moves.join_all or not moves.exist) and (account.absent is None or account.hides_presence)
    if account.domain != release.domain and not universal:
        raise PolicyMismatch(
            f"the account's policy ({account.describe()}) lives on the cells of {account.domain!r}, the release on "
            f"{release.domain!r}: their edges cannot be compared. Use the account's domain, or another account."
        )
    largest = 0.0
    if account.absent is not None:
        everywhere = account.hides_presence
        largest = release.eccentricity if everywhere else _masked(account, release)
    if account.moves_exist or moves.join_all:  # replace-one says the same on one cell as on many
        largest = max(largest, _moved(account, release))
    if math.isinf(largest):
        raise PolicyMismatch(
            f"the account promises to hide that {account.describe()}; a release that hides only that "
            f"{release.describe()} says nothing about some of these changes, at any price. "
            "Nothing was drawn or recorded."
        )
    return max(int(largest), 1)


def _masked(account: Policy, release: Policy) -> float:
    return float(to_absent(release, np.flatnonzero(account.absent)).max())  # type: ignore[arg-type]


def _moved(account: Policy, release: Policy) -> float:
    if account.moves.join_all:
        return release.diameter
    if release.moves.join_all:
        return 1
    if account.moves.stencil is not None and release.moves.stencil is not None:
        direct = longest_way(account.moves, release.moves, account.domain.shape)
        return min(direct, release.diameter)
    if not release.moves.exist:
        return 2 * release.eccentricity
    pairs = account.moves.edges(account.domain.shape)
    if not release.moves.listed:
        return max(release.distance(int(u), int(v)) for u, v in pairs)
    sources, inverse = np.unique(pairs[:, 0], return_inverse=True)
    largest = 0.0
    for start in range(0, len(sources), 512):
        table = search(release, [int(s) for s in sources[start : start + 512]])
        chosen = (inverse >= start) & (inverse < start + 512)
        largest = max(largest, float(table[inverse[chosen] - start, pairs[chosen, 1]].max()))
    return largest
