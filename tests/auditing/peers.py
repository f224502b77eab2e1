"""Mechanisms of others as functions of counts, for the auditor to run.

`published_dawa_partition` is *not* the code of dpcomp_core, which is in no registry of packages: it is the first stage
of DAWA (Li, Hay, Miklau, Wang: VLDB 2014) restated from what that package publishes, in three points that the paper's
proof does not cover. The cost of a run of cells is the L1 deviation from its mean plus a penalty of 1/ε₂; runs of one
cell get no noise; others get Laplace noise of scale (2 - 1/length - 1/n)/ε₁, half of what the deviation from the mean
needs when a count changes by one; and noisy costs are clamped from below.
"""

from __future__ import annotations

import random

import numpy as np


def published_dawa_partition(counts, epsilon, ratio=0.5, rng=random):
    """The first cells of the runs that are cheapest together, as dpcomp_core's DAWA finds them."""
    x = [int(one) for one in np.asarray(counts).ravel()]
    n, first, second = len(x), epsilon * ratio, epsilon * (1 - ratio)
    penalty = 1 / second
    best, cut = [0.0] + [float("inf")] * n, [0] * (n + 1)
    for end in range(1, n + 1):
        length = 1
        while length <= end:  # runs of 1, 2, 4, … cells, wherever they begin
            cells = x[end - length : end]
            mean = sum(cells) / length
            cost = sum(abs(cell - mean) for cell in cells) + penalty
            if length > 1:
                scale = (2 - 1 / length - 1 / n) / first
                cost += scale * (rng.expovariate(1) - rng.expovariate(1))
            total = best[end - length] + max(cost, penalty)
            if total < best[end]:
                best[end], cut[end] = total, end - length
            length *= 2
    starts, at = [], n
    while at:
        at = cut[at]
        starts.append(at)
    return tuple(reversed(starts))


def published_dawa(counts, epsilon, ratio=0.5, rng=random):
    """Both stages, with the simplest second one: a noisy total for every run, shared out evenly."""
    x = np.asarray(counts).ravel()
    starts = published_dawa_partition(x, epsilon, ratio, rng)
    estimates, scale = np.zeros(len(x)), 1 / (epsilon * (1 - ratio))
    for start, stop in zip(starts, (*starts[1:], len(x)), strict=True):
        noisy = x[start:stop].sum() + scale * (rng.expovariate(1) - rng.expovariate(1))
        estimates[start:stop] = noisy / (stop - start)
    return estimates
