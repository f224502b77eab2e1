"""Rehearsing a data-dependent mechanism on data that is already public.

The error of such a mechanism depends on the data. It may be guessed from public data of the same kind, or from an
earlier release, by running the mechanism on it with seeded noise and comparing. It must never be guessed from the
private data, not even from old private data: the choice would then tell something about them, uncharged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.mechanism import Mechanism
from sfumato.noise import SeededSource
from sfumato.workload import Workload

REHEARSALS = 5


def public_counts(like: Any, domain: Domain) -> NDArray[np.int64]:
    """Whole counts in the domain's shape, from an array or an earlier release."""
    if hasattr(like, "adjusted") and hasattr(like, "domain"):
        if like.domain != domain:
            raise InvalidInput(f"like is a release on {like.domain!r}, the plan is for {domain!r}.")
        if not like.private:
            raise InvalidInput(
                "like is a release made with seeded randomness, which is not private. Give a private one."
            )
        like = like.adjusted(non_negative=True, integers=True).counts
    array = np.asarray(like)
    if array.shape != domain.shape or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise InvalidInput(
            f"like must be public counts in the shape {domain.shape}, or an earlier release on this domain."
        )
    return np.maximum(np.rint(array), 0).astype(np.int64)


def rehearsed_error(mechanism: Mechanism, like: NDArray[np.int64], workload: Workload) -> float:
    """The mean squared error over the workload: where the law of the noise is known, its part exactly and the bias from
    a run without noise; elsewhere averaged over REHEARSALS runs on public counts.
    """
    domain = mechanism.policy.domain
    total = int(like.sum()) if mechanism.policy.total_is_public else None
    linear = mechanism.linear
    if linear is not None:
        smooth = linear.estimate(linear.values(like.ravel()), total)
        bias = workload.mean_square((smooth - like.ravel()).reshape(domain.shape), domain)
        return bias + linear.model.expected_error(workload, domain)
    errors = []
    for seed in range(REHEARSALS):
        estimates = mechanism.run(like.ravel(), total, SeededSource(seed))
        errors.append(workload.mean_square((estimates - like.ravel()).reshape(domain.shape), domain))
    return float(np.mean(errors))
