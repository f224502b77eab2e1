"""A product part: one kind of query along every axis of a domain, and how much each of its queries counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato._types import Floats
from sfumato.linear.boxes import SummedArea
from sfumato.linear.queries import joint_gram, steps_of
from sfumato.workload.axis import AxisQueries
from sfumato.workload.listed import Given


@dataclass(frozen=True)
class Part:
    """All products of one query along every axis, each of which counts `weight` times.

    Given ranges along several axes go in step: the j-th range of one with the j-th of the others.

    >>> Part(Fraction(1), (RANGES, TOTAL)).count((4, 3))
    10
    """

    weight: Fraction
    kinds: tuple[AxisQueries, ...]

    def count(self, shape: tuple[int, ...]) -> int:
        """The number of queries."""
        apart = math.prod(kind.count(n) for kind, n in zip(self.kinds, shape, strict=True) if kind.steps is None)
        steps = [kind.steps for kind in self.kinds if kind.steps is not None]
        return apart * (steps[0] if steps else 1)

    def gram(self, shape: tuple[int, ...]) -> Floats:
        """WᵀW over the number of queries, dense."""
        return joint_gram(self.kinds, shape)

    def boxes(self, shape: tuple[int, ...]) -> tuple[Floats, Floats] | None:
        """All queries as boxes in cell coordinates of shape (boxes, axes), where every axis has given ranges."""
        if any(kind.steps is None for kind in self.kinds):
            return None
        ends = [kind.listed(n) or (np.zeros(0), np.zeros(0)) for kind, n in zip(self.kinds, shape, strict=True)]
        return np.stack([low for low, _ in ends], axis=-1), np.stack([high for _, high in ends], axis=-1)

    def sample(self, shape: tuple[int, ...], most: int) -> tuple[Floats, Floats]:
        """At most so many of its queries, as boxes, by a rule that knows nothing but the shape."""
        found = self.boxes(shape)
        if found is not None:
            return found
        rng = np.random.default_rng(0)  # the axes' samples are each in order: shuffled, they become boxes
        ends, step = [], None
        for kind, n in zip(self.kinds, shape, strict=True):
            low, high = kind.sample(n)
            pick = rng.permutation(len(low))[:most]
            if kind.steps is not None:
                pick = step = pick if step is None else step
            ends.append((low[pick], high[pick]))
        return np.stack([low for low, _ in ends], axis=-1), np.stack([high for _, high in ends], axis=-1)

    def mean_square(self, values: Floats) -> float:
        """The mean over its queries of (query · values)², for an array in the domain's shape."""
        steps = [axis for axis, kind in enumerate(self.kinds) if kind.steps is not None]
        if steps_of(self.kinds) is None:
            steps = []
        for axis, kind in enumerate(self.kinds):
            if axis not in steps:
                values = np.moveaxis(kind.root(np.moveaxis(values, axis, -1)), -1, axis)
        if not steps:
            return float((values**2).sum())
        ends = [kind.listed(1) for kind in self.kinds if kind.steps is not None]
        low, high = (np.stack([end[side] for end in ends if end is not None], axis=-1) for side in (0, 1))
        inner = tuple(values.shape[axis] for axis in steps)
        layers = np.moveaxis(values, steps, range(len(steps))).reshape(*inner, -1)
        squares = [(SummedArea(layers[..., i]).fractional_sums(low, high) ** 2).mean() for i in range(layers.shape[-1])]
        return float(sum(squares))

    def held(self, shape: tuple[int, ...], cell: Sequence[int]) -> float:
        """The mean square of the share of a cell in its queries."""
        return float(
            np.mean(math.prod(kind.held(n, int(i)) for kind, n, i in zip(self.kinds, shape, cell, strict=True)))
        )

    def spreads(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """What `AxisQueries.spreads` says along every axis, in the columns: one row, or one a step."""
        along = [kind.spreads(n) for kind, n in zip(self.kinds, shape, strict=True)]
        rows = max(len(within) for within, _ in along)
        both = (np.stack([np.broadcast_to(part[k], rows) for part in along], axis=-1) for k in range(2))
        within, mean = both
        return within, mean

    def kept(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The axes of which its queries ask more than the whole: no others are needed to answer them."""
        return tuple(np.flatnonzero(self.spreads(shape)[0].any(axis=0)).tolist())

    def along(self, axes: Sequence[int]) -> Part:
        """The same for some of the axes alone."""
        return Part(self.weight, tuple(self.kinds[axis] for axis in axes))


def product_of(parts: Sequence[Part]) -> Part:
    """The part whose queries are the products of one query of each, over the axes of all of them in order.

    Given ranges of two of them would go in step without being meant to: all pairs of them are written out first.
    """
    counts = [next((kind.steps for kind in part.kinds if kind.steps is not None), 1) for part in parts]
    total = inner = math.prod(counts)
    kinds: list[AxisQueries] = []
    for part, count in zip(parts, counts, strict=True):
        inner //= count
        step = np.arange(total) // inner % count
        for kind in part.kinds:
            ends = kind.listed(1)
            kinds.append(kind if kind.steps is None or ends is None else Given(ends[0][step], ends[1][step]))
    return Part(math.prod((part.weight for part in parts), start=Fraction(1)), tuple(kinds))
