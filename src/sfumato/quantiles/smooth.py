"""Noise in proportion to the smooth sensitivity: the mechanism of the δ-neighbourhood paper (section 5.5.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.exact import text
from sfumato.noise import Source
from sfumato.noise.continuous import cauchy, laplace
from sfumato.quantiles.base import between
from sfumato.quantiles.smooth_bound import MARGIN, smooth_sensitivity

LARGEST_SLACK = Fraction(1, 100)


@dataclass(frozen=True, kw_only=True)
class SmoothSensitivity:
    """The order statistic plus S/α·Z, rounded to the lattice and clamped; S is its smooth sensitivity (`smooth_bound`).

    **Promise**, for moves of one point by at most θ cells: with Cauchy noise (`slack=0`, method "smooth-pure")
    ε-private, with Laplace noise (method "smooth") only (ε, δ′)-private, δ′ = `slack`. α = ε/2 in both.

    **Proof.** Write σ = S/α and σ′ for the neighbour. Change the scale first, then the centre. The centre moves by at
    most the local sensitivity ≤ S′ = α·σ′. The density of f + σ·Z changes by a factor of at most
    - *Cauchy*: exp(|ln σ - ln σ′|) and exp(|f - f′|/σ′), since the derivatives of ln[1/(σ(1 + u²))], u = (z - f)/σ, by
      ln σ and by f/σ are (u² - 1)/(u² + 1) and 2u/(1 + u²), at most 1 in size. In all exp(β + α), and β = ε/2 will do.
      (Nissim, Raskhodnikova and Smith 2007 state ε/6 for both.)
    - *Laplace*: exp(|u|·(σ/σ′ - 1)) if σ′ < σ, σ′/σ ≤ e^β if not, and exp(|f - f′|/σ′). With e^β = 1 + ε/(2·ln(1/δ′))
      the first is at most exp(ε/2) unless |u| > ln(1/δ′), which has probability δ′; the second is, since δ′ < 1/e.
      (Nissim et al. state β = ε/(2·ln(2/δ′)), which needs a small ε; this one does not.)
    Rounding and clamping are post-processing; the noise is computed to within 2⁻¹⁴⁰ (`noise.continuous`). ∎

    **Error.** It depends on the data and is not stated. Cauchy noise has no finite mean error at all.
    """

    epsilon: Fraction
    theta: int
    cells: int
    slack: Fraction

    noise = None
    hides_number = False

    def __post_init__(self) -> None:
        if not 0 <= self.slack <= LARGEST_SLACK:
            raise InvalidInput(
                f"slack={text(self.slack)} must be at most {text(LARGEST_SLACK)}: it is the probability with which the "
                "promise may fail. Nothing was drawn or recorded. The default is 1e-9."
            )
        if self.beta <= MARGIN:
            raise InvalidInput(
                f"epsilon={text(self.epsilon)} is too small for method={self.name!r}, whose arithmetic has a margin of "
                f"{MARGIN:g}. Nothing was drawn or recorded. Use method='inverse' or 'laplace'."
            )

    @property
    def name(self) -> str:
        """What `method=` calls it."""
        return "smooth" if self.slack else "smooth-pure"

    @property
    def alpha(self) -> Fraction:
        """The share of ε for the centre."""
        return self.epsilon / 2

    @property
    def beta(self) -> float:
        """How fast the bound may change from neighbour to neighbour, less the margin for its arithmetic."""
        half = float(min(self.epsilon, Fraction(1000))) / 2  # a smaller β is always right
        if not self.slack:
            return half - MARGIN
        surprise = math.log(self.slack.denominator) - math.log(self.slack.numerator)  # of any size: not through a float
        return math.log1p(half / surprise) - MARGIN

    def run(self, located: NDArray[np.int64], rank: int, source: Source) -> int:
        """The noisy cell."""
        value, bound = smooth_sensitivity(located, rank, beta=self.beta, theta=self.theta, cells=self.cells)
        noise = laplace(source) if self.slack else cauchy(source)
        noisy = value + Fraction(bound) / self.alpha * noise
        return min(max(math.floor(noisy + Fraction(1, 2)), 0), self.cells - 1)

    def law(self, located: NDArray[np.int64], rank: int) -> NDArray[np.float64]:
        """The continuous law between the borders of cells, in floating point."""
        value, bound = smooth_sensitivity(located, rank, beta=self.beta, theta=self.theta, cells=self.cells)
        z = (np.arange(self.cells - 1) + 0.5 - value) / (bound / float(self.alpha))
        if not self.slack:
            return between(0.5 + np.arctan(z) / math.pi)
        return between(np.where(z < 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2))
