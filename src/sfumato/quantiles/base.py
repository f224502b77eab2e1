"""What the mechanisms for order statistics share."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.noise import DiscreteLaplace, Source


class OrderMechanism(Protocol):
    """Publishes one order statistic of points on a lattice, as a cell of it.

    The promise of each is about datasets of n points in the cells 0 … cells - 1, of which one moves by at most `theta`
    cells; n is public.
    """

    @property
    def name(self) -> str:
        """What `method=` calls it."""

    @property
    def epsilon(self) -> Fraction:
        """The cost, known before any data is seen."""

    @property
    def slack(self) -> Fraction:
        """The δ′ of a mechanism that is only (ε, δ′)-private, besides the sampler's 2⁻¹⁰⁰; zero for the others."""

    @property
    def noise(self) -> DiscreteLaplace | None:
        """The noise in cells, where it does not depend on the data; None where stating it would be a second release."""

    def run(self, located: NDArray[np.int64], rank: int, source: Source) -> int:
        """The cell published for the point of that rank (from 1). The only step that sees private data."""
