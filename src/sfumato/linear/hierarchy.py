"""Nested blocks of cells, and least squares on them in two passes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.linear.operator import Array, Operator
from sfumato.linear.pairs import PairTypes


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
    """Counts of nested blocks, the coarsest level first; the last block of a level may be cut short by the end of the
    line.

    The pseudo-inverse is the exact least-squares solution in O(n): upwards every node takes the best combination of
    its own value and the sum of its children's, downwards every child takes its share of what its parent knows
    better. Hay, Rastogi, Miklau, Suciu (VLDB 2010), here for unequal branching and any length.
    """

    def __init__(self, n: int, blocks: Sequence[int]) -> None:
        self.blocks = tuple(int(b) for b in blocks)
        if not self.blocks or self.blocks[-1] != 1 or any(a <= b or a % b for a, b in pairwise(self.blocks)):
            raise InvalidInput(
                f"blocks={self.blocks} must fall from the largest to 1, each a multiple of the next one."
            )
        self.cols = n
        self._sizes = [-(-n // block) for block in self.blocks]
        self._ratios = [a // b for a, b in pairwise(self.blocks)]
        self.rows = sum(self._sizes)

    def forward(self, x: Array) -> Array:
        """Sums over the blocks of every level."""
        levels = [x]
        for ratio in reversed(self._ratios):
            levels.append(_sum_groups(levels[-1], ratio))
        return np.concatenate(levels[::-1], axis=-1)

    def transpose(self, y: Array) -> Array:
        """Every cell receives the values of the blocks that hold it."""
        levels = self._split(y)
        total = levels[0]
        for ratio, level in zip(self._ratios, levels[1:], strict=True):
            total = _spread(total, ratio, level.shape[-1]) + level
        return total

    def _split(self, y: Array) -> list[Array]:
        return np.split(y, np.cumsum(self._sizes)[:-1], axis=-1)

    @cached_property
    def _weights(self) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """(own, share, variance) of every level but the finest for the first two, of every level for the last.

        The weight of a node's own value on the way up, a child's share of the remainder on the way down, and the
        variance of a node's estimate from what lies below it, all for noise of variance one.
        """
        variance = [np.ones(self._sizes[-1])]
        own: list[NDArray[np.float64]] = []
        share: list[NDArray[np.float64]] = []
        for ratio in reversed(self._ratios):
            below = _sum_groups(variance[-1], ratio)
            share.append(variance[-1] / _spread(below, ratio, len(variance[-1])))
            own.append(below / (below + 1))
            variance.append(own[-1])  # 1·V / (1 + V): the same expression
        return own[::-1], share[::-1], variance[::-1]

    def pinv(self, y: Array) -> Array:
        """Least squares: up, then down."""
        own, share, _ = self._weights
        best = [self._split(y)[-1]]
        sums: list[Array] = []
        for depth in range(len(self._ratios) - 1, -1, -1):
            sums.append(_sum_groups(best[-1], self._ratios[depth]))
            best.append(own[depth] * self._split(y)[depth] + (1 - own[depth]) * sums[-1])
        best, sums = best[::-1], sums[::-1]
        value = best[0]
        for depth, ratio in enumerate(self._ratios):
            size = self._sizes[depth + 1]
            value = best[depth + 1] + share[depth] * _spread(value - sums[depth], ratio, size)
        return np.asarray(value, dtype=np.float64)

    def pinv_transpose(self, q: Array) -> Array:
        """The adjoint of the two passes, in reverse."""
        own, share, _ = self._weights
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
        return np.concatenate(levels, axis=-1)

    def inverse_range_moments(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(‖(A⁺)ᵀr‖², and a stand-in for the fourth power) for many ranges, in O(log n) each.

        On the way down, what a node's children learn from each other is independent of everything above. A range
        touches only the nodes that hold one of its ends, and seen from one level higher it is a range again, with
        other shares at its ends. The fourth moment would need every coefficient; there are many and none dominates,
        so it is put at a seventh of the squared second moment, which errs to the wide side.
        """
        share, variance = self._weights[1], self._weights[2]
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

    def column_norms(self) -> Array:
        """Every cell lies in one block of every level."""
        return np.full(self.cols, len(self.blocks), dtype=np.int64)

    def pair_types(self, offset: int | None) -> PairTypes:
        """Two cells share the blocks from the coarsest level down to the one where they part."""
        depth = len(self.blocks)
        if offset is None:
            # One pair for every level at which cells can part, beginning with those that share nothing.
            firsts = [0, *(b for b in self.blocks[::-1] if b < self.cols)]
            shared = np.array([sum(cell < block for block in self.blocks) for cell in firsts])
        else:
            u = np.arange(max(0, -offset), self.cols - max(0, offset))
            shared = sum((u // b == (u + offset) // b).astype(np.int64) for b in self.blocks) + 0 * u
        return PairTypes.of([(1, 1), (1, 0), (0, 1)], np.stack([shared, depth - shared, depth - shared], axis=-1))


def _sum_groups(values: Array, ratio: int) -> Array:
    """Sums over runs of `ratio` values, the last run possibly short."""
    missing = -values.shape[-1] % ratio
    if missing:
        values = np.concatenate([values, np.zeros_like(values, shape=(*values.shape[:-1], missing))], axis=-1)
    return values.reshape(*values.shape[:-1], -1, ratio).sum(axis=-1)


def _spread(values: Array, ratio: int, size: int) -> Array:
    """Each value repeated for its children, cut to the number of children there are."""
    return np.repeat(values, ratio, axis=-1)[..., :size]
