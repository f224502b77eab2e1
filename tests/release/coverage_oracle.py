"""The exact law of an answer on a small domain, from the mechanism's own estimator and nothing that intervals use."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanism.base import LinearMechanism
from sfumato.noise import DiscreteLaplace

Floats = NDArray[np.float64]
Terms = list[tuple[Floats, DiscreteLaplace]]

# One noise at a time of this size: what an estimator rounds in fixed point is lost beside it.
AMPLITUDE = 1 << 18
# The longest table of a law.
LONGEST = 1 << 15


def moved_by_noise(mechanism: LinearMechanism) -> Terms:
    """For every vector of noise, what a unit of each of its entries adds to every cell: (cells × entries, law)."""
    total = 0 if mechanism.policy.total_is_public else None
    laws = mechanism.noises(total)
    nothing = np.zeros(mechanism.policy.domain.size, dtype=np.int64)
    terms = []
    for t, (law, size) in enumerate(laws):
        columns = []
        for j in range(size):
            noise = [np.zeros(length, dtype=np.int64) for _, length in laws]
            noise[t][j] = AMPLITUDE
            columns.append(mechanism.estimate(mechanism.measure(nothing, noise), total).ravel() / AMPLITUDE)
        terms.append((np.array(columns).T.reshape(len(nothing), size), law))
    return terms


def boxes(shape: tuple[int, ...], low: Floats, high: Floats) -> Floats:
    """The share of every cell in boxes of cell coordinates, one row a box, written out cell by cell."""
    rows = []
    for a, b in zip(low, high, strict=True):
        along = [
            [max(0.0, min(y, cell + 1) - max(x, cell)) for cell in range(n)]
            for x, y, n in zip(a, b, shape, strict=True)
        ]
        rows.append(reduce(np.multiply.outer, map(np.array, along)).ravel())
    return np.array(rows)


def deviation(felt: Terms) -> float:
    """The standard error of Σ c·η."""
    return math.sqrt(sum(law.variance * float((c**2).sum()) for c, law in felt))


class Law:
    """The law of |Σ c·η|, by its characteristic function.

    Exact on a lattice, where the coefficients have a common step. Elsewhere nothing is rounded, but the law is smeared
    by a normal variable whose deviation is a few ten-thousandths of its own, and `holds` asks about a margin six such
    deviations wider: what it says is never too little, and too much only where a margin misses by that.
    """

    def __init__(self, felt: Terms) -> None:
        largest = max((float(np.abs(c).max(initial=0.0)) for c, _ in felt), default=0.0)
        self.largest, self.deviation = largest, deviation(felt)
        sizes = [(np.abs(c[np.abs(c) > 1e-9 * largest]), law) for c, law in felt]
        sizes = [(*np.unique(np.round(c / largest, 10), return_counts=True), law) for c, law in sizes if largest]
        # So far out that what comes round the circle is nothing.
        tails = [largest * float(c.max()) * law.quantile(1 - 1e-12) for c, _, law in sizes if len(c)]
        reach = 16 * self.deviation + max(tails, default=0.0)
        self.step = _common_step(np.concatenate([c for c, _, _ in sizes])) * largest if largest else 0.0
        points = 1 << math.ceil(math.log2(2 * reach / self.step + 4)) if self.step else LONGEST + 1
        if points > LONGEST:
            self.step, points = 0.0, 2 * LONGEST
        width = self.step * points if self.step else 2 * reach
        self.angle = 2 * np.pi * np.arange(points // 2 + 1) / max(width, 1e-300)
        log = np.zeros(len(self.angle))
        for c, often, law in sizes:
            for k, n in zip(c * largest, often, strict=True):
                log += n * np.log(law.characteristic(k * self.angle))
        if self.step:
            mass = np.fft.irfft(np.exp(log), points)
            self.mass = np.concatenate([mass[:1], 2 * mass[1 : points // 2]])
        else:
            self.smear = width / points
            self.weight = np.exp(log - 0.5 * (self.smear * self.angle) ** 2)
            self.width = width

    def holds(self, margin: float) -> float:
        """P[|Σ c·η| ≤ margin]."""
        if self.largest == 0:
            return 1.0 if margin >= 0 else 0.0
        if margin < 0:
            return 0.0
        if self.step:
            return float(self.mass[: math.floor(margin / self.step * (1 + 1e-9) + 1e-7) + 1].sum())
        t, u = margin + 6 * self.smear, self.angle[1:]
        return float((2 * t + 4 * (self.weight[1:] * np.sin(u * t) / u).sum()) / self.width)


def _common_step(sizes: Floats) -> float:
    """The smallest coefficient over a small whole number, if all are multiples of that; else zero."""
    for parts in range(1, 17):
        ratios = sizes * parts / sizes.min()
        if np.abs(ratios - np.rint(ratios)).max() < 1e-7 * parts and ratios.max() < 1e5:
            return float(sizes.min()) / parts
    return 0.0
