"""The lattice that private values are put on before an order statistic is published: from public figures alone."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.domain import Domain, Line
from sfumato.errors import InvalidInput
from sfumato.exact import Number, finite_float, fraction, positive_fraction, positive_int
from sfumato.policies import Policy, bounded, within

# Fine enough that rounding a value to it, and a step up to whole cells, cost next to nothing.
FEWEST_CELLS = 1 << 20
MOST_CELLS = 1 << 24
CELLS_A_STEP = 1 << 10
_UNITS_A_CELL = 1024  # of the last place of the larger bound: what an axis asks for
NAME = "x"


def lattice_policy(
    bounds: Sequence[float], *, delta: Number | None = None, cells: int | None = None, name: str = NAME
) -> Policy:
    """The policy of all quantiles with these bounds and this δ, on the lattice that follows from the two."""
    low, high = checked_bounds(bounds)
    exact = None if delta is None else positive_fraction(delta, "delta")
    if exact is not None and exact > fraction(high - low, "bounds"):
        raise InvalidInput(
            f"delta={delta!r} exceeds the width of the bounds, {high - low:.6g}: every move is hidden, which is "
            "replace-one. Nothing was drawn or recorded. Leave delta out for that, or use a smaller one."
        )
    return _policy(low, high, delta, lattice_size(low, high, exact, cells), name)


def lattice(bounds: Sequence[float], *, delta: Fraction | None, cells: int | None, name: str) -> Domain:
    """The lattice alone; `delta` is the shortest move that is hidden."""
    low, high = checked_bounds(bounds)
    return Line(low, high, cells=lattice_size(low, high, delta, cells), name=name)


def checked_bounds(bounds: Sequence[float]) -> tuple[float, float]:
    """Both ends, or a refusal."""
    if isinstance(bounds, str) or not isinstance(bounds, (Sequence, np.ndarray)) or len(bounds) != 2:
        raise InvalidInput("bounds must be two numbers, (low, high). Nothing was drawn or recorded.")
    low, high = (finite_float(bound, "bounds") for bound in bounds)
    if not low < high:
        raise InvalidInput(
            f"bounds=({low!r}, {high!r}) must be a lower and a higher number. Nothing was drawn or recorded."
        )
    return low, high


@lru_cache(maxsize=16)  # a step of many cells is a long list of moves
def _policy(low: float, high: float, delta: Number | None, cells: int, name: str) -> Policy:
    line = Line(low, high, cells=cells, name=name)
    return bounded(line) if delta is None else within(line, delta)


def lattice_size(low: float, high: float, delta: Fraction | None, cells: int | None) -> int:
    """As given; or a power of two: CELLS_A_STEP cells to a step, within the limits, and only as many as doubles can
    tell apart.
    """
    if cells is not None:
        return positive_int(cells, "cells")
    wanted = MOST_CELLS
    if delta is not None:
        steps = -(-fraction(high - low, "bounds") // delta)
        wanted = min(max(FEWEST_CELLS, 1 << (CELLS_A_STEP * steps - 1).bit_length()), MOST_CELLS)
    while wanted > 1 and (high - low) / wanted < max(
        _UNITS_A_CELL * math.ulp(max(abs(low), abs(high))), sys.float_info.min
    ):
        wanted //= 2
    return wanted


def place(line: Domain, coordinate: Fraction) -> float:
    """From cells to the units of the bounds."""
    axis = line.equal[0]
    return float(Fraction(axis.low) + coordinate * axis.width)
