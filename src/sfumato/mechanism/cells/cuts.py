"""Binary strategies as cuts: which sets of cells a change of one record can move.

A binary strategy is a collection of sets of cells, and publishes how many records lie in each. A set *cuts* an edge of
the policy when exactly one of its ends lies in the set; an edge to ⊥, when its cell does. A change along the edge moves
the counts of the sets that cut it, each by one, and no other. The sensitivity of the strategy is therefore the largest
number of cuts over all edges, and a set that cuts only edges with fewer cuts than that is published for nothing.

Fang, Chang: Differential privacy with δ-neighbourhood for spatial and dynamic datasets (ASIA CCS 2014), section 5.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.policies import Policy

Bools = NDArray[np.bool_]


def cuts(policy: Policy, sets: Any) -> scipy.sparse.csr_matrix:
    """Which set cuts which edge: one row a set, one column an edge in the order of `policy.edges()`, ones where it
    does.

    `sets` is a matrix of zeros and ones, dense or sparse, with one row a set and one column a cell.
    """
    table = binary(policy, sets)
    tail, head = policy.edges().T
    outside = scipy.sparse.csc_matrix((table.shape[0], 1), dtype=np.int64)
    padded = scipy.sparse.hstack([table, outside], format="csc")  # ⊥ is the last column, number -1: in no set
    crossed = abs(padded[:, tail] - padded[:, head % padded.shape[1]])
    return scipy.sparse.csr_matrix(crossed)


def cut_sensitivity(policy: Policy, sets: Any) -> int:
    """The largest number of sets that one edge is cut by: the sensitivity of the strategy under the policy, exactly."""
    return int(np.asarray(cuts(policy, sets).sum(axis=0)).max(initial=0))


def crossings(members: Bools, edges: NDArray[np.int64]) -> Bools:
    """As `cuts`, for arrays of true and false and the given edges; what the search asks a thousand times."""
    tail, head = edges.T
    inside = members[..., head] & (head >= 0)
    return np.asarray(members[..., tail] != inside)


def binary(policy: Policy, sets: Any) -> scipy.sparse.csc_matrix:
    """Sets as a sparse matrix of zeros and ones, or a clear refusal."""
    try:
        table = scipy.sparse.csc_matrix(sets)
    except (TypeError, ValueError) as error:
        raise InvalidInput("sets must be a matrix of zeros and ones: one row a set, one column a cell.") from error
    if table.shape[1] != policy.domain.size:
        raise InvalidInput(
            f"sets has {table.shape[1]} columns, but the domain has {policy.domain.size} cells: one column a cell."
        )
    if not np.isin(table.data, (0, 1)).all():
        raise InvalidInput("sets holds entries other than 0 and 1: a cell is in a set or it is not.")
    return table.astype(np.int64)
