"""How two columns of an operator differ, up to what the L1 norm can see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.linear.rows import distinct_rows


@dataclass(frozen=True, eq=False)
class PairTypes:
    """Every way in which two columns u and v of an operator can stand beside each other.

    Row r of the operator shows the pair (A[r, u], A[r, v]). The L1 distance of the two columns, and the distance of the
    columns of any Kronecker product in which they take part, depend only on how often each pair of values occurs.
    `values` has one row a pair of values, `counts[t, k]` says how often pair k occurs in type t. A pair may be
    replaced by its negative, which no absolute value can see.
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: object, counts: object) -> PairTypes:
        """Types from anything array-like, each kept once."""
        rows = np.atleast_2d(np.asarray(counts, dtype=np.int64))
        return cls(values=np.asarray(values).reshape(-1, 2), counts=distinct_rows(rows))

    def joined(self, other: PairTypes) -> PairTypes:
        """The types of both, over one list of values."""
        values = np.concatenate([self.values, other.values])
        left = np.pad(self.counts, ((0, 0), (0, len(other.values))))
        right = np.pad(other.counts, ((0, 0), (len(self.values), 0)))
        return PairTypes.of(values, np.concatenate([left, right]))
