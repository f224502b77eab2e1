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
from sfumato.mechanism import Mechanism, SummedArea
from sfumato.noise import SeededSource
from sfumato.workload import GivenRanges, MatrixQueries, ProductQueries, Workload

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
    """The mean squared error over the workload, averaged over REHEARSALS runs on public counts."""
    domain = mechanism.policy.domain
    total = int(like.sum()) if mechanism.policy.total_is_public else None
    errors = []
    for seed in range(REHEARSALS):
        estimates = mechanism.run(like.ravel(), total, SeededSource(seed))
        errors.append(mean_square((estimates - like.ravel()).reshape(domain.shape), workload, domain))
    return float(np.mean(errors))


def mean_square(error: NDArray[np.float64], workload: Workload, domain: Domain) -> float:
    """The mean over the workload of the squared error of a query, for known errors of the cells."""
    if isinstance(workload, MatrixQueries):
        return float(((workload.matrix @ error.ravel()) ** 2).mean())
    if isinstance(workload, ProductQueries) and domain.ndim == 1:
        return float(workload.kind.mean_square(error))
    if isinstance(workload, ProductQueries):
        axes = [workload.kind.sample(n) for n in domain.shape]
        rng = np.random.default_rng(0)  # the axes' samples are each in order: shuffled, they become boxes
        order = [rng.permutation(len(low)) for low, _ in axes]
        low = np.stack([a[0][o] for a, o in zip(axes, order, strict=True)], axis=-1)
        high = np.stack([a[1][o] for a, o in zip(axes, order, strict=True)], axis=-1)
    elif isinstance(workload, GivenRanges):
        low, high = domain.fractional(workload.ranges)
    else:
        raise InvalidInput(f"workload of type {type(workload).__name__} is not known.")
    return float((SummedArea(error).fractional_sums(low, high) ** 2).mean())
