"""The law of a partition by noisy costs (the first stage of DAWA), on few cells: the probability of every one.

Noise is drawn for the cost of every aligned run, and which partition comes out is a function of it. The probabilities
follow by summing over the noise, from short runs to long ones: a run is kept where it costs no more than the best
partition of its halves, and the halves know nothing of each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.noise import Geometric, Source

Starts = tuple[int, ...]

LEAST_PROBABILITY = 1e-12  # partitions less likely than that, for one of two neighbours, are not compared
TAIL_EXPONENT = 48.0  # noise beyond e⁻⁴⁸ is cut off: nine digits of the rarest partition are right


@dataclass(frozen=True, eq=False)
class PartitionLaw:
    """How a line of `size` entries is cut into aligned runs of 1, 2, 4, … entries.

    A run on level l costs prices[l] times its deviation, plus the penalty, less noise[l]; no noise where there is but
    one level, and nothing to choose.
    """

    size: int
    prices: tuple[int, ...]
    noise: tuple[Geometric, ...]
    penalty: int
    _laws: dict[bytes, dict[Starts, float]] = field(default_factory=dict)

    @property
    def levels(self) -> int:
        """How often runs are doubled."""
        return len(self.prices) - 1

    @cached_property
    def values_of_noise(self) -> int:
        """How many are summed over."""
        return math.ceil(max((TAIL_EXPONENT / float(law.rate) for law in self.noise), default=1))

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """First entry and end of the longest candidates: what happens in one is independent of the others."""
        width = 1 << self.levels
        return [(start, min(start + width, self.size)) for start in range(0, self.size, width)]

    @cached_property
    def partitions(self) -> int:
        """How many there are."""
        return math.prod(_patterns(end - start, self.levels) for start, end in self.blocks)

    def ratios(self, x: Integers, other: Integers) -> list[list[tuple[Starts, float]]]:
        """For every block its partitions, each with the logarithm of how much likelier x makes it."""
        found = []
        for start, end in self.blocks:
            one, two = self.law(x[start:end]), self.law(other[start:end])
            found.append(
                [
                    (tuple(start + at for at in starts), math.log(one[starts] / two[starts]))
                    for starts in one
                    if min(one[starts], two[starts]) > LEAST_PROBABILITY
                ]
            )
        return found

    def law(self, block: Integers) -> dict[Starts, float]:
        """The probability of every partition of a block."""
        # Costs are deviations: what is added to all entries of a block does not change them.
        key = (block - block.min()).tobytes()
        if key not in self._laws:
            _, found = self._node(block, 0, len(block), self.levels)
            self._laws[key] = {starts: float(weights.sum()) for starts, weights in found.items()}
        return self._laws[key]

    def _node(self, x: Integers, start: int, end: int, level: int) -> tuple[int, dict[Starts, Floats]]:
        """(t, weights w): with probability w[g] this partition of the run is the best one and costs t - g."""
        if not self.levels:
            return self.penalty, {(start,): np.ones(1)}
        rate, steps = float(self.noise[level].rate), np.arange(self.values_of_noise)
        noise = np.exp(-rate * steps) * -math.expm1(-rate)
        if level == 0:
            return self.penalty, {(start,): noise}
        middle = start + (1 << (level - 1))
        if middle >= end:
            return self._node(x, start, end, level - 1)  # without a sibling it is no candidate of its own
        left, lefts = self._node(x, start, middle, level - 1)
        right, rights = self._node(x, middle, end, level - 1)
        apart = left + right
        whole = self.prices[level] * _deviation(x[start:end]) + self.penalty
        parts = {
            one + two: self._two_cells if level == 1 else np.convolve(f, g)[: self.values_of_noise]
            for (one, f), (two, g) in product(lefts.items(), rights.items())
        }
        # The whole at t - g costs no more than the parts at t' - h when h ≤ t' - t + g; otherwise they are kept.
        at = steps + apart - whole
        reached = np.cumsum(sum(parts.values()))
        kept = noise * np.where(at < 0, 0.0, reached[np.clip(at, 0, self.values_of_noise - 1)])
        fewer = -np.expm1(-rate * np.maximum(steps + whole - apart, 0))
        top = max(apart, whole)
        found = {key: _lower(f * fewer, top - apart) for key, f in parts.items()}
        return top, {(start,): _lower(kept, top - whole)} | found

    @cached_property
    def _two_cells(self) -> Floats:
        """The sum of two equal geometric variables: no convolution is needed."""
        rate, steps = float(self.noise[0].rate), np.arange(self.values_of_noise)
        return np.asarray((steps + 1) * np.exp(-rate * steps) * math.expm1(-rate) ** 2)

    def cut(self, x: Integers, source: Source) -> Starts:
        """The partition that a run finds, anew from its random words: every candidate by itself."""
        if not self.levels:
            return tuple(range(self.size))
        counts, drawn = [self.size], [self.noise[0].sample(self.size, source)]
        for law in self.noise[1:]:
            pairs = counts[-1] // 2
            drawn.append(law.sample(pairs, source))
            counts.append(counts[-1] - pairs)

        def best(level: int, index: int) -> tuple[int, Starts]:
            if level == 0:
                return self.penalty - int(drawn[0][index]), (index,)
            if 2 * index + 1 >= counts[level - 1]:
                return best(level - 1, 2 * index)
            (left, one), (right, two) = best(level - 1, 2 * index), best(level - 1, 2 * index + 1)
            deviation = _deviation(x[index << level : (index + 1) << level])
            whole = self.prices[level] * deviation + self.penalty - int(drawn[level][index])
            return (whole, (index << level,)) if whole <= left + right else (left + right, one + two)

        return tuple(start for index in range(counts[-1]) for start in best(self.levels, index)[1])


def _deviation(run: Integers) -> int:
    """Σ|x_i - median|."""
    return int(np.abs(run - int(np.sort(run)[len(run) // 2])).sum())


def _patterns(length: int, level: int) -> int:
    """How many partitions a run of so many entries has."""
    if level == 0:
        return 1
    half = 1 << (level - 1)
    if length <= half:
        return _patterns(length, level - 1)
    return 1 + _patterns(half, level - 1) * _patterns(length - half, level - 1)


def _lower(weights: Floats, by: int) -> Floats:
    """The same costs counted down from a higher one."""
    return weights if by == 0 else np.concatenate([np.zeros(by), weights])[: len(weights)]
