"""Order statistics: the probability of every output for every dataset of a small lattice, and the worst ratio.

The law is read off the code that draws: for the inverse mechanism its ladder of weights, in integers of 256 bits; for
plain noise the discrete Laplace distribution clamped to the lattice; for smooth sensitivity the continuous distribution
between the borders of cells, in floating point. The mechanism is audited as it is but for its lattice, which shrinks
to a few cells (`theta` along with it), since every dataset of it is tried.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.result import Audit, Witness
from sfumato.errors import InvalidInput
from sfumato.noise.exponential import decay, decays
from sfumato.quantiles import InverseSensitivity, OrderLaplace, SmoothSensitivity
from sfumato.quantiles.order import surroundings
from sfumato.quantiles.smooth_bound import smooth_sensitivity

Floats = NDArray[np.float64]
Data = tuple[int, ...]

CELLS = 6
RECORDS = (1, 2, 3, 4)
ROUNDING = 1e-9  # relative, of a probability in floating point
_KINDS = (InverseSensitivity, OrderLaplace, SmoothSensitivity)


def is_order_mechanism(subject: Any) -> bool:
    """Whether it publishes an order statistic."""
    return isinstance(subject, _KINDS)


def audit_order(mechanism: Any, *, cells: int = CELLS) -> Audit:
    """The largest loss over every pair of neighbours of up to four points on a small lattice, every rank and output."""
    if not is_order_mechanism(mechanism):
        raise InvalidInput(f"mechanism={type(mechanism).__name__} does not publish an order statistic.")
    worst, witness, pairs = 0.0, None, 0
    slack = float(mechanism.slack)
    for theta in sorted({1, 2, cells - 1}):
        small = replace(mechanism, cells=cells, theta=theta)
        for records in RECORDS:
            for rank in range(1, records + 1):
                laws = {data: law(small, data, rank) for data in combinations_with_replacement(range(cells), records)}
                for one, other in _neighbours(laws, cells, theta):
                    pairs += 1
                    loss, cell = _loss(laws[one], laws[other], slack, float(mechanism.epsilon))
                    if loss > worst:
                        worst = loss
                        event = f"steps of {theta}, rank {rank}: the cell {cell} is published"
                        witness = Witness(databases=(one, other), event=event)
    promised = float(mechanism.epsilon)
    if worst <= promised * (1 + ROUNDING) + ROUNDING:
        worst = min(worst, promised)  # rounding says nothing
    return Audit(
        subject=f"order statistic by {mechanism.name!r}",
        promised=mechanism.epsilon,
        epsilon=worst,
        method="exact",
        witness=witness,
        looked_at=(f"{pairs:,} pairs of neighbours on {cells} cells, every rank and every output",)
        + ((f"but for outputs of probability {slack:g} in all",) if slack else ()),
    )


def law(mechanism: Any, data: tuple[int, ...], rank: int) -> Floats:
    """The probability of every cell."""
    located = np.array(data, dtype=np.int64)
    if isinstance(mechanism, InverseSensitivity):
        return _inverse(mechanism, located, rank)
    if isinstance(mechanism, OrderLaplace):
        value = int(np.sort(located)[rank - 1])
        borders = mechanism.noise.cdf(np.arange(mechanism.cells - 1) - value)
    else:
        value, bound = smooth_sensitivity(
            located, rank, beta=mechanism.beta, theta=mechanism.theta, cells=mechanism.cells
        )
        z = (np.arange(mechanism.cells - 1) + 0.5 - value) / (bound / float(mechanism.alpha))
        borders = np.where(z < 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2)
        if not mechanism.slack:
            borders = 0.5 + np.arctan(z) / math.pi
    return np.diff(np.concatenate([[0.0], borders, [1.0]]))


def _inverse(mechanism: InverseSensitivity, located: NDArray[np.int64], rank: int) -> Floats:
    """What `draw` does with its random numbers, counted out."""
    near = surroundings(located, rank, mechanism.cap)
    ladder = mechanism.ladder(near)
    weights = decays(mechanism.rate * mechanism.span, mechanism.blocks + 1)
    found = [0] * mechanism.cells
    for block, size in enumerate(ladder.sizes):
        for index in range(size):
            side, distance = ladder.cell(block, index)
            score = min(ladder.sides[side].score(distance), mechanism.cap)
            kept = decay(mechanism.rate * (score - block * mechanism.span))
            found[near.value - distance if side else near.value + distance] += weights[block] * kept
    total = sum(found)
    return np.array([float(Fraction(weight, total)) for weight in found])


def _neighbours(laws: dict[Data, Floats], cells: int, theta: int) -> list[tuple[Data, Data]]:
    pairs = []
    for data in laws:
        for i, point in enumerate(data):
            for place in range(max(0, point - theta), min(cells - 1, point + theta) + 1):
                other = tuple(sorted((*data[:i], place, *data[i + 1 :])))
                if other != data:
                    pairs.append((data, other))
    return pairs


def _loss(one: Floats, other: Floats, slack: float, epsilon: float) -> tuple[float, int]:
    """The largest log-ratio; with slack, that of the cells that are left when outputs of so much mass are forgiven."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(one > 0, np.log(one) - np.log(other), -np.inf)
    if slack:
        # (ε, δ′): the mass by which cells exceed e^ε times the other's. Within δ′ the promise is kept.
        excess = float(np.maximum(one - math.exp(epsilon) * other, 0).sum())
        if excess <= slack * (1 + ROUNDING) + 1e-15:
            ratio = np.minimum(ratio, epsilon)
    cell = int(np.argmax(ratio))
    return float(ratio[cell]), cell
