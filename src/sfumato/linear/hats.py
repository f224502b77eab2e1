"""Overlapping hats: sums of cells under triangles, in a few widths, and least squares on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.linear.hat_variances import HatVariances, Level
from sfumato.linear.hierarchy import LARGEST_WEIGHT
from sfumato.linear.operator import Array, Operator
from sfumato.linear.pairs import PairTypes
from sfumato.linear.queries import AllOfAKind

# Knots lie on this fraction of a cell, so that everything about them is whole.
STEPS = 64
# Knots of the widest level are crowded towards the ends of the line: the first gap is CROWDED/16 narrower than the
# average, the middle one half as much wider. Near an end ranges are short, and short hats serve them better.
CROWDED = 6
MOST_LEVELS = 64
# Bits behind the point of estimates in fixed point.
FRACTION_BITS = 14


class Hats(Operator):
    """Weighted sums under hats of every width, the widest first, and then every cell by itself.

    The knots of a level cut the line into intervals of about `width` cells, all equal but on the widest level, where
    they are shorter towards the ends. A hat stands on every knot inside the line: it rises from zero at the knot before
    to its top and falls to zero at the knot after. Every cell has the same Σ weights to give away. Level after level
    takes its share `k_l / (k_l + … + k_cells)` of what the wider ones have left, and splits it between the two hats
    that hold the cell, by its place between their knots; the cell itself keeps the rest. Far from the ends every level
    therefore has its own weight. Towards them, where the two outermost knots carry no hat, the weight passes on to
    narrower hats and to the cells.

    All entries are whole numbers, and every column sums to Σ weights exactly, whatever was rounded: the sensitivity
    under add/remove is Σ weights.

    Least squares: `M = AᵀA = D² + HᵀH` with the diagonal D of the cells' own weights and the p hats in the rows of H,
    so `M⁻¹ = D⁻² - EᵀQ⁻¹E` with `E = H·D⁻²` and `Q = I + E·Hᵀ` (Woodbury), a sparse system of p unknowns.
    """

    def __init__(self, n: int, widths: Sequence[int], weights: Sequence[int]) -> None:
        self.widths, self.weights = tuple(int(b) for b in widths), tuple(int(k) for k in weights)
        if any(a <= b for a, b in pairwise(self.widths)) or any(b < 2 or 5 * b > 2 * n for b in self.widths):
            raise InvalidInput(
                f"widths={self.widths} must fall, and lie between 2 and 2/5 of the line: here {2 * n // 5} cells. "
                "Nothing was drawn or recorded."
            )
        if len(self.weights) != len(self.widths) + 1 or not all(1 <= k <= LARGEST_WEIGHT for k in self.weights):
            raise InvalidInput(
                f"weights={self.weights} must be whole numbers from 1 to {LARGEST_WEIGHT}, one for each of "
                f"{self.widths} and one for the cells. Nothing was drawn or recorded."
            )
        if len(self.widths) > MOST_LEVELS:
            raise InvalidInput(
                f"widths of {len(self.widths)} levels are more than {MOST_LEVELS}; each takes memory for every cell. "
                "Nothing was drawn or recorded. Use a few."
            )
        self.cols = n
        self.total = sum(self.weights)
        self._knots = [_knots(n, b, CROWDED if level == 0 else 0) for level, b in enumerate(self.widths)]
        self.hats = sum(len(knots) - 2 for knots in self._knots)
        self.rows = self.hats + n

    @property
    def key(self) -> tuple[object, ...]:
        """Its parameters."""
        return ("hats", self.cols, self.widths, self.weights)

    @property
    def _levels(self) -> list[Level]:
        return self._shares[0]

    @property
    def _own(self) -> Integers:
        return self._shares[1]

    @cached_property
    def _shares(self) -> tuple[list[Level], Integers]:
        """(every level, what the cells keep)."""
        middle = STEPS * np.arange(self.cols, dtype=np.int64) + STEPS // 2
        left = np.full(self.cols, self.total, dtype=np.int64)
        levels, first = [], 0
        for i, knots in enumerate(self._knots):
            interval, size = np.searchsorted(knots, middle, side="right") - 1, len(knots) - 2
            begin, end = knots[interval], knots[interval + 1]
            share = left * self.weights[i] // sum(self.weights[i:])
            after = (2 * share * (middle - begin) + end - begin) // (2 * (end - begin))
            before = share - after
            before[interval == 0] = 0
            after[interval == size] = 0
            # Where wider hats fade, what is left falls in steps, and a row could dip: it is cut down to the later ones.
            apart = interval * (self.total + 1)
            before = np.minimum.accumulate(before - apart) + apart
            after = np.minimum.accumulate((after + apart)[::-1])[::-1] - apart
            left = left - before - after
            levels.append(Level(interval, before, after, first, size))
            first += size
        return levels, left

    @cached_property
    def _hats(self) -> scipy.sparse.csr_matrix:
        """H, with whole entries."""
        rows, values = [], []
        for interval, before, after, first, size in self._levels:
            rows += [first + np.maximum(interval - 1, 0), first + np.minimum(interval, size - 1)]
            values += [before, after]
        if not rows:
            return scipy.sparse.csr_matrix((0, self.cols), dtype=np.int64)
        start = len(rows) * np.arange(self.cols + 1)
        parts = (np.stack(values, axis=-1).ravel(), np.stack(rows, axis=-1).ravel(), start)
        matrix = scipy.sparse.csc_matrix(parts, shape=(self.hats, self.cols)).tocsr()
        matrix.sum_duplicates()  # a cell at an end has a hat on one side alone, and nothing for the same one again
        matrix.eliminate_zeros()
        return matrix

    def forward(self, x: Array) -> Array:
        """Sums under the hats of every level, then the cells, each times its weight."""
        return np.concatenate([_apply(self._hats, x), self._own * x], axis=-1)

    def transpose(self, y: Array) -> Array:
        """Every cell receives the values of the hats over it, each times its weight there, and its own."""
        return _apply(self._hats.T, y[..., : self.hats]) + self._own * y[..., self.hats :]

    def sparse(self) -> scipy.sparse.csc_matrix:
        """The matrix itself: each column has two entries a level and its own."""
        return scipy.sparse.csc_matrix(
            scipy.sparse.vstack([self._hats, scipy.sparse.diags_array(self._own, dtype=np.int64)])
        )

    @cached_property
    def _variances(self) -> HatVariances:
        return HatVariances(self._levels, self._own, self._hats)

    def pinv(self, y: Array) -> Array:
        """What the cells say, and by how much the hats know better: `x + EᵀQ⁻¹(y - H·x)`, x the cells' own values."""
        alone = np.asarray(y[..., self.hats :] / self._own, dtype=np.float64)
        if not self.hats:
            return alone
        beyond = self._variances.solve(y[..., : self.hats] - _apply(self._hats, alone))
        return alone + _apply(self._variances.spread.T, beyond)

    keeps_fractions = True
    """Whether numbers with bits behind the point get no more of them by its inverse."""
    fraction_bits = FRACTION_BITS

    @property
    def factor_bits(self) -> int:
        """How many bits a sum under a hat may have more than the values of its cells."""
        widest = max((int(np.bincount(level.interval).max()) for level in self._levels), default=1)
        return (2 * widest * self.total).bit_length()

    def solved(self, y: Integers, bits: int) -> tuple[Integers, int]:
        """A⁺·y of numbers with so many bits behind the point, nearly, in integers, and how many they have then; and
        *exactly* equivariant: A·z added to y adds z.

        A cell's own value is `own·a + ρ` with 0 ≤ ρ < own, and a hat's is `H·a + r`. The remainders ρ and r do not
        change when an integer z is added to the cells, so neither does anything that is made of them: least squares on
        the remainders, in floating point, rounded once. Nothing about z can leak.
        """
        if not bits:
            y, bits = y << self.fraction_bits, self.fraction_bits
        whole, rest = np.divmod(y[..., self.hats :], self._own)
        beyond = y[..., : self.hats] - _apply(self._hats, whole)
        left = self.pinv(np.concatenate([beyond, rest], axis=-1).astype(np.float64))
        return whole + np.rint(left).astype(np.int64), bits

    def pinv_transpose(self, q: Array) -> Array:
        """`Q⁻¹E·q` for the hats, and for the cells what these leave of q."""
        asked = np.asarray(q, dtype=np.float64)
        if not self.hats:
            return asked / self._own
        felt = self._variances.solve(_apply(self._variances.spread, asked))
        return np.concatenate([felt, (asked - _apply(self._hats.T, felt)) / self._own], axis=-1)

    def inverse_range_moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(‖(A⁺)ᵀr‖², and a guess of the fourth power) for many ranges, by one solution of p unknowns each.

        The fourth moment would need every coefficient: a seventh of the squared second one is its order of magnitude,
        no bound, and intervals do not rely on it.
        """
        second = self._variances.of_ranges(low, high)
        return second, second**2 / 7

    inverse_fourth_is_exact = False

    def inverse_mean_variance(self, queries: AllOfAKind) -> float:
        """Exact at any length."""
        return queries.by_prefixes(self)

    @property
    def inverse_largest_coefficient(self) -> float:
        """More than any noise counts in any range: a hat beside the end of a range may overshoot, by less than a
        third.
        """
        return 2.0 / min(self.weights)

    def prefix_variances(self) -> Floats:
        """‖(A⁺)ᵀr‖² of the n prefixes that end behind each cell, in one pass."""
        return self._variances.of_prefixes()

    def cell_variances(self) -> Floats:
        """‖(A⁺)ᵀr‖² of every cell."""
        return self._variances.of_cells

    @property
    def largest_entry(self) -> int:
        """At an end of the line a cell keeps nearly all that it has."""
        halves = [int(half.max()) for level in self._levels for half in (level.before, level.after)]
        return max([int(self._own.max()), *halves])

    def column_norms(self) -> Array:
        """Every cell gives away the same."""
        return np.full(self.cols, self.total, dtype=np.int64)

    def farthest(self, offsets: Integers) -> int:
        """The largest L1 distance of two columns that lie one of the given (positive) offsets apart.

        Columns have entries of at least zero and equal sums T, so their distance is `2T - 2·Σ min(a_u, a_v)`. Every row
        rises and then falls, so that the smaller of two entries is the smallest between them, and no distance shrinks
        when the two cells move apart. Two cells of a line that are closer than an offset can move apart until they are
        as far as that: the largest offset is enough.
        """
        there = offsets[(offsets > 0) & (offsets < self.cols)]
        return 2 * (self.total - self.shared(int(there.max()))) if len(there) else 0

    def shared(self, reach: int) -> int:
        """Least where two columns are as far apart as they may be, for the reason above."""
        offset = min(reach, self.cols - 1)
        if offset == 0:
            return self.total
        shared = np.zeros(self.cols - offset, dtype=np.int64)
        for interval, before, after, _, _ in self._levels:
            steps = interval[offset:] - interval[:-offset]
            same = np.minimum(before[offset:], before[:-offset]) + np.minimum(after[offset:], after[:-offset])
            shared += np.where(steps == 0, same, np.where(steps == 1, np.minimum(before[offset:], after[:-offset]), 0))
        return int(shared.min())

    has_many_types = True

    def pair_types(self, offset: int | None) -> PairTypes:
        """Of all pairs whatever, the one that is farthest in any product: two columns that share no row.

        The outermost cells lie under different hats, of which every level has two or more. Which rows they have does
        not matter then, only how much.
        """
        if offset is not None:
            return super().pair_types(offset)
        if self.cols == 1:
            return PairTypes.of([(self.total, self.total)], [[1]])
        return PairTypes.of([(self.total, 0), (0, self.total)], [[1, 1]])


def _knots(n: int, width: int, crowded: int) -> Integers:
    """Where intervals of about `width` cells begin and end, in STEPS of a cell: 0, …, n.

    With u = j/m the j-th of m intervals ends at `u - c·(u - 3u² + 2u³)` of the line, c = crowded/16; rounded down in
    exact arithmetic, the same on every machine.
    """
    m = (2 * n + width) // (2 * width)
    whole, scale = 16 - crowded, STEPS // 16 * n
    ends = [scale * j * (whole * m * m + crowded * j * (3 * m - 2 * j)) // m**3 for j in range(m + 1)]
    return np.array(ends, dtype=np.int64)


def _apply(matrix: Any, x: Array) -> Array:
    lead = np.shape(x)[:-1]
    flat = np.asarray(x).reshape(math.prod(lead), matrix.shape[1])
    return np.asarray((matrix @ flat.T).T).reshape(*lead, matrix.shape[0])
