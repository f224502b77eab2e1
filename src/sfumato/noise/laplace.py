"""The discrete Laplace distribution: the noise that every mechanism adds to its integers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidInput
from sfumato.exact import Number, fraction, positive_fraction, positive_int
from sfumato.noise.expansion import expansion
from sfumato.noise.geometric import Geometric, checked_size
from sfumato.noise.planes import ByteSupply, chunk, draw
from sfumato.noise.source import Source, require

Shape = int | tuple[int, ...]

# Sixty digits: the largest quantile has about twenty before the point, which leaves forty to round it by.
_DECIMAL = Context(prec=60, Emin=-(10**9), Emax=10**9)


@dataclass(frozen=True)
class DiscreteLaplace:
    """P[K = k] = (1 - α)/(1 + α)·α^|k| for every integer k, with α = exp(-rate) and the rate an exact fraction.

    **Promise.** Integers that differ by at most Δ in L1 norm, each with independent noise of rate ε/Δ added, are
    ε-private: a shift by one changes a probability by a factor of at most exp(rate). Drawn from uniform random words,
    `size` values are at total variation distance d ≤ `distance_bound(size)` < 2⁻¹⁰⁰ from that, which makes the release
    (ε, (1 + exp(ε))·d)-private.

    **How.** K = G⁺ - G⁻ with two independent geometric variables of the same rate.
    """

    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", Geometric(self.rate).rate)

    @classmethod
    def calibrated(cls, *, epsilon: Number, sensitivity: int) -> DiscreteLaplace:
        """The noise that makes integers of that L1 sensitivity ε-private."""
        return cls(positive_fraction(epsilon, "epsilon") / positive_int(sensitivity, "sensitivity"))

    def sample(self, size: Shape, source: Source) -> NDArray[np.int64]:
        """Independent values in the given shape. Needs the memory of the result and a constant buffer."""
        shape = _shape(size)
        values = np.empty(math.prod(shape), dtype=np.int64)
        for part, plus, minus in self._halves(values.size, source):
            np.subtract(plus, minus, out=values[part])
        return values.reshape(shape)

    def sample_pair(self, size: Shape, source: Source) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(G⁺, G⁻), whose difference is what `sample` returns for the same words.

        Gradual release refines each of the two. The pair is as secret as the data.
        """
        shape = _shape(size)
        above, below = np.empty((2, math.prod(shape)), dtype=np.int64)
        for part, plus, minus in self._halves(above.size, source):
            above[part], below[part] = plus, minus
        return above.reshape(shape), below.reshape(shape)

    def _halves(self, count: int, source: Source) -> Iterator[tuple[slice, NDArray[np.int64], NDArray[np.int64]]]:
        """G⁺ and G⁻ for one chunk after the other, so that no buffer grows with the count."""
        stream = ByteSupply(require(source))
        table = expansion(self.rate)
        step = chunk(table)
        for start in range(0, count, step):
            part = slice(start, min(start + step, count))
            yield part, draw(table, part.stop - start, stream), draw(table, part.stop - start, stream)

    def distance_bound(self, size: int) -> Fraction:
        """A proven bound on the total variation distance between `size` values drawn and independent exact ones."""
        return 2 * Geometric(self.rate).distance_bound(size)

    @property
    def scale(self) -> float:
        """b = 1/rate, the scale of the continuous Laplace distribution with the same privacy."""
        return float(1 / self.rate)

    @property
    def variance(self) -> float:
        """2α/(1 - α)²; about 2b² for large scales, and less for small ones."""
        return 2 * self._alpha / self._beta**2

    @property
    def std(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.variance)

    @property
    def fourth_cumulant(self) -> float:
        """2α(1 + 4α + α²)/(1 - α)⁴: what the fourth moment of a sum of such noise needs beside its variance."""
        return 2 * self._alpha * (1 + 4 * self._alpha + self._alpha**2) / self._beta**4

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """P[K = k]; zero between the integers."""
        k = np.asarray(k, dtype=np.float64)
        mass = math.tanh(self._float_rate / 2) * np.exp(-self._float_rate * np.abs(k))
        return np.where(k == np.floor(k), mass, 0.0)

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        """P[K ≤ k]. The upper tail P[K > k] is `cdf(-k - 1)` for an integer k, with all its digits."""
        k = np.floor(np.asarray(k, dtype=np.float64))
        tail = np.exp(-self._float_rate * np.where(k < 0, -k, k + 1)) / (1 + self._alpha)
        return np.where(k < 0, tail, 1 - tail)

    def quantile(self, coverage: float) -> int:
        """The smallest t with P[|K| ≤ t] ≥ coverage. The coverage is read as the decimal that prints it."""
        wanted = fraction(coverage, "coverage")
        if not 0 < wanted < 1:
            raise InvalidInput(f"coverage={coverage!r} must lie between 0 and 1, both excluded.")
        # P[|K| > t] = 2α^(t+1)/(1 + α) ≤ 1 - coverage, solved for t with so many digits that rounding cannot matter:
        # equality would need a transcendental number to be rational.
        if self.rate > math.ceil(1 / (1 - wanted)).bit_length() + 1:
            return 0  # P[K ≠ 0] < 2·2^-rate already; and the exponential of a huge number takes for ever
        context = _DECIMAL
        rate = _decimal(self.rate, context)
        alpha = context.exp(-rate)
        share = context.multiply(_decimal((1 - wanted) / 2, context), context.add(1, alpha))
        least = context.divide(-context.ln(share), rate)
        return max(0, math.ceil(least) - 1)

    def characteristic(self, t: ArrayLike) -> NDArray[np.float64]:
        """E[exp(itK)] = (1 - α)²/(1 - 2α·cos t + α²), a real number; written without the cancellation near α = 1."""
        half = np.sin(np.asarray(t, dtype=np.float64) / 2)
        return np.asarray(self._beta**2 / (self._beta**2 + 4 * self._alpha * half**2))

    @property
    def _float_rate(self) -> float:
        return float(min(self.rate, Fraction(10**6)))  # beyond, α is zero in floating point all the same

    @property
    def _alpha(self) -> float:
        return math.exp(-self._float_rate)

    @property
    def _beta(self) -> float:
        """1 - α, with all its digits when α is near one."""
        return -math.expm1(-self._float_rate)


def _shape(size: Shape) -> tuple[int, ...]:
    shape = tuple(checked_size(length) for length in (size if isinstance(size, tuple) else (size,)))
    checked_size(math.prod(shape))
    return shape


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))
