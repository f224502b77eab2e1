"""Stage one of DAWA: cut a line of cells into runs of nearly equal counts, privately.

**Promise.** ε-private for a change of one entry of x by one. What is private is the partition that comes out; the noisy
costs are not published and must not be.

**How.** The candidates are the aligned runs of 1, 2, 4, … cells. A run costs its deviation Σ|x_i - median|, an integer,
times the integer price of its length, plus a penalty, less geometric noise of its own. A single cell deviates by
nothing, but has its noise as well. The partition of least noisy cost comes from comparing, from short runs to long
ones, a run with the best partition of its halves; on equal costs the longer run wins.

**Sensitivity.** Σ|x_i - m| changes by at most one for every fixed m when one x_i does, and so does its least value over
m, which the median attains. The cost of a run of price w changes by at most w, that of a single cell (w = 0) not at
all.

**Theorem.** Let s be the price of a run plus the largest price among the *other* levels. With noise of rate ε/s on
every run's cost the partition is ε-private. *Proof.* Let x and x' differ by one in cell j, let B be a partition and b
its run that holds j; fix the noise of all other runs. Choices away from j compare runs without j and are the same for
x and x'. On the way from j to the top, B comes out when b costs no more than the best partition of its halves, and when
every longer run that holds j costs more than the best it is compared with, which is b's cost and terms without j. Each
of these reads G_b ≥ (cost of b before its noise) - (cost of other runs on the same cells) + (terms without j), in
integers, and so all of them together read G_b ≥ t. Every partition has exactly one run that holds j, and here it has
another level than b, so t differs by at most s between x and x'. P[G ≥ t] = exp(-rate·max(t, 0)) falls by a factor of
at most exp(rate·s) = exp(ε) when t rises by s. Averaging over the other noise keeps the factor. ∎ Li, Hay and Miklau
(VLDB 2014) argue so with Laplace noise. The one-sided noise that is enough has half its variance.

**What must not be simplified.** Every run needs its noise, single cells too, and noisy costs must not be cut off from
below: either leaves G_b nothing to answer with. dpcomp_core, the published program, does both; and its costs, the
deviation from the mean, move by up to 2 - 2/L, so that its noise of scale (2 - 1/L - 1/n)/ε is half of what the
argument asks for. Its partition of (0, 0, 0) and of (0, 1, 0) into single cells has probabilities in the ratio
exp(12/7·ε).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.exact import positive_int, text
from sfumato.noise import Geometric, Source
from sfumato.noise.expansion import bits

PRICE = 16  # of a unit of deviation in the longest run: costs are in sixteenths
ROOM = 59  # bits for the deviations, the penalties and the noise in a sum of costs, each


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
    """How long a run may be by default: the largest power of two up to n/4, or a single cell.

    Deviation is blind to a slow change of density among mostly empty cells. With four runs at least that costs little
    where the data is uniform and saves much where it is not.
    """
    return 1 << max(0, (n // 4).bit_length() - 1)


def prices(levels: int) -> tuple[int, ...]:
    """The price of a unit of deviation in runs of 1, 2, 4, …, 2^levels cells, in sixteenths.

    A long run meets more ends of ranges than a short one, and deviation hurts there more often. The fourth root of the
    length did best on the DPBench data, between one price for all and the square root that squared errors suggest.
    """
    return (0, *(max(1, round(PRICE * 2 ** ((level - levels) / 4))) for level in range(1, levels + 1)))


def shifts(levels: int) -> tuple[int, ...]:
    """s of the theorem for every level: its price and the largest other one."""
    price = prices(levels)
    return tuple(price[level] + max(price[:level] + price[level + 1 :], default=0) for level in range(levels + 1))


def cost_noise(epsilon: Fraction, levels: int) -> tuple[Geometric, ...]:
    """The noise on the cost of a run, level by level; none where there is but one level, and nothing to choose."""
    return tuple(Geometric(epsilon / shift) for shift in shifts(levels)) if levels else ()


def bounded(x: Integers) -> Integers:
    """Entries clamped to ±2⁵⁵/n, so that no sum of costs leaves 64 bits. Clamping never enlarges a change."""
    bound = (1 << ROOM) // (PRICE * max(1, len(x)))
    return np.clip(x, -bound, bound)


def partition(x: Integers, *, epsilon: Fraction, penalty: int, source: Source, longest: int | None = None) -> Buckets:
    """The runs of least noisy cost, ε-private for a change of one entry by one. Sees private data.

    `penalty`, what every run costs in sixteenths of a unit of deviation, and `longest`, the longest run considered (a
    power of two), are chosen without looking at x.
    """
    n = len(x)
    levels = _levels(longest_run(n) if longest is None else longest)
    if not levels:
        return Buckets(np.arange(n), n)  # nothing to choose: no noise, no cost
    price = prices(levels)
    noise = cost_noise(epsilon, levels)
    require_room(epsilon, penalty, levels)
    x = bounded(x)
    best = penalty - noise[0].sample(n, source)
    merged: list[NDArray[np.bool_]] = []
    for level in range(1, levels + 1):
        pairs = len(best) // 2
        apart = best[0 : 2 * pairs : 2] + best[1 : 2 * pairs : 2]
        together = price[level] * deviations(x, 1 << level, pairs) + penalty - noise[level].sample(pairs, source)
        merged.append(together <= apart)
        # A last run without a sibling is the same cells once more, not another candidate.
        best = np.concatenate([np.minimum(together, apart), best[2 * pairs :]])
    return Buckets(_starts(merged, len(best)), n)


def deviations(x: Integers, length: int, runs: int) -> Integers:
    """Σ|x_i - median| of the first `runs` aligned runs of `length` cells; the last may be cut short by the end of x."""
    whole = min(runs, len(x) // length)
    found = _deviation(x[: whole * length].reshape(whole, length))
    return found if whole == runs else np.append(found, _deviation(x[None, whole * length :]))


def _deviation(rows: Integers) -> Integers:
    """The upper half less the lower half, whatever the median of an even number of values is taken to be."""
    length = rows.shape[-1]
    half = length // 2
    ordered = np.partition(rows, half, axis=-1)
    result: Integers = ordered[:, length - half :].sum(axis=-1) - ordered[:, :half].sum(axis=-1)
    return result


def _starts(merged: list[NDArray[np.bool_]], runs: int) -> Integers:
    """First cells of the runs chosen, from the longest candidates down."""
    undecided = np.arange(runs)
    chosen: list[Integers] = []
    for level in range(len(merged), 0, -1):
        alone = undecided >= len(merged[level - 1])  # the run without a sibling passes through
        stop = np.zeros(len(undecided), dtype=np.bool_)
        stop[~alone] = merged[level - 1][undecided[~alone]]
        chosen.append(undecided[stop] << level)
        undecided = np.sort(np.concatenate([2 * undecided[~stop], 2 * undecided[~stop & ~alone] + 1]))
    return np.sort(np.concatenate([*chosen, undecided]))


def _levels(longest: int) -> int:
    levels = positive_int(longest, "longest").bit_length() - 1
    if longest != 1 << levels:
        raise InvalidInput(f"longest={longest} must be a power of two. Nothing was drawn or recorded.")
    return levels


def require_room(epsilon: Fraction, penalty: int, levels: int) -> None:
    """Refuse parameters, never data, with which a sum of costs could leave 64 bits."""
    if bits(epsilon / max(shifts(levels))) + levels > ROOM or abs(penalty) << levels > 1 << ROOM:
        raise InvalidInput(
            f"epsilon={text(epsilon)} for the partition, with penalty={penalty}, is too small: noisy costs of runs of "
            f"{1 << levels} cells might not fit 64-bit integers. Nothing was drawn or recorded. "
            "Use a larger epsilon or shorter runs."
        )
