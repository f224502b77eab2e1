"""The cell of a value on each kind of axis, as steps of expressions that every engine runs.

A step is a list of columns that are made of those before it: engines would otherwise compute a column as often as it is
mentioned. Whole numbers of microseconds stay whole numbers: they are divided by guessing in doubles, which is off by
one at most, and comparing with the products, which are exact. (Engines differ in how they divide whole numbers: towards
zero, downwards, by way of doubles.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import narwhals as nw
import numpy as np

from sfumato.domain import Axis, Bins, Instants, Interval, Round
from sfumato.domain.durations import DAY
from sfumato.domain.timed import READING
from sfumato.values import Lattice

_Steps = tuple[list[list[nw.Expr]], nw.Expr, nw.Expr]
"""Columns to add step by step, then the cell as a double, and whether the value lies outside."""


def steps_of(axis: Any, i: int) -> _Steps:
    """How the cell on the i-th axis comes from column v{i}."""
    return _KINDS[type(axis)](axis, i)


def _interval(axis: Interval, i: int) -> _Steps:
    """Clamp, guess, compare with the two edges, correct by one, clip: the rule of `sfumato.domain.interval`."""
    value, clamped, guess = nw.col(f"v{i}"), nw.col(f"c{i}"), nw.col(f"g{i}")
    first = value.clip(axis.low, axis.high).alias(f"c{i}")
    last = float(axis.cells - 1)
    second = ((clamped - axis.low) / axis.step).floor().cast(nw.Float64).clip(0.0, last).alias(f"g{i}")
    below = (clamped < guess * axis.step + axis.low).cast(nw.Float64)
    above = (clamped >= (guess + 1.0) * axis.step + axis.low).cast(nw.Float64)
    beyond = (value < axis.low) | (value > axis.high)
    return [[first], [second]], (guess - below + above).clip(0.0, last), beyond


def _lattice(axis: Lattice, i: int) -> _Steps:
    """As an interval; what was cut to the bounds lies nowhere else."""
    columns, cell, _ = _interval(axis, i)
    return columns, cell, nw.lit(False)


def _bins(axis: Bins, i: int) -> _Steps:
    """How many inner edges are not above the value."""
    value = nw.col(f"v{i}")
    passed = _sum([(value >= edge).cast(nw.Float64) for edge in axis.cuts[1:-1]], nw.lit(0.0))
    return [[passed.alias(f"c{i}")]], nw.col(f"c{i}"), (value < axis.low) | (value > axis.high)


def _instants(axis: Instants, i: int) -> _Steps:
    """The run that holds the time, then the step within the run."""
    value, since, length, first = (nw.col(f"{letter}{i}") for letter in "vclf")
    lengths, counts = (np.array(part) for part in zip(*axis.runs, strict=True))
    begins = axis.start + np.cumsum(lengths * counts) - lengths * counts
    clamped = value.clip(axis.start, axis.stop - 1)
    runs = [
        (clamped - _stepped(clamped, begins, begins)).alias(f"c{i}"),
        _stepped(clamped, begins, lengths).alias(f"l{i}"),
        _stepped(clamped, begins, np.cumsum(counts) - counts).alias(f"f{i}"),
    ]
    guess = (since / length).floor().cast(nw.Int64)
    cell = first + _corrected(since, nw.col(f"g{i}"), length)
    beyond = (value < axis.start) | (value >= axis.stop)
    return [runs, [guess.alias(f"g{i}")]], cell.cast(nw.Float64), beyond


def _round(axis: Round, i: int) -> _Steps:
    """What the clock shows, the number of the stretch that it lies in, and how many cells from the first that is."""
    value, shown, guess = nw.col(f"v{i}"), nw.col(f"c{i}"), nw.col(f"g{i}")
    clock = value
    if axis.zone is not None:
        starts = np.append(np.iinfo(np.int64).min, axis.zone.changes)
        local = value + _stepped(value, starts, axis.zone.offsets)
        clock = nw.when(value >= READING // 2).then(value - READING).otherwise(local)
    length, origin = axis.turn.even or (DAY, 0)
    read = (clock - origin).alias(f"c{i}")
    guessed = (shown / length).floor().cast(nw.Int64).alias(f"g{i}")
    number = _corrected(shown, guess, nw.lit(length)).cast(nw.Float64).alias(f"s{i}")
    count = nw.col(f"s{i}")
    more, cell = ([], count - _whole(count, axis.cells) * axis.cells) if axis.turn.even else _month(count, i)
    return [[read], [guessed], [number], *more], cell, nw.lit(False)


def _corrected(number: nw.Expr, guess: nw.Expr, length: nw.Expr) -> nw.Expr:
    """A guessed quotient of whole numbers, rounded down: one less or more where its product says so."""
    below, above = number < guess * length, number >= (guess + 1) * length
    return guess - below.cast(nw.Int64) + above.cast(nw.Int64)


def _stepped(value: nw.Expr, starts: Any, levels: Any) -> nw.Expr:
    """The level of the last start that is not above the value, of whole numbers; the first below all of them."""
    rises = zip(starts[1:].tolist(), np.diff(levels).tolist(), strict=True)
    parts = [(value >= start).cast(nw.Int64) * rise for start, rise in rises if rise]
    return _sum(parts, nw.lit(0).cast(nw.Int64)) + int(levels[0])


def _whole(number: nw.Expr, divisor: int) -> nw.Expr:
    """The quotient of whole numbers far below 2⁵³, rounded down: a double is never so wrong as to reach the next."""
    return (number / float(divisor)).floor().cast(nw.Float64)


def _month(days: nw.Expr, i: int) -> tuple[list[list[nw.Expr]], nw.Expr]:
    """The month, from 0, of days since 1970, in the calendar that begins in March and repeats after 400 years."""
    day, year, from_march = (nw.col(f"{letter}{i}") for letter in "dym")
    since = days + 719_468.0
    years = day - _whole(day, 1460) + _whole(day, 36_524) - _whole(day, 146_096)
    of_year = day - (year * 365.0 + _whole(year, 4) - _whole(year, 100))
    steps = [
        [(since - _whole(since, 146_097) * 146_097.0).alias(f"d{i}")],
        [_whole(years, 365).alias(f"y{i}")],
        [_whole(of_year * 5.0 + 2.0, 153).alias(f"m{i}")],
    ]
    return steps, from_march + 2.0 - (from_march >= 10.0).cast(nw.Float64) * 12.0


def _sum(parts: Sequence[nw.Expr], nothing: nw.Expr) -> nw.Expr:
    """A sum as a tree that is not deep, which engines can take apart."""
    while len(parts) > 16:
        parts = [reduce(_plus, parts[start : start + 16]) for start in range(0, len(parts), 16)]
    return reduce(_plus, parts) if parts else nothing


def _plus(one: nw.Expr, other: nw.Expr) -> nw.Expr:
    return one + other


_KINDS: dict[type[Axis], Callable[[Any, int], _Steps]] = {
    Interval: _interval,
    Lattice: _lattice,
    Bins: _bins,
    Instants: _instants,
    Round: _round,
}
