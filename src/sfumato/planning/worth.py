"""Whether a plan tells more than no data would.

Who knows how many records there are can answer every range without a look at them: their number times the share of the
cells that the range holds. An accuracy says little unless it is compared with that. How far off it is depends on the
data, so it is taken on public counts, or on as many records of a population that nobody lives in.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain
from sfumato.mechanism import reference_population
from sfumato.workload import Workload

LITTLE = 0.5  # of the error of the even guess; a plan that has more tells little


def even_error(domain: Domain, workload: Workload, like: NDArray[np.int64] | None, records: int | None) -> float | None:
    """The mean squared error of spreading the records evenly over the cells: on public counts, or on a population of so
    many records; None where there is neither, or where cells lie in no order in which people could live.
    """
    if like is None and records is not None and domain.is_spatial:
        like = reference_population(domain, records)
    if like is None:
        return None
    counts = like.reshape(domain.shape)
    return workload.mean_square(counts - counts.sum() / counts.size, domain)


def in_words(error: float, even: float, rehearsed: bool) -> str:
    """How much of the error of the even guess is left."""
    where = "the counts given as like" if rehearsed else "as many records of a made-up population"
    beside = f"spreading the records evenly, without a look at them, has an error of {short(even)} on {where}"
    if error >= even:
        return (
            f"nothing can be told at this ε: {beside}, no more than this plan. Use a larger ε, coarser questions, or "
            "more records"
        )
    if error > LITTLE * even:
        return f"little can be told at this ε: {beside}, and this plan {error / even:.0%} of that"
    return f"{beside}" + (f", {short(even / error)} times that of this plan" if error > 0 else "")


def short(value: float) -> str:
    """An error in a line of words."""
    return f"{value:,.0f}" if 1000 <= value < 1e15 else f"{value:.3g}"
