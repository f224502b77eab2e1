"""From private values to one published order statistic: check, record, draw, hand out."""

from __future__ import annotations

import math
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counting import CountReport
from sfumato.domain import Line
from sfumato.errors import InvalidInput
from sfumato.exact import Number, finite_float, fraction, positive_fraction, positive_int, text
from sfumato.noise import DiscreteLaplace, Source, SystemSource
from sfumato.noise.source import require
from sfumato.policies import Policy, bounded, within
from sfumato.policies.moves import Stencil
from sfumato.promise import Guarantee
from sfumato.promise.guarantee import SAMPLER_SLACK
from sfumato.publishing.account import Account, require_account, warn_without_ledger
from sfumato.quantiles import order_mechanism, rank_of
from sfumato.release import Answer

CONFIDENCE = 0.95

# The lattice: fine enough that rounding a value to it, and a step up to whole cells, cost next to nothing.
FEWEST_CELLS = 1 << 20
MOST_CELLS = 1 << 24
CELLS_A_STEP = 1 << 10
_UNITS_A_CELL = 1024  # of the last place of the larger bound: what an axis asks for


@dataclass(frozen=True, eq=False, repr=False)
class QuantileAnswer(Answer):
    """A published quantile: its value, which quantile it is, by which method, and what is promised.

    Standard error and interval are known for "laplace", whose noise does not look at the data; the interval covers the
    sample's own order statistic (clamped to the bounds), not that of a population behind it. For the other methods the
    error depends on the data, stating it would be a second release, and all three are NaN.
    """

    q: Fraction
    method: str
    guarantee: Guarantee

    def __repr__(self) -> str:
        what = f"{self.value:.6g}, q={text(self.q)} by {self.method!r}"
        error = (
            "error unknown: it depends on the data"
            if math.isnan(self.stderr)
            else f"{self.confidence:.0%} within [{self.low:.6g}, {self.high:.6g}]"
        )
        return f"QuantileAnswer({what}, {error}{'' if self.guarantee.private else ', NOT PRIVATE'})"


def median(
    values: Any,
    *,
    bounds: Sequence[float],
    epsilon: Number,
    delta: Number | None = None,
    method: str | None = None,
    slack: Number | None = None,
    cells: int | None = None,
    ledger: Account | None = None,
    label: str | None = None,
    source: Source | None = None,
) -> QuantileAnswer:
    """The median of private values: `quantile` with q = ½. Of an even number of values it is the lower middle one.

    >>> ages = np.random.default_rng(1).integers(0, 90, 5_000)
    >>> 0 <= sf.median(ages, bounds=(0, 100), epsilon=1).value <= 100
    True
    """
    return quantile(
        values,
        Fraction(1, 2),
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        method=method,
        slack=slack,
        cells=cells,
        ledger=ledger,
        label=label,
        source=source,
    )


def quantile(
    values: Any,
    q: Number,
    *,
    bounds: Sequence[float],
    epsilon: Number,
    delta: Number | None = None,
    method: str | None = None,
    slack: Number | None = None,
    cells: int | None = None,
    ledger: Account | None = None,
    label: str | None = None,
    source: Source | None = None,
) -> QuantileAnswer:
    """The q-quantile of private values, 0 < q < 1: the smallest value with at least a share q at or below it.

    **Promise.** ε-private when one value moves by less than `delta`, or (without `delta`) anywhere: replace-one. The
    number of values is public. Values outside the bounds count as the nearest bound; the bounds must be public too.

    **How.** Values are put on a lattice of `cells` cells, which depends on bounds and `delta` alone, so that all
    quantiles of one dataset share one policy and one account; the answer is the middle of a cell. `method` is
    "inverse" (best for many values), "laplace" (best for few, and with an error bar), "smooth-pure" or "smooth" (which
    is only (ε, slack)-private and fits no ledger); without it one of the first two is chosen from public figures. No
    values at all give an answer too, as if there were one in the middle.

    With a ledger the release is charged first; `label` is kept there in plain text. `source` is for tests and papers: a
    seeded one makes an answer that says it is not private, and no ledger takes it.

    >>> fares = np.random.default_rng(1).gamma(2, 8, 5_000)
    >>> 0 <= sf.quantile(fares, 0.9, bounds=(0, 200), epsilon=1).value <= 200
    True
    """
    share = fraction(q, "q")
    if not 0 < share < 1:
        raise InvalidInput(f"q={q!r} must lie between 0 and 1, both excluded. Nothing was drawn or recorded.")
    budget = positive_fraction(epsilon, "epsilon")
    policy = lattice_policy(bounds, delta=delta, cells=cells)
    size, theta = policy.domain.size, step_in_cells(policy)
    located = _located(values, policy)
    mechanism = order_mechanism(method, count=len(located), epsilon=budget, theta=theta, cells=size, slack=slack)
    noise = mechanism.noise  # refuses an ε too small for it before anything is recorded
    randomness = SystemSource() if source is None else require(source)
    guarantee = Guarantee(
        policy=policy, epsilon=budget, slack=SAMPLER_SLACK + mechanism.slack, private=randomness.private
    )
    if ledger is None and randomness.private:
        warn_without_ledger()
    if ledger is not None:
        _require_ledger(ledger, mechanism.slack)
        guarantee = ledger.promised(guarantee)
        ledger.charge(
            guarantee,
            label=label or f"quantile {text(share)} ({mechanism.name}) on {size} cells",
            release_id=secrets.token_hex(16),
        )
    if len(located) == 0:
        located = np.array([size // 2])
    cell = mechanism.run(located, rank_of(share, len(located)), randomness)
    stderr, low, high = _error(policy, cell, noise)
    return QuantileAnswer(
        value=_place(policy, Fraction(2 * cell + 1, 2)),
        stderr=stderr,
        low=low,
        high=high,
        confidence=CONFIDENCE,
        q=share,
        method=mechanism.name,
        guarantee=guarantee,
    )


def lattice_policy(bounds: Sequence[float], *, delta: Number | None = None, cells: int | None = None) -> Policy:
    """The policy of all quantiles with these bounds and this δ, on the lattice that follows from the two."""
    if isinstance(bounds, str) or not isinstance(bounds, (Sequence, np.ndarray)) or len(bounds) != 2:
        raise InvalidInput("bounds must be two numbers, (low, high). Nothing was drawn or recorded.")
    low, high = (finite_float(bound, "bounds") for bound in bounds)
    if not low < high:
        raise InvalidInput(
            f"bounds=({low!r}, {high!r}) must be a lower and a higher number. Nothing was drawn or recorded."
        )
    exact = None if delta is None else positive_fraction(delta, "delta")
    if exact is not None and exact > fraction(high - low, "bounds"):
        raise InvalidInput(
            f"delta={delta!r} exceeds the width of the bounds, {high - low:.6g}: every move is hidden, which is "
            "replace-one. Nothing was drawn or recorded. Leave delta out for that, or use a smaller one."
        )
    size = _default_cells(low, high, exact) if cells is None else positive_int(cells, "cells")
    return _policy(low, high, delta, size)


@lru_cache(maxsize=16)  # a step of many cells is a long list of moves
def _policy(low: float, high: float, delta: Number | None, cells: int) -> Policy:
    line = Line(low, high, cells=cells)
    return bounded(line) if delta is None else within(line, delta)


def _default_cells(low: float, high: float, delta: Fraction | None) -> int:
    """A power of two: CELLS_A_STEP cells to a step, within the limits, and only as many as doubles can tell apart."""
    wanted = MOST_CELLS
    if delta is not None:
        steps = -(-fraction(high - low, "bounds") // delta)
        wanted = min(max(FEWEST_CELLS, 1 << (CELLS_A_STEP * steps - 1).bit_length()), MOST_CELLS)
    while wanted > 1 and (high - low) / wanted < max(
        _UNITS_A_CELL * math.ulp(max(abs(low), abs(high))), sys.float_info.min
    ):
        wanted //= 2
    return wanted


def step_in_cells(policy: Policy) -> int:
    """θ: how many cells one step of the policy spans at most."""
    moves = policy.moves
    reach = int(moves.reach[0]) if isinstance(moves, Stencil) else policy.domain.size - 1
    return max(reach, 1)


def _located(values: Any, policy: Policy) -> NDArray[np.int64]:
    """The cells of the values, or a refusal that shows none of them."""
    try:
        # What is masked is no record, as null is none elsewhere.
        array = values.compressed() if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    except ValueError as error:
        raise InvalidInput("values are not a list of numbers. Nothing was drawn or recorded.") from error
    if array.ndim != 1 or (array.dtype.kind not in "fiu" and array.size):
        raise InvalidInput(
            f"values of type {array.dtype} in {array.ndim} dimensions are not a list of numbers. Nothing was drawn or "
            "recorded. Pass one number for each record."
        )
    numbers = array.astype(np.float64, copy=False)
    if not np.isfinite(numbers).all():
        raise InvalidInput(
            "values holds NaN or infinite numbers, which have no place between the bounds. Nothing was drawn or "
            "recorded. Remove missing values first: they are no records."
        )
    axis = policy.domain.intervals[0]
    outside = int(np.count_nonzero((numbers < axis.low) | (numbers > axis.high)))
    CountReport(rows=len(numbers), outside=outside).warn("Nothing is drawn or recorded yet; the answer goes on.")
    return policy.domain.locate(numbers)


def _require_ledger(ledger: Account, slack: Fraction) -> None:
    require_account(ledger)
    if slack:
        raise InvalidInput(
            f"method='smooth' promises ε only up to slack={text(slack)}, and a ledger adds up ε alone: the slack would "
            "be forgotten. Nothing was drawn or recorded. Use 'inverse', 'laplace' or 'smooth-pure'."
        )


def _error(policy: Policy, cell: int, noise: DiscreteLaplace | None) -> tuple[float, float, float]:
    """Standard error and interval, both from the noise alone. Whole cells are covered, and none outside the bounds."""
    if noise is None:
        return math.nan, math.nan, math.nan
    margin = noise.quantile(CONFIDENCE)
    low, high = max(cell - margin, 0), min(cell + margin + 1, policy.domain.size)
    step = float(policy.domain.equal[0].width)
    return noise.std * step, _place(policy, Fraction(low)), _place(policy, Fraction(high))


def _place(policy: Policy, coordinate: Fraction) -> float:
    """From cells to the units of the bounds."""
    axis = policy.domain.equal[0]
    return float(Fraction(axis.low) + coordinate * axis.width)
