"""The geometric distribution, drawn exactly: half of every noise in the library, and the state of gradual release."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.exact import is_whole, positive_fraction
from sfumato.noise.expansion import bits, distance, expansion
from sfumato.noise.planes import ByteSupply, chunk, draw
from sfumato.noise.source import Source, require

MAX_SIZE = 1 << 40  # the distance from exact is promised for a release of so many values


@dataclass(frozen=True)
class Geometric:
    """P[G = g] = (1 - α)·α^g for g = 0, 1, 2, …, with α = exp(-rate) and the rate an exact fraction.

    **Promise.** `size` values drawn from uniform random words are at total variation distance at most
    `distance_bound(size)` from independent geometric variables: below 2⁻¹⁰² for 2⁴⁰ values, at any rate. The proof
    stands in `expansion`. No value reaches 2⁶¹; rates so small that one might are refused.
    """

    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive_fraction(self.rate, "rate"))
        bits(self.rate)  # refuses rates that are too small

    def sample(self, size: int, source: Source) -> NDArray[np.int64]:
        """`size` independent values. Needs the memory of the result and a constant buffer."""
        stream = ByteSupply(require(source))
        values = np.empty(checked_size(size), dtype=np.int64)
        table = expansion(self.rate)
        step = chunk(table)
        for start in range(0, size, step):
            part = values[start : start + step]
            part[:] = draw(table, part.size, stream)
        return values

    def distance_bound(self, size: int) -> Fraction:
        """A proven bound on the total variation distance between `size` values and independent geometric variables."""
        return checked_size(size) * distance(self.rate)


def checked_size(size: int) -> int:
    """A number of values for which the distance from exact is promised."""
    if not is_whole(size) or not 0 <= size <= MAX_SIZE:
        raise InvalidInput(f"size={size!r} must be a whole number from 0 to 2^40. Nothing was drawn or recorded.")
    return int(size)
