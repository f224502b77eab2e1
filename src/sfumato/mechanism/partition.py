"""Stage one of DAWA: cut a line of cells into runs of nearly equal counts, privately.

**Promise.** ε-private for a change of one entry of x by one. What is private is the partition that comes out; the noisy
costs are not published and must not be.

**How.** The candidates are the aligned runs of 1, 2, 4, … cells. A run costs its deviation, Σ|x_i - median|, an
integer, plus a penalty, less geometric noise of its own; a run of one cell deviates by nothing, but has its noise as
well. The partition of least noisy cost comes from comparing, from short runs to long ones, a run with the best
partition of its halves.

**Sensitivity.** Σ|x_i - m| changes by at most one for every fixed m when one x_i does, and so does its least value over
m, which the median attains. A run of one cell does not change at all. Let s = 1 for those and s = 2 for the others.

**Theorem.** With noise of rate ε/s on a run's cost the partition is ε-private. *Proof.* Let x and x' differ by one in
cell j, let B be a partition and b its run that holds j; fix the noise of all other runs. Elsewhere than on the way
from j to the top, choices compare runs without j: they are the same for x and x'. On that way B comes out when b costs
no more than the best partition of its halves, and when every longer run that holds j costs more than the best it is
compared with, which is b's cost and terms without j. Each of these is `G_b ≥ (cost of b) - (cost of a partition of the
same cells without b) + terms that stay`, in integers, hence all together are G_b ≥ t. Each of the two costs holds
exactly one run that contains j, so t moves by at most 1 + 1 from x to x', and by 1 when b is a single cell. And
P[G ≥ t] = exp(-rate·max(t, 0)) falls by a factor of at most exp(rate·s) = exp(ε) when t rises by s. Averaging over the
other noise keeps the factor, and partitions are countable. ∎ (Li, Hay, Miklau: VLDB 2014 have this argument with
Laplace noise; the one-sided noise that suffices has half its variance.)

**What must not be simplified.** Every run needs its noise, single cells too, and costs must not be cut off from below
afterwards: either leaves G_b nothing to answer with. The published program of DAWA does both, and with the deviation
from the mean (which moves by up to 2 - 2/L) and noise of scale (2 - 1/L - 1/n)/ε it has half the noise this argument
asks for: three cells (0, 0, 0) and (0, 1, 0) stay apart with probabilities in the ratio exp(12/7·ε).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.exact import text
from sfumato.noise import Geometric, Source
from sfumato.noise.expansion import bits

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

ROOM = 60  # bits for a sum of costs: deviations, penalties and noise each stay below 2⁶⁰ or nearly so
SHIFT_OF_CELL, SHIFT_OF_RUN = 1, 2  # s of the theorem


@dataclass(frozen=True, eq=False)
class Buckets:
    """A partition of a line of cells into runs, by their first cells: sorted, the first one 0."""

    starts: Integers
    size: int

    def __post_init__(self) -> None:
        starts = np.array(self.starts, dtype=np.int64)
        starts.setflags(write=False)
        if starts.ndim != 1 or not len(starts) or starts[0] or starts[-1] >= self.size or (np.diff(starts) < 1).any():
            raise InvalidInput(f"starts must begin with 0 and rise strictly, below size={self.size}.")
        object.__setattr__(self, "starts", starts)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def lengths(self) -> Integers:
        """Cells in every run."""
        return np.diff(self.starts, append=self.size)

    def totals(self, x: Integers) -> Integers:
        """Sums of x over the runs."""
        return np.add.reduceat(x, self.starts)

    def spread(self, totals: Floats) -> Floats:
        """Every total shared out equally among the cells of its run."""
        return np.repeat(totals / self.lengths, self.lengths)


def longest_run(n: int) -> int:
    """How long a run may be by default: the largest power of two up to n/8, or a single cell.

    Deviation is blind to a slow change of density among mostly empty cells. With eight runs at least that costs little
    where the data is uniform and saves much where it is not.
    """
    return 1 << max(0, (n // 8).bit_length() - 1)


def bounded(x: Integers) -> Integers:
    """Entries clamped to ±2⁶⁰/n, so that no sum of them leaves 64 bits.

    Clamping never enlarges a change, and what happens to a dataset does not depend on the dataset's values otherwise.
    """
    bound = (1 << ROOM) // max(1, len(x))
    return np.clip(x, -bound, bound)


def partition(x: Integers, *, epsilon: Fraction, penalty: int, source: Source, longest: int | None = None) -> Buckets:
    """The runs of least noisy cost, ε-private for a change of one entry by one. Sees private data.

    `penalty` is what a run costs beside its deviation and `longest` the largest run considered, a power of two; both
    are chosen without looking at x. On equal costs the longer run wins.
    """
    n = len(x)
    levels = (longest_run(n) if longest is None else longest).bit_length() - 1
    noise = Geometric(epsilon / SHIFT_OF_CELL), Geometric(epsilon / SHIFT_OF_RUN)
    _require_room(epsilon, penalty, levels)
    x = bounded(x)
    best = penalty - noise[0].sample(n, source)
    merged: list[NDArray[np.bool_]] = []
    for level in range(1, levels + 1):
        pairs = len(best) // 2
        apart = best[0 : 2 * pairs : 2] + best[1 : 2 * pairs : 2]
        together = deviations(x, 1 << level, pairs) + penalty - noise[1].sample(pairs, source)
        merged.append(together <= apart)
        # A last run without a sibling is the same cells once more, not another candidate.
        best = np.concatenate([np.minimum(together, apart), best[2 * pairs :]])
    return Buckets(_starts(merged, len(best)), n)


def deviations(x: Integers, length: int, runs: int) -> Integers:
    """Σ|x_i - median| of the first `runs` aligned runs of `length` cells; the last may be cut short by the end of x."""
    whole = min(runs, len(x) // length)
    found = _deviation(x[: whole * length].reshape(whole, length))
    if whole == runs:
        return found
    return np.append(found, _deviation(x[None, whole * length :]))


def _deviation(rows: Integers) -> Integers:
    """Whatever the median of an even number of values is taken to be: the upper half less the lower half."""
    length = rows.shape[-1]
    half = length // 2
    ordered = np.partition(rows, half, axis=-1)
    return ordered[:, length - half :].sum(axis=-1) - ordered[:, :half].sum(axis=-1)


def _starts(merged: list[NDArray[np.bool_]], runs: int) -> Integers:
    """First cells of the runs chosen, from the longest candidates down."""
    open_runs = np.arange(runs)
    closed: list[Integers] = []
    for level in range(len(merged), 0, -1):
        chosen = merged[level - 1]
        alone = open_runs >= len(chosen)  # the run without a sibling passes through
        stop = np.zeros(len(open_runs), dtype=np.bool_)
        stop[~alone] = chosen[open_runs[~alone]]
        closed.append(open_runs[stop] << level)
        left = 2 * open_runs[~stop]
        right = 2 * open_runs[~stop & ~alone] + 1
        open_runs = np.sort(np.concatenate([left, right]))
    return np.sort(np.concatenate([*closed, open_runs]))


def _require_room(epsilon: Fraction, penalty: int, levels: int) -> None:
    """Refuse parameters, never data, with which a sum of costs could leave 64 bits."""
    if bits(epsilon / SHIFT_OF_RUN) + levels > ROOM or abs(penalty) << levels > 1 << ROOM:
        raise InvalidInput(
            f"epsilon={text(epsilon)} for the partition, with penalty={penalty}, is too small: noisy costs of runs of "
            f"{1 << levels} cells might not fit 64-bit integers. Nothing was drawn or recorded. "
            "Use a larger epsilon or shorter runs."
        )
