"""The form of a mechanism: how its output comes about, said by itself, for whoever redoes the argument of its privacy.

    Additive      values of the counts, plus noise, and what is computed from the sum
    TwoStage      runs of a line of entries are chosen by noisy costs; then totals of groups of runs get noise
    NoisyNumber   a noisy number of records; then noise on sums that are a function of it
    Nested        values of blocks of cells, plus noise; then noise on sums that are a function of what came out
    Splits        boxes of cells are split by noisy scores, level by level; then noise on the numbers of the rest

A form is a claim, not a proof. The auditor checks that runs do just that, from the same random words to the last bit,
and computes the loss from the form alone. A form need not be believed for that: what noise is added to is told by it as
a function of the counts, and the loss is what *this* function tells of every change of a record; what comes after the
noise (`estimate`, `cells`) is not given the counts at all.

A mechanism that fits none of these has no form, and what it tells can only be bounded from runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.linear import Operator
from sfumato.noise import DiscreteLaplace, Geometric, Source

if TYPE_CHECKING:
    from sfumato.mechanism.base import LinearMechanism


class AddsNoise(Protocol):
    """What is asked of a mechanism that adds noise to integers."""

    def noises(self, total: int | None) -> list[tuple[DiscreteLaplace, int]]:
        """The law of every vector of noise, and its length."""

    def values(self, counts: Integers) -> Integers:
        """What noise is added to."""

    def disturbance(self, noise: Sequence[Integers]) -> Integers:
        """What the noise adds to the values."""

    def for_total(self, total: int) -> AddsNoise:
        """The same, for a public number of records."""

    def draw(self, counts: Integers, total: int | None, source: Source) -> Integers:
        """Values plus disturbance."""

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """Estimated counts from what was drawn."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Additive:
    """Values plus a function of independent noise, both integers, and whatever is computed from the sum.

    `linear` says that the values are a linear function of the counts, so that a change of a record moves them alike in
    every database. `estimators` carry the noise to the cells where that is done by operators, one for every vector of
    noise; none where it is not.
    """

    mechanism: AddsNoise
    linear: bool = False
    estimators: tuple[Operator, ...] = ()


class Groups(Protocol):
    """Nested groups of runs, level by level, whose totals are measured with so many units of the budget each."""

    @property
    def units(self) -> list[Integers]:
        """Of every group; where there are none it is not measured."""

    def measure(self, x: Integers) -> list[Integers]:
        """The total of every group of entries."""

    def spread(self, measured: Sequence[Integers]) -> Floats:
        """The line as estimated from noisy totals: equal entries within every run."""

    def integers(self, measured: Sequence[Integers]) -> Integers:
        """The groups and what was measured in one row, as a release may keep them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoStage:
    """A line of entries is cut into runs, and given the runs, totals of groups of them get discrete Laplace noise.

    The candidates are the aligned runs of 1, 2, 4, … entries. A run on level l costs prices[l] times the deviation of
    its entries from their median, plus the penalty, less noise of its own by the law choice[l]; from short runs to long
    ones, it is kept where it costs no more than the best of its halves.
    """

    length: int
    entries: Callable[[Integers], Integers]
    """The line, from flat counts."""
    prices: tuple[int, ...]
    choice: tuple[Geometric, ...]
    """One law for every level; none where there is but one level, and nothing to choose."""
    penalty: int
    groups: Callable[[Integers], Groups]
    """From the first entries of the runs."""
    totals: DiscreteLaplace
    """The noise on a total that has all of the second stage's budget, which is `units`."""
    units: int
    cells: Callable[[Floats, int | None], Floats]
    """Estimated counts from the line as estimated and the public number of records."""

    def law(self, units: int) -> DiscreteLaplace:
        """The noise on a total that has so many units."""
        return DiscreteLaplace(self.totals.rate * Fraction(units, self.units))


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyNumber:
    """The number of records plus noise, clamped to 0 … most; then sums that are a function of it, plus noise."""

    number: DiscreteLaplace
    most: int
    sums: Callable[[Integers, int], Integers]
    """What noise is added to, from flat counts and the number that came out."""
    noise: DiscreteLaplace | None
    """On every sum; None where nothing is to be hidden."""
    head: Callable[[int], Integers]
    """What stands before the sums in what is drawn: a function of the number that came out."""
    estimate: Callable[[Integers, int | None], Floats]
    """Estimated counts from what was drawn and the public number of records."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Nested:
    """A mechanism that adds noise runs on blocks of cells; then sums that are a function of what it drew get noise."""

    first: LinearMechanism
    """A mechanism under a policy on blocks."""
    blocks: Callable[[Integers], Integers]
    """The counts of the blocks, from flat counts."""
    sums: Callable[[Integers, int | None], Callable[[Integers], Integers]]
    """From what the first drew and the public number of records, what noise is added to as a function of the counts."""
    noise: DiscreteLaplace
    """On every sum."""
    head: Callable[[Integers, int | None], Integers]
    """What stands before the sums in what is drawn: a function of what the first drew."""
    estimate: Callable[[Integers, int | None], Floats]
    """Estimated counts from what was drawn and the public number of records."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Splits:
    """A tree of boxes is found from the top, and the numbers of the boxes where it ends get discrete Laplace noise.

    A box on level l with c records is split into its children where max(c - l·decay, -floor) plus noise of its own by
    the law `choice` is above zero; single cells never are. What is drawn is the number of all records with noise, where
    that has a law; one number for every box that was reached and could be split, level by level, 1 where it was; and
    behind them the noisy numbers of the others.
    """

    levels: Callable[[Integers], Sequence[Integers]]
    """The numbers of all boxes, level by level from one box of all cells, from flat counts."""
    parents: tuple[Integers, ...]
    """For every level but the last the box of every box on the next."""
    single: tuple[NDArray[np.bool_], ...]
    """Which boxes are never split."""
    decay: int
    floor: int
    choice: DiscreteLaplace
    noise: DiscreteLaplace
    number: DiscreteLaplace | None
    estimate: Callable[[Integers, int | None], Floats]
    """Estimated counts from what was drawn and the public number of records."""


Form = Additive | TwoStage | NoisyNumber | Nested | Splits
