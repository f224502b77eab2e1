"""Random words for audits: many, fast, from a seed, and never for a release."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class AuditSource:
    """Fast random words from a seed. For audits alone: `private` is False, and no ledger or vault would take it."""

    private = False

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words."""
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)
