"""Queries along one axis that are few enough to list: the whole axis, blocks of one length, given ranges."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.linear import Operator
from sfumato.linear.estimator import range_weights
from sfumato.workload.axis import SAMPLED_QUERIES, AxisQueries


class Few(AxisQueries):
    """Queries that can be listed: their variances are those of the list, exactly."""

    @abstractmethod
    def listed(self, n: int) -> tuple[Floats, Floats]:
        """All of them as ranges in cell coordinates; evenly thinned out beyond SAMPLED_QUERIES."""

    def mean_variance(self, estimator: Operator) -> float:
        """The mean over the list."""
        return float(estimator.range_moments(*self.listed(estimator.rows))[0].mean())

    def sample(self, n: int) -> tuple[Floats, Floats]:
        """Repeated, or spread evenly, until there are SAMPLED_QUERIES."""
        low, high = self.listed(n)
        index = np.arange(SAMPLED_QUERIES) * len(low) // SAMPLED_QUERIES
        return low[index], high[index]


@dataclass(frozen=True)
class Total(Few):
    """One query: the whole axis. It is how an axis of which nothing is asked is summed over."""

    ordered: ClassVar[bool] = False
    partial: ClassVar[bool] = False

    def listed(self, n: int) -> tuple[Floats, Floats]:
        """From end to end."""
        return np.zeros(1), np.full(1, float(n))

    def count(self, n: int) -> int:
        """One."""
        del n
        return 1

    def inclusion(self, n: int) -> Floats:
        """Everything."""
        return np.ones(n)

    def together(self, n: int, u: Integers, v: Integers) -> Floats:
        """Always."""
        del n
        return np.ones(np.broadcast_shapes(np.shape(u), np.shape(v)))

    def root(self, values: NDArray[Any]) -> Floats:
        """The sum."""
        return np.asarray(values.sum(axis=-1, keepdims=True))

    def explained(self, n: int, length: int) -> float:
        """The whole is constant on every block."""
        del length
        return float(n)

    def nuclear_norm(self, n: int) -> float:
        """One singular value, √n."""
        return math.sqrt(n)

    def describe(self) -> str:
        """In words."""
        return "the total"


@dataclass(frozen=True)
class Blocks(Few):
    """Every block of `length` cells side by side from the lower end; the last one may be cut short.

    Where no closed form says their mean it is taken over at most so many of them, spread evenly.
    """

    length: int
    most: int = SAMPLED_QUERIES

    @property
    def lengths(self) -> frozenset[int]:
        """Their own."""
        return frozenset({self.length})

    def listed(self, n: int) -> tuple[Floats, Floats]:
        """Side by side."""
        count = self.count(n)
        index = np.arange(count) if count <= self.most else np.arange(self.most) * count // self.most
        low = (index * self.length).astype(np.float64)
        return low, np.minimum(low + self.length, float(n))

    def count(self, n: int) -> int:
        """n / length, rounded up."""
        return -(-n // self.length)

    def inclusion(self, n: int) -> Floats:
        """Every cell lies in one."""
        return np.full(n, 1.0 / self.count(n))

    def together(self, n: int, u: Integers, v: Integers) -> Floats:
        """Where both lie in the same one."""
        return (np.asarray(u) // self.length == np.asarray(v) // self.length) / self.count(n)

    def root(self, values: NDArray[Any]) -> Floats:
        """The sums of the blocks."""
        n = values.shape[-1]
        return np.asarray(np.add.reduceat(values, np.arange(0, n, self.length), axis=-1) / math.sqrt(self.count(n)))

    def explained(self, n: int, length: int) -> float:
        """Σ over the pieces that both kinds of block cut the axis into, of piece² over the length of its block."""
        whole = n // length * length
        rest = n - whole
        squares = _squares_between(0, whole, self.length, length) / length if whole else 0.0
        if rest:
            squares += _squares_between(whole, n, self.length, length) / rest
        return squares / self.count(n)

    def nuclear_norm(self, n: int) -> float:
        """Blocks share no cell: a singular value is the root of a block's length."""
        count = self.count(n)
        last = n - (count - 1) * self.length
        return ((count - 1) * math.sqrt(self.length) + math.sqrt(last)) / math.sqrt(count)

    def describe(self) -> str:
        """In words."""
        return f"blocks of {self.length} cells"


@dataclass(frozen=True, eq=False)
class Given(Few):
    """Ranges in cell coordinates, one by one; a cell that is cut counts in proportion.

    Along several axes they go in step: the j-th along one axis and the j-th along the other make the j-th box.
    """

    low: Floats
    high: Floats

    @property
    def steps(self) -> int:
        """As many as there are ranges."""
        return len(self.low)

    def at(self, step: int) -> Given:
        """The range of one step."""
        return Given(self.low[step : step + 1], self.high[step : step + 1])

    def listed(self, n: int) -> tuple[Floats, Floats]:
        """As they are."""
        del n
        return self.low, self.high

    def spreads(self, n: int) -> tuple[Floats, Floats]:
        """Of each: from its whole cells and the two that it may cut."""
        first, last = np.ceil(self.low), np.floor(self.high)
        cut = (first - self.low) ** 2 + (self.high - last) ** 2
        square = np.where(last < first, (self.high - self.low) ** 2, last - first + cut)
        mean = (self.high - self.low) / n
        return np.maximum(square - n * mean**2, 0.0), mean**2

    def count(self, n: int) -> int:
        """As many as there are."""
        del n
        return len(self.low)

    def inclusion(self, n: int) -> Floats:
        """The mean share of each cell."""
        return np.asarray(self.weights(n).mean(axis=0))

    @cached_property
    def _grams(self) -> dict[int, Floats]:
        return {}

    def together(self, n: int, u: Integers, v: Integers) -> Floats:
        """The mean product of the shares of both."""
        u, v = np.broadcast_arrays(u, v)
        if u.size <= n:
            found = np.zeros(u.shape)
            for low, high in zip(self.low, self.high, strict=True):
                found += _share(u, low, high) * _share(v, low, high)
            return found / len(self.low)
        if n not in self._grams:
            weights = self.weights(n)
            self._grams[n] = weights.T @ weights / len(weights)
        return np.asarray(self._grams[n][u, v])

    def root(self, values: NDArray[Any]) -> Floats:
        """Their answers."""
        return np.asarray(values @ self.weights(values.shape[-1]).T / math.sqrt(len(self.low)))

    def variances(self, estimator: Operator) -> Floats:
        """One by one."""
        return np.asarray(estimator.range_moments(self.low, self.high)[0], dtype=np.float64)

    def weights(self, n: int) -> Floats:
        """The share of each cell in each range."""
        return range_weights(n, self.low, self.high)

    def held(self, n: int, cell: int) -> Floats:
        """Of each, squared."""
        del n
        return np.asarray(_share(np.array(cell), self.low, self.high) ** 2)

    def explained(self, n: int, length: int) -> float:
        """The mean of Σ over the blocks of overlap² over length."""
        return float(self.explained_each(n, length).mean())

    def explained_each(self, n: int, length: int) -> Floats:
        """Range by range: two blocks that hold an end, and whole ones between."""
        last = (n - 1) // length
        first, final = (np.minimum(t // length, last) for t in (self.low, self.high))
        ends = np.minimum((np.stack([first, final]) + 1) * length, n)
        sizes = ends - np.stack([first, final]) * length
        apart = (ends[0] - self.low) ** 2 / sizes[0] + (self.high - final * length) ** 2 / sizes[1]
        apart += np.maximum(final - first - 1, 0) * length
        return np.where(first == final, (self.high - self.low) ** 2 / sizes[0], apart)

    def nuclear_norm(self, n: int) -> None:
        """Ranges may overlap in any way."""
        del n

    def describe(self) -> str:
        """In words."""
        return f"{len(self.low)} given ranges"


TOTAL = Total()


def _share(cell: Integers, low: Floats, high: Floats) -> Floats:
    return np.asarray(np.clip(np.minimum(high, cell + 1) - np.maximum(low, cell), 0.0, 1.0))


def _squares_between(start: int, stop: int, own: int, other: int) -> float:
    """Σ piece² over the pieces of start … stop, which begins at a multiple of `other`, between multiples of either."""
    long, short = max(own, other), min(own, other)
    # Between two borders of the longer kind at most one piece of the shorter kind is cut: by that border, into two.
    pieces, tail = divmod(stop, short)
    before, head = divmod(start, short)
    squares = float((pieces - before) * short**2 + tail**2)
    if head:  # the piece in which we begin counts from there on alone
        inside = min((before + 1) * short, stop) - start
        squares += inside**2 - (short**2 if pieces > before else tail**2)
    borders = np.arange(start // long + 1, -(-stop // long)) * long
    left = borders % short
    right = np.minimum(borders - left + short, stop) - borders
    left = np.minimum(left, borders - start)
    return squares - float((2 * left * right)[left > 0].sum())
