"""A population that nobody lives in: what stands for the data where something has to be chosen and nothing is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain

REFERENCE_RECORDS = 100_000
REFERENCE_CENTRES = 48


def reference_counts(domain: Domain) -> NDArray[np.int64]:
    """A population that nobody lives in: what a plan takes for data when it has to choose a width and is given none.

    REFERENCE_RECORDS records around a few dozen centres whose weights fall like 1/rank and whose spreads lie between a
    hundredth and a tenth of the domain: rough on every scale, as towns are. Fixed once and for all.
    """
    rng = np.random.default_rng(20140604)
    centres = rng.uniform(0.1, 0.9, (REFERENCE_CENTRES, domain.ndim))
    spread = 10 ** rng.uniform(-2, -1, REFERENCE_CENTRES)
    weight = 1 / np.arange(1, REFERENCE_CENTRES + 1)
    which = rng.choice(REFERENCE_CENTRES, REFERENCE_RECORDS, p=weight / weight.sum())
    points = centres[which] + spread[which, None] * rng.standard_normal((REFERENCE_RECORDS, domain.ndim))
    cells = [np.clip(points[:, i] * n, 0, n - 1).astype(np.int64) for i, n in enumerate(domain.shape)]
    return np.bincount(np.ravel_multi_index(cells, domain.shape), minlength=domain.size).reshape(domain.shape)


def reference_population(domain: Domain, records: int) -> NDArray[np.int64]:
    """So many records, spread like those: fixed for every number."""
    shape = reference_counts(domain)
    rng = np.random.default_rng(20140605)
    return rng.multinomial(records, shape.ravel() / shape.sum()).reshape(domain.shape)
