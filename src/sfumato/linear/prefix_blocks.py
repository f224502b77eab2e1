"""Prefix sums at every b-th cell, and a hierarchy inside the blocks between them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats
from sfumato.errors import InvalidInput
from sfumato.linear.hierarchy import LARGEST_WEIGHT, Hierarchy, _spread, _sum_groups
from sfumato.linear.operator import Array, Operator
from sfumato.linear.pairs import PairTypes


class PrefixBlocks(Operator):
    """Weighted prefix sums at the ends of blocks of length blocks[0], then a hierarchy of blocks[1:] = (…, 1).

    A move of at most θ cells crosses ⌈θ/b⌉ block ends and changes two cells, however long the line is: sensitivity
    `k₀·⌈θ/b⌉ + 2·Σ k`, where plain prefix sums have θ. A range pays for the two blocks in which it ends.

    Least squares in O(n). The hierarchy alone estimates the cells and, with variance V_j, the block sums C_j. The
    prefix sums z at the block ends then solve a chain, `Σ k₀²(p_j/k₀ - z_j)² + Σ (z_j - z_{j-1} - C_j)²/V_j → min`,
    whose normal matrix T is tridiagonal; and every cell takes its share of what the chain knows better about its
    block.
    """

    def __init__(self, n: int, blocks: Sequence[int], weights: Sequence[int]) -> None:
        if len(blocks) < 2 or len(weights) != len(blocks) or blocks[0] % blocks[1] or blocks[0] <= blocks[1]:
            raise InvalidInput(
                f"blocks={tuple(blocks)} with weights={tuple(weights)} must have at least two levels, each length a "
                "multiple of the next, and one weight for each."
            )
        self.inner = Hierarchy(n, blocks[1:], weights[1:])
        self.length, self.weight = int(blocks[0]), int(weights[0])
        if not 1 <= self.weight <= LARGEST_WEIGHT:
            raise InvalidInput(f"weights={tuple(weights)} must be whole numbers from 1 to {LARGEST_WEIGHT}.")
        self.count = -(-n // self.length)
        self.rows, self.cols = self.count + self.inner.rows, n

    @property
    def key(self) -> tuple[object, ...]:
        """Its parameters."""
        return ("prefix blocks", self.length, self.weight, self.inner.key)

    def forward(self, x: Array) -> Array:
        """Coarse prefix sums, then the hierarchy."""
        ends = self.weight * np.cumsum(_sum_groups(x, self.length), axis=-1)
        return np.concatenate([ends, self.inner.forward(x)], axis=-1)

    def transpose(self, y: Array) -> Array:
        """A prefix sum is felt by every cell before its end."""
        felt = self.weight * np.flip(np.cumsum(np.flip(y[..., : self.count], -1), -1), -1)
        return _spread(felt, self.length, self.cols) + self.inner.transpose(y[..., self.count :])

    @cached_property
    def _share(self) -> tuple[Floats, Floats]:
        """(V of every block, the share of every cell in its block's remainder), from the hierarchy's covariance."""
        pull = self.inner.pinv(self.inner.pinv_transpose(np.ones(self.cols)))
        variance = _sum_groups(pull, self.length)
        return variance, pull / _spread(variance, self.length, self.cols)

    @cached_property
    def _chain(self) -> Floats:
        """T in the banded form of SciPy: the superdiagonal above the diagonal."""
        precision = 1.0 / self._share[0]
        after = np.concatenate([precision[1:], [0.0]])
        return np.stack([np.concatenate([[0.0], -precision[1:]]), self.weight**2 + precision + after])

    def _solve(self, right: Array) -> Array:
        from scipy.linalg import solveh_banded  # slow to import, and only these blocks need it

        if self.count == 1:
            return right / self._chain[1]
        flat = right.reshape(-1, self.count)
        return np.asarray(solveh_banded(self._chain, flat.T)).T.reshape(right.shape)

    def pinv(self, y: Array) -> Array:
        """Cells from the hierarchy, block ends from the chain, remainders shared out."""
        variance, share = self._share
        cells = self.inner.pinv(y[..., self.count :])
        sums = _sum_groups(cells, self.length)
        pulled = sums / variance
        ends = self._solve(self.weight * y[..., : self.count] + pulled - _next(pulled))
        remainder = np.diff(ends, axis=-1, prepend=np.zeros_like(ends[..., :1])) - sums
        return cells + share * _spread(remainder, self.length, self.cols)

    def pinv_transpose(self, q: Array) -> Array:
        """The adjoint, in reverse."""
        variance, share = self._share
        q = np.asarray(q, dtype=np.float64)
        felt = _sum_groups(share * q, self.length)
        ends = self._solve(felt - _next(felt))
        before = np.diff(ends, axis=-1, prepend=np.zeros_like(ends[..., :1]))
        cells = q + _spread(before / variance - felt, self.length, self.cols)
        return np.concatenate([self.weight * ends, self.inner.pinv_transpose(cells)], axis=-1)

    inverse_fourth_is_exact = False

    @property
    def inverse_largest_coefficient(self) -> float:
        """Estimators average, and heavier levels measure finer steps."""
        return 1.0 / min(self.weight, *self.inner.weights)

    @property
    def largest_entry(self) -> int:
        """The weight of the dearest level."""
        return max(self.weight, self.inner.largest_entry)

    def column_norms(self) -> Array:
        """A cell enters every prefix sum from its own block on."""
        later = self.count - np.arange(self.cols) // self.length
        return self.weight * later + self.inner.column_norms()

    def farthest(self, offsets: Array) -> int:
        """A step of r cells that begins just before a border crosses 1 + (r - 1)/b of them, rounded down, and no step
        more; whoever crosses one shares no block of the hierarchy.
        """
        reach = int(offsets.max(initial=0))
        if reach == 0:
            return 0
        crossed = min((reach - 1) // self.length + 1, (self.cols - 1) // self.length)
        return self.weight * crossed + self.inner.farthest(offsets)

    def column_distances(self, u: Array, v: Array) -> Array:
        """The block ends between the two cells, and what the hierarchy says."""
        ends: Array = self.weight * np.abs(u // self.length - v // self.length)
        return ends + self.inner.column_distances(u, v)

    def pair_types(self, offset: int | None) -> PairTypes:
        """The prefix sums between the two cells, and what the hierarchy shows."""
        if offset is None:
            return super().pair_types(None)
        u = np.arange(max(0, -offset), self.cols - max(0, offset))
        first, second = u // self.length, (u + offset) // self.length
        ends = np.stack(
            [self.count - np.maximum(first, second), np.maximum(second - first, 0), np.maximum(first - second, 0)],
            axis=-1,
        )
        k = self.weight
        together = np.stack([u // b == (u + offset) // b for b in self.inner.blocks], axis=-1).astype(np.int64)
        inside = np.stack([together, 1 - together, 1 - together], axis=-1).reshape(len(u), -1)
        values = [(k, k), (k, 0), (0, k), *(p for w in self.inner.weights for p in ((w, w), (w, 0), (0, w)))]
        return PairTypes.of(values, np.concatenate([ends, inside], axis=-1))

    @cached_property
    def _chain_covariance(self) -> tuple[Floats, Floats]:
        """(the diagonal of T⁻¹, running sums of log e_j/d_j): (T⁻¹)_jk = (T⁻¹)_kk·∏ e_i/d_i over i from j to k - 1."""
        band = self._chain
        diagonal, coupling = band[1], -band[0]
        squares = coupling[1:] ** 2
        forward = _eliminated(diagonal, squares)
        backward = _eliminated(diagonal[::-1], squares[::-1])[::-1]
        ratios = np.log(coupling[1:] / forward[:-1])
        return 1.0 / (forward + backward - diagonal), np.concatenate([[0.0], np.cumsum(ratios)])

    def _ends_covariance(self, j: NDArray[np.int64], k: NDArray[np.int64]) -> Floats:
        """Cov(z_j, z_k) of the estimated block ends; end -1 is the lower end of the line, where the sum is zero."""
        diagonal, logs = self._chain_covariance
        low, high = np.minimum(j, k), np.maximum(j, k)
        at = np.maximum(low, 0)
        return np.where(low < 0, 0.0, diagonal[np.maximum(high, 0)] * np.exp(logs[np.maximum(high, 0)] - logs[at]))

    def inverse_range_moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """(‖(A⁺)ᵀr‖², a guess of the fourth power) for many ranges, in O(log n) each.

        The prefix sum up to t, in block j, is `(1 - s)·z_{j-1} + s·z_j + w`, where s is the share of the cells before
        t and w is what the hierarchy says beyond the block's sum: independent of the chain and of other blocks.
        """
        variance, share = self._share
        sums = np.concatenate([[0.0], np.cumsum(share)])
        terms: list[tuple[NDArray[np.int64], Floats]] = []
        block, part, start = [], [], []
        for t, sign in ((high, 1.0), (low, -1.0)):
            j = np.minimum(t.astype(np.int64) // self.length, self.count - 1)
            cell = np.minimum(t.astype(np.int64), self.cols - 1)
            s = sums[cell] - sums[j * self.length] + share[cell] * (t - cell)
            terms += [(j - 1, sign * (1 - s)), (j, sign * s)]
            block.append(j)
            part.append(s)
            start.append((j * self.length).astype(np.float64))
        second = np.zeros(len(low))
        for j, a in terms:
            for k, b in terms:
                second += a * b * self._ends_covariance(j, k)

        def inside(begin: Floats, end: Floats, s: Floats, j: NDArray[np.int64]) -> Any:
            return self.inner.inverse_range_moments(begin, end)[0] - s**2 * variance[j]

        same = block[0] == block[1]
        apart = inside(start[0], high, part[0], block[0]) + inside(start[1], low, part[1], block[1])
        within = inside(low, high, part[0] - part[1], block[0])
        second = np.maximum(second + np.where(same, within, apart), 0.0)
        return second, second**2 / 5


def _next(values: Array) -> Array:
    """Every value replaced by its successor, the last by zero."""
    return np.concatenate([values[..., 1:], np.zeros_like(values[..., :1])], axis=-1)


def _eliminated(diagonal: Floats, squares: Floats) -> Floats:
    """The pivots d_j - e²_j / pivot_(j-1) of a chain, in Python's own numbers: NumPy's take five times as long."""
    pivots = [float(diagonal[0])]
    for own, square in zip(diagonal[1:].tolist(), squares.tolist(), strict=True):
        pivots.append(own - square / pivots[-1])
    return np.array(pivots)
