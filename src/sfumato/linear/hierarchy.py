"""Nested blocks of cells, and least squares on them in two passes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.linear.operator import Array, Operator
from sfumato.linear.pairs import PairTypes

# Sensitivities are sums of products of weights in 64-bit integers; the best weights need two digits.
LARGEST_WEIGHT = 1 << 16
# Numbers that are solved for at once: a grid of them is gone through in parts.
AT_ONCE = 1 << 18


def nested_blocks(n: int, branching: int, *, root: bool = True) -> tuple[int, ...]:
    """Block lengths b^L, …, b, 1 with the coarsest one covering all n cells, or, without the root, the next finer
    one.
    """
    blocks = [1]
    while blocks[-1] < n:
        blocks.append(blocks[-1] * branching)
    if not root and len(blocks) > 1:
        blocks.pop()
    return tuple(reversed(blocks))


class Hierarchy(Operator):
    """Weighted counts of nested blocks, the coarsest level first; the end of the line may cut the last block short.

    Row r is the count of a block times the weight of its level, a whole number: under one scale of noise a level with
    twice the weight is twice as accurate, and costs twice as much sensitivity.

    The pseudo-inverse is the exact least-squares solution in O(n): upwards every node takes the best combination of
    its own value and the sum of its children's, downwards every child takes its share of what its parent knows
    better. Hay, Rastogi, Miklau, Suciu (VLDB 2010), here for unequal branching, any weights and any length.
    """

    keeps_fractions = True
    """Whether numbers with bits behind the point get no more of them by its inverse."""
    parts_at_borders = True

    def __init__(
        self, n: int, blocks: Sequence[int], weights: Sequence[int] | None = None, *, fraction_bits: int = 14
    ) -> None:
        self.fraction_bits = fraction_bits
        self.blocks = tuple(int(b) for b in blocks)
        if not self.blocks or self.blocks[-1] != 1 or any(a <= b or a % b for a, b in pairwise(self.blocks)):
            raise InvalidInput(
                f"blocks={self.blocks} must fall from the largest to 1, each a multiple of the next one."
            )
        self.weights = tuple(int(k) for k in weights) if weights is not None else (1,) * len(self.blocks)
        if len(self.weights) != len(self.blocks) or not all(1 <= k <= LARGEST_WEIGHT for k in self.weights):
            raise InvalidInput(
                f"weights={self.weights} must be whole numbers from 1 to {LARGEST_WEIGHT}, "
                f"one for each of {self.blocks}."
            )
        self.cols = n
        self._sizes = [-(-n // block) for block in self.blocks]
        self._ratios = [a // b for a, b in pairwise(self.blocks)]
        self.rows = sum(self._sizes)

    @property
    def key(self) -> tuple[object, ...]:
        """Its parameters."""
        return ("hierarchy", self.cols, self.blocks, self.weights)

    def forward(self, x: Array) -> Array:
        """Weighted sums over the blocks of every level."""
        levels = [x]
        for ratio in reversed(self._ratios):
            levels.append(_sum_groups(levels[-1], ratio))
        return np.concatenate([k * level for k, level in zip(self.weights, levels[::-1], strict=True)], axis=-1)

    def transpose(self, y: Array) -> Array:
        """Every cell receives the weighted values of the blocks that hold it."""
        levels = [k * level for k, level in zip(self.weights, self._split(y), strict=True)]
        total = levels[0]
        for ratio, level in zip(self._ratios, levels[1:], strict=True):
            total = _spread(total, ratio, level.shape[-1]) + level
        return total

    def _split(self, y: Array) -> list[Array]:
        return np.split(y, np.cumsum(self._sizes)[:-1], axis=-1)

    @cached_property
    def _passes(self) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """(own, share, variance) of every level but the finest for the first two, of every level for the last.

        The weight of a node's own value on the way up, a child's share of the remainder on the way down, and the
        variance of a node's estimate from what lies below it, all for noise of variance one.
        """
        alone = [1.0 / k**2 for k in self.weights]
        variance = [np.full(self._sizes[-1], alone[-1])]
        own: list[NDArray[np.float64]] = []
        share: list[NDArray[np.float64]] = []
        for ratio, level in zip(reversed(self._ratios), alone[-2::-1], strict=True):
            below = _sum_groups(variance[-1], ratio)
            share.append(variance[-1] / _spread(below, ratio, len(variance[-1])))
            own.append(below / (below + level))
            variance.append(own[-1] * level)
        return own[::-1], share[::-1], variance[::-1]

    def pinv(self, y: Array) -> Array:
        """Least squares: up, then down."""
        own, share, _ = self._passes
        values = [level / k for k, level in zip(self.weights, self._split(y), strict=True)]
        best = [values[-1]]
        sums: list[Array] = []
        for depth in range(len(self._ratios) - 1, -1, -1):
            sums.append(_sum_groups(best[-1], self._ratios[depth]))
            best.append(sums[-1] + own[depth] * (values[depth] - sums[-1]))
        best, sums = best[::-1], sums[::-1]
        value = best[0]
        for depth, ratio in enumerate(self._ratios):
            value = best[depth + 1] + share[depth] * _spread(value - sums[depth], ratio, self._sizes[depth + 1])
        return np.asarray(value, dtype=np.float64)

    @property
    def factor_bits(self) -> int:
        """How many bits a sum over a block may have more than its own noisy value: levels differ in weight."""
        return (2 * max(self.weights)).bit_length()

    def inverse_fixed_point(self, y: NDArray[np.int64]) -> NDArray[np.int64]:
        """2^fraction_bits · A⁺·y, nearly, in integers, and *exactly* equivariant: A·z added to y adds 2^bits·z."""
        return self.inverse_of_fractions(y << self.fraction_bits)

    def inverse_of_fractions(self, y: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same for numbers that have their bits behind the point already, from another axis: they keep them.

        A cell's own value is `k·a + ρ` with 0 ≤ ρ < k, k being the weight of the finest level. What `A·a` leaves of y
        does not change when an integer z is added to the cells, so neither does anything that is made of it: least
        squares in floating point, rounded once, to the nearest. Nothing about a remainder of z can leak.
        """
        rows = y.reshape(-1, self.rows)
        found = np.empty((len(rows), self.cols), dtype=np.int64)
        step = max(1, AT_ONCE // self.rows)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            whole = part[:, -self.cols :] // self.weights[-1]
            left = self.pinv(part - self.forward(whole))
            found[start : start + step] = whole + np.rint(left).astype(np.int64)
        return found.reshape(*y.shape[:-1], self.cols)

    def solved(self, y: NDArray[np.int64], bits: int) -> tuple[NDArray[np.int64], int]:
        """A⁺·y of numbers with so many bits behind the point, and how many they have then: those that they have, or its
        own.
        """
        return (self.inverse_of_fractions(y), bits) if bits else (self.inverse_fixed_point(y), self.fraction_bits)

    def pinv_transpose(self, q: Array) -> Array:
        """The adjoint of the two passes, in reverse."""
        own, share, _ = self._passes
        felt = np.asarray(q, dtype=np.float64)
        levels: list[Array] = []
        for depth in range(len(self._ratios) - 1, -1, -1):
            ratio = self._ratios[depth]
            parent = _sum_groups(share[depth] * felt, ratio)
            levels.append(felt - _spread(parent, ratio, self._sizes[depth + 1]))
            felt = parent
        levels = [felt, *levels[::-1]]
        for depth, ratio in enumerate(self._ratios):
            levels[depth + 1] = levels[depth + 1] + _spread(
                (1 - own[depth]) * levels[depth], ratio, self._sizes[depth + 1]
            )
            levels[depth] = own[depth] * levels[depth]
        return np.concatenate([level / k for k, level in zip(self.weights, levels, strict=True)], axis=-1)

    def inverse_range_moments(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(‖(A⁺)ᵀr‖², and a guess of the fourth power) for many ranges, in O(log n) each.

        On the way down, what a node's children learn from each other is independent of everything above. A range
        touches only the nodes that hold one of its ends, and seen from one level higher it is a range again, with
        other shares at its ends. The fourth moment would need every coefficient: a seventh of the squared second one
        is its order of magnitude, no bound, and intervals do not rely on it.
        """
        share, variance = self._passes[1], self._passes[2]
        ends = [low, high]
        second = np.zeros(len(low))
        for depth in range(len(self._ratios) - 1, -1, -1):
            below = variance[depth + 1]
            total, ratio = np.concatenate([[0.0], np.cumsum(below)]), self._ratios[depth]
            spread = np.concatenate([[0.0], np.cumsum(share[depth])])
            node = [np.minimum(t.astype(np.int64), len(below) - 1) for t in ends]
            part = [t - k for t, k in zip(ends, node, strict=True)]
            parent = [k // ratio for k in node]
            first = [p * ratio for p in parent]
            whole = [total[np.minimum(f + ratio, len(below))] - total[f] for f in first]
            before = [total[k] - total[f] for k, f in zip(node, first, strict=True)]
            seen = [b + below[k] * g for b, k, g in zip(before, node, part, strict=True)]
            alone = [
                b + below[k] * g**2 - s**2 / w for b, k, g, s, w in zip(before, node, part, seen, whole, strict=True)
            ]
            both = np.where(node[0] == node[1], before[0] + below[node[0]] * part[0] * part[1], seen[0])
            joint = np.where(parent[0] == parent[1], both - seen[0] * seen[1] / whole[0], 0.0)
            second += alone[0] + alone[1] - 2 * joint
            ends = [
                p + (spread[k] - spread[f]) + share[depth][k] * g
                for p, k, f, g in zip(parent, node, first, part, strict=True)
            ]
        top = variance[0]
        total = np.concatenate([[0.0], np.cumsum(top)])
        node = [np.minimum(t.astype(np.int64), len(top) - 1) for t in ends]
        part = [t - k for t, k in zip(ends, node, strict=True)]
        same = node[0] == node[1]
        apart = total[node[1]] - total[node[0]] - top[node[0]] + top[node[0]] * (1 - part[0]) ** 2
        second += np.where(same, top[node[0]] * (part[1] - part[0]) ** 2, apart + top[node[1]] * part[1] ** 2)
        second = np.maximum(second, 0.0)
        return second, second**2 / 7

    inverse_fourth_is_exact = False

    @property
    def inverse_largest_coefficient(self) -> float:
        """Estimators average, and heavier levels measure finer steps."""
        return 1.0 / min(self.weights)

    @property
    def largest_entry(self) -> int:
        """The weight of the dearest level."""
        return max(self.weights)

    def column_norms(self) -> Array:
        """Every cell lies in one block of every level."""
        return np.full(self.cols, sum(self.weights), dtype=np.int64)

    def farthest(self, offsets: Array) -> int:
        """Two cells side by side on either side of a border between the coarsest blocks share no block."""
        if not len(offsets):
            return 0
        return max((2 * sum(self.weights[i:]) for i, b in enumerate(self.blocks) if b < self.cols), default=0)

    def column_distances(self, u: Array, v: Array) -> Array:
        """Two blocks of every level on which the cells are apart."""
        distances = np.zeros(np.shape(u), dtype=np.int64)
        for k, b in zip(self.weights, self.blocks, strict=True):
            distances += 2 * k * (u // b != v // b)
        return distances

    def sparse(self) -> scipy.sparse.csc_matrix:
        """A column has an entry a level."""
        cell = np.arange(self.cols)
        first = np.cumsum([0, *self._sizes[:-1]])
        rows = np.stack([start + cell // b for start, b in zip(first, self.blocks, strict=True)], axis=-1)
        values = np.broadcast_to(np.array(self.weights, dtype=np.int64), rows.shape)
        starts = len(self.blocks) * np.arange(self.cols + 1)
        return scipy.sparse.csc_matrix((values.ravel(), rows.ravel(), starts), shape=(self.rows, self.cols))

    def pair_types(self, offset: int | None) -> PairTypes:
        """Two cells share the blocks from the coarsest level down to the one where they part.

        Nothing but that level matters, so one pair stands for all that part there: the first cell with its partner, or
        the two on either side of a level's first border.
        """
        if offset is None:
            # One pair for every level at which cells can part, beginning with a cell and itself.
            u = np.zeros(1 + len(self.blocks), dtype=np.int64)
            v = np.array([0, *(b if b < self.cols else 0 for b in self.blocks)])
        else:
            step = abs(offset)
            u = np.array([0, *(max(b - step, 0) for b in self.blocks)])
            u = u[u + step < self.cols]
            v = u + step
        together = np.stack([u // b == v // b for b in self.blocks], axis=-1).astype(np.int64)
        values = [pair for k in self.weights for pair in ((k, k), (k, 0), (0, k))]
        counts = np.stack([together, 1 - together, 1 - together], axis=-1).reshape(len(u), -1)
        return PairTypes.of(values, counts)


def _sum_groups(values: Array, ratio: int) -> Array:
    """Sums over runs of `ratio` values, the last run possibly short."""
    missing = -values.shape[-1] % ratio
    if missing:
        values = np.concatenate([values, np.zeros_like(values, shape=(*values.shape[:-1], missing))], axis=-1)
    return values.reshape(*values.shape[:-1], -1, ratio).sum(axis=-1)


def _spread(values: Array, ratio: int, size: int) -> Array:
    """Each value repeated for its children, cut to the number of children there are."""
    return np.repeat(values, ratio, axis=-1)[..., :size]
