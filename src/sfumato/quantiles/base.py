"""What the mechanisms for order statistics share."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.noise import DiscreteLaplace, Source


@runtime_checkable
class OrderMechanism(Protocol):
    """Publishes one order statistic of points on a lattice, as a cell of it.

    The promise of each is about datasets of n points in the cells 0 … cells - 1, of which one moves by at most `theta`
    cells; n is public. Where it `hides_number`, the promise is about one point more or less, and n is not published.
    """

    @property
    def theta(self) -> int:
        """How many cells a point moves at most."""

    @property
    def cells(self) -> int:
        """How many cells the lattice has."""

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

    @property
    def hides_number(self) -> bool:
        """Whether the number of points is hidden as well: ε is then the price of one point more or less."""

    def run(self, located: NDArray[np.int64], rank: int, source: Source) -> int:
        """The cell published for the point of that rank (from 1). Sees private data."""

    def law(self, located: NDArray[np.int64], rank: int) -> NDArray[np.float64]:
        """The probability with which `run` publishes each cell. For audits, on made-up points."""


def between(borders: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of every cell, from that of all cells up to each border between them."""
    return np.diff(np.concatenate([[0.0], borders, [1.0]]))
