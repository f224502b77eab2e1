"""A private quadtree: boxes are halved along every axis where a noisy number says that they are worth it.

Promise: ε-private under the policy, for one record, by composition of two releases. *First* the tree: a box on level l
with c records is split where max(c - l·decay, -floor) + η > 0, with discrete Laplace noise η of its own. How much
noise is enough whatever the depth is derived in `path_loss`, and summed up there for the noise that is drawn: a record
that appears changes the boxes on one path, one that moves those on two. *Then* the numbers of the boxes that were not
split: one of them changes by one under add/remove, two where records move. Given the tree that costs the noise's rate
once or twice. Where the number of all records is not public, a share of ε buys it with noise of its own, beside the
many numbers that would add up to it. All together cost ε.

The number of a box is shared out equally among its cells, which is a guess: standard errors of single cells are not
known, and ranges are bracketed by the boxes that they hold and those that they touch. Empty places end up in few large
boxes with the noise of one number each, crowded ones in single cells: small ranges on skewed maps are told best, and
ranges over much of the map add up the noise of many boxes, which `adaptive-grid` avoids.

Zhang, Xiao, Xie: PrivTree (SIGMOD 2016), under add/remove, with decay and floor both ln β of the noise's scale. Here
with exact integer noise, with the loss that this noise has, for moves at less than two paths, and for boxes of any
sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._types import Floats, Integers
from sfumato.errors import InvalidInput
from sfumato.exact import fraction, is_whole, positive_fraction
from sfumato.mechanism.base import MeasuredMechanism, Mechanism, require_integers, require_whole
from sfumato.mechanism.cells.strategies import no_options
from sfumato.mechanism.entry import Entry
from sfumato.mechanism.forms import Splits
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.partitions.halves import Halves
from sfumato.mechanism.partitions.path_loss import best_rate, path_loss
from sfumato.mechanism.partitions.shared import Handed, Shared
from sfumato.mechanism.reference import reference_population
from sfumato.mechanism.runs import Runs
from sfumato.mechanism.totals import with_exact_total
from sfumato.noise import DiscreteLaplace, SeededSource, Source
from sfumato.noise.expansion import bits
from sfumato.policies import Policy
from sfumato.workload import Workload

# The best for squares of 4 and 16 cells among some, on six real maps at ε = 0.1 and 1. PrivTree has a share of 1/2, and
# decay and floor of ln 4 = 1.39 scales.
SHARE, DECAY, FLOOR = Fraction(1, 3), Fraction(3, 5), Fraction(6, 5)
# For the number of all records: it need not be exact, but as good as the sum of hundreds of boxes.
NUMBER = Fraction(1, 32)
# The model's error is that on a reference population, so many times over: see the page on maps.
REHEARSED, CAUTION = 3, 1.5
MOST_DECAY = 1 << 40  # a score of as many records on every level stays below 2⁵³

Tree = list[NDArray[np.bool_]]
"""For every level which boxes are not split; the others were not reached, or are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Quadtree(MeasuredMechanism):
    """What is measured is the number of all records, where it is not public; the splits, level by level, one number for
    every box that was reached and could be split; and behind them the noisy numbers of the boxes that were not split.
    """

    choice: DiscreteLaplace
    decay: int
    floor: int
    noise: DiscreteLaplace
    number: DiscreteLaplace | None
    """On the number of all records; None where that is public."""

    @property
    def keeps_measured(self) -> bool:
        """Ranges are bracketed by boxes."""
        return True

    @cached_property
    def halves(self) -> Halves:
        """All boxes that there may be."""
        return Halves(self.policy.domain.shape)

    @property
    def privacy_loss(self) -> Fraction:
        """Of the tree, of the numbers, and of the number of all records."""
        tree = _loss(self.policy, self.choice.rate, self.decay, self.floor)
        everybody = Fraction(0) if self.number is None else self.number.rate
        return tree + _changed(self.policy) * self.noise.rate + everybody

    def modelled_error(self, workload: Workload, records: int) -> float:
        """A few seeded runs on a population that nobody lives in, and what real maps had beyond that."""
        domain = self.policy.domain
        like = reference_population(domain, records)
        total = records if self.policy.total_is_public else None
        runs = (self.run(like.ravel(), total, SeededSource(seed)).reshape(domain.shape) for seed in range(REHEARSED))
        return CAUTION * float(np.mean([workload.mean_square(run - like, domain) for run in runs]))

    def require_room(self) -> None:
        """Of scores and of numbers."""
        least = min(law.rate for law in (self.choice, self.noise, self.number) if law is not None)
        most = 1 << bits(least)
        require_integers(self.name, 1, most + self.halves.depth * self.decay + self.floor, "Use a larger epsilon.")

    def scores(self, level: int, counts: Integers) -> Integers:
        """Of boxes with so many records."""
        return np.maximum(counts - level * self.decay, -self.floor)

    def draw(self, counts: Integers, total: int | None, source: Source) -> Integers:
        """The tree, then the numbers of its leaves; all that they tell."""
        del total
        levels, ends = self.halves.counts(counts), []
        drawn = [] if self.number is None else [levels[0] + self.number.sample(1, source)]
        reached = np.ones(1, dtype=np.bool_)
        for level, table in enumerate(levels):
            able = np.flatnonzero(reached & ~self.halves.single(level))
            splits = np.zeros(len(table), dtype=np.bool_)
            if len(able):
                found = self.scores(level, table[able]) + self.choice.sample(len(able), source) > 0
                splits[able] = found
                drawn.append(found.astype(np.int64))
            ends.append(table[reached & ~splits])
            if level < self.halves.depth:
                reached = splits[self.halves.parents(level)]
        leaves = np.concatenate(ends)
        return np.concatenate([*drawn, leaves + self.noise.sample(len(leaves), source)])

    def estimate(self, measured: Integers, total: int | None) -> Floats:
        """Every leaf's number shared out equally; a missing public total among the leaves."""
        tree, numbers, everybody = self._read(measured)
        values = self._together(numbers, everybody, total)
        found = np.zeros(self.policy.domain.shape)
        ends = np.cumsum([leaves.sum() for leaves in tree])[:-1]
        for level, (leaves, own) in enumerate(zip(tree, np.split(values, ends), strict=True)):
            if leaves.any():
                low, high = self.halves.boxes(level, np.flatnonzero(leaves))
                each = np.zeros(len(leaves))
                each[leaves] = own / (high - low).prod(axis=1)
                found += self.halves.spread(level, each)
        return found.ravel() if total is None else with_exact_total(found.ravel(), total)

    def _together(self, numbers: Integers, everybody: int | None, total: int | None) -> Floats:
        """The numbers of the leaves with what they miss of the number of all records, by least squares."""
        values = numbers.astype(np.float64)
        known = total if total is not None else everybody
        return values if known is None else values + self._handed(len(values)) * (known - values.sum())

    def _handed(self, leaves: int) -> float:
        """How much every leaf gets of what all of them miss: what is known exactly is handed out, else less."""
        if self.number is None:
            return 1 / leaves
        own = self.noise.variance
        return own / (leaves * own + self.number.variance) if own else 0.0

    def runs(self, measured: Integers | None, total: int | None) -> Runs | None:
        """The leaves with their numbers and the noise in these."""
        if measured is None:
            return None
        try:
            tree, numbers, everybody = self._read(measured)
        except InvalidInput:
            return None  # a damaged file: as if it had not kept them
        boxes = [self.halves.boxes(level, np.flatnonzero(leaves)) for level, leaves in enumerate(tree)]
        low, high = (np.concatenate(ends) for ends in zip(*boxes, strict=True))
        own = Shared(len(numbers), 0.0 if self.number is None and total is None else self._handed(len(numbers)))
        blocks = [Block(own, self.noise)]
        if self.number is not None:
            blocks.append(Block(Handed(len(numbers), own.part), self.number))
        return Runs(low, high, self._together(numbers, everybody, total), NoiseModel((len(numbers),), tuple(blocks)))

    @property
    def form(self) -> Splits:
        """Boxes that are split by noisy scores, and numbers of the rest."""
        halves = self.halves
        return Splits(
            levels=halves.counts,
            parents=tuple(halves.parents(level) for level in range(halves.depth)),
            single=tuple(halves.single(level) for level in range(halves.depth + 1)),
            decay=self.decay,
            floor=self.floor,
            choice=self.choice,
            noise=self.noise,
            number=self.number,
            estimate=self.estimate,
        )

    def _read(self, measured: Integers) -> tuple[Tree, Integers, int | None]:
        """(the leaves of every level, their noisy numbers, that of all); they are not trusted."""
        row, damaged = np.asarray(measured, dtype=np.int64), InvalidInput("measured does not describe a tree of boxes.")
        if row.ndim != 1 or not len(row):
            raise damaged
        everybody, row = (None, row) if self.number is None else (int(row[0]), row[1:])
        tree, at, reached = [], 0, np.ones(1, dtype=np.bool_)
        for level in range(self.halves.depth + 1):
            able = np.flatnonzero(reached & ~self.halves.single(level))
            found = row[at : at + len(able)]
            if len(found) < len(able) or (found < 0).any() or (found > 1).any():
                raise damaged
            at += len(able)
            splits = np.zeros(len(reached), dtype=np.bool_)
            splits[able] = found == 1
            tree.append(reached & ~splits)
            if level < self.halves.depth:
                reached = splits[self.halves.parents(level)]
        if len(row) - at != sum(int(leaves.sum()) for leaves in tree):
            raise damaged
        return tree, row[at:], everybody


def _changed(policy: Policy) -> int:
    """How many numbers of leaves a change of a record changes, by one each."""
    return 2 if policy.moves_exist else 1


def _loss(policy: Policy, rate: Fraction, decay: int, floor: int) -> Fraction:
    return path_loss(rate, decay, floor, Halves(policy.domain.shape).depth, moves=policy.moves_exist)


def quadtree(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Boxes split by noisy numbers; `share` of ε is for the tree, and `number` for that of all records where it is not
    public. `rate`, `decay` and `floor` say what noise the tree has and follow from the share where they are left out.
    """
    if policy.public or not policy.domain.is_ordered or not (policy.moves_exist or policy.absent is not None):
        raise InvalidInput(
            "mechanism='quadtree' is for lines and grids, with no factor public. Nothing was drawn or recorded. "
            "Use mechanism='edges' or 'hats'."
        )
    if policy.domain.size == 1:
        raise InvalidInput("mechanism='quadtree': a single cell has nothing to split; use mechanism='identity'.")
    if policy.total_is_public:
        require_whole(policy, "quadtree")
    share = fraction(options.pop("share", SHARE), "share")
    number = Fraction(0) if policy.total_is_public else fraction(options.pop("number", NUMBER), "number")
    if not 0 < share < 1:
        raise InvalidInput(f"share={share} must lie between 0 and 1, both excluded: the share of ε for the tree.")
    if not (policy.total_is_public or 0 < number < 1 - share):
        raise InvalidInput(f"number={number} must lie between 0 and {1 - share}: the share of ε for all records.")
    given = {name: options.pop(name) for name in ("rate", "decay", "floor") if name in options}
    no_options("quadtree", options)
    if given and len(given) < 3:
        raise InvalidInput("rate, decay and floor are given together or not at all.")
    if given:
        rate = positive_fraction(str(given["rate"]), "rate")
        decay, floor = (_up_to(given[name], name) for name in ("decay", "floor"))
    else:
        rate, decay, floor = best_rate(
            share * epsilon,
            decay=DECAY,
            floor=FLOOR,
            depth=Halves(policy.domain.shape).depth,
            moves=policy.moves_exist,
        )
        if decay > MOST_DECAY:
            raise InvalidInput(f"epsilon={float(epsilon):g} is too small for mechanism='quadtree'. Use a larger one.")
    told = _loss(policy, rate, decay, floor)
    if told > share * epsilon:
        raise InvalidInput(
            f"rate={rate}, decay={decay} and floor={floor} would let the tree tell {float(told):.6g}, above its share "
            f"of ε, {float(share * epsilon):.6g}. Nothing was drawn or recorded. Leave them out."
        )
    return Quadtree(
        name="quadtree",
        policy=policy,
        epsilon=epsilon,
        options={
            "share": str(share),
            **({"number": str(number)} if number else {}),
            "rate": str(rate),
            "decay": decay,
            "floor": floor,
        },
        choice=DiscreteLaplace(rate),
        decay=decay,
        floor=floor,
        noise=DiscreteLaplace((1 - share - number) * epsilon / _changed(policy)),
        number=DiscreteLaplace(number * epsilon) if number else None,
    )


def _up_to(value: Any, name: str) -> int:
    if not is_whole(value) or not 0 < value <= MOST_DECAY:
        raise InvalidInput(f"{name}={value!r} must be a whole number of records, from 1 to {MOST_DECAY}.")
    return int(value)


QUADTREE = Entry(name="quadtree", build=quadtree)
