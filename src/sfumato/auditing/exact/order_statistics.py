"""Order statistics: the probability of every output for every dataset of a small lattice, and the worst ratio.

Each mechanism says its law itself, beside the code that draws. It is audited as it is but for its lattice, which
shrinks to a few cells (`theta` along with it), since every dataset of it is tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from sfumato._types import Floats
from sfumato.auditing.result import Audit, Witness
from sfumato.errors import InvalidInput
from sfumato.quantiles import OrderMechanism

Data = tuple[int, ...]

CELLS_OF_THE_LATTICE = 6
RECORDS_TRIED = (1, 2, 3, 4)
ROUNDING = 1e-9  # relative, of a probability in floating point


def audit_order(mechanism: OrderMechanism, *, cells: int = CELLS_OF_THE_LATTICE) -> Audit:
    """The largest loss over every pair of neighbours of up to four points on a small lattice, every rank and output."""
    if not isinstance(mechanism, OrderMechanism):
        raise InvalidInput(f"mechanism={type(mechanism).__name__} does not publish an order statistic.")
    found = _with_and_without(mechanism, cells) if mechanism.hides_number else _moved(mechanism, cells)
    worst, promised = found.worst, float(mechanism.epsilon)
    if worst <= promised * (1 + ROUNDING) + ROUNDING:
        worst = min(worst, promised)  # rounding says nothing
    return Audit(
        subject=f"order statistic by {mechanism.name!r}",
        promised=mechanism.epsilon,
        epsilon=worst,
        method="exact",
        witness=found.witness,
        looked_at=(f"{found.pairs:,} pairs of neighbours on {cells} cells, every rank and every output",)
        + ((f"but for outputs of probability {float(mechanism.slack):g} in all",) if mechanism.slack else ()),
    )


@dataclass(frozen=True)
class _Worst:
    """The largest loss over some pairs, which pair shows it, and how many there were."""

    worst: float
    witness: Witness | None
    pairs: int


def _moved(mechanism: OrderMechanism, cells: int) -> _Worst:
    """One point moves."""
    worst, witness, pairs = 0.0, None, 0
    slack = float(mechanism.slack)
    for theta in sorted({1, 2, cells - 1}):
        small: OrderMechanism = replace(mechanism, cells=cells, theta=theta)  # type: ignore[type-var]
        for records in RECORDS_TRIED:
            for rank in range(1, records + 1):
                datasets = combinations_with_replacement(range(cells), records)
                laws = {data: small.law(np.array(data, dtype=np.int64), rank) for data in datasets}
                for one, other in _neighbours(laws, cells, theta):
                    pairs += 1
                    loss, cell = _loss(laws[one], laws[other], slack, float(mechanism.epsilon))
                    if loss > worst:
                        worst = loss
                        event = f"steps of {theta}, rank {rank}: the cell {cell} is published"
                        witness = Witness(databases=(one, other), event=event)
    return _Worst(worst, witness, pairs)


def _with_and_without(mechanism: OrderMechanism, cells: int) -> _Worst:
    """One point appears, or vanishes."""
    small: OrderMechanism = replace(mechanism, cells=cells)  # type: ignore[type-var]
    laws = {
        data: small.law(np.array(data, dtype=np.int64), max(1, len(data)))  # of its share it finds the rank itself
        for records in (0, *RECORDS_TRIED)
        for data in combinations_with_replacement(range(cells), records)
    }
    worst, witness, pairs = 0.0, None, 0
    for data in laws:
        for point in sorted(set(data)):
            less = list(data)
            less.remove(point)
            for one, other in ((data, tuple(less)), (tuple(less), data)):
                pairs += 1
                loss, cell = _loss(laws[one], laws[other], 0.0, float(mechanism.epsilon))
                if loss > worst:
                    worst = loss
                    witness = Witness(databases=(one, other), event=f"the cell {cell} is published")
    return _Worst(worst, witness, pairs)


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
