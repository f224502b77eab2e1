"""Plain noise on the order statistic: the better one for few points and short steps."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.noise import DiscreteLaplace, Source
from sfumato.quantiles.base import between


@dataclass(frozen=True, kw_only=True)
class OrderLaplace:
    """Discrete Laplace noise of scale θ/ε on the order statistic, then clamped to the lattice.

    **Promise.** ε-private for moves of one point by at most θ cells. **Proof.** If one point moves up by at most θ,
    then for every t the number of points ≤ t does not grow, and the number of points ≤ t + θ afterwards is at least
    the number of points ≤ t before. So the r-th smallest point moves up by at most θ: its sensitivity is θ, and noise
    of rate ε/θ is enough (`DiscreteLaplace`). Clamping is post-processing. ∎

    **Error.** Known without data: the noise's own, and clamping only makes it smaller, since the true value lies on the
    lattice. **Not protected:** n, which is public.
    """

    epsilon: Fraction
    theta: int
    cells: int

    name = "laplace"
    slack = Fraction(0)
    hides_number = False

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise in cells."""
        return DiscreteLaplace.calibrated(epsilon=self.epsilon, sensitivity=self.theta)

    def run(self, located: NDArray[np.int64], rank: int, source: Source) -> int:
        """The noisy cell."""
        value = int(np.partition(located, rank - 1)[rank - 1]) + int(self.noise.sample(1, source)[0])
        return min(max(value, 0), self.cells - 1)

    def law(self, located: NDArray[np.int64], rank: int) -> NDArray[np.float64]:
        """The noise's own law around the order statistic, what lies beyond the lattice on its ends."""
        value = int(np.sort(located)[rank - 1])
        return between(self.noise.cdf(np.arange(self.cells - 1) - value))
