"""A private quadtree: boxes are halved along every axis where a noisy number says that they are worth it.

Promise: ε-private under the policy, for one record, by composition of two releases. *First* the tree: a box on level l
with c records is split where max(c - l·decay, -floor) + η > 0, with discrete Laplace noise η of its own. How much
noise is enough whatever the depth is derived in `path_loss`, and summed up there for the noise that is drawn: a record
that appears changes the boxes on one path, one that moves those on two. *Then* the numbers of the boxes that were not
split: one of them changes by one under add/remove, two where records move. Given the tree that costs the noise's rate
once or twice, and both together ε.

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
from sfumato.linear import Identity
from sfumato.mechanism.base import MeasuredMechanism, Mechanism, require_integers, require_whole
from sfumato.mechanism.cells.strategies import no_options
from sfumato.mechanism.entry import Entry
from sfumato.mechanism.forms import Splits
from sfumato.mechanism.model import Block, NoiseModel
from sfumato.mechanism.partitions.halves import Halves
from sfumato.mechanism.partitions.path_loss import best_rate, path_loss
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
# The model's error is that on a reference population, so many times over: see the page on maps.
REHEARSED, CAUTION = 3, 2
MOST_DECAY = 1 << 40  # a score of as many records on every level stays below 2⁵³

Tree = list[NDArray[np.bool_]]
"""For every level which boxes are not split; the others were not reached, or are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Quadtree(MeasuredMechanism):
    """What is measured are the splits, level by level, one number for every box that was reached and could be split,
    and behind them the noisy numbers of the boxes that were not split.
    """

    choice: DiscreteLaplace
    decay: int
    floor: int
    noise: DiscreteLaplace

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
        """Of the tree and of the numbers."""
        return _loss(self.policy, self.choice.rate, self.decay, self.floor) + _changed(self.policy) * self.noise.rate

    def modelled_error(self, workload: Workload, records: int) -> float:
        """A few seeded runs on a population that nobody lives in, and what real maps had beyond that."""
        domain = self.policy.domain
        like = reference_population(domain, records)
        total = records if self.policy.total_is_public else None
        runs = (self.run(like.ravel(), total, SeededSource(seed)).reshape(domain.shape) for seed in range(REHEARSED))
        return CAUTION * float(np.mean([workload.mean_square(run - like, domain) for run in runs]))

    def require_room(self) -> None:
        """Of scores and of numbers."""
        least = min(self.choice.rate, self.noise.rate)
        most = 1 << bits(least)
        require_integers(self.name, 1, most + self.halves.depth * self.decay + self.floor, "Use a larger epsilon.")

    def scores(self, level: int, counts: Integers) -> Integers:
        """Of boxes with so many records."""
        return np.maximum(counts - level * self.decay, -self.floor)

    def draw(self, counts: Integers, total: int | None, source: Source) -> Integers:
        """The tree, then the numbers of its leaves; all that they tell."""
        del total
        levels, drawn, ends = self.halves.counts(counts), [], []
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
        tree, numbers = self._read(measured)
        found = np.zeros(self.policy.domain.shape)
        at = 0
        for level, (leaves, values) in enumerate(zip(tree, self._by_level(tree, numbers, total), strict=True)):
            if leaves.any():
                low, high = self.halves.boxes(level, np.flatnonzero(leaves))
                each = np.zeros(len(leaves))
                each[leaves] = values / (high - low).prod(axis=1)
                found += self.halves.spread(level, each)
            at += len(values)
        return found.ravel() if total is None else with_exact_total(found.ravel(), total)

    @staticmethod
    def _by_level(tree: Tree, numbers: Integers, total: int | None) -> list[Floats]:
        values = numbers.astype(np.float64)
        if total is not None:
            values = values + (total - values.sum()) / len(values)
        return np.split(values, np.cumsum([leaves.sum() for leaves in tree])[:-1])

    def runs(self, measured: Integers | None, total: int | None) -> Runs | None:
        """The leaves with their numbers and the noise in these."""
        if measured is None:
            return None
        try:
            tree, numbers = self._read(measured)
        except InvalidInput:
            return None  # a damaged file: as if it had not kept them
        boxes = [self.halves.boxes(level, np.flatnonzero(leaves)) for level, leaves in enumerate(tree)]
        low, high = (np.concatenate(ends) for ends in zip(*boxes, strict=True))
        blocks = (Block(Identity(len(numbers)), self.noise),)
        model = NoiseModel((len(numbers),), blocks, centred=total is not None)
        return Runs(low, high, np.concatenate(self._by_level(tree, numbers, total)), model)

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
            estimate=self.estimate,
        )

    def _read(self, measured: Integers) -> tuple[Tree, Integers]:
        """(the leaves of every level, their noisy numbers); they are not trusted."""
        row, damaged = np.asarray(measured, dtype=np.int64), InvalidInput("measured does not describe a tree of boxes.")
        if row.ndim != 1:
            raise damaged
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
        return tree, row[at:]


def _changed(policy: Policy) -> int:
    """How many numbers of leaves a change of a record changes, by one each."""
    return 2 if policy.moves_exist else 1


def _loss(policy: Policy, rate: Fraction, decay: int, floor: int) -> Fraction:
    return path_loss(rate, decay, floor, Halves(policy.domain.shape).depth, moves=policy.moves_exist)


def quadtree(policy: Policy, epsilon: Fraction, **options: Any) -> Mechanism:
    """Boxes split by noisy numbers; `share` of ε is for the tree. `rate`, `decay` and `floor` say what noise it has and
    follow from the share where they are left out.
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
    if not 0 < share < 1:
        raise InvalidInput(f"share={share} must lie between 0 and 1, both excluded: the share of ε for the tree.")
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
        options={"share": str(share), "rate": str(rate), "decay": decay, "floor": floor},
        choice=DiscreteLaplace(rate),
        decay=decay,
        floor=floor,
        noise=DiscreteLaplace((1 - share) * epsilon / _changed(policy)),
    )


def _up_to(value: Any, name: str) -> int:
    if not is_whole(value) or not 0 < value <= MOST_DECAY:
        raise InvalidInput(f"{name}={value!r} must be a whole number of records, from 1 to {MOST_DECAY}.")
    return int(value)


QUADTREE = Entry(name="quadtree", build=quadtree)
