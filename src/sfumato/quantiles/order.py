"""Order statistics on a lattice: the rank that a quantile means, and the points around it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray


def rank_of(q: Fraction, count: int) -> int:
    """The rank, from 1, of the q-quantile of so many points: the smallest r with r ≥ q·count, an order statistic.

    For an even number of points the median is therefore the lower of the two in the middle, never their mean: a mean
    is no order statistic, and its sensitivity is another one.
    """
    return max(1, -(-q.numerator * count // q.denominator))


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The point of a rank, and the distances in cells from it to the points of higher and of lower ranks.

    Both lists rise and begin with the point itself, at distance 0. `whole` says for each whether it holds every point
    on that side (above, below), or only the nearest ones.
    """

    value: int
    above: NDArray[np.int64]
    below: NDArray[np.int64]
    whole: tuple[bool, bool]


def surroundings(located: NDArray[np.int64], rank: int, count: int) -> Surroundings:
    """The point of that rank and at most `count` points on each side. Only these are sorted: linear in the records."""
    centre = rank - 1
    first, last = max(0, centre - count), min(len(located) - 1, centre + count)
    if (first, last) == (0, len(located) - 1):
        near = np.sort(located)
    else:
        near = np.sort(np.partition(located, (first, last))[first : last + 1])
    value = int(near[centre - first])
    return Surroundings(
        value=value,
        above=near[centre - first :] - value,
        below=value - near[: centre - first + 1][::-1],
        whole=(last == len(located) - 1, first == 0),
    )
