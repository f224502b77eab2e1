"""Noise that can be made smaller later, with the privacy of its last level alone.

**Promise.** Publish x + V₁, later x + V₂, …, x + V_m, where V_i is `value` of one `Refinable` at the rates
r₁ < r₂ < … < r_m. Each V_i is discrete Laplace noise of rate r_i, as good as noise drawn for that rate alone; and all
together tell x from x + 1 by a factor of at most exp(r_m), not exp(r₁ + … + r_m). The levels need not be known in
advance and may be chosen after looking at what was published so far.

**How.** V = G⁺ - G⁻ with two independent geometric variables. A finer level replaces each G by min(G, T), with a fresh
T ~ Geometric(r₂ - r₁).

**Why.** P[min(G, T) ≥ k] = exp(-r₁·k)·exp(-(r₂ - r₁)·k) = exp(-r₂·k): the minimum is geometric of rate r₂. Given
min(G, T) = k, either G = k, or T = k and G exceeds k; by the lack of memory the excess G - k has the same law for every
k. So the coarser value is the finer one plus *independent* noise, which is zero with positive probability, and that
stays true along the chain: all earlier levels are the last one with noise added, post-processing of one release at
r_m. This is the integer form of the process of Koufogiannis, Han and Pappas (2015, equation 2 and Theorem 2), with no
rounding anywhere. Drawn from random words, every level adds `DiscreteLaplace.distance_bound` at the rate of its step to
the distance from exact.

**What it does not protect.** Whoever knows the pair (G⁺, G⁻) and a release knows x. And two refinements of one pair
with different T are *not* levels of one chain: together they average the noise away. Keep the pair secret, replace it
when it is refined, and never return to an older one (`sfumato.vault.vault`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.exact import Number, positive_fraction, text
from sfumato.noise.expansion import MAX_BITS, SMALLEST_RATE, bits, expansion
from sfumato.noise.geometric import Geometric
from sfumato.noise.laplace import DiscreteLaplace, Shape
from sfumato.noise.planes import STEADY, ByteSupply, chunk, draw
from sfumato.noise.source import Source, require

SPARED = 2  # bits by which the low part of T is shorter than a fresh value: what is spared pays for the rest


@dataclass(frozen=True, eq=False, kw_only=True)
class Refinable:
    """G⁺ and G⁻ at a rate (ε / sensitivity). As secret as the data; neither `repr` nor any error shows a value.

    `private` is False as soon as one of the sources it was drawn from was seeded.
    """

    plus: NDArray[np.int64]
    minus: NDArray[np.int64]
    rate: Fraction
    private: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", DiscreteLaplace(self.rate).rate)
        if not isinstance(self.private, bool):
            raise InvalidInput(f"private={self.private!r} must be True or False.")
        for name in ("plus", "minus"):
            object.__setattr__(self, name, _half(getattr(self, name), name))
        if self.plus.shape != self.minus.shape:
            raise InvalidInput(f"plus of shape {self.plus.shape} and minus of shape {self.minus.shape} must be alike.")

    @classmethod
    def draw(cls, rate: Number, size: Shape, source: Source) -> Refinable:
        """Fresh noise. Its value is what `DiscreteLaplace(rate).sample` draws from the same words."""
        exact = positive_fraction(rate, "rate")
        plus, minus = DiscreteLaplace(exact).sample_pair(size, source)
        return cls(plus=plus, minus=minus, rate=exact, private=require(source).private)

    @property
    def value(self) -> NDArray[np.int64]:
        """The noise itself, discrete Laplace of this rate."""
        return np.asarray(self.plus - self.minus)  # a single value stays an array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the noise."""
        return self.plus.shape

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.plus.size

    def refine(self, rate: Number, source: Source) -> Refinable:
        """The next level of the chain. Publishing both levels costs what the finer one costs.

        This object stays as it was, and must be forgotten: a second refinement of it would be a second chain.
        """
        finer = positive_fraction(rate, "rate")
        if finer <= self.rate:
            raise InvalidInput(
                f"rate={text(finer)} must be greater than {text(self.rate)}, the rate of this noise: a level can only "
                "be finer than the one before. Nothing was drawn or recorded. For a coarser level use the release "
                "that was made at it."
            )
        step = finer - self.rate
        if step < SMALLEST_RATE:
            raise InvalidInput(
                f"rate={text(finer)} exceeds {text(self.rate)}, the rate of this noise, by less than "
                f"{float(SMALLEST_RATE):.2g}, the smallest step. Nothing was drawn or recorded. Use a larger rate."
            )
        private = self.private and require(source).private
        plus, minus = (_minimum(half, step, bits(finer), source) for half in (self.plus, self.minus))
        return Refinable(plus=plus, minus=minus, rate=finer, private=private)

    def __repr__(self) -> str:
        return f"Refinable(shape={self.shape}, rate={text(self.rate)}, private={self.private})"


def _minimum(values: NDArray[np.int64], rate: Fraction, enough: int, source: Source) -> NDArray[np.int64]:
    """min(G, T) for every value G, with a fresh T ~ Geometric(rate) for each. The minimum has about `enough` bits.

    After a small step T has many more bits than that. They are independent, so the low ones are drawn first, and the
    others only where the low ones alone are below G: elsewhere T ≥ G whatever the others are. Few values need them, and
    the law is that of a T drawn whole, also for a G that the low bits cannot hold. Small arrays do draw it whole, so
    that the work says nothing about the values, as in `planes`.
    """
    table = expansion(rate)
    low = max(enough - SPARED, 1)
    if values.size <= STEADY or len(table) < low + 2 * SPARED:
        low = len(table)
    stream = ByteSupply(require(source))
    step = chunk(table[:low])
    before = values.reshape(-1)
    after = np.empty_like(before)
    lowered = []
    for start in range(0, before.size, step):
        part, rest = before[start : start + step], after[start : start + step]
        np.minimum(part, draw(table[:low], part.size, stream), out=rest)
        if low < len(table):
            lowered.append(np.flatnonzero(rest < part) + start)
    if lowered:
        places = np.concatenate(lowered)
        high = Geometric(rate * 2**low).sample(places.size, source)
        # Shifted out of 64 bits it would wrap; and whatever is beyond the largest half does not matter.
        whole = after[places] + (np.minimum(high, 1 << (MAX_BITS - low)) << low)
        after[places] = np.minimum(before[places], whole)
    return after.reshape(values.shape)


def _half(values: object, name: str) -> NDArray[np.int64]:
    """A read-only view of one half, or a refusal that shows none of its values."""
    if isinstance(values, np.ndarray):
        values = np.ascontiguousarray(values).reshape(values.shape)
    if not isinstance(values, np.ndarray) or values.dtype != np.int64:
        kind = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise InvalidInput(f"{name} of type {kind} must be an array of int64.")
    if values.view(np.uint64).max(initial=0) >> MAX_BITS:  # read without a sign, what is negative is huge: one pass
        raise InvalidInput(f"{name} must hold whole numbers from 0 to 2^{MAX_BITS} - 1. None of them is shown.")
    view = values.view()
    view.flags.writeable = False
    return view
