"""What to expect of sorted points, and how many to publish together: from public figures alone.

A range is answered by counting the records below its two ends. Let u = n·ρ/ε be the noise of a single record in ranks,
with ρ the sensitivity as a share of the cells; a group of k records has noise u/k, and groups lie k ranks apart. In
units of k everything depends on t = u/k² alone, and the squared error of the number of records below a point is

    k²·γ            generalisation: how the k records of a group lie between its neighbours is not published
  + k²·a·tᵖ         noise, what isotonic regression leaves of it: p = 2 without its help, 4/3 where it does most.

The noise of n records in groups of k is that of n/k records at k·ε exactly, since both are n/k sorted means with noise
of the same scale. As a share of the records it is therefore `noise(ε, n/k)/kᵖ` with the noise without grouping; Fang
and Chang round the exponent to one. The minimum over k is closed: `k = c·√u`.

In d dimensions the border of a box cuts the curve into pieces as long as the error ℓ of a position (a share of the
records), about `(v/ℓ)^((d-1)/d)` of them for a box of volume v. By `bench/calibrate_sorted.py` the constants of noise
and grouping were fitted to synthetic points, those of the border to public maps and spaces of real records, which are
heaped up as synthetic ones are not: the mean over them. The model is a guess: in squared error real data have a quarter
to two and a half times what it says. The group size it leads to mostly costs little more than the best one, because
the minimum is flat.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.policies import Policy
from sfumato.workload import Workload

CAUTION = 2  # a plan says so many times the model, as of adaptive grids: a guess is weighed against what is known
SAMPLED = 1 << 12  # boxes over which an expected error is averaged

# Fitted on 2026-11-19 by `python bench/calibrate_sorted.py`.
GENERALISATION = 0.00697  # γ
NOISE = 1.05  # a
EXPONENT = 1.54  # p
CUT = 2.84  # how many errors ℓ long a range is when it has half of its squared error
BORDER = {1: 2.0, 2: 18.2, 3: 27.7}  # pieces of the curve that the border of a box cuts, for v = ℓ


def best_group(records: int, epsilon: float, relative_sensitivity: float) -> int:
    """How many records to publish together: the minimum of the model, at least one and at most all."""
    ranks = _ranks(records, epsilon, relative_sensitivity)
    factor = (NOISE * (EXPONENT - 1) / GENERALISATION) ** (1 / (2 * EXPONENT))
    return max(1, round(min(factor * math.sqrt(ranks), records)))


def rank_error(records: int, group: int, epsilon: float, relative_sensitivity: float) -> float:
    """The expected squared error of the number of records below a point."""
    ranks = _ranks(records, epsilon, relative_sensitivity)
    return group**2 * (GENERALISATION + NOISE * (ranks / group**2) ** EXPONENT)


def range_error(
    volumes: ArrayLike,
    *,
    records: int,
    group: int,
    epsilon: float,
    relative_sensitivity: float,
    dimensions: int = 1,
) -> NDArray[np.float64]:
    """The expected squared error of ranges that hold these shares of the domain."""
    volume = np.asarray(volumes, dtype=np.float64)
    square = rank_error(records, group, epsilon, relative_sensitivity)
    if records == 0 or square == 0:
        return np.zeros(volume.shape)
    pieces = volume * records / math.sqrt(square)  # v/ℓ
    cut = BORDER[dimensions] * pieces ** ((dimensions - 1) / dimensions)
    return square * cut * pieces / (pieces + CUT)


def _ranks(records: int, epsilon: float, relative_sensitivity: float) -> float:
    return records * relative_sensitivity / epsilon


def query_volumes(workload: Workload, policy: Policy) -> list[tuple[float, NDArray[np.float64]]] | None:
    """For every part of a workload its share, and the share of the domain that each query of a sample holds; None where
    queries are no boxes.
    """
    shape, shares = policy.domain.shape, workload.shares(policy.domain)
    if shares is None:
        return None
    found = []
    for share, part in shares:
        low, high = part.sample(shape, SAMPLED)
        found.append((share, np.asarray(((high - low) / np.array(shape)).prod(axis=-1))))
    return found
