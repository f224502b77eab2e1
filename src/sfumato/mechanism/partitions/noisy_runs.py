"""Runs of equal counts, found in noisy counts: DAWA's two steps the other way round, for histograms.

**Promise.** ε-private under the policy, for one record, with a proof of one line: noise is added to every count, as
`identity` adds it, and all that follows sees nothing but noisy counts. Which runs come out is a function of what is
private already, so that for every partition B and all neighbours x, x' P[B | x] ≤ e^ε·P[B | x']. No share of ε is set
aside for the choice, no noisy cost has to be protected, and the noise can be lowered later (gradual release).

**Why.** DAWA pays for a private partition first and measures what is left over. Where single cells are asked for, the
totals of runs hardly matter: a run of L cells costs 2/(ε₂²·L) or 2/ε² together, a spike that is missed its square. All
of ε on the cells finds more of them than a quarter of it on noisy costs.

**How.** Cells stand in a line (grids along the Hilbert curve). Candidates are the aligned runs of 1, 2, 4, … cells.
Noise of rate r makes y likely as exp(-r·Σ|y_i - m|) where all cells hold m; the best m is the median. A cell that lies
more than SPIKE/r away is taken for a spike, which keeps its own number, and costs as much as that. A run costs RUN
more; of all partitions that of least cost is taken, by comparing every run with the best partition of its halves, from
short ones to long ones. A run's cells get their mean, spikes left out, which keeps the sum of all.

**What it does not give.** The error depends on the data: differences below what the noise hides are smoothed away. The
noisy counts themselves stay unbiased, and a release keeps them: sums of cells have the intervals that these give.

The idea to merge bins after the noise: Acs, Castelluccia, Chen (ICDM 2012); Zhang, Chen, Xu, Meng, Xie: Towards
accurate histogram publication under differential privacy (SDM 2014), who sort and cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato._types import Floats

# In units of the noise's scale. ln n + 1 is what the largest of n noises exceeds one time in five or six. A run that is
# cut in two fits noise better by one to two: at 2, noise cuts empty lines into hundreds of runs, at 4 gentle slopes
# become steps. Both were chosen among a few on the DPBench data.
SPIKE_BEYOND, RUN = 1.0, 3.0


@dataclass(frozen=True, eq=False)
class _Runs:
    """Candidates of one length, one a row: what each costs, and what its cells get."""

    cost: Floats
    cells: Floats


def smoothed(y: Floats, rate: float) -> Floats:
    """The same line of noisy counts, equal within the runs that are found. Sees what is private already."""
    n = len(y)
    found, best, spike = y.astype(np.float64), np.full(n, RUN), math.log(n) + SPIKE_BEYOND
    for level in range(1, (n - 1).bit_length() + 1):
        length, pairs = 1 << level, len(best) // 2
        apart = best[0 : 2 * pairs : 2] + best[1 : 2 * pairs : 2]
        cost = apart.copy()
        for first, rows in _candidates(y, length, pairs):
            runs, part = _together(rows, rate, spike), slice(first, first + len(rows))
            kept = runs.cost <= apart[part]
            cost[part] = np.where(kept, runs.cost, apart[part])
            cells = found[first * length : first * length + rows.size].reshape(rows.shape)
            cells[kept] = runs.cells[kept]
        # A last run without a sibling is the same cells once more, not another candidate.
        best = np.concatenate([cost, best[2 * pairs :]])
    return found


def _candidates(y: Floats, length: int, runs: int) -> Iterator[tuple[int, Floats]]:
    """The first of them and their cells, one run a row; the last run may be cut short by the end of the line."""
    whole = min(runs, len(y) // length)
    yield 0, y[: whole * length].reshape(whole, length)
    if whole < runs:
        yield whole, y[None, whole * length :]


def _together(rows: Floats, rate: float, spike: float) -> _Runs:
    """Every row as one run."""
    half = (rows.shape[1] - 1) // 2
    middle = np.partition(rows, half, axis=1)[:, half, None]
    off = rate * (rows - middle)
    # Counts are not negative: nothing lies that far below a number that is not that far above zero itself.
    far = (off > spike) | ((off < -spike) & (rate * middle > spike))
    cost = np.where(far, spike, np.abs(off)).sum(axis=1) + RUN
    mean = np.where(far, 0.0, rows).sum(axis=1) / np.logical_not(far).sum(axis=1)
    return _Runs(cost, np.where(far, rows, mean[:, None]))
