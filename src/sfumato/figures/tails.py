"""How likely the noise in one figure is at least so much: the whole law, with bounds on either side.

**What is promised.** `least(x) ≤ P[N ≥ x] ≤ most(x)`. Where the coefficients are multiples of a step, the law on that
lattice is computed whole by its characteristic function, and both bounds are the probability itself. Elsewhere a little
normal noise G of known size is added, which makes the law smooth. N ≥ x and G ≥ -e are independent and imply N + G ≥ x
- e; N + G ≥ x + e implies N ≥ x unless G > e: with e of eight and a half deviations of G the bounds are those of the
smooth law, moved by e either way. Where a figure feels noises in very many ways, their coefficients are rounded first,
and what rounding leaves out is bounded likewise, by Chernoff's inequality.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.release.laws import Group, common_steps

# Numbers in the table of a law.
_LONGEST = 1 << 20
# What probabilities may be wrong by: rounding in the transform, what comes round its circle, and what is left out.
GUARD = 2e-14
_LEFT_OUT = 34.5  # e^-34.5 is a twentieth of that
# The normal noise that is added, as a part of the law's deviation; and how far it reaches, in its own.
_SMEAR, _FAR = 1 / 256, 8.5
# Of a step, for rounding in floating point.
_HAIR = 1e-9
# Coefficients of different size beyond which they are rounded, to this part of the largest.
_SIZES = 512


@dataclass(frozen=True, eq=False)
class Tail:
    """The law of Σ c·η, which is symmetric around zero: P[N ≥ k·grid] for k from 0 on, on a lattice or smooth, and how
    far an estimate may be from that.
    """

    deviation: float
    largest: float
    lattice: bool
    grid: float
    away: float
    table: Floats

    @classmethod
    def of(cls, groups: Sequence[Group]) -> Tail:
        """From (coefficients, how often each occurs, noise)."""
        felt = [(np.abs(c[(n > 0) & (c != 0)]), n[(n > 0) & (c != 0)], noise) for c, n, noise in groups]
        largest = max((float(c.max(initial=0.0)) for c, _, _ in felt), default=0.0)
        deviation = math.sqrt(sum(noise.variance * float((n * c**2).sum()) for c, n, noise in felt))
        if deviation == 0:
            return cls(0.0, 0.0, True, 1.0, 0.0, np.zeros(1))
        step, exact = common_steps([c[None] for c, _, _ in felt], np.array([largest]))
        # So far out that what comes round the circle is nothing.
        reach = float(_reach(felt) + largest)
        points = _power(2 * reach / step[0] + 4)
        if exact[0] and points <= _LONGEST:
            angle = 2 * np.pi * np.arange(points // 2 + 1) / points
            law = np.exp(_log([(c / step[0], n, noise) for c, n, noise in felt], angle))
            mass = np.maximum(np.fft.irfft(law, points)[: points // 2], 0.0)
            # An estimate off the integers is rounded, in fixed point.
            away = 0.0 if step[0] == round(step[0]) else 1e-3 * largest
            return cls(deviation, largest, True, float(step[0]), away, np.cumsum(mass[::-1])[::-1])
        smear = _SMEAR * deviation
        rounded: list[Group] = felt
        left_out = 0.0
        reach += 2 * _FAR * smear
        if sum(len(c) for c, _, _ in felt) > _SIZES:
            rounded, left_out = _rounded(felt, largest / _SIZES)
        points = _power(2 * reach / smear * 9 / np.pi)
        turn: Floats = np.pi / reach * np.arange(points // 2 + 1, dtype=np.float64)
        waves = -1j * np.exp(_log(rounded, turn) - 0.5 * (smear * turn) ** 2) / np.maximum(turn, turn[1])
        waves[0] = 0.0
        within = np.fft.irfft(waves, points)[: points // 2] * points / (2 * reach)
        above: Floats = np.clip(0.5 - np.arange(points // 2) / points - within, 0.0, 1.0)
        return cls(deviation, largest, False, 2 * reach / points, _FAR * smear + left_out, above)

    def most(self, x: Floats) -> Floats:
        """At least P[N ≥ x]."""
        return np.minimum(self._above(np.asarray(x) - self.away, np.ceil if self.lattice else np.floor) + GUARD, 1.0)

    def least(self, x: Floats) -> Floats:
        """At most P[N ≥ x]."""
        return np.maximum(self._above(np.asarray(x) + self.away, np.ceil) - GUARD, 0.0)

    def least_beyond(self, x: Floats) -> Floats:
        """At most P[N > x]."""
        if not self.lattice:
            return self.least(x)
        place = np.floor((np.asarray(x) + self.away) / self.grid + _HAIR) + 1
        return np.maximum(self._at(place.astype(np.int64)) - GUARD, 0.0)

    def _above(self, x: Floats, to: np.ufunc) -> Floats:
        # On a lattice a hair is left for rounding in floating point.
        far = len(self.table) + 2.0
        place = np.clip(x / self.grid - (_HAIR if self.lattice else 0.0), -far, far)
        return self._at(to(place).astype(np.int64))

    def _at(self, k: Integers) -> Floats:
        """P[N ≥ k steps], or that of the smooth law; below zero by symmetry, on a lattice as 1 - P[N ≥ 1 - k]."""
        last, mirrored = len(self.table) - 1, (1 if self.lattice else 0) - k
        above = np.where(k <= last, self.table[np.clip(k, 0, last)], 0.0)
        below = np.where(mirrored <= last, self.table[np.clip(mirrored, 0, last)], 0.0)
        return np.where(k > 0, above, 1 - below)


def _power(size: float) -> int:
    return 1 << math.ceil(math.log2(size))


def _log(felt: Sequence[Group], angle: Floats) -> Floats:
    """The logarithm of the characteristic function."""
    found = np.zeros(len(angle))
    for c, n, noise in felt:
        step = max(1, (1 << 20) // len(angle))
        for at in range(0, len(c), step):
            found += n[at : at + step] @ np.log(noise.characteristic(np.outer(c[at : at + step], angle)))
    return found


def _rounded(felt: Sequence[Group], step: float) -> tuple[list[Group], float]:
    """(groups with coefficients that are multiples of a step, what these leave out but for a chance of 2·e^-34.5)."""
    groups, rest = list[Group](), list[Group]()
    for c, n, noise in felt:
        sizes, which = np.unique(np.rint(c / step), return_inverse=True)
        groups.append((step * sizes, np.bincount(which.ravel(), n, len(sizes)).astype(np.float64), noise))
        rest.append((np.abs(c - step * np.rint(c / step)), n, noise))
    return groups, _reach(rest)


def _reach(groups: Sequence[Group]) -> float:
    """Beyond this there is noise with a chance of e^-34.5 at most on either side, by Chernoff's inequality."""
    largest = max(float(c.max(initial=0.0)) for c, _, _ in groups)
    variance = sum(noise.variance * float((n * c**2).sum()) for c, n, noise in groups)
    if variance == 0:
        return 0.0
    steepest = min(float(noise.rate) / float(c.max()) for c, _, noise in groups if len(c) and c.max() > 0)
    rates = np.geomspace(0.01, 0.97, 40) * min(steepest, 30 / largest)
    return min((_LEFT_OUT + _raised(groups, s)) / s for s in rates.tolist())


def _raised(groups: Sequence[Group], s: float) -> float:
    """log E[exp(s·Σ c·η)], where E[exp(s·c·η)] = 1/(1 - σ²·(cosh(s·c) - 1)); infinite where there is none."""
    total = 0.0
    for c, n, noise in groups:
        inner = noise.variance * (np.cosh(np.minimum(s * c, 700.0)) - 1)
        if (inner >= 1).any():
            return math.inf
        total -= float((n * np.log1p(-inner)).sum())
    return total


def at_most(groups: Sequence[Group], x: float) -> float:
    """A bound on P[Σ c·η ≥ x] by Chernoff's inequality, in which no law is written out."""
    sizes = [(np.abs(c), n, noise) for c, n, noise in groups]
    variance = sum(noise.variance * float((n * c**2).sum()) for c, n, noise in sizes)
    if variance == 0 or x <= 0:
        return 1.0 if x <= 0 else 0.0
    rates = np.geomspace(0.05, 2.0, 16) * min(x / variance, 2 / math.sqrt(variance))
    return min(1.0, *(math.exp(min(_raised(sizes, s) - s * x, 0.0)) for s in rates.tolist()))
