"""Is the noise that is drawn as wide as its law says?

Noise of rate r hides a shift by t at r·t: `log P[K ≥ 0] - log P[K ≥ t] = r·t` for geometric noise, on one side or on
two, and at most that for any noise that keeps the promise. It is measured on fresh draws and bounded from below.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.auditing.statistical.distinguishers import ratio_bound
from sfumato.noise import DiscreteLaplace, Geometric, Source

DRAWS_A_LAW = 400_000


@dataclass(frozen=True)
class Drawn:
    """What draws say about a law: the rate that they prove at least, at a confidence."""

    law: DiscreteLaplace | Geometric
    shift: int
    rate: float

    @property
    def excess(self) -> float:
        """How many times the promised rate is proved; at most one where nothing is wrong."""
        return self.rate / float(self.law.rate)


def measured_rate(
    law: DiscreteLaplace | Geometric, source: Source, confidence: float, draws: int = DRAWS_A_LAW
) -> Drawn:
    """A lower bound on the rate of what a law draws."""
    values = law.sample(draws, source)
    shift = max(1, round(1 / float(law.rate)))
    # Fresh draws for each probability: Clopper and Pearson's bounds then hold for both together.
    half = draws // 2
    inside = int((values[:half] >= 0).sum())
    beyond = int((values[half:] >= shift).sum())
    return Drawn(law, shift, max(0.0, ratio_bound(inside, half, beyond, draws - half, confidence)) / shift)
