"""The smooth sensitivity of an order statistic under moves of at most θ cells.

**Definition.** With x_i the point of rank i, ranks below 1 at the lower border and above n at the upper one, let
A(k) = max over i ≤ r ≤ j, j - i = k + 1 of x_j - x_i. The order statistic moves by at most min(θ, A(0)) in one step,
and by at most min(θ, A(k)) in one step from a dataset k steps away. S = max_k exp(-β·k)·min(θ, A(k)) is then at least
the local sensitivity, and S(x) ≤ exp(β)·S(x′) for neighbours, because A(k)(x) ≤ A(k + 1)(x′).

**In floating point.** What is returned is T with S ≤ T ≤ (1 + 10⁻¹⁰)·S, or the constant `FLOOR`·θ where that is larger
(a maximum with a constant stays smooth). Differences of cells are exact below 2⁵³; βk ≤ 700 where it matters, so its
exponential is right to 10⁻¹², and a comparison that such an error turns the wrong way costs as much again in each of
the at most forty rounds. All of it is below the factor 1 + 10⁻¹¹·5 that is multiplied on. T is therefore smooth with
β + 2·10⁻¹⁰ < β + `MARGIN`, which the caller subtracts beforehand.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.quantiles.order import Surroundings, surroundings

MARGIN = 1e-9
FLOOR = math.exp(-700)
_UP = 1 + 5e-11
_FIRST_LOOK = 64


def smooth_sensitivity(
    located: NDArray[np.int64], rank: int, *, beta: float, theta: int, cells: int
) -> tuple[int, float]:
    """(the order statistic, T): its cell, and the smooth bound in cells. Both private."""
    count = _FIRST_LOOK
    while True:
        near = surroundings(located, rank, count)
        largest = max(_largest(*_with_borders(near, cells), beta, theta), FLOOR * theta)
        # Beyond this many steps exp(-β·k)·θ is below what was found already.
        needed = math.ceil(math.log(theta / largest) / beta) + 1
        if count >= needed or all(near.whole):
            return near.value, largest * _UP
        count = max(8 * count, min(needed, len(located)))


def _with_borders(near: Surroundings, cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distances below and above, with the border where no point is left out before it."""
    above = np.append(near.above, cells - 1 - near.value) if near.whole[0] else near.above
    below = np.append(near.below, near.value) if near.whole[1] else near.below
    return below, above


def _largest(below: NDArray[np.int64], above: NDArray[np.int64], beta: float, theta: int) -> float:
    """max over (i, j) of exp(-β(i + j - 1))·min(θ, below[i] + above[j]), in n·log n steps.

    Pairs at least θ apart are worth θ: for each i the nearest such j is the best. Among the others the best j does not
    fall as i falls (Nissim, Raskhodnikova, Smith 2007): if x_j′·e^(-βd) - x_j ≥ -x_i·(1 - e^(-βd)) for one i, then for
    every larger x_i. So the best j of a middle i splits the work for the others in two; all middles of one round are
    looked at together.
    """
    rows = below[::-1]  # by rising rank
    steps_below = np.arange(len(rows))[::-1]
    weights = np.exp(-beta * np.maximum(np.arange(len(rows) + len(above)) - 1, 0))
    stops = np.searchsorted(above, theta - rows)  # rises; the first j that is θ away
    reaching = stops < len(above)
    best = float((theta * weights[(steps_below + stops)[reaching]]).max(initial=0.0))
    start = int(np.searchsorted(stops, 1))  # rows that have any j nearer than θ
    nodes = np.array([[start, len(rows) - 1, 0, len(above) - 1]]) if start < len(rows) else np.empty((0, 4), np.int64)
    while len(nodes):
        low, high, first, last = nodes.T
        middle = (low + high) // 2
        lengths = np.minimum(last, stops[middle] - 1) - first + 1
        begins = np.cumsum(lengths) - lengths
        owner = np.repeat(np.arange(len(nodes)), lengths)
        j = np.arange(int(lengths.sum())) - (begins - first)[owner]
        row = middle[owner]
        worth = (rows[row] + above[j]) * weights[steps_below[row] + j]
        tops = np.maximum.reduceat(worth, begins)
        best = max(best, float(tops.max()))
        winners = np.flatnonzero(worth == tops[owner])
        chosen = j[winners[np.searchsorted(owner[winners], np.arange(len(nodes)))]]
        left = np.stack([low, middle - 1, first, chosen], axis=-1)
        right = np.stack([middle + 1, high, chosen, last], axis=-1)
        nodes = np.concatenate([left, right])
        nodes = nodes[nodes[:, 0] <= nodes[:, 1]]
    return best
